//! The methods that propose parametrizations in the search, behind one trait.
//!
//! A method is one module here, one [`MethodName`] and one arm of [`named`]. It is told everything
//! in a [`MethodContext`] and draws from the generator it is given; it keeps no state. Every method
//! must pass `conformance`.

#[cfg(test)]
mod conformance;
pub(crate) mod robert2020;

use rand_chacha::ChaCha8Rng;

use crate::reason::{BestKnownBecause, Reason};
use crate::settings::{MethodName, Settings};
use crate::space::{Point, Space};
use crate::view::{Known, View};

/// All that a method may know.
#[derive(Debug)]
pub(crate) struct MethodContext<'a> {
    /// The history and the runs in flight.
    pub(crate) view: &'a View<'a>,
    /// The epoch's design, the nearest point to the default first.
    pub(crate) design: &'a [Point],
    /// The site's settings, those of the method among them.
    pub(crate) settings: &'a Settings,
}

impl<'a> MethodContext<'a> {
    /// The space.
    pub(crate) fn space(&self) -> &'a Space {
        self.view.space
    }

    /// Whether the point belongs to the design.
    pub(crate) fn in_design(&self, point: &Point) -> bool {
        self.design.contains(point)
    }

    /// The next point of the design to run, with its number from 0: the first that is not the
    /// default, of whose time nothing is known, that has no run in flight and is not given up.
    pub(crate) fn next_design_point(&self) -> Option<(usize, &'a Point)> {
        self.design.iter().enumerate().find(|(_, point)| {
            let open =
                |known: &Known| known.mean().is_none() && known.in_flight == 0 && !known.given_up();
            **point != self.view.default && self.view.get(point).is_none_or(open)
        })
    }
}

/// What a method answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Proposal {
    /// Run this point.
    Run {
        /// The point; it fits the space.
        point: Point,
        /// Why.
        reason: Reason,
    },
    /// Nothing can be proposed before some run ends.
    Wait(BestKnownBecause),
    /// Nothing is left to try.
    Exhausted,
}

/// One way to search, once every point of the design has been started.
pub(crate) trait Method {
    /// What to run next. The answer is a function of the context and the generator's state alone.
    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal;
}

/// The method of that name.
pub(crate) fn named(name: MethodName) -> &'static dyn Method {
    match name {
        MethodName::Robert2020 => &robert2020::Robert2020Method,
    }
}
