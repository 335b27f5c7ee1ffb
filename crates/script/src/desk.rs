//! Where the prelude's `call` and `log` arrive: the host, lent to one script.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use orrery_doc::{Value as Field, json};
use rquickjs::{Ctx, Function, Value};

use crate::clock::Clock;
use crate::{Answer, Collection, Feed, Host, Limits, Write, WriteKind, WriteOptions};

pub(crate) struct Desk<H> {
    /// Taken back when the script is done, also if closures of the engine still know the desk.
    host: RefCell<Option<H>>,
    log: RefCell<String>,
    operations: Cell<u32>,
    limits: Limits,
}

impl<H: Host + 'static> Desk<H> {
    pub fn new(host: H, limits: &Limits) -> Rc<Desk<H>> {
        Rc::new(Desk {
            host: RefCell::new(Some(host)),
            log: RefCell::default(),
            operations: Cell::new(0),
            limits: limits.clone(),
        })
    }

    pub fn collection(&self) -> Collection {
        self.host.borrow().as_ref().map(Host::collection).unwrap_or_default()
    }

    pub fn close(&self) -> (H, String, u32) {
        let host = self.host.borrow_mut().take().expect("the host is taken back once, at the end");
        (host, self.log.take(), self.operations.get())
    }

    /// Bodies and options come as JSON text; the prelude made the options, so their shape is known.
    fn serve(&self, operation: &str, link: &str, body: Option<&str>, options: &str) -> Answer {
        let mut host = self.host.borrow_mut();
        let Some(host) = host.as_mut() else { return Answer::NotAccepted };
        let Ok(options) = json::parse(options.as_bytes(), json::DEFAULT_MAX_DEPTH) else {
            return Answer::refused(400, "The options are not JSON.");
        };
        let options = options.root();
        let kind = match operation {
            "create" => WriteKind::Create,
            "upsert" => WriteKind::Upsert,
            "replace" => WriteKind::Replace,
            "delete" => WriteKind::Delete,
            "read" => return host.read(link, options.get("ifNoneMatch").as_str()),
            _ => return host.page(feed(link, body, options)),
        };
        host.write(Write { kind, link, body: body.unwrap_or_default(), options: write_options(options) })
    }

    fn accepts(&self, clock: &Clock) -> bool {
        let operations = self.operations.get();
        if operations >= self.limits.operations || clock.elapsed() >= self.limits.accepting {
            return false;
        }
        self.operations.set(operations + 1);
        true
    }

    fn keep_line(&self, line: &str) {
        let mut log = self.log.borrow_mut();
        let room = self.limits.log_bytes.saturating_sub(log.len());
        let end = (0..=line.len().min(room)).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
        log.push_str(&line[..end]);
    }
}

fn feed<'a>(link: &'a str, query: Option<&'a str>, options: Field<'a>) -> Feed<'a> {
    let page_size = options.get("pageSize").as_f64().map(|size| size as u32);
    Feed { link, query, page_size, continuation: options.get("continuation").as_str() }
}

fn write_options(options: Field<'_>) -> WriteOptions {
    let text = |name: &str| options.get(name).as_str().map(str::to_owned);
    WriteOptions {
        etag: text("etag"),
        index_action: text("indexAction"),
        disable_automatic_id: options.get("disableAutomaticIdGeneration").as_bool() == Some(true),
    }
}

/// The native `call` of the prelude. The answer is handed to the prelude's `reply` as plain values, because
/// properties set from here would run setters that a script put on a prototype.
pub(crate) fn call<'js, H: Host + 'static>(
    desk: &Rc<Desk<H>>,
    clock: &Rc<Clock>,
) -> impl Fn(Ctx<'js>, String, String, Option<String>, String, Function<'js>) -> rquickjs::Result<Value<'js>> + 'js
{
    let (desk, clock) = (Rc::clone(desk), Rc::clone(clock));
    move |ctx, operation, link, body, options, reply| {
        if !desk.accepts(&clock) {
            return Ok(Value::new_bool(ctx, false));
        }
        match desk.serve(&operation, &link, body.as_deref(), &options) {
            Answer::NotAccepted => Ok(Value::new_bool(ctx, false)),
            Answer::Done(Ok(done)) => reply.call((200, done.body, done.continuation, done.not_modified)),
            Answer::Done(Err(refusal)) => {
                // A refusal is one also if the host forgot to say so.
                reply.call((refusal.status.max(400), refusal.message, None::<String>, false))
            }
        }
    }
}

pub(crate) fn log<H: Host + 'static>(desk: &Rc<Desk<H>>) -> impl Fn(String) + 'static {
    let desk = Rc::clone(desk);
    move |line| desk.keep_line(&line)
}
