//! The measures of each step, which the plugin's `measures.c` recorded: one small text file beside
//! the step's stamp, written as root in the job's directory. A step without one is not measured;
//! that has no other consequence.

use std::collections::BTreeMap;
use std::io;

use io_autotune_model::{LARGEST_MEASURE, Measure};
use io_autotune_protocol::{Delivery, Job, Marked, Step, VariableState, marked};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

use crate::config::NodeConfig;
use crate::directory::JobDirectory;
use crate::output::say;
use crate::{files, settings};

/// The most steps whose measures are read, in some 20 ms, for which an epilog waits.
const STEPS_MOST: usize = 2000;

/// The lines of a record: the name, the measure, and the number of units that make one of the
/// measure. All lines except [`MAY_LACK`] must be there.
const LINES: [(&str, Measure, f64); 13] = [
    ("rchar", Measure::AskedRead, 1.0),
    ("wchar", Measure::AskedWritten, 1.0),
    ("syscr", Measure::ReadCalls, 1.0),
    ("syscw", Measure::WriteCalls, 1.0),
    ("read_bytes", Measure::StorageRead, 1.0),
    ("write_bytes", Measure::StorageWritten, 1.0),
    ("cancelled_write_bytes", Measure::Cancelled, 1.0),
    ("user_us", Measure::UserSeconds, 1e6),
    ("system_us", Measure::SystemSeconds, 1e6),
    ("major_faults", Measure::MajorFaults, 1.0),
    ("voluntary_switches", Measure::Waits, 1.0),
    ("involuntary_switches", Measure::GivenWay, 1.0),
    (MAY_LACK, Measure::StalledSeconds, 1e6),
];

/// The line that is missing if the step is not a control group of version 2.
const MAY_LACK: &str = "io_stalled_us";

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum RecordError {
    #[error("it does not begin with \"io-autotune-measures 1\"")]
    Header,
    #[error("line {0:?} is not understood")]
    Line(String),
    #[error("it is of step {0}")]
    Step(u32),
    #[error("{0} is missing")]
    Missing(&'static str),
}

/// The sums of measures over the measured steps.
pub(crate) fn of(directory: &JobDirectory, steps: &[Step]) -> BTreeMap<String, f64> {
    let mut sum = Sum::default();
    for step in steps.iter().take(STEPS_MOST) {
        let name = format!("step-{}.measures", step.step_id);
        let text = match directory.read(&name) {
            Ok(text) => text,
            // The step has not ended, or the plugin is an older one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                say(&format!("{name:?} is not believed: {error}"));
                continue;
            }
        };
        match parse(&text, step.step_id) {
            Ok(values) => sum.add(&values),
            Err(error) => say(&format!("{name:?} is not believed: {error}")),
        }
    }
    sum.measures()
}

/// The number of files that alone carried a parametrization, or were
/// [empty](io_autotune_protocol::DeliveredFile::is_sign), and the number of these that were read.
/// Empty if a step did not get the variable of one of them.
pub(crate) fn of_files(
    directory: &JobDirectory,
    delivery: &Delivery,
    steps: &[Step],
) -> BTreeMap<String, f64> {
    let Delivery {
        environment,
        files,
        settings,
        command,
        directives,
        online,
        read_back: _,
        watch: _,
        watch_directives: _,
    } = delivery;
    let only_files = environment.is_empty() && settings.is_empty() && directives.is_empty();
    if !only_files || command.is_some() || online.is_some() {
        return BTreeMap::new();
    }
    let told = |step: &Step| {
        let mut variables = files.iter().map(|file| &file.variable);
        variables.all(|name| step.variables.get(name) == Some(&VariableState::Set))
    };
    if !steps.iter().all(told) {
        return BTreeMap::new();
    }
    let mut read = 0;
    for file in files {
        match directory.was_read(&file.name) {
            Ok(Some(was_read)) => read += u32::from(was_read),
            Ok(None) => return BTreeMap::new(),
            // Another file is read instead, which exists on this node: see `unless_exists`.
            Err(error) if file.is_sign() && error.kind() == io::ErrorKind::NotFound => {
                return BTreeMap::new();
            }
            Err(error) => {
                say(&format!("whether {:?} was read: {error}", file.name));
                return BTreeMap::new();
            }
        }
    }
    [
        (Measure::DeliveredFiles, files.len() as f64),
        (Measure::DeliveredFilesRead, f64::from(read)),
    ]
    .into_iter()
    .filter(|(_, number)| *number > 0.0)
    .map(|(measure, number)| (measure.as_str().to_owned(), number))
    .collect()
}

/// Measures of the node: whether its settings may be changed for the job, the mounted file systems,
/// and the bytes that were moved on Lustre since `on_lustre_before`.
pub(crate) fn of_node(
    config: &NodeConfig,
    job: &Job,
    on_lustre_before: Option<f64>,
) -> BTreeMap<String, f64> {
    let is_changeable = !config.settings.allow.is_empty() && config.others_on_node(job).is_none();
    let (mut lustre, mut fuse) = (0_u32, 0_u32);
    match files::mounts() {
        Ok(lines) => {
            for line in lines.map_while(Result::ok) {
                match kind_of_mount(&line) {
                    Some(b"lustre") => lustre += 1,
                    Some(kind) if is_fuse(kind) => fuse += 1,
                    _ => {}
                }
            }
        }
        Err(error) => say(&format!("what is mounted is not told: {error}")),
    }
    let on_lustre = on_lustre_before.zip(settings::moved_on_lustre(config));
    let on_lustre = on_lustre.map_or(0.0, |(before, now)| now - before);
    [
        (Measure::ChangeableNodes, f64::from(u8::from(is_changeable))),
        (Measure::LustreMounts, f64::from(lustre)),
        (Measure::LustreMoved, on_lustre.min(LARGEST_MEASURE)),
        (Measure::FuseMounts, f64::from(fuse)),
    ]
    .into_iter()
    .filter(|(_, number)| *number > 0.0)
    .map(|(measure, number)| (measure.as_str().to_owned(), number))
    .collect()
}

/// The measures in the job's marks file.
pub(crate) fn of_marks(text: &[u8]) -> BTreeMap<String, f64> {
    let now = match clock_gettime(ClockId::CLOCK_MONOTONIC) {
        Ok(now) => u64::try_from(now.num_nanoseconds()).unwrap_or_default(),
        Err(error) => {
            say(&format!("marks are not read: {error}"));
            return BTreeMap::new();
        }
    };
    let Marked { measures, dropped } = marked(text, now);
    for why in dropped {
        say(&format!(
            "of what the job marked something is left out: {why}"
        ));
    }
    measures
}

/// The file system's type in a line of proc_pid_mountinfo(5): it comes after " - ".
fn kind_of_mount(line: &[u8]) -> Option<&[u8]> {
    let place = line.windows(3).position(|part| part == b" - ")?;
    line[place + 3..].split(|byte| *byte == b' ').next()
}

fn is_fuse(kind: &[u8]) -> bool {
    kind == b"fuse" || kind.starts_with(b"fuse.")
}

#[derive(Debug, Default)]
struct Sum {
    steps: u64,
    values: [u64; LINES.len()],
}

impl Sum {
    fn add(&mut self, values: &[u64; LINES.len()]) {
        self.steps += 1;
        for (sum, value) in self.values.iter_mut().zip(values) {
            *sum = sum.saturating_add(*value);
        }
    }

    /// The sums by name, without those that are zero, because the service only accepts positive
    /// numbers.
    fn measures(&self) -> BTreeMap<String, f64> {
        let lines = LINES.iter().zip(self.values);
        let lines = lines.map(|((_, measure, many), sum)| (*measure, sum, *many));
        lines
            .chain([(Measure::Steps, self.steps, 1.0)])
            .filter(|(_, sum, _)| *sum > 0)
            .map(|(measure, sum, many)| {
                #[expect(clippy::cast_precision_loss, reason = "exact to 53 bits")]
                let value = (sum as f64 / many).min(LARGEST_MEASURE);
                (measure.as_str().to_owned(), value)
            })
            .collect()
    }
}

/// The numbers of a record, in the order of [`LINES`]. A later plugin may add lines.
fn parse(text: &str, step_id: u32) -> Result<[u64; LINES.len()], RecordError> {
    let mut lines = text.lines();
    if lines.next() != Some("io-autotune-measures 1") {
        return Err(RecordError::Header);
    }
    let mut step = None;
    let mut values = [None; LINES.len()];
    for line in lines {
        let bad = || RecordError::Line(line.chars().take(80).collect());
        let (name, value) = line.split_once(' ').ok_or_else(bad)?;
        let value = value.parse::<u64>().map_err(|_| bad())?;
        if name == "step" {
            step = Some(u32::try_from(value).map_err(|_| bad())?);
        } else if let Some(place) = LINES.iter().position(|(known, ..)| *known == name) {
            values[place] = Some(value);
        }
    }
    match step {
        Some(step) if step == step_id => {}
        Some(another) => return Err(RecordError::Step(another)),
        None => return Err(RecordError::Missing("step")),
    }
    let mut told = [0; LINES.len()];
    for (place, (name, ..)) in LINES.iter().enumerate() {
        let value = values[place].or((*name == MAY_LACK).then_some(0));
        told[place] = value.ok_or(RecordError::Missing(name))?;
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::job;

    const RECORD: &str = "io-autotune-measures 1\nstep 0\nrchar 7000\nwchar 83900653\nsyscr 21\nsyscw 80\n\
        read_bytes 0\nwrite_bytes 83959808\ncancelled_write_bytes 4096\nuser_us 188000\nsystem_us 61000\n\
        major_faults 0\nvoluntary_switches 9\ninvoluntary_switches 1\n";

    #[test]
    fn of_files_that_alone_carried_a_parametrization_it_is_told_whether_they_were_read() {
        let parent = tempfile::tempdir().unwrap();
        let directory = JobDirectory::create(&parent.path().join("run"), &job()).unwrap();
        let mut delivery: Delivery = serde_json::from_value(serde_json::json!({
            "files": [{"name": "romio_hints", "variable": "ROMIO_HINTS", "content": "cb_nodes 4\n"}],
            "watch": [],
        }))
        .unwrap();
        let gid = job().gid;
        directory
            .write_for_job("romio_hints", gid, "cb_nodes 4\n")
            .unwrap();
        let mut given = step(0);
        given
            .variables
            .insert("ROMIO_HINTS".to_owned(), VariableState::Set);
        let steps = [given, step(1)];
        let told = |delivery: &Delivery| {
            let measures = of_files(&directory, delivery, &steps[..1]);
            [Measure::DeliveredFiles, Measure::DeliveredFilesRead].map(|one| one.of(&measures))
        };
        assert_eq!(told(&delivery), [1.0, 0.0]);
        assert_eq!(told(&delivery), [1.0, 0.0], "to ask is not to read");
        fs::read(directory.file("romio_hints")).unwrap();
        assert_eq!(told(&delivery), [1.0, 1.0]);
        assert_eq!(told(&Delivery::default()), [0.0, 0.0]);
        assert!(
            of_files(&directory, &delivery, &steps).is_empty(),
            "the second step could not know of it"
        );
        delivery.files[0].content.clear();
        assert_eq!(told(&delivery), [1.0, 1.0], "an empty file shows it too");
        delivery
            .environment
            .push(io_autotune_protocol::DeliveredVariable {
                name: "OMPI_MCA_io".to_owned(),
                value: "ompio".to_owned(),
            });
        assert_eq!(told(&delivery), [0.0, 0.0], "a variable carried a part");
        delivery.environment.clear();
        fs::remove_file(directory.file("romio_hints")).unwrap();
        assert_eq!(told(&delivery), [0.0, 0.0]);
    }

    fn step(step_id: u32) -> Step {
        Step {
            step_id,
            started_at: None,
            duration_ns: Some(1),
            wait_status: 0,
            nodes: 1,
            variables: BTreeMap::new(),
        }
    }

    /// The directory of a job whose steps left these records.
    fn left(run: &tempfile::TempDir, records: &[(u32, String)]) -> JobDirectory {
        let directory = JobDirectory::create(&run.path().join("run"), &job()).unwrap();
        for (step_id, text) in records {
            let path = directory.file(&format!("step-{step_id}.measures"));
            fs::write(path, text).unwrap();
        }
        directory
    }

    #[test]
    fn a_node_is_changeable_if_it_allows_settings_and_the_job_has_it_to_itself() {
        let changeable = |allowed: &str, cpus: &str| {
            let text = format!("[exclusive]\ncpus = 8\n{allowed}");
            let config: NodeConfig = toml::from_str(&text).unwrap();
            let job = Job {
                cpus_per_node: cpus.into(),
                ..job()
            };
            Measure::ChangeableNodes.of(&of_node(&config, &job, None))
        };
        let allow =
            "[[settings.allow]]\nkind = \"sysctl\"\nname = \"vm.dirty_bytes\"\nmin = 1\nmax = 2\n";
        assert_eq!(changeable(allow, "8"), 1.0);
        assert_eq!(changeable(allow, "4"), 0.0);
        assert_eq!(changeable("", "8"), 0.0);
    }

    #[test]
    fn what_was_moved_on_lustre_is_the_clients_counters_difference() {
        let root = tempfile::tempdir().unwrap();
        let stats = root
            .path()
            .join("sys/kernel/debug/lustre/llite/fs-ffff8800/stats");
        fs::create_dir_all(stats.parent().unwrap()).unwrap();
        let text = format!(
            "[settings]\nsys = {0:?}\nproc = {0:?}\n",
            root.path().join("sys")
        );
        let config: NodeConfig = toml::from_str(&text).unwrap();
        let write = |written: u64| {
            let text = format!(
                "snapshot_time 1.5 secs.usecs\nread_bytes 2 samples [bytes] 1 50 100\n\
                 write_bytes 3 samples [bytes] 1 9 {written}\n"
            );
            fs::write(&stats, text).unwrap();
        };
        write(500);
        let before = settings::moved_on_lustre(&config);
        assert_eq!(before, Some(600.0));
        write(2500);
        let moved = |before| Measure::LustreMoved.of(&of_node(&config, &job(), before));
        assert_eq!(moved(before), 2000.0);
        assert_eq!(moved(None), 0.0, "the prolog could not tell");
        assert_eq!(moved(Some(9000.0)), 0.0, "they were set back");
        fs::write(&stats, "nothing").unwrap();
        assert_eq!(settings::moved_on_lustre(&config), None);
        assert_eq!(settings::moved_on_lustre(&NodeConfig::default()), None);
    }

    #[test]
    fn mounts_are_told_by_their_type_whatever_their_names() {
        let kind = |line: &str| kind_of_mount(line.as_bytes()).map(<[u8]>::to_vec);
        let lustre = "40 29 0:50 / /scratch rw,noatime shared:9 - lustre 10.0.0.1@tcp:/fs rw,flock";
        assert_eq!(kind(lustre).unwrap(), b"lustre");
        let sshfs = "41 29 0:51 / /home/x rw,nosuid - fuse.sshfs host:/x rw,user_id=1000";
        assert!(is_fuse(&kind(sshfs).unwrap()));
        let control = "42 29 0:52 / /sys/fs/fuse/connections rw - fusectl fusectl rw";
        assert!(!is_fuse(&kind(control).unwrap()));
        assert_eq!(kind("43 29 0:53 / /odd rw"), None);
    }

    #[test]
    fn steps_add_up_and_what_is_zero_is_left_out() {
        let run = tempfile::tempdir().unwrap();
        let second = RECORD.replace("step 0", "step 4294967291");
        let directory = left(&run, &[(0, RECORD.to_owned()), (Step::BATCH, second)]);
        let measures = of(&directory, &[step(0), step(Step::BATCH)]);
        assert_eq!(measures["asked_written_bytes"], 2.0 * 83_900_653.0);
        assert_eq!(measures["measured_steps"], 2.0);
        assert_eq!(measures["user_seconds"], 0.376);
        assert!(!measures.contains_key("storage_read_bytes"), "{measures:?}");
        assert_eq!(Measure::StorageRead.of(&measures), 0.0);
        assert_eq!(of(&directory, &[]), BTreeMap::new());
    }

    #[test]
    fn a_step_with_a_control_group_tells_how_long_it_stood_still() {
        let run = tempfile::tempdir().unwrap();
        let second = RECORD.replace("step 0", "step 1") + "io_stalled_us 91000\n";
        let directory = left(&run, &[(0, RECORD.to_owned()), (1, second)]);
        let stalled = |steps: &[Step]| Measure::StalledSeconds.of(&of(&directory, steps));
        assert_eq!(stalled(&[step(0)]), 0.0);
        assert_eq!(stalled(&[step(0), step(1)]), 0.091);
    }

    /// Attack (files): The record of what a step did is forged, another step's, malformed or
    /// missing.
    /// Outcome: Only true records are measured.
    #[test]
    fn a_step_that_left_nothing_to_believe_is_not_measured() {
        let run = tempfile::tempdir().unwrap();
        let records = [
            (0, RECORD.to_owned()),
            (1, RECORD.to_owned()),
            (2, "nothing".to_owned()),
            (3, RECORD.replace("step 0", "step 3").replace("80", "-80")),
        ];
        let directory = left(&run, &records);
        fs::create_dir(directory.file("step-4.measures")).unwrap();
        std::os::unix::fs::symlink(
            directory.file("step-0.measures"),
            directory.file("step-5.measures"),
        )
        .unwrap();
        let steps: Vec<Step> = (0..7).map(step).collect();
        assert_eq!(of(&directory, &steps)["measured_steps"], 1.0);
    }

    #[test]
    fn the_largest_numbers_are_not_too_large_for_the_service() {
        let all = RECORD
            .lines()
            .skip(2)
            .map(|line| line.split_once(' ').unwrap().0);
        let largest: String = all.map(|name| format!("{name} {}\n", u64::MAX)).collect();
        let text = format!("io-autotune-measures 1\nstep 0\n{largest}");
        let values = parse(&text, 0).unwrap();
        let mut sum = Sum::default();
        sum.add(&values);
        sum.add(&values);
        for (name, value) in sum.measures() {
            assert!(value > 0.0 && value <= LARGEST_MEASURE, "{name}: {value}");
        }
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        let without = |line: &str| parse(&RECORD.replace(line, ""), 0);
        assert_eq!(parse("", 0), Err(RecordError::Header));
        assert_eq!(parse(RECORD, 1), Err(RecordError::Step(0)));
        assert_eq!(without("step 0\n"), Err(RecordError::Missing("step")));
        let lacks = without("syscw 80\n");
        assert_eq!(lacks, Err(RecordError::Missing("syscw")));
        let wrong = parse(&RECORD.replace("80\n", "1e3\n"), 0);
        assert!(matches!(wrong, Err(RecordError::Line(_))), "{wrong:?}");
        assert!(parse(&format!("{RECORD}of_a_later_plugin 5\n"), 0).is_ok());
    }

    /// Attack (parsers): A file of a job or of the spool.
    #[test]
    fn fuzz_measures() {
        io_autotune_fuzzing::Target::new("measures", &[RECORD]).run(|input| {
            let Ok(text) = str::from_utf8(input) else {
                return;
            };
            match parse(text, 0) {
                Ok(values) => {
                    let mut sum = Sum::default();
                    sum.add(&values);
                    for (name, value) in sum.measures() {
                        assert!(value > 0.0 && value <= LARGEST_MEASURE, "{name}: {value}");
                    }
                }
                Err(error) => {
                    let message = error.to_string();
                    let named = ["begin", "line", "missing", "of step"];
                    assert!(named.iter().any(|word| message.contains(word)), "{message}");
                    assert!(!message.contains(char::is_control), "{message:?}");
                }
            }
        });
    }
}
