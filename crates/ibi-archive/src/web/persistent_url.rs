//! Persistent URLs at the Archive's own address: `http://<archiveaddress>/<IBI>` supports
//! everything in clause 4.1 for items held here. Other requests are redirected to the resolver
//! (clause 2).

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::{PAGE_LANGUAGE_PAIR, UiLanguage, query_value};
use ibi_protocol::analysis::AcceptedLanguages;
use ibi_protocol::persistent::append_query;
use ibi_protocol::{PersistentUrl, PersistentUrlError, RelationPart, UrlRequest, Verbs};
use ibi_store::index::LabelRole;
use ibi_store::journal::State;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::ArchiveError;
use crate::archive::Holdings;
use crate::relations::walk::RelationDestination;
use crate::relations::{self, HeldTarget, TargetPart};
use crate::service::address;
use crate::service::answer::{may_open, target_location};
use crate::web::item_routes::{self, PageRequest};
use crate::web::large_response;
use crate::web::site::{ArchiveSite, problem};
use crate::web::target_redirect;

/// Maximum number of `Accept-Language` lines, and their total size.
const MAX_ACCEPT_LANGUAGE_LINES: usize = 16;
const MAX_ACCEPT_LANGUAGE_BYTES: usize = 8 << 10;

/// Characters to encode in a `Location` header, besides everything that is not ASCII.
const LOCATION_ENCODE_SET: &AsciiSet = &CONTROLS.add(b' ');

pub(super) async fn serve_persistent_url(
    site: &Arc<ArchiveSite>,
    client: &PageRequest,
) -> Result<Response, Problem> {
    let uri = &client.uri;
    let asked = PersistentUrl::parse(uri.path(), uri.query()).map_err(|error| match error {
        PersistentUrlError::Label { .. } => {
            Problem::not_found("there is nothing at this address: / lists the items of this Archive")
                .in_portuguese("não há nada neste endereço: / lista os itens deste acervo")
        }
        error => Problem::bad_request(error.to_string()).in_portuguese(error.in_portuguese()),
    })?;
    if is_explanation(uri.query()) {
        return redirect_to_resolver(site, client).ok_or_else(|| {
            Problem::not_found("a resolver explains resolutions, and this Archive is not registered with one")
        });
    }
    let holdings = site.desk.read().map_err(|error| problem(&error))?;
    let label = asked.label.spelling();
    let (holding, role) = match holdings.find_bare(label) {
        Ok(found) => found,
        Err(
            error @ (ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. } | ArchiveError::Lost { .. }),
        ) => return redirect_to_resolver(site, client).ok_or_else(|| not_held_problem(label, &error)),
        Err(error) => return Err(problem(&error)),
    };
    let from = relations::target_of(holding, role);
    let accepted = AcceptedLanguages::parse(&accept_language(&client.headers));
    let followed = holdings.follow_relation(&from, &asked.verbs.relation, &accepted);
    let led = match followed.map_err(|error| problem(&error))? {
        RelationDestination::Here { led, vouched } => match redirect_to_resolver(site, client) {
            // Others may know of a later edition (4.2 step 4).
            Some(response) if !vouched => return Ok(response),
            _ => led,
        },
        RelationDestination::Removed(led) => {
            let role = if led.what == TargetPart::Item { LabelRole::Item } else { LabelRole::Metadata };
            let removed = holdings.item_bare(&led.holding.path).map_err(|error| problem(&error))?;
            let bytes = large_response::metadata_bytes(&holdings, &removed)?;
            let answer = move |_: &_, holdings: &_, removed: &_, client: &_| {
                item_routes::tombstone(holdings, removed, role, client)
            };
            return item_routes::answer_by_size(site, holdings, removed, bytes, client, answer).await;
        }
        RelationDestination::Missing(there) => {
            return redirect_to_resolver(site, client)
                .ok_or_else(|| missing_relation_problem(label, &asked.verbs, &there));
        }
    };
    if asked.original && led.holding.state != State::Original {
        return redirect_to_resolver(site, client).ok_or_else(|| {
            Problem::not_found(format!("{label} is here as a Copy, and the original is required"))
                .in_portuguese(format!("{label} está aqui como cópia, e o original é exigido"))
        });
    }
    deliver(site, &holdings, client, &asked, &led)
}

/// Redirects a client within this Archive or to the item's target URL.
fn deliver(
    site: &ArchiveSite,
    holdings: &Holdings,
    client: &PageRequest,
    asked: &PersistentUrl,
    led: &HeldTarget,
) -> Result<Response, Problem> {
    let holding = &led.holding;
    let request = UrlRequest {
        client: vec![client.ip],
        ibi: asked.label.spelling().to_owned(),
        file: asked.file.clone(),
        verbs: Verbs { file_list: asked.verbs.file_list, ..Verbs::default() },
        wants_all: false,
    };
    let found = target_location(holdings, led, &request, Some(client.ip), site.now())
        .map_err(|error| problem(&error))?;
    let Some((path, _)) = found else {
        let list = address::file_list_path(&holding.item.labels);
        return Err(match led.what {
            TargetPart::Item => item_routes::no_such_file(&list),
            TargetPart::Metadata { .. } => {
                Problem::not_found("metadata have no files").in_portuguese("metadados não têm arquivos")
            }
        });
    };
    let leaves = led.what == TargetPart::Item && !asked.verbs.file_list;
    if leaves
        && let Some(url) = &holding.item.url
        && may_open(holding, Some(client.ip), site.now())
    {
        return target_redirect::redirect_to_target(
            site,
            holding,
            url,
            asked.file.as_ref(),
            client,
            &asked.passed_on,
        );
    }
    let mut to = append_query(&path, &asked.passed_on);
    if let Some(language) = page_language_of(client).filter(|_| is_page(led, asked)) {
        to = append_query(&to, &format!("lang={}", language.name()));
    }
    let mut response = redirect(&to);
    if asked.verbs.relation.parts().contains(&RelationPart::Translation(None)) {
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept-Language"));
    }
    Ok(response)
}

/// Whether a query asks how the URL is resolved (D33).
fn is_explanation(query: Option<&str>) -> bool {
    let mut pairs = query.unwrap_or_default().split('&');
    query == Some("explain") || pairs.any(|pair| pair == "ibiurl.explain=yes")
}

/// The language that the reader chose for pages.
fn page_language_of(client: &PageRequest) -> Option<UiLanguage> {
    let query = client.uri.query()?;
    UiLanguage::from_code(&query_value(query, PAGE_LANGUAGE_PAIR)?)
}

/// Whether the redirect leads to a page in the reader's language, not to a file.
fn is_page(led: &HeldTarget, asked: &PersistentUrl) -> bool {
    asked.verbs.file_list || led.what == TargetPart::Metadata { format: None, language: None }
}

/// All `Accept-Language` lines, joined (RFC 9110 5.3).
fn accept_language(headers: &HeaderMap) -> String {
    let lines = headers.get_all(header::ACCEPT_LANGUAGE).iter().take(MAX_ACCEPT_LANGUAGE_LINES);
    let mut all = lines.filter_map(|line| line.to_str().ok()).collect::<Vec<_>>().join(",");
    if all.len() > MAX_ACCEPT_LANGUAGE_BYTES {
        // `to_str` accepts ASCII only, so every byte is a character boundary.
        all.truncate(MAX_ACCEPT_LANGUAGE_BYTES);
    }
    all
}

/// Redirects to the resolver, if one is configured, with the same path and query.
fn redirect_to_resolver(site: &ArchiveSite, client: &PageRequest) -> Option<Response> {
    let base = site.resolver.as_deref()?.trim_end_matches('/');
    let asked = client.uri.path_and_query().map_or("/", |asked| asked.as_str());
    Some(redirect(&format!("{base}{asked}")))
}

/// A 302 redirect, encoded for a header.
pub(super) fn redirect(to: &str) -> Response {
    // A path sent by a client may contain bytes that headers do not allow.
    let to = utf8_percent_encode(to, LOCATION_ENCODE_SET).to_string();
    let Ok(to) = HeaderValue::from_str(&to) else { return Problem::internal().into_response() };
    let fresh = HeaderValue::from_static("no-cache");
    (StatusCode::FOUND, [(header::LOCATION, to), (header::CACHE_CONTROL, fresh)]).into_response()
}

fn not_held_problem(label: &str, error: &ArchiveError) -> Problem {
    match error {
        ArchiveError::Unknown { .. } => Problem::not_found(format!("{label} is not in this Archive"))
            .in_portuguese(format!("{label} não está neste acervo")),
        error => problem(error),
    }
}

/// 4.3: the item is known, but not that translation or format.
fn missing_relation_problem(label: &str, verbs: &Verbs, there: &[String]) -> Problem {
    let asked = verbs.relation.modifiers();
    match there {
        [] => Problem::not_found(format!("{label}{asked}: not available for this item"))
            .in_portuguese(format!("{label}{asked}: não disponível para este item")),
        there => {
            let there = there.join(", ");
            Problem::not_found(format!("{label}{asked}: not available for this item. Available: {there}"))
                .in_portuguese(format!("{label}{asked}: não disponível para este item. Disponível: {there}"))
        }
    }
}
