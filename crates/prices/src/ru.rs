//! The price of work in request units, after the service's published table.
//!
//! A pure function: the store counts, this prices, the throttle enforces.
//! Sizes between two entries of the table are interpolated, so that a price never jumps.

use crate::{Charge, Consistency, Meter};

/// Kilobytes, units of a point read, units of a write.
const TABLE: [(f64, f64, f64); 12] = [
    (1.0, 1.00, 4.95),
    (2.0, 1.04, 6.29),
    (4.0, 1.14, 6.67),
    (8.0, 1.33, 7.04),
    (16.0, 1.67, 9.52),
    (32.0, 2.19, 11.23),
    (64.0, 4.76, 22.67),
    (128.0, 9.95, 48.19),
    (256.0, 20.28, 98.29),
    (512.0, 40.95, 184.57),
    (1024.0, 145.90, 625.00),
    (2048.0, 291.80, 1250.00),
];

const TERM: f64 = 0.2;
const PATCHED_PROPERTY: f64 = 0.4;
/// A request that finds nothing, or the wrong version, still had to look.
const MISS: f64 = 1.0;
/// The least a query costs on each physical partition it visits.
const QUERY_MIN: f64 = 2.2;
const QUERY_INDEX_ENTRY: f64 = 0.001;
const QUERY_ITEM: f64 = 0.02;
const QUERY_SCANNED_KB: f64 = 0.05;
const QUERY_RETURNED_KB: f64 = 0.3;
const RETURNED: &str = "kilobytes returned";
/// Reading or changing the catalog.
pub const METADATA_READ: f64 = 1.0;
pub const METADATA_WRITE: f64 = 4.95;

pub fn read_units(bytes: u64) -> f64 {
    interpolate(bytes, |row| row.1)
}

pub fn write_units(bytes: u64) -> f64 {
    interpolate(bytes, |row| row.2)
}

/// Strong and bounded-staleness reads ask two replicas.
pub fn replicas_read(consistency: Consistency) -> f64 {
    if consistency >= Consistency::BoundedStaleness { 2.0 } else { 1.0 }
}

/// A point read that found its item.
pub fn read(bytes: u64, consistency: Consistency) -> Charge {
    Charge::default().line("point read by size", replicas_read(consistency), read_units(bytes))
}

/// A point read that found nothing.
pub fn miss() -> Charge {
    Charge::flat("item looked for and not found", MISS)
}

/// One write operation, or the failed attempt at one.
pub fn write(meter: &Meter) -> Charge {
    let mut charge = Charge::default();
    if meter.items_removed > 0 && meter.items_written > 0 {
        charge = charge.line("previous version removed, by size", 1.0, write_units(meter.bytes_removed));
    } else if meter.items_removed > 0 {
        charge = charge.line("item deleted, by size", 1.0, write_units(meter.bytes_removed));
    }
    if meter.items_written > 0 {
        charge = charge.line("item written, by size", 1.0, write_units(meter.bytes_written));
    }
    charge = charge
        .line("index terms added", f64::from(meter.terms_added), TERM)
        .line("index terms removed", f64::from(meter.terms_removed), TERM)
        .line("properties patched", f64::from(meter.properties_patched), PATCHED_PROPERTY);
    if meter.items_read > 0 {
        charge = charge.line("point read by size", 1.0, read_units(meter.bytes_read));
    }
    charge.line("items looked for in vain or refused", f64::from(meter.misses), MISS)
}

/// One page of a read feed: the sum of the point reads, and for none the price of one. Recorded pages of the service with no
/// item and with one small item are charged one unit each.
pub fn feed(meter: &Meter, consistency: Consistency) -> Charge {
    let each =
        if meter.items_scanned == 0 { 0 } else { meter.bytes_scanned / u64::from(meter.items_scanned) };
    let reads = f64::from(meter.items_scanned) * replicas_read(consistency);
    match meter.items_scanned {
        0 => Charge::flat("page of a feed without items", MISS),
        _ => Charge::default().line("items read, by mean size", reads, read_units(each)),
    }
}

/// One page of a query on one physical partition.
pub fn query(meter: &Meter, consistency: Consistency) -> Charge {
    let least =
        Charge::default().line("least charge of a partition visited", replicas_read(consistency), QUERY_MIN);
    work_of_query(least, meter, consistency)
}

/// What a full page does on other partitions to know whether another row follows.
pub fn look_ahead(meter: &Meter, consistency: Consistency) -> Charge {
    work_of_query(Charge::default(), meter, consistency)
}

fn work_of_query(charge: Charge, meter: &Meter, consistency: Consistency) -> Charge {
    let replicas = replicas_read(consistency);
    charge
        .line("index entries read", meter.index_entries_read as f64 * replicas, QUERY_INDEX_ENTRY)
        .line("items looked at", f64::from(meter.items_scanned) * replicas, QUERY_ITEM)
        .line("kilobytes looked at", kilobytes(meter.bytes_scanned) * replicas, QUERY_SCANNED_KB)
        .line(RETURNED, kilobytes(meter.bytes_returned) * replicas, QUERY_RETURNED_KB)
}

/// As many index entries cost what it costs a query to look at an item of this size.
pub fn entries_for_item(bytes: u64) -> f64 {
    (QUERY_ITEM + kilobytes(bytes) * QUERY_SCANNED_KB) / QUERY_INDEX_ENTRY
}

/// The rows of a page that was merged from several partitions; what each did to find them is charged for itself.
pub fn returned(meter: &Meter, consistency: Consistency) -> Charge {
    let kilobytes = kilobytes(meter.bytes_returned) * replicas_read(consistency);
    Charge::default().line(RETURNED, kilobytes, QUERY_RETURNED_KB)
}

fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

fn interpolate(bytes: u64, column: impl Fn(&(f64, f64, f64)) -> f64) -> f64 {
    let size = kilobytes(bytes);
    let last = TABLE.len() - 1;
    let upper = TABLE.iter().position(|row| row.0 >= size).unwrap_or(last);
    if upper == 0 {
        return column(&TABLE[0]);
    }
    let (low, high) = (&TABLE[upper - 1], &TABLE[upper]);
    let share = (size - low.0) / (high.0 - low.0);
    column(low) + (column(high) - column(low)) * share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table_is_met_exactly() {
        for (kb, read, write) in TABLE {
            let bytes = (kb * 1024.0) as u64;
            assert_eq!((read_units(bytes), write_units(bytes)), (read, write), "{kb} KB");
        }
    }

    #[test]
    fn a_small_item_costs_one_unit_and_prices_never_fall() {
        assert_eq!(read(10, Consistency::Session).total(), 1.0);
        assert_eq!(read(10, Consistency::Strong).total(), 2.0);
        let prices: Vec<f64> = (0..4000).map(|kb| write_units(kb * 700)).collect();
        assert!(prices.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn a_replace_costs_a_delete_and_an_insert_with_their_terms() {
        let create = Meter { items_written: 1, bytes_written: 1024, terms_added: 10, ..Meter::default() };
        let replace = Meter { items_removed: 1, bytes_removed: 1024, terms_removed: 10, ..create };
        assert_eq!(write(&create).total(), 6.95);
        assert_eq!(write(&replace).total(), 13.9);
        let patch = Meter { properties_patched: 2, ..replace };
        assert_eq!(write(&patch).total(), 14.7);
    }

    #[test]
    fn a_page_of_a_feed_costs_what_its_items_cost() {
        let page = |items: u32| {
            let meter =
                Meter { items_scanned: items, bytes_scanned: u64::from(items) * 300, ..Meter::default() };
            feed(&meter, Consistency::Session).total()
        };
        assert_eq!([page(0), page(1), page(2), page(100)], [1.0, 1.0, 2.0, 100.0]);
    }

    #[test]
    fn the_lines_add_up_to_the_total() {
        let meter = Meter {
            index_entries_read: 40,
            items_scanned: 7,
            bytes_scanned: 9000,
            bytes_returned: 900,
            ..Meter::default()
        };
        let charge = query(&meter, Consistency::Session);
        let sum: f64 = charge.lines.iter().map(|line| line.count * line.each).sum();
        assert!((charge.total() - sum).abs() < 0.01);
    }
}
