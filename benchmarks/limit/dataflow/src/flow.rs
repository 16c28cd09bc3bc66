//! One worker's part of the dataflow, and the commands that it follows.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use crate::rows::Diff;
use crate::tables::{Rows, Tables, Updates};
use crate::{q03, q09, q18};

/// A query's answer as lines, with their counts; all workers add to it.
pub type Answer = Arc<Mutex<BTreeMap<String, Diff>>>;

pub enum Command {
    /// Takes in updates at the current time.
    Update(Updates),
    /// Completes the current time, and waits until every answer has its changes.
    Commit,
}

/// The queries' names.
pub const QUERIES: [&str; 3] = ["q03", "q09", "q18"];

/// Follows the commands until there will be none. A reply is the time that a command took.
pub fn run(
    worker: &mut Worker,
    answers: &BTreeMap<String, Answer>,
    commands: Receiver<Command>,
    replies: Sender<Duration>,
) {
    let probe = Handle::new();
    let mut inputs = worker.dataflow(|scope| {
        let (inputs, tables) = Tables::new(scope);
        for (query, answer) in answers {
            let answer = Arc::clone(answer);
            rows(query, &tables)
                .inspect(move |(line, _, diff)| add(&answer, line, *diff))
                .probe_with(&probe);
        }
        inputs
    });
    for command in commands {
        let started = Instant::now();
        match command {
            Command::Update(updates) => {
                inputs.update(updates);
                worker.step();
            }
            Command::Commit => {
                let next = inputs.advance();
                worker.step_while(|| probe.less_than(&next));
            }
        }
        if replies.send(started.elapsed()).is_err() {
            return;
        }
    }
}

fn rows<'scope>(query: &str, tables: &Tables<'scope>) -> Rows<'scope, String> {
    match query {
        "q03" => q03::q03(tables),
        "q09" => q09::q09(tables),
        "q18" => q18::q18(tables),
        _ => unreachable!("only QUERIES have answers"),
    }
}

fn add(answer: &Answer, line: &str, diff: Diff) {
    let mut lines = answer.lock().expect("no worker panics while it adds");
    let count = lines.entry(line.to_owned()).or_default();
    *count += diff;
    if *count == 0 {
        lines.remove(line);
    }
}
