//! How many runs a comparison takes to show a gain. Nothing else decides that.

use std::fmt;

use serde::Serialize;

/// With fewer compared runs no gain is shown, however large it is. A gain is claimed once both ends of
/// its interval are known, and the upper one takes evidence of 200; one run multiplies that of each
/// tested effect by less than 2, and ten runs bring their weighted sum to at most 185.
pub const LEAST: u32 = 11;
/// With so many nearly each draw shows a gain that is large beside the noise.
pub const ENOUGH: u32 = 14;
/// So many runs compare usually.
const USUAL: u32 = 16;
/// The smallest number of further runs that is worth proposing.
const FEWEST_MORE: u64 = 4;
/// A search of fewer runs has hardly looked.
const SMALL_SEARCH: u32 = 12;

/// How many of `runs` compare where nobody says so: the search has half of them at least.
#[must_use]
pub fn usual_comparison(runs: u32) -> u32 {
    USUAL.max(runs / 5 * 2).min(runs / 2)
}

/// A note on a plan that cannot do, or does otherwise, what it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Hint {
    /// So few runs compare that no gain is shown, or only by some draws.
    TooFew {
        /// All runs.
        runs: u32,
        /// How many compare.
        compared: u32,
        /// True if some draws show a large gain.
        may_show: bool,
        /// With so many runs in all, and so many of them compared, a large gain is shown.
        needs: Needs,
    },
    /// The search has at least one run: fewer compare than was asked.
    Fewer {
        /// All runs.
        runs: u32,
        /// How many were asked for.
        asked: u32,
        /// How many compare.
        compared: u32,
    },
    /// The comparison leaves the search hardly a run.
    SmallSearch {
        /// All runs.
        runs: u32,
        /// The runs of the search, with that of the default.
        search: u32,
        /// How many compare.
        compared: u32,
    },
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Hint::TooFew {
                runs,
                compared,
                may_show,
                needs,
            } => {
                let lack = if may_show { "may not" } else { "cannot" };
                write!(
                    f,
                    "{runs} runs, of which {compared} compare, can find a better setting but {lack} show that it is; "
                )?;
                match needs.runs > runs {
                    true => write!(f, "about {} runs can", needs.runs),
                    false => write!(f, "about {} that compare can", needs.compare),
                }
            }
            Hint::Fewer {
                runs,
                asked,
                compared,
            } => write!(
                f,
                "{asked} of {runs} runs cannot compare, as the search has one at least: {compared} compare"
            ),
            Hint::SmallSearch {
                runs,
                search,
                compared,
            } => write!(
                f,
                "{compared} of {runs} runs compare, which leaves {search} for the search, the default's among them: it will hardly find anything"
            ),
        }
    }
}

/// The numbers of runs with which a comparison shows a large gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// All runs.
    pub runs: u32,
    /// The runs that compare.
    pub compare: u32,
}

/// The hints on a plan of so many runs, of which `asked` were to compare and `compared` do.
/// `searched` is how many the search had, if it is over.
pub(super) fn hints(runs: u32, asked: u32, compared: u32, searched: Option<u32>) -> Vec<Hint> {
    let mut hints = Vec::new();
    if asked > compared && searched.is_none() {
        hints.push(Hint::Fewer {
            runs,
            asked,
            compared,
        });
    }
    let search = runs.saturating_sub(compared);
    if compared > search && search < SMALL_SEARCH && searched.is_none() {
        hints.push(Hint::SmallSearch {
            runs,
            search,
            compared,
        });
    }
    if (1..ENOUGH).contains(&compared) {
        let needed = searched.map_or(2 * ENOUGH, |search| search + ENOUGH);
        hints.push(Hint::TooFew {
            runs,
            compared,
            may_show: compared >= LEAST,
            needs: Needs {
                runs: needed.max(runs),
                compare: ENOUGH,
            },
        });
    }
    hints
}

/// About how many more runs would show a gain of the size seen, after so many compared ones, by the
/// evidence's own count; none where that is not known. Where as many have run as usually suffice, the
/// draws were unlucky: a quarter more are the next step, and not none.
pub(super) fn more(compared: usize, by_evidence: Option<u64>) -> Option<u64> {
    let compared = compared as u64;
    let least = u64::from(ENOUGH).saturating_sub(compared);
    let step = (compared / 4).max(FEWEST_MORE);
    by_evidence.map(|more| match more.max(least) {
        0 => step,
        more => more,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_has_enough_runs_and_at_most_half() {
        let shares = [1, 2, 20, 30, 40, 100].map(usual_comparison);
        assert_eq!(shares, [0, 1, 10, 15, 16, 40]);
        assert_eq!(usual_comparison(2 * ENOUGH), ENOUGH);
    }

    #[test]
    fn what_a_plan_cannot_do_is_known_before_it_begins() {
        let needs = |runs| Needs {
            runs,
            compare: ENOUGH,
        };
        assert_eq!(hints(28, 14, 14, None), []);
        assert_eq!(hints(50, 0, 0, None), []);
        for (runs, compared, may_show, needed) in
            [(12, 6, false, 28), (24, 12, true, 28), (60, 8, false, 60)]
        {
            let too_few = Hint::TooFew {
                runs,
                compared,
                may_show,
                needs: needs(needed),
            };
            assert_eq!(hints(runs, compared, compared, None), [too_few]);
        }
        let small = |search, compared| Hint::SmallSearch {
            runs: 40,
            search,
            compared,
        };
        let fewer = Hint::Fewer {
            runs: 40,
            asked: 50,
            compared: 39,
        };
        assert_eq!(hints(40, 50, 39, None), [fewer, small(1, 39)]);
        assert_eq!(hints(40, 35, 35, None), [small(5, 35)]);
        assert_eq!(hints(200, 120, 120, None), []);
        // A search of 6 runs is over: what is added compares.
        let too_few = Hint::TooFew {
            runs: 14,
            compared: 8,
            may_show: false,
            needs: needs(20),
        };
        assert_eq!(hints(14, 7, 8, Some(6)), [too_few]);
        assert_eq!(hints(20, 10, 14, Some(6)), []);
    }

    #[test]
    fn each_hint_says_what_it_is_about() {
        for (runs, compared, said) in [
            (
                12,
                6,
                "12 runs, of which 6 compare, can find a better setting but cannot show that it is; about 28 runs can",
            ),
            (60, 12, "may not show that it is; about 14 that compare can"),
            (40, 39, "39 of 40 runs compare, which leaves 1 for"),
        ] {
            let hint = hints(runs, compared, compared, None)[0].to_string();
            assert!(hint.contains(said), "{hint}");
        }
        let fewer = hints(40, 50, 39, None)[0].to_string();
        assert!(fewer.starts_with("50 of 40 runs cannot compare"), "{fewer}");
    }

    #[test]
    fn what_is_not_known_is_none_and_not_zero() {
        assert_eq!(more(6, Some(0)), Some(8));
        assert_eq!(more(6, Some(30)), Some(30));
        assert_eq!(more(14, Some(0)), Some(4));
        assert_eq!(more(40, Some(0)), Some(10));
        assert_eq!(more(6, None), None);
    }
}
