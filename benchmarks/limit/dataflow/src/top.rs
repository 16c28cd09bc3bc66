//! `ORDER BY ... LIMIT`.

use std::hash::Hash;

use differential_dataflow::{ExchangeData, Hashable};

use crate::rows::Diff;
use crate::tables::Rows;

/// The first `limit` rows in the order of their type.
///
/// It is hierarchical: the first rows of many groups, of fewer, of one. So a change of a row reads the rows of one small
/// group, and the candidates of those above it, instead of all rows.
pub fn top<D: ExchangeData + Hash>(rows: Rows<D>, limit: Diff) -> Rows<D> {
    let mut candidates = rows.map(|row| (row.hashed(), row));
    for groups in [4096, 64, 1] {
        candidates = candidates
            .map(move |(hash, row)| (hash % groups, row))
            .reduce(move |_, rows, first| {
                let mut left = limit;
                for (row, count) in rows {
                    let taken = left.min(*count);
                    if taken > 0 {
                        first.push(((*row).clone(), taken));
                    }
                    left -= taken;
                }
            });
    }
    candidates.map(|(_, row)| row)
}
