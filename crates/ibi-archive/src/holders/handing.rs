//! Hand-overs that this Archive gives. Each is a file in `service/handovers/`, so that it goes on by itself after any restart
//! (`docs/formats/holders.md`); what is true of the item stands in the journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::HolderError;
use super::handover::Terms;
use super::messages::{Answer, Kind, Message};
use super::peer::{Peer, PeerError};
use crate::ArchiveError;
use crate::archive::Holdings;
use crate::item::Spelling;
use crate::service::Desk;

const FORMAT: u32 = 1;

/// Between two tries, at first and at most.
const SOON: Duration = Duration::from_millis(200);
const LATE: Duration = Duration::from_secs(30);

/// How often hand-overs that others noted are looked for.
const OFTEN: Duration = Duration::from_millis(500);

/// A hand-over that was begun here and is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handing {
    format: u32,
    /// Its name.
    pub handover: String,
    /// The label that the operator gave.
    pub item: String,
    /// The path of the item's object.
    pub path: String,
    /// The taker.
    pub to: String,
    /// What the taker knows us by.
    token: Option<String>,
    /// What lets the taker fetch the item, though it be closed.
    pass: String,
    /// Whether a Copy stays here.
    pub keep: bool,
    /// Who hands over.
    pub by: String,
    /// Since when.
    pub begun: String,
    /// Why it does not go on, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Whether it was given up: the item is the Original here as before.
    #[serde(default)]
    pub failed: bool,
}

/// What an operator says of a hand-over.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The item.
    pub item: String,
    /// The taker.
    pub to: String,
    /// What the taker knows us by.
    pub token: Option<String>,
    /// Whether a Copy stays here.
    pub keep: bool,
    /// Who hands over.
    pub by: String,
}

fn folder(data: &Path) -> PathBuf {
    data.join("service/handovers")
}

impl Handing {
    /// Notes that an item is to be handed over, or says more of a hand-over that goes on; whoever has the Archive on line does
    /// the rest. Only for who has the Archive to write: a grant must not come between.
    pub fn begin(holdings: &Holdings, wish: Wish, now: String) -> Result<Self, HolderError> {
        // A URL or a token that cannot be is told at once.
        let to = Peer::new(&wish.to, wish.token.clone())?.url().to_owned();
        let (holding, _) = holdings.find(&wish.item)?;
        let handover = match holdings.granted(&holding.path)? {
            Some((terms, granted)) if granted == to => terms.handover,
            Some((_, granted)) => {
                return Err(ArchiveError::Granted { label: wish.item, to: granted }.into());
            }
            None => {
                let fresh = random()?;
                holdings.terms(&wish.item, fresh.clone())?;
                let all = Self::all(holdings.data())?;
                let before = all.iter().filter(|before| before.path == holding.path);
                before.into_iter().try_for_each(|before| before.end(holdings.data()))?;
                fresh
            }
        };
        let handing = Self {
            format: FORMAT,
            handover,
            item: wish.item,
            path: holding.path,
            to,
            token: wish.token,
            pass: random()?,
            keep: wish.keep,
            by: wish.by,
            begun: now,
            said: None,
            failed: false,
        };
        handing.write(holdings.data())?;
        Ok(handing)
    }

    /// All that are not over, in order of their names.
    pub fn all(data: &Path) -> Result<Vec<Self>, ArchiveError> {
        let folder = folder(data);
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ArchiveError::io("read", &folder)(error)),
        };
        let mut all = Vec::new();
        for entry in entries.flatten() {
            // One that is just being ended is gone; one of a newer program is that program's.
            let read = std::fs::read(entry.path()).ok();
            let read = read.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
            all.extend(read.filter(|handing| handing.format == FORMAT));
        }
        all.sort_by(|a: &Self, b| a.handover.cmp(&b.handover));
        Ok(all)
    }

    /// That of an item.
    pub fn of(data: &Path, path: &str) -> Result<Option<Self>, ArchiveError> {
        Ok(Self::all(data)?.into_iter().find(|handing| handing.path == path))
    }

    /// A hand-over as it is noted now; nothing if it was given up, or another one took its place.
    fn standing(data: &Path, handing: &Self) -> Result<Option<Self>, ArchiveError> {
        let mut all = Self::all(data)?.into_iter();
        Ok(all.find(|known| known.handover == handing.handover && !known.failed))
    }

    /// Whether somebody who knows this may fetch the item, whoever else may.
    pub(crate) fn opens(data: &Path, path: &str, pass: &str) -> bool {
        let handing = Self::of(data, path).ok().flatten();
        handing.is_some_and(|handing| ibi_http::token::equal(&handing.pass, pass))
    }

    /// Gives a hand-over up that was not granted.
    pub fn cancel(holdings: &Holdings, label: &str) -> Result<(), ArchiveError> {
        if let Ok((holding, _)) = holdings.find(label)
            && let Some((_, to)) = holdings.granted(&holding.path)?
        {
            return Err(ArchiveError::Granted { label: label.to_owned(), to });
        }
        if Self::of_label(holdings, label)?.is_empty() {
            let what = format!("{label} is not being handed over: there is nothing to give up");
            return Err(ArchiveError::NotHandedOver(what));
        }
        Self::forget(holdings, label)
    }

    /// Whether its taker has said that it has the Original.
    pub fn is_done(&self, holdings: &Holdings) -> Result<bool, ArchiveError> {
        holdings.has_given(&self.handover)
    }

    /// Ends the hand-over of an item, if there is one.
    pub fn forget(holdings: &Holdings, label: &str) -> Result<(), ArchiveError> {
        Self::of_label(holdings, label)?.iter().try_for_each(|handing| handing.end(holdings.data()))
    }

    fn of_label(holdings: &Holdings, label: &str) -> Result<Vec<Self>, ArchiveError> {
        let path = match holdings.find(label) {
            Ok((holding, _)) => holding.path,
            // It is no longer here, and a note of it may be.
            Err(ArchiveError::Dropped { .. }) => {
                Spelling::parse(label).map(|label| label.folded).unwrap_or_default()
            }
            Err(error) => return Err(error),
        };
        Ok(Self::all(holdings.data())?.into_iter().filter(|handing| handing.path == path).collect())
    }

    fn write(&self, data: &Path) -> Result<(), ArchiveError> {
        // Text and booleans: nothing that JSON could refuse.
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        Ok(ibi_store::service::replace(&self.place(data), &bytes)?)
    }

    /// Ends it.
    pub fn end(&self, data: &Path) -> Result<(), ArchiveError> {
        let place = self.place(data);
        match std::fs::remove_file(&place) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ArchiveError::io("remove", &place)(error))
            }
            _ => Ok(()),
        }
    }

    fn place(&self, data: &Path) -> PathBuf {
        folder(data).join(format!("{}.json", self.handover))
    }
}

fn random() -> Result<String, ArchiveError> {
    let mut bytes = [0; 16];
    let random = getrandom::fill(&mut bytes);
    random.map_err(|error| ArchiveError::Value(format!("the system gives no randomness: {error}")))?;
    Ok(ibi_store::digests::hex(&bytes))
}

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
    let mut busy: std::collections::HashMap<String, tokio::task::JoinHandle<()>> =
        std::collections::HashMap::new();
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
                handing.failed = error.is_final() && !is_granted(&desk, &handing);
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
            Some(known) => Handing { said: handing.said, failed: handing.failed, ..known }.write(data),
            None => Ok(()),
        }
    })
    .await
}

fn is_granted(desk: &Desk, handing: &Handing) -> bool {
    // In doubt it is: then nobody gives up.
    desk.read().and_then(|holdings| holdings.granted(&handing.path)).map_or(true, |granted| granted.is_some())
}

/// One step of a hand-over, from what is durably known.
async fn round(desk: &Arc<Desk>, own: &str, handing: &Handing) -> Result<Round, HolderError> {
    let Handing { handover, item, path, to, by, .. } = handing.clone();
    let peer = Peer::new(&to, handing.token.clone())?;
    let message = |kind, terms: Terms, history| Message {
        message: kind,
        terms,
        from: own.to_owned(),
        by: by.clone(),
        pass: Some(handing.pass.clone()),
        history,
    };
    let granted = desk.read()?.granted(&path)?;
    if let Some((terms, _)) = granted.filter(|(terms, _)| terms.handover == handover) {
        let history = desk.read()?.told_history(&path)?;
        return match say(&peer, &item, &message(Kind::Grant, terms, history)).await? {
            Answer::Accepted => {
                let (label, name) = (item.clone(), handover.clone());
                let waited = desk.work(move |archive| archive.given(&label, &name, &by)).await?;
                if !waited {
                    tracing::error!(%item, %to, "ALARM: a taker that was said to be gone has the Original; ask its operator");
                }
                Ok(Round::Again)
            }
            Answer::Fetching { said } => Ok(Round::Later(fetching(&to, said))),
            Answer::Ready => Ok(Round::Later(format!("{to} does not say that it has accepted"))),
        };
    }
    if desk.read()?.has_given(&handover)? {
        return finish(desk, handing).await;
    }
    let (_, terms) = desk.read()?.terms(&item, handover)?;
    match say(&peer, &item, &message(Kind::Offer, terms.clone(), Vec::new())).await? {
        Answer::Ready => {
            let handing = handing.clone();
            let granted = desk.work(move |archive| {
                // It may have been given up while the taker was asked. Granted then, nobody would go on with it.
                match Handing::standing(archive.holdings().data(), &handing)? {
                    Some(_) => archive.grant(&item, &terms, &to, &by),
                    None => Ok(()),
                }
            });
            match granted.await {
                // It was changed since: it is offered again as it is now.
                Err(ArchiveError::NoHandover { no: super::handover::No::Changed, .. }) => Ok(Round::Again),
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
    let is_copy = desk.read()?.stand(&handing.path)?.state == Some(ibi_store::journal::State::Copy);
    if !handing.keep && is_copy {
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

async fn say(peer: &Peer, item: &str, message: &Message) -> Result<Answer, HolderError> {
    let answer = peer.post(&format!("/items/{item}/handover"), message).await?;
    serde_json::from_value(answer).map_err(|error| {
        let url = peer.url().to_owned();
        PeerError::NotAnArchive { url, what: error.to_string() }.into()
    })
}
