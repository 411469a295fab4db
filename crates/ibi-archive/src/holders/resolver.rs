//! A resolver, asked which Archives have an item (`docs/formats/resolution-json.md`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::HolderError;
use super::copy::Here;
use super::peer::{Peer, PeerError};
use super::repair::Asked;

/// How a resolver came to its answer: only what is needed of it.
#[derive(Deserialize)]
struct Resolution {
    explanation: Explanation,
}

#[derive(Deserialize)]
struct Explanation {
    rounds: Vec<Round>,
}

#[derive(Deserialize)]
struct Round {
    archives: Vec<Heard>,
}

#[derive(Deserialize)]
struct Heard {
    archive: String,
    address: Option<String>,
    said: String,
    #[serde(default)]
    offers: Vec<Offered>,
}

#[derive(Deserialize)]
struct Offered {
    state: Option<String>,
}

/// Archives that are taken from a resolver's word.
const MOST: usize = 1000;

/// The Archives that have an item, or may have it, apart from this one, as a resolver knows them.
pub async fn holders(here: &impl Here, resolver: &str, label: &str) -> Result<Vec<Asked>, HolderError> {
    let resolver = Peer::new(resolver, None)?;
    let own = here.look(|here| Ok(here.settings().clone()))?;
    let resolution: Resolution = resolver.explain(label).await.map_err(not_a_resolver)?;
    let round = resolution.explanation.rounds.into_iter().next();
    let heard = round.map_or(Vec::new(), |round| round.archives).into_iter();
    let heard = heard.filter(|heard| heard.said != "nothing" && !own.are_of(&heard.archive));
    // One that did not answer the resolver may have it.
    let known =
        heard.filter_map(|heard| Some((heard.address?, !matches!(&*heard.said, "offered" | "deleted"))));
    let known: BTreeMap<String, bool> = known.collect();
    if known.len() > MOST {
        return Err(PeerError::TooMany { url: resolver.url().to_owned(), most: MOST }.into());
    }
    let asked = known.into_iter().filter_map(|(address, perhaps)| {
        Some(Asked { peer: Peer::new(&format!("http://{address}"), None).ok()?, perhaps })
    });
    Ok(asked.collect())
}

/// Who claims the Original of an item, as a resolver knows.
#[derive(Debug, Default)]
pub(crate) struct OriginalHolders {
    /// Other Archives that claim it, with the label that each is registered with; if none does, those that tell
    /// of its removal.
    pub(crate) claims: Vec<(Peer, String)>,
    /// The labels of all Archives that answered the resolver.
    pub(crate) answered: Vec<String>,
}

/// The Archives, apart from this one, that claim the Original of an item, as a resolver knows them.
pub(crate) async fn originals(
    here: &impl Here,
    resolver: &str,
    label: &str,
) -> Result<OriginalHolders, HolderError> {
    let resolver = Peer::new(resolver, None)?;
    let own = here.look(|here| Ok(here.settings().clone()))?;
    let resolution: Resolution = resolver.resolve_original(label, true).await.map_err(not_a_resolver)?;
    // Asked again, the last answers count.
    let round = resolution.explanation.rounds.into_iter().next_back();
    let heard = round.map_or(Vec::new(), |round| round.archives);
    let claims =
        |heard: &&Heard| heard.offers.iter().any(|offered| offered.state.as_deref() == Some("Original"));
    let mut claimed: Vec<&Heard> = heard.iter().filter(claims).collect();
    if claimed.is_empty() {
        claimed = heard.iter().filter(|heard| heard.said == "deleted").collect();
    }
    let others = claimed.into_iter().filter(|heard| !own.are_of(&heard.archive));
    let claims = others.filter_map(|heard| {
        let peer = Peer::new(&format!("http://{}", heard.address.as_ref()?), None).ok()?;
        Some((peer, heard.archive.clone()))
    });
    let answers = ["nothing", "offered", "deleted"];
    let answered = heard.iter().filter(|heard| answers.contains(&heard.said.as_str()));
    let answered = answered.map(|heard| heard.archive.clone()).collect();
    Ok(OriginalHolders { claims: claims.collect(), answered })
}

/// Other Archives that a resolver has online.
pub(crate) async fn online(here: &impl Here, resolver: &str) -> Result<Vec<Peer>, HolderError> {
    let own = here.look(|here| Ok(here.settings().clone()))?;
    let listed: ArchiveList = Peer::new(resolver, None)?.archives().await.map_err(not_a_resolver)?;
    let others = listed.archives.into_iter().filter(|archive| !own.are_of(&archive.service));
    let online = others.filter(|archive| archive.standing == "online").take(MOST);
    Ok(online.filter_map(|archive| Peer::new(&format!("http://{}", archive.address?), None).ok()).collect())
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
}

/// Who does not answer as a resolver does is none.
pub(super) fn not_a_resolver(error: PeerError) -> PeerError {
    match error {
        // What it says of an item that nobody has is no 404.
        PeerError::NotAnArchive { url, what } | PeerError::Unknown { url, detail: what, .. } => {
            PeerError::NotAResolver { url, what }
        }
        error => error,
    }
}
