//! Between Archives: copies, their refreshing and repair, and the hand-over of Originals (clause 2.1).
//!
//! [`handover`] decides what a giver and a taker may do; `stand.rs` tells what they durably know, and does it. [`whole`] checks that
//! what was fetched is one object; [`verdict`] compares it with what is here, and [`bring`] puts it here. On line, a
//! [`peer::Peer`] is asked for what it [`held::Held`]; [`fetch`] and [`copy`] bring it, [`collection`] many; [`handing`] gives,
//! [`taking`] takes; [`repair`] compares with others, whom a [`resolver`] may know.

#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "only the service uses all of it"))]
pub mod behind;
pub mod bring;
#[cfg(feature = "web")]
pub mod collection;
#[cfg(feature = "web")]
pub mod copy;
#[cfg(feature = "web")]
pub mod fetch;
#[cfg(feature = "web")]
pub mod handing;
pub mod handover;
#[cfg(feature = "web")]
pub mod held;
#[cfg(feature = "web")]
pub mod messages;
#[cfg(feature = "web")]
pub mod original_claim;
#[cfg(feature = "web")]
pub mod orphans;
#[cfg(feature = "web")]
pub mod peer;
#[cfg(feature = "web")]
pub(crate) mod reading;
#[cfg(feature = "web")]
pub mod repair;
#[cfg(feature = "web")]
pub mod resolver;
pub mod stand;
#[cfg(feature = "web")]
pub mod taking;
pub mod verdict;
pub mod whole;

pub use verdict::Verdict;

/// Where what is fetched of an item lies until it is whole. Labels have no character that a name may not have but the slash.
pub(crate) fn place(data: &std::path::Path, path: &str) -> std::path::PathBuf {
    data.join("service/copies").join(path.replace('/', "+"))
}

/// Throws away what was fetched of items and not gone on with for a week; `now` is in seconds since the Unix epoch.
#[cfg(feature = "web")]
pub(crate) fn sweep(data: &std::path::Path, now: i64) {
    const WEEK: i64 = 7 * 86_400;
    let changed = |path: &std::path::Path| {
        let changed = std::fs::metadata(path).and_then(|file| file.modified()).ok()?;
        let since = changed.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_secs()).ok()
    };
    let is_old = |path: &std::path::Path| changed(path).is_some_and(|changed| changed < now - WEEK);
    let entries = |path: &std::path::Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    // The files of one that grows are not looked at: there may be many.
    for folder in entries(&data.join("service/copies")).filter(|folder| is_old(&folder.path())) {
        if entries(&folder.path()).all(|file| is_old(&file.path())) {
            tracing::info!(folder = %folder.path().display(), "a copy that nobody went on with is thrown away");
            // Left behind, it is found next time.
            let _ = fetch::clear(&folder.path());
        }
    }
}

/// How an item stands here, and how its hand-over goes, for programs (`docs/formats/holders.md`).
#[cfg(feature = "web")]
pub fn stand_of(holdings: &crate::Holdings, label: &str) -> Result<serde_json::Value, crate::ArchiveError> {
    let path = match holdings.find(label) {
        Ok((holding, _)) => holding.path,
        Err(crate::ArchiveError::Dropped { .. }) => {
            let given_to = holdings.given_to_by_label(label)?;
            return Ok(serde_json::json!({ "item": label, "state": null, "given_to": given_to }));
        }
        Err(error) => return Err(error),
    };
    let holding = holdings.item(&path)?;
    Ok(serde_json::json!({
        "item": label,
        "state": holding.state.name(),
        "epoch": holding.epoch,
        "source": holdings.source(&path)?,
        "given_to": holdings.given_to(&path)?,
        "handover": handover_of(holdings, &path)?,
    }))
}

/// How the hand-over of an item goes that is given here and not over, for programs.
#[cfg(feature = "web")]
pub fn handover_of(
    holdings: &crate::Holdings,
    path: &str,
) -> Result<Option<serde_json::Value>, crate::ArchiveError> {
    let handing = handing::Handing::of(holdings.data(), path)?;
    let granted = holdings.granted(path)?;
    let step = match (&handing, &granted) {
        (_, Some(_)) => "granted",
        (Some(handing), None) if handing.failed => "failed",
        (Some(handing), None) if handing.is_done(holdings)? => "given",
        (Some(_), None) => "offered",
        (None, None) => return Ok(None),
    };
    Ok(Some(serde_json::json!({
        "step": step,
        "to": handing.as_ref().map(|handing| &handing.to).or(granted.as_ref().map(|(_, to)| to)),
        "said": handing.as_ref().and_then(|handing| handing.said.as_ref()),
    })))
}

/// What Archives could not do between them.
#[cfg(feature = "web")]
#[derive(Debug, thiserror::Error)]
pub enum HolderError {
    /// It is this one's trouble.
    #[error(transparent)]
    Archive(#[from] crate::ArchiveError),
    /// It is the other one's.
    #[error(transparent)]
    Peer(#[from] peer::PeerError),
    /// A removal that somebody else tells of than who should.
    #[error(
        "{url} says that {item} was removed, and the copy here came from {from}: ask that one, or, if you believe it, say `ibi archive \
         refresh {item} --from {url}`"
    )]
    NotItsSource {
        /// The item.
        item: String,
        /// Who says so.
        url: String,
        /// Who should.
        from: String,
    },
    /// It is this one.
    #[error("{url} is this Archive itself: say where another one is that has the item")]
    Itself {
        /// Its URL.
        url: String,
    },
    /// What came is not good.
    #[error(transparent)]
    Fetch(#[from] fetch::FetchError),
}

#[cfg(feature = "web")]
impl HolderError {
    /// Whether trying again is of no use.
    pub fn is_final(&self) -> bool {
        match self {
            HolderError::Archive(error) => !crate::service::is_temporary(error),
            HolderError::Peer(error) => match error {
                peer::PeerError::Silent { .. } => false,
                peer::PeerError::Refused { status, .. } => *status < 500,
                _ => true,
            },
            HolderError::NotItsSource { .. } | HolderError::Itself { .. } => true,
            HolderError::Fetch(_) => false,
        }
    }
}
