//! Surrogate models as in Robert, Zertal and Goret 2019 (sections II-B-1 and III-B-1): expected
//! improvement, maximum probability of improvement, and the plain minimum of the posterior.

use rand_chacha::ChaCha8Rng;

use crate::search::{Method, MethodContext, Proposal, acquisition};
use crate::space::Space;
use crate::study::settings::Settings;

#[derive(Debug)]
pub(crate) struct Robert2019SurrogateMethod;

impl Method for Robert2019SurrogateMethod {
    fn design_points(&self, _: &Space, settings: &Settings) -> u32 {
        settings.robert2019_surrogate.design_points
    }

    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        let acquisition = context.settings.robert2019_surrogate.acquisition;
        acquisition::propose(context, acquisition, rng)
    }
}
