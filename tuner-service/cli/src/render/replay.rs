//! Comparisons of recomputed suggestions with the stored ones.

use io_autotune_protocol::{Replay, Suggested};

use super::launch;

pub(crate) fn replays(job_id: u32, replays: &[Replay]) -> String {
    let mut text = String::new();
    for replay in replays {
        let finding = match (&replay.given, &replay.recomputed, replay.same) {
            (None, ..) => "not told yet",
            (_, _, true) => "same: the stored inputs give what it was given",
            (_, None, false) => "cannot be recomputed",
            (_, Some(_), false) => "DIFFERS: the stored inputs give something else",
        };
        text.push_str(&format!(
            "job          {}, run {}: {finding}\n",
            launch(job_id, replay.restart_count),
            replay.run_id
        ));
        if let (Some(given), Some(recomputed), false) =
            (&replay.given, &replay.recomputed, replay.same)
        {
            text.push_str(&differences(given, recomputed));
        }
        if let Some(note) = &replay.note {
            text.push_str(&format!("note         {note}\n"));
        }
    }
    text
}

fn differences(given: &Suggested, recomputed: &Suggested) -> String {
    let fields = |suggested: &Suggested| {
        [
            ("phase", suggested.phase.to_string()),
            ("role", suggested.role.to_string()),
            ("values", suggested.parametrization.to_string()),
            ("because", suggested.reason.clone()),
        ]
    };
    let mut text = String::new();
    for ((name, given), (_, recomputed)) in fields(given).iter().zip(&fields(recomputed)) {
        if given != recomputed {
            text.push_str(&format!(
                "{name:<12} given       {given}\n             recomputed  {recomputed}\n"
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use io_autotune_model::{Parametrization, Phase, Role};

    use super::*;

    #[test]
    fn a_replay_tells_what_differs_and_nothing_else() {
        let given = Suggested {
            phase: Phase::Search,
            role: Role::Search,
            parametrization: Parametrization::default(),
            reason: "child of A and B".to_owned(),
        };
        let replay = |restart_count, recomputed: Option<&str>, note: Option<&str>| Replay {
            run_id: 17,
            restart_count,
            given: Some(given.clone()),
            same: recomputed == Some(given.reason.as_str()),
            recomputed: recomputed.map(|reason| Suggested {
                reason: reason.to_owned(),
                ..given.clone()
            }),
            note: note.map(str::to_owned),
        };
        let text = replays(
            4711,
            &[
                replay(0, Some("child of A and B"), None),
                replay(1, Some("child of C"), Some("another engine version")),
                replay(2, None, Some("a report without a start")),
                Replay {
                    given: None,
                    ..replay(3, None, Some("later"))
                },
            ],
        );
        assert_eq!(
            text,
            "job          4711, run 17: same: the stored inputs give what it was given\n\
             job          4711 (restart 1), run 17: DIFFERS: the stored inputs give something else\n\
             because      given       child of A and B\n             recomputed  child of C\n\
             note         another engine version\n\
             job          4711 (restart 2), run 17: cannot be recomputed\n\
             note         a report without a start\n\
             job          4711 (restart 3), run 17: not told yet\n\
             note         later\n"
        );
    }
}
