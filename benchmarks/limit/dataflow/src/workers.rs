//! The worker threads, as the thread that reads the commands sees them.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::flow::Command;
use crate::tables::Updates;

/// The workers' ends of the channels, by index.
pub type Ends = BTreeMap<usize, (Receiver<Command>, Sender<Duration>)>;

/// Gives the workers commands and waits for their replies.
pub struct Workers {
    commands: Vec<Sender<Command>>,
    replies: Receiver<Duration>,
    next: usize,
}

impl Workers {
    pub fn new(number: usize) -> (Self, Ends) {
        let (replier, replies) = channel();
        let (commands, ends): (Vec<_>, Vec<_>) = (0..number)
            .map(|_| channel())
            .map(|(command, commands)| (command, (commands, replier.clone())))
            .unzip();
        let workers = Self {
            commands,
            replies,
            next: 0,
        };
        (workers, ends.into_iter().enumerate().collect())
    }

    /// Gives the updates to one worker, in turns. The dataflow distributes rows by their keys.
    pub fn update(&mut self, updates: Updates) -> Result<Duration, Box<dyn Error>> {
        self.commands[self.next].send(Command::Update(updates))?;
        self.next = (self.next + 1) % self.commands.len();
        Ok(self.replies.recv()?)
    }

    /// The time of the slowest worker.
    pub fn commit(&self) -> Result<Duration, Box<dyn Error>> {
        for worker in &self.commands {
            worker.send(Command::Commit)?;
        }
        let times = self.commands.iter().map(|_| self.replies.recv());
        Ok(times
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .max()
            .unwrap_or_default())
    }
}
