//! The tables as collections, and the arrangements that queries share.

use std::cell::OnceCell;

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::implementations::ValSpine;
use differential_dataflow::{Data, VecCollection};
use timely::dataflow::Scope;

use crate::rows::{Customer, Diff, Line, Nation, Order, Part, PartSupplier, Supplier};

pub type Time = u64;
pub type Rows<'scope, D, R = Diff> = VecCollection<'scope, Time, D, R>;
pub type ByKey<'scope, K, V> = Arranged<'scope, TraceAgent<ValSpine<K, V, Time, Diff>>>;

/// Updates of one table.
pub enum Updates {
    Orders(Vec<(Order, Diff)>),
    Lines(Vec<(Line, Diff)>),
    Customers(Vec<(Customer, Diff)>),
    Parts(Vec<(Part, Diff)>),
    Suppliers(Vec<(Supplier, Diff)>),
    PartSuppliers(Vec<(PartSupplier, Diff)>),
    Nations(Vec<(Nation, Diff)>),
}

/// Where updates of the tables come in, all at the same time.
pub struct Inputs {
    time: Time,
    orders: InputSession<Time, Order, Diff>,
    lines: InputSession<Time, Line, Diff>,
    customers: InputSession<Time, Customer, Diff>,
    parts: InputSession<Time, Part, Diff>,
    suppliers: InputSession<Time, Supplier, Diff>,
    part_suppliers: InputSession<Time, PartSupplier, Diff>,
    nations: InputSession<Time, Nation, Diff>,
}

impl Inputs {
    pub fn update(&mut self, updates: Updates) {
        match updates {
            Updates::Orders(rows) => send(&mut self.orders, rows),
            Updates::Lines(rows) => send(&mut self.lines, rows),
            Updates::Customers(rows) => send(&mut self.customers, rows),
            Updates::Parts(rows) => send(&mut self.parts, rows),
            Updates::Suppliers(rows) => send(&mut self.suppliers, rows),
            Updates::PartSuppliers(rows) => send(&mut self.part_suppliers, rows),
            Updates::Nations(rows) => send(&mut self.nations, rows),
        }
    }

    /// Completes the current time; the next one, which is returned, begins.
    pub fn advance(&mut self) -> Time {
        self.time += 1;
        advance(&mut self.orders, self.time);
        advance(&mut self.lines, self.time);
        advance(&mut self.customers, self.time);
        advance(&mut self.parts, self.time);
        advance(&mut self.suppliers, self.time);
        advance(&mut self.part_suppliers, self.time);
        advance(&mut self.nations, self.time);
        self.time
    }
}

fn send<D: Data>(input: &mut InputSession<Time, D, Diff>, rows: Vec<(D, Diff)>) {
    for (row, diff) in rows {
        input.update(row, diff);
    }
    input.flush();
}

fn advance<D: Data>(input: &mut InputSession<Time, D, Diff>, time: Time) {
    input.advance_to(time);
    input.flush();
}

/// The tables. Arrangements of the large ones are made when a query first asks for them, and shared from then on.
pub struct Tables<'scope> {
    pub parts: Rows<'scope, Part>,
    pub suppliers: Rows<'scope, Supplier>,
    pub part_suppliers: Rows<'scope, PartSupplier>,
    pub nations: Rows<'scope, Nation>,
    orders: Rows<'scope, Order>,
    lines: Rows<'scope, Line>,
    customers: Rows<'scope, Customer>,
    orders_by_key: OnceCell<ByKey<'scope, i64, OrderColumns>>,
    lines_by_order: OnceCell<ByKey<'scope, i64, LineColumns>>,
    lines_by_part_supplier: OnceCell<ByKey<'scope, (i32, i32), PartLineColumns>>,
    customers_by_key: OnceCell<ByKey<'scope, i32, CustomerColumns>>,
}

/// Customer, date, shipping priority, total price.
pub type OrderColumns = (i32, i32, i32, i64);
/// Quantity, extended price, discount, shipping date.
pub type LineColumns = (i32, i32, i32, i32);
/// Order, quantity, extended price, discount.
pub type PartLineColumns = (i64, i32, i32, i32);
/// Name, segment.
pub type CustomerColumns = (String, String);

impl<'scope> Tables<'scope> {
    pub fn new(scope: Scope<'scope, Time>) -> (Inputs, Self) {
        let (orders, all_orders) = scope.new_collection();
        let (lines, all_lines) = scope.new_collection();
        let (customers, all_customers) = scope.new_collection();
        let (parts, all_parts) = scope.new_collection();
        let (suppliers, all_suppliers) = scope.new_collection();
        let (part_suppliers, all_part_suppliers) = scope.new_collection();
        let (nations, all_nations) = scope.new_collection();
        let inputs = Inputs {
            time: 0,
            orders,
            lines,
            customers,
            parts,
            suppliers,
            part_suppliers,
            nations,
        };
        let tables = Self {
            parts: all_parts,
            suppliers: all_suppliers,
            part_suppliers: all_part_suppliers,
            nations: all_nations,
            orders: all_orders,
            lines: all_lines,
            customers: all_customers,
            orders_by_key: OnceCell::new(),
            lines_by_order: OnceCell::new(),
            lines_by_part_supplier: OnceCell::new(),
            customers_by_key: OnceCell::new(),
        };
        (inputs, tables)
    }

    pub fn orders_by_key(&self) -> ByKey<'scope, i64, OrderColumns> {
        let arrange = || {
            let columns = |o: Order| (o.key, (o.customer, o.date, o.ship_priority, o.total_price));
            self.orders.clone().map(columns).arrange_by_key()
        };
        self.orders_by_key.get_or_init(arrange).clone()
    }

    pub fn lines_by_order(&self) -> ByKey<'scope, i64, LineColumns> {
        let arrange = || {
            let columns = |l: Line| (l.order, (l.quantity, l.extended_price, l.discount, l.ship_date));
            self.lines.clone().map(columns).arrange_by_key()
        };
        self.lines_by_order.get_or_init(arrange).clone()
    }

    pub fn lines_by_part_supplier(&self) -> ByKey<'scope, (i32, i32), PartLineColumns> {
        let arrange = || {
            let columns = |l: Line| {
                let values = (l.order, l.quantity, l.extended_price, l.discount);
                ((l.part, l.supplier), values)
            };
            self.lines.clone().map(columns).arrange_by_key()
        };
        self.lines_by_part_supplier.get_or_init(arrange).clone()
    }

    pub fn customers_by_key(&self) -> ByKey<'scope, i32, CustomerColumns> {
        let arrange = || {
            let columns = |c: Customer| (c.key, (c.name, c.segment));
            self.customers.clone().map(columns).arrange_by_key()
        };
        self.customers_by_key.get_or_init(arrange).clone()
    }
}
