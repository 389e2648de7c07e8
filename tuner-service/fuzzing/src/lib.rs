//! What fuzz targets share. A target is a test whose name begins with `fuzz_`, beside the code that it tries:
//!
//! ```ignore
//! #[test]
//! fn fuzz_stamp() {
//!     io_autotune_fuzzing::Target::new("stamp", &[STAMP]).run(|input| { ... });
//! }
//! ```
//!
//! `cargo test` gives it the kept inputs, in `fuzz/NAME` of its crate, and so many [`Target::rounds`] of inputs made from the
//! samples, the same on every run: bytes changed anywhere, and, where a sample is JSON, values changed, so that what comes
//! after the parser is reached too. `make fuzz` gives it what libFuzzer makes of the samples by coverage, and writes
//! what it fails on to `fuzz/NAME`, where `cargo test` finds it from then on.

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
    /// A target of this name, with inputs that its code takes.
    ///
    /// # Panics
    ///
    /// Without a sample there is nothing to change.
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

    /// Makes so many inputs in a brief run; 20,000 unless said.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }
}

#[cfg(not(fuzzing))]
impl Target {
    /// Gives `check` one input after the other.
    ///
    /// # Panics
    ///
    /// Where `check` does, after having told of the input.
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
        // The name is the seed: targets do not all try the same changes.
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

    /// Inputs that once failed, or that reach what few others do.
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
    /// Hands over to libFuzzer, with the samples as its first inputs.
    ///
    /// # Panics
    ///
    /// Where the samples cannot be written.
    pub fn run(self, check: impl FnMut(&[u8])) {
        let Ok(corpus) = std::env::var("FUZZ_CORPUS") else {
            // Run by hand, or as one of many tests of the binary.
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
        // It reads the rest of its settings from the environment (`tests/fuzz`), and ends the process.
        let mut check = std::panic::AssertUnwindSafe(check);
        bolero::check!().for_each(move |input: &[u8]| (*check)(input));
    }
}

/// Tells of the input at hand if the check panics.
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
