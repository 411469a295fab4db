//! Archives and alerts as shown to programs, by the API and by commands.

use ibi_http::pooled_client::HttpScheme;
use ibi_id::{Instant, Label};
use ibi_store::registry::{AlertClaim, AlertRecord};
use serde::Serialize;

use crate::archive::RegisteredArchive;
use crate::registry::Registry;
use crate::transport::BreakerState;

/// An Archive. Its contact data (3.3) are for the operator only:
/// [`ResolverArchiveView::without_contact`] removes them.
#[derive(Debug, Serialize)]
pub struct ResolverArchiveView {
    /// The label of its service.
    pub service: String,
    /// `new`, `unconfirmed`, `online`, `offline` or `retired`.
    pub standing: &'static str,
    /// Its address.
    pub address: Option<String>,
    /// Whether it is asked over TLS.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub secure: bool,
    /// Additional hosts of its URLs.
    pub hosts: Vec<String>,
    /// When it was registered.
    pub registered: String,
    /// When its status or address last changed.
    pub changed: String,
    /// When it last confirmed that it is online.
    pub confirmed: Option<String>,
    /// Why it did not confirm the last time; for the operator only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether the server asks it: `closed` (yes), `open` (not for a while) or `half-open`; for the
    /// operator only, and only while a server runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<&'static str>,
    /// Its contact data.
    #[serde(flatten)]
    pub contact: Option<ContactView>,
}

/// The contact data that an Archive supplies when it comes online.
#[derive(Debug, Serialize)]
pub struct ContactView {
    /// `archiveadmemailaddress`.
    pub email: Option<String>,
    /// `archiveip`.
    pub ip: Option<String>,
    /// `archiveprotocol`.
    pub protocol: Option<String>,
    /// `archiveplatformversion`.
    pub platform: Option<String>,
}

impl ContactView {
    fn new(archive: &RegisteredArchive) -> Self {
        let RegisteredArchive { email, platform, .. } = archive;
        let (ip, protocol) = (platform.ip.clone(), platform.protocol.clone());
        Self { email: email.clone(), ip, protocol, platform: platform.version.clone() }
    }
}

impl ResolverArchiveView {
    /// The view of an Archive in a registry.
    pub fn new(registry: &Registry, archive: &RegisteredArchive) -> Self {
        let confirmed = registry.times(archive.id).and_then(|times| times.confirmed);
        Self {
            service: archive.service.spelling().to_owned(),
            standing: archive.standing.as_str(),
            address: archive.address.clone(),
            secure: archive.scheme() == HttpScheme::Https,
            hosts: archive.hosts.clone(),
            registered: time(archive.registered),
            changed: time(archive.changed),
            confirmed: confirmed.map(time),
            problem: registry.problem(archive.id).map(|problem| problem.to_string()),
            breaker: None,
            contact: Some(ContactView::new(archive)),
        }
    }

    /// Adds whether the server asks it.
    pub fn with_breaker(self, state: BreakerState) -> Self {
        Self { breaker: Some(state.as_str()), ..self }
    }

    /// Removes what only the operator may see.
    pub fn without_contact(self) -> Self {
        Self { contact: None, problem: None, breaker: None, ..self }
    }
}

/// The kinds of alerts.
pub const SEVERAL_ORIGINALS: &str = "several-originals";
const COPIES_DIFFER: &str = "copies-differ";

/// An alert.
#[derive(Debug, Serialize)]
pub struct AlertView {
    /// Its number.
    pub id: u64,
    /// `several-originals`: several Archives claim the original of an item. `copies-differ`: an
    /// Archive has copies that are no version of the originals in another one.
    pub kind: &'static str,
    /// The item whose original several Archives claim, or the first of the copies.
    pub item: String,
    /// The prefix under which its label was minted.
    pub prefix: Option<String>,
    /// The claims.
    pub claims: Vec<AlertClaimView>,
    /// When it was raised.
    pub first_seen: String,
    /// When it was last raised.
    pub last_seen: String,
    /// How often it was raised.
    pub times: u64,
    /// How it was resolved.
    pub resolved: Option<AlertResolutionView>,
}

/// A claim of the original.
#[derive(Debug, Serialize)]
pub struct AlertClaimView {
    /// The Archive.
    pub archive: String,
    /// The URL of the item there.
    pub url: Option<String>,
    /// The last update, as the Archive writes it.
    pub timestamp: Option<String>,
    /// When the claim was made.
    pub seen: String,
    /// Whether the label was minted under the prefix of the Archive's own service; `None` if they
    /// are of different forms and cannot be compared.
    pub own_prefix: Option<bool>,
    /// Who deposited it there, according to the Archive.
    pub depositor: Option<String>,
    /// When it was deposited, according to the Archive.
    pub deposited: Option<String>,
    /// One plus the number of times the Original was handed over or declared, according to the
    /// Archive.
    pub epoch: Option<u64>,
    /// The versions that it holds, with the SHA-512 of their inventories.
    pub versions: Vec<AlertVersionView>,
    /// Its copies that are no version of the original: it does not claim the original then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<String>,
    /// How to reach its operator.
    pub contact: Option<ContactView>,
}

/// A version of an item that an Archive claims.
#[derive(Debug, Serialize)]
pub struct AlertVersionView {
    /// Its number.
    pub version: u64,
    /// SHA-512 of its inventory.
    pub inventory: String,
}

/// The resolution of an alert.
#[derive(Debug, Serialize)]
pub struct AlertResolutionView {
    /// When.
    pub at: String,
    /// By whom.
    pub by: String,
    /// Why.
    pub note: String,
}

impl AlertView {
    /// The view of an alert in a registry.
    pub fn new(registry: &Registry, alert: &AlertRecord) -> Self {
        let copied = alert.claims.iter().flat_map(|claim| &claim.copies).next();
        let name = copied.unwrap_or(&alert.item);
        let item = name.parse::<Label>().ok();
        Self {
            id: alert.id,
            kind: if copied.is_some() { COPIES_DIFFER } else { SEVERAL_ORIGINALS },
            item: name.clone(),
            prefix: item.as_ref().map(|item| item.prefix().to_owned()),
            claims: alert
                .claims
                .iter()
                .map(|claim| AlertClaimView::new(registry, claim, item.as_ref()))
                .collect(),
            first_seen: time(alert.first_seen),
            last_seen: time(alert.last_seen),
            times: alert.times,
            resolved: alert.resolved.as_ref().map(|end| AlertResolutionView {
                at: time(end.at),
                by: end.by.clone(),
                note: end.note.clone(),
            }),
        }
    }
}

impl AlertClaimView {
    fn new(registry: &Registry, claim: &AlertClaim, item: Option<&Label>) -> Self {
        let service = claim.archive.parse::<Label>().ok();
        let archive = service.as_ref().and_then(|service| registry.find(service));
        let evidence = claim.evidence.clone().unwrap_or_default();
        let versions = evidence
            .versions
            .into_iter()
            .map(|version| AlertVersionView { version: version.version, inventory: version.inventory });
        Self {
            archive: claim.archive.clone(),
            url: claim.url.clone(),
            timestamp: claim.timestamp.clone(),
            seen: time(claim.seen),
            own_prefix: item.zip(service.as_ref()).and_then(|(item, service)| item.shares_prefix(service)),
            depositor: evidence.depositor,
            deposited: evidence.deposited,
            epoch: evidence.epoch,
            versions: versions.collect(),
            copies: claim.copies.clone(),
            contact: archive.map(|archive| ContactView::new(&archive)),
        }
    }
}

fn time(seconds: i64) -> String {
    Instant::new(seconds, 0).map(|time| time.to_string()).unwrap_or_default()
}
