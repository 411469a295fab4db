//! Bulk replication over the API: one request copies or refreshes many items; the response has one
//! line per item, sent as soon as the item is done.

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

use super::holders::{holder_problem, missing_field};
use crate::engine::ArchiveEngine;
use crate::replica::replica_object::ReplicaArrival;
use crate::replication::ReplicationError;
use crate::replication::bulk_replication::{
    self, ReplicaOutcome, ReplicaPutResult, ReplicaSelection, ReplicaSink, ReplicationJob, store_replicas,
};
use crate::replication::copy::ReplicaSource;
use crate::replication::peer::PeerArchive;
use crate::service::ServiceRole;
use crate::web::api::{archive_problem, authorize, json_body};
use crate::web::site::ArchiveSite;

/// Copies items of another Archive: those with a prefix, those changed since a date, or a given
/// list.
pub(super) async fn copy(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object with `from`, and `prefix`, `since` or `items`")]
    struct ApiCopyBody {
        from: Option<String>,
        token: Option<String>,
        prefix: Option<String>,
        since: Option<String>,
        items: Option<Vec<String>>,
    }
    let token = authorize(&site, request.headers(), ServiceRole::Operator)?;
    let (ApiCopyBody { from, token: theirs, prefix, since, items }, _) = json_body(&site, request).await?;
    let from = from.ok_or_else(|| missing_field("`from` is required: the URL of the source Archive"))?;
    let which = match (prefix, since, items) {
        (Some(prefix), None, None) => ReplicaSelection::Prefix(prefix),
        (None, Some(since), None) => {
            let since = bulk_replication::parse_since(&since);
            ReplicaSelection::Since(since.map_err(|shape| missing_field(&format!("`since` is {shape}")))?)
        }
        (None, None, Some(items)) => ReplicaSelection::These(items),
        _ => return Err(missing_field("exactly one of `prefix`, `since` and `items` is required")),
    };
    let peer = PeerArchive::new(&from, theirs).map_err(|error| holder_problem(error.into()))?;
    let items =
        bulk_replication::list_selected(&peer, which).await.map_err(|error| holder_problem(error.into()))?;
    let source = ReplicaSource::new(peer);
    Ok(stream_replication(&site, items.into_iter().map(|item| (item, source.clone())).collect(), token.name))
}

/// Refreshes all copies, each from its own source or all from one Archive.
pub(super) async fn refresh(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, expecting = "an object, with `from` if one Archive is to be asked for all")]
    struct ApiRefreshBody {
        from: Option<String>,
        token: Option<String>,
        #[serde(default)]
        overwrite: bool,
    }
    let token = authorize(&site, request.headers(), ServiceRole::Operator)?;
    let (ApiRefreshBody { from, token: theirs, overwrite }, _) = json_body(&site, request).await?;
    let reading = Arc::clone(&site);
    let copies = super::run_site_blocking(&reading, |site| {
        let holdings = site.desk.read().map_err(archive_problem)?;
        bulk_replication::list_copies(&holdings).map_err(archive_problem)
    });
    let word = from.is_some();
    let source = |peer| ReplicaSource { overwrite, word, follows: !word, ..ReplicaSource::new(peer) };
    let items = bulk_replication::refresh_sources(copies.await?, from.as_deref(), theirs.as_deref(), source);
    let items = items.map_err(|error| holder_problem(error.into()))?;
    Ok(stream_replication(&site, items, token.name))
}

/// Replicates items while the response is read. If the client disconnects, replication stops;
/// repeating the request resumes it.
fn stream_replication(site: &Arc<ArchiveSite>, items: Vec<(String, ReplicaSource)>, by: String) -> Response {
    let (give, lines) = mpsc::unbounded_channel();
    let desk = &site.desk;
    let bringing = ReplicationJob {
        here: Arc::clone(desk),
        data: desk.data().to_owned(),
        put: ApiReplicaWriter { desk: Arc::clone(desk), by },
        tell: move |outcome: ReplicaOutcome| {
            // Strings and a boolean only: serialization cannot fail. Sending fails only if the
            // client has disconnected.
            let line = serde_json::to_vec(&outcome).unwrap_or_default();
            let _ = give.send(Bytes::from([line, b"\n".to_vec()].concat()));
        },
        progress: Arc::new(|_| ()),
    };
    let mut beside = JoinSet::new();
    beside.spawn(bringing.replicate_all(items));
    let body = Body::new(ApiReportStream { lines, beside });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

/// Stores fetched replicas through the engine's writer.
struct ApiReplicaWriter {
    desk: Arc<ArchiveEngine>,
    by: String,
}

impl ReplicaSink for ApiReplicaWriter {
    async fn put(&mut self, brought: Vec<ReplicaArrival>) -> Result<Vec<ReplicaPutResult>, ReplicationError> {
        let by = self.by.clone();
        Ok(self.desk.with_archive(move |archive| Ok(store_replicas(archive, &brought, &by))).await?)
    }
}

/// One line per item, and the running replication: dropping the stream aborts it.
struct ApiReportStream {
    lines: mpsc::UnboundedReceiver<Bytes>,
    beside: JoinSet<Result<(), ReplicationError>>,
}

impl http_body::Body for ApiReportStream {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if let Some(line) = ready!(self.lines.poll_recv(cx)) {
            return Poll::Ready(Some(Ok(Frame::data(line))));
        }
        // Fail the response instead of ending it: missing items must not appear done.
        Poll::Ready(match ready!(self.beside.poll_join_next(cx)) {
            None | Some(Ok(Ok(()))) => None,
            Some(Ok(Err(error))) => {
                tracing::warn!(%error, "bulk request aborted");
                Some(Err(std::io::Error::other(error)))
            }
            Some(Err(error)) => Some(Err(std::io::Error::other(error))),
        })
    }
}
