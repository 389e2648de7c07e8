//! What becomes of each column when a user is forgotten: the one place that says so. A test compares
//! it with the database, so that nobody can add a column and forget this.
//!
//! Everything here is about a *person*: what a user is called, what they wrote, and what leads to
//! them elsewhere. Times, counts, parametrizations and verdicts stay, because sums, gains and what
//! others have learnt rest on them.

/// A table, and what becomes of its columns.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Columns that are never changed, each with the reason.
    pub(super) keeps: &'static [(&'static str, Why)],
    /// Carried out in this order.
    pub(super) changes: &'static [Change],
    /// Columns in which people write, also of others: they are searched for the names afterwards.
    pub(super) written: &'static [&'static str],
}

/// Why a column is kept as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// A number of a row, or of what a row belongs to.
    Number,
    /// A time, a count or a size.
    Figure,
    /// A word that this program or Slurm chose.
    Word,
    /// A name or a value that the site chose: clusters, nodes, partitions, accelerators, parameters.
    Site,
    /// What was learnt, in parametrizations and figures.
    Learnt,
    /// It is of no user, or gone by itself within a day.
    Nobody,
}

impl Why {
    /// The reason, for people.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Number => "numbers of rows",
            Self::Figure => "times, counts and sizes, which sums rest on",
            Self::Word => "words of Slurm's and of this program",
            Self::Site => "names and values that the site chose",
            Self::Learnt => "what was learnt: parametrizations and figures",
            Self::Nobody => "of no user, or gone by itself within a day",
        }
    }
}

/// What is done to some rows of a table. In the SQL, `t` is the row, and the parameters are:
///
/// - `$1`: the uid;
/// - `$2`: the uid in its place;
/// - `$3`: the name in the place of the user's;
/// - `$4`: true to erase, false to give a pseudonym;
/// - `$5`: the names, without `objective.`, of measures that only this user's applications report.
#[derive(Debug)]
pub(super) enum Change {
    /// Columns get these values.
    Set {
        of: &'static str,
        to: &'static [(&'static str, &'static str)],
    },
    /// The rows go.
    Delete { of: &'static str },
}

/// The user's studies.
macro_rules! own_studies {
    () => {
        "(select s.id from studies s join applications a on a.id = s.application_id where a.owner_uid = $1)"
    };
}

/// The epochs of the user's studies.
macro_rules! own_epochs {
    () => {
        concat!(
            "(select e.id from epochs e where e.study_id in ",
            own_studies!(),
            ")"
        )
    };
}

/// The user's runs: also one that another user's study has.
macro_rules! own_runs {
    () => {
        concat!(
            "(select r.id from runs r where r.uid = $1 or r.epoch_id in ",
            own_epochs!(),
            ")"
        )
    };
}

/// The orders about this user alone.
macro_rules! own_orders {
    () => {
        concat!(
            "(select o.id from orders o where o.owner_uid = $1 or o.study_id in ",
            own_studies!(),
            ")"
        )
    };
}

/// An account that no study of another user was charged to may be a person's.
macro_rules! account {
    () => {
        "case when t.account is not null and not exists (
             select from study_accounts c join studies s on s.id = c.study_id
             join applications a on a.id = s.application_id
             where c.account = t.account and a.owner_uid <> $1) then $3 else t.account end"
    };
}

/// The budget for exploring is the user's, or that of an account to which no study of another user was
/// charged.
macro_rules! own_budget {
    () => {
        "t.budget_of = 'user' and t.name = $1::text
         or t.budget_of = 'account' and (exists (
             select from study_accounts c join studies s on s.id = c.study_id
             join applications a on a.id = s.application_id
             where c.account = t.name and a.owner_uid = $1)
         -- A study has its latest account alone.
         or exists (select from outcomes o where o.account = t.name and o.uid = $1))
         and not exists (
             select from study_accounts c join studies s on s.id = c.study_id
             join applications a on a.id = s.application_id
             where c.account = t.name and a.owner_uid <> $1)"
    };
}

/// The uid of whoever did something.
macro_rules! uid {
    ($column:literal) => {
        concat!(
            "case when t.",
            $column,
            " = $1 then $2 else t.",
            $column,
            " end"
        )
    };
}

macro_rules! renamed {
    ($column:literal) => {
        concat!("with_measures_renamed(t.", $column, ", $5)")
    };
}

/// The line of the audit is by this user, or about their studies.
macro_rules! of_the_user {
    () => {
        concat!(
            "(t.uid = $1 or coalesce(t.study_id in ",
            own_studies!(),
            ", false) or coalesce(t.order_id in ",
            own_orders!(),
            ", false))"
        )
    };
}

/// The line's details are about this user, or name them.
macro_rules! told_of_the_user {
    () => {
        concat!(
            "(t.action <> 'retention' and (coalesce(t.study_id in ",
            own_studies!(),
            ", false) or coalesce(t.order_id in ",
            own_orders!(),
            ", false) or jsonb_path_exists(t.detail, '$.** ? (@.uid == $u || @.owner_uid == $u)',
                                           jsonb_build_object('u', $1))))"
        )
    };
}

use Why::{Figure, Learnt, Nobody, Number, Site, Word};

/// Children before their parents: what is whose is read from the parents.
pub(super) const TABLES: &[Table] = &[
    Table {
        name: "exploring_charges",
        keeps: &[
            ("run_id", Number),
            ("budget_of", Word),
            ("day", Figure),
            ("cluster", Site),
            ("name", Site),
            ("node_seconds", Figure),
        ],
        changes: &[Change::Delete {
            of: own_budget!(),
        }],
        written: &[],
    },
    Table {
        name: "exploring_spent",
        keeps: &[
            ("day", Figure),
            ("budget_of", Word),
            ("cluster", Site),
            ("name", Site),
            ("node_seconds", Figure),
        ],
        // What the site, a partition or an account of several has spent stays.
        changes: &[Change::Delete {
            of: own_budget!(),
        }],
        written: &[],
    },
    Table {
        name: "import_chunks",
        keeps: &[],
        changes: &[Change::Delete {
            of: "t.uid = $1",
        }],
        written: &[],
    },
    Table {
        name: "reports",
        // They explain runs, and repeat what is private of them; as retention removes them.
        keeps: &[],
        changes: &[Change::Delete {
            of: concat!("t.run_id in ", own_runs!()),
        }],
        written: &[],
    },
    Table {
        name: "judgements",
        keeps: &[
            ("id", Number),
            ("epoch_id", Number),
            ("ordinal", Number),
            ("run_id", Number),
            ("effect", Word),
            ("parametrization", Learnt),
            ("elapsed", Figure),
            ("judged_at", Figure),
            ("not_counted_because", Word),
        ],
        changes: &[
            Change::Set {
                of: concat!("t.run_id in ", own_runs!()),
                to: &[("verdict", "''"), ("measures", renamed!("measures"))],
            },
            // A run of another user's that Slurm said to be of this one.
            Change::Set {
                of: "t.not_counted_because = 'other_owner' and t.verdict ~ ('uid ' || $1 || '\\M')",
                to: &[("verdict", "''")],
            },
        ],
        written: &[],
    },
    Table {
        name: "outcomes",
        keeps: &[
            ("id", Number),
            ("source", Word),
            ("state", Word),
            ("exit_code", Figure),
            ("restart_count", Figure),
            ("started_at", Figure),
            ("ended_at", Figure),
            ("suspended_seconds", Figure),
            ("limit_seconds", Figure),
            ("received_at", Figure),
            ("run_id", Number),
        ],
        changes: &[
            Change::Delete {
                of: "t.uid = $1 and t.run_id is null",
            },
            Change::Set {
                of: concat!("t.uid = $1 or t.run_id in ", own_runs!()),
                to: &[
                    ("uid", uid!("uid")),
                    ("account", account!()),
                    // Slurm's accounting knows whose a job was.
                    ("cluster", "case when $4 then 'erased' else t.cluster end"),
                    ("job_id", "case when $4 then t.run_id else t.job_id end"),
                    ("node_list", "case when $4 then null else t.node_list end"),
                ],
            },
        ],
        written: &[],
    },
    Table {
        name: "runs",
        keeps: &[
            ("id", Number),
            ("epoch_id", Number),
            ("phase", Word),
            ("role", Word),
            ("parametrization", Learnt),
            ("started_at", Figure),
            ("finished_at", Figure),
            ("elapsed", Figure),
            ("wait_status", Figure),
            ("outcome", Word),
            ("outcome_at", Figure),
            ("outcome_source", Word),
            ("state", Word),
            ("judged_at", Figure),
            ("judged_ordinal", Number),
            ("suspended", Word),
            ("limit_seconds", Figure),
            ("epilog", Figure),
            ("unstarted", Word),
            ("released", Word),
            ("changes", Figure),
            ("judged_changes", Figure),
            ("nodes", Figure),
            ("dirty", Word),
            ("listed_at", Figure),
        ],
        changes: &[
            Change::Set {
                of: concat!("t.uid = $1 or t.epoch_id in ", own_epochs!()),
                to: &[
                    ("uid", uid!("uid")),
                    ("cluster", "case when $4 then 'erased' else t.cluster end"),
                    ("job_id", "case when $4 then t.id else t.job_id end"),
                    (
                        "restart_count",
                        "case when $4 then 0 else t.restart_count end",
                    ),
                    ("generation", "case when $4 then 0 else t.generation end"),
                    ("sluid", "case when $4 then null else t.sluid end"),
                    ("node", "case when $4 then 'erased' else t.node end"),
                    (
                        "request",
                        "jsonb_strip_nulls(jsonb_build_object('mode', t.request -> 'mode'))",
                    ),
                    ("reason", "''"),
                    (
                        "verdict",
                        "case when t.verdict is not null then '' end",
                    ),
                    // As retention trims it: evidence that is computed anew needs the probability of
                    // the draw, and nothing that comes later changes the run.
                    (
                        "suggestion",
                        "jsonb_strip_nulls(jsonb_build_object(
                             'control_chance', t.suggestion -> 'control_chance',
                             'no_start', case when t.suggestion ? 'no_start' then '' end,
                             'removed_at', coalesce(t.suggestion -> 'removed_at', to_jsonb(now()))))",
                    ),
                    ("trimmed_at", "coalesce(t.trimmed_at, now())"),
                    ("delivery", "'{\"files\": [], \"watch\": []}'"),
                    (
                        "applied",
                        "case t.applied ->> 'kind'
                             when 'incomplete' then jsonb_build_object('kind', 'incomplete', 'detail', '')
                             when 'user' then jsonb_build_object('kind', 'user', 'variables', '[]'::jsonb)
                             else t.applied end",
                    ),
                    ("measures", renamed!("measures")),
                    ("missing", "null"),
                    (
                        "directives",
                        "case when t.directives is not null then '{\"kept\": []}'::jsonb end",
                    ),
                ],
            },
            Change::Set {
                of: "t.state = 'not_counted' and t.verdict ~ ('uid ' || $1 || '\\M')",
                to: &[("verdict", "''")],
            },
        ],
        written: &["request"],
    },
    Table {
        name: "tested",
        keeps: &[
            ("epoch_id", Number),
            ("key", Learnt),
            ("parametrization", Learnt),
            ("count", Figure),
            ("mean", Learnt),
            ("m2", Learnt),
            ("log_mean", Learnt),
            ("log_m2", Learnt),
            ("recent", Learnt),
            ("failed", Figure),
            ("first_run", Number),
            ("censored", Learnt),
            ("out_of_memory", Figure),
            ("others", Learnt),
        ],
        changes: &[Change::Set {
            of: concat!("t.epoch_id in ", own_epochs!()),
            to: &[("measures", renamed!("measures"))],
        }],
        written: &[],
    },
    Table {
        name: "sources",
        keeps: &[
            ("study_id", Number),
            ("epoch_id", Number),
            ("accelerator", Site),
            ("space_key", Number),
            ("judged", Figure),
        ],
        changes: &[Change::Set {
            of: concat!("t.study_id in ", own_studies!()),
            to: &[
                ("measures", renamed!("measures")),
                ("learnt", renamed!("learnt")),
            ],
        }],
        written: &[],
    },
    Table {
        name: "site_settings",
        keeps: &[
            ("cluster", Site),
            ("accelerator", Site),
            ("made_of", Number),
            ("made_at", Figure),
            // Values, figures and numbers of studies.
            ("found", Learnt),
        ],
        changes: &[],
        written: &[],
    },
    Table {
        name: "epochs",
        keeps: &[
            ("id", Number),
            ("study_id", Number),
            ("ordinal", Number),
            ("parent_id", Number),
            ("takes", Word),
            ("space", Site),
            ("seed", Number),
            ("opened_at", Figure),
            ("baseline", Figure),
            ("explored", Figure),
            ("controls", Figure),
            ("settled", Figure),
            ("settled_controls", Figure),
            ("total", Figure),
            ("judgements", Figure),
            ("inherited", Learnt),
            ("drift", Learnt),
            ("taken_judgements", Figure),
            ("parameter_effects", Learnt),
            ("removed_at", Figure),
            ("removed_run", Number),
            ("removed_start", Figure),
            ("proof", Figure),
        ],
        changes: &[
            Change::Set {
                of: concat!("t.study_id in ", own_studies!()),
                to: &[
                    ("objective", "with_measures_renamed(t.objective, $5)"),
                    ("evidence", renamed!("evidence")),
                    (
                        "opened_why",
                        "case when t.opened_why like 'reset: %' then 'reset'
                              when t.opened_why like 'warm start with %' then 'warm start'
                              when t.opened_why like 'the objective is %' then 'another objective'
                              else with_measures_renamed(t.opened_why, $5) end",
                    ),
                ],
            },
            // Of others' studies: what this user opened, and what was taken from this user's.
            Change::Set {
                of: "t.opened_why like '%: %' and exists (
                         select from audit l where l.uid = $1 and l.study_id = t.study_id
                         and l.detail -> 'opened_epoch' = to_jsonb(t.ordinal))",
                to: &[(
                    "opened_why",
                    "regexp_replace(t.opened_why, '^(reset|warm start|the objective)\\M.*$', '\\1')",
                )],
            },
            Change::Set {
                of: "t.opened_why like 'warm start with what study %' and exists (
                         select from studies s join applications a on a.id = s.application_id where a.owner_uid = $1
                         and t.opened_why like 'warm start with what study ' || s.id || ' (%')",
                to: &[("opened_why", "'warm start'")],
            },
        ],
        written: &["opened_why"],
    },
    Table {
        name: "pins",
        keeps: &[
            ("study_id", Number),
            ("parametrization", Learnt),
            ("pinned_at", Figure),
            ("until", Figure),
        ],
        changes: &[Change::Set {
            of: concat!("t.uid = $1 or t.study_id in ", own_studies!()),
            to: &[("uid", uid!("uid")), ("why", "''")],
        }],
        written: &["why"],
    },
    Table {
        name: "study_accounts",
        keeps: &[("study_id", Number), ("cluster", Site), ("run_id", Number)],
        changes: &[Change::Set {
            of: concat!("t.study_id in ", own_studies!()),
            to: &[("account", account!())],
        }],
        written: &[],
    },
    Table {
        name: "audit",
        keeps: &[
            ("id", Number),
            ("at", Figure),
            ("action", Word),
            ("study_id", Number),
            ("order_id", Number),
            ("undoes", Number),
        ],
        changes: &[Change::Set {
            // What retention says of a study is numbers.
            of: concat!(
                "t.uid = $1 or t.action <> 'retention' and (",
                of_the_user!(),
                " or ",
                told_of_the_user!(),
                ")"
            ),
            to: &[
                ("uid", uid!("uid")),
                (
                    "why",
                    concat!("case when ", of_the_user!(), " then '' else t.why end"),
                ),
                (
                    "detail",
                    concat!(
                        "case when ",
                        told_of_the_user!(),
                        " then '{\"forgotten\": true}' else t.detail end"
                    ),
                ),
            ],
        }],
        written: &["detail", "why"],
    },
    Table {
        name: "orders",
        keeps: &[
            ("id", Number),
            ("kind", Word),
            ("study_id", Number),
            ("accelerator", Site),
            ("ordered_at", Figure),
            ("until", Figure),
            ("cluster", Site),
        ],
        changes: &[
            // About this user alone: they end, as there is nobody whom they are about.
            Change::Set {
                of: concat!("t.id in ", own_orders!()),
                to: &[
                    ("owner_uid", uid!("owner_uid")),
                    ("uid", uid!("uid")),
                    (
                        "application",
                        "case when t.application is not null then 'forgotten' end",
                    ),
                    (
                        "pinned",
                        "case when t.pinned is not null then '{}'::jsonb end",
                    ),
                    ("why", "''"),
                    ("ended_at", "coalesce(t.ended_at, now())"),
                ],
            },
            // An admin's for others hold.
            Change::Set {
                of: "t.uid = $1",
                to: &[("uid", "$2"), ("why", "''")],
            },
        ],
        written: &["application", "pinned", "why"],
    },
    Table {
        name: "studies",
        keeps: &[
            ("id", Number),
            ("application_id", Number),
            ("accelerator", Site),
            ("context", Site),
            ("context_key", Site),
            ("created_at", Figure),
            ("mixed_accepted_at", Figure),
            ("cluster", Site),
            ("assessed_by", Word),
        ],
        changes: &[
            Change::Set {
                of: concat!("t.id in ", own_studies!()),
                to: &[
                    ("mixed_accepted_by", uid!("mixed_accepted_by")),
                    (
                        "mixed_accepted_why",
                        "case when t.mixed_accepted_why is not null then '' end",
                    ),
                    ("assessment", renamed!("assessment")),
                    // Who has left shares with nobody, as who leaves a group.
                    ("share", "null"),
                ],
            },
            Change::Set {
                of: "t.mixed_accepted_by = $1",
                to: &[("mixed_accepted_by", "$2"), ("mixed_accepted_why", "''")],
            },
        ],
        written: &["mixed_accepted_why"],
    },
    Table {
        name: "applications",
        keeps: &[("id", Number), ("created_at", Figure)],
        changes: &[Change::Set {
            of: "t.owner_uid = $1",
            to: &[
                ("owner_uid", "$2"),
                ("owner_name", "$3"),
                // A name that others' jobs have too is not of a person, and sums over it stay.
                (
                    "name",
                    "case when not $4 and exists (select from applications o
                                                  where o.name = t.name and o.owner_uid <> $1)
                          then t.name else 'forgotten-' || t.id end",
                ),
                (
                    "full_name",
                    "case when not $4 and exists (select from applications o
                                                  where o.name = t.name and o.full_name = t.full_name
                                                        and o.owner_uid <> $1)
                          then t.full_name end",
                ),
                ("forgotten_at", "coalesce(t.forgotten_at, now())"),
            ],
        }],
        written: &["name", "full_name"],
    },
    Table {
        name: "nonces",
        keeps: &[("nonce", Nobody), ("seen_at", Nobody)],
        changes: &[],
        written: &[],
    },
    Table {
        name: "surroundings",
        keeps: &[
            ("cluster", Site),
            ("at", Figure),
            ("slowness", Figure),
            ("runs", Figure),
        ],
        changes: &[],
        written: &[],
    },
    Table {
        name: "schema_needs",
        keeps: &[("migration", Nobody), ("only_row", Nobody)],
        changes: &[],
        written: &[],
    },
];

impl Table {
    /// The columns that the user's rows lose or get anew; `None`: rows go as a whole.
    pub(super) fn changed(&self) -> impl Iterator<Item = &'static str> {
        self.changes
            .iter()
            .flat_map(|change| match change {
                Change::Set { to, .. } => *to,
                Change::Delete { .. } => &[],
            })
            .map(|(column, _)| *column)
    }

    /// True if its rows of the user go as a whole.
    pub(super) fn is_emptied(&self) -> bool {
        matches!(self.changes, [Change::Delete { .. }])
    }
}

impl Change {
    /// The statement, whose number of rows is that of the rows changed.
    pub(super) fn statement(&self, table: &str) -> String {
        match self {
            Self::Delete { of } => format!("delete from {table} t where {of}"),
            Self::Set { of, to } => {
                let set: Vec<String> = to
                    .iter()
                    .map(|(column, value)| format!("{column} = {value}"))
                    .collect();
                format!("update {table} t set {} where {of}", set.join(", "))
            }
        }
    }
}
