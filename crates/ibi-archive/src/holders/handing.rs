//! Hand-overs that this Archive gives. Each is a file in `service/handovers/`, so that it goes on by itself after any restart
//! (`docs/formats/holders.md`); what is true of the item stands in the journal.

mod course;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::HolderError;
use super::copy::Here;
use super::handover::Step;
use super::messages::Standing;
use super::peer::Peer;
use crate::ArchiveError;
use crate::archive::Holdings;
use crate::item::Spelling;

pub use course::hand_over;

const FORMAT: u32 = 1;

/// How long a taker is waited for that is said to be elsewhere.
const PATIENCE: Duration = Duration::from_secs(20);

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
    /// The service of the taker, once that has said that it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taker: Option<String>,
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
        let before = Self::all(holdings.data())?.into_iter().filter(|before| before.path == holding.path);
        let before: Vec<Self> = before.collect();
        let (handover, taker) = match holdings.granted(&holding.path)? {
            Some((terms, granted)) => {
                let noted = before.into_iter().find(|before| before.handover == terms.handover);
                let taker = noted.and_then(|noted| noted.taker);
                // Who may take it is known by its service: that may have moved.
                if granted != to && taker.is_none() {
                    return Err(ArchiveError::Granted { label: wish.item, to: granted }.into());
                }
                (terms.handover, taker)
            }
            None => {
                let fresh = random()?;
                holdings.terms(&wish.item, fresh.clone())?;
                before.iter().try_for_each(|before| before.end(holdings.data()))?;
                (fresh, None)
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
            taker,
        };
        sweep(holdings.data());
        handing.write(holdings.data())?;
        Ok(handing)
    }

    /// Whether somebody else may be named for what was granted already: only the taker itself, at another address, as it says.
    /// To be asked before it is begun anew.
    pub async fn may_move(here: &impl Here, wish: &Wish) -> Result<(), HolderError> {
        let peer = Peer::new(&wish.to, wish.token.clone())?;
        let known = here.look(|here| {
            let (holding, _) = here.find(&wish.item)?;
            let granted = here.granted(&holding.path)?.filter(|(_, to)| to != peer.url());
            let taker = Self::of(here.data(), &holding.path)?.and_then(|noted| noted.taker);
            Ok(granted.map(|(_, to)| (to, taker)))
        });
        let Some((to, taker)) = known? else { return Ok(()) };
        let held = peer.held_within(PATIENCE, &wish.item).await?;
        match Some(held.archive) == taker {
            true => Ok(()),
            false => Err(ArchiveError::Granted { label: wish.item.clone(), to }.into()),
        }
    }

    /// Refuses what is to be said of a restored Archive as long as it has not heard how hand-overs ended that were offered when the
    /// backup was made. One that was granted goes on.
    pub fn none_open(holdings: &Holdings) -> Result<(), ArchiveError> {
        for Self { item, to, handover, failed, .. } in Self::all(holdings.data())? {
            if holdings.is_restored() && !failed && !holdings.was_granted(&handover)? {
                return Err(ArchiveError::NotHandedOver(format!(
                    "{item} was being handed over to {to} when the backup was made, and how that ended is not known yet: put this Archive \
                     on line (`ibi archive serve`), and it asks; or, if nobody can be asked any more, `ibi archive transfer {item} --cancel`"
                )));
            }
        }
        Ok(())
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
        // What was not written whole is beside it under another name, and was not begun.
        let entries =
            entries.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == "json"));
        for entry in entries {
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

    /// How a hand-over stands here, told to who knows its name.
    pub fn told(holdings: &Holdings, label: &str, handover: &str) -> Result<Standing, ArchiveError> {
        let none = Standing { step: Step::None, terms: None, taker: None };
        let path = match holdings.find(label) {
            Ok((holding, _)) => holding.path,
            Err(ArchiveError::Dropped { .. }) => return Ok(none),
            Err(error) => return Err(error),
        };
        let noted = Self::of(holdings.data(), &path)?.filter(|handing| handing.handover == handover);
        let taker = noted.as_ref().and_then(|handing| handing.taker.clone());
        let granted =
            holdings.granted(&path)?.map(|(terms, _)| terms).filter(|terms| terms.handover == handover);
        if let Some(terms) = granted {
            return Ok(Standing { step: Step::Granted, terms: Some(terms), taker });
        }
        let offered = noted.filter(|handing| !handing.failed);
        Ok(match offered.and_then(|handing| holdings.terms(label, handing.handover).ok()) {
            Some((_, terms)) => Standing { step: Step::Offered, terms: Some(terms), taker },
            None => none,
        })
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
        let noted = Self::of_label(holdings, label)?;
        if let Some(over) = noted.iter().find(|handing| handing.is_done(holdings).unwrap_or(true)) {
            let what = format!("{label} was handed over to {}: there is nothing to give up", over.to);
            return Err(ArchiveError::NotHandedOver(what));
        }
        if noted.is_empty() {
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
        // Left there by who was killed while noting how it goes.
        let _ = std::fs::remove_file(place.with_extension("new"));
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

/// Throws away what was left by who was killed before it had begun a hand-over: a token may be in it. Only who has the Archive
/// to write notes hand-overs, so that nobody is writing them.
fn sweep(data: &Path) {
    let entries = std::fs::read_dir(folder(data)).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "new")) {
        let _ = std::fs::remove_file(entry.path());
    }
}

fn random() -> Result<String, ArchiveError> {
    let mut bytes = [0; 16];
    let random = getrandom::fill(&mut bytes);
    random.map_err(|error| ArchiveError::Value(format!("the system gives no randomness: {error}")))?;
    Ok(ibi_store::digests::hex(&bytes))
}
