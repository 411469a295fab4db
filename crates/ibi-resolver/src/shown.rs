//! Archives and alerts, as programs are shown them: over the API and by commands.

use ibi_id::{Instant, Label};
use ibi_store::registry::{AlertRecord, Claim};
use serde::Serialize;

use crate::archive::Archive;
use crate::registry::Registry;

/// An Archive. What it says of itself (3.3) is for the operator: [`ArchiveShown::for_anybody`] leaves it out.
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
    /// What it says of itself.
    #[serde(flatten)]
    pub contact: Option<ContactShown>,
}

/// What an Archive says of itself when it comes on line: how it is reached, and whom to write to.
#[derive(Debug, Serialize)]
pub struct ContactShown {
    /// `archiveadmemailaddress`.
    pub email: Option<String>,
    /// `archiveip`.
    pub ip: Option<String>,
    /// `archiveprotocol`.
    pub protocol: Option<String>,
    /// `archiveplatformversion`.
    pub platform: Option<String>,
}

impl ContactShown {
    fn new(archive: &Archive) -> Self {
        let Archive { email, platform, .. } = archive;
        let (ip, protocol) = (platform.ip.clone(), platform.protocol.clone());
        Self { email: email.clone(), ip, protocol, platform: platform.version.clone() }
    }
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
            contact: Some(ContactShown::new(archive)),
        }
    }

    /// Without what is only the operator's.
    pub fn for_anybody(self) -> Self {
        Self { contact: None, ..self }
    }
}

/// An alert.
#[derive(Debug, Serialize)]
pub struct AlertShown {
    /// Its number.
    pub id: u64,
    /// The item whose original several Archives claim.
    pub item: String,
    /// The prefix under which its label was minted.
    pub prefix: Option<String>,
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
    /// Whether the label was minted under the prefix that the Archive's own service has; nothing if they are of different
    /// forms, so that it cannot be told.
    pub own_prefix: Option<bool>,
    /// Who deposited it there, the Archive says.
    pub depositor: Option<String>,
    /// When, the Archive says.
    pub deposited: Option<String>,
    /// How often the Original was handed over or declared, and one, the Archive says.
    pub epoch: Option<u64>,
    /// The versions that it has, with the SHA-512 of their inventories.
    pub versions: Vec<VersionShown>,
    /// How to reach who runs it.
    pub contact: Option<ContactShown>,
}

/// A version of an item that an Archive claims.
#[derive(Debug, Serialize)]
pub struct VersionShown {
    /// Its number.
    pub version: u64,
    /// SHA-512 of its inventory.
    pub inventory: String,
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
    pub fn new(registry: &Registry, alert: &AlertRecord) -> Self {
        let item = alert.item.parse::<Label>().ok();
        Self {
            id: alert.id,
            item: alert.item.clone(),
            prefix: item.as_ref().map(|item| item.prefix().to_owned()),
            claims: alert
                .claims
                .iter()
                .map(|claim| ClaimShown::new(registry, claim, item.as_ref()))
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

impl ClaimShown {
    fn new(registry: &Registry, claim: &Claim, item: Option<&Label>) -> Self {
        let service = claim.archive.parse::<Label>().ok();
        let archive = service.as_ref().and_then(|service| registry.find(service));
        let evidence = claim.evidence.clone().unwrap_or_default();
        let versions = evidence
            .versions
            .into_iter()
            .map(|version| VersionShown { version: version.version, inventory: version.inventory });
        Self {
            archive: claim.archive.clone(),
            url: claim.url.clone(),
            timestamp: claim.timestamp.clone(),
            seen: time(claim.seen),
            own_prefix: item.zip(service.as_ref()).and_then(|(item, service)| has_prefix_of(item, service)),
            depositor: evidence.depositor,
            deposited: evidence.deposited,
            epoch: evidence.epoch,
            versions: versions.collect(),
            contact: archive.map(|archive| ContactShown::new(&archive)),
        }
    }
}

/// Whether two labels were minted under one prefix, however it is spelled.
fn has_prefix_of(item: &Label, service: &Label) -> Option<bool> {
    match (item, service) {
        (Label::Repository(a), Label::Repository(b)) => {
            let host = |label: &ibi_id::Repository| label.host().to_string().to_ascii_lowercase();
            Some(host(a) == host(b) && a.port() == b.port())
        }
        (Label::Ibip(a), Label::Ibip(b)) => Some(a.ip() == b.ip() && a.port() == b.port()),
        _ => None,
    }
}

fn time(seconds: i64) -> String {
    Instant::new(seconds, 0).map(|time| time.to_string()).unwrap_or_default()
}
