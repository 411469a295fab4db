//! The labels of a deposit: minted now, minted here earlier, or from another Archive (clause 2.1).

use ibi_id::{Form, Label, ibip, repository};
use ibi_store::journal::State;

use crate::ArchiveError;
use crate::archive::Archive;
use crate::deposit::DepositRequest;
use crate::item::{ItemLabels, check_alias_count};
use ibi_mint::MintError;
use ibi_mint::clock::SystemClock;
use ibi_mint::{ClockLimits, Minter, Subsystem};

/// Retries while another process holds the minter, and the delay between them.
const MAX_MINTER_ATTEMPTS: u32 = 50;
const MINTER_RETRY_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

impl Archive {
    /// The minter of the data folder, opened when it is first needed.
    pub(crate) fn minter(&mut self) -> Result<&Minter, ArchiveError> {
        for tries in 1.. {
            if self.minter.is_some() {
                break;
            }
            match ibi_mint::open(&self.holdings.data, SystemClock::new(), ClockLimits::default()) {
                Ok(minter) => self.minter = Some(minter),
                Err(MintError::Store(error))
                    if tries < MAX_MINTER_ATTEMPTS
                        && matches!(*error, ibi_store::MarkStorageError::Held { .. }) =>
                {
                    std::thread::sleep(MINTER_RETRY_INTERVAL);
                }
                Err(refusal) => return Err(refusal.into()),
            }
        }
        // Set just now.
        self.minter.as_ref().ok_or(ArchiveError::Stopped)
    }

    /// Whether labels could be minted now. Does not wait, and issues nothing.
    #[cfg(feature = "web")]
    pub(crate) fn check_minting(&mut self) -> Result<(), ArchiveError> {
        if self.minter.is_none() {
            self.minter =
                Some(ibi_mint::open(&self.holdings.data, SystemClock::new(), ClockLimits::default())?);
        }
        let data = self.holdings.data.clone();
        let minter = self.minter()?;
        Ok(minter.check(&crate::deposit::mint_request(&data, minter, 1)?)?)
    }

    /// The existing labels of a draft, and the resulting state of the item; no labels if they are
    /// to be minted.
    pub(crate) fn given_labels(
        &self,
        draft: &DepositRequest,
    ) -> Result<(Option<ItemLabels>, State), ArchiveError> {
        let minter = ibi_mint::read_state(&self.holdings.data)?;
        check_alias_count(draft.aliases.len())?;
        for alias in &draft.aliases {
            check_not_future(&minter, alias)?;
        }
        let (labels, minted_here) = parse_supplied_labels(&minter, &draft.labels)?;
        if draft.labels.is_empty() {
            return if draft.original {
                Err(ArchiveError::OriginalAnyway)
            } else {
                Ok((None, State::Original))
            };
        }
        match (minted_here, draft.original) {
            (true, true) => Err(ArchiveError::OriginalAnyway),
            (true, false) | (false, true) => Ok((Some(labels), State::Original)),
            (false, false) => Ok((Some(labels), State::Copy)),
        }
    }

    /// The existing labels of metadata: minted here and not used yet, or from another Archive, as
    /// for items (clause 2.2).
    pub(crate) fn given_metadata_labels(&self, draft: &DepositRequest) -> Result<ItemLabels, ArchiveError> {
        if draft.metadata_labels.is_empty() {
            return Ok(ItemLabels::default());
        }
        let minter = ibi_mint::read_state(&self.holdings.data)?;
        Ok(parse_supplied_labels(&minter, &draft.metadata_labels)?.0)
    }
}

/// Existing labels, at most one per form; and whether they were minted here.
pub(crate) fn parse_supplied_labels(
    minter: &ibi_mint::MarkFileState,
    texts: &[String],
) -> Result<(ItemLabels, bool), ArchiveError> {
    let mut labels = ItemLabels::default();
    let mut minted_here: Option<ibi_id::Instant> = None;
    for text in texts {
        let label = Label::parse(text)
            .map_err(|error| ArchiveError::Label { label: text.escape_debug().to_string(), error })?;
        if labels.slot_mut(label.form()).replace(text.clone()).is_some() {
            return Err(ArchiveError::SecondLabel { label: text.clone() });
        }
        if has_own_prefix(&minter.subsystem, &label) {
            let mark = check_not_future(minter, text)?;
            if minted_here.is_some_and(|at| at != label.instant()) {
                let what = format!(
                    "{text} was minted at another instant than the other label: an item has one (2.2)"
                );
                return Err(ArchiveError::Value(what));
            }
            if mark.used.iter().any(|run| (run.first..=run.last).contains(&label.instant())) {
                minted_here = Some(label.instant());
            }
        }
    }
    if let Some(at) = minted_here {
        // Clause 2.2: minted, it has both forms.
        let twins = labels_at(&minter.subsystem, at);
        labels.rep = labels.rep.or(twins.rep);
        labels.ibip = labels.ibip.or(twins.ibip);
    }
    Ok((labels, minted_here.is_some()))
}

/// A future date under a prefix of this minter will be issued for something else.
pub(crate) fn check_not_future<'a>(
    minter: &'a ibi_mint::MarkFileState,
    text: &str,
) -> Result<&'a ibi_mint::MintMark, ArchiveError> {
    let label = Label::parse(text)
        .map_err(|error| ArchiveError::Label { label: text.escape_debug().to_string(), error })?;
    let mark = minter.mark.as_ref().map_err(|_| MintError::Stopped(ibi_mint::MinterHalt::Damaged))?;
    if has_own_prefix(&minter.subsystem, &label) && label.instant() > mark.last {
        return Err(ArchiveError::NotMinted { label: text.to_owned() });
    }
    Ok(mark)
}

/// Whether a label has a prefix of this minter.
pub(crate) fn has_own_prefix<S: AsRef<str>>(subsystem: &Subsystem, label: &Label<S>) -> bool {
    let twins = labels_at(subsystem, label.instant());
    let ours = match label.form() {
        Form::Repository => twins.rep,
        Form::Ibip => twins.ibip,
        Form::Legacy => None,
    };
    ours.is_some_and(|ours| Label::parse(&ours).is_ok_and(|ours| ours == *label))
}

/// The labels that one instant has in both forms.
fn labels_at(subsystem: &Subsystem, at: ibi_id::Instant) -> ItemLabels {
    ItemLabels {
        rep: subsystem.rep.as_ref().map(|prefix| format!("{prefix}/{}", repository::suffix(at))),
        ibip: subsystem.ibip.as_ref().and_then(|prefix| Some(format!("{prefix}/{}", ibip::suffix(at).ok()?))),
        legacy: None,
    }
}
