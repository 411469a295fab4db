//! What happens, told: lines of JSON on standard error for requests that change something or fail (with `IBI_LOG=debug`, for
//! all), and figures for Prometheus.
//!
//! A line has the path and never the query, in which keys and addresses of people may stand.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use http::{Method, Uri};
use metrics::{Counter, Histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::time::Instant;
use tracing_subscriber::EnvFilter;

use crate::tokens::PREFIX;

/// Bounds of the times that are counted, in seconds.
const TIMES: &[f64] = &[0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Starts to write the log to standard error: what matters, or what `IBI_LOG` asks for.
pub fn log() {
    let filter = EnvFilter::try_from_env("IBI_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let started = tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::io::stderr);
    // Somebody who embeds us may have a log already.
    let _ = started.with_target(false).flatten_event(true).try_init();
}

/// The figures of this process.
#[derive(Clone, Debug)]
pub struct Figures(PrometheusHandle);

impl Figures {
    /// Starts to count. Called again, what is counted goes on.
    pub fn start() -> Option<Self> {
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), TIMES)
            .ok()?;
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).ok()?;
        Some(Self(handle))
    }

    /// As Prometheus reads them.
    pub fn text(&self) -> String {
        self.0.render()
    }

    /// Sums up what was measured. To be called now and then: until it is, every measurement is remembered.
    pub fn sum_up(&self) {
        self.0.run_upkeep();
    }
}

/// What answers of one status are counted by.
type OfStatus = (u16, Counter, Histogram);

thread_local! {
    /// What requests are counted by: of each route, by status. Looking them up by their names costs more than counting.
    static COUNTED: RefCell<HashMap<String, Vec<OfStatus>>> = RefCell::default();
}

fn count(route: &str, status: u16, seconds: f64) {
    COUNTED.with_borrow_mut(|counted| {
        if !counted.contains_key(route) {
            counted.insert(route.to_owned(), Vec::new());
        }
        let Some(of_route) = counted.get_mut(route) else { return };
        if !of_route.iter().any(|(known, ..)| *known == status) {
            let (name, text) = (route.to_owned(), status.to_string());
            let requests = metrics::counter!("ibi_requests_total", "route" => name.clone(), "status" => text);
            of_route.push((status, requests, metrics::histogram!("ibi_request_seconds", "route" => name)));
        }
        if let Some((_, requests, times)) = of_route.iter().find(|(known, ..)| *known == status) {
            requests.increment(1);
            times.record(seconds);
        }
    });
}

/// A path, without what somebody put there who meant it for elsewhere: a query whose `?` was encoded, and tokens.
fn without_secrets(path: &str) -> Cow<'_, str> {
    let end = path.match_indices('%').find(|(at, _)| path[*at..].to_ascii_lowercase().starts_with("%3f"));
    let path = end.map_or(path, |(at, _)| &path[..at]);
    match path.to_ascii_lowercase().find(PREFIX) {
        None => path.into(),
        Some(at) => format!("{}…", &path[..at]).into(),
    }
}

/// A layer that tells of each request.
pub async fn told(request: Request, next: Next) -> Response {
    let begun = Instant::now();
    // These share their text with the request, which most of the time is all that is needed of them.
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    tell(matched.as_ref().map(MatchedPath::as_str), &method, &uri, begun, &response);
    response
}

/// Tells of a request that was answered, and by which route, if by one.
pub fn tell(route: Option<&str>, method: &Method, uri: &Uri, begun: Instant, response: &Response) {
    let (status, took) = (response.status().as_u16(), begun.elapsed());
    // Paths are without number: what they are matched by is not.
    count(route.unwrap_or("other"), status, took.as_secs_f64());
    // Only made when it is told.
    let path = || without_secrets(uri.path());
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    // What is only read, and was given, is counted above: a line of each would cost more than the answer.
    if status >= 500 {
        tracing::error!(%method, path = %path(), status, micros, "request");
    } else if status >= 400 || !matches!(*method, Method::GET | Method::HEAD) {
        tracing::info!(%method, path = %path(), status, micros, "request");
    } else {
        tracing::debug!(%method, path = %path(), status, micros, "request");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_for_elsewhere_is_not_told() {
        let token = format!("{PREFIX}0123456789abcdef");
        for (path, told) in [
            ("/col/a/b/c/d/doc/x%20y", "/col/a/b/c/d/doc/x%20y"),
            ("/col/x%3ftoken=1", "/col/x"),
            ("/%3F", "/"),
            (&format!("/items/{token}/x"), "/items/…"),
            (&format!("/CANARY-{}", token.to_uppercase()), "/CANARY-…"),
        ] {
            assert_eq!(without_secrets(path), told);
        }
    }
}
