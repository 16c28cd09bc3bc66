//! The profit on a line of parts, by the supplier's nation and the order's year.

use differential_dataflow::operators::CountTotal;

use crate::rows::{Diff, Nation, PartSupplier, Supplier, revenue};
use crate::tables::{Rows, Tables};
use crate::text::{decimal, year};

pub fn q09<'scope>(tables: &Tables<'scope>) -> Rows<'scope, String> {
    let amounts = tables
        .lines_by_part_supplier()
        .join_core(supplied(tables).arrange_by_key(), |_, line, &(nation, cost)| {
            let &(order, quantity, price, discount) = line;
            let amount = revenue(price, discount) - Diff::from(cost) * Diff::from(quantity);
            Some(((order, nation), amount))
        })
        // The lines' number stands beside the sum of their amounts, so that a group with a sum of zero is there.
        .explode(|(line, amount)| Some((line, (amount, 1))));
    let by_nation = amounts
        .arrange_by_key()
        .join_core(tables.orders_by_key(), |_, &nation, &(_, date, _, _)| {
            Some((nation, year(date)))
        });
    by_nation
        .arrange_by_key()
        .join_core(named(tables).arrange_by_key(), |_, &year, name| {
            Some((name.clone(), year))
        })
        .count_total_core::<Diff>()
        .map(|((name, year), (amount, _))| format!("{name},{year},{}", decimal(amount, 4)))
}

/// By part and supplier, for green parts: the supplier's nation, and the supply cost.
fn supplied<'scope>(tables: &Tables<'scope>) -> Rows<'scope, ((i32, i32), (i32, i32))> {
    let green = tables.parts.clone().filter(|part| part.name.contains("green"));
    let nation_of = tables.suppliers.clone().map(|s: Supplier| (s.key, s.nation));
    let costs = |ps: PartSupplier| (ps.part, (ps.supplier, ps.supply_cost));
    tables
        .part_suppliers
        .clone()
        .map(costs)
        .semijoin(green.map(|part| part.key))
        .map(|(part, (supplier, cost))| (supplier, (part, cost)))
        .join_map(nation_of, |&supplier, &(part, cost), &nation| {
            ((part, supplier), (nation, cost))
        })
}

fn named<'scope>(tables: &Tables<'scope>) -> Rows<'scope, (i32, String)> {
    tables.nations.clone().map(|n: Nation| (n.key, n.name))
}
