//! Which Archives are asked first (4.4): those that probably hold the item. The others are asked a
//! moment later, or as soon as these have not decided it.

use std::time::Duration;

use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;

use super::roster::ArchiveRoster;

/// How long Archives that probably hold the item are waited for before the others are asked.
pub(super) const LIKELY_HEAD_START: Duration = Duration::from_millis(50);

/// The order in which Archives are asked, as positions in the roster.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AskingOrder {
    pub(super) first: Vec<usize>,
    pub(super) rest: Vec<usize>,
    /// Whether the others are not asked at all if the first answer is good.
    pub(super) is_alone: bool,
}

impl AskingOrder {
    /// Orders the Archives at the positions `open`. `holder` lately held the Original of this very
    /// item, `likely` held it once or hold others of its prefix; `is_indexed` says whether the
    /// index has answered for an Archive.
    pub(super) fn new(
        roster: &ArchiveRoster,
        open: Vec<usize>,
        label: &Label,
        holder: Option<ArchiveId>,
        likely: &[ArchiveId],
        is_indexed: impl Fn(ArchiveId) -> bool,
    ) -> Self {
        let archive = |place: &usize| &roster.members[*place].archive;
        if let Some(holder) = holder {
            let (first, rest): (Vec<usize>, Vec<usize>) =
                open.iter().partition(|place| archive(place).id == holder);
            if !rest.is_empty() && (!first.is_empty() || is_indexed(holder)) {
                return Self { first, rest, is_alone: true };
            }
        }
        let is_likely = |place: &usize| {
            let archive = archive(place);
            label.shares_prefix(&archive.service) == Some(true) || likely.contains(&archive.id)
        };
        let (first, rest): (Vec<usize>, Vec<usize>) = open.iter().partition(|place| is_likely(place));
        if first.is_empty() {
            return Self { first: rest, rest: Vec::new(), is_alone: false };
        }
        Self { first, rest, is_alone: false }
    }
}
