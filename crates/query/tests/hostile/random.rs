//! Numbers that look random, and are the same in every run with the same seed.

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(test: &str) -> Self {
        let seed = std::env::var("ORRERY_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2026);
        println!("{test}: ORRERY_FUZZ_SEED={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn pick<'t, T: ?Sized>(&mut self, list: &[&'t T]) -> &'t T {
        list[self.below(list.len())]
    }
}

/// How often a test repeats what it usually does this many times.
pub fn rounds(usual: usize) -> usize {
    let times: usize = std::env::var("ORRERY_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    usual * times
}
