//! Commands that had other names before 0.4. Their old spellings are accepted for one release: the
//! words are replaced before they are read, and a line on standard error has the new ones. What another
//! program does is said likewise.

use std::ffi::OsString;

/// Old spellings, and what they are now.
pub(crate) const MOVED: [(&str, &[&str]); 10] = [
    ("unpin", &["pin", "--end"]),
    ("on", &["off", "--end"]),
    ("resume", &["freeze", "--end"]),
    ("orders", &["audit", "orders"]),
    ("export", &["transfer", "export"]),
    ("import", &["transfer", "import"]),
    ("warm-start", &["transfer", "warm-start"]),
    ("retention", &["admin", "retention"]),
    ("completion", &["admin", "completion"]),
    ("man", &["admin", "man"]),
];

/// What other programs do, and what is said of it.
const ELSEWHERE: [(&str, &str); 2] = [
    (
        "simulate",
        "`io-autotune simulate` is a program of its own now, `io-autotune-simulate`, which no site installs: \
         `make -C analysis simulate` compiles it from the source tree, and docs/papers/simulate.md describes it",
    ),
    (
        "forget",
        "the service, which this command asks, cannot rewrite history: `io-autotuned --forget USER`, on the service's \
         host as the owner of its tables, forgets a user who has left, as docs/privacy.md describes",
    ),
];

/// Where in a command line its command stands: after the options of all commands.
pub(crate) fn place_of_command(words: &[OsString]) -> Option<usize> {
    let mut places = 1..words.len();
    while let Some(place) = places.next() {
        match words[place].to_string_lossy().as_ref() {
            "--config" | "--cluster" | "--clusters" | "-M" => drop(places.next()),
            option if option.starts_with('-') => {}
            _ => return Some(place),
        }
    }
    None
}

/// The words in the present spelling, and the message if they were in an old one.
pub(crate) fn of_today(mut words: Vec<OsString>) -> (Vec<OsString>, Option<String>) {
    let mut place = place_of_command(&words);
    if let Some(help) = place.filter(|place| words[*place] == "help") {
        place = Some(help + 1);
    }
    let word = place.and_then(|place| words.get(place)?.to_str());
    if let Some((_, who)) = ELSEWHERE.iter().find(|(one, _)| Some(*one) == word) {
        return (words, Some((*who).to_owned()));
    }
    let moved = MOVED.iter().find(|(old, _)| Some(*old) == word);
    let (Some(place), Some((old, new))) = (place, moved) else {
        return (words, None);
    };
    let hint = format!(
        "`io-autotune {old}` is `io-autotune {}` now; the old spelling is taken until the next release",
        new.join(" ")
    );
    // `help` takes commands, and no options.
    let is_help = place > 1 && words[place - 1] == "help";
    let new = new.iter().filter(|word| !is_help || !word.starts_with('-'));
    words.splice(place..=place, new.map(OsString::from));
    (words, Some(hint))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::arguments::Arguments;

    fn respelt(line: &str) -> (String, Option<String>) {
        let (words, hint) = of_today(line.split(' ').map(OsString::from).collect());
        let words: Vec<String> = words
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect();
        (words.join(" "), hint)
    }

    #[test]
    fn an_old_spelling_is_read_as_the_new_one_with_a_hint() {
        for (old, new) in [
            (
                "io-autotune unpin ocean --why x",
                "io-autotune pin --end ocean --why x",
            ),
            (
                "io-autotune -M beta --config=/c on --all",
                "io-autotune -M beta --config=/c off --end --all",
            ),
            (
                "io-autotune orders --json",
                "io-autotune audit orders --json",
            ),
            (
                "io-autotune warm-start a --from b",
                "io-autotune transfer warm-start a --from b",
            ),
            ("io-autotune help unpin", "io-autotune help pin"),
            ("io-autotune help man", "io-autotune help admin man"),
        ] {
            let (words, hint) = respelt(old);
            assert_eq!(words, new);
            assert!(hint.unwrap().contains("` now"), "{old}");
        }
        for (gone, program) in [
            (
                "io-autotune -M beta simulate --table a.json",
                "`io-autotune-simulate`",
            ),
            ("io-autotune help simulate", "`io-autotune-simulate`"),
            (
                "io-autotune forget alice --dry-run",
                "`io-autotuned --forget USER`",
            ),
        ] {
            let (words, hint) = respelt(gone);
            assert_eq!(words, gone, "clap refuses it");
            assert!(hint.unwrap().contains(program), "{gone}");
        }
        for kept in [
            "io-autotune",
            "io-autotune status simulate",
            "io-autotune status on",
            "io-autotune -M on status",
            "io-autotune transfer export a",
            "io-autotune help",
        ] {
            assert_eq!(respelt(kept), (kept.to_owned(), None));
        }
    }

    #[test]
    fn an_old_spelling_is_in_no_help_and_each_new_one_is_a_command() {
        let mut command = Arguments::command();
        command.build();
        for (gone, _) in ELSEWHERE {
            assert!(command.find_subcommand(gone).is_none(), "{gone}");
        }
        for (old, new) in MOVED {
            assert!(command.find_subcommand(old).is_none(), "{old}");
            let mut at = &command;
            for word in new.iter().filter(|word| !word.starts_with('-')) {
                at = at.find_subcommand(word).unwrap_or_else(|| panic!("{old}"));
            }
        }
    }
}
