//! Archives and alerts, as programs are shown them: over the API and by commands.

use ibi_id::Instant;
use ibi_store::registry::AlertRecord;
use serde::Serialize;

use crate::archive::Archive;
use crate::registry::Registry;

/// An Archive. Its e-mail address is for the operator's own machine, and not told here.
#[derive(Debug, Serialize)]
pub struct ArchiveShown {
    /// The label of its service.
    pub service: String,
    /// `new`, `unconfirmed`, `online`, `offline` or `retired`.
    pub standing: &'static str,
    /// Where it is.
    pub address: Option<String>,
    /// Further hosts of its URLs.
    pub hosts: Vec<String>,
    /// When it was registered.
    pub registered: String,
    /// When its standing or address changed.
    pub changed: String,
    /// When it confirmed the last time that it is there.
    pub confirmed: Option<String>,
}

impl ArchiveShown {
    /// An Archive of a registry.
    pub fn new(registry: &Registry, archive: &Archive) -> Self {
        let confirmed = registry.times(archive.id).and_then(|times| times.confirmed);
        Self {
            service: archive.service.spelling().to_owned(),
            standing: archive.standing.as_str(),
            address: archive.address.clone(),
            hosts: archive.hosts.clone(),
            registered: time(archive.registered),
            changed: time(archive.changed),
            confirmed: confirmed.map(time),
        }
    }
}

/// An alert.
#[derive(Debug, Serialize)]
pub struct AlertShown {
    /// Its number.
    pub id: u64,
    /// The item whose original several Archives claim.
    pub item: String,
    /// Who claims it.
    pub claims: Vec<ClaimShown>,
    /// When it was raised.
    pub first_seen: String,
    /// When it was raised the last time.
    pub last_seen: String,
    /// How often.
    pub times: u64,
    /// How it ended.
    pub resolved: Option<ResolvedShown>,
}

/// A claim of the original.
#[derive(Debug, Serialize)]
pub struct ClaimShown {
    /// The Archive.
    pub archive: String,
    /// Where it has it.
    pub url: Option<String>,
    /// The last update, as the Archive writes it.
    pub timestamp: Option<String>,
    /// When it said so.
    pub seen: String,
}

/// The end of an alert.
#[derive(Debug, Serialize)]
pub struct ResolvedShown {
    /// When.
    pub at: String,
    /// By whom.
    pub by: String,
    /// Why.
    pub note: String,
}

impl AlertShown {
    /// An alert of a registry.
    pub fn new(alert: &AlertRecord) -> Self {
        Self {
            id: alert.id,
            item: alert.item.clone(),
            claims: alert
                .claims
                .iter()
                .map(|claim| ClaimShown {
                    archive: claim.archive.clone(),
                    url: claim.url.clone(),
                    timestamp: claim.timestamp.clone(),
                    seen: time(claim.seen),
                })
                .collect(),
            first_seen: time(alert.first_seen),
            last_seen: time(alert.last_seen),
            times: alert.times,
            resolved: alert.resolved.as_ref().map(|end| ResolvedShown {
                at: time(end.at),
                by: end.by.clone(),
                note: end.note.clone(),
            }),
        }
    }
}

fn time(seconds: i64) -> String {
    Instant::new(seconds, 0).map(|time| time.to_string()).unwrap_or_default()
}
