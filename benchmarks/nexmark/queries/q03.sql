select p.name, p.city, p.state, a.id
from nexmark.auction as a
inner join nexmark.person as p on a.seller = p.id
where a.category = 10 and p.state in ('or', 'id', 'ca')
