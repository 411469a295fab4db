//! Logging and metrics: JSON lines on standard error for requests that change something or fail
//! (all requests with `IBI_LOG=debug`), and Prometheus metrics.
//!
//! A line contains the path but never the query, which may contain keys and personal addresses.

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

use crate::log_queue::LogQueue;
pub use crate::log_queue::{flush_log, print_line};
use crate::token_store::TOKEN_PREFIX;

/// Upper bounds of the latency buckets, in seconds.
const LATENCY_BUCKETS_SECONDS: &[f64] =
    &[0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Starts logging to standard error, filtered by `IBI_LOG` (default `info`). Requests never wait
/// for the log or fail because of it: lines that cannot be written are counted in
/// `ibi_log_lines_lost_total`.
pub fn start_log() {
    let filter = EnvFilter::try_from_env("IBI_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let Some(queue) = LogQueue::start() else { return };
    let started = tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(move || queue.line());
    // An embedding program may have set up a log already.
    let _ = started.with_target(false).flatten_event(true).try_init();
}

/// The metrics of this process.
#[derive(Clone, Debug)]
pub struct ServerMetrics(PrometheusHandle);

impl ServerMetrics {
    /// Starts collecting metrics. A second call continues the same ones.
    pub fn start() -> Option<Self> {
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), LATENCY_BUCKETS_SECONDS)
            .ok()?;
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).ok()?;
        describe_metrics();
        Some(Self(handle))
    }

    /// Renders the Prometheus text format.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Aggregates recorded measurements. Must be called periodically: until then every measurement
    /// is kept in memory.
    pub fn run_upkeep(&self) {
        self.0.run_upkeep();
    }
}

/// The help texts of the metrics of this crate.
fn describe_metrics() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_counter!("ibi_requests_total", "Requests, by route and status.");
    describe_histogram!("ibi_request_seconds", "Time to respond, by route, in seconds.");
    describe_gauge!("ibi_connections", "Open connections.");
    describe_counter!("ibi_connections_refused_total", "Connections refused because of a limit.");
    describe_counter!("ibi_connections_evicted_total", "Idle connections closed to make room for others.");
    describe_counter!("ibi_accept_failures_total", "Connections that could not be accepted.");
    describe_counter!("ibi_rate_limited_total", "Requests over a quota, by policy.");
    describe_counter!("ibi_memory_refused_total", "Requests refused because of the memory budget.");
    describe_counter!("ibi_log_lines_lost_total", "Log lines that could not be written.");
}

/// The metrics of one status.
type StatusMetrics = (u16, Counter, Histogram);

thread_local! {
    /// Request metrics per route and status, cached because looking them up by name costs more than
    /// counting.
    static REQUEST_METRICS: RefCell<HashMap<String, Vec<StatusMetrics>>> = RefCell::default();
}

fn count_request(route: &str, status: u16, seconds: f64) {
    REQUEST_METRICS.with_borrow_mut(|counted| {
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

/// A path without misplaced secrets: tokens, and a query whose `?` was encoded.
fn without_secrets(path: &str) -> Cow<'_, str> {
    let end = path.match_indices('%').find(|(at, _)| path[*at..].to_ascii_lowercase().starts_with("%3f"));
    let path = end.map_or(path, |(at, _)| &path[..at]);
    match path.to_ascii_lowercase().find(TOKEN_PREFIX) {
        None => path.into(),
        Some(at) => format!("{}…", &path[..at]).into(),
    }
}

/// A layer that records each request.
pub async fn log_requests(request: Request, next: Next) -> Response {
    let begun = Instant::now();
    // Cheap clones: they share their text with the request.
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    record_request(matched.as_ref().map(MatchedPath::as_str), &method, &uri, begun, &response);
    response
}

/// Records a completed request and its route, if any.
pub fn record_request(route: Option<&str>, method: &Method, uri: &Uri, begun: Instant, response: &Response) {
    let (status, took) = (response.status().as_u16(), begun.elapsed());
    // Routes are bounded in number, paths are not.
    count_request(route.unwrap_or("other"), status, took.as_secs_f64());
    // Computed only if it is logged.
    let path = || without_secrets(uri.path());
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    // Successful reads are only counted: a log line for each would cost more than the response.
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
        let token = format!("{TOKEN_PREFIX}0123456789abcdef");
        for (path, expected) in [
            ("/col/a/b/c/d/doc/x%20y", "/col/a/b/c/d/doc/x%20y"),
            ("/col/x%3ftoken=1", "/col/x"),
            ("/%3F", "/"),
            (&format!("/items/{token}/x"), "/items/…"),
            (&format!("/CANARY-{}", token.to_uppercase()), "/CANARY-…"),
        ] {
            assert_eq!(without_secrets(path), expected);
        }
    }
}
