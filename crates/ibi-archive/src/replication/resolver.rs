//! Asks a resolver which Archives have an item (`docs/formats/resolution-json.md`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ReplicationError;
use super::copy::LocalView;
use super::giver_trust::OriginalTestimony;
use super::peer::{PeerArchive, PeerError};
use super::repair::PeerCandidate;
use crate::item::LabelKey;

/// A resolver's explanation, reduced to the fields needed here.
#[derive(Deserialize)]
struct HolderResolution {
    explanation: HolderExplanation,
}

#[derive(Deserialize)]
struct HolderExplanation {
    rounds: Vec<HolderRound>,
}

#[derive(Deserialize)]
struct HolderRound {
    archives: Vec<HolderReply>,
}

#[derive(Deserialize)]
struct HolderReply {
    archive: String,
    address: Option<String>,
    #[serde(default)]
    secure: bool,
    said: String,
    #[serde(default)]
    offers: Vec<HolderOffer>,
}

#[derive(Deserialize)]
struct HolderOffer {
    state: Option<String>,
}

impl HolderReply {
    fn base_url(&self) -> Option<String> {
        self.address.as_ref().map(|address| base_url(self.secure, address))
    }
}

/// An Archive is asked as the resolver asks it: one that serves TLS never without.
fn base_url(secure: bool, address: &str) -> String {
    format!("{}://{address}", if secure { "https" } else { "http" })
}

/// Maximum number of Archives accepted from a resolver.
const MAX_RESOLVER_ARCHIVES: usize = 1000;

/// The Archives, other than this one, that a resolver knows to have an item or that may have it.
pub async fn find_holders(
    here: &impl LocalView,
    resolver: &str,
    label: &str,
) -> Result<Vec<PeerCandidate>, ReplicationError> {
    let resolver = PeerArchive::new(resolver, None)?;
    let own = here.with_holdings(|here| Ok(here.settings().clone()))?;
    let resolution: HolderResolution = resolver.explain(label).await.map_err(not_a_resolver)?;
    let round = resolution.explanation.rounds.into_iter().next();
    let heard = round.map_or(Vec::new(), |round| round.archives).into_iter();
    let heard = heard.filter(|heard| heard.said != "nothing" && !own.is_service_label(&heard.archive));
    // One that did not answer the resolver may have it.
    let known =
        heard.filter_map(|heard| Some((heard.base_url()?, !matches!(&*heard.said, "offered" | "deleted"))));
    let known: BTreeMap<String, bool> = known.collect();
    if known.len() > MAX_RESOLVER_ARCHIVES {
        return Err(PeerError::TooMany { url: resolver.url().to_owned(), most: MAX_RESOLVER_ARCHIVES }.into());
    }
    let asked = known.into_iter().filter_map(|(url, perhaps)| {
        Some(PeerCandidate { peer: PeerArchive::new(&url, None).ok()?, perhaps })
    });
    Ok(asked.collect())
}

/// The claims to an item's Original that a resolver knows.
#[derive(Debug, Default)]
pub(crate) struct OriginalHolders {
    /// Other Archives that claim it, each with its registered label; if none does, those that
    /// report its removal.
    pub(crate) claims: Vec<(PeerArchive, String)>,
    /// The labels of all Archives that answered the resolver.
    pub(crate) answered: Vec<String>,
    /// Whether all other Archives answered.
    pub(crate) all_answered: bool,
}

/// The Archives, other than this one, that claim an item's Original, as a resolver knows them.
pub(crate) async fn find_original_holders(
    here: &impl LocalView,
    resolver: &str,
    label: &str,
) -> Result<OriginalHolders, ReplicationError> {
    let resolver = PeerArchive::new(resolver, None)?;
    let own = here.with_holdings(|here| Ok(here.settings().clone()))?;
    let resolution: HolderResolution =
        resolver.resolve_original(label, true).await.map_err(not_a_resolver)?;
    // If the resolver asked several rounds, the last one counts.
    let round = resolution.explanation.rounds.into_iter().next_back();
    let heard = round.map_or(Vec::new(), |round| round.archives);
    let claims = |heard: &&HolderReply| {
        heard.offers.iter().any(|offered| offered.state.as_deref() == Some("Original"))
    };
    let mut claimed: Vec<&HolderReply> = heard.iter().filter(claims).collect();
    if claimed.is_empty() {
        claimed = heard.iter().filter(|heard| heard.said == "deleted").collect();
    }
    let others = claimed.into_iter().filter(|heard| !own.is_service_label(&heard.archive));
    let claims = others.filter_map(|heard| {
        let peer = PeerArchive::new(&heard.base_url()?, None).ok()?;
        Some((peer, heard.archive.clone()))
    });
    let answers = ["nothing", "offered", "deleted"];
    let answered = heard.iter().filter(|heard| answers.contains(&heard.said.as_str()));
    let answered = answered.map(|heard| heard.archive.clone()).collect();
    let is_silent = |heard: &HolderReply| {
        !answers.contains(&heard.said.as_str()) && !own.is_service_label(&heard.archive)
    };
    let all_answered = !heard.iter().any(is_silent);
    Ok(OriginalHolders { claims: claims.collect(), answered, all_answered })
}

/// A resolver's testimony about a giver (clause 2.1).
#[derive(Debug)]
pub(super) struct ResolverTestimony {
    pub(super) says: OriginalTestimony,
    /// Why it is unclear, and whether a retry may help.
    pub(super) unclear: Option<(String, bool)>,
    /// The claimant of the Original, which may be the giver at another address.
    pub(super) claims: Option<PeerArchive>,
}

/// Asks a resolver whether exactly this giver has the Original: all Archives must have answered,
/// none may report a removal, and no other may claim it.
pub(super) async fn ask_testimony(
    here: &impl LocalView,
    resolver: &str,
    label: &str,
    giver: &str,
) -> Result<ResolverTestimony, ReplicationError> {
    let resolver = PeerArchive::new(resolver, None)?;
    let own = here.with_holdings(|here| Ok(here.settings().clone()))?;
    let resolution: HolderResolution =
        resolver.resolve_original(label, true).await.map_err(not_a_resolver)?;
    // If the resolver asked several rounds, the last one counts.
    let round = resolution.explanation.rounds.into_iter().next_back();
    let heard: Vec<HolderReply> = round.map_or(Vec::new(), |round| round.archives);
    let heard: Vec<&HolderReply> =
        heard.iter().filter(|heard| !own.is_service_label(&heard.archive)).collect();
    let clear = |says| ResolverTestimony { says, unclear: None, claims: None };
    if heard.iter().any(|heard| heard.said == "deleted") {
        return Ok(clear(OriginalTestimony::Removed));
    }
    let unclear = |why: String, is_transient| ResolverTestimony {
        says: OriginalTestimony::Unclear,
        unclear: Some((why, is_transient)),
        claims: None,
    };
    let is_original = |offered: &HolderOffer| offered.state.as_deref() == Some("Original");
    let claims: Vec<&&HolderReply> =
        heard.iter().filter(|heard| heard.offers.iter().any(is_original)).collect();
    let claim = match claims[..] {
        [] => None,
        [claim] => Some(claim),
        _ => return Ok(clear(OriginalTestimony::Elsewhere)),
    };
    let address = claim.and_then(|claim| claim.address.as_deref());
    if address.is_some_and(|address| !is_same_address(address, giver)) {
        let url = claim.and_then(|claim| claim.base_url());
        let claims = url.and_then(|url| PeerArchive::new(&url, None).ok());
        return Ok(ResolverTestimony { claims, ..clear(OriginalTestimony::Elsewhere) });
    }
    let answers = ["nothing", "offered", "deleted"];
    if let Some(silent) = heard.iter().find(|heard| !answers.contains(&heard.said.as_str())) {
        let why = format!("the Archive {} did not answer the resolver {}", silent.archive, resolver.url());
        return Ok(unclear(why, true));
    }
    Ok(match address {
        Some(_) => clear(OriginalTestimony::Giver),
        None => unclear(format!("the resolver {} knows nobody who has the Original", resolver.url()), false),
    })
}

/// The name by which a resolver knows the Archive at a URL. `told` is the Archive's own statement:
/// used if the resolver does not know the Archive, unless the name belongs to another.
pub(super) async fn registered_name(
    resolver: &str,
    giver: &str,
    told: String,
) -> Result<Option<String>, ReplicationError> {
    let listed: ArchiveList = PeerArchive::new(resolver, None)?.archives().await.map_err(not_a_resolver)?;
    let is_there = |archive: &&ListedArchive| {
        archive.address.as_deref().is_some_and(|address| is_same_address(address, giver))
    };
    if let Some(known) = listed.archives.iter().find(is_there) {
        return Ok(Some(known.service.clone()));
    }
    let canonical = |label: &str| LabelKey::parse(label).map(|label| label.canonical).ok();
    let name = canonical(&told);
    let is_others =
        name.is_none() || listed.archives.iter().any(|archive| canonical(&archive.service) == name);
    Ok(Some(told).filter(|_| !is_others))
}

/// Whether a resolver's address, `host[:port]`, is that of a URL.
fn is_same_address(address: &str, url: &str) -> bool {
    let (usual, at) = match url.split_once("://") {
        Some(("https", at)) => (":443", at),
        Some((_, at)) => (":80", at),
        None => return false,
    };
    let address = address.to_ascii_lowercase();
    address.strip_suffix(usual).unwrap_or(&address) == at.strip_suffix(usual).unwrap_or(at)
}

/// The other Archives that are online, as the resolver knows.
pub(crate) async fn online_archives(
    here: &impl LocalView,
    resolver: &str,
) -> Result<Vec<PeerArchive>, ReplicationError> {
    let online = list_online(here, resolver).await?.into_iter();
    Ok(online.filter_map(ListedArchive::peer).collect())
}

/// The Archive with this service label, if it is another one, and online.
pub(crate) async fn online_archive(
    here: &impl LocalView,
    resolver: &str,
    service: &str,
) -> Result<Option<PeerArchive>, ReplicationError> {
    let key = |label: &str| LabelKey::parse(label).ok().map(|label| label.canonical);
    let Some(wanted) = key(service) else { return Ok(None) };
    let mut online = list_online(here, resolver).await?.into_iter();
    let found = online.find(|archive| key(&archive.service).as_ref() == Some(&wanted));
    Ok(found.and_then(ListedArchive::peer))
}

/// The other Archives that are online.
async fn list_online(here: &impl LocalView, resolver: &str) -> Result<Vec<ListedArchive>, ReplicationError> {
    let own = here.with_holdings(|here| Ok(here.settings().clone()))?;
    let listed: ArchiveList = PeerArchive::new(resolver, None)?.archives().await.map_err(not_a_resolver)?;
    let others = listed.archives.into_iter().filter(|archive| !own.is_service_label(&archive.service));
    Ok(others.filter(|archive| archive.standing == "online").take(MAX_RESOLVER_ARCHIVES).collect())
}

#[derive(Deserialize)]
struct ArchiveList {
    archives: Vec<ListedArchive>,
}

#[derive(Deserialize)]
struct ListedArchive {
    service: String,
    standing: String,
    address: Option<String>,
    #[serde(default)]
    secure: bool,
}

impl ListedArchive {
    fn peer(self) -> Option<PeerArchive> {
        PeerArchive::new(&base_url(self.secure, &self.address?), None).ok()
    }
}

/// Maps the errors of an Archive request to those of a resolver request.
pub(super) fn not_a_resolver(error: PeerError) -> PeerError {
    match error {
        // A resolver does not answer 404 for an item that nobody has.
        PeerError::NotAnArchive { url, what } | PeerError::Unknown { url, detail: what, .. } => {
            PeerError::NotAResolver { url, what }
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_a_url_whatever_its_scheme() {
        assert!(is_same_address("a.example", "http://a.example"));
        assert!(is_same_address("A.example:80", "http://a.example"));
        assert!(is_same_address("a.example:443", "https://a.example"));
        assert!(is_same_address("a.example", "https://a.example"));
        assert!(is_same_address("a.example:8080", "http://a.example:8080"));
        for other in ["a.example:81", "b.example", "a.example:443", ""] {
            assert!(!is_same_address(other, "http://a.example"), "{other}");
        }
    }
}
