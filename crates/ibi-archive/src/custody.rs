//! An Archive's durable knowledge of an item for transfers, and the transfer steps that change it.

use ibi_store::journal::{JournalEntry, LinkStatement, State, Verb};

use crate::ArchiveError;
use crate::archive::{Archive, HeldItem, Holdings};
use crate::links::{LinkSource, keys_of};
use crate::object::short_digest;
use crate::state_change::StateChange;
use crate::transfer_protocol::{self, CustodyState, TakerAction, TransferDenied, TransferTerms};

/// The journal keys of a transfer granted here, and of one accepted here.
fn granted_key(handover: &str) -> String {
    format!("grant:{handover}")
}

fn accepted_key(handover: &str) -> String {
    format!("accept:{handover}")
}

/// The last granted transfer, if nothing has ended it.
fn pending_grant(events: &[JournalEntry]) -> Option<&JournalEntry> {
    let ends = [Verb::Grant, Verb::Given, Verb::Accept, Verb::Declare, Verb::Drop];
    events.iter().rev().find(|event| ends.contains(&event.verb)).filter(|event| event.verb == Verb::Grant)
}

/// The epoch for declaring an item the Original: after all known ones. Ignores implausibly high
/// epochs reported by peers.
pub(crate) fn next_epoch(stand: &CustodyState, holding: &HeldItem) -> u64 {
    const MAX_PLAUSIBLE_EPOCH: u64 = 1 << 48;
    let heard = if holding.epoch < MAX_PLAUSIBLE_EPOCH { holding.epoch } else { 0 };
    stand.epoch.max(heard).saturating_add(1)
}

/// Whether an event's epoch was set by this Archive, not reported by a peer.
const fn is_own_epoch(verb: Verb) -> bool {
    !matches!(verb, Verb::Copy | Verb::Refresh | Verb::Repair | Verb::Given | Verb::Drop | Verb::Link)
}

impl Holdings {
    /// The durable state of the item at a path.
    pub fn custody_state(&self, path: &str) -> Result<CustodyState, ArchiveError> {
        let events = self.records.events(path)?;
        let record = self.records.item(path)?;
        let transferable = match &record {
            Some(_) => self.item(path)?.item.transferable,
            None => true,
        };
        let granted = pending_grant(&events).and_then(|event| event.key.as_deref());
        Ok(CustodyState {
            state: record.as_ref().map(|record| record.state),
            epoch: events
                .iter()
                .filter(|event| is_own_epoch(event.verb))
                .map(|event| event.epoch)
                .max()
                .unwrap_or(0),
            inventory: record.map(|record| record.inventory),
            restored: self.restored,
            transferable,
            granted: granted.map(|key| key.strip_prefix("grant:").unwrap_or(key).to_owned()),
        })
    }

    /// The open grant and its taker.
    pub fn open_grant(&self, path: &str) -> Result<Option<(TransferTerms, String)>, ArchiveError> {
        let events = self.records.events(path)?;
        Ok(pending_grant(&events).and_then(|event| {
            let handover = event.key.as_deref()?.strip_prefix("grant:")?.to_owned();
            let terms = TransferTerms { handover, epoch: event.epoch, inventory: event.inventory.clone() };
            Some((terms, event.to.clone()?))
        }))
    }

    /// Whether a transfer was ever granted here.
    pub fn was_granted(&self, handover: &str) -> Result<bool, ArchiveError> {
        Ok(self.item_by_request(&granted_key(handover))?.is_some())
    }

    /// Whether the taker of a transfer has acknowledged the Original.
    pub fn was_acknowledged(&self, handover: &str) -> Result<bool, ArchiveError> {
        Ok(self.item_by_request(&format!("given:{handover}"))?.is_some())
    }

    /// An item's history for another Archive: each event names where it happened.
    #[cfg(feature = "web")]
    pub(crate) fn history_for_peers(
        &self,
        path: &str,
    ) -> Result<Vec<crate::item_view::ItemEvent>, ArchiveError> {
        let here = self.settings().service.primary();
        let events = crate::item_view::history(self, path)?.into_iter().map(|mut event| {
            event.at.get_or_insert_with(|| here.to_owned());
            event
        });
        Ok(events.collect())
    }

    /// Whether this transfer of the item at a path was accepted here before.
    pub fn has_accepted(&self, path: &str, handover: &str) -> Result<bool, ArchiveError> {
        // The giver chooses the name: another giver may have used it for another item.
        let key = accepted_key(handover);
        Ok(self.records.events(path)?.iter().any(|event| event.key.as_ref() == Some(&key)))
    }

    /// The terms on which an item may be offered now, under this transfer name.
    pub fn transfer_terms(
        &self,
        label: &str,
        handover: String,
    ) -> Result<(HeldItem, TransferTerms), ArchiveError> {
        let (holding, _) = self.find(label)?;
        let stand = self.custody_state(&holding.path)?;
        transfer_protocol::may_offer(&stand)
            .map_err(|no| self.transfer_denied_error(label, &holding.path, no))?;
        let inventory = stand.inventory.unwrap_or_default();
        Ok((holding, TransferTerms { handover, epoch: stand.epoch.saturating_add(1), inventory }))
    }

    /// Turns a denial into an error for the user.
    pub(crate) fn transfer_denied_error(&self, label: &str, path: &str, no: TransferDenied) -> ArchiveError {
        let label = label.to_owned();
        match no {
            TransferDenied::Restored => ArchiveError::Restored,
            TransferDenied::Granted => {
                let to = self.transfer_recipient(path).ok().flatten().unwrap_or_default();
                ArchiveError::Granted { label, to }
            }
            no => ArchiveError::NoHandover { label, no },
        }
    }
}

impl Archive {
    /// Step 2 of a transfer: from here on the item is a Copy here, in the next epoch.
    pub fn grant(
        &mut self,
        label: &str,
        terms: &TransferTerms,
        to: &str,
        by: &str,
    ) -> Result<(), ArchiveError> {
        let (holding, object) = self.find_with_object(label)?;
        let stand = self.holdings.custody_state(&holding.path)?;
        if stand.granted.as_ref() == Some(&terms.handover) {
            return Ok(());
        }
        transfer_protocol::may_grant(&stand, terms)
            .map_err(|no| self.holdings.transfer_denied_error(label, &holding.path, no))?;
        let restated = StateChange {
            to: Some(to.to_owned()),
            key: Some(granted_key(&terms.handover)),
            ..StateChange::new(Verb::Grant, State::Copy, terms.epoch, by)
        };
        self.change_state(&holding.path, &object, restated)
    }

    /// Step 3 of a transfer, at the taker: the item becomes the Original here. Returns what must be
    /// done first, if anything.
    pub fn accept(
        &mut self,
        label: &str,
        terms: &TransferTerms,
        from: &TransferGiver<'_>,
    ) -> Result<TakerAction, ArchiveError> {
        let found = match self.find_with_object(label) {
            Ok(found) => Some(found),
            Err(ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. } | ArchiveError::Lost { .. }) => {
                None
            }
            Err(error) => return Err(error),
        };
        let path = match &found {
            Some((holding, _)) => holding.path.clone(),
            None => crate::item::LabelKey::parse(label).map(|label| label.folded).unwrap_or_default(),
        };
        let accepted = self.holdings.has_accepted(&path, &terms.handover)?;
        if accepted {
            return Ok(TakerAction::Accepted);
        }
        let stand = self.holdings.custody_state(&path)?;
        let take = transfer_protocol::decide_take(&stand, accepted, terms)
            .map_err(|no| self.holdings.transfer_denied_error(label, &path, no))?;
        let Some((holding, object)) = found.filter(|_| take == TakerAction::Accept) else { return Ok(take) };
        // Compare the bytes on disk, not the record of them.
        if short_digest(&object.digest) != terms.inventory {
            return Ok(TakerAction::Fetch);
        }
        let restated = StateChange {
            source: Some(from.url.to_owned()),
            key: Some(accepted_key(&terms.handover)),
            past: from.past.clone(),
            links: self.holdings.unseen_link_statements(
                (&holding.path, &keys_of(&holding.item)),
                &from.links,
                LinkSource::OriginalHolder,
            )?,
            ..StateChange::new(Verb::Accept, State::Original, terms.epoch, from.by)
        };
        self.change_state(&holding.path, &object, restated)?;
        Ok(TakerAction::Accepted)
    }

    /// Step 4 of a transfer: the taker, now at this URL, has acknowledged. Returns whether that was
    /// pending.
    pub fn complete_transfer(
        &mut self,
        label: &str,
        handover: &str,
        to: &str,
        by: &str,
    ) -> Result<bool, ArchiveError> {
        let (holding, object) = self.find_with_object(label)?;
        if self.holdings.custody_state(&holding.path)?.granted.as_deref() != Some(handover) {
            return Ok(false);
        }
        let (to, key) = (Some(to.to_owned()), Some(format!("given:{handover}")));
        let restated =
            StateChange { to, key, ..StateChange::new(Verb::Given, State::Copy, holding.epoch, by) };
        self.change_state(&holding.path, &object, restated).map(|()| true)
    }

    /// The operator asserts that the taker is lost: this copy becomes the Original again, in a
    /// later epoch.
    pub fn reclaim_original(&mut self, label: &str, by: &str) -> Result<(), ArchiveError> {
        let (holding, object) = self.find_with_object(label)?;
        let stand = self.holdings.custody_state(&holding.path)?;
        if stand.granted.is_none() {
            let what =
                format!("no transfer of {label} is pending: `ibi archive show {label}` shows its recipient");
            return Err(ArchiveError::NotHandedOver(what));
        }
        if stand.restored {
            return Err(ArchiveError::Restored);
        }
        let to = self.holdings.transfer_recipient(&holding.path)?.unwrap_or_default();
        let note = Some(format!("recipient {to} permanently lost"));
        let restated = StateChange {
            note,
            ..StateChange::new(Verb::Declare, State::Original, next_epoch(&stand, &holding), by)
        };
        self.change_state(&holding.path, &object, restated)
    }

    /// Drops a copy from this Archive.
    pub fn drop_copy(&mut self, label: &str, by: &str, note: Option<String>) -> Result<(), ArchiveError> {
        let (holding, _) = self.holdings.find(label)?;
        let stand = self.holdings.custody_state(&holding.path)?;
        transfer_protocol::may_drop(&stand).map_err(|no| match no {
            TransferDenied::IsOriginal => ArchiveError::NotHandedOver(format!(
                "{label} is the Original: it is handed over (`ibi archive transfer`) or removed (`ibi archive remove`)"
            )),
            TransferDenied::Removed => ArchiveError::Removed { label: label.to_owned() },
            no => self.holdings.transfer_denied_error(label, &holding.path, no),
        })?;
        self.remove_copy(&holding, by, note)
    }
}

/// The giver of an item.
#[derive(Debug, Clone)]
pub struct TransferGiver<'a> {
    /// Its URL.
    pub url: &'a str,
    /// Who requested the transfer there.
    pub by: &'a str,
    /// The item's history there.
    pub past: Option<String>,
    /// The link statements known there, including proposals.
    pub links: Vec<LinkStatement>,
}

impl Holdings {
    /// Where a copy last came from, initially or by a refresh.
    pub fn replica_source(&self, path: &str) -> Result<Option<String>, ArchiveError> {
        let brought = [Verb::Copy, Verb::Refresh, Verb::Given, Verb::Drop];
        let events = self.records.events(path)?;
        let last = events.into_iter().rev().find(|event| brought.contains(&event.verb));
        // After handing over the Original, the source is the taker.
        Ok(last.and_then(|event| event.source.or(event.to)))
    }
}
