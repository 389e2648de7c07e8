//! Bayesian optimisation as in Cao, Tarasov, Tiwari and Zadok 2018 (sections 2.2 and 4.2): a Gaussian
//! prior and expected improvement, on a few points to start with.

use rand_chacha::ChaCha8Rng;

use crate::search::{Method, MethodContext, Proposal, acquisition};
use crate::space::Space;
use crate::study::settings::{Acquisition, Settings};

/// The method; it has no state.
#[derive(Debug)]
pub(crate) struct Cao2018BayesianMethod;

impl Method for Cao2018BayesianMethod {
    fn design_points(&self, _: &Space, settings: &Settings) -> u32 {
        settings.cao2018_bayesian.design_points
    }

    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        acquisition::propose(context, Acquisition::ExpectedImprovement, rng)
    }
}
