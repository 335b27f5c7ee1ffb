//! Chance with a seed, so that whatever it finds can be found again.

use std::time::{SystemTime, UNIX_EPOCH};

/// A small xorshift generator: fast, and the same on every machine.
pub struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        // Small seeds differ in few bits; a multiplication spreads them. The state may never be zero.
        Random { seed, state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 }
    }

    /// Takes the seed from the variable `ORRERY_TEST_SEED`, or else from the clock, and prints it.
    pub fn from_environment() -> Random {
        let given = std::env::var("ORRERY_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970");
            now.as_nanos() as u64 % 1_000_000_000
        });
        println!("seed: ORRERY_TEST_SEED={seed}");
        Random::new(seed)
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn number(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number from 0 to `bound - 1`; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.number() >> 16) as usize % bound }
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.number() as u8).collect()
    }
}
