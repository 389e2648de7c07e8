//! The directives of a script, as Slurm's burst buffer plugins find them: lines that begin with `#`
//! and the site's word, before the first line that is not a comment.

/// The most lines that are read, more than any script has; lines beyond are not completed.
const MOST_LINES: usize = 256;

#[derive(Debug)]
pub(super) struct Lines {
    /// The lines, each without its end, with true if it is to be completed.
    lines: Vec<(String, bool)>,
}

impl Lines {
    /// The directives with `word`. If `command` is given, only those whose first word it is are to
    /// be completed.
    pub(super) fn of(script: &[u8], word: &str, command: Option<&str>) -> Self {
        let text = String::from_utf8_lossy(script);
        let lines = text
            .split('\n')
            .map(|line| line.trim_end_matches('\r'))
            .filter(|line| !line.is_empty())
            .take_while(|line| line.starts_with('#'))
            .filter_map(|line| {
                let rest = line.strip_prefix('#')?.strip_prefix(word)?;
                let is_whole = rest.is_empty() || rest.starts_with([' ', '\t']);
                let first = rest.split_ascii_whitespace().next();
                let is_wanted = command.is_none_or(|command| first == Some(command));
                is_whole.then(|| (line.to_owned(), is_wanted && is_plain(rest)))
            })
            .take(MOST_LINES)
            .collect();
        Self { lines }
    }

    /// Returns true if the user has written this name in any of the lines.
    pub(super) fn name(&self, name: &str) -> bool {
        self.lines.iter().any(|(line, _)| {
            let mut words = line.split_ascii_whitespace();
            words.any(|word| {
                let written = word.split_once('=').map_or(word, |(written, _)| written);
                written.trim_matches(['"', '\'']) == name
            })
        })
    }

    /// All lines, with these words appended to those that are to be completed.
    pub(super) fn completed(&self, added: &[String]) -> Vec<String> {
        let completed = |(line, is_wanted): &(String, bool)| {
            if *is_wanted && !added.is_empty() {
                format!("{} {}", line.trim_end(), added.join(" "))
            } else {
                line.clone()
            }
        };
        self.lines.iter().map(completed).collect()
    }
}

/// Returns false for a line that continues in the next one or hides something, which is left alone.
fn is_plain(text: &str) -> bool {
    !text.trim_end().ends_with('\\') && !text.chars().any(|c| c.is_control() && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(script: &str, command: Option<&str>) -> Vec<String> {
        Lines::of(script.as_bytes(), "BB", command).completed(&["workers=8".into()])
    }

    #[test]
    fn directives_end_at_the_first_command() {
        let script = "#!/bin/sh\n\n#BB a=1\r\n#SBATCH -n1\n#BB\n#BBX b=1\n# #BB c\necho\n#BB d=1\n";
        assert_eq!(
            completed(script, None),
            ["#BB a=1 workers=8", "#BB workers=8"]
        );
    }

    #[test]
    fn only_those_of_a_command_are_completed_where_a_word_has_several() {
        let script = "#BB jobdw x=1\n#BB stage_in source=/a\n#BB jobdwx\n";
        assert_eq!(
            completed(script, Some("jobdw")),
            [
                "#BB jobdw x=1 workers=8",
                "#BB stage_in source=/a",
                "#BB jobdwx"
            ]
        );
    }

    /// Attack (nodes): A directive goes on in the next line, or has a shell's commands or escapes.
    /// Outcome: No command is run, and the line stays as it was.
    #[test]
    fn a_line_that_goes_on_or_hides_something_is_left_alone() {
        for line in ["#BB a=1 \\", "#BB a\x1b[2J", "#BB a\x0bb"] {
            assert_eq!(completed(line, None), [line]);
        }
    }

    #[test]
    fn a_name_is_the_users_however_it_is_written() {
        for script in [
            "#BB workers=2",
            "#BB x workers",
            "#BB x \"workers=2\"",
            "#BB a\n#BB\tworkers=",
        ] {
            assert!(
                Lines::of(script.as_bytes(), "BB", None).name("workers"),
                "{script}"
            );
        }
        for script in ["#BB my-workers=2", "#BB x=workers", "#SBATCH workers=2"] {
            assert!(
                !Lines::of(script.as_bytes(), "BB", None).name("workers"),
                "{script}"
            );
        }
    }

    /// Users write scripts, and SlurmUser reads them: each line stays a single line, and the user's
    /// text stays in front.
    ///
    /// Attack (parsers): Directives of a job's script.
    /// Outcome: What the user wrote stays in front, in one line.
    #[test]
    fn fuzz_directives() {
        let samples: [&[u8]; 4] = [
            b"#!/bin/bash\n#BB targets=/fs1 workers=2\n#BB x\\\n",
            b"#BB\xff\xfe a=1\r\n#BB\0b\n",
            b"\n\n#BB jobdw a\n#BB stage_in\nsrun x\n#BB late\n",
            b"#BB workers",
        ];
        io_autotune_fuzzing::Target::new("directives", &samples)
            .rounds(8000)
            .run(|input| {
                for command in [None, Some("jobdw")] {
                    let lines = Lines::of(input, "BB", command);
                    let before = lines.completed(&[]);
                    let after = lines.completed(&["workers=8".into()]);
                    assert_eq!(before.len(), after.len());
                    assert!(before.len() <= MOST_LINES);
                    for (before, after) in before.iter().zip(&after) {
                        assert!(after.starts_with(before.trim_end()) && !after.contains('\n'));
                        assert!(before.starts_with("#BB"), "{before:?}");
                    }
                    let _ = lines.name("workers");
                }
            });
    }
}
