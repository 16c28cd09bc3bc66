//! The ten unshipped orders of a market segment with the greatest revenue.

use std::cmp::Reverse;

use differential_dataflow::operators::CountTotal;

use crate::rows::{Diff, revenue};
use crate::tables::{Rows, Tables};
use crate::text::decimal;
use crate::top::top;

/// 1995-03-15
const DAY: i32 = 9204;

pub fn q03<'scope>(tables: &Tables<'scope>) -> Rows<'scope, String> {
    let open_orders = tables
        .orders_by_key()
        .join_core(
            tables.lines_by_order(),
            |&order, &(customer, date, priority, _), line| {
                let &(_, price, discount, ship_date) = line;
                let is_open = date < DAY && ship_date > DAY;
                is_open.then(|| ((customer, (order, date, priority)), revenue(price, discount)))
            },
        )
        // The lines' number stands beside the sum of their revenue, so that an order with a sum of zero is there.
        .explode(|(order, revenue)| Some((order, (revenue, 1))));
    let orders = open_orders
        .arrange_by_key()
        .join_core(tables.customers_by_key(), |_, &order, (_, segment)| {
            (segment == "BUILDING").then_some(order)
        })
        .count_total_core::<Diff>()
        .map(|((order, date, priority), (revenue, _))| (Reverse(revenue), date, order, priority));
    top(orders, 10)
        .map(|(Reverse(revenue), date, order, priority)| format!("{order},{},{date},{priority}", decimal(revenue, 4)))
}
