//! Bayesian optimisation as in Cao, Tarasov, Tiwari and Zadok 2018 (sections 2.2 and 4.2): expected
//! improvement after a few initial points.

use rand_chacha::ChaCha8Rng;

use crate::search::{Method, MethodContext, Proposal, acquisition};
use crate::space::Space;
use crate::study::settings::{Acquisition, Settings};

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
