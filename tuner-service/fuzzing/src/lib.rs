//! Support for fuzz targets. A target is a test named `fuzz_...` beside the code that it tests:
//!
//! ```ignore
//! #[test]
//! fn fuzz_stamp() {
//!     io_autotune_fuzzing::Target::new("stamp", &[STAMP]).run(|input| { ... });
//! }
//! ```
//!
//! `cargo test` runs it on the inputs kept in `fuzz/NAME` of its crate, and on [`Target::rounds`]
//! mutated samples, the same on every run: bytes change anywhere, and values in JSON samples, which
//! reaches the code behind the parser. `make fuzz` runs libFuzzer on the samples and writes failing
//! inputs to `fuzz/NAME`, where `cargo test` finds them.

#![forbid(unsafe_code)]

mod json;
mod mutation;
mod words;

use std::path::PathBuf;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A fuzz target.
#[derive(Debug)]
pub struct Target {
    name: &'static str,
    samples: Vec<Vec<u8>>,
    #[cfg_attr(fuzzing, expect(dead_code, reason = "libFuzzer goes on for a time"))]
    rounds: u32,
}

impl Target {
    /// A target with valid sample inputs. Panics without a sample.
    #[must_use]
    pub fn new<S: AsRef<[u8]>>(name: &'static str, samples: &[S]) -> Self {
        assert!(!samples.is_empty(), "target {name} has no sample");
        Self {
            name,
            samples: samples
                .iter()
                .map(|sample| sample.as_ref().to_vec())
                .collect(),
            rounds: 20_000,
        }
    }

    /// Inputs per `cargo test`; the default is 20,000.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }
}

#[cfg(not(fuzzing))]
impl Target {
    /// Gives `check` one input after the other. Reports the input if `check` panics.
    pub fn run(self, mut check: impl FnMut(&[u8])) {
        for (path, input) in self.kept_inputs() {
            let _telling = Telling {
                what: &path,
                input: &input,
            };
            check(&input);
        }
        for sample in &self.samples {
            let _telling = Telling {
                what: "a sample",
                input: sample,
            };
            check(sample);
        }
        // The name is the seed, so that targets differ.
        let mut rng = ChaCha8Rng::from_seed(seed(self.name));
        for _ in 0..self.rounds {
            let input = mutation::input(&mut rng, &self.samples);
            let _telling = Telling {
                what: "a made input",
                input: &input,
            };
            check(&input);
        }
    }

    /// Inputs that once failed, or that reach rare code.
    fn kept_inputs(&self) -> Vec<(String, Vec<u8>)> {
        let package =
            std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
        let Ok(entries) = std::fs::read_dir(package.join("fuzz").join(self.name)) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        paths
            .into_iter()
            .filter_map(|path| Some((path.display().to_string(), std::fs::read(&path).ok()?)))
            .collect()
    }
}

#[cfg(fuzzing)]
impl Target {
    /// Hands over to libFuzzer, with the samples as first inputs. Panics if they cannot be written.
    pub fn run(self, check: impl FnMut(&[u8])) {
        let Ok(corpus) = std::env::var("FUZZ_CORPUS") else {
            // Run by hand, or among the binary's other tests.
            return;
        };
        for (place, sample) in self.samples.iter().enumerate() {
            std::fs::write(
                PathBuf::from(&corpus).join(format!("sample-{place}")),
                sample,
            )
            .expect("samples can be written");
        }
        let mut rng = ChaCha8Rng::from_seed(seed(self.name));
        for place in 0..500 {
            let input = mutation::input(&mut rng, &self.samples);
            std::fs::write(PathBuf::from(&corpus).join(format!("made-{place}")), input)
                .expect("inputs can be written");
        }
        // It reads other settings from the environment (`tests/fuzz`) and ends the process.
        let mut check = std::panic::AssertUnwindSafe(check);
        bolero::check!().for_each(move |input: &[u8]| (*check)(input));
    }
}

/// Prints the input if the check panics.
#[cfg(not(fuzzing))]
struct Telling<'a> {
    what: &'a str,
    input: &'a [u8],
}

#[cfg(not(fuzzing))]
impl Drop for Telling<'_> {
    #[expect(clippy::print_stderr, reason = "beside the panic's own message")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "it failed on {}: {} (keep it in fuzz/NAME of its crate)",
                self.what,
                self.input.escape_ascii()
            );
        }
    }
}

fn seed(name: &str) -> [u8; 32] {
    let mut seed = [0; 32];
    for (slot, byte) in seed.iter_mut().zip(name.bytes()) {
        *slot = byte;
    }
    seed
}
