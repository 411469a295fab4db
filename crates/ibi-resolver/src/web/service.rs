//! The resolver's own service: Archives that come on line and go off line (clause 3.3).

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::accept::Taste;
use ibi_id::Label;
use ibi_protocol::{Pairs, Request as Message};
use serde_json::json;

use crate::told::words;
use crate::web::pages;
use crate::web::resolve::fresh;
use crate::web::site::Site;

/// What answers here.
const SOFTWARE: &str = concat!("ibi ", env!("CARGO_PKG_VERSION"));

/// The header that carries the registration key between our own servers, which keeps it out of logs (D15).
const KEY: &str = "ibi-registration-key";

/// Whether this is a message to the resolver's service, and not a visit to it.
pub(super) fn is_message(site: &Site, path: &str, query: &str) -> bool {
    query.split('&').any(|pair| pair.starts_with("servicesubject=")) && is_own(site, path)
}

/// Whether this is the address of the resolver's service.
pub(super) fn is_own(site: &Site, path: &str) -> bool {
    let own = &site.registry.settings().service;
    let label = path.trim_matches('/');
    label == own.spelling() || Label::parse(label).is_ok_and(|label| label.into_owned() == *own)
}

/// What the service is, for who visits it (D39).
pub(super) fn description(site: &Site, headers: &HeaderMap, query: Option<&str>) -> Response {
    let service = site.registry.settings().service.spelling();
    let (public_url, software) = (site.public_url.as_str(), SOFTWARE);
    let words = words(pages::tongue(headers, query));
    let mut response = match Taste::of(headers) {
        Taste::Page => pages::service(headers, query, service, public_url, software),
        Taste::Json => axum::Json(json!({
            "service": service, "kind": "resolver", "public_url": public_url, "software": software,
            "api": "/api/v1/resolver.json",
        }))
        .into_response(),
        Taste::Text => format!("{}\n{service}\n{public_url}/\n{software}\n", words.resolver).into_response(),
    };
    fresh(&mut response);
    response
}

pub(super) async fn handle(site: &Site, query: &str, request: &Parts) -> Response {
    let key = request.headers.get(KEY).and_then(|key| key.to_str().ok());
    match Message::parse_with_key(query, key) {
        Ok(message @ (Message::Inclusion(_) | Message::Exclusion(_))) => {
            let nobody = IpAddr::from([0, 0, 0, 0]);
            let client = site.clients(request).first().copied().unwrap_or(nobody);
            let answer = site.inclusion.handle(message, client).await;
            let mut response = pairs(answer.status, &answer.pairs);
            if let Some(wait) = answer.retry_after {
                let seconds = HeaderValue::from(wait.as_secs().max(1));
                response.headers_mut().insert(header::RETRY_AFTER, seconds);
            }
            response
        }
        Ok(other) => {
            let mut error = Pairs::new();
            error.push("error", "unknown-servicesubject");
            error.push("message", &format!("{} is for Archives, and this is a resolver", other.subject()));
            pairs(StatusCode::BAD_REQUEST, &error)
        }
        Err(error) => pairs(StatusCode::BAD_REQUEST, &error.to_pairs()),
    }
}

fn pairs(status: StatusCode, pairs: &Pairs) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let fresh = HeaderValue::from_static("no-store");
    (status, [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, fresh)], pairs.to_string())
        .into_response()
}
