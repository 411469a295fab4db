//! What is known of links: per link, the statement with the highest counter.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ibi_protocol::Language;
use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus, State};
use serde::Serialize;

use super::MAX_STATEMENTS_PER_ITEM;
use super::stated_links::is_decided_here;
use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::item::{ItemDescription, ItemLabels, LabelKey};

/// Maximum number of items inspected in one group of translations.
const MAX_GROUP_MEMBERS: usize = 256;

/// The next edition of an item.
#[derive(Debug)]
pub(crate) enum NextEdition {
    /// It is here.
    Held(Box<HeldItem>),
    /// It is elsewhere, under these labels.
    Elsewhere(ItemLabels),
}

/// How another Archive's knowledge of an item's links compares with ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkComparison {
    /// Both know the same.
    Equal,
    /// It knows later decisions.
    Newer,
    /// It lacks decisions known here.
    Older,
    /// Each knows some that the other does not.
    Differ,
}

/// An item of a group of translations.
#[derive(Debug, Clone)]
pub(crate) struct TranslationMember {
    pub(crate) language: Option<Language>,
    pub(crate) labels: ItemLabels,
    pub(crate) created: String,
    pub(crate) removed: bool,
    /// The item, if it is here.
    pub(crate) held: Option<Arc<HeldItem>>,
}

impl TranslationMember {
    fn from_holding(holding: Arc<HeldItem>) -> Self {
        Self {
            language: holding.item.language,
            labels: holding.item.labels.clone(),
            created: holding.item.created.clone(),
            removed: holding.state == State::Deleted,
            held: Some(holding),
        }
    }

    /// Its labels in canonical spelling, as statements use it.
    fn keys(&self) -> Vec<String> {
        match &self.held {
            Some(holding) => keys_of(&holding.item),
            None => self.labels.iter().filter_map(key_of).collect(),
        }
    }
}

/// A label in canonical spelling, as statements use it.
pub(crate) fn key_of(label: &str) -> Option<String> {
    LabelKey::parse(label).ok().map(|spelling| spelling.canonical)
}

/// All labels of an item in that spelling, the primary one first, without those of its metadata.
pub(crate) fn keys_of(item: &ItemDescription) -> Vec<String> {
    let labels = item.labels.iter().chain(item.aliases.iter().map(String::as_str));
    labels.filter_map(key_of).collect()
}

/// Sorts labels of any form into primary labels: the first of each form.
pub(super) fn labels_from<'a>(labels: impl Iterator<Item = &'a str>) -> ItemLabels {
    let mut found = ItemLabels::default();
    for label in labels {
        if let Ok(parsed) = ibi_id::Label::parse(label) {
            found.slot_mut(parsed.form()).get_or_insert_with(|| label.to_owned());
        }
    }
    found
}

fn older_labels(link: &LinkStatement) -> ItemLabels {
    labels_from(link.older_labels.iter().map(String::as_str).chain([link.older.as_str()]))
}

pub(super) fn newer_labels(link: &LinkStatement) -> ItemLabels {
    labels_from(link.newer_labels.iter().map(String::as_str).chain([link.newer.as_str()]))
}

/// The role of the Archive that reports link statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkSource {
    /// The Archive that decides about all of them, as proven by the resolver or a receipt.
    Decider,
    /// An Archive that has the Original of the accompanying item. It decides about links to that
    /// item; the others are hearsay.
    OriginalHolder,
    /// An Archive that has a copy of it, and decides nothing.
    CopyHolder,
}

/// The effective statement per link: statements of the decider outrank reports of others, then the
/// highest counter wins; of equal ones, the last.
fn effective_statements<'a, K: Ord>(
    statements: Vec<LinkStatement>,
    link: impl Fn(&LinkStatement) -> K + 'a,
) -> Vec<LinkStatement> {
    let mut highest: BTreeMap<K, LinkStatement> = BTreeMap::new();
    for statement in statements {
        let known = highest.entry(link(&statement)).or_insert_with(|| statement.clone());
        if statement_rank(&statement) >= statement_rank(known) {
            *known = statement;
        }
    }
    highest.into_values().collect()
}

/// Rank of a statement about a link: the decider outranks any counter.
pub(super) fn statement_rank(link: &LinkStatement) -> (bool, u64) {
    (link.told_with.is_none(), link.counter)
}

/// Whether the decider made the statement, or it came with one of these items.
fn is_decided_or_told(link: &LinkStatement, with: &[String]) -> bool {
    link.told_with.as_ref().is_none_or(|path| with.contains(path))
}

impl Holdings {
    /// The decider's statements about links of a kind to an older item, one per newer item.
    pub(crate) fn links_to(
        &self,
        kind: LinkKind,
        older: &ItemDescription,
    ) -> Result<Vec<LinkStatement>, ArchiveError> {
        self.links_to_keys(kind, &keys_of(older), &[])
    }

    /// [`Self::links_to`] by keys, including what others reported with these items.
    fn links_to_keys(
        &self,
        kind: LinkKind,
        older: &[String],
        with: &[String],
    ) -> Result<Vec<LinkStatement>, ArchiveError> {
        let mut all = Vec::new();
        for key in &self.linked_keys(kind, older)? {
            all.extend(self.records.links_to_older(kind, key)?);
        }
        all.retain(|link| is_decided_or_told(link, with));
        Ok(effective_statements(all, |link| link.newer.clone()))
    }

    /// Statements about links from a newer item, one per older item, including unconfirmed ones
    /// that came with that item.
    pub(crate) fn links_from(
        &self,
        kind: LinkKind,
        newer: &ItemDescription,
    ) -> Result<Vec<LinkStatement>, ArchiveError> {
        let mut all = Vec::new();
        for key in &self.linked_keys(kind, &keys_of(newer))? {
            all.extend(self.records.links_from_newer(kind, key)?);
        }
        let own: Vec<String> = newer.object_path().into_iter().collect();
        all.retain(|link| is_decided_or_told(link, &own));
        Ok(effective_statements(all, |link| link.older.clone()))
    }

    /// Which of an item's labels have statements: of hundreds of aliases, hardly any.
    fn linked_keys(&self, kind: LinkKind, keys: &[String]) -> Result<Vec<String>, ArchiveError> {
        const MAX_SINGLE_LOOKUPS: usize = 4;
        match keys.len() <= MAX_SINGLE_LOOKUPS {
            true => Ok(keys.to_vec()),
            false => Ok(self.records.linked_labels(kind, keys)?),
        }
    }

    /// The counter of the next statement about links to an older item.
    pub(crate) fn next_link_counter(&self, older: &ItemDescription) -> Result<u64, ArchiveError> {
        /// Ignores implausibly high counters reported by peers, so that decisions remain possible.
        const MAX_PLAUSIBLE_COUNTER: u64 = 1 << 48;
        let mut last = 0;
        for kind in [LinkKind::Edition, LinkKind::Translation] {
            for key in keys_of(older) {
                let known = self.records.links_to_older(kind, &key)?.into_iter();
                let known =
                    known.filter(|link| link.told_with.is_none() || link.counter < MAX_PLAUSIBLE_COUNTER);
                last = known.map(|link| link.counter).fold(last, u64::max);
            }
        }
        Ok(last.saturating_add(1))
    }

    /// The next edition of an item, if one was accepted.
    pub(crate) fn accepted_next_edition(&self, of: &HeldItem) -> Result<Option<NextEdition>, ArchiveError> {
        let accepted = self.links_to(LinkKind::Edition, &of.item)?.into_iter();
        let accepted = accepted.filter(|link| link.status == LinkStatus::Accepted);
        let Some(link) = accepted.max_by_key(|link| link.counter) else { return Ok(None) };
        Ok(match self.held_by_key(&link.newer)? {
            Some(next) if next.path == of.path => None,
            Some(next) => Some(NextEdition::Held(Box::new(next))),
            None => Some(NextEdition::Elsewhere(newer_labels(&link))),
        })
    }

    /// The item with a label in canonical spelling, if it is here.
    pub(crate) fn held_by_key(&self, key: &str) -> Result<Option<HeldItem>, ArchiveError> {
        let found = self.records.find(key, key)?;
        found.first().map(|found| self.item_bare(&found.path)).transpose()
    }

    /// All items of this one's group of translations, itself first: up to the root along stated
    /// links, then down to all members. A root elsewhere may name members, but an item is a member
    /// only if it states the link. For an item whose Original was handed over to this Archive, the
    /// giver's report of the group is used until it is confirmed: only for readers of this item.
    pub(crate) fn translation_group(
        &self,
        of: &Arc<HeldItem>,
    ) -> Result<Vec<TranslationMember>, ArchiveError> {
        let mut group = vec![TranslationMember::from_holding(Arc::clone(of))];
        let mut seen: HashSet<String> = keys_of(&of.item).into_iter().collect();
        let (mut at, mut told_with) = (0, Vec::new());
        while let Some(member) = group.get(at).cloned() {
            at += 1;
            let Some(held) = &member.held else { continue };
            if held.state != State::Copy {
                told_with.push(held.path.clone());
            }
            for link in self.accepted_roots(held)? {
                if group.len() == MAX_GROUP_MEMBERS || !seen.insert(link.older.clone()) {
                    continue;
                }
                let root = match self.held_by_key(&link.older)? {
                    Some(root) => TranslationMember::from_holding(Arc::new(root)),
                    None => stated_member(&link, true),
                };
                seen.extend(root.keys());
                group.push(root);
            }
        }
        let mut at = 0;
        while let Some(member) = group.get(at).cloned() {
            at += 1;
            for link in self.links_to_keys(LinkKind::Translation, &member.keys(), &told_with)? {
                let full = group.len() == MAX_GROUP_MEMBERS;
                if link.status != LinkStatus::Accepted || seen.contains(&link.newer) || full {
                    continue;
                }
                let member = match self.held_by_key(&link.newer)? {
                    // The item's own statement outranks what was reported of it.
                    Some(held) if held.item.translation_of.is_none() => continue,
                    Some(held) => TranslationMember::from_holding(Arc::new(held)),
                    None => stated_member(&link, false),
                };
                seen.insert(link.newer.clone());
                seen.extend(member.keys());
                group.push(member);
            }
        }
        Ok(group)
    }

    /// The accepted links of an item that states one: to the item it names, and to the root that
    /// its link was moved to.
    fn accepted_roots(&self, newer: &HeldItem) -> Result<Vec<LinkStatement>, ArchiveError> {
        if newer.item.translation_of.is_none() {
            return Ok(Vec::new());
        }
        let links = self.links_from(LinkKind::Translation, &newer.item)?.into_iter();
        let links = links.filter(|link| newer.state != State::Copy || link.told_with.is_none());
        Ok(links.filter(|link| link.status == LinkStatus::Accepted).collect())
    }

    /// The links of an item that are reported to other Archives: links to it, from it, and of its
    /// group of translations. Proposals only on request, since nobody has agreed to them.
    pub fn link_list(
        &self,
        of: &ItemDescription,
        proposals: bool,
    ) -> Result<Vec<LinkStatement>, ArchiveError> {
        let mut all = Vec::new();
        for kind in [LinkKind::Edition, LinkKind::Translation] {
            all.extend(self.links_to(kind, of)?);
            all.extend(self.links_from(kind, of)?);
        }
        let roots: Vec<String> = all
            .iter()
            .filter(|link| link.kind == LinkKind::Translation && link.status == LinkStatus::Accepted)
            .map(|link| link.older.clone())
            .collect();
        for root in roots {
            let keys = match self.held_by_key(&root)? {
                Some(holding) => keys_of(&holding.item),
                None => vec![root],
            };
            let own: Vec<String> = of.object_path().into_iter().collect();
            all.extend(self.links_to_keys(LinkKind::Translation, &keys, &own)?);
        }
        let mut all = effective_statements(all, |link| (link.kind, link.older.clone(), link.newer.clone()));
        all.retain(|link| proposals || link.status != LinkStatus::Proposed);
        for link in &mut all {
            self.fill_older_fields(link)?;
        }
        all.truncate(MAX_STATEMENTS_PER_ITEM);
        Ok(all)
    }

    /// Fills in the older item's fields from what is known here now.
    fn fill_older_fields(&self, link: &mut LinkStatement) -> Result<(), ArchiveError> {
        if let Some(older) = self.held_by_key(&link.older)? {
            link.older_language = older.item.language.map(|language| language.to_string());
            link.older_labels = older.item.labels.iter().map(str::to_owned).collect();
        }
        Ok(())
    }

    /// Compares another Archive's knowledge of an item's links with ours.
    #[cfg(feature = "web")]
    pub(crate) fn compare_links(
        &self,
        path: &str,
        theirs: &[LinkStatement],
    ) -> Result<LinkComparison, ArchiveError> {
        let Ok(holding) = self.item(path) else { return Ok(LinkComparison::Newer) };
        let ours = self.link_list(&holding.item, false)?;
        let lacks = |link: &LinkStatement| {
            !theirs.iter().any(|known| known.is_about_same(link) && known.counter >= link.counter)
        };
        let mut knows_more = false;
        for link in theirs.iter().filter(|link| is_valid_statement(link)) {
            let known = self.records.links_to_older(link.kind, &link.older)?;
            let mut known = known.iter().filter(|known| known.is_about_same(link));
            knows_more |= !known.any(|known| known.counter >= link.counter);
        }
        Ok(match (!knows_more, ours.iter().any(lacks)) {
            (true, false) => LinkComparison::Equal,
            (true, true) => LinkComparison::Older,
            (false, false) => LinkComparison::Newer,
            (false, true) => LinkComparison::Differ,
        })
    }

    /// Which statements that another Archive reports with the item at a path, which has these keys,
    /// are new here. A statement that does not come from the decider is marked, and does not affect
    /// readers of other items. Links to items whose Original is here are decided only here (2.4,
    /// *Consent*).
    pub(crate) fn unseen_link_statements(
        &self,
        (path, keys): (&str, &[String]),
        told: &[LinkStatement],
        teller: LinkSource,
    ) -> Result<Vec<LinkStatement>, ArchiveError> {
        let mut news = Vec::new();
        for link in told.iter().take(MAX_STATEMENTS_PER_ITEM).filter(|link| is_valid_statement(link)) {
            let is_decided = match teller {
                LinkSource::Decider => true,
                LinkSource::OriginalHolder => keys.contains(&link.older),
                LinkSource::CopyHolder => false,
            };
            let told_with = (!is_decided).then(|| path.to_owned());
            let link = LinkStatement { told_with, ..link.clone() };
            let is_ours = |older: &HeldItem| {
                let is_recalled = teller == LinkSource::Decider && older.path == path;
                !is_recalled && is_decided_here(self, older)
            };
            if self.is_unseen_statement(&link)?
                && !self.find(&link.older).is_ok_and(|(older, _)| is_ours(&older))
            {
                news.push(link);
            }
        }
        Ok(news)
    }

    /// Whether a statement is not known here, neither from the decider nor as reported with the
    /// same item.
    pub(crate) fn is_unseen_statement(&self, link: &LinkStatement) -> Result<bool, ArchiveError> {
        let known = self.records.links_to_older(link.kind, &link.older)?;
        let mut known = known.iter().filter(|known| known.newer == link.newer);
        Ok(!known.any(|known| {
            let is_worth_it = known.told_with.is_none() || known.told_with == link.told_with;
            is_worth_it && known.counter >= link.counter
        }))
    }

    /// Statements that came with an item from others than the decider, and are neither confirmed
    /// nor outdated.
    #[cfg(feature = "web")]
    pub(crate) fn unconfirmed_links(&self, holding: &HeldItem) -> Result<Vec<LinkStatement>, ArchiveError> {
        let mut all = Vec::new();
        for kind in [LinkKind::Edition, LinkKind::Translation] {
            for key in keys_of(&holding.item) {
                all.extend(self.records.links_to_older(kind, &key)?);
                all.extend(self.records.links_from_newer(kind, &key)?);
            }
        }
        all.retain(|link| link.told_with.as_ref() == Some(&holding.path));
        let mut open = Vec::new();
        for link in all {
            if self.is_unconfirmed(&link)? {
                open.push(link);
            }
        }
        Ok(open)
    }

    /// Whether a statement was reported by others, and the decider has said nothing as late.
    #[cfg(feature = "web")]
    pub(crate) fn is_unconfirmed(&self, link: &LinkStatement) -> Result<bool, ArchiveError> {
        let confirmed = LinkStatement { told_with: None, ..link.clone() };
        Ok(link.told_with.is_some() && self.is_unseen_statement(&confirmed)?)
    }
}

fn stated_member(link: &LinkStatement, is_older: bool) -> TranslationMember {
    let language = if is_older { &link.older_language } else { &link.newer_language };
    TranslationMember {
        language: language.as_ref().and_then(|language| language.parse().ok()),
        labels: if is_older { older_labels(link) } else { newer_labels(link) },
        created: if is_older { String::new() } else { link.created.clone() },
        removed: !is_older && link.removed,
        held: None,
    }
}

/// Whether a statement from elsewhere could have been made here.
pub(crate) fn is_valid_statement(link: &LinkStatement) -> bool {
    const MAX_LINK_LABELS: usize = 100;
    const MAX_LINK_TEXT_BYTES: usize = 300;
    let is_key = |key: &str| key_of(key).as_deref() == Some(key);
    let labels = || link.older_labels.iter().chain(&link.newer_labels);
    let texts = [&link.older_language, &link.newer_language, &link.archive, &link.decided_by, &link.receipt];
    let texts = texts.into_iter().flatten().chain([&link.created]).chain(labels());
    is_key(&link.older)
        && is_key(&link.newer)
        && link.older != link.newer
        && (1..=super::MAX_LINK_COUNTER).contains(&link.counter)
        && labels().count() <= MAX_LINK_LABELS
        && labels().all(|label| ibi_id::Label::parse(label).is_ok())
        && texts
            .into_iter()
            .all(|text| text.len() <= MAX_LINK_TEXT_BYTES && !text.chars().any(char::is_control))
}
