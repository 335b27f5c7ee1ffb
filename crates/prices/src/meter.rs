//! What work an operation did, counted by the store and priced elsewhere.

/// Counts only; a pure function of the room above turns them into request units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Items looked up whole, and their JSON bytes.
    pub items_read: u32,
    pub bytes_read: u64,
    /// Items looked for and not found, or found to be of the wrong version.
    pub misses: u32,
    /// Item versions written and removed, with their JSON bytes.
    pub items_written: u32,
    pub bytes_written: u64,
    pub items_removed: u32,
    pub bytes_removed: u64,
    pub terms_added: u32,
    pub terms_removed: u32,
    /// Properties that a patch changed.
    pub properties_patched: u32,
    /// Entries of indexes that a query read.
    pub index_entries_read: u64,
    /// Items that a scan or query loaded, and their JSON bytes.
    pub items_scanned: u32,
    pub bytes_scanned: u64,
    /// Bytes of results that a feed or query returned.
    pub bytes_returned: u64,
}

impl Meter {
    pub fn add(&mut self, other: &Meter) {
        self.items_read += other.items_read;
        self.bytes_read += other.bytes_read;
        self.misses += other.misses;
        self.items_written += other.items_written;
        self.bytes_written += other.bytes_written;
        self.items_removed += other.items_removed;
        self.bytes_removed += other.bytes_removed;
        self.terms_added += other.terms_added;
        self.terms_removed += other.terms_removed;
        self.properties_patched += other.properties_patched;
        self.index_entries_read += other.index_entries_read;
        self.items_scanned += other.items_scanned;
        self.bytes_scanned += other.bytes_scanned;
        self.bytes_returned += other.bytes_returned;
    }
}
