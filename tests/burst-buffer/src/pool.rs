//! The worker threads: each request of the job is one's, one after the other.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::cores::Cores;

type Task = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
pub(crate) struct Pool {
    tasks: Mutex<Option<Sender<Task>>>,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

impl Pool {
    /// Each request costs a worker a turn on the cores besides what it does.
    pub(crate) fn new(workers: usize, cores: &Arc<Cores>) -> Self {
        let (sender, receiver) = channel::<Task>();
        let receiver = Arc::new(Mutex::new(receiver));
        let workers = (0..workers.max(1)).map(|_| {
            let (receiver, cores) = (Arc::clone(&receiver), Arc::clone(cores));
            thread::spawn(move || {
                while let Some(task) = next(&receiver) {
                    cores.take_turn();
                    task();
                }
            })
        });
        Self {
            tasks: Mutex::new(Some(sender)),
            workers: Mutex::new(workers.collect()),
        }
    }

    pub(crate) fn run(&self, task: impl FnOnce() + Send + 'static) {
        let tasks = self.tasks.lock().unwrap_or_else(|held| held.into_inner());
        if let Some(tasks) = &*tasks {
            let _ = tasks.send(Box::new(task));
        }
    }

    /// Waits until all that was given has been done.
    pub(crate) fn end(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(|held| held.into_inner());
        tasks.take();
        drop(tasks);
        let mut workers = self.workers.lock().unwrap_or_else(|held| held.into_inner());
        for worker in workers.drain(..) {
            let _ = worker.join();
        }
    }
}

fn next(receiver: &Mutex<Receiver<Task>>) -> Option<Task> {
    let receiver = receiver.lock().unwrap_or_else(|held| held.into_inner());
    receiver.recv().ok()
}
