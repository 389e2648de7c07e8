//! What was really applied to a job on this node, from the answer it was given and its stamps.

use std::collections::BTreeSet;

use io_autotune_protocol::{Applied, StartAnswer, Step, VariableState};

/// The verdict of the stamps. `answer` is `None` where the start had no answer: then nothing was
/// set, and the job ran as it would have without us.
pub(crate) fn applied(answer: Option<&StartAnswer>, steps: &[Step]) -> Applied {
    let users: BTreeSet<&str> = steps
        .iter()
        .flat_map(|step| &step.variables)
        .filter(|(_, state)| **state == VariableState::User)
        .map(|(name, _)| name.as_str())
        .collect();
    if !users.is_empty() {
        return Applied::User {
            variables: users.into_iter().map(str::to_owned).collect(),
        };
    }
    let Some(answer) = answer.filter(|answer| !answer.delivery.files.is_empty()) else {
        return Applied::Default;
    };
    if steps.is_empty() {
        return Applied::Incomplete {
            detail: "no step started on this node".into(),
        };
    }
    for step in steps {
        for file in &answer.delivery.files {
            if step.variables.get(&file.variable) != Some(&VariableState::Set) {
                return Applied::Incomplete {
                    detail: format!("{} was not set in step {}", file.variable, step.step_id),
                };
            }
        }
    }
    Applied::Parametrization {
        parametrization: answer.parametrization.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use io_autotune_engine::{Parametrization, Phase, Role, Value};
    use io_autotune_protocol::{DeliveredFile, Delivery};

    use super::*;

    fn answer(files: usize) -> StartAnswer {
        let file = DeliveredFile {
            name: "romio_hints".into(),
            variable: "ROMIO_HINTS".into(),
            content: "cb_nodes 2\n".into(),
        };
        StartAnswer {
            run_id: 1,
            phase: Phase::Design,
            role: Role::Design,
            parametrization: Parametrization(BTreeMap::from([(
                "cb_nodes".into(),
                Value::Integer(2),
            )])),
            reason: String::new(),
            delivery: Delivery {
                files: vec![file; files],
                watch: vec!["ROMIO_HINTS".into()],
            },
        }
    }

    fn step(state: VariableState) -> Step {
        let variables = BTreeMap::from([("ROMIO_HINTS".to_owned(), state)]);
        Step {
            step_id: 0,
            duration_ns: Some(1),
            wait_status: 0,
            nodes: 1,
            variables,
        }
    }

    #[test]
    fn a_parametrization_counts_only_if_every_step_had_it() {
        use VariableState::{Absent, Set};
        let full = applied(Some(&answer(1)), &[step(Set), step(Set)]);
        assert!(matches!(full, Applied::Parametrization { .. }));
        let partial = applied(Some(&answer(1)), &[step(Set), step(Absent)]);
        assert!(matches!(partial, Applied::Incomplete { .. }));
        assert!(matches!(
            applied(Some(&answer(1)), &[]),
            Applied::Incomplete { .. }
        ));
    }

    #[test]
    fn a_users_own_setting_is_never_taken_for_ours_or_for_the_default() {
        let user = [step(VariableState::Set), step(VariableState::User)];
        let expected = Applied::User {
            variables: vec!["ROMIO_HINTS".into()],
        };
        assert_eq!(applied(Some(&answer(1)), &user), expected);
        assert_eq!(applied(Some(&answer(0)), &user), expected);
        assert_eq!(applied(None, &user), expected);
    }

    #[test]
    fn nothing_to_apply_is_the_default() {
        assert_eq!(
            applied(Some(&answer(0)), &[step(VariableState::Absent)]),
            Applied::Default
        );
        assert_eq!(applied(None, &[]), Applied::Default);
    }
}
