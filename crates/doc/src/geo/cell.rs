//! Cells of the map: rectangles of longitude and latitude that halve from level to level.

use super::Place;

/// Levels below the whole world. A cell of the last is about four centimetres wide at the equator.
const LEVELS: u32 = 30;
/// Bytes of a cell's term.
pub const TERM_BYTES: usize = 10;

/// One cell. The id is the way to it, two bits for each level, then a one, then zeros: a cell's id lies in the middle
/// of those of all cells in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(u64);

/// A rectangle in units of the smallest cells, bounds included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub west: u32,
    pub east: u32,
    pub south: u32,
    pub north: u32,
}

impl Cell {
    pub const WORLD: Cell = Cell(1 << 63);

    /// The smallest cell at a place.
    pub fn at([longitude, latitude]: Place) -> Cell {
        Cell(spread(column(longitude)) << 4 | spread(row(latitude)) << 5 | 1 << 3)
    }

    pub fn id(self) -> u64 {
        self.0
    }

    /// The last bit that is set, which says the level.
    fn mark(self) -> u64 {
        self.0 & self.0.wrapping_neg()
    }

    fn level(self) -> u32 {
        (63 - self.0.trailing_zeros()) / 2
    }

    /// The smallest and the largest id of the cells in this one, itself included.
    pub fn descendants(self) -> (u64, u64) {
        let below = self.mark() - 1;
        (self.0 - below, self.0 + below)
    }

    /// The cells that hold this one, without itself.
    pub fn ancestors(self) -> impl Iterator<Item = Cell> {
        std::iter::successors(self.parent(), |cell| cell.parent())
    }

    fn parent(self) -> Option<Cell> {
        let mark = self.mark() << 2;
        (self != Cell::WORLD).then_some(Cell(self.0 & mark.wrapping_neg() | mark))
    }

    /// The quarters; none of a smallest cell.
    pub(super) fn children(self) -> impl Iterator<Item = Cell> {
        let mark = self.mark() >> 2;
        let first = self.0 - 3 * mark;
        (0..4).filter(move |_| mark >= 1 << 3).map(move |quarter| Cell(first + 2 * mark * quarter))
    }

    pub(super) fn tile(self) -> Tile {
        let first = self.descendants().0 >> 4;
        let (west, south) = (gather(first), gather(first >> 1));
        let more = (1 << (LEVELS - self.level())) - 1;
        Tile { west, east: west + more, south, north: south + more }
    }

    /// The bytes under which it stands in an index. They read as the term of a number.
    pub fn term(self) -> [u8; TERM_BYTES] {
        term(self.0)
    }
}

impl Tile {
    pub fn meets(&self, other: &Tile) -> bool {
        self.west <= other.east
            && other.west <= self.east
            && self.south <= other.north
            && other.south <= self.north
    }

    pub fn holds(&self, other: &Tile) -> bool {
        self.west <= other.west
            && other.east <= self.east
            && self.south <= other.south
            && other.north <= self.north
    }
}

pub(super) fn term(id: u64) -> [u8; TERM_BYTES] {
    let mut term = [0; TERM_BYTES];
    term[0] = 0x40;
    term[1..9].copy_from_slice(&id.to_be_bytes());
    term[9] = 0x80;
    term
}

/// The first bytes behind a cell's term.
pub(super) fn behind(id: u64) -> Vec<u8> {
    let mut term = term(id).to_vec();
    term[TERM_BYTES - 1] += 1;
    term
}

/// Numbers never fall when coordinates grow, so what lies between two places lies between their cells.
pub(super) fn column(longitude: f64) -> u32 {
    part((longitude + 180.0) / 360.0)
}

pub(super) fn row(latitude: f64) -> u32 {
    part((latitude + 90.0) / 180.0)
}

fn part(part: f64) -> u32 {
    const COUNT: u32 = 1 << LEVELS;
    ((part * f64::from(COUNT)) as u32).min(COUNT - 1)
}

/// Puts a zero before each bit.
fn spread(bits: u32) -> u64 {
    let mut x = u64::from(bits);
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

/// The reverse: every other bit.
fn gather(spread: u64) -> u32 {
    let mut x = spread & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) as u32
}
