//! Surrogate models as in Robert, Zertal and Goret 2019 (sections II-B-1 and III-B-1): expected
//! improvement, maximum probability of improvement, and the plain minimum of the posterior.

use rand_chacha::ChaCha8Rng;

use super::settings::Robert2019Surrogate;
use io_autotune_model::space::Space;
use io_autotune_search::{Method, MethodContext, Proposal, acquisition};

impl Method for Robert2019Surrogate {
    fn design_points(&self, _: &Space, _: u32) -> u32 {
        self.design_points
    }

    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        acquisition::propose(context, self.acquisition, self.scale, self.revisits, rng)
    }
}
