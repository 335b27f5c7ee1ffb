//! Chance that is the same every time.

/// A small generator of numbers that look random (splitmix64).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// At least 0 and less than 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// At least 0 and less than `n`, which is taken to be at least 1.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n.max(1))) >> 64) as u64
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number for a text, always the same.
pub fn hash(text: &str) -> u64 {
    mix(text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_repeat_and_fill_their_range() {
        let draw = || {
            let mut chance = Chance::new(7);
            (0..1000).map(|_| chance.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
        for n in 0..10 {
            let count = draw().iter().filter(|&&drawn| drawn == n).count();
            assert!((60..140).contains(&count), "{n} was drawn {count} times");
        }
    }
}
