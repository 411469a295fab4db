//! The Archive service, at the address of its own identifier (clauses 3.3 to 3.6), and labels
//! without `/col`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::{Problem, telemetry};
use ibi_protocol::{Pairs, WireRequest as Message, answer};
use percent_encoding::percent_decode_str;
use tokio::time::Instant;

use crate::ArchiveError;
use crate::archive::Holdings;
use crate::service::acknowledgment::count_acknowledgment;
use crate::service::address;
use crate::service::answer::{ServiceAnswerContext, answer_request as answer_url};
use crate::web::item_routes::PageRequest;
use crate::web::pages::problem_response;
use crate::web::persistent_url;
use crate::web::site::{ArchiveSite, problem};

/// Fallback route: the service itself, or a persistent URL of an item held here.
pub(super) async fn get(State(site): State<Arc<ArchiveSite>>, request: Request) -> Response {
    let (uri, headers) = (request.uri(), request.headers());
    let refused = |problem| problem_response(headers, uri.query(), problem);
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let problem = Problem::new(status, "method", "Method not allowed", "only GET and HEAD are supported");
        return ([(header::ALLOW, "GET, HEAD")], refused(problem)).into_response();
    }
    let path = percent_decode_str(uri.path().trim_matches('/')).decode_utf8_lossy();
    let query = uri.query().unwrap_or_default();
    if !is_visit(query)
        && let Some((label, "")) = address::split_label(&path)
    {
        match site.desk.read() {
            Ok(holdings) if holdings.is_service(label) => return serve(&site, &holdings, query),
            Ok(_) => {}
            Err(error) => return refused(problem(&error)),
        }
    }
    let client = PageRequest::of(&site, &request);
    persistent_url::serve_persistent_url(&site, &client).await.unwrap_or_else(refused)
}

/// Whether a query at the service's own address belongs to a persistent URL or a page. A service
/// request without its subject is a bad request, not a visit (clause 3.6).
fn is_visit(query: &str) -> bool {
    let is_own = |pair: &str| pair.starts_with("ibiurl.") || pair.starts_with("lang=");
    query.is_empty() || query == "?" || query.split('&').all(is_own)
}

/// Fast path for resolvers, whose requests are the most frequent: answers a service request under
/// the exact label announced to them, before routing. Other spellings and errors are left to
/// [`get`].
pub(super) fn answer_resolver(site: &ArchiveSite, method: &Method, uri: &Uri) -> Option<Response> {
    let query = uri.query().filter(|query| method == Method::GET && query.starts_with("servicesubject="))?;
    let begun = Instant::now();
    let holdings = site.desk.read().ok()?;
    let label = uri.path().strip_prefix('/')?;
    let settings = holdings.settings();
    if settings.announced_label() != label && !settings.service.iter().any(|own| own == label) {
        return None;
    }
    let response = serve(site, &holdings, query);
    telemetry::record_request(None, method, uri, begun, &response);
    Some(response)
}

fn serve(site: &ArchiveSite, holdings: &Holdings, query: &str) -> Response {
    match Message::parse(query) {
        Ok(Message::InclusionConfirmation) => pairs_response(StatusCode::OK, &answer::confirmation()),
        Ok(Message::Url(request)) => {
            let asked = ServiceAnswerContext { address: &site.address, keys: &site.keys, now: site.now() };
            match answer_url(holdings, &request, &asked) {
                Ok(found) => pairs_response(StatusCode::OK, &found),
                Err(error) => failed_response(&error),
            }
        }
        Ok(Message::Acknowledgment(acknowledgment)) => {
            let (keys, statistics) = (&site.keys, &site.statistics);
            count_acknowledgment(holdings, &acknowledgment, keys, statistics, site.now());
            // The same response whether the key is valid or not (threat K8).
            pairs_response(StatusCode::OK, &answer::acknowledged())
        }
        Ok(other) => {
            let mut error = Pairs::new();
            error.push("error", "unknown-servicesubject");
            error.push("message", &format!("{} is for resolvers, and this is an Archive", other.subject()));
            pairs_response(StatusCode::BAD_REQUEST, &error)
        }
        Err(error) => pairs_response(StatusCode::BAD_REQUEST, &error.to_pairs()),
    }
}

fn failed_response(error: &ArchiveError) -> Response {
    let problem = problem(error);
    let mut told = Pairs::new();
    told.push("error", "failed");
    told.push("message", problem.detail());
    pairs_response(
        if problem.status().is_server_error() { problem.status() } else { StatusCode::BAD_REQUEST },
        &told,
    )
}

fn pairs_response(status: StatusCode, pairs: &Pairs) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let fresh = HeaderValue::from_static("no-store");
    let mut response = Response::new(Body::from(pairs.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.headers_mut().insert(header::CACHE_CONTROL, fresh);
    response
}
