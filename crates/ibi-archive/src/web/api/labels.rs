//! Minting over the API.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use ibi_http::Problem;
use ibi_id::Granularity;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use crate::service::Role;
use crate::web::api::once::{self, Once};
use crate::web::api::{allowed, aside, json_body, refused};
use crate::web::site::Site;
use crate::{ArchiveError, Refusal, mint};

/// Labels in one request: an answer of some hundred kilobytes.
const MOST: usize = 10_000;

/// How long a request waits for the time of its labels.
const PATIENCE: Duration = Duration::from_secs(20);

/// The same where the request names the granularity: nobody else's changes wait for it longer.
const COARSE_LABEL_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a `count`")]
struct Asked {
    #[serde(default = "one", deserialize_with = "whole")]
    count: usize,
    /// In place of the minter's own (D37).
    #[serde(default)]
    granularity: Option<String>,
}

/// A whole number, also one that is written `2.0`: to JSON it is the same.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?.to_string();
    let whole = number.strip_suffix(".0").unwrap_or(&number);
    whole.parse().map_err(|_| serde::de::Error::custom(format!("`count` is from 1 to {MOST}")))
}

fn one() -> usize {
    1
}

pub(super) async fn mint(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let token = allowed(&site, &headers, Role::Minter)?;
    let (Asked { count, granularity }, asked): (Asked, String) = json_body(&site, request).await?;
    let granularity = granularity.map(|text| text.parse::<Granularity>()).transpose().map_err(|error| {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Problem::new(status, "granularity", "Not a granularity", error.rule().message())
    })?;
    let is_named = granularity.is_some();
    if !(1..=MOST).contains(&count) {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Problem::new(status, "count", "Not so many", format!("`count` is from 1 to {MOST}")));
    }
    let once = Once::of(&headers, &token, "labels", &asked)?;
    let _alone = if once.is_some() { Some(site.once.lock().await) } else { None };
    if let Some(before) = once.as_ref().map(|once| once.before(&site)).transpose()?.flatten() {
        return Ok(before);
    }
    let minted = site.desk.work(move |archive| {
        let data = archive.holdings().data().to_owned();
        let minter = archive.minter()?;
        let set = crate::deposit::request(&data, minter, count)?;
        let max_wait = if granularity.is_some() { COARSE_LABEL_TIMEOUT } else { PATIENCE };
        let granularity = granularity.unwrap_or(set.granularity);
        let minted = minter.mint(mint::Request { max_wait, granularity, ..set })?;
        Ok(minted.labels().collect::<Vec<_>>())
    });
    let labels: Vec<_> = minted
        .await
        .map_err(|error| match error {
            ArchiveError::Mint(error @ Refusal::WouldWait { .. }) if is_named => {
                let (status, detail) = (StatusCode::UNPROCESSABLE_ENTITY, error.to_string());
                Problem::new(status, "granularity", "Too coarse for now", detail)
            }
            error => refused(error),
        })?
        .into_iter()
        .map(|mint::Labels { rep, ibip, instant }| {
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
    let answer = aside(&site, move |site| {
        if let Some(once) = once {
            once.remember(site, StatusCode::CREATED, &answer)?;
        }
        Ok(answer)
    });
    let answer = answer.await?;
    Ok(once::json(StatusCode::CREATED, answer))
}
