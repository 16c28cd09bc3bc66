//! TPC-H's q03, q09 and q18 in differential dataflow, kept in memory.
//!
//! `limit WORKERS QUERY...` holds the queries in one dataflow. It reads commands, one a line, and answers each with one:
//!
//! - `update TABLE FILE` takes a file's updates in; the answer is the seconds of reading the file, and those of handing
//!   its updates to the dataflow.
//! - `commit` completes them as one change; the answer is the seconds until every query's answer is up to date.
//! - `answer QUERY FILE` writes a query's rows; the answer is their number.

mod flow;
mod q03;
mod q09;
mod q18;
mod rows;
mod tables;
mod text;
mod top;
mod workers;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use flow::{Answer, QUERIES};
use rows::{Diff, Parts, Row};
use tables::Updates;
use workers::Workers;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let workers = arguments.next().ok_or("how many workers?")?.parse()?;
    let queries: Vec<String> = arguments.collect();
    if let Some(unknown) = queries.iter().find(|name| !QUERIES.contains(&name.as_str())) {
        return Err(format!("{unknown} is none of {}", QUERIES.join(", ")).into());
    }
    let answers: BTreeMap<String, Answer> = queries.into_iter().map(|name| (name, Answer::default())).collect();
    let (threads, ends) = Workers::new(workers);
    let (ends, shared) = (Mutex::new(ends), answers.clone());
    let guards = timely::execute(timely::Config::process(workers), move |worker| {
        let end = ends.lock().expect("removing does not panic").remove(&worker.index());
        let (commands, replies) = end.expect("each worker has an end of its own");
        flow::run(worker, &shared, commands, replies);
    })?;
    let served = serve(threads, &answers);
    guards.join().into_iter().collect::<Result<Vec<()>, String>>()?;
    served
}

/// Follows the commands of the standard input. The workers end with it, as there will be no more for them.
fn serve(mut workers: Workers, answers: &BTreeMap<String, Answer>) -> Result<(), Box<dyn Error>> {
    for line in std::io::stdin().lines() {
        println!("{}", follow(&line?, &mut workers, answers)?);
    }
    Ok(())
}

/// A command's answer.
fn follow(line: &str, workers: &mut Workers, answers: &BTreeMap<String, Answer>) -> Result<String, Box<dyn Error>> {
    match line.splitn(3, ' ').collect::<Vec<_>>()[..] {
        ["update", table, file] => {
            let (reading, handing) = update(table, Path::new(file), workers).map_err(|e| format!("{file}: {e}"))?;
            Ok(format!("{:.9} {:.9}", reading.as_secs_f64(), handing.as_secs_f64()))
        }
        ["commit"] => Ok(format!("{:.9}", workers.commit()?.as_secs_f64())),
        ["answer", query, file] => {
            let answer = answers.get(query).ok_or_else(|| format!("{query} is not held"))?;
            Ok(write(answer, Path::new(file))?.to_string())
        }
        _ => Err(format!("no command: {line}").into()),
    }
}

/// The time of reading a table's updates, and that of handing them to the dataflow.
fn update(table: &str, file: &Path, workers: &mut Workers) -> Result<(Duration, Duration), Box<dyn Error>> {
    match table {
        "orders" => hand(file, workers, Updates::Orders),
        "lineitem" => hand(file, workers, Updates::Lines),
        "customer" => hand(file, workers, Updates::Customers),
        "part" => hand(file, workers, Updates::Parts),
        "supplier" => hand(file, workers, Updates::Suppliers),
        "partsupp" => hand(file, workers, Updates::PartSuppliers),
        "nation" => hand(file, workers, Updates::Nations),
        _ => Err(format!("no table: {table}").into()),
    }
}

fn hand<R: Row>(
    file: &Path,
    workers: &mut Workers,
    of: fn(Vec<(R, Diff)>) -> Updates,
) -> Result<(Duration, Duration), Box<dyn Error>> {
    let (mut reading, mut handing) = (Duration::ZERO, Duration::ZERO);
    let mut parts = Parts::open(file)?;
    loop {
        let started = Instant::now();
        let updates = parts.next()?;
        reading += started.elapsed();
        if updates.is_empty() {
            return Ok((reading, handing));
        }
        handing += workers.update(of(updates))?;
    }
}

/// Writes the rows; their number.
fn write(answer: &Answer, path: &Path) -> Result<Diff, Box<dyn Error>> {
    let lines = answer.lock().map_err(|e| e.to_string())?;
    let mut file = BufWriter::new(File::create(path)?);
    for (line, count) in lines.iter() {
        for _ in 0..*count {
            writeln!(file, "{line}")?;
        }
    }
    file.flush()?;
    Ok(lines.values().sum())
}
