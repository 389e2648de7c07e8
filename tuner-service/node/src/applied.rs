use std::collections::BTreeSet;

use io_autotune_protocol::{Applied, MARKS_VARIABLE, StartAnswer, Step, VariableState};

use crate::in_force;

/// The helper's own variables, which carry nothing of a parametrization.
const OURS: [&str; 2] = [in_force::VARIABLE, MARKS_VARIABLE];

/// The settings that were really applied, by the stamps. If the service gave no answer, the job ran
/// as without the tuner.
pub(crate) fn applied(
    answer: Option<&StartAnswer>,
    obstacle: Option<String>,
    steps: &[Step],
) -> Applied {
    let users: BTreeSet<&str> = steps
        .iter()
        .flat_map(|step| &step.variables)
        .filter(|(name, state)| **state == VariableState::User && !OURS.contains(&name.as_str()))
        .map(|(name, _)| name.as_str())
        .collect();
    if !users.is_empty() {
        return Applied::User {
            variables: users.into_iter().map(str::to_owned).collect(),
        };
    }
    if let Some(detail) = obstacle {
        return Applied::Incomplete { detail };
    }
    if let Some(answer) = answer
        && let Some(of_directives) = by_directives(answer)
    {
        return of_directives;
    }
    let Some(answer) = answer.filter(|answer| !answer.delivery.is_empty()) else {
        return Applied::Default;
    };
    if steps.is_empty() {
        return Applied::Incomplete {
            detail: "no step started on this node".into(),
        };
    }
    for step in steps {
        for variable in answer.delivery.variables() {
            if step.variables.get(variable) != Some(&VariableState::Set) {
                return Applied::Incomplete {
                    detail: format!("{variable} was not set in step {}", step.step_id),
                };
            }
        }
    }
    Applied::Parametrization {
        parametrization: answer.parametrization.clone(),
    }
}

/// The reason why a job whose burst buffer has directives does not count, if there is one: the
/// user's own directives stay, and unless their completion was reported it is not known which were
/// in force.
fn by_directives(answer: &StartAnswer) -> Option<Applied> {
    if answer.delivery.watch_directives.is_empty() {
        return None;
    }
    match &answer.directives {
        None => Some(Applied::Incomplete {
            detail: "its burst buffer's directives were not completed".into(),
        }),
        Some(completed) if completed.kept.is_empty() => None,
        Some(completed) => Some(Applied::User {
            variables: completed
                .kept
                .iter()
                .map(|name| format!("directive {name}"))
                .collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use io_autotune_model::{Parametrization, Phase, Role, Value};
    use io_autotune_protocol::{
        CompletedDirectives, DeliveredDirective, DeliveredFile, DeliveredSetting,
        DeliveredVariable, Delivery, SettingKind,
    };

    use super::*;

    fn answer(files: usize) -> StartAnswer {
        let file = DeliveredFile {
            name: "romio_hints".into(),
            variable: "ROMIO_HINTS".into(),
            content: "cb_nodes 2\n".into(),
            unless_exists: None,
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
                ..Delivery::default()
            },
            directives: None,
        }
    }

    #[test]
    fn directives_count_if_they_were_completed_and_none_is_the_users() {
        let mut with_directives = answer(0);
        with_directives.delivery.watch_directives = vec!["workers".into()];
        let steps = [step(VariableState::Absent)];
        let said = |answer: &StartAnswer| applied(Some(answer), None, &steps);
        let untold = "its burst buffer's directives were not completed";
        assert_eq!(
            said(&with_directives),
            Applied::Incomplete {
                detail: untold.into()
            },
            "not even for the default: the user may have written some"
        );
        let told = |kept: &[&str]| {
            let kept = kept.iter().map(|name| (*name).to_owned()).collect();
            Some(CompletedDirectives { kept })
        };
        with_directives.directives = told(&[]);
        assert_eq!(said(&with_directives), Applied::Default);
        with_directives
            .delivery
            .directives
            .push(DeliveredDirective {
                name: "workers".into(),
                value: "8".into(),
            });
        assert!(matches!(
            said(&with_directives),
            Applied::Parametrization { .. }
        ));
        with_directives.directives = told(&["workers"]);
        assert_eq!(
            said(&with_directives),
            Applied::User {
                variables: vec!["directive workers".into()]
            }
        );
    }

    fn step(state: VariableState) -> Step {
        let variables = BTreeMap::from([("ROMIO_HINTS".to_owned(), state)]);
        Step {
            step_id: 0,
            started_at: None,
            duration_ns: Some(1),
            wait_status: 0,
            nodes: 1,
            variables,
        }
    }

    #[test]
    fn a_parametrization_counts_only_if_every_step_had_it() {
        use VariableState::{Absent, Set};
        let full = applied(Some(&answer(1)), None, &[step(Set), step(Set)]);
        assert!(matches!(full, Applied::Parametrization { .. }));
        let partial = applied(Some(&answer(1)), None, &[step(Set), step(Absent)]);
        assert!(matches!(partial, Applied::Incomplete { .. }));
        assert!(matches!(
            applied(Some(&answer(1)), None, &[]),
            Applied::Incomplete { .. }
        ));
    }

    #[test]
    fn a_variable_counts_as_a_file_does() {
        let mut both = answer(1);
        both.delivery.environment.push(DeliveredVariable {
            name: "X_DEPTH".into(),
            value: "4".into(),
        });
        let lacking = applied(Some(&both), None, &[step(VariableState::Set)]);
        assert_eq!(
            lacking,
            Applied::Incomplete {
                detail: "X_DEPTH was not set in step 0".into()
            }
        );
        let mut full = step(VariableState::Set);
        full.variables.insert("X_DEPTH".into(), VariableState::Set);
        assert!(matches!(
            applied(Some(&both), None, &[full]),
            Applied::Parametrization { .. }
        ));
        both.delivery.files.clear();
        assert!(matches!(
            applied(Some(&both), None, &[]),
            Applied::Incomplete { .. }
        ));
    }

    #[test]
    fn settings_that_were_not_in_force_count_for_nothing() {
        let mut with_settings = answer(0);
        with_settings.delivery.settings.push(DeliveredSetting {
            kind: SettingKind::Sysctl,
            name: "vm.dirty_bytes".into(),
            value: "4194304".into(),
        });
        let steps = [step(VariableState::Absent)];
        let in_force = applied(Some(&with_settings), None, &steps);
        assert!(matches!(in_force, Applied::Parametrization { .. }));
        let refused = applied(Some(&with_settings), Some("not allowed".into()), &steps);
        assert_eq!(
            refused,
            Applied::Incomplete {
                detail: "not allowed".into()
            }
        );
        // Nor does it count for the default if the helper was killed before it could record what it
        // had done.
        let killed = applied(None, Some("killed".into()), &steps);
        assert!(matches!(killed, Applied::Incomplete { .. }));
    }

    #[test]
    fn a_users_own_setting_is_never_taken_for_ours_or_for_the_default() {
        let user = [step(VariableState::Set), step(VariableState::User)];
        let expected = Applied::User {
            variables: vec!["ROMIO_HINTS".into()],
        };
        assert_eq!(applied(Some(&answer(1)), None, &user), expected);
        assert_eq!(applied(Some(&answer(0)), None, &user), expected);
        assert_eq!(applied(None, None, &user), expected);
    }

    #[test]
    fn nothing_to_apply_is_the_default() {
        assert_eq!(
            applied(Some(&answer(0)), None, &[step(VariableState::Absent)]),
            Applied::Default
        );
        assert_eq!(applied(None, None, &[]), Applied::Default);
    }
}
