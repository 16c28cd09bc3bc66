//! The hundred most expensive ones of the orders with a large quantity.

use std::cmp::Reverse;

use differential_dataflow::trace::implementations::{ValBuilder, ValSpine};

use crate::rows::Diff;
use crate::tables::{Rows, Tables};
use crate::text::decimal;
use crate::top::top;

/// 250, in hundredths.
const LARGE: Diff = 25_000;

/// The sum by which orders are chosen is the one that the answer shows, as an order has one row and one customer.
pub fn q18<'scope>(tables: &Tables<'scope>) -> Rows<'scope, String> {
    let quantities = tables
        .lines_by_order()
        .reduce_abelian::<_, ValBuilder<_, _, _, _>, ValSpine<i64, Diff, _, Diff>, _, _>(
            "LargeQuantities",
            |_, lines, large| {
                let quantity = lines
                    .iter()
                    .map(|((quantity, ..), count)| Diff::from(*quantity) * count)
                    .sum();
                if quantity > LARGE {
                    large.push((quantity, 1));
                }
            },
            |updates, &order, found| {
                updates.clear();
                updates.extend(
                    found
                        .drain(..)
                        .map(|(quantity, time, diff)| ((order, quantity), time, diff)),
                );
            },
        );
    let orders = quantities
        .join_core(
            tables.orders_by_key(),
            |&order, &quantity, &(customer, date, _, price)| Some((customer, (order, date, price, quantity))),
        )
        .arrange_by_key()
        .join_core(
            tables.customers_by_key(),
            |&customer, &(order, date, price, quantity), (name, _)| {
                Some((Reverse(price), date, order, quantity, customer, name.clone()))
            },
        );
    top(orders, 100).map(|(Reverse(price), date, order, quantity, customer, name)| {
        let (price, quantity) = (decimal(price, 2), decimal(quantity, 2));
        format!("{name},{customer},{order},{date},{price},{quantity}")
    })
}
