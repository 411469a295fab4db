//! The course of a hand-over that is given: step by step, each from what is durably known, until it is over.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::Handing;
use crate::holders::copy::{Source, bring_in};
use crate::holders::handover::{No, Terms};
use crate::holders::messages::{Answer, Kind, Message};
use crate::holders::peer::{Peer, PeerError};
use crate::holders::{HolderError, Verdict};
use crate::object::short;
use crate::service::Desk;
use crate::{ArchiveError, told};
use ibi_store::journal::State;

/// Between two tries, at first and at most.
const SOON: Duration = Duration::from_millis(200);
const LATE: Duration = Duration::from_secs(30);

/// Bytes of history that go with a grant.
const LONGEST_HISTORY: usize = 1 << 20;

/// How often hand-overs that others noted are looked for.
const OFTEN: Duration = Duration::from_millis(500);

/// Where a hand-over stands after a round.
enum Round {
    /// It goes on.
    Again,
    /// It waits for the taker.
    Later(String),
    /// It is over.
    Done,
}

/// Goes on with all hand-overs of an Archive that is on line at a URL, for ever.
pub async fn hand_over(desk: Arc<Desk>, own: String) {
    let mut busy: HashMap<String, tokio::task::JoinHandle<()>> = HashMap::new();
    loop {
        busy.retain(|_, task| !task.is_finished());
        let all = Handing::all(desk.data()).unwrap_or_default();
        for handing in all.into_iter().filter(|handing| !handing.failed) {
            let (desk, own) = (Arc::clone(&desk), own.clone());
            let name = handing.handover.clone();
            busy.entry(name).or_insert_with(|| tokio::spawn(to_its_end(desk, own, handing)));
        }
        tokio::time::sleep(OFTEN).await;
    }
}

async fn to_its_end(desk: Arc<Desk>, own: String, handing: Handing) {
    let mut wait = SOON;
    loop {
        // An operator may have said more of it, or ended it.
        let known = Handing::standing(desk.data(), &handing).ok().flatten();
        let Some(mut handing) = known else { return };
        let said = match round(&desk, &own, &handing).await {
            Ok(Round::Done) => return,
            Ok(Round::Again) => {
                wait = SOON;
                None
            }
            Ok(Round::Later(why)) => Some(why),
            Err(error) => {
                handing.failed = error.is_final() && !was_granted(&desk, &handing);
                Some(error.to_string())
            }
        };
        if said != handing.said || handing.failed {
            if let Some(said) = &said {
                tracing::warn!(item = %handing.item, to = %handing.to, %said, "a hand-over waits");
            }
            handing.said = said;
            if let Err(error) = note(&desk, handing.clone()).await {
                tracing::error!(%error, "cannot note how a hand-over goes");
            }
        }
        if handing.said.is_some() {
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LATE);
        }
    }
}

/// Notes how a hand-over goes. What an operator ended meanwhile stays ended, and what one said more of it stays said.
async fn note(desk: &Desk, handing: Handing) -> Result<(), ArchiveError> {
    desk.work(move |archive| {
        let data = archive.holdings().data();
        match Handing::standing(data, &handing)? {
            Some(known) => {
                // Who is not asked any more is not told apart by a token.
                let token = known.token.clone().filter(|_| !handing.failed);
                Handing { said: handing.said, failed: handing.failed, token, ..known }.write(data)
            }
            None => Ok(()),
        }
    })
    .await
}

fn was_granted(desk: &Desk, handing: &Handing) -> bool {
    // In doubt it was: then nobody gives up.
    desk.read().and_then(|holdings| holdings.was_granted(&handing.handover)).unwrap_or(true)
}

/// One step of a hand-over, from what is durably known.
async fn round(desk: &Arc<Desk>, own: &str, handing: &Handing) -> Result<Round, HolderError> {
    let Handing { handover, item, path, to, by, .. } = handing.clone();
    let peer = Peer::new(&to, handing.token.clone())?;
    let message = |kind, terms: Terms, history, links| Message {
        message: kind,
        terms,
        from: own.to_owned(),
        by: by.clone(),
        pass: Some(handing.pass.clone()),
        history,
        links,
    };
    let granted = desk.read()?.granted(&path)?;
    if let Some((terms, _)) = granted.filter(|(terms, _)| terms.handover == handover) {
        // What came before, the taker has with its copy; more than it reads would never be taken.
        let history = told::last(desk.read()?.told_history(&path)?, LONGEST_HISTORY);
        let links = {
            let holdings = desk.read()?;
            holdings.link_list(&holdings.item(&path)?.item, true)?
        };
        return match say(&peer, &item, &message(Kind::Grant, terms, history, links)).await? {
            Answer::Accepted => {
                let (label, name, at) = (item.clone(), handover.clone(), to.clone());
                let waited = desk.work(move |archive| archive.given(&label, &name, &at, &by)).await?;
                if !waited {
                    tracing::error!(%item, %to, "ALARM: a taker that was said to be gone has the Original; ask its operator");
                }
                Ok(Round::Again)
            }
            Answer::Fetching { said } => Ok(Round::Later(fetching(&to, said))),
            Answer::Ready { .. } => Ok(Round::Later(format!("{to} does not say that it has accepted"))),
        };
    }
    if desk.read()?.has_given(&handover)? {
        return finish(desk, handing).await;
    }
    if desk.read()?.was_granted(&handover)? {
        // It came back from its taker, or was declared the Original, before anybody had answered.
        handing.end(desk.data())?;
        return Ok(Round::Done);
    }
    if desk.read()?.is_restored() {
        return restored(desk, handing, peer).await;
    }
    let (_, terms) = desk.read()?.terms(&item, handover)?;
    match say(&peer, &item, &message(Kind::Offer, terms.clone(), Vec::new(), Vec::new())).await? {
        Answer::Ready { archive: None } => {
            let what = "it is ready, and does not say which Archive it is".to_owned();
            Err(PeerError::NotAnArchive { url: to, what }.into())
        }
        Answer::Ready { archive: taker } => {
            let handing = handing.clone();
            let granted = desk.work(move |archive| {
                // It may have been given up while the taker was asked. Granted then, nobody would go on with it.
                let data = archive.holdings().data();
                let Some(known) = Handing::standing(data, &handing)? else { return Ok(()) };
                // Durably before it is granted: only that Archive may take it.
                Handing { taker, ..known }.write(data)?;
                archive.grant(&item, &terms, &to, &by)
            });
            match granted.await {
                // It was changed since: it is offered again as it is now.
                Err(ArchiveError::NoHandover { no: No::Changed, .. }) => Ok(Round::Again),
                granted => Ok(granted.map(|()| Round::Again)?),
            }
        }
        Answer::Fetching { said } => Ok(Round::Later(fetching(&to, said))),
        Answer::Accepted => {
            let what = format!("{to} says that it has accepted what was not granted: ask its operator");
            Err(ArchiveError::Value(what).into())
        }
    }
}

/// Of a hand-over that was offered when the backup was made nobody here knows how it ended: the taker does.
async fn restored(desk: &Arc<Desk>, handing: &Handing, peer: Peer) -> Result<Round, HolderError> {
    let Handing { item, by, to, path, .. } = handing;
    let held = match peer.held(item).await {
        Ok(held) => held,
        // It has not: as long as nothing is confirmed, nothing is handed over.
        Err(PeerError::Unknown { given_to: None, .. }) => return Err(ArchiveError::Restored.into()),
        Err(error) => return Ok(Round::Later(error.to_string())),
    };
    let epoch = desk.read()?.stand(path)?.epoch;
    match held.state {
        State::Original if held.epoch > epoch => {
            let brought = bring_in(desk, &Source::new(peer), item, by).await;
            match brought {
                Ok((Verdict::Behind, true)) => {
                    handing.end(desk.data())?;
                    Ok(Round::Done)
                }
                Ok(_) => Err(ArchiveError::Restored.into()),
                Err(error) => Ok(Round::Later(error.to_string())),
            }
        }
        // It had it, and gave it to somebody, who may be this one.
        State::Copy if held.epoch > epoch => Err(ArchiveError::NotHandedOver(format!(
            "{to} has had the Original of {item} since the backup (epoch {}), and gave it on: find out who has it now before you say \
             `ibi archive confirm`",
            held.epoch
        ))
        .into()),
        _ => Err(ArchiveError::Restored.into()),
    }
}

fn fetching(to: &str, said: Option<String>) -> String {
    // A stranger's words, as many as a person reads.
    let said = said.map(|said| said.chars().filter(|c| !c.is_control()).take(500).collect::<String>());
    said.map_or_else(
        || format!("{to} fetches the item"),
        |said| format!("{to} could not fetch the item: {said}"),
    )
}

/// The taker has it: the copy goes, if it is to go.
async fn finish(desk: &Arc<Desk>, handing: &Handing) -> Result<Round, HolderError> {
    // Come back meanwhile, or removed, it is not what was to go.
    let is_copy = desk.read()?.stand(&handing.path)?.state == Some(State::Copy);
    if !handing.keep && is_copy && is_there(desk, handing).await? {
        let Handing { item, by, to, .. } = handing.clone();
        let note = Some(format!("handed over to {to}"));
        let dropped = desk.work(move |archive| archive.drop_copy(&item, &by, note)).await;
        match dropped {
            Ok(()) | Err(ArchiveError::Dropped { .. } | ArchiveError::Unknown { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    handing.end(desk.data())?;
    Ok(Round::Done)
}

/// Whether the taker shows what it says that it has accepted: these may be the last bytes.
async fn is_there(desk: &Arc<Desk>, handing: &Handing) -> Result<bool, HolderError> {
    let (own, here) = {
        let holdings = desk.read()?;
        let version = holdings.item(&handing.path)?.version;
        let inventory = holdings.stand(&handing.path)?.inventory.unwrap_or_default();
        (holdings.settings().service.clone(), (inventory, version))
    };
    let held = match Peer::new(&handing.to, handing.token.clone())?.held(&handing.item).await {
        Ok(held) => Some(held),
        Err(PeerError::Unknown { .. } | PeerError::Gone { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let there = held.is_some_and(|held| {
        // One that passes on what is here has nothing.
        let another = !own.have(&held.archive);
        another && (held.version > here.1 || (held.version == here.1 && short(&held.inventory) == here.0))
    });
    if !there {
        let Handing { item, to, .. } = handing;
        tracing::error!(%item, %to, "ALARM: the taker does not show what it has accepted; the copy stays here");
    }
    Ok(there)
}

async fn say(peer: &Peer, item: &str, message: &Message) -> Result<Answer, HolderError> {
    let answer = peer.post(&format!("/items/{item}/handover"), message).await?;
    serde_json::from_value(answer).map_err(|error| {
        let url = peer.url().to_owned();
        PeerError::NotAnArchive { url, what: error.to_string() }.into()
    })
}
