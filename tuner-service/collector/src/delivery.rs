//! Delivers the spool in order, at least once. The position moves only after the service has
//! acknowledged, so a crash loses nothing; the service recognises duplicates.

use std::future::Future;
use std::path::PathBuf;

use io_autotune_protocol::{ClientError, Outcome, OutcomesRequest};
use jiff::civil::Date;

use crate::files::{FileError, Position, StateDirectory};
use crate::spool::{DayFile, Word, day_files};

/// The reason why the service did not store outcomes.
#[derive(Debug)]
pub(crate) enum NotTaken {
    /// The service is away, or takes nothing from this collector at present: retry.
    Later(ClientError),
    /// The service will never accept these outcomes.
    Refused(ClientError),
}

pub(crate) trait Service {
    /// Sends at most [`OutcomesRequest::MOST`] outcomes; `Ok` once they are stored.
    fn deliver(&self, outcomes: Vec<Outcome>) -> impl Future<Output = Result<(), NotTaken>>;
}

/// The reason why a pass ended early. The next one continues.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the outcomes wait in the spool: {0}")]
    Service(ClientError),
}

#[derive(Debug)]
pub(crate) struct Collector {
    spool: PathBuf,
    state: StateDirectory,
    position: Position,
    say: fn(&str),
}

impl Collector {
    /// Continues from the stored position. `say` gets messages for an admin.
    pub(crate) fn open(
        spool: PathBuf,
        state: StateDirectory,
        say: fn(&str),
    ) -> Result<Self, FileError> {
        let (position, problem) = state.load()?;
        if let Some(problem) = problem {
            say(&format!(
                "how far the spool was delivered cannot be read, and all of it is sent again: {problem}"
            ));
        }
        Ok(Self {
            spool,
            state,
            position,
            say,
        })
    }

    /// Delivers everything, and removes delivered files older than yesterday's: the script names a
    /// file by the day on which it begins to write, so nothing is appended to those.
    pub(crate) async fn pass(
        &mut self,
        service: &impl Service,
        today: Date,
    ) -> Result<(), PassError> {
        let files = day_files(&self.spool)?;
        let yesterday = today.yesterday().unwrap_or(today);
        for file in &files {
            self.deliver_file(service, file).await?;
            if file.day < yesterday {
                self.retire(file)?;
            }
        }
        let known = self.position.delivered.len();
        let there = |name: &String| files.iter().any(|file| file.name == *name);
        self.position.delivered.retain(|name, _| there(name));
        if self.position.delivered.len() < known {
            self.state.save(&self.position)?;
        }
        Ok(())
    }

    async fn deliver_file(
        &mut self,
        service: &impl Service,
        file: &DayFile,
    ) -> Result<(), PassError> {
        loop {
            let mut offset = self.delivered(file);
            if offset > file.length()? {
                (self.say)(&format!(
                    "{} is shorter than what was delivered of it: it is read from its beginning",
                    file.path.display()
                ));
                offset = 0;
            }
            let batch = file.read(offset, OutcomesRequest::MOST)?;
            if batch.end == offset {
                return Ok(());
            }
            if let Some(problem) = &batch.first_problem {
                (self.say)(&format!(
                    "{}: lines that cannot be believed are skipped: {}; of the first: {problem}",
                    file.path.display(),
                    batch.unbelievable
                ));
            }
            self.deliver_words(service, &batch.words).await?;
            self.position.delivered.insert(file.name.clone(), batch.end);
            self.state.save(&self.position)?;
        }
    }

    /// Delivers all but refused records, which it finds by bisection and keeps aside.
    async fn deliver_words(&self, service: &impl Service, words: &[Word]) -> Result<(), PassError> {
        let mut parts = vec![words];
        while let Some(part) = parts.pop() {
            let outcomes: Vec<_> = part.iter().map(|word| word.outcome.clone()).collect();
            if outcomes.is_empty() {
                continue;
            }
            match service.deliver(outcomes).await {
                Ok(()) => {}
                Err(NotTaken::Later(error)) => return Err(PassError::Service(error)),
                Err(NotTaken::Refused(error)) => {
                    if let [word] = part {
                        self.state.keep_refused(&word.line)?;
                        (self.say)(&format!(
                            "the service refuses the outcome of job {} ({error}); it is kept in {}",
                            word.outcome.job_id,
                            self.state.refused().display()
                        ));
                    } else {
                        let (first, second) = part.split_at(part.len() / 2);
                        parts.extend([second, first]);
                    }
                }
            }
        }
        Ok(())
    }

    fn retire(&self, file: &DayFile) -> Result<(), FileError> {
        if self.delivered(file) < file.length()? {
            (self.say)(&format!(
                "{}: its last line has no end and never will: it is skipped",
                file.path.display()
            ));
        }
        file.remove()
    }

    fn delivered(&self, file: &DayFile) -> u64 {
        self.position
            .delivered
            .get(&file.name)
            .copied()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    use jiff::civil::date;
    use proptest::prelude::*;

    use super::*;

    /// A service that stores outcomes, and fails when told to.
    #[derive(Default)]
    struct Fake {
        stored: RefCell<Vec<u32>>,
        sizes: RefCell<Vec<usize>>,
        refuses: Vec<u32>,
        /// The number of answers before the collector dies, and true if the service still stores
        /// the next outcomes, so that only its answer is lost.
        dies_after: Cell<Option<(usize, bool)>>,
    }

    fn error() -> ClientError {
        ClientError::Unreachable("a test".into())
    }

    impl Service for Fake {
        async fn deliver(&self, outcomes: Vec<Outcome>) -> Result<(), NotTaken> {
            let ids: Vec<u32> = outcomes.iter().map(|outcome| outcome.job_id).collect();
            if ids.iter().any(|id| self.refuses.contains(id)) {
                return Err(NotTaken::Refused(error()));
            }
            let dying = match self.dies_after.get() {
                Some((0, stores)) => Some(stores),
                Some((left, stores)) => {
                    self.dies_after.set(Some((left - 1, stores)));
                    None
                }
                None => None,
            };
            if dying != Some(false) {
                self.sizes.borrow_mut().push(ids.len());
                self.stored.borrow_mut().extend(ids);
            }
            match dying {
                Some(_) => Err(NotTaken::Later(error())),
                None => Ok(()),
            }
        }
    }

    const TODAY: Date = date(2026, 11, 21);

    fn line(job_id: u32) -> String {
        format!("1 {job_id} COMPLETED 0:0 10 20 UNLIMITED 1\n")
    }

    struct Place {
        directory: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            for name in ["spool", "state"] {
                fs::create_dir(directory.path().join(name)).unwrap();
            }
            Self { directory }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn append(&self, day: &str, text: &str) {
            let path = self.path("spool").join(format!("outcomes-{day}"));
            let mut file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        fn names(&self) -> Vec<String> {
            let files = day_files(&self.path("spool")).unwrap();
            files.into_iter().map(|file| file.name).collect()
        }

        fn collector(&self) -> Collector {
            let state = StateDirectory::new(&self.path("state"));
            Collector::open(self.path("spool"), state, |_| {}).unwrap()
        }

        fn pass(&self, service: &Fake, today: Date) -> Result<(), PassError> {
            wait(self.collector().pass(service, today))
        }
    }

    fn wait<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn a_line_is_delivered_once_it_is_whole_and_then_not_again() {
        let (place, service) = (Place::new(), Fake::default());
        place.append("20261121", &format!("{}1 8 COMPL", line(7)));
        place.pass(&service, TODAY).unwrap();
        assert_eq!(*service.stored.borrow(), [7]);
        place.append("20261121", "ETED 0:0 10 20 UNLIMITED 1\n");
        place.pass(&service, TODAY).unwrap();
        place.pass(&service, TODAY).unwrap();
        assert_eq!(*service.stored.borrow(), [7, 8]);
    }

    #[test]
    fn days_are_delivered_in_order_and_old_ones_removed() {
        let (place, service) = (Place::new(), Fake::default());
        for (day, job_id) in [
            ("20261121", 4),
            ("20261120", 3),
            ("20261119", 2),
            ("20251231", 1),
        ] {
            place.append(day, &line(job_id));
        }
        place.append("20261118", "1 9 COMPL");
        place.pass(&service, TODAY).unwrap();
        assert_eq!(*service.stored.borrow(), [1, 2, 3, 4]);
        assert_eq!(place.names(), ["outcomes-20261120", "outcomes-20261121"]);
        place.pass(&service, TODAY).unwrap();
        assert_eq!(service.stored.borrow().len(), 4);
        let (position, _) = StateDirectory::new(&place.path("state")).load().unwrap();
        let known: Vec<_> = position.delivered.into_keys().collect();
        assert_eq!(known, place.names(), "removed files are forgotten");
    }

    #[test]
    fn no_request_is_larger_than_the_service_takes() {
        let (place, service) = (Place::new(), Fake::default());
        let many = u32::try_from(OutcomesRequest::MOST).unwrap() * 2 + 1;
        place.append("20261121", &(1..=many).map(line).collect::<String>());
        place.pass(&service, TODAY).unwrap();
        let most = OutcomesRequest::MOST;
        assert_eq!(*service.sizes.borrow(), [most, most, 1]);
    }

    #[test]
    fn what_the_service_refuses_holds_up_nothing_and_is_kept() {
        let (place, mut service) = (Place::new(), Fake::default());
        service.refuses = vec![3, 7];
        place.append("20261121", &(1..=9).map(line).collect::<String>());
        place.pass(&service, TODAY).unwrap();
        assert_eq!(*service.stored.borrow(), [1, 2, 4, 5, 6, 8, 9]);
        let kept = fs::read_to_string(place.path("state").join("refused")).unwrap();
        assert_eq!(kept, line(3) + &line(7));
        place.pass(&service, TODAY).unwrap();
        assert_eq!(service.stored.borrow().len(), 7);
    }

    #[test]
    fn an_outage_keeps_the_files() {
        let (place, service) = (Place::new(), Fake::default());
        service.dies_after.set(Some((0, false)));
        place.append("20261101", &line(1));
        assert!(matches!(
            place.pass(&service, TODAY),
            Err(PassError::Service(_))
        ));
        assert_eq!(place.names(), ["outcomes-20261101"]);
        service.dies_after.set(None);
        place.pass(&service, TODAY).unwrap();
        assert_eq!(*service.stored.borrow(), [1]);
        assert!(place.names().is_empty());
    }

    #[test]
    fn a_file_that_was_made_anew_is_read_from_its_beginning() {
        let (place, service) = (Place::new(), Fake::default());
        place.append("20261121", &(line(1) + &line(2)));
        place.pass(&service, TODAY).unwrap();
        fs::remove_file(place.path("spool").join("outcomes-20261121")).unwrap();
        place.append("20261121", &line(3));
        place.pass(&service, TODAY).unwrap();
        assert_eq!(*service.stored.borrow(), [1, 2, 3]);
    }

    #[test]
    fn a_spool_that_is_missing_is_named() {
        let place = Place::new();
        fs::remove_dir(place.path("spool")).unwrap();
        let error = place.pass(&Fake::default(), TODAY).unwrap_err();
        assert!(error.to_string().contains("spool"), "{error}");
    }

    #[derive(Clone, Debug)]
    enum Event {
        /// Jobs end; at first `torn` bytes of the last line are missing.
        Append { jobs: u8, torn: u8 },
        /// The missing rest of the line arrives.
        Mend,
        /// The collector starts, and lives for this many requests.
        Pass(Option<(usize, bool)>),
        /// Midnight.
        NextDay,
        /// The position is lost.
        Forget,
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => (1u8..30, 0u8..30).prop_map(|(jobs, torn)| Event::Append { jobs, torn }),
            2 => Just(Event::Mend),
            4 => prop::option::of((0usize..3, any::<bool>())).prop_map(Event::Pass),
            1 => Just(Event::NextDay),
            1 => Just(Event::Forget),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// Whenever the collector dies, every line arrives. Duplicates only occur if an answer or
        /// the position was lost.
        #[test]
        fn a_crash_at_any_point_loses_nothing(events in prop::collection::vec(event(), 1..25)) {
            let (place, service) = (Place::new(), Fake::default());
            let (mut today, mut next_id, mut rest) = (TODAY, 1u32, String::new());
            let mut lost = 0;
            for event in events {
                match event {
                    Event::Append { jobs, torn } => {
                        let ids = next_id..next_id + u32::from(jobs);
                        next_id = ids.end;
                        let text = std::mem::take(&mut rest) + &ids.map(line).collect::<String>();
                        let cut = text.len() - usize::from(torn);
                        place.append(&today.strftime("%Y%m%d").to_string(), &text[..cut]);
                        rest = text[cut..].to_owned();
                    }
                    Event::Mend => {
                        place.append(&today.strftime("%Y%m%d").to_string(), &std::mem::take(&mut rest));
                    }
                    Event::Pass(dies_after) => {
                        service.dies_after.set(dies_after);
                        lost += usize::from(place.pass(&service, today).is_err());
                    }
                    Event::NextDay => {
                        // The script writes a line at once, so it does not end on another day.
                        place.append(&today.strftime("%Y%m%d").to_string(), &std::mem::take(&mut rest));
                        today = today.tomorrow().unwrap();
                    }
                    Event::Forget => {
                        lost += usize::from(fs::remove_file(place.path("state").join("position.json")).is_ok());
                    }
                }
            }
            place.append(&today.strftime("%Y%m%d").to_string(), &rest);
            service.dies_after.set(None);
            place.pass(&service, today).unwrap();
            let mut stored = service.stored.take();
            let sent = stored.len();
            stored.sort_unstable();
            stored.dedup();
            prop_assert_eq!(&stored, &(1..next_id).collect::<Vec<_>>());
            prop_assert!(lost > 0 || sent == stored.len(), "sent twice without need");
        }
    }
}
