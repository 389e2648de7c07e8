//! Seeded random numbers: the same on every machine and in every version of a library.

/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014),
/// figure 16.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `end - 1`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        // Multiply and shift; the bias of 2^-32 does not matter here.
        let share = u64::from(u32::try_from(self.next() >> 32).unwrap());
        u32::try_from((share * u64::from(end)) >> 32).unwrap()
    }

    /// A random one of several.
    pub(crate) fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let choice = self.below(u32::try_from(choices.len()).unwrap());
        &choices[choice as usize]
    }
}
