//! Copying a container while it is written to, and giving it another key, with a kill in the middle of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use orrery_testkit::{Client, Crowd, Field, Model};
use serde_json::{Value, json};

use crate::report::{Line, Report, Wanted};
use crate::settings::Settings;
use crate::site::{DATABASE, Ground, Site};

const SECTION: &str = "Copy jobs, 1,000 writes/s meanwhile, SIGKILL in the middle";
const LOADERS: u64 = 8;
const WRITERS: u64 = 16;
const WRITES_PER_SECOND: f64 = 1_000.0;
/// The job is to go as fast as it can.
const RATE: u32 = 1_000_000;
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(3_600);

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let ground = Ground::new(&settings.server)?;
    let mut site = ground.start()?;
    site.create_database()?;
    let field = Field { database: DATABASE.into(), container: "source".into(), items: settings.items() };
    create(&site, "source", &["/pk"])?;
    create(&site, "target", &["/city"])?;
    let began = Instant::now();
    field.load(site.port(), LOADERS);
    let rate = settings.items() as f64 / began.elapsed().as_secs_f64();
    report.add(Line::new(SECTION, format!("loaded {} items", settings.items())).figure("/s", rate));
    let name = |container: &str| json!({"database": DATABASE, "container": container});
    let copy = json!({"kind": "copy", "source": name("source"), "target": name("target"), "rate": RATE});
    let model = watch(&ground, &mut site, &field, copy, &Model::new(), ("copy", true), report)?;
    verdict(&site, &field, "source", &model, report)?;
    verdict(&site, &field, "target", &model, report)?;
    let key = json!({"paths": ["/region"], "kind": "Hash", "version": 2});
    let rekey = json!({"kind": "rekey", "container": name("source"), "partitionKey": key, "rate": RATE,
        "completesItself": false});
    let model = watch(&ground, &mut site, &field, rekey, &model, ("new key in place", false), report)?;
    verdict(&site, &field, "source", &model, report)?;
    site.stop();
    Ok(())
}

fn create(site: &Site, id: &str, paths: &[&str]) -> Result<()> {
    let body = json!({"id": id, "partitionKey": {"paths": paths, "kind": "Hash", "version": 2}});
    let (status, answer) = ask(site.port(), "POST", &format!("/dbs/{DATABASE}/colls"), &body)?;
    ensure!(status == 201, "{answer}");
    Ok(())
}

fn ask(port: u16, verb: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let headers = [("x-ms-offer-throughput", "12000")];
    let headers = if path.ends_with("/colls") { &headers[..] } else { &[] };
    let reply = Client::new(port).send(verb, path, headers, body.as_bytes())?;
    Ok((reply.status, reply.json()))
}

/// Runs a job to its end among writers, with a kill when half of the items are copied.
fn watch(
    ground: &Ground,
    site: &mut Site,
    field: &Field,
    body: Value,
    before: &Model,
    (what, stops): (&str, bool),
    report: &mut Report,
) -> Result<Model> {
    let port = Arc::new(AtomicU16::new(site.port()));
    let crowd = Crowd::start_with(field, port.clone(), WRITERS, WRITES_PER_SECOND, before);
    let (began, written) = (Instant::now(), crowd.written());
    let (status, job) = ask(site.port(), "POST", "/_orrery/jobs", &body)?;
    ensure!(status == 201, "{job}");
    let path = format!("/_orrery/jobs/{}", job["id"].as_str().unwrap_or_default());
    until(site, &path, |job| job["itemsCopied"].as_u64() > Some(field.items / 2))?;
    let killed = Instant::now();
    site.kill_and_start(ground)?;
    port.store(site.port(), Ordering::Relaxed);
    let away = killed.elapsed();
    let job = until(site, &path, |job| job["phase"] == "following")?;
    let copied = began.elapsed();
    let items = job["itemsCopied"].as_u64().unwrap_or_default();
    until(site, &path, |job| job["changesPending"].as_u64() < Some(1_000))?;
    let caught_up = began.elapsed();
    let writes = (crowd.written() - written) as f64 / caught_up.as_secs_f64();
    // Writers of a copy would go on in the source alone; those of a new key are carried over.
    let (model, crowd) = if stops { (Some(crowd.stop()), None) } else { (None, Some(crowd)) };
    ask(site.port(), "POST", &format!("{path}/complete"), &Value::Null)?;
    let job = until(site, &path, |job| job["phase"] == "over")?;
    ensure!(job["state"] == "completed", "{job}");
    let model = model.unwrap_or_else(|| {
        thread::sleep(Duration::from_secs(2));
        crowd.map(Crowd::stop).unwrap_or_default()
    });
    report.add(
        Line::new(SECTION, format!("{what}: {items} items, {} changes", job["changesApplied"]))
            .figure("items/s", items as f64 / (copied - away).as_secs_f64())
            .figure("s to copy", copied.as_secs_f64())
            .figure("s to catch up", (caught_up - copied).as_secs_f64())
            .figure("writes/s", writes)
            .figure("ms held", job["cutOver"]["heldMs"].as_f64().unwrap_or_default()),
    );
    let mut all = before.clone();
    all.extend(model);
    Ok(all)
}

fn until(site: &Site, path: &str, what: impl Fn(&Value) -> bool) -> Result<Value> {
    let began = Instant::now();
    loop {
        let (_, job) = ask(site.port(), "GET", path, &Value::Null)?;
        if what(&job) || job["phase"] == "over" {
            return Ok(job);
        }
        ensure!(began.elapsed() < PATIENCE, "the job does not come on: {job}");
        thread::sleep(LOOK);
    }
}

fn verdict(site: &Site, field: &Field, container: &str, model: &Model, report: &mut Report) -> Result<()> {
    let found = field.read(site.port(), container);
    let findings = field.compare(&found, model);
    for finding in &findings {
        println!("{container}: {finding}");
    }
    report.add(Line::new(SECTION, format!("{container}: full compare of {} items", found.len())).ratio(
        "differences",
        findings.len() as f64,
        Wanted::AtMost(0.0),
    ));
    Ok(())
}
