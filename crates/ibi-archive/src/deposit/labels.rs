//! The labels of a deposit: minted now, minted here earlier, or brought from elsewhere (clause 2.1).

use ibi_id::{Form, Label, ibip, repository};
use ibi_store::journal::State;

use crate::archive::Archive;
use crate::deposit::Draft;
use crate::item::Labels;
use crate::mint::clock::SystemClock;
use crate::mint::{self, Limits, Minter, Subsystem};
use crate::{ArchiveError, Refusal};

/// How often a minter that another process holds is asked for, and how long to wait in between.
const TRIES: u32 = 50;
const BETWEEN: std::time::Duration = std::time::Duration::from_millis(100);

impl Archive {
    /// The minter of the data folder, opened when it is first needed.
    pub(crate) fn minter(&mut self) -> Result<&Minter, ArchiveError> {
        for tries in 1.. {
            if self.minter.is_some() {
                break;
            }
            match mint::open(&self.holdings.data, SystemClock::new(), Limits::default()) {
                Ok(minter) => self.minter = Some(minter),
                Err(Refusal::Store(error))
                    if tries < TRIES && matches!(*error, ibi_store::StoreError::Held { .. }) =>
                {
                    std::thread::sleep(BETWEEN);
                }
                Err(refusal) => return Err(refusal.into()),
            }
        }
        // Set just now.
        self.minter.as_ref().ok_or(ArchiveError::Stopped)
    }

    /// The labels that a draft brings, and what the item is here by them; no labels if they are to be minted.
    pub(crate) fn given_labels(&self, draft: &Draft) -> Result<(Option<Labels>, State), ArchiveError> {
        let minter = mint::look(&self.holdings.data)?;
        for alias in &draft.aliases {
            check_not_ahead(&minter, alias)?;
        }
        let (labels, minted_here) = brought(&minter, &draft.labels)?;
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

    /// The labels that metadata bring: minted here and not used yet, or from elsewhere, as those of
    /// items (clause 2.2).
    pub(crate) fn given_metadata_labels(&self, draft: &Draft) -> Result<Labels, ArchiveError> {
        if draft.metadata_labels.is_empty() {
            return Ok(Labels::default());
        }
        let minter = mint::look(&self.holdings.data)?;
        Ok(brought(&minter, &draft.metadata_labels)?.0)
    }
}

/// Labels that are brought along, at most one a form; and whether they were minted here.
pub(crate) fn brought(minter: &mint::State, texts: &[String]) -> Result<(Labels, bool), ArchiveError> {
    let mut labels = Labels::default();
    let mut minted_here: Option<ibi_id::Instant> = None;
    for text in texts {
        let label = Label::parse(text)
            .map_err(|error| ArchiveError::Label { label: text.escape_debug().to_string(), error })?;
        if labels.of(label.form()).replace(text.clone()).is_some() {
            return Err(ArchiveError::SecondLabel { label: text.clone() });
        }
        if is_ours(&minter.subsystem, &label) {
            let mark = check_not_ahead(minter, text)?;
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
        let twins = twins(&minter.subsystem, at);
        labels.rep = labels.rep.or(twins.rep);
        labels.ibip = labels.ibip.or(twins.ibip);
    }
    Ok((labels, minted_here.is_some()))
}

/// What lies ahead under a prefix of this minter is given out in its time, to something else.
pub(crate) fn check_not_ahead<'a>(
    minter: &'a mint::State,
    text: &str,
) -> Result<&'a mint::Mark, ArchiveError> {
    let label = Label::parse(text)
        .map_err(|error| ArchiveError::Label { label: text.escape_debug().to_string(), error })?;
    let mark = minter.mark.as_ref().map_err(|_| Refusal::Stopped(crate::Stop::Damaged))?;
    if is_ours(&minter.subsystem, &label) && label.instant() > mark.last {
        return Err(ArchiveError::NotMinted { label: text.to_owned() });
    }
    Ok(mark)
}

/// Whether a label has a prefix of this minter.
pub(crate) fn is_ours<S: AsRef<str>>(subsystem: &Subsystem, label: &Label<S>) -> bool {
    let twins = twins(subsystem, label.instant());
    let ours = match label.form() {
        Form::Repository => twins.rep,
        Form::Ibip => twins.ibip,
        Form::Legacy => None,
    };
    ours.is_some_and(|ours| Label::parse(&ours).is_ok_and(|ours| ours == *label))
}

/// The labels that one instant has in both forms.
fn twins(subsystem: &Subsystem, at: ibi_id::Instant) -> Labels {
    Labels {
        rep: subsystem.rep.as_ref().map(|prefix| format!("{prefix}/{}", repository::suffix(at))),
        ibip: subsystem.ibip.as_ref().and_then(|prefix| Some(format!("{prefix}/{}", ibip::suffix(at).ok()?))),
        legacy: None,
    }
}
