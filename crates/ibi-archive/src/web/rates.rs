//! Rate limits for expensive operations: minting, deposits, lists and link hints. Reading an item,
//! its page or its files is not limited.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::rate::{RateCharge, RatePolicy, RatedClient, bearer_secret};

use crate::web::site::ArchiveSite;

/// The token and address quotas that a request below `/api/v1` is charged to.
fn quotas_of(method: &Method, path: &str) -> Option<(Option<RatePolicy>, RatePolicy)> {
    let deposit = Some((Some(RatePolicy::DepositToken), RatePolicy::DepositAddress));
    let upload = Some((Some(RatePolicy::UploadToken), RatePolicy::UploadAddress));
    let path = path.strip_prefix("/api/v1").unwrap_or(path);
    let is_draft = path == "/drafts" || path.starts_with("/drafts/");
    match method.as_str() {
        "GET" | "HEAD" if matches!(path, "/items" | "/changes" | "/drafts") => {
            Some((None, RatePolicy::ListAddress))
        }
        "PUT" | "DELETE" if is_draft && path.contains("/files/") => upload,
        "POST" | "PATCH" | "DELETE" if is_draft => deposit,
        "PATCH" | "DELETE" if path.starts_with("/items/") => deposit,
        "POST" if matches!(path, "/links" | "/links/again") => Some((None, RatePolicy::HintAddress)),
        _ => None,
    }
}

/// Middleware that charges a request to its client's quotas.
pub(super) async fn charge_request(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
    next: Next,
) -> Response {
    let Some((of_token, of_address)) = quotas_of(request.method(), request.uri().path()) else {
        return next.run(request).await;
    };
    let client = site.client_address(&request);
    let charged = charge(&site, request.headers(), client, of_token, of_address, 1);
    let charge = match charged {
        Ok(charge) => charge,
        Err(problem) => return problem.into_response(),
    };
    let mut response = next.run(request).await;
    // A rejected request costs nothing, so the charge is refunded.
    if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        site.rates.give_back(&charge);
    } else {
        charge.write_headers(response.headers_mut());
    }
    response
}

/// Charges the labels of a mint request.
pub(super) fn charge_labels(
    site: &ArchiveSite,
    headers: &HeaderMap,
    client: IpAddr,
    count: usize,
) -> Result<RateCharge, Problem> {
    let (of_token, of_address) = (Some(RatePolicy::MintToken), RatePolicy::MintAddress);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    charge(site, headers, client, of_token, of_address, count)
}

fn charge(
    site: &ArchiveSite,
    headers: &HeaderMap,
    client: IpAddr,
    of_token: Option<RatePolicy>,
    of_address: RatePolicy,
    cost: u32,
) -> Result<RateCharge, Problem> {
    let token = of_token.zip(bearer_secret(headers));
    let token = token.map(|(policy, token)| (policy, RatedClient::Token(token)));
    let quotas: Vec<_> = token.into_iter().chain([(of_address, RatedClient::Address(client))]).collect();
    site.rates.charge(client, &quotas, cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_is_charged_and_reading_is_not() {
        let of = |method: &str, path: &str| {
            let quotas = quotas_of(&method.parse().unwrap(), path);
            quotas.map_or("-", |(_, of_address)| of_address.name())
        };
        for (method, path, charged) in [
            ("GET", "/api/v1/items", "list-address"),
            ("GET", "/changes", "list-address"),
            ("GET", "/items/8JMKD3MGP8W/34PGRBS", "-"),
            ("GET", "/items/8JMKD3MGP8W/34PGRBS/object/a", "-"),
            ("PATCH", "/items/8JMKD3MGP8W/34PGRBS", "deposit-address"),
            ("POST", "/items/8JMKD3MGP8W/34PGRBS/handover", "-"),
            ("POST", "/drafts", "deposit-address"),
            ("GET", "/drafts/ab", "-"),
            ("POST", "/drafts/ab/publish", "deposit-address"),
            ("PUT", "/drafts/ab/files/a/b", "upload-address"),
            ("POST", "/links", "hint-address"),
            ("POST", "/links/accept", "-"),
        ] {
            assert_eq!(of(method, path), charged, "{method} {path}");
        }
    }
}
