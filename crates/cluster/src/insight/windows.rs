//! Counts by second, minute and hour, each for as long as they can be told apart on a screen.

use super::place::BUCKETS;

/// What one second, minute or hour saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slot {
    pub requests: u32,
    pub throttled: u32,
    pub units: f32,
    /// The most units of any of its seconds.
    pub highest: f32,
    /// Bytes held at its end.
    pub bytes: u64,
}

/// What one bucket of the key space saw in one second or minute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    pub units: f32,
    pub requests: u32,
}

pub type Heat = [Cell; BUCKETS];

/// Something that adds up within a slot of time.
pub trait Sum: Copy + Default {
    fn add(&mut self, other: &Self);
}

impl Sum for Slot {
    fn add(&mut self, other: &Slot) {
        self.requests = self.requests.saturating_add(other.requests);
        self.throttled = self.throttled.saturating_add(other.throttled);
        self.units += other.units;
        self.highest = self.highest.max(other.highest);
        self.bytes = other.bytes;
    }
}

impl Slot {
    /// Adds what another partition saw at the same time.
    pub fn beside(&mut self, other: &Slot) {
        let (highest, bytes) = (self.highest + other.highest, self.bytes + other.bytes);
        self.add(other);
        self.highest = highest;
        self.bytes = bytes;
    }
}

impl Sum for Heat {
    fn add(&mut self, other: &Heat) {
        for (cell, other) in self.iter_mut().zip(other) {
            cell.units += other.units;
            cell.requests = cell.requests.saturating_add(other.requests);
        }
    }
}

/// The last so many slots of time.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    slots: Box<[T]>,
    /// The number of the newest slot: its time divided by its length.
    newest: u64,
}

impl<T: Sum> Ring<T> {
    pub fn new(len: usize) -> Ring<T> {
        Ring { slots: vec![T::default(); len].into(), newest: 0 }
    }

    /// Adds to a slot; those passed over since the last one are empty. Time that runs backwards counts as now.
    pub fn add(&mut self, number: u64, value: &T) {
        let number = self.advance(number);
        let place = self.place(number);
        self.slots[place].add(value);
    }

    fn advance(&mut self, number: u64) -> u64 {
        let number = number.max(self.newest);
        let passed = (number - self.newest).min(self.slots.len() as u64);
        for back in 0..passed {
            let place = self.place(number - back);
            self.slots[place] = T::default();
        }
        self.newest = number;
        number
    }

    fn place(&self, number: u64) -> usize {
        (number % self.slots.len() as u64) as usize
    }

    /// The slots that end with a number, oldest first; what was never counted is empty.
    pub fn until(&self, number: u64) -> Vec<T> {
        let len = self.slots.len() as u64;
        let slot = |back: u64| match number.checked_sub(back) {
            Some(at) if at <= self.newest && self.newest - at < len => self.slots[self.place(at)],
            _ => T::default(),
        };
        (0..len).rev().map(slot).collect()
    }
}

pub const SECONDS: usize = 60;
pub const MINUTES: usize = 60;
pub const HOURS: usize = 24;

/// The three rings of a partition or container.
#[derive(Clone, Debug)]
pub struct Windows {
    pub seconds: Ring<Slot>,
    pub minutes: Ring<Slot>,
    pub hours: Ring<Slot>,
}

impl Default for Windows {
    fn default() -> Windows {
        Windows { seconds: Ring::new(SECONDS), minutes: Ring::new(MINUTES), hours: Ring::new(HOURS) }
    }
}

impl Windows {
    pub fn add(&mut self, second: u64, slot: &Slot) {
        self.seconds.add(second, slot);
        self.minutes.add(second / 60, slot);
        self.hours.add(second / 3_600, slot);
    }

    /// The sum of the last seconds before one, which is not over itself.
    pub fn last(&self, second: u64, count: usize) -> Slot {
        let slots = self.seconds.until(second.saturating_sub(1));
        let mut sum = Slot::default();
        slots.iter().rev().take(count).rev().for_each(|slot| sum.add(slot));
        sum
    }
}

/// The same for the buckets of a partition.
#[derive(Clone, Debug)]
pub struct HeatWindows {
    pub seconds: Ring<Heat>,
    pub minutes: Ring<Heat>,
}

impl Default for HeatWindows {
    fn default() -> HeatWindows {
        HeatWindows { seconds: Ring::new(SECONDS), minutes: Ring::new(MINUTES) }
    }
}

impl HeatWindows {
    pub fn add(&mut self, second: u64, heat: &Heat) {
        self.seconds.add(second, heat);
        self.minutes.add(second / 60, heat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(requests: u32) -> Slot {
        Slot { requests, units: requests as f32, highest: requests as f32, ..Slot::default() }
    }

    fn requests(slots: &[Slot]) -> Vec<u32> {
        slots.iter().map(|slot| slot.requests).collect()
    }

    #[test]
    fn slots_passed_over_are_empty_and_old_ones_gone() {
        let mut ring = Ring::new(4);
        for (number, count) in [(10, 1), (11, 2), (11, 3), (14, 4)] {
            ring.add(number, &slot(count));
        }
        assert_eq!(requests(&ring.until(14)), [5, 0, 0, 4]);
        assert_eq!(requests(&ring.until(16)), [0, 4, 0, 0]);
        ring.add(12, &slot(7));
        assert_eq!(requests(&ring.until(14)), [5, 0, 0, 11], "time never runs backwards");
        ring.add(1_000_000, &slot(1));
        assert_eq!(requests(&ring.until(1_000_000)), [0, 0, 0, 1]);
    }

    #[test]
    fn minutes_keep_the_highest_second() {
        let mut windows = Windows::default();
        for second in 600..660 {
            windows.add(second, &slot((second % 7) as u32));
        }
        let minutes = windows.minutes.until(10);
        assert_eq!(minutes[MINUTES - 1].highest, 6.0);
        assert_eq!(windows.last(660, 3).requests, (657..660).map(|n| n % 7).sum::<u32>());
    }
}
