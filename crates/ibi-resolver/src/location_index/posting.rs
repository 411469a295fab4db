//! What one Archive has under one label, as bytes (`docs/formats/location-index.md`). The postings
//! of a label stand one after the other; they are read in place, since a redirect reads nothing
//! else.

use ibi_protocol::{ContentType, State};

/// The target of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PostingRole {
    Item,
    Alias,
    Metadata,
}

/// What one Archive has under one label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LabelPosting<'a> {
    pub(super) archive: u64,
    pub(super) role: PostingRole,
    pub(super) state: State,
    /// Whether a plain label may be answered without asking.
    pub(super) is_open: bool,
    /// What the target is.
    pub(super) contenttype: ContentType,
    /// When the Archive began to claim this state, in seconds since the Unix epoch.
    pub(super) since: i64,
    /// Whether another Archive was the known holder of the Original by then (`claims.rs`).
    pub(super) is_late: bool,
    /// Whether the Original was handed over by the Archive with the label's own prefix.
    pub(super) is_granted: bool,
    /// The label as the Archive spells it, folded.
    pub(super) spelling: &'a [u8],
    /// The name of the item in the Archive.
    pub(super) path: &'a [u8],
    /// The path of the URL of a plain label.
    pub(super) target: &'a [u8],
}

/// Archive, since, flags and the lengths of three texts.
const POSTING_HEAD_BYTES: usize = 8 + 8 + 1 + 3 * 2;

const IS_OPEN: u8 = 1 << 4;
const IS_METADATA: u8 = 1 << 5;
const IS_LATE: u8 = 1 << 6;
const IS_GRANTED: u8 = 1 << 7;

/// The postings of a value. Stops at what cannot be read.
pub(super) fn postings(value: &[u8]) -> impl Iterator<Item = LabelPosting<'_>> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let (posting, behind) = read_posting(rest)?;
        rest = behind;
        Some(posting)
    })
}

fn read_posting(value: &[u8]) -> Option<(LabelPosting<'_>, &[u8])> {
    let (head, rest) = value.split_at_checked(POSTING_HEAD_BYTES)?;
    let number = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
    let length = |at: usize| Some(usize::from(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?)));
    let flags = *head.get(16)?;
    let (spelling, rest) = rest.split_at_checked(length(17)?)?;
    let (path, rest) = rest.split_at_checked(length(19)?)?;
    let (target, rest) = rest.split_at_checked(length(21)?)?;
    let role = match flags & 3 {
        0 => PostingRole::Item,
        1 => PostingRole::Alias,
        _ => PostingRole::Metadata,
    };
    let state = match flags >> 2 & 3 {
        0 => State::Original,
        1 => State::Copy,
        _ => State::Deleted,
    };
    let contenttype = if flags & IS_METADATA != 0 { ContentType::Metadata } else { ContentType::Data };
    let posting = LabelPosting {
        archive: number(0)?,
        role,
        state,
        is_open: flags & IS_OPEN != 0,
        contenttype,
        since: number(8)?.cast_signed(),
        is_late: flags & IS_LATE != 0,
        is_granted: flags & IS_GRANTED != 0,
        spelling,
        path,
        target,
    };
    Some((posting, rest))
}

/// Appends a posting.
pub(super) fn write_posting(value: &mut Vec<u8>, posting: &LabelPosting<'_>) {
    let role = match posting.role {
        PostingRole::Item => 0,
        PostingRole::Alias => 1,
        PostingRole::Metadata => 2,
    };
    let state = match posting.state {
        State::Original => 0,
        State::Copy => 1,
        State::Deleted => 2,
    };
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let flags = flag(posting.is_open, IS_OPEN)
        | flag(posting.contenttype == ContentType::Metadata, IS_METADATA)
        | flag(posting.is_late, IS_LATE)
        | flag(posting.is_granted, IS_GRANTED);
    value.extend(posting.archive.to_le_bytes());
    value.extend(posting.since.to_le_bytes());
    value.push(role | state << 2 | flags);
    let texts = [posting.spelling, posting.path, posting.target];
    for text in texts {
        // Labels and paths are far shorter (`records::is_plausible`); a longer target is cut off,
        // and then leads nowhere.
        value.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    }
    for text in texts {
        value.extend(text.get(..usize::from(u16::MAX)).unwrap_or(text));
    }
}

/// Removes the postings of one item of an Archive.
pub(super) fn remove_posting(value: &mut Vec<u8>, archive: u64, path: &[u8]) {
    let mut kept = Vec::with_capacity(value.len());
    for posting in postings(value) {
        if posting.archive != archive || posting.path != path {
            write_posting(&mut kept, &posting);
        }
    }
    *value = kept;
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn postings_are_read_as_they_were_written(
            all in vec((any::<u64>(), 0..3_u8, 0..3_u8, any::<(bool, bool)>(), any::<i64>(), vec(any::<u8>(), 0..40)), 0..6),
            removed in 0..6_usize,
        ) {
            let posting = |(archive, role, state, (is_open, is_data), since, text): &(u64, u8, u8, (bool, bool), i64, Vec<u8>)| {
                let text: &'static [u8] = text.clone().leak();
                LabelPosting {
                    archive: *archive,
                    role: [PostingRole::Item, PostingRole::Alias, PostingRole::Metadata][usize::from(*role)],
                    state: [State::Original, State::Copy, State::Deleted][usize::from(*state)],
                    is_open: *is_open,
                    contenttype: if *is_data { ContentType::Data } else { ContentType::Metadata },
                    since: *since,
                    is_late: since % 2 == 0,
                    is_granted: since % 3 == 0,
                    spelling: text,
                    path: text,
                    target: &text[..text.len() / 2],
                }
            };
            let all: Vec<LabelPosting<'_>> = all.iter().map(posting).collect();
            let mut value = Vec::new();
            all.iter().for_each(|posting| write_posting(&mut value, posting));
            prop_assert_eq!(postings(&value).collect::<Vec<_>>(), all.clone());
            if let Some(gone) = all.get(removed) {
                remove_posting(&mut value, gone.archive, gone.path);
                let is_kept = |posting: &&LabelPosting<'_>| posting.archive != gone.archive || posting.path != gone.path;
                prop_assert_eq!(postings(&value).collect::<Vec<_>>(), all.iter().filter(is_kept).copied().collect::<Vec<_>>());
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..200)) {
            prop_assert!(postings(&bytes).count() <= bytes.len());
        }
    }
}
