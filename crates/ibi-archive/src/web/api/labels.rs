//! Minting over the API.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use ibi_http::Problem;
use ibi_id::{Granularity, Instant};
use ibi_store::IssuedRange;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use crate::ArchiveError;
use crate::service::ServiceRole;
use crate::web::api::idempotency::{self, IdempotentRequest};
use crate::web::api::{archive_problem, authorize, json_body, run_site_blocking};
use crate::web::rates::charge_labels;
use crate::web::site::{ArchiveSite, problem};
use ibi_mint::MintError;

/// A response of this many labels takes some hundred kilobytes.
const MAX_LABELS_PER_REQUEST: usize = 10_000;

/// Maximum disk space per label, in the recorded response and the minting record.
const MAX_MINTED_LABEL_BYTES: u64 = 512;

/// How long a request waits for its labels' time to come.
const MINT_TIMEOUT: Duration = Duration::from_secs(20);

/// The timeout if the request sets the granularity: other changes wait for the writer meanwhile.
const COARSE_MINT_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a `count`")]
struct ApiMintBody {
    #[serde(default = "one", deserialize_with = "whole")]
    count: usize,
    /// Overrides the minter's granularity (D37).
    #[serde(default)]
    granularity: Option<String>,
}

/// A whole number, also in the form `2.0`: JSON does not distinguish them.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?.to_string();
    let whole = number.strip_suffix(".0").unwrap_or(&number);
    whole
        .parse()
        .map_err(|_| serde::de::Error::custom(format!("`count` is from 1 to {MAX_LABELS_PER_REQUEST}")))
}

fn one() -> usize {
    1
}

/// Groups dates into contiguous ranges. A gap starts a new range: skipped dates may belong to
/// another token.
fn runs_of(dates: &[Instant], granularity: Granularity) -> Vec<IssuedRange> {
    let mut runs: Vec<IssuedRange> = Vec::new();
    for &date in dates {
        match runs.last_mut() {
            Some(run) if run.last.plus(granularity) == Some(date) => run.last = date,
            _ => runs.push(IssuedRange { first: date, last: date }),
        }
    }
    runs
}

pub(super) async fn mint(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let (headers, client) = (request.headers().clone(), site.client_address(&request));
    let token = authorize(&site, &headers, ServiceRole::Minter)?;
    let (ApiMintBody { count, granularity }, asked): (ApiMintBody, String) =
        json_body(&site, request).await?;
    let granularity = granularity.map(|text| text.parse::<Granularity>()).transpose().map_err(|error| {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Problem::new(status, "granularity", "Not a granularity", error.rule().message())
    })?;
    let is_named = granularity.is_some();
    if !(1..=MAX_LABELS_PER_REQUEST).contains(&count) {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Problem::new(
            status,
            "count",
            "Count out of range",
            format!("`count` is from 1 to {MAX_LABELS_PER_REQUEST}"),
        ));
    }
    let once = IdempotentRequest::of(&headers, &token, "labels", &asked)?;
    let _alone = if once.is_some() { Some(site.once.lock().await) } else { None };
    if let Some(before) = once.as_ref().map(|once| once.earlier_response(&site)).transpose()?.flatten() {
        return Ok(before);
    }
    let room = site.statistics.check_room(count as u64 * MAX_MINTED_LABEL_BYTES);
    room.map_err(|error| problem(&error))?;
    let charge = charge_labels(&site, &headers, client, count)?;
    let minted = site.desk.with_archive(move |archive| {
        let data = archive.holdings().data().to_owned();
        let minter = archive.minter()?;
        let set = crate::deposit::mint_request(&data, minter, count)?;
        let max_wait = if granularity.is_some() { COARSE_MINT_TIMEOUT } else { MINT_TIMEOUT };
        let granularity = granularity.unwrap_or(set.granularity);
        let minted = minter.mint(ibi_mint::MintRequest { max_wait, granularity, ..set })?;
        Ok((minted.labels().collect::<Vec<_>>(), runs_of(minted.dates(), granularity)))
    });
    let (labels, runs) =
        minted.await.inspect_err(|_| site.rates.give_back(&charge)).map_err(|error| match error {
            ArchiveError::Mint(error @ MintError::WouldWait { .. }) if is_named => {
                let (status, detail) = (StatusCode::UNPROCESSABLE_ENTITY, error.to_string());
                Problem::new(status, "granularity", "Wait too long at this granularity", detail)
            }
            error => archive_problem(error),
        })?;
    let labels: Vec<_> = labels
        .into_iter()
        .map(|ibi_mint::MintedLabels { rep, ibip, instant }| {
            let mut label = json!({ "instant": instant.to_string() });
            for (name, text) in [("rep", rep), ("ibip", ibip)] {
                if let Some(text) = text {
                    label[name] = text.into();
                }
            }
            label
        })
        .collect();
    metrics::counter!("ibi_labels_total").increment(count as u64);
    let answer = json!({ "labels": labels }).to_string();
    let answer = run_site_blocking(&site, move |site| {
        site.statistics.record_minted(&token.id, &runs).map_err(archive_problem)?;
        if let Some(once) = once {
            once.store_response(site, StatusCode::CREATED, &answer)?;
        }
        Ok(answer)
    });
    let answer = answer.await?;
    let mut response = idempotency::json_response(StatusCode::CREATED, answer);
    charge.write_headers(response.headers_mut());
    Ok(response)
}
