//! Places in key order, from any combination of lists.

use super::Candidates;
use super::ReadResult;
use super::collected::Collected;
use super::reader::IndexReader;
use super::term_cursor::TermCursor;

/// A list of places in key order, each once.
pub enum PlaceCursor<'r> {
    Nothing,
    Term(TermCursor<'r>),
    Collected(Collected),
    All(Vec<PlaceCursor<'r>>),
    Any(Union<'r>),
}

impl<'r> PlaceCursor<'r> {
    /// What was collected, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            PlaceCursor::Collected(list) => list.memory_bytes(),
            PlaceCursor::All(list) => list.iter().map(PlaceCursor::memory_bytes).sum(),
            PlaceCursor::Nothing | PlaceCursor::Term(_) | PlaceCursor::Any(_) => 0,
        }
    }

    /// Opens the cursor at its first place; `None` when something to be collected has more than `most` places.
    pub fn open(
        reader: &'r IndexReader<'r>,
        candidates: Candidates,
        most: usize,
    ) -> ReadResult<Option<PlaceCursor<'r>>> {
        let children = |list: Vec<Candidates>| -> ReadResult<Option<Vec<PlaceCursor<'r>>>> {
            list.into_iter().map(|child| PlaceCursor::open(reader, child, most)).collect()
        };
        Ok(match candidates {
            Candidates::Term { path_hash, term } => {
                Some(PlaceCursor::Term(TermCursor::open(reader, path_hash, &term)?))
            }
            Candidates::Known(places) => Some(PlaceCursor::Collected(Collected::new(places))),
            Candidates::Collected { list, ranges } => {
                let places = reader.find_up_to(&list, &ranges, most)?;
                places.map(|places| PlaceCursor::Collected(Collected::new(places)))
            }
            Candidates::All(list) if list.is_empty() => Some(PlaceCursor::Nothing),
            Candidates::All(list) => match children(list)? {
                Some(children) => {
                    let mut cursor = PlaceCursor::All(children);
                    cursor.settle()?;
                    Some(cursor)
                }
                None => None,
            },
            Candidates::Any(list) => children(list)?.map(|children| PlaceCursor::Any(Union::new(children))),
        })
    }

    pub fn current(&self) -> Option<&[u8]> {
        match self {
            PlaceCursor::Nothing => None,
            PlaceCursor::Term(cursor) => cursor.current(),
            PlaceCursor::Collected(cursor) => cursor.current(),
            PlaceCursor::All(children) => children[0].current(),
            PlaceCursor::Any(union) => union.current(),
        }
    }

    pub fn advance(&mut self) -> ReadResult<()> {
        match self {
            PlaceCursor::Nothing => Ok(()),
            PlaceCursor::Term(cursor) => cursor.advance(),
            PlaceCursor::Collected(cursor) => {
                cursor.advance();
                Ok(())
            }
            PlaceCursor::All(children) => {
                children[0].advance()?;
                self.settle()
            }
            PlaceCursor::Any(union) => union.advance(),
        }
    }

    /// Moves to the first place at or behind `place`; never back.
    pub fn seek(&mut self, place: &[u8]) -> ReadResult<()> {
        match self {
            PlaceCursor::Nothing => Ok(()),
            PlaceCursor::Term(cursor) => cursor.seek(place),
            PlaceCursor::Collected(cursor) => {
                cursor.seek(place);
                Ok(())
            }
            PlaceCursor::All(children) => {
                children[0].seek(place)?;
                self.settle()
            }
            PlaceCursor::Any(union) => union.seek(place),
        }
    }

    /// Makes all lists of an intersection stand at the same place: each leaps to where the first stands, and
    /// the list that goes beyond it sets the new goal. When one list ends, so does the first.
    fn settle(&mut self) -> ReadResult<()> {
        let PlaceCursor::All(children) = self else { return Ok(()) };
        let Some((first, rest)) = children.split_first_mut() else { return Ok(()) };
        'goal: while let Some(goal) = first.current() {
            for other in rest.iter_mut() {
                other.seek(goal)?;
                match other.current() {
                    None => {
                        *first = PlaceCursor::Nothing;
                        return Ok(());
                    }
                    Some(place) if place != goal => {
                        let place = place.to_vec();
                        first.seek(&place)?;
                        continue 'goal;
                    }
                    Some(_) => {}
                }
            }
            return Ok(());
        }
        Ok(())
    }
}

/// Lists merged into one. They are few, so a sorted row of their numbers does what a heap would.
pub struct Union<'r> {
    children: Vec<PlaceCursor<'r>>,
    /// Those that are not at their end, the one with the smallest place last.
    order: Vec<usize>,
}

impl<'r> Union<'r> {
    fn new(children: Vec<PlaceCursor<'r>>) -> Union<'r> {
        let order = Vec::with_capacity(children.len());
        let mut union = Union { children, order };
        (0..union.children.len()).for_each(|child| union.enter(child));
        union
    }

    /// Puts a child into its place in the row.
    fn enter(&mut self, child: usize) {
        let Some(place) = self.children[child].current() else { return };
        let at = self
            .order
            .partition_point(|&other| self.children[other].current().is_some_and(|other| other > place));
        self.order.insert(at, child);
    }

    fn current(&self) -> Option<&[u8]> {
        self.order.last().and_then(|&child| self.children[child].current())
    }

    /// Moves every child that stands at the current place.
    fn advance(&mut self) -> ReadResult<()> {
        let Some(mut child) = self.order.pop() else { return Ok(()) };
        loop {
            let twin = self.order.last().copied();
            let twin = twin.filter(|&twin| self.children[twin].current() == self.children[child].current());
            if twin.is_some() {
                self.order.pop();
            }
            self.children[child].advance()?;
            // The twin has left the row, so the others in it are still in order.
            self.enter(child);
            match twin {
                Some(twin) => child = twin,
                None => return Ok(()),
            }
        }
    }

    fn seek(&mut self, place: &[u8]) -> ReadResult<()> {
        while self.current().is_some_and(|current| current < place) {
            let Some(child) = self.order.pop() else { return Ok(()) };
            self.children[child].seek(place)?;
            self.enter(child);
        }
        Ok(())
    }
}
