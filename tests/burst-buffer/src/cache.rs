//! The cache: blocks of files in memory, written behind by destagers.
//!
//! A block is clean (the slow side has it), dirty, or being carried. Only clean blocks are dropped:
//! the least recently used, when more of the cache is used than the threshold says, or when a new
//! block needs room: then who needs it waits. A file's sync waits until none of its blocks is dirty
//! or carried.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::cores::Cores;
use crate::slow::Link;

pub(crate) const BLOCK: usize = 256 * 1024;

/// A file of the slow side that is being worked on.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) number: u64,
    pub(crate) file: File,
    /// As the job sees it: the slow side's may be behind.
    pub(crate) size: AtomicU64,
}

type Key = (u64, u64);

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Since when it was not used.
    Clean(u64),
    Dirty,
    /// A destager carries it; whether it was written meanwhile.
    Carried {
        rewritten: bool,
    },
}

#[derive(Debug)]
struct Block {
    data: Vec<u8>,
    state: State,
    of: Arc<Stored>,
}

#[derive(Debug, Default)]
struct Blocks {
    blocks: HashMap<Key, Block>,
    /// Clean blocks by their last use.
    clean: BTreeMap<u64, Key>,
    dirty: VecDeque<Key>,
    /// How many of a file's blocks the slow side has not.
    behind: HashMap<u64, usize>,
    /// Blocks that somebody reads from the slow side: others wait.
    filling: HashSet<Key>,
    failed: HashMap<u64, i32>,
    uses: u64,
    over: bool,
}

#[derive(Debug)]
pub(crate) struct Cache {
    inner: Mutex<Blocks>,
    changed: Condvar,
    link: Arc<Link>,
    cores: Arc<Cores>,
    /// In blocks.
    most: usize,
    threshold: usize,
    /// The time that a request waits for a block to be dropped, if it needs the room.
    reclaim: Duration,
}

impl Cache {
    /// `threshold` in percent of `bytes`.
    pub(crate) fn new(
        bytes: usize,
        threshold: usize,
        reclaim: Duration,
        link: Arc<Link>,
        cores: Arc<Cores>,
    ) -> Self {
        let most = (bytes / BLOCK).max(2);
        Self {
            inner: Mutex::default(),
            changed: Condvar::new(),
            link,
            cores,
            most,
            reclaim,
            threshold: most * threshold.min(100) / 100,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.inner.lock().unwrap_or_else(|held| held.into_inner())
    }

    fn wait<'a>(&self, inner: MutexGuard<'a, Blocks>) -> MutexGuard<'a, Blocks> {
        self.changed
            .wait(inner)
            .unwrap_or_else(|held| held.into_inner())
    }

    pub(crate) fn write(&self, of: &Arc<Stored>, offset: u64, data: &[u8]) -> io::Result<()> {
        for (index, within, range) in pieces(offset, data.len()) {
            let piece = &data[range];
            let end = index * BLOCK as u64 + (within + piece.len()) as u64;
            let mut inner = self.filled(of, index, within == 0 && piece.len() == BLOCK)?;
            let key = (of.number, index);
            let inner = &mut *inner;
            let Some(block) = inner.blocks.get_mut(&key) else {
                return Err(io::Error::other("a block that was filled is gone"));
            };
            block.data[within..within + piece.len()].copy_from_slice(piece);
            // Before a destager looks how much of the block there is.
            of.size.fetch_max(end, Ordering::SeqCst);
            match block.state {
                State::Clean(used) => {
                    block.state = State::Dirty;
                    inner.clean.remove(&used);
                    inner.dirty.push_back(key);
                    *inner.behind.entry(of.number).or_default() += 1;
                }
                State::Dirty => {}
                State::Carried { .. } => block.state = State::Carried { rewritten: true },
            }
            self.changed.notify_all();
        }
        Ok(())
    }

    pub(crate) fn read(&self, of: &Arc<Stored>, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let size = of.size.load(Ordering::SeqCst);
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut found = Vec::with_capacity(length.min(left));
        for (index, within, range) in pieces(offset, length.min(left)) {
            let mut inner = self.filled(of, index, false)?;
            let inner = &mut *inner;
            let key = (of.number, index);
            let Some(block) = inner.blocks.get_mut(&key) else {
                return Err(io::Error::other("a block that was filled is gone"));
            };
            found.extend_from_slice(&block.data[within..within + range.len()]);
            if let State::Clean(used) = &mut block.state {
                inner.clean.remove(used);
                inner.uses += 1;
                *used = inner.uses;
                inner.clean.insert(*used, key);
            }
        }
        Ok(found)
    }

    /// The lock, with this block in the cache: from the slow side, unless all of it will be
    /// written.
    fn filled(
        &self,
        of: &Arc<Stored>,
        index: u64,
        is_whole: bool,
    ) -> io::Result<MutexGuard<'_, Blocks>> {
        let key = (of.number, index);
        let mut inner = self.lock();
        let mut reclaims = false;
        loop {
            if inner.blocks.contains_key(&key) {
                return Ok(inner);
            }
            if inner.filling.contains(&key) {
                inner = self.wait(inner);
            } else if inner.blocks.len() + inner.filling.len() < self.most {
                break;
            } else if inner.drop_oldest() {
                reclaims = true;
                break;
            } else {
                inner = self.wait(inner);
            }
        }
        inner.filling.insert(key);
        drop(inner);
        if reclaims {
            thread::sleep(self.reclaim);
        }
        let data = if is_whole {
            Ok(vec![0; BLOCK])
        } else {
            self.fetch(of, index)
        };
        let mut inner = self.lock();
        inner.filling.remove(&key);
        self.changed.notify_all();
        inner.uses += 1;
        let state = State::Clean(inner.uses);
        let block = Block {
            data: data?,
            state,
            of: Arc::clone(of),
        };
        let used = inner.uses;
        inner.clean.insert(used, key);
        inner.blocks.insert(key, block);
        inner.keep_below(self.threshold, key);
        Ok(inner)
    }

    fn fetch(&self, of: &Stored, index: u64) -> io::Result<Vec<u8>> {
        let mut data = vec![0; BLOCK];
        let offset = index * BLOCK as u64;
        let stored = of.file.metadata()?.len().saturating_sub(offset);
        let length = usize::try_from(stored).unwrap_or(BLOCK).min(BLOCK);
        if length > 0 {
            self.link.carry(length);
            let mut done = 0;
            while done < length {
                match of
                    .file
                    .read_at(&mut data[done..length], offset + done as u64)?
                {
                    0 => break,
                    more => done += more,
                }
            }
        }
        Ok(data)
    }

    /// Carries dirty blocks, oldest first, until the cache is over and none is left.
    pub(crate) fn destage(&self) {
        let mut inner = self.lock();
        loop {
            let Some(key) = inner.dirty.pop_front() else {
                if inner.over {
                    return;
                }
                inner = self.wait(inner);
                continue;
            };
            let Some(block) = inner.blocks.get_mut(&key) else {
                continue;
            };
            block.state = State::Carried { rewritten: false };
            let of = Arc::clone(&block.of);
            let offset = key.1 * BLOCK as u64;
            let left = of.size.load(Ordering::SeqCst).saturating_sub(offset);
            let length = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            let data = block.data[..length].to_vec();
            drop(inner);
            self.cores.take_turn();
            self.link.carry(length);
            let written = of.file.write_all_at(&data, offset);
            inner = self.lock();
            inner.carried(key, &written);
            inner.keep_below(self.threshold, key);
            self.changed.notify_all();
        }
    }

    /// Waits until the slow side has all that was written into a file, and makes that durable.
    pub(crate) fn sync(&self, of: &Stored) -> io::Result<()> {
        let mut inner = self.lock();
        inner.hurry(of.number);
        while inner
            .behind
            .get(&of.number)
            .is_some_and(|behind| *behind > 0)
        {
            inner = self.wait(inner);
        }
        let failed = inner.failed.remove(&of.number);
        drop(inner);
        if let Some(code) = failed {
            return Err(io::Error::from_raw_os_error(code));
        }
        of.file.sync_all()
    }

    /// Sets a file's size, on the slow side too.
    pub(crate) fn resize(&self, of: &Stored, size: u64) -> io::Result<()> {
        self.sync(of)?;
        let mut inner = self.lock();
        inner.forget(of.number);
        of.file.set_len(size)?;
        of.size.store(size, Ordering::SeqCst);
        Ok(())
    }

    /// From now on nothing more comes: destagers end when all is carried.
    pub(crate) fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    #[cfg(test)]
    fn used(&self) -> usize {
        self.lock().blocks.len()
    }
}

impl Blocks {
    fn drop_oldest(&mut self) -> bool {
        match self.clean.pop_first() {
            Some((_, key)) => self.blocks.remove(&key).is_some(),
            None => false,
        }
    }

    /// Drops clean blocks, but for one that somebody is about to use.
    fn keep_below(&mut self, threshold: usize, in_use: Key) {
        while self.blocks.len() > threshold {
            let oldest = self.clean.iter().find(|(_, key)| **key != in_use);
            let Some((used, key)) = oldest.map(|(used, key)| (*used, *key)) else {
                return;
            };
            self.clean.remove(&used);
            self.blocks.remove(&key);
        }
    }

    fn carried(&mut self, key: Key, written: &io::Result<()>) {
        if let Err(error) = written {
            // Told by the next sync, as the kernel does; the block is not tried for ever.
            let code = error.raw_os_error().unwrap_or(nix::libc::EIO);
            self.failed.insert(key.0, code);
        }
        let Some(block) = self.blocks.get_mut(&key) else {
            return;
        };
        if block.state == (State::Carried { rewritten: true }) {
            block.state = State::Dirty;
            self.dirty.push_back(key);
            return;
        }
        self.uses += 1;
        block.state = State::Clean(self.uses);
        self.clean.insert(self.uses, key);
        if let Some(behind) = self.behind.get_mut(&key.0) {
            *behind -= 1;
        }
    }

    /// Puts a file's dirty blocks before all others.
    fn hurry(&mut self, number: u64) {
        let (first, rest): (Vec<Key>, Vec<Key>) =
            self.dirty.iter().partition(|(of, _)| *of == number);
        self.dirty = first.into_iter().chain(rest).collect();
    }

    /// Drops a file's clean blocks.
    fn forget(&mut self, number: u64) {
        let of_file = self.clean.iter().filter(|(_, key)| key.0 == number);
        for (used, key) in of_file.map(|(used, key)| (*used, *key)).collect::<Vec<_>>() {
            self.clean.remove(&used);
            self.blocks.remove(&key);
        }
    }
}

/// The blocks of a range: index, where in the block, and which part of the range.
fn pieces(
    offset: u64,
    length: usize,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= length {
            return None;
        }
        let at = offset + done as u64;
        let within = usize::try_from(at % BLOCK as u64).unwrap_or(0);
        let begin = done;
        done = length.min(begin + BLOCK - within);
        Some((at / BLOCK as u64, within, begin..done))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::CoreSettings;
    use crate::slow::SlowSettings;

    const FAST: SlowSettings = SlowSettings {
        rate: 1e12,
        latency: Duration::ZERO,
        streams: 100,
        penalty: 0.0,
        neighbour: 0.0,
    };

    const RECLAIM: Duration = Duration::from_millis(1);

    struct Rig {
        cache: Arc<Cache>,
        destagers: Vec<thread::JoinHandle<()>>,
        directory: tempfile::TempDir,
    }

    impl Rig {
        fn new(blocks: usize, threshold: usize, destagers: usize) -> Self {
            let link = Arc::new(Link::new(FAST));
            let cores = Arc::new(Cores::new(CoreSettings {
                turn: Duration::ZERO,
                cores: 1,
                contention: 0.0,
            }));
            let bytes = blocks * BLOCK;
            let cache = Arc::new(Cache::new(bytes, threshold, RECLAIM, link, cores));
            let destagers = (0..destagers).map(|_| {
                let cache = Arc::clone(&cache);
                thread::spawn(move || cache.destage())
            });
            Self {
                destagers: destagers.collect(),
                cache,
                directory: tempfile::tempdir().unwrap(),
            }
        }

        fn stored(&self, number: u64) -> Arc<Stored> {
            let path = self.directory.path().join(number.to_string());
            let mut options = File::options();
            let file = options.read(true).write(true).create(true).truncate(false);
            let file = file.open(path).unwrap();
            let size = AtomicU64::new(file.metadata().unwrap().len());
            Arc::new(Stored { number, file, size })
        }

        fn end(self) -> tempfile::TempDir {
            self.cache.end();
            for destager in self.destagers {
                destager.join().unwrap();
            }
            self.directory
        }
    }

    fn pattern(seed: usize, length: usize) -> Vec<u8> {
        (0..length)
            .map(|at| ((at * 31 + seed * 7) % 251) as u8)
            .collect()
    }

    #[test]
    fn what_was_written_is_read_through_a_cache_smaller_than_it() {
        for (blocks, threshold, destagers) in [(2, 100, 1), (3, 0, 2), (8, 50, 4)] {
            let rig = Rig::new(blocks, threshold, destagers);
            let stored = rig.stored(1);
            let data = pattern(3, 9 * BLOCK + 12_345);
            for (part, bytes) in data.chunks(100_000).enumerate() {
                rig.cache
                    .write(&stored, part as u64 * 100_000, bytes)
                    .unwrap();
                assert!(rig.cache.used() <= blocks);
            }
            assert_eq!(rig.cache.read(&stored, 0, data.len() + 99).unwrap(), data);
            let middle = rig.cache.read(&stored, 77_777, BLOCK).unwrap();
            assert_eq!(middle, data[77_777..77_777 + BLOCK]);
            let directory = rig.end();
            assert_eq!(std::fs::read(directory.path().join("1")).unwrap(), data);
        }
    }

    #[test]
    fn parts_of_a_block_are_written_over_what_the_slow_side_has() {
        let rig = Rig::new(4, 50, 2);
        let old = pattern(1, 2 * BLOCK);
        std::fs::write(rig.directory.path().join("2"), &old).unwrap();
        let stored = rig.stored(2);
        rig.cache
            .write(&stored, BLOCK as u64 - 3, b"across")
            .unwrap();
        rig.cache.sync(&stored).unwrap();
        let mut expected = old;
        expected[BLOCK - 3..BLOCK + 3].copy_from_slice(b"across");
        let found = std::fs::read(rig.directory.path().join("2")).unwrap();
        assert!(found == expected);
    }

    #[test]
    fn a_sync_returns_when_the_slow_side_has_all() {
        let rig = Rig::new(16, 90, 3);
        let stored = rig.stored(3);
        for round in 0..20 {
            let data = pattern(round, 3 * BLOCK);
            rig.cache.write(&stored, 0, &data).unwrap();
            rig.cache.sync(&stored).unwrap();
            let found = std::fs::read(rig.directory.path().join("3")).unwrap();
            assert!(found == data, "round {round}");
        }
    }

    #[test]
    fn a_file_that_is_cut_and_grown_again_has_zeros_there() {
        let rig = Rig::new(4, 90, 2);
        let stored = rig.stored(4);
        rig.cache.write(&stored, 0, &pattern(1, 2 * BLOCK)).unwrap();
        rig.cache.resize(&stored, 10).unwrap();
        rig.cache.write(&stored, 20, b"x").unwrap();
        let found = rig.cache.read(&stored, 0, 100).unwrap();
        assert_eq!(found.len(), 21);
        assert_eq!(found[10..20], [0; 10]);
    }

    #[test]
    fn clean_data_above_the_threshold_is_dropped_and_what_is_below_stays() {
        for (threshold, stays) in [(90, 9), (20, 2)] {
            let rig = Rig::new(10, threshold, 2);
            let stored = rig.stored(5);
            rig.cache
                .write(&stored, 0, &pattern(1, 10 * BLOCK))
                .unwrap();
            rig.cache.sync(&stored).unwrap();
            assert_eq!(rig.cache.used(), stays, "{threshold} %");
        }
    }

    #[test]
    fn many_writers_of_one_file_lose_nothing() {
        let rig = Rig::new(3, 40, 3);
        let stored = rig.stored(6);
        let threads: Vec<_> = (0..6_u64)
            .map(|writer| {
                let (cache, stored) = (Arc::clone(&rig.cache), Arc::clone(&stored));
                thread::spawn(move || {
                    for at in (writer..60).step_by(6) {
                        let data = pattern(usize::try_from(at).unwrap(), 50_000);
                        cache.write(&stored, at * 50_000, &data).unwrap();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let directory = rig.end();
        let found = std::fs::read(directory.path().join("6")).unwrap();
        for (at, part) in found.chunks(50_000).enumerate() {
            assert!(part == pattern(at, 50_000), "part {at}");
        }
    }
}
