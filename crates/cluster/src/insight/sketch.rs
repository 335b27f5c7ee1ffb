//! The hottest logical partitions of a physical one, in a fixed amount of memory.
//!
//! This is the Space-Saving algorithm: so many places, and a key that has none takes over the place of the lightest
//! one, together with its weight. Whatever was truly heavy is therefore always there: a key keeps its place if its
//! weight is above the total divided by the number of places, and no weight is overstated by more than that. What
//! each entry may be overstated by is kept with it.
//!
//! Three windows are kept. Requests are counted into the running minute only; when it is over it is added to the
//! running hour, and that to the running day. What is told of a window is its running part, and as much of the one
//! before it as is needed to make it whole, as if that had been even.

use std::sync::Arc;

use orrery_doc::PartitionKey;

/// Places of one sketch.
pub const PLACES: usize = 32;
/// Bytes of a key's JSON that are kept for display.
const KEY_BYTES_MAX: usize = 160;

/// What was counted of one logical partition.
#[derive(Clone, Debug, PartialEq)]
pub struct HotKey {
    /// The key as the JSON array that requests send; a long one is cut and ends with an ellipsis.
    pub key: Arc<str>,
    pub units: f64,
    pub requests: f64,
    pub throttled: f64,
    /// How much of all that may belong to others.
    pub error: f64,
}

/// What a request adds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    pub units: f64,
    pub requests: f64,
    pub throttled: f64,
}

#[derive(Clone, Debug, Default)]
pub struct Sketch {
    /// Beside the entries, because a search reads only these.
    hashes: Vec<u64>,
    weights: Vec<f64>,
    entries: Vec<HotKey>,
}

impl Load {
    /// What decides who is hot: refused requests cost nothing, but say as much as those that did.
    fn weight(&self) -> f64 {
        self.units + self.throttled
    }

    fn times(&self, factor: f64) -> Load {
        Load {
            units: self.units * factor,
            requests: self.requests * factor,
            throttled: self.throttled * factor,
        }
    }
}

impl Sketch {
    pub fn add(&mut self, hash: u64, key: &PartitionKey, load: Load) {
        self.put(hash, load, 0.0, || display(key));
    }

    fn put(&mut self, hash: u64, load: Load, error: f64, key: impl FnOnce() -> Arc<str>) {
        let place = match self.hashes.iter().position(|known| *known == hash) {
            Some(place) => place,
            None => self.take_place(hash, key()),
        };
        self.weights[place] += load.weight();
        let entry = &mut self.entries[place];
        entry.units += load.units;
        entry.requests += load.requests;
        entry.throttled += load.throttled;
        entry.error += error;
    }

    fn take_place(&mut self, hash: u64, key: Arc<str>) -> usize {
        if self.hashes.len() < PLACES {
            self.hashes.push(hash);
            self.weights.push(0.0);
            self.entries.push(HotKey { key, units: 0.0, requests: 0.0, throttled: 0.0, error: 0.0 });
            return self.hashes.len() - 1;
        }
        let lightest = self.weights.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
        let (place, weight) = lightest.map_or((0, 0.0), |(place, weight)| (place, *weight));
        self.hashes[place] = hash;
        // The counts start anew and only the weight is inherited: overstating it keeps the promise of the algorithm,
        // and what is shown of the key is its own.
        self.entries[place] = HotKey { key, units: 0.0, requests: 0.0, throttled: 0.0, error: weight };
        place
    }

    /// Adds a share of another sketch.
    pub fn merge(&mut self, other: &Sketch, share: f64) {
        for ((hash, weight), entry) in other.hashes.iter().zip(&other.weights).zip(&other.entries) {
            let load = Load { units: entry.units, requests: entry.requests, throttled: entry.throttled };
            self.put(*hash, load.times(share), entry.error * share, || entry.key.clone());
            // What the weight has inherited goes along.
            let inherited = (weight - load.weight()).max(0.0) * share;
            if let Some(place) = self.hashes.iter().position(|known| known == hash) {
                self.weights[place] += inherited;
            }
        }
    }

    /// All entries, in no order.
    pub fn into_entries(self) -> Vec<HotKey> {
        self.entries
    }
}

fn display(key: &PartitionKey) -> Arc<str> {
    let mut text = key.to_json();
    if text.len() > KEY_BYTES_MAX {
        let mut end = KEY_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text.into()
}

/// A hash of an EPK's bytes. They are hashes already, but those of hierarchical keys share their first bytes.
pub fn hash_of(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash.rotate_left(5) ^ u64::from_be_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    hash
}

/// How far back one looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    Minute,
    Hour,
    Day,
}

impl Window {
    pub fn seconds(self) -> u64 {
        match self {
            Window::Minute => 60,
            Window::Hour => 3_600,
            Window::Day => 86_400,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Window::Minute => "minute",
            Window::Hour => "hour",
            Window::Day => "day",
        }
    }

    /// The length of one of the slots that it is told in.
    pub fn slot_seconds(self) -> u64 {
        match self {
            Window::Minute => 1,
            Window::Hour => 60,
            Window::Day => 3_600,
        }
    }

    pub fn named(name: &str) -> Option<Window> {
        match name {
            "minute" => Some(Window::Minute),
            "hour" => Some(Window::Hour),
            "day" => Some(Window::Day),
            _ => None,
        }
    }
}

/// The running part of a window, and the whole one before it.
#[derive(Clone, Debug, Default)]
struct Pair {
    running: Sketch,
    before: Sketch,
}

/// The sketches of one physical partition.
#[derive(Clone, Debug, Default)]
pub struct KeySketches {
    minute: Pair,
    hour: Pair,
    day: Pair,
    /// The second at which they were last turned.
    turned: u64,
}

impl KeySketches {
    pub fn add(&mut self, hash: u64, key: &PartitionKey, load: Load) {
        self.minute.running.add(hash, key, load);
    }

    /// Ends the windows that are over at this second.
    pub fn turn(&mut self, second: u64) {
        if self.turned == 0 || second / 60 == self.turned / 60 {
            self.turned = second;
            return;
        }
        let passed = |length: u64| second / length - (self.turned / length).min(second / length);
        let (minutes, hours, days) = (passed(60), passed(3_600), passed(86_400));
        self.turned = second;
        let minute = std::mem::take(&mut self.minute.running);
        self.hour.running.merge(&minute, 1.0);
        self.minute.before = if minutes == 1 { minute } else { Sketch::default() };
        if hours > 0 {
            let hour = std::mem::take(&mut self.hour.running);
            self.day.running.merge(&hour, 1.0);
            self.hour.before = if hours == 1 { hour } else { Sketch::default() };
        }
        if days > 0 {
            let day = std::mem::take(&mut self.day.running);
            self.day.before = if days == 1 { day } else { Sketch::default() };
        }
    }

    /// The keys of a window that ends at this second.
    pub fn window(&self, window: Window, second: u64) -> Sketch {
        let share = |length: u64| 1.0 - (second % length) as f64 / length as f64;
        let pair = match window {
            Window::Minute => &self.minute,
            Window::Hour => &self.hour,
            Window::Day => &self.day,
        };
        let mut sum = pair.running.clone();
        if window != Window::Minute {
            sum.merge(&self.minute.running, 1.0);
        }
        if window == Window::Day {
            sum.merge(&self.hour.running, 1.0);
        }
        sum.merge(&pair.before, share(window.seconds()));
        sum
    }
}

#[cfg(test)]
mod tests {
    use orrery_doc::KeyComponent;

    use super::*;

    fn key(name: &str) -> PartitionKey {
        PartitionKey(vec![KeyComponent::Str(name.to_owned())])
    }

    fn add(sketch: &mut Sketch, name: &str, units: f64) {
        sketch.add(hash_of(name.as_bytes()), &key(name), Load { units, requests: 1.0, throttled: 0.0 });
    }

    fn top(sketch: Sketch) -> Vec<HotKey> {
        let mut entries = sketch.into_entries();
        entries.sort_by(|a, b| b.units.total_cmp(&a.units));
        entries
    }

    #[test]
    fn heavy_keys_stay_among_many_light_ones() {
        let mut sketch = Sketch::default();
        let mut total = 0.0;
        for n in 0..20_000 {
            add(&mut sketch, &format!("light-{n}"), 1.0);
            total += 1.0;
            if n % 10 == 0 {
                add(&mut sketch, "heavy", 5.0);
                total += 5.0;
            }
        }
        let top = top(sketch);
        assert_eq!(&*top[0].key, "[\"heavy\"]");
        assert!(top[0].units > 0.9 * 10_000.0, "{:?}", top[0]);
        assert!(top.iter().all(|entry| entry.error <= total / PLACES as f64), "an error is over its bound");
        assert_eq!(top.len(), PLACES);
    }

    #[test]
    fn few_keys_are_counted_exactly() {
        let mut sketch = Sketch::default();
        for n in 0..PLACES * 10 {
            add(&mut sketch, &format!("k{}", n % PLACES), 2.5);
        }
        for entry in top(sketch) {
            assert_eq!((entry.units, entry.requests, entry.error), (25.0, 10.0, 0.0));
        }
    }

    #[test]
    fn minutes_become_hours_and_hours_days() {
        let mut keys = KeySketches::default();
        let start = 86_400 * 10;
        for second in 0..7_200 {
            let load = Load { units: 1.0, requests: 1.0, throttled: 0.0 };
            keys.add(1, &key("a"), load);
            keys.turn(start + second);
        }
        let end = start + 7_199;
        for (window, expected) in [(Window::Minute, 60.0), (Window::Hour, 3_600.0), (Window::Day, 7_200.0)] {
            let units = top(keys.window(window, end))[0].units;
            assert!((units - expected).abs() <= 2.0, "{window:?}: {units}");
        }
        keys.turn(end + 300);
        assert!(
            top(keys.window(Window::Minute, end + 300)).is_empty(),
            "what is long ago is not of this minute"
        );
    }

    #[test]
    fn long_keys_are_cut_between_characters() {
        let mut sketch = Sketch::default();
        sketch.add(1, &key(&"ä".repeat(500)), Load::default());
        let entry = &sketch.into_entries()[0];
        assert!(entry.key.len() <= KEY_BYTES_MAX + '…'.len_utf8(), "{}", entry.key.len());
        assert!(entry.key.ends_with('…'));
    }
}
