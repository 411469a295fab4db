//! Collections, over the API: many items copied or brought up to date by one request, each told of in a line as soon as it is done.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body::Frame;
use ibi_http::Problem;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::holders::{holder, not_said};
use crate::holders::HolderError;
use crate::holders::bring::Arrival;
use crate::holders::collection::{self, Bringing, Outcome, Put, Whether, Which, put_into};
use crate::holders::copy::Source;
use crate::holders::peer::Peer;
use crate::service::{Desk, Role};
use crate::web::api::{allowed, json_body, refused};
use crate::web::site::Site;

/// Copies items of another Archive: those of a prefix, those that were changed since a date, or those that are named.
pub(super) async fn copy(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object with `from`, and `prefix`, `since` or `items`")]
    struct What {
        from: Option<String>,
        token: Option<String>,
        prefix: Option<String>,
        since: Option<String>,
        items: Option<Vec<String>>,
    }
    let token = allowed(&site, request.headers(), Role::Operator)?;
    let (What { from, token: theirs, prefix, since, items }, _) = json_body(&site, request).await?;
    let from = from.ok_or_else(|| not_said("say `from`: the URL of the Archive that has them"))?;
    let which = match (prefix, since, items) {
        (Some(prefix), None, None) => Which::Prefix(prefix),
        (None, Some(since), None) => {
            let since = collection::since(&since);
            Which::Since(since.map_err(|shape| not_said(&format!("`since` is {shape}")))?)
        }
        (None, None, Some(items)) => Which::These(items),
        _ => return Err(not_said("say one of `prefix`, `since` and `items`: which ones")),
    };
    let peer = Peer::new(&from, theirs).map_err(|error| holder(error.into()))?;
    let items = collection::list(&peer, which).await.map_err(|error| holder(error.into()))?;
    let source = Source::new(peer);
    Ok(bringing(&site, items.into_iter().map(|item| (item, source.clone())).collect(), token.name))
}

/// Brings all copies up to date, each from where it came, or all from one Archive.
pub(super) async fn refresh(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object, with `from` if one Archive is to be asked for all")]
    struct What {
        from: Option<String>,
        token: Option<String>,
        #[serde(default)]
        overwrite: bool,
    }
    let token = allowed(&site, request.headers(), Role::Operator)?;
    let (What { from, token: theirs, overwrite }, _) = json_body(&site, request).await?;
    let reading = Arc::clone(&site);
    let copies = super::aside(&reading, |site| {
        let holdings = site.desk.read().map_err(refused)?;
        collection::copies(&holdings).map_err(refused)
    });
    let word = from.is_some();
    let source = |peer| Source { overwrite, word, follows: !word, ..Source::new(peer) };
    let items = collection::from_sources(copies.await?, from.as_deref(), theirs.as_deref(), source);
    let items = items.map_err(|error| holder(error.into()))?;
    Ok(bringing(&site, items, token.name))
}

/// Brings items while the answer is read: who hangs up stops it, and goes on with it by asking again.
fn bringing(site: &Arc<Site>, items: Vec<(String, Source)>, by: String) -> Response {
    let (give, lines) = mpsc::unbounded_channel();
    let desk = &site.desk;
    let bringing = Bringing {
        here: Arc::clone(desk),
        data: desk.data().to_owned(),
        put: AtDesk { desk: Arc::clone(desk), by },
        tell: move |outcome: Outcome| {
            // Texts and a boolean: nothing that JSON could refuse. Nobody reads when nobody is there any more.
            let line = serde_json::to_vec(&outcome).unwrap_or_default();
            let _ = give.send(Bytes::from([line, b"\n".to_vec()].concat()));
        },
        progress: Arc::new(|_| ()),
    };
    let mut beside = JoinSet::new();
    beside.spawn(bringing.all(items));
    let body = Body::new(Lines { lines, beside });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

/// The one writer puts what was fetched here.
struct AtDesk {
    desk: Arc<Desk>,
    by: String,
}

impl Put for AtDesk {
    async fn put(&mut self, brought: Vec<Arrival>) -> Result<Vec<Whether>, HolderError> {
        let by = self.by.clone();
        Ok(self.desk.work(move |archive| Ok(put_into(archive, &brought, &by))).await?)
    }
}

/// A line for each item, and who brings them: dropped, that stops.
struct Lines {
    lines: mpsc::UnboundedReceiver<Bytes>,
    beside: JoinSet<Result<(), HolderError>>,
}

impl http_body::Body for Lines {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if let Some(line) = ready!(self.lines.poll_recv(cx)) {
            return Poll::Ready(Some(Ok(Frame::data(line))));
        }
        // An answer that is cut off is no answer: what is missing is not told as brought.
        Poll::Ready(match ready!(self.beside.poll_join_next(cx)) {
            None | Some(Ok(Ok(()))) => None,
            Some(Ok(Err(error))) => {
                tracing::warn!(%error, "a collection was not brought to its end");
                Some(Err(std::io::Error::other(error)))
            }
            Some(Err(error)) => Some(Err(std::io::Error::other(error))),
        })
    }
}
