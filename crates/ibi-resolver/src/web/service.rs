//! The resolver's own service: Archives announce themselves online and offline (clause 3.3).

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::accept::PreferredFormat;
use ibi_id::Label;
use ibi_protocol::location::FOLLOW_TOKEN_HEADER;
use ibi_protocol::{Pairs, WireRequest as Message};
use serde_json::json;

use crate::outcome_view::words;
use crate::web::pages;
use crate::web::resolve::forbid_caching;
use crate::web::site::ResolverSite;

/// The software version of this server.
const SOFTWARE_VERSION: &str = concat!("ibi ", env!("CARGO_PKG_VERSION"));

/// The header that carries the registration key between our own servers, to keep it out of logs
/// (D15).
const REGISTRATION_KEY_HEADER: &str = "ibi-registration-key";

/// Whether this is a message to the resolver's service rather than a visit by a person.
pub(super) fn is_message(site: &ResolverSite, path: &str, query: &str) -> bool {
    query.split('&').any(|pair| pair.starts_with("servicesubject=")) && is_own(site, path)
}

/// Whether this is the address of the resolver's service.
pub(super) fn is_own(site: &ResolverSite, path: &str) -> bool {
    let own = &site.registry.settings().service;
    let label = path.trim_matches('/');
    label == own.spelling() || Label::parse(label).is_ok_and(|label| label.into_owned() == *own)
}

/// Describes the service to a visitor (D39).
pub(super) fn description(site: &ResolverSite, headers: &HeaderMap, query: Option<&str>) -> Response {
    let service = site.registry.settings().service.spelling();
    let (public_url, software) = (site.public_url.as_str(), SOFTWARE_VERSION);
    let words = words(pages::page_language(headers, query));
    let mut response = match PreferredFormat::of(headers) {
        PreferredFormat::Page => pages::service(headers, query, service, public_url, software),
        PreferredFormat::Json => axum::Json(json!({
            "service": service, "kind": "resolver", "public_url": public_url, "software": software,
            "api": "/api/v1/resolver.json",
        }))
        .into_response(),
        PreferredFormat::Text => {
            format!("{}\n{service}\n{public_url}/\n{software}\n", words.resolver).into_response()
        }
    };
    forbid_caching(&mut response);
    response
}

pub(super) async fn handle(site: &ResolverSite, query: &str, request: &Parts) -> Response {
    let key = request.headers.get(REGISTRATION_KEY_HEADER).and_then(|key| key.to_str().ok());
    match Message::parse_with_key(query, key) {
        Ok(message @ (Message::Inclusion(_) | Message::Exclusion(_))) => {
            let nobody = IpAddr::from([0, 0, 0, 0]);
            let client = site.clients(request).first().copied().unwrap_or(nobody);
            let token = request.headers.get(FOLLOW_TOKEN_HEADER).and_then(|token| token.to_str().ok());
            let answer = site.inclusion.handle(message, client, token).await;
            let mut response = pairs_response(answer.status, &answer.pairs);
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
            pairs_response(StatusCode::BAD_REQUEST, &error)
        }
        Err(error) => pairs_response(StatusCode::BAD_REQUEST, &error.to_pairs()),
    }
}

fn pairs_response(status: StatusCode, pairs: &Pairs) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let fresh = HeaderValue::from_static("no-store");
    (status, [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, fresh)], pairs.to_string())
        .into_response()
}
