//! An instrument for tests and measurements, and no product: a burst buffer with the papers' four
//! parameters (worker threads, destager threads, a cache in memory, the used share of it from which
//! clean data is dropped), mounted for one job in front of a slow directory. Several mounts are clients
//! that share the slow side.
//!
//! It runs until SIGTERM, then unmounts, carries all that was written, and ends. What a program has
//! synced is on the slow side, whatever happens to the job or to this process.

#![forbid(unsafe_code)]

mod cache;
mod cores;
mod pool;
mod slow;
mod tree;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Parser;
use fuser::{Config, MountOption, Session, SessionACL};
use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{SigSet, Signal};

use crate::cache::Cache;
use crate::cores::{CoreSettings, Cores};
use crate::pool::Pool;
use crate::slow::{Link, SlowSettings};
use crate::tree::{Moved, Tree};

/// For a process that outlives its job.
const LEFT_OPEN: Duration = Duration::from_secs(5);

/// The age of its statistics.
const TOLD: Duration = Duration::from_millis(5);

/// A burst buffer for tests, in front of a slow directory.
#[derive(Parser)]
struct Arguments {
    /// The slow directory.
    #[arg(long)]
    slow: PathBuf,
    /// Where to mount; each mount is a client with workers, destagers and a cache of its own.
    #[arg(long, required = true)]
    mount: Vec<PathBuf>,
    /// Threads that serve requests.
    #[arg(long, default_value_t = 4)]
    workers: usize,
    /// Threads that carry written data to the slow side.
    #[arg(long, default_value_t = 4)]
    destagers: usize,
    /// Memory of the cache, in MiB.
    #[arg(long, default_value_t = 64)]
    cache_mib: usize,
    /// The used share of the cache, in percent, from which clean data is dropped.
    #[arg(long, default_value_t = 90)]
    threshold: usize,
    /// Milliseconds that a request costs a worker, and a block a destager.
    #[arg(long, default_value_t = 2.0)]
    request_ms: f64,
    /// So many threads at work at once cost nothing.
    #[arg(long, default_value_t = 16)]
    cores: usize,
    /// The share of time that each one more costs all.
    #[arg(long, default_value_t = 0.0)]
    contention: f64,
    /// Milliseconds that a request waits if clean data has to be dropped for it.
    #[arg(long, default_value_t = 0.0)]
    reclaim_ms: f64,
    /// The slow side's rate, in MB/s.
    #[arg(long, default_value_t = 120.0)]
    rate: f64,
    /// Milliseconds that each of its requests waits.
    #[arg(long, default_value_t = 4.0)]
    latency_ms: f64,
    /// So many streams at once cost nothing.
    #[arg(long, default_value_t = 3)]
    streams: usize,
    /// The share of time that each one more costs all.
    #[arg(long, default_value_t = 0.2)]
    penalty: f64,
    /// The share of the rate that a neighbour takes on average; 0: there is none.
    #[arg(long, default_value_t = 0.0)]
    neighbour: f64,
    /// Seed of the neighbour's bursts.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Let the kernel read ahead and keep what was read; else each request comes as it is made.
    #[arg(long)]
    page_cache: bool,
    /// A file for each mount that tells what was moved, for an agent inside the job.
    #[arg(long)]
    statistics: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mounts = arguments
                .mount
                .iter()
                .map(|mount| mount.display().to_string());
            say(&format!(
                "{}: {error}",
                mounts.collect::<Vec<_>>().join(", ")
            ));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    let settings = SlowSettings {
        rate: arguments.rate * 1e6,
        latency: milliseconds(arguments.latency_ms),
        streams: arguments.streams,
        penalty: arguments.penalty,
        neighbour: arguments.neighbour,
    };
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    // Before the first thread, so that none of them takes one.
    signals.thread_block()?;
    let link = Arc::new(Link::new(settings));
    let clients = arguments.mount.iter().enumerate();
    let clients: Vec<Client> = clients
        .map(|(place, mount)| {
            let told = arguments.statistics.get(place);
            Client::new(arguments, mount, told.map(PathBuf::as_path), &link)
        })
        .collect::<io::Result<_>>()?;
    let seed = arguments.seed;
    // It holds nothing, and ends with the process.
    thread::spawn(move || link.disturb(seed));
    ready();
    signals.wait()?;
    let ended: Vec<io::Result<()>> = clients.into_iter().map(Client::end).collect();
    ended.into_iter().collect()
}

/// A mount, and who serves it.
struct Client {
    mount: PathBuf,
    pool: Arc<Pool>,
    cache: Arc<Cache>,
    destagers: Vec<JoinHandle<()>>,
    /// Tells when nobody has the mount any more.
    served: Receiver<io::Result<()>>,
}

impl Client {
    fn new(
        arguments: &Arguments,
        mount: &Path,
        statistics: Option<&Path>,
        link: &Arc<Link>,
    ) -> io::Result<Self> {
        let cores = Arc::new(Cores::new(CoreSettings {
            turn: milliseconds(arguments.request_ms),
            cores: arguments.cores,
            contention: arguments.contention,
        }));
        let cache = Arc::new(Cache::new(
            arguments.cache_mib * 1024 * 1024,
            arguments.threshold,
            milliseconds(arguments.reclaim_ms),
            Arc::clone(link),
            Arc::clone(&cores),
        ));
        let pool = Arc::new(Pool::new(arguments.workers, &cores));
        let slow = arguments.slow.canonicalize()?;
        let (own_cache, own_pool) = (Arc::clone(&cache), Arc::clone(&pool));
        let tree = Tree::new(slow, own_cache, own_pool, arguments.page_cache);
        if let Some(path) = statistics {
            tell(path, tree.moved())?;
        }
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("burst-buffer".into()),
            MountOption::DefaultPermissions,
            MountOption::NoDev,
            MountOption::NoSuid,
        ];
        config.acl = SessionACL::All;
        let session = Session::new(tree, mount, &config)?;
        let destagers = (0..arguments.destagers.max(1)).map(|_| {
            let cache = Arc::clone(&cache);
            thread::spawn(move || cache.destage())
        });
        let destagers = destagers.collect();
        let (ended, served) = mpsc::channel();
        thread::spawn(move || ended.send(session.run()));
        Ok(Self {
            mount: mount.to_owned(),
            pool,
            cache,
            destagers,
            served,
        })
    }

    /// Unmounts, and carries all that was written.
    fn end(self) -> io::Result<()> {
        umount2(&self.mount, MntFlags::MNT_DETACH)?;
        let ended = self.served.recv_timeout(LEFT_OPEN).unwrap_or_else(|_| {
            say("somebody keeps it open: it ends all the same");
            Ok(())
        });
        self.pool.end();
        self.cache.end();
        for destager in self.destagers {
            let _ = destager.join();
        }
        ended
    }
}

fn milliseconds(number: f64) -> Duration {
    Duration::from_secs_f64(number / 1000.0)
}

/// Keeps a file up to date as long as this process lives. Who has opened it reads on.
fn tell(path: &Path, moved: Arc<Moved>) -> io::Result<()> {
    let file = File::create(path)?;
    file.write_all_at(moved.text().as_bytes(), 0)?;
    thread::spawn(move || {
        while file.write_all_at(moved.text().as_bytes(), 0).is_ok() {
            thread::sleep(TOLD);
        }
    });
    Ok(())
}

/// Who started it reads this line, and then no more.
#[expect(clippy::print_stdout, reason = "the one word of a program")]
fn ready() {
    println!("ready");
}

#[expect(clippy::print_stderr, reason = "a program's way to say what is wrong")]
fn say(line: &str) {
    eprintln!("{line}");
}
