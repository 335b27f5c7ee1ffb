//! Direct mode against HTTPS, in turns: point reads and durable creates with as many requests under way.
//!
//! Both sides have TLS, and the same server, container and items. A client in direct mode sends many requests over few
//! connections, one over HTTP/1.1 opens a connection for each.

use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use orrery_testkit::{EMULATOR_KEY, Signer};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::item::{self, Address};
use crate::load::{self, Plan, Source, Wire};
use crate::report::{Report, Wanted};
use crate::requests::{Container, Creates, Reads};
use crate::rntbd::{Frame, ITEM_CREATE, ITEM_READ, token};
use crate::rounds::Rounds;
use crate::settings::Settings;
use crate::site::{DATABASE, Ground, Site};
use crate::tls::Tls;

const READS: &str = "Point reads of 1 KiB items inside TLS, 64 under way";
const CREATES: &str = "Durable creates of 1 KiB items inside TLS, 64 under way";
const NAME: &str = "direct";
const ITEMS: u64 = 20_000;
const UNDER_WAY: usize = 64;
const CONNECTIONS: usize = 4;

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let ground = Ground::new(&settings.server)?;
    let site = ground.start()?;
    site.create_database()?;
    let container = site.create_container(NAME, 1)?;
    site.load(&container, 0, ITEMS)?;
    site.rest();
    let tls = Tls::to(&site)?;
    let place = Rc::new(Place::find(&site, &container, &tls)?);
    let plan = |connections| Plan { address: container.address, connections, time: settings.round() };
    let (https, direct) = (Wire::Https(tls.clone()), Wire::Direct(tls, UNDER_WAY / CONNECTIONS));
    let (mut ours, mut theirs) = (Rounds::default(), Rounds::default());
    for _ in 0..settings.rounds() {
        let reads = Reads::of_loaded(&container, ITEMS, ITEMS);
        theirs.add(&site.measure_over(&https, plan(UNDER_WAY), reads)?);
        ours.add(&site.measure_over(&direct, plan(CONNECTIONS), DirectReads::new(&place))?);
    }
    show(report, READS, 0.7, &mut ours, &mut theirs);
    let (mut ours, mut theirs, mut made) = (Rounds::default(), Rounds::default(), 0);
    for _ in 0..settings.rounds() {
        let measured =
            site.measure_over(&https, plan(UNDER_WAY), Creates::new(&container, made, u64::MAX))?;
        made += measured.outcome.requests;
        theirs.add(&measured);
        let measured = site.measure_over(&direct, plan(CONNECTIONS), DirectCreates::new(&place, made))?;
        made += measured.outcome.requests;
        ours.add(&measured);
    }
    show(report, CREATES, 1.0, &mut ours, &mut theirs);
    site.stop();
    Ok(())
}

fn show(report: &mut Report, section: &'static str, share: f64, ours: &mut Rounds, theirs: &mut Rounds) {
    let (rate, processor) = (ours.ratio_to(theirs), 1.0 / ours.processor_ratio_to(theirs));
    report.add(theirs.line(section, format!("HTTPS, {UNDER_WAY} connections")));
    report.add(
        ours.line(section, format!("RNTBD, {CONNECTIONS} connections"))
            .ratio("HTTPS", rate, Wanted::AtLeast(1.0))
            .ratio("HTTPS, by processor time of the server", processor, Wanted::AtMost(share)),
    );
}

/// What each frame says of its container.
struct Place {
    signer: Signer,
    rid: String,
    rid_bytes: Vec<u8>,
    /// As the server has told it with the address of the partition.
    replica: String,
}

impl Place {
    fn find(site: &Site, container: &Container, tls: &Tls) -> Result<Place> {
        let signer = Signer::new(EMULATOR_KEY);
        let path = container.items.trim_end_matches("/docs");
        let reply = site.client().send("GET", path, &[], b"")?.json();
        let rid = reply["_rid"].as_str().context("a container has a RID")?.to_owned();
        let told = load::runtime()?.block_on(addresses(container, tls, &signer, &rid))?;
        let uri = told["Addresss"][0]["physcialUri"].as_str().context("no address")?;
        let path = uri.splitn(4, '/').nth(3).context("an address has a path")?;
        let replica = format!("/{}", path.trim_end_matches('/'));
        // The last eight bytes of a container's RID in text are its own, whatever letters stand for.
        let rid_bytes = rid_bytes(&rid).context("a RID is text of 64 letters")?;
        Ok(Place { signer, rid, rid_bytes, replica })
    }

    /// The tokens that reads and creates have in common.
    fn begin<'b>(
        &self,
        out: &'b mut Vec<u8>,
        kind: (u16, u16),
        authorization: &str,
        item: &Address,
    ) -> Frame<'b> {
        Frame::begin(out, kind)
            .bytes(token::RESOURCE_ID, &self.rid_bytes)
            .text(token::AUTHORIZATION, authorization)
            .small_text(token::DATE, self.signer.date())
            .text(token::REPLICA_PATH, &self.replica)
            .text(token::DATABASE, DATABASE)
            .text(token::CONTAINER, NAME)
            .text(token::PARTITION_KEY, &format!("[\"{}\"]", item.key))
            .text(token::CONTAINER_RID, &self.rid)
            .number(token::TIME_LEFT, 30_000)
            .number(token::ATTEMPTS, 0)
    }

    fn read(&self, item: &Address) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        let link = format!("dbs/{DATABASE}/colls/{NAME}/docs/{}", item.id);
        let authorization = self.signer.authorization_of("get", "docs", &link);
        self.begin(&mut out, ITEM_READ, &authorization, item).text(token::ITEM, &item.id).end(b"");
        out
    }
}

/// Where the only partition of a container is.
async fn addresses(container: &Container, tls: &Tls, signer: &Signer, rid: &str) -> Result<Value> {
    let mut stream = tls.open(TcpStream::connect(container.address).await?).await?;
    let lower = rid.to_lowercase();
    let request = format!(
        "GET //addresses/?$resolveFor=dbs%2fd%2fcolls%2f{rid}%2fdocs&$partitionKeyRangeIds=0 HTTP/1.1\r\n\
         host: localhost:{}\r\nauthorization: {}\r\nx-ms-date: {}\r\nx-ms-version: 2020-07-15\r\n\r\n",
        container.address.port(),
        signer.authorization_of("get", "docs", &lower),
        signer.date(),
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = vec![0; 4096];
    let (status, length) = load::read_answer(&mut stream, &mut answer).await?;
    let text = std::str::from_utf8(&answer[..length])?;
    let (_, body) = text.split_once("\r\n\r\n").context("an answer has a head")?;
    ensure!(status == 200, "no addresses: {status} {body}");
    Ok(serde_json::from_str(body)?)
}

/// RIDs are base64 with `-` for `/`.
fn rid_bytes(rid: &str) -> Option<Vec<u8>> {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for letter in rid.trim_end_matches('=').bytes() {
        bits = bits << 6 | letters.iter().position(|known| *known == letter)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

/// Point reads, signed beforehand and sent round and round in a random order.
struct DirectReads {
    frames: Vec<Vec<u8>>,
    turn: u64,
}

impl DirectReads {
    fn new(place: &Place) -> DirectReads {
        let frames = (0..ITEMS).map(|turn| place.read(&item::loaded(item::mix(turn) % ITEMS))).collect();
        DirectReads { frames, turn: 0 }
    }
}

impl Source for DirectReads {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        self.turn += 1;
        let place = item::mix(self.turn) % self.frames.len() as u64;
        request.extend_from_slice(&self.frames[place as usize]);
        true
    }

    fn status(&self) -> u16 {
        200
    }
}

/// Single creates of new items. The signature is that of the feed, so one serves all.
struct DirectCreates {
    place: Rc<Place>,
    authorization: String,
    next: u64,
    body: String,
}

impl DirectCreates {
    fn new(place: &Rc<Place>, first: u64) -> DirectCreates {
        let link = format!("dbs/{DATABASE}/colls/{NAME}");
        let authorization = place.signer.authorization_of("post", "docs", &link);
        DirectCreates { place: Rc::clone(place), authorization, next: first, body: String::new() }
    }
}

impl Source for DirectCreates {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        let address = item::created(self.next);
        self.body.clear();
        item::write_json(&address, self.next, &mut self.body);
        self.next += 1;
        self.place.begin(request, ITEM_CREATE, &self.authorization, &address).end(self.body.as_bytes());
        true
    }

    fn status(&self) -> u16 {
        201
    }
}
