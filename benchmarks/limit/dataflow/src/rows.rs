//! The tables' rows, with the columns that the queries need, and how they are read.
//!
//! A file has no header. Each line is an update: its change in count, then the row's columns, with commas between them.
//! Money and quantities are integers, in hundredths; dates are days since 1970.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::str::{FromStr, Split};

/// A change in count. Sums are held in changes too: see `explode` in the queries.
pub type Diff = i64;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    pub key: i64,
    pub customer: i32,
    pub date: i32,
    pub ship_priority: i32,
    pub total_price: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    pub order: i64,
    pub part: i32,
    pub supplier: i32,
    pub quantity: i32,
    pub extended_price: i32,
    pub discount: i32,
    pub ship_date: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Customer {
    pub key: i32,
    pub name: String,
    pub segment: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    pub key: i32,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Supplier {
    pub key: i32,
    pub nation: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartSupplier {
    pub part: i32,
    pub supplier: i32,
    pub supply_cost: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nation {
    pub key: i32,
    pub name: String,
}

/// A line's revenue after the discount, in units of 1/10000.
pub fn revenue(extended_price: i32, discount: i32) -> Diff {
    Diff::from(extended_price) * Diff::from(100 - discount)
}

/// A row that is read from a line.
pub trait Row: Sized {
    /// The row of the columns that come next.
    fn parse(columns: &mut Columns) -> Result<Self, Box<dyn Error>>;
}

/// The columns of a line that have not been read yet.
pub struct Columns<'a>(Split<'a, char>);

impl Columns<'_> {
    fn next<V: FromStr<Err: Error + 'static>>(&mut self) -> Result<V, Box<dyn Error>> {
        Ok(self.0.next().ok_or("too few columns")?.parse()?)
    }
}

/// The parts of a file of updates, each of at most a million of them.
pub struct Parts(BufReader<File>);

impl Parts {
    pub fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        Ok(Self(BufReader::new(File::open(path)?)))
    }

    /// The next part; empty at the file's end.
    pub fn next<R: Row>(&mut self) -> Result<Vec<(R, Diff)>, Box<dyn Error>> {
        let mut updates = Vec::new();
        let mut line = String::new();
        while updates.len() < 1_000_000 && self.0.read_line(&mut line)? > 0 {
            let mut columns = Columns(line.trim_end().split(','));
            let diff = columns.next()?;
            updates.push((R::parse(&mut columns)?, diff));
            line.clear();
        }
        Ok(updates)
    }
}

impl Row for Order {
    fn parse(columns: &mut Columns) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            key: columns.next()?,
            customer: columns.next()?,
            date: columns.next()?,
            ship_priority: columns.next()?,
            total_price: columns.next()?,
        })
    }
}

impl Row for Line {
    fn parse(columns: &mut Columns) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            order: columns.next()?,
            part: columns.next()?,
            supplier: columns.next()?,
            quantity: columns.next()?,
            extended_price: columns.next()?,
            discount: columns.next()?,
            ship_date: columns.next()?,
        })
    }
}

impl Row for Customer {
    fn parse(columns: &mut Columns) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            key: columns.next()?,
            name: columns.next()?,
            segment: columns.next()?,
        })
    }
}

impl Row for Part {
    fn parse(columns: &mut Columns) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            key: columns.next()?,
            name: columns.next()?,
        })
    }
}

impl Row for Supplier {
    fn parse(columns: &mut Columns) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            key: columns.next()?,
            nation: columns.next()?,
        })
    }
}

impl Row for PartSupplier {
    fn parse(columns: &mut Columns) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            part: columns.next()?,
            supplier: columns.next()?,
            supply_cost: columns.next()?,
        })
    }
}

impl Row for Nation {
    fn parse(columns: &mut Columns) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            key: columns.next()?,
            name: columns.next()?,
        })
    }
}
