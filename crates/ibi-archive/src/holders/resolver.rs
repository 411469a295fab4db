//! A resolver, asked which Archives have an item (`docs/formats/resolution-json.md`).

use serde::Deserialize;

use super::HolderError;
use super::copy::Here;
use super::peer::{Peer, PeerError};
use crate::item::{Labels, Spelling};

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
}

/// The Archives that have an item, apart from this one, as a resolver knows them.
pub async fn holders(here: &impl Here, resolver: &str, label: &str) -> Result<Vec<Peer>, HolderError> {
    let resolver = Peer::new(resolver, None)?;
    let own = here.look(|here| Ok(here.settings().service.clone()))?;
    let resolution: Resolution = resolver.explain(label).await.map_err(|error| match error {
        // What it says of an item that nobody has is no 404.
        PeerError::NotAnArchive { url, what } | PeerError::Unknown { url, detail: what } => {
            PeerError::NotAResolver { url, what }
        }
        error => error,
    })?;
    let asked = resolution.explanation.rounds.into_iter().next().map_or(Vec::new(), |round| round.archives);
    let mut holders = Vec::new();
    for heard in asked {
        let Some(address) = heard.address.filter(|_| !is_own(&own, &heard.archive)) else { continue };
        let Ok(peer) = Peer::new(&format!("http://{address}"), None) else { continue };
        let has_it = match &*heard.said {
            "nothing" => false,
            "offered" | "deleted" => true,
            // The resolver did not wait for it. One that does not answer us either may have it.
            _ => !matches!(peer.held(label).await, Err(PeerError::Unknown { .. })),
        };
        if has_it {
            holders.push(peer);
        }
    }
    Ok(holders)
}

fn is_own(own: &Labels, service: &str) -> bool {
    let Ok(service) = Spelling::parse(service) else { return false };
    own.iter().any(|label| Spelling::parse(label).is_ok_and(|own| own.canonical == service.canonical))
}
