//! Hand-overs that this Archive takes: it fetches what it is offered, and becomes the Original when it is granted.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::copy::{Source, bring_in, clear, path_of};
use super::handover::{No, Step, Take, is_given, take};
use super::messages::{Answer, Kind, Message, Standing};
use super::peer::Peer;
use super::stand::Given;
use super::{HolderError, Verdict};
use ibi_store::journal::State;

use crate::service::Desk;
use crate::{ArchiveError, item, told};

/// Items that are fetched for the hand-overs of one token at a time; others are fetched when they are offered again.
const MOST: usize = 8;

/// How long others are waited for who are asked whether it is so: much shorter than a giver waits for its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Copies that are known to be whole, for as many hand-overs: of others, every byte is read again.
const MOST_CHECKED: usize = 1000;

/// What is being fetched, and why the last try of others failed.
#[derive(Debug, Default)]
pub struct Taking {
    fetching: Mutex<HashMap<String, Fetching>>,
    /// What was read whole since this server was started, for which hand-over.
    checked: Mutex<VecDeque<Checked>>,
}

/// A path, and the hand-over and the inventory that it was read for.
type Checked = (String, String, String);

#[derive(Debug, PartialEq, Eq)]
enum Fetching {
    /// Whose token it is for.
    Now(String),
    /// Why, and whether trying again is of no use.
    Failed(String, bool),
}

impl Taking {
    /// Why a giver is not believed, though it says so itself: who should know of it says otherwise. That is who it was granted
    /// to here, if nobody has answered: then only that one hands it back. Else it is who the copy here came from.
    async fn doubt(desk: &Desk, label: &str, path: &str, message: &Message) -> Result<Doubt, HolderError> {
        let (granted, source) = {
            let holdings = desk.read()?;
            (holdings.granted(path)?.map(|(_, to)| to), holdings.source(path)?)
        };
        let is_granted = granted.is_some();
        let Some(knows) = granted.or(source).filter(|knows| *knows != message.from) else {
            return Ok(Doubt::No);
        };
        let peer = Peer::new(&knows, None)?;
        let asked = async { tokio::join!(peer.standing(label, &message.terms.handover), peer.held(label)) };
        let asked = tokio::time::timeout(PATIENCE, asked).await;
        // It may be the giver itself, under another address.
        if let Ok((Ok(standing), _)) = &asked
            && confirms(message, standing)
        {
            return Ok(Doubt::No);
        }
        Ok(match asked {
            _ if is_granted => Doubt::Wait(format!("{knows} was granted it from here, and has not answered")),
            Ok((_, Ok(held))) if held.state == State::Original => Doubt::Yes,
            // Who does not answer in time says nothing: the giver is known by its token, and waits.
            _ => Doubt::No,
        })
    }

    /// Answers a giver; `token` is the name of the token that it has from us.
    pub async fn answer(
        self: &Arc<Self>,
        desk: &Arc<Desk>,
        label: String,
        message: Message,
        token: &str,
    ) -> Result<Answer, HolderError> {
        message.check().map_err(|what| ArchiveError::Value(what.to_owned()))?;
        let path = place_of(desk, &label)?;
        let giver = Peer::new(&message.from, None)?.url().to_owned();
        let message = Message { from: giver, ..message };
        let Message { terms, .. } = &message;
        let next = {
            let holdings = desk.read()?;
            let accepted = holdings.has_accepted(&path, &terms.handover)?;
            let next = take(&holdings.stand(&path)?, accepted, terms);
            next.map_err(|no| holdings.no_handover(&label, &path, no))?
        };
        if next == Take::Accepted {
            clear(desk.data(), &path);
            return Ok(Answer::Accepted);
        }
        // Who has a token may say anything, also of an Archive that hands nothing over.
        let giver = Peer::new(&message.from, message.pass.clone())?;
        let asked = giver.standing(&label, &terms.handover);
        let standing = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(standing)) => standing,
            Ok(Err(error)) => return Ok(Answer::Fetching { said: Some(error.to_string()) }),
            Err(_) => {
                let said = format!("{} was asked whether it hands it over, and does not answer", giver.url());
                return Ok(Answer::Fetching { said: Some(said) });
            }
        };
        if !confirms(&message, &standing) {
            // It was changed since, and is offered again as it is now.
            if message.message == Kind::Offer && standing.step != Step::None {
                return Ok(Answer::Fetching { said: None });
            }
            return Err(desk.read()?.no_handover(&label, &path, No::NotGiven).into());
        }
        let own = desk.read()?.settings().service.clone();
        if standing.taker.is_some_and(|taker| !own.have(&taker)) {
            return Err(desk.read()?.no_handover(&label, &path, No::NotGiven).into());
        }
        match Self::doubt(desk, &label, &path, &message).await? {
            Doubt::No => {}
            Doubt::Wait(said) => return Ok(Answer::Fetching { said: Some(said) }),
            Doubt::Yes => return Err(desk.read()?.no_handover(&label, &path, No::OriginalElsewhere).into()),
        }
        // "The taker first holds a verified Copy" (clause 2.1): a record of one is none. What is damaged is fetched again.
        if next == Take::Fetch || !self.is_checked(&checked(&path, &message)) {
            return self.fetch(desk, (label, path), message, token);
        }
        // All is here: a kill may have left what was fetched, and nobody fetches it again.
        clear(desk.data(), &path);
        match message.message {
            Kind::Offer => Ok(Answer::Ready { archive: Some(own.primary().to_owned()) }),
            Kind::Grant => self.accept(desk, (label, path), message, token).await,
        }
    }

    async fn accept(
        self: &Arc<Self>,
        desk: &Arc<Desk>,
        (label, path): (String, String),
        message: Message,
        token: &str,
    ) -> Result<Answer, HolderError> {
        let by = format!("{} ({token})", message.by);
        let (asked, said, place) = (label.clone(), message.clone(), path.clone());
        let taken = desk.work(move |archive| {
            let past = told::news(archive.holdings(), &place, said.history)?;
            let given = Given { url: &said.from, by: &by, past, links: said.links };
            archive.accept(&asked, &said.terms, &given)
        });
        match taken.await? {
            Take::Accepted | Take::Accept => Ok(Answer::Accepted),
            Take::Fetch => self.fetch(desk, (label, path), message, token),
        }
    }

    fn is_checked(&self, what: &Checked) -> bool {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).contains(what)
    }

    /// Fetches an item in the background, or reads every byte that is here, unless that is being done.
    fn fetch(
        self: &Arc<Self>,
        desk: &Arc<Desk>,
        (label, path): (String, String),
        message: Message,
        token: &str,
    ) -> Result<Answer, HolderError> {
        let checked = checked(&path, &message);
        let peer = Peer::new(&message.from, message.pass)?;
        let mut known = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        let said = match known.get(&label) {
            Some(Fetching::Now(_)) => return Ok(Answer::Fetching { said: None }),
            // Before the grant, that ends it; after it, the giver asks on, and an operator may have put it right.
            Some(Fetching::Failed(said, true)) if message.message == Kind::Offer => {
                let said = ArchiveError::NotHandedOver(format!("{label} cannot be taken: {said}"));
                known.remove(&label);
                return Err(said.into());
            }
            Some(Fetching::Failed(said, _)) => Some(said.clone()),
            None => None,
        };
        let mine = |fetching: &&Fetching| matches!(fetching, Fetching::Now(by) if by == token);
        if known.values().filter(mine).count() >= MOST {
            return Ok(Answer::Fetching { said: Some("it fetches others first".to_owned()) });
        }
        known.retain(|_, fetching| matches!(fetching, Fetching::Now(_)));
        known.insert(label.clone(), Fetching::Now(token.to_owned()));
        let (taking, desk, by) = (Arc::clone(self), Arc::clone(desk), token.to_owned());
        tokio::spawn(async move {
            let source = Source { gives: true, thorough: true, ..Source::new(peer) };
            let brought = bring_in(&desk, &source, &label, &by).await;
            let failed = match brought {
                Ok((Verdict::New | Verdict::Behind | Verdict::Equal, _)) => None,
                Ok((other, _)) => {
                    let said = format!(
                        "the taker's own copy is {}, and is not overwritten unasked: its operator says `ibi archive refresh {label} \
                         --overwrite`, or the hand-over is given up (`--cancel`)",
                        other.name()
                    );
                    Some((said, false))
                }
                Err(error) => {
                    Some((error.to_string(), matches!(error, HolderError::Archive(_)) && error.is_final()))
                }
            };
            let mut known = taking.fetching.lock().unwrap_or_else(PoisonError::into_inner);
            match failed {
                None => {
                    known.remove(&label);
                    let mut all = taking.checked.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push_front(checked);
                    all.truncate(MOST_CHECKED);
                }
                Some((said, is_final)) => {
                    tracing::warn!(item = %label, %said, "cannot fetch what is handed over");
                    known.insert(label, Fetching::Failed(said, is_final));
                }
            }
        });
        Ok(Answer::Fetching { said })
    }
}

fn checked(path: &str, Message { terms, .. }: &Message) -> Checked {
    (path.to_owned(), terms.handover.clone(), terms.inventory.clone())
}

/// Whether a giver is believed.
enum Doubt {
    No,
    Yes,
    /// Nobody can tell yet.
    Wait(String),
}

/// Whether an Archive that is asked by itself says the same as a message.
fn confirms(message: &Message, standing: &Standing) -> bool {
    let granted = message.message == Kind::Grant;
    is_given(granted, &message.terms, standing.step, standing.terms.as_ref())
}

/// Where the item of a label lies, or would lie.
fn place_of(desk: &Desk, label: &str) -> Result<String, ArchiveError> {
    if let Some(path) = path_of(&*desk.read()?, label)? {
        return Ok(path);
    }
    let spelling = item::Spelling::parse(label);
    let spelling =
        spelling.map_err(|error| ArchiveError::Label { label: label.escape_debug().to_string(), error })?;
    Ok(spelling.folded)
}
