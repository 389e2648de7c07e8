//! Methods with a state, played again on what is known.
//!
//! Annealing and generations are published as programs that keep a state and evaluate one point after
//! the other. Here nothing is kept: the program is run from its start at every suggestion, drawing from a
//! stream of its own for each of its steps, and takes the time of a point that ran from the
//! history. At the first point of which nothing is known it stops, and that point is the
//! suggestion. With one run at a time and means that do not change that is the published program,
//! except that coming back to a point costs it no run. Where a mean changes, because a point ran again, the
//! program may take another way from there; what it has run for the old one stays known.

use rand_chacha::ChaCha8Rng;

/// The design has stream 0 and runs have those of their ordinals; steps have those from here on.
const FIRST_STREAM: u64 = 1 << 63;

/// The generator of a step of the program: the same whichever run asks.
pub(super) fn generator(rng: &ChaCha8Rng, step: u64) -> ChaCha8Rng {
    let mut generator = rng.clone();
    generator.set_stream(FIRST_STREAM | step);
    generator.set_word_pos(0);
    generator
}
