//! The objects of items over the API, for other Archives that hold copies: `docs/formats/holders.md`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_store::journal::State;
use ibi_store::records::FileRecord;
use ibi_store::{Checked, KeepError};

use crate::ArchiveError;
use crate::access::Access;
use crate::archive::{Holding, Holdings};
use crate::holders::handing::Handing;
use crate::holders::held::Held;
use crate::holders::reading::{Kind, Reading};
use crate::service::Role;
use crate::service::answer::may_open;
use crate::web::api::{allowed, aside, refused};
use crate::web::file::{self, Served};
use crate::web::site::Site;

/// The object of an item, or a file of it.
pub(super) async fn get(
    site: Arc<Site>,
    label: String,
    file: Option<String>,
    request: Request,
) -> Result<Response, Problem> {
    let client = site.client(&request);
    let (method, headers) = (request.method().clone(), request.headers().clone());
    let given = headers.clone();
    let found = aside(&site, move |site| {
        let holdings = site.desk.read().map_err(refused)?;
        let (holding, _) = holdings.find(&label).map_err(refused)?;
        let asks = Asks { site, client, headers: &given, holding: &holding };
        match file {
            None => asks.object(&holdings).map(Found::Whole),
            Some(file) => asks.file(&holdings, &file),
        }
    });
    match found.await? {
        Found::Whole(response) => Ok(response),
        Found::File { file, checked, changed, public } => {
            let served = Served { file: &file, checked, changed, now: site.now(), public };
            Ok(file::serve(&site.blocks, served, &method, &headers).await)
        }
    }
}

enum Found {
    Whole(Response),
    File { file: Box<FileRecord>, checked: Checked, changed: i64, public: bool },
}

/// Who asks for what.
struct Asks<'a> {
    site: &'a Site,
    client: IpAddr,
    headers: &'a HeaderMap,
    holding: &'a Holding,
}

impl Asks<'_> {
    fn object(&self, holdings: &Holdings) -> Result<Response, Problem> {
        // The tombstone travels: only the bytes that were removed are kept back.
        let open = self.may_have(Kind::Doc);
        if let Err(problem) = &open {
            self.may_have(Kind::Text).map_err(|_| problem.clone())?;
        }
        let held = match Held::of(holdings, self.holding, open.is_ok()) {
            Ok(Some(held)) => held,
            // It is recorded, and not in the tree.
            Ok(None) => {
                let label = self.holding.item.labels.primary().to_owned();
                return damaged(ArchiveError::Lost { label });
            }
            Err(error) => return damaged(error),
        };
        let caching = if self.is_public() && open.is_ok() { "no-cache" } else { "private, no-cache" };
        Ok(([(header::CACHE_CONTROL, HeaderValue::from_static(caching))], axum::Json(held)).into_response())
    }

    fn file(&self, holdings: &Holdings, path: &str) -> Result<Found, Problem> {
        let found = match self.recorded(holdings, path) {
            Ok(Some(file)) => Ok(Some((Kind::Doc, file))),
            Ok(None) => Reading::of(holdings, &self.holding.path)
                .and_then(|reading| reading.map_or(Ok(None), |reading| reading.file(path))),
            Err(error) => Err(error),
        };
        // Who may not have it is not told whether it is there, or whole.
        let kind = match &found {
            Ok(Some((kind, _))) => *kind,
            Ok(None) | Err(_) => Kind::Doc,
        };
        self.may_have(kind)?;
        let (_, mut file) = match found {
            Ok(found) => found.ok_or_else(|| self.nothing())?,
            Err(error) => return damaged(error).map(Found::Whole),
        };
        // For programs: no browser shows what was deposited from here.
        "application/octet-stream".clone_into(&mut file.media);
        let checked = match holdings.open_file(&self.holding.path, &file) {
            Ok(checked) => checked,
            Err(error) => return damaged(error).map(Found::Whole),
        };
        let updated = self.holding.item.updated.parse::<ibi_id::Instant>();
        let changed = updated.map_or(0, |time| time.seconds());
        Ok(Found::File { file: Box::new(file), checked, changed, public: self.is_public() })
    }

    /// A file of the last version that lies under its own name: the index knows it, and no inventory needs to be read. Of many
    /// files that makes all the difference.
    fn recorded(&self, holdings: &Holdings, path: &str) -> Result<Option<FileRecord>, ArchiveError> {
        let name = path.split_once("/content/doc/").map(|(_, name)| name);
        let Some(name) = name else { return Ok(None) };
        let file = holdings.file(&self.holding.path, name)?;
        Ok(file.filter(|file| file.content == path))
    }

    /// Whether who asks may have files of a kind.
    fn may_have(&self, kind: Kind) -> Result<(), Problem> {
        let is_removed = self.holding.state == State::Deleted;
        let is_open = match kind {
            Kind::Doc => !is_removed && self.may_open(),
            // Of what was closed, nobody else is told which files it had (threat W14).
            Kind::Inventory | Kind::Text => {
                (is_removed && self.holding.item.access == Access::Public) || self.may_open()
            }
        };
        if is_open {
            return Ok(());
        }
        if !self.headers.contains_key(header::AUTHORIZATION) {
            let why = if is_removed { "was removed" } else { "is not open to all" };
            return Err(Problem::forbidden(format!(
                "{} {why}: a token of the role holder is needed, made with `ibi archive token create --role holder`",
                self.holding.item.labels.primary()
            )));
        }
        // Who takes it over was told a pass for it.
        let given = self.headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
        let pass = given.and_then(|given| given.split_once(' ')).map(|(_, pass)| pass.trim());
        if pass.is_some_and(|pass| Handing::opens(self.site.desk.data(), &self.holding.path, pass)) {
            return Ok(());
        }
        allowed(self.site, self.headers, Role::Holder).map(drop)
    }

    fn may_open(&self) -> bool {
        may_open(self.holding, Some(self.client), self.site.now())
    }

    fn is_public(&self) -> bool {
        self.holding.item.access == Access::Public && self.holding.state != State::Deleted
    }

    fn nothing(&self) -> Problem {
        let label = self.holding.item.labels.primary();
        Problem::not_found(format!(
            "the object of {label} has no such file: /api/v1/items/{label}/object/inventory.json tells what it has"
        ))
    }
}

/// What is damaged here is said to be so; others may have it whole.
fn damaged(error: ArchiveError) -> Result<Response, Problem> {
    match error {
        ArchiveError::DamagedObject { .. }
        | ArchiveError::Lost { .. }
        | ArchiveError::Keep(
            KeepError::DamagedInventory { .. }
            | KeepError::MissingFile { .. }
            | KeepError::DamagedBlock { .. },
        ) => {
            tracing::error!(%error, "a damaged object was not given out");
            Ok(file::damaged())
        }
        error => Err(refused(error)),
    }
}
