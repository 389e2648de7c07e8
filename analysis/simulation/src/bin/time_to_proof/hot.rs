//! Studies that begin from what studies of related applications learnt: those of `make -C analysis
//! transfer-report`.

#[path = "../transfer/life.rs"]
#[expect(dead_code, reason = "another measurement looks at more of a life")]
mod learning;
#[path = "../transfer/site.rs"]
mod site;

use std::collections::BTreeMap;
use std::sync::Arc;

use io_autotune_engine::{Parametrization, Prior, Space, SurrogateCache};
use io_autotune_simulation::preset::without_proofs;
use learning::{Noisy, learnt, nearest, shared};
use site::Site;
pub(crate) use site::space;

use crate::application::Application;

/// Whose studies a study begins from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Nobody,
    /// So many that measure most like it.
    Siblings(usize),
    /// Eight that have nothing in common with it.
    Unrelated,
    /// Three of an application that measures like it, and whose best is its worst.
    Adversaries,
}

/// The sources that studies begin from, by gain.
pub(crate) const CELLS: [(f64, &[(From, &str)]); 3] = [
    (
        0.20,
        &[
            (From::Nobody, "nobody"),
            (From::Siblings(1), "1 of its site"),
            (From::Siblings(2), "2 of its site"),
            (From::Siblings(8), "8 of its site"),
            (From::Unrelated, "8 unrelated"),
            (From::Adversaries, "3 whose best is worst"),
        ],
    ),
    (
        0.10,
        &[
            (From::Nobody, "nobody"),
            (From::Siblings(8), "8 of its site"),
        ],
    ),
    (0.0, &[(From::Siblings(8), "8 of its site")]),
];

/// An application of a site.
pub(crate) struct Sibling {
    space: Space,
    made: site::Application,
}

impl Application for Sibling {
    fn space(&self) -> &Space {
        &self.space
    }

    fn log_gain(&self, parametrization: &Parametrization) -> f64 {
        -self.made.log_ratio(&self.space, parametrization)
    }

    fn measures(&self) -> Option<&BTreeMap<String, f64>> {
        Some(&self.made.measures)
    }
}

/// One whose best point takes this share less than the default, and what it begins from; every
/// number has a site of its own.
pub(crate) fn begin(
    space: &Space,
    from: From,
    gain: f64,
    noise: f64,
    number: u64,
) -> (Sibling, Option<Arc<Prior>>) {
    let site = Site::new(space, number);
    let target = (number % site.applications.len() as u64) as usize;
    let own = with_best(&site.applications[target], (-gain).ln_1p());
    let negated = own.negated();
    let applications: Vec<&site::Application> = match from {
        From::Nobody => Vec::new(),
        From::Siblings(_) => {
            let all = site.applications.iter().enumerate();
            let others = all.filter(|(place, _)| *place != target);
            others.map(|(_, other)| other).collect()
        }
        From::Unrelated => site.unrelated.iter().collect(),
        From::Adversaries => vec![&negated; 3],
    };
    let settings = without_proofs();
    let most = match from {
        From::Siblings(most) => most,
        _ => applications.len(),
    };
    let sources = (1..).zip(applications).filter_map(|(place, other)| {
        let seed = (number << 8) + place;
        learnt(space, &Noisy(other, noise), &settings, seed)
    });
    let sources = nearest(sources.collect(), &own.measures, most);
    let prior = SurrogateCache::default().prior(space, &shared(sources));
    let sibling = Sibling {
        space: space.clone(),
        made: own,
    };
    (sibling, prior)
}

/// The same, but its best point's log of elapsed over the default's is `best`.
fn with_best(application: &site::Application, best: f64) -> site::Application {
    let mut changed = application.clone();
    changed.scale *= best / application.best;
    changed.best = best;
    changed
}
