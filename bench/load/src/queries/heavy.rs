//! Queries that look at everything: one at a time, on all partitions at once, as an SDK with parallelism sends them.

use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use orrery_testkit::Client;
use serde_json::json;

use super::{SECTION, Target};
use crate::latency::median;
use crate::machine;
use crate::postgres::Postgres;
use crate::report::{Line, Report, Wanted};
use crate::settings::Settings;

pub struct Heavy {
    pub name: &'static str,
    query: &'static str,
    peer: &'static str,
    /// Whether the figure of interest is how fast items are looked at.
    is_scan: bool,
}

/// The queries as partitions get them: rewritten where clients merge.
pub const HEAVY: [Heavy; 3] = [
    Heavy {
        name: "COUNT over all",
        query: "SELECT VALUE [{\"item\": COUNT(1)}] FROM c",
        peer: "select count(*)::text from items",
        is_scan: false,
    },
    Heavy {
        name: "GROUP BY over all, 1000 groups",
        query: "SELECT [{\"item\": c.city}] AS groupByItems, {\"city\": c.city, \"n\": {\"item\": COUNT(1)}} AS payload \
                FROM c GROUP BY c.city",
        peer: "select (doc->>'city') || count(*)::text from items group by doc->>'city'",
        is_scan: false,
    },
    Heavy {
        name: "scan with a filter that no index serves",
        query: "SELECT VALUE c.id FROM c WHERE (c.visits + c.age) % 100003 = 50001",
        peer: "select doc->>'id' from items where ((doc->>'visits')::int + (doc->>'age')::int) % 100003 = 50001",
        is_scan: true,
    },
];

/// Seconds of one query, on the clock and of the server's processors.
#[derive(Default)]
struct Times {
    elapsed: Vec<f64>,
    processor: Vec<f64>,
}

pub fn run(
    settings: &Settings,
    report: &mut Report,
    target: &Target<'_>,
    peer: Option<&Postgres>,
) -> Result<()> {
    for heavy in &HEAVY {
        let (mut ours, mut theirs) = (Times::default(), Times::default());
        for _ in 0..settings.rounds() {
            sweep(target, heavy, &mut ours)?;
            if let Some(peer) = peer {
                theirs.elapsed.push(peer.time_statement(heavy.peer)?.as_secs_f64());
            }
        }
        show(report, heavy, target, &ours, peer.map(|_| &theirs));
    }
    Ok(())
}

fn show(report: &mut Report, heavy: &Heavy, target: &Target<'_>, ours: &Times, theirs: Option<&Times>) {
    let (elapsed, processor) = (median(&ours.elapsed), median(&ours.processor));
    let items = target.items as f64;
    let mut line = Line::new(SECTION, format!("orrery: {}", heavy.name))
        .figure("ms", elapsed * 1e3)
        .figure("ms of server", processor * 1e3);
    if heavy.is_scan {
        // A processor that did nothing else would do so much.
        let busy = processor.max(0.01);
        line = line
            .figure("items/s", items / elapsed)
            .figure("items/s per core", items / busy)
            .figure("MiB/s per core", items * 1024.0 / busy / f64::from(1 << 20));
    }
    if let Some(theirs) = theirs {
        let peer = median(&theirs.elapsed);
        report.add(Line::new(SECTION, format!("PostgreSQL: {}", heavy.name)).figure("ms", peer * 1e3));
        line = line.ratio("PostgreSQL, by speed", peer / elapsed, Wanted::AtLeast(1.0));
    }
    report.add(line);
}

impl Heavy {
    /// Asks all ranges at once and waits for the last of them.
    pub fn ask(&self, target: &Target<'_>) -> Result<()> {
        thread::scope(|scope| {
            let asked: Vec<_> = target
                .ranges
                .iter()
                .map(|range| scope.spawn(move || drain(target, self.query, range)))
                .collect();
            for answer in asked {
                answer.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            }
            Ok(())
        })
    }
}

fn sweep(target: &Target<'_>, heavy: &Heavy, times: &mut Times) -> Result<()> {
    let processor = machine::processor_seconds(target.site.id());
    let began = Instant::now();
    heavy.ask(target)?;
    times.elapsed.push(began.elapsed().as_secs_f64());
    times.processor.push(machine::processor_seconds(target.site.id()) - processor);
    Ok(())
}

/// All pages of one range.
fn drain(target: &Target<'_>, query: &str, range: &str) -> Result<u64> {
    let mut client = Client::new(target.container.address.port());
    let body = json!({"query": query, "parameters": []}).to_string();
    let (mut rows, mut continuation) = (0, None::<String>);
    loop {
        let mut headers = vec![
            ("x-ms-documentdb-isquery", "True"),
            ("x-ms-max-item-count", "10000"),
            ("x-ms-documentdb-partitionkeyrangeid", range),
        ];
        headers.extend(continuation.as_deref().map(|token| ("x-ms-continuation", token)));
        let reply = client.send("POST", &target.container.items, &headers, body.as_bytes())?;
        ensure!(reply.status == 200, "{query}: {}", String::from_utf8_lossy(&reply.body));
        rows += reply.json()["Documents"].as_array().map(Vec::len).context("no rows")? as u64;
        continuation = reply.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            return Ok(rows);
        }
    }
}
