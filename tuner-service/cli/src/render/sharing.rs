//! The text on the other studies that a study shares with.

use io_autotune_model::SharedGain;
use io_autotune_protocol::{SharingSummary, StudySummary};

use super::gain;
use super::plain::plain;

/// The gain of all users together, if that is claimed and the study's own is not.
pub(super) fn claimed(study: &StudySummary) -> Option<&SharedGain> {
    let known = study.assessment.as_ref()?;
    let shared = known.shared.as_ref()?;
    let is_wanted = shared.gain.verdict.is_resolved() && !known.gain.verdict.is_resolved();
    is_wanted.then_some(shared)
}

/// The lines of a study in full; empty if it does not share.
pub(super) fn lines(study: &StudySummary) -> String {
    let Some(sharing) = &study.sharing else {
        return String::new();
    };
    let mut text = format!("shared       {}\n", with_whom(sharing));
    let shared = study
        .assessment
        .as_ref()
        .and_then(|known| known.shared.as_ref());
    if let Some(shared) = shared.filter(|_| sharing.together) {
        text.push_str(&format!(
            "together     {}\n",
            plain(&gain::sentence(&shared.gain, &study.objective))
        ));
    }
    text
}

fn with_whom(sharing: &SharingSummary) -> String {
    let others = match sharing.others {
        1 => "1 other user".to_owned(),
        others => format!("{others} other users"),
    };
    let names = match sharing.members.as_slice() {
        [] => String::new(),
        members => format!(" ({})", members.join(", ")),
    };
    let runs = sharing.runs;
    let how = match sharing.together {
        true => format!("their {runs} counted runs decide with these, each user's within bounds"),
        false => format!("their runs do not decide here: {}", sharing.why),
    };
    format!("by {} with {others}{names}; {how}", sharing.by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_a_study_hears_is_said_with_names_only_if_they_are_told() {
        let mut sharing = SharingSummary {
            by: "group ocean".to_owned(),
            others: 5,
            runs: 120,
            together: true,
            why: String::new(),
            members: Vec::new(),
        };
        assert_eq!(
            with_whom(&sharing),
            "by group ocean with 5 other users; their 120 counted runs decide with these, each user's within bounds"
        );
        sharing = SharingSummary {
            others: 1,
            together: false,
            why: "too few".to_owned(),
            members: vec!["alice".to_owned()],
            ..sharing
        };
        assert_eq!(
            with_whom(&sharing),
            "by group ocean with 1 other user (alice); their runs do not decide here: too few"
        );
    }
}
