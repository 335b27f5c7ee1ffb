//! Groups and what is kept for each.

use std::collections::{HashMap, HashSet};

use crate::error::{QueryError, Result};
use crate::eval::{Context, Env, SEEN_BYTES};
use crate::limits;
use crate::program::{AggregateKind, Grouping};
use crate::steward::Held;
use crate::value::{Kind, Val};

/// The groups of one level. Without keys there is exactly one, even over no rows.
pub(crate) struct Groups<'x> {
    /// The place of each group, by its keys in canonical form.
    places: HashMap<Box<[u8]>, usize>,
    groups: Vec<Group>,
    held: Held<'x>,
    /// The group of the last row.
    last: usize,
    /// The keys of the row at hand; kept so that a row of a known group costs no allocation.
    key: Vec<u8>,
    /// Where the row at hand comes from, as far as it is told.
    origin: Origin,
}

/// The number of a row's item, and of the row among those of its item.
type Origin = (u64, u64);

/// In which order groups are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupOrder {
    Keys,
    /// By their first rows, in the order in which items were created.
    Creation,
}

/// What a group takes besides its keys and states: its places in the list and the table, which double when they grow.
const GROUP_BYTES: usize =
    2 * (size_of::<Group>() + size_of::<(Box<[u8]>, usize)>()) + 3 * limits::ALLOCATION_BYTES;

struct Group {
    keys: Vec<Val<'static>>,
    states: Vec<Accumulator>,
    first: Origin,
}

/// The keys and the aggregates of one group.
pub(crate) type GroupResult = (Vec<Val<'static>>, Vec<Val<'static>>);

impl<'x> Groups<'x> {
    pub fn new(grouping: &Grouping, cx: &Context<'x>) -> Self {
        let groups = match grouping.keys.is_empty() {
            true => vec![Group::new(grouping, Vec::new(), Origin::default())],
            false => Vec::new(),
        };
        let origin = Origin::default();
        Self { places: HashMap::new(), groups, held: cx.holds_nothing(), last: 0, key: Vec::new(), origin }
    }

    /// Says where the next row comes from.
    pub fn at(&mut self, item: u64, row: u64) {
        self.origin = (item, row);
    }

    /// Counts the row that is bound in `env`.
    pub fn add<'a>(&mut self, grouping: &'a Grouping, env: &mut Env<'a, '_>) -> Result<()> {
        let place = if grouping.keys.is_empty() { 0 } else { self.place(grouping, env)? };
        self.last = place;
        let live = env.live.bytes();
        let group = &mut self.groups[place];
        group.first = group.first.min(self.origin);
        for (state, aggregate) in group.states.iter_mut().zip(&grouping.aggregates) {
            let value = aggregate.argument.eval(env)?;
            let mut read = value.as_str().map_or(0, str::len);
            state.add(&value, &mut read, &mut self.held)?;
            env.worked(1 + (read / limits::WORK_BYTES) as u64)?;
            env.live.cut_to(live);
        }
        if self.held.bytes() > limits::RUN_BYTES {
            return Err(QueryError::LimitExceeded("The aggregates of the query need too much memory."));
        }
        Ok(())
    }

    /// Finds the group of a row, or makes it.
    fn place<'a>(&mut self, grouping: &'a Grouping, env: &mut Env<'a, '_>) -> Result<usize> {
        self.key.clear();
        let (random, live) = (env.random, env.live.bytes());
        let capacity = self.key.capacity();
        for node in &grouping.keys {
            node.eval(env)?.write_canonical_within(&mut self.key, env.cx.row_bytes_max())?;
            self.key.push(0);
            env.live.cut_to(live);
        }
        self.held.add(self.key.capacity() - capacity)?;
        env.worked((self.key.len() / limits::WORK_BYTES) as u64)?;
        if let Some(&place) = self.places.get(self.key.as_slice()) {
            return Ok(place);
        }
        let states = grouping.aggregates.len() * size_of::<Accumulator>();
        self.held.add(self.key.len() + states + GROUP_BYTES)?;
        if self.groups.len() >= limits::GROUPS || self.held.bytes() > limits::RUN_BYTES {
            return Err(QueryError::LimitExceeded("GROUP BY meets too many groups."));
        }
        // The keys are evaluated once more, and must meet the same chance.
        env.random = random;
        let keys = grouping.keys.iter().map(|node| node.eval(env)?.keep_in(&mut self.held));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        env.live.cut_to(live);
        let place = self.groups.len();
        self.groups.push(Group::new(grouping, keys, self.origin));
        self.places.insert(self.key.as_slice().into(), place);
        Ok(place)
    }

    /// Adds so many rows more to the counts of the last row's group.
    pub fn count_again(&mut self, count: u64) {
        for state in self.groups.get_mut(self.last).into_iter().flat_map(|group| &mut group.states) {
            if let Accumulator::Count(known) = state {
                *known = known.saturating_add(count);
            }
        }
    }

    /// Adds what an index knows of all rows to the only group.
    pub fn add_known(&mut self, count: u64, extreme: &Val<'_>) -> Result<()> {
        for state in self.groups.iter_mut().flat_map(|group| &mut group.states) {
            match state {
                Accumulator::Count(known) => *known = known.saturating_add(count),
                other => {
                    other.add(extreme, &mut 0, &mut self.held)?;
                }
            }
        }
        Ok(())
    }

    /// All groups, in an order that does not depend on that of the rows.
    pub fn into_results(self, order: GroupOrder) -> (Vec<GroupResult>, Held<'x>) {
        let mut groups = self.groups;
        let by_keys = |a: &Group, b: &Group| {
            let pairs = a.keys.iter().zip(&b.keys);
            pairs.map(|(a, b)| a.order(b)).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        };
        groups.sort_by(|a, b| match order {
            GroupOrder::Keys => by_keys(a, b),
            GroupOrder::Creation => a.first.cmp(&b.first).then_with(|| by_keys(a, b)),
        });
        let results =
            groups.into_iter().map(|group| (group.keys, group.states.into_iter().map(Accumulator::result)));
        (results.map(|(keys, states)| (keys, states.collect())).collect(), self.held)
    }
}

impl Group {
    fn new(grouping: &Grouping, keys: Vec<Val<'static>>, first: Origin) -> Self {
        let states = grouping.aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind)).collect();
        Self { keys, states, first }
    }
}

/// The running state of one aggregate. Undefined values are never counted.
enum Accumulator {
    Count(u64),
    CountIf(u64),
    Sum(Sum),
    Average(Sum, u64),
    /// The smallest so far; an array or object makes the answer undefined for good.
    Min {
        best: Option<Val<'static>>,
        spoilt: bool,
    },
    Max {
        best: Option<Val<'static>>,
        spoilt: bool,
    },
    List(Vec<Val<'static>>),
    Set(Vec<Val<'static>>, HashSet<Box<[u8]>>),
}

/// A sum of numbers, exact as long as all are integers.
#[derive(Default)]
struct Sum {
    whole: i128,
    rest: f64,
    /// Met something that is not a number: the sum is undefined.
    spoilt: bool,
}

impl Accumulator {
    fn new(kind: AggregateKind) -> Self {
        match kind {
            AggregateKind::Count => Self::Count(0),
            AggregateKind::CountIf => Self::CountIf(0),
            AggregateKind::Sum => Self::Sum(Sum::default()),
            AggregateKind::Average => Self::Average(Sum::default(), 0),
            AggregateKind::Min => Self::Min { best: None, spoilt: false },
            AggregateKind::Max => Self::Max { best: None, spoilt: false },
            AggregateKind::MakeList => Self::List(Vec::new()),
            AggregateKind::MakeSet => Self::Set(Vec::new(), HashSet::new()),
        }
    }

    /// Adds a value. `read` grows by what had to be read of the value besides its own text.
    fn add(&mut self, value: &Val<'_>, read: &mut usize, held: &mut Held<'_>) -> Result<()> {
        if value.is_undefined() {
            return Ok(());
        }
        match self {
            Self::Count(count) => *count += 1,
            Self::CountIf(count) => *count += u64::from(value.is_true()),
            Self::Sum(sum) => sum.add(value),
            Self::Average(sum, count) => {
                sum.add(value);
                *count += 1;
            }
            Self::Min { best, spoilt } => {
                return keep(best, spoilt, value, held, |new, old| new.order(old).is_lt());
            }
            Self::Max { best, spoilt } => {
                return keep(best, spoilt, value, held, |new, old| new.order(old).is_gt());
            }
            Self::List(items) => return hold(items, value, held),
            Self::Set(items, seen) => {
                let key = super::canonical(value, limits::ROW_BYTES)?;
                *read += key.len();
                if !seen.contains(&key) {
                    held.add(key.len() + SEEN_BYTES)?;
                    seen.insert(key);
                    return hold(items, value, held);
                }
            }
        }
        Ok(())
    }

    fn result(self) -> Val<'static> {
        match self {
            Self::Count(count) | Self::CountIf(count) => Val::Int(i64::try_from(count).unwrap_or(i64::MAX)),
            Self::Sum(sum) => sum.total().map_or(Val::Undefined, Val::number),
            Self::Average(_, 0) => Val::Undefined,
            Self::Average(sum, count) => {
                sum.total().map_or(Val::Undefined, |total| Val::number(total / count as f64))
            }
            Self::Min { spoilt: true, .. } | Self::Max { spoilt: true, .. } => Val::Undefined,
            Self::Min { best, .. } | Self::Max { best, .. } => best.unwrap_or(Val::Undefined),
            Self::List(items) | Self::Set(items, _) => Val::array(items),
        }
    }
}

impl Sum {
    fn add(&mut self, value: &Val<'_>) {
        match value {
            Val::Int(value) => self.whole += i128::from(*value),
            Val::Double(value) => self.rest += value,
            _ => self.spoilt = true,
        }
    }

    fn total(&self) -> Option<f64> {
        (!self.spoilt).then_some(self.whole as f64 + self.rest)
    }
}

/// Keeps the better value.
fn keep(
    best: &mut Option<Val<'static>>,
    spoilt: &mut bool,
    value: &Val<'_>,
    held: &mut Held<'_>,
    better: fn(&Val<'_>, &Val<'_>) -> bool,
) -> Result<()> {
    let length = |value: &Val<'_>| value.as_str().map_or(0, str::len);
    let before = best.as_ref().map_or(0, length);
    if matches!(value.kind(), Kind::Array | Kind::Object) {
        // The answer is known, so nothing needs to be held for it.
        *spoilt = true;
        *best = None;
        held.cut_to(held.bytes().saturating_sub(before));
        return Ok(());
    }
    if *spoilt || best.as_ref().is_some_and(|old| !better(value, old)) {
        return Ok(());
    }
    held.cut_to(held.bytes().saturating_sub(before));
    held.add(length(value))?;
    *best = Some(value.to_owned_val());
    Ok(())
}

fn hold(items: &mut Vec<Val<'static>>, value: &Val<'_>, held: &mut Held<'_>) -> Result<()> {
    if items.len() >= limits::ARRAY_ITEMS {
        return Err(QueryError::LimitExceeded("An aggregate makes a list that is too long."));
    }
    // Lists double when they grow.
    held.add(size_of::<Val<'_>>())?;
    items.push(value.keep_in(held)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_extreme_holds_is_counted_once() {
        let mut state = Accumulator::new(AggregateKind::Max);
        let mut held = Context::at(0, 0).holds_nothing();
        for (text, expected) in [("a", 1), ("b-long", 6), ("a-longer", 6), ("c", 1), ("d-long", 6)] {
            state.add(&Val::text(text), &mut 0, &mut held).unwrap();
            assert_eq!(held.bytes(), expected, "{text}");
        }
        state.add(&Val::array(Vec::new()), &mut 0, &mut held).unwrap();
        state.add(&Val::text("e"), &mut 0, &mut held).unwrap();
        assert_eq!(held.bytes(), 0, "the answer is undefined for good");
        assert!(state.result().is_undefined());
    }
}
