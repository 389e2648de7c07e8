//! Nearly valid inputs.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::json;
use crate::words::WORDS;

/// A sample with a few changes, as JSON if it is JSON.
pub(crate) fn input(rng: &mut ChaCha8Rng, samples: &[Vec<u8>]) -> Vec<u8> {
    let mut input = samples[rng.random_range(0..samples.len())].clone();
    if rng.random_range(0..4) > 0
        && let Some(changed) = json::changed(rng, &input)
    {
        input = changed;
        if rng.random_range(0..4) > 0 {
            return input;
        }
    }
    // Mostly one change: with many, hardly any input passes the first check.
    let changes = 1 << rng.random_range(0..4);
    for _ in 0..rng.random_range(1..=changes) {
        change(rng, &mut input, samples);
    }
    input
}

fn change(rng: &mut ChaCha8Rng, input: &mut Vec<u8>, samples: &[Vec<u8>]) {
    let place = rng.random_range(0..=input.len());
    let end = input.len().min(place + rng.random_range(0..32));
    match rng.random_range(0..9) {
        0 => {
            if let Some(byte) = input.get_mut(place) {
                *byte ^= 1 << rng.random_range(0..8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(place) {
                *byte = rng.random_range(0..=255);
            }
        }
        2 => {
            input.drain(place..end);
        }
        3 => input.truncate(place),
        4 => {
            let again = input[place..end].to_vec();
            input.splice(place..place, again);
        }
        5 => {
            let word = WORDS[rng.random_range(0..WORDS.len())];
            input.splice(place..end, word.iter().copied());
        }
        6 => {
            let word = WORDS[rng.random_range(0..WORDS.len())];
            input.splice(place..place, word.iter().copied());
        }
        7 => {
            let many = 1 << rng.random_range(0..13);
            let byte = input.get(place).copied().unwrap_or(b'x');
            input.splice(place..place, std::iter::repeat_n(byte, many));
        }
        _ => {
            let other = &samples[rng.random_range(0..samples.len())];
            let from = rng.random_range(0..=other.len());
            input.splice(place.., other[from..].iter().copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn inputs_are_the_same_on_every_run_and_not_all_alike() {
        let samples = [
            br#"{"a": [1, "b"], "c": {"d": 2.5}}"#.to_vec(),
            b"a b\n".to_vec(),
        ];
        let made = || {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let made: Vec<_> = (0..500).map(|_| input(&mut rng, &samples)).collect();
            made
        };
        let first = made();
        assert_eq!(first, made());
        let different: std::collections::BTreeSet<_> = first.iter().collect();
        assert!(different.len() > 300, "{}", different.len());
        // Both kinds reach the parser's refusals and the code behind it.
        let read = first
            .iter()
            .filter(|input| serde_json::from_slice::<serde_json::Value>(input).is_ok())
            .count();
        assert!((100..450).contains(&read), "{read}");
    }

    #[test]
    fn fuzz_samples() {
        let samples = [r#"{"a": [1, "b"], "c": null}"#, "a b\n{}\n"];
        crate::Target::new("samples", &samples)
            .rounds(2000)
            .run(|sample| {
                let mut rng = ChaCha8Rng::seed_from_u64(1);
                for _ in 0..4 {
                    assert!(
                        input(&mut rng, &[sample.to_vec()]).len() < 200_000 + 300 * sample.len()
                    );
                }
            });
    }
}
