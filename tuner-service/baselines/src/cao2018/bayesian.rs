//! Bayesian optimisation as in Cao, Tarasov, Tiwari and Zadok 2018 (sections 2.2 and 4.2): expected
//! improvement after a few initial points.

use rand_chacha::ChaCha8Rng;

use super::settings::Cao2018Bayesian;
use io_autotune_model::reason::Acquisition;
use io_autotune_model::space::Space;
use io_autotune_search::acquisition::{self, Revisits, Scale};
use io_autotune_search::{Method, MethodContext, Proposal};

impl Method for Cao2018Bayesian {
    fn design_points(&self, _: &Space, _: u32) -> u32 {
        self.design_points
    }

    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        let improvement = Acquisition::ExpectedImprovement;
        acquisition::propose(context, improvement, Scale::Log, Revisits::Never, rng)
    }
}
