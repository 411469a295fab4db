//! The rules of a change: each label leads to one item (clause 1.3), and links form no cycles
//! (clause 2.4).

use std::collections::HashSet;

use ibi_id::Label;
use ibi_store::index::{IndexMatch, LabelRole, LinkKind};
use ibi_store::journal::{State, Verb};
use ibi_store::ocfl::logical_path;

use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::deposit::{DepositRequest, DepositSource, has_own_prefix};
use crate::item::{ItemDescription, ItemLabels, LabelKey};
use crate::prepared_change::{PreparedChange, StagedFile};

/// A longer chain of editions or translations is treated as a cycle.
const MAX_LINK_CHAIN: usize = 100_000;

/// Checks a change and returns the path of its object.
pub(crate) fn check_change(holdings: &Holdings, change: &mut PreparedChange) -> Result<String, ArchiveError> {
    let path = match &change.base {
        Some(base) => base.path.clone(),
        None => new_path(holdings, &change.item, change.whole.is_some())?,
    };
    check_folders(&change.files)?;
    let own = change.base.as_ref().map(|base| base.path.as_str());
    check_labels(holdings, &change.item, own)?;
    // Items from another Archive were checked there, against items that need not be here.
    if change.item.removed.is_none() && change.whole.is_none() {
        check_links(holdings, &mut change.item, &path)?;
        check_target(&change.item, &change.files)?;
        if change.item.url.is_some() && !change.files.is_empty() {
            return Err(ArchiveError::FilesAndUrl);
        }
    }
    Ok(path)
}

/// A file cannot also be a folder of other files: no disk could hold both, and OCFL 1.1 (E095)
/// forbids it.
fn check_folders(files: &[StagedFile]) -> Result<(), ArchiveError> {
    let names: HashSet<&str> = files.iter().map(|file| file.file.path.as_str()).collect();
    for name in &names {
        let mut folders = name.match_indices('/').map(|(at, _)| &name[..at]);
        if let Some(file) = folders.find(|folder| names.contains(folder)) {
            let what = format!(
                "`{file}` is a file, and `{name}` needs a folder of that name: leave one out, or name it otherwise"
            );
            return Err(ArchiveError::Value(what));
        }
    }
    Ok(())
}

/// Checks the description of an item without staged files.
pub(crate) fn check_draft(
    holdings: &Holdings,
    draft: &DepositRequest,
    labels: &ItemLabels,
    metadata: &ItemLabels,
    source: &DepositSource,
) -> Result<(), ArchiveError> {
    let mut item = ItemDescription {
        labels: labels.clone(),
        metadata: metadata.clone(),
        aliases: draft.aliases.clone(),
        translation_of: draft.translation_of.clone(),
        next_edition_of: draft.next_edition_of.clone(),
        ..ItemDescription::default()
    };
    let path = if labels.primary().is_empty() { String::new() } else { new_path(holdings, &item, false)? };
    check_labels(holdings, &item, None)?;
    check_links(holdings, &mut item, &path)?;
    if draft.url.is_some() && !source.files().is_empty() {
        return Err(ArchiveError::FilesAndUrl);
    }
    let Some(target) = &draft.target else { return Ok(()) };
    let files: Vec<String> =
        source.files().iter().filter_map(|file| logical_path(file.name()).ok()).collect();
    if files.contains(target) || logical_path(target.as_bytes()).is_ok_and(|target| files.contains(&target)) {
        return Ok(());
    }
    Err(ArchiveError::Target { target: target.clone(), files })
}

fn label_error(label: &str) -> impl FnOnce(ibi_id::ParseError) -> ArchiveError {
    let label = label.escape_debug().to_string();
    move |error| ArchiveError::Label { label, error }
}

/// The path of a new item. `brought`: it is a complete object from another Archive, and may return
/// to its former path.
fn new_path(holdings: &Holdings, item: &ItemDescription, brought: bool) -> Result<String, ArchiveError> {
    let label = item.labels.primary();
    let path = item.object_path().map_err(label_error(label))?;
    // Reserved by the tree (OCFL 1.1, 4.5).
    if path.split('/').next() == Some("extensions") {
        return Err(ArchiveError::Nested { label: label.to_owned() });
    }
    // A path in the journal is not free either, whether its object was dropped, is missing or is
    // damaged.
    if let Some(last) = holdings.records.last_event(&path)?.filter(|_| !brought)
        && holdings.records.item(&path)?.is_none()
    {
        let label = label.to_owned();
        return Err(match last.verb {
            Verb::Drop => ArchiveError::Dropped { label, to: holdings.transfer_recipient(&path)? },
            _ => ArchiveError::Lost { label },
        });
    }
    // A label that belongs to an item has its own error.
    if !holdings.content.is_free(&path)? && holdings.records.item(&path)?.is_none() {
        return Err(ArchiveError::Nested { label: label.to_owned() });
    }
    Ok(path)
}

/// Each label must lead to this item and no other. `own` is the path of the item, if it exists.
fn check_labels(holdings: &Holdings, item: &ItemDescription, own: Option<&str>) -> Result<(), ArchiveError> {
    let labels: Vec<(&str, LabelRole)> = item
        .labels
        .iter()
        .map(|label| (label, LabelRole::Item))
        .chain(item.aliases.iter().map(|label| (label.as_str(), LabelRole::Alias)))
        .chain(item.metadata.iter().map(|label| (label, LabelRole::Metadata)))
        .collect();
    let mut seen = HashSet::new();
    for (label, role) in &labels {
        let spelling = LabelKey::parse(label).map_err(label_error(label))?;
        if !seen.insert(spelling.canonical.clone()) {
            return Err(ArchiveError::Taken {
                label: (*label).to_owned(),
                item: item.labels.primary().to_owned(),
            });
        }
        let found = holdings.records.find(&spelling.folded, &spelling.canonical)?;
        for other in found.iter().filter(|found| Some(found.path.as_str()) != own) {
            if other.spelled || *role != LabelRole::Item || !may_be_spelled_apart(holdings, label, other)? {
                return Err(ArchiveError::Taken { label: (*label).to_owned(), item: other.path.clone() });
            }
        }
    }
    Ok(())
}

/// Two items from elsewhere whose primary labels differ only in spelling are both kept (clause
/// 1.3). A label of this Archive, or of a removed item, never leads to another item.
fn may_be_spelled_apart(holdings: &Holdings, label: &str, other: &IndexMatch) -> Result<bool, ArchiveError> {
    let minter = ibi_mint::read_state(&holdings.data)?.subsystem;
    let ours = Label::parse(label).is_ok_and(|label| has_own_prefix(&minter, &label));
    let removed = holdings.records.item(&other.path)?.is_none_or(|item| item.state == State::Deleted);
    Ok(!ours && !removed && other.role == LabelRole::Item)
}

fn check_links(holdings: &Holdings, item: &mut ItemDescription, path: &str) -> Result<(), ArchiveError> {
    let own: Vec<String> = item.label_records().into_iter().map(|label| label.canonical).collect();
    let links = [
        (LinkKind::Translation, "a translation of", &mut item.translation_of),
        (LinkKind::Edition, "the next edition of", &mut item.next_edition_of),
    ];
    let name = item.labels.primary();
    for (kind, link, to) in links {
        let Some(label) = to else { continue };
        let spelling = LabelKey::parse(label).map_err(label_error(label))?;
        let cycle = || ArchiveError::Cycle { item: name.to_owned(), link, to: label.clone() };
        if leads_back(holdings, kind, &spelling, &own, path)? {
            return Err(cycle());
        }
        if let Some((held, role)) = find_held_item(holdings, &spelling)? {
            if role == LabelRole::Metadata {
                let what =
                    format!("{label} are the metadata of {}: link to that", held.item.labels.primary());
                return Err(ArchiveError::Value(what));
            }
            held.item.labels.primary().clone_into(label);
        } else {
            // The canonical spelling: it must be found by whoever deposits that item here.
            *label = Label::parse(label).map_err(label_error(label))?.to_string();
        }
    }
    Ok(())
}

/// The item that a label leads to, if it is here.
fn find_held_item(
    holdings: &Holdings,
    spelling: &LabelKey,
) -> Result<Option<(HeldItem, LabelRole)>, ArchiveError> {
    let found = holdings.records.find(&spelling.folded, &spelling.canonical)?;
    found.first().map(|found| Ok((holdings.item(&found.path)?, found.role))).transpose()
}

fn leads_back(
    holdings: &Holdings,
    kind: LinkKind,
    from: &LabelKey,
    own: &[String],
    path: &str,
) -> Result<bool, ArchiveError> {
    let mut at = from.clone();
    for _ in 0..MAX_LINK_CHAIN {
        if own.contains(&at.canonical) {
            return Ok(true);
        }
        let found = holdings.records.find(&at.folded, &at.canonical)?;
        let Some(found) = found.first() else { return Ok(false) };
        if found.path == path {
            return Ok(true);
        }
        let next = holdings.records.links(&found.path)?.into_iter().find(|link| link.kind == kind);
        match next {
            Some(link) => at = LabelKey { folded: link.to.clone(), canonical: link.to },
            None => return Ok(false),
        }
    }
    Ok(true)
}

fn check_target(item: &ItemDescription, files: &[StagedFile]) -> Result<(), ArchiveError> {
    let Some(target) = &item.target else { return Ok(()) };
    if files.iter().any(|file| file.file.path == *target) {
        return Ok(());
    }
    let files = files.iter().map(|file| file.file.path.clone()).collect();
    Err(ArchiveError::Target { target: target.clone(), files })
}
