//! What coming back to a tested point costs a program that is replayed.
//!
//! The papers' programs run whatever they come to; here a known point can take its mean from the
//! history instead. With [`Revisits::Run`] the n-th point that the program evaluates is paid by the
//! n-th search run: the first that is not paid for runs, tested or not.

use serde::{Deserialize, Serialize};

use io_autotune_model::space::Point;
use io_autotune_search::MethodContext;

/// What coming back to a tested point costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Revisits {
    /// A run, as in the papers. The default parametrization alone is known from its own runs.
    #[default]
    Run,
    /// Nothing.
    Free,
}

/// The search runs that pay for a program's evaluations.
#[derive(Debug)]
pub(crate) struct Purse {
    revisits: Revisits,
    left: u64,
}

impl Purse {
    pub(crate) fn new(revisits: Revisits, context: &MethodContext<'_>) -> Self {
        let design = context.design.iter();
        let ran = design.filter(|point| !context.is_untested(point)).count();
        Purse {
            revisits,
            left: context.explored.saturating_sub(ran as u64),
        }
    }

    /// Takes a run for evaluating a point that is not untested; whether there was none, and the
    /// point can run now.
    pub(crate) fn must_pay(&mut self, context: &MethodContext<'_>, point: &Point) -> bool {
        if self.revisits == Revisits::Free || *point == context.view.default {
            return false;
        }
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        let open = context.view.get(point);
        open.is_some_and(|known| known.in_flight == 0 && !known.is_quarantined())
    }
}
