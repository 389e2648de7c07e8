//! The plain words of screens, in the place of the search's own, which programs get in JSON.

use io_autotune_model::{Phase, Role};

/// The words of the service's sentences and what is said instead, each after those that contain it.
const WORDS: [(&str, &str); 19] = [
    (", as a control run", ", for comparison"),
    ("more control runs", "more runs of the default"),
    ("no control run", "no run"),
    ("No control run", "No run of the default"),
    ("control runs", "runs of the default"),
    ("control run", "run of the default, for comparison"),
    ("best known parametrization", "best known values"),
    ("chosen parametrization", "chosen values"),
    ("another parametrization", "other values"),
    ("this parametrization", "these values"),
    ("parametrizations", "sets of values"),
    ("parametrization", "set of values"),
    ("of the epoch before", "from before the search began anew"),
    ("Epoch ", "Search number "),
    (
        "a design that is spread over the space",
        "a first round, far apart",
    ),
    ("the design", "the first round"),
    ("is watched for a drift", "is watched for a change"),
    ("watches for drift", "watches for a change"),
    ("drift: ", "a change: "),
];

/// A sentence of the service's for people.
pub(crate) fn plain(sentence: &str) -> String {
    let said = sentence.to_owned();
    WORDS
        .iter()
        .fold(said, |said, (exact, plain)| said.replace(exact, plain))
}

/// The purpose of a run that began in this phase, in a word or two.
pub(crate) fn role(role: Role, phase: Phase) -> &'static str {
    match role {
        // A proof, which comes before the choice, runs the best by then.
        Role::Settled if phase != Phase::Settled => "best so far",
        Role::Baseline => "default",
        Role::Design | Role::Search => "exploring",
        Role::Control => "comparison",
        Role::Settled => "chosen",
        Role::BestKnown => "best so far",
        Role::Pinned => "pinned",
        Role::Observe => "measured",
    }
}

/// How far a study has come, in a word or two.
pub(crate) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Baseline => "first runs",
        Phase::Design | Phase::Search => "exploring",
        Phase::Settled => "chosen",
    }
}

/// Why a run got its values, in a sentence. `reason` is the service's.
pub(crate) fn because(role: Role, reason: &str) -> String {
    match role {
        Role::Baseline => "the default is measured first, to compare with".to_owned(),
        Role::Design | Role::Search => "values are tried out, to find faster ones".to_owned(),
        Role::Control => "some runs keep the default, for comparison".to_owned(),
        _ => plain(reason),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Words that only those need who read about the search.
    const INNER: [&str; 22] = [
        "surrogate",
        "posterior",
        "acquisition",
        "expected improvement",
        "e-value",
        "epoch",
        "control run",
        "baseline",
        "quarantine",
        "finding",
        "regret",
        "parametrization",
        "phase",
        "context",
        "standard error",
        "candidate",
        "child of",
        "mutated",
        "design",
        "resample",
        "drift",
        "headroom",
    ];

    /// Checks that a screen has no inner word.
    pub(crate) fn assert_plain(screen: &str) {
        let lower = screen.to_lowercase();
        for word in INNER {
            assert!(!lower.contains(word), "{word}: {screen}");
        }
        assert!(!screen.contains(" ["), "the name of a rule: {screen}");
    }

    #[test]
    fn the_service_s_sentences_are_told_in_plain_words() {
        for (sentence, said) in [
            (
                "the chosen values or, as drawn, the default, as a control run, from now on, while it is watched for a drift",
                "the chosen values or, as drawn, the default, for comparison, from now on, while it is watched for a change",
            ),
            ("a control run", "a run of the default, for comparison"),
            (
                "more control runs, for a proof",
                "more runs of the default, for a proof",
            ),
            (
                "new values of a design that is spread over the space",
                "new values of a first round, far apart",
            ),
            (
                "best known parametrization of the epoch before (mean 12.5 s of 3), because no run of the design has finished yet",
                "best known values from before the search began anew (mean 12.5 s of 3), because no run of the first round has finished yet",
            ),
            (
                "Epoch 2 has not chosen a parametrization yet.",
                "Search number 2 has not chosen a set of values yet.",
            ),
            (
                "the best so far a second time",
                "the best so far a second time",
            ),
        ] {
            assert_eq!(plain(sentence), said);
            assert_plain(&plain(sentence));
        }
    }

    #[test]
    fn a_user_meets_twelve_terms_at_most() {
        let page = include_str!("../../../../docs/commands.md");
        let terms = page.lines().filter(|line| line.starts_with("- **"));
        assert!((1..=12).contains(&terms.count()));
    }

    #[test]
    fn no_role_and_no_phase_is_told_in_an_inner_word() {
        for one in Role::ALL {
            for phase in [Phase::Search, Phase::Settled] {
                assert_plain(role(*one, phase));
            }
            assert_plain(&because(*one, "settled on the best known parametrization"));
        }
        for one in Phase::ALL {
            assert_plain(phase(*one));
        }
    }
}
