//! Stateful methods, replayed on the history. Annealing and generations are published as programs
//! that evaluate one point after the other. Here the program starts anew at every suggestion: each
//! step has its own random stream, known points take their times from the history, and the first
//! untested point is the suggestion. With one run at a time and constant means this equals the
//! published program, except that a known point costs no run. A mean that changes may change the
//! program's path.

use rand_chacha::ChaCha8Rng;

/// The first random stream of steps. The design has stream 0, and runs have their ordinals.
const FIRST_STREAM: u64 = 1 << 63;

/// The generator of a program's step, the same for every run.
pub fn generator(rng: &ChaCha8Rng, step: u64) -> ChaCha8Rng {
    let mut generator = rng.clone();
    generator.set_stream(FIRST_STREAM | step);
    generator.set_word_pos(0);
    generator
}
