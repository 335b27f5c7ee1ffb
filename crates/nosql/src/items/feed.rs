//! Reading items in pages.

use std::sync::Arc;

use orrery_cluster::{Container, PageOptions};

use crate::call::Call;
use crate::errors::Refusal;
use crate::items::query::crosses;
use crate::items::render::Renderer;
use crate::items::{changes, continuation, options, scope};
use crate::respond::Reply;

/// A GET of `docs`: all items of the scope, few of them in the order of their creation.
pub(crate) async fn read(call: &Call<'_>, container: &Arc<Container>) -> Result<Reply, Refusal> {
    if let Some(mode) = call.headers.a_im {
        return changes::read(call, container, mode, &[]).await;
    }
    let scope = scope::of_request(container, call.headers)?;
    let options = PageOptions {
        continuation: options::cursor(call.headers)?,
        ..options::page(call.headers, call.db.account().consistency, call.page_bytes)?
    };
    let page = call.db.read_feed(container, &scope, &options).await?;
    let renderer = Renderer::new(container);
    let body = match call.headers.wants_binary_feed() {
        true => renderer.binary_feed(&page.items),
        false => renderer.feed(&page.items),
    };
    let token = page.continuation.as_ref().map(|cursor| {
        let token = continuation::write(cursor);
        match crosses(container, &scope) {
            true => continuation::wrap(token, cursor.place.as_ref(), container, None),
            false => token,
        }
    });
    Ok(Reply::ok(body).page(page.items.len(), token).receipt(page.receipt).in_container(container))
}
