//! How evenly keys of everyday kinds spread over physical partitions.

use orrery_doc::{
    PartitionKey, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, boundaries, epk,
};

const KEYS: u64 = 1_000_000;
const PARTITIONS: u32 = 16;
/// The fullest partition over the mean.
const WORST: f64 = 1.05;

/// Makes the key of a number, as JSON.
type Make = fn(u64) -> String;

fn definition(version: PartitionKeyVersion) -> PartitionKeyDef {
    let paths = vec![Path::parse_property("/pk").expect("a path")];
    PartitionKeyDef { kind: PartitionKeyKind::Hash, version, paths }
}

/// Mixes a number well enough to make GUIDs of it.
fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

fn guid(number: u64) -> String {
    let (a, b) = (mixed(number), mixed(number ^ u64::MAX));
    let (low, high) = (b & 0xFFFF_FFFF_FFFF, b >> 48);
    format!("\"{:08x}-{:04x}-4{:03x}-{high:04x}-{low:012x}\"", a >> 32, (a >> 16) & 0xFFFF, a & 0xFFF)
}

fn email(number: u64) -> String {
    const NAMES: [&str; 5] = ["anna", "li.wei", "j.smith", "o-brien", "maria.garcia"];
    const HOSTS: [&str; 4] = ["example.com", "mail.example.org", "contoso.com", "fabrikam.net"];
    let (name, host) = (NAMES[(number % 5) as usize], HOSTS[(number / 5 % 4) as usize]);
    format!("\"{name}{number}@{host}\"")
}

/// A minute of a calendar with months of thirty days, which is as good as any other here.
fn date(number: u64) -> String {
    let (minute, hour, day) = (number % 60, number / 60 % 24, number / 1_440 % 30 + 1);
    let (month, year) = (number / 43_200 % 12 + 1, 2020 + number / 518_400);
    format!("\"{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:00Z\"")
}

#[test]
fn a_million_keys_of_each_kind_spread_evenly_over_sixteen_partitions() {
    let kinds: [(&str, Make); 4] = [
        ("sequential integers", |number| number.to_string()),
        ("GUIDs", guid),
        ("e-mail addresses", email),
        ("dates", date),
    ];
    // The older hash is tried with one kind only: this takes its time.
    for (version, kinds) in [(PartitionKeyVersion::V2, &kinds[..]), (PartitionKeyVersion::V1, &kinds[..1])] {
        let definition = definition(version);
        let edges = boundaries(&definition, PARTITIONS);
        for (kind, make) in kinds {
            let mut counts = [0u64; PARTITIONS as usize];
            for number in 0..KEYS {
                let key = PartitionKey::from_header(&format!("[{}]", make(number))).expect("a key");
                let place = epk(&definition, &key);
                counts[edges.partition_point(|edge| *edge <= place)] += 1;
            }
            let mean = KEYS as f64 / f64::from(PARTITIONS);
            let worst = counts.iter().copied().max().unwrap_or(0) as f64 / mean;
            println!(
                "{kind}, version {version:?}: the fullest of {PARTITIONS} partitions has {worst:.4} of the mean"
            );
            assert!(worst <= WORST, "{kind}: {counts:?}");
        }
    }
}
