//! What is known of links: the statement with the highest counter, per link.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ibi_protocol::Language;
use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus, State};
use serde::Serialize;

use super::MAX_STATEMENTS_PER_ITEM;
use crate::ArchiveError;
use crate::archive::{Holding, Holdings};
use crate::item::{Item, Labels, Spelling};

/// Items in one group of translations that are looked at.
const MAX_GROUP_MEMBERS: usize = 256;

/// The next edition of an item.
#[derive(Debug)]
pub(crate) enum NextEdition {
    /// It is here.
    Held(Box<Holding>),
    /// It is elsewhere, under these labels.
    Elsewhere(Labels),
}

/// How the links that another Archive knows of an item stand to those that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinksCompared {
    /// The same.
    Equal,
    /// It knows of later decisions.
    Newer,
    /// It lacks decisions that are known here.
    Older,
    /// Each knows some that the other does not.
    Differ,
}

/// An item of a group of translations.
#[derive(Debug, Clone)]
pub(crate) struct GroupMember {
    pub(crate) language: Option<Language>,
    pub(crate) labels: Labels,
    pub(crate) created: String,
    pub(crate) removed: bool,
    /// The item, if it is here.
    pub(crate) held: Option<Arc<Holding>>,
}

impl GroupMember {
    fn held(holding: Arc<Holding>) -> Self {
        Self {
            language: holding.item.language,
            labels: holding.item.labels.clone(),
            created: holding.item.created.clone(),
            removed: holding.state == State::Deleted,
            held: Some(holding),
        }
    }

    /// Its labels in the spelling that statements use.
    fn keys(&self) -> Vec<String> {
        match &self.held {
            Some(holding) => keys_of(&holding.item),
            None => self.labels.iter().filter_map(key_of).collect(),
        }
    }
}

/// A label in the spelling that statements use.
pub(super) fn key_of(label: &str) -> Option<String> {
    Spelling::parse(label).ok().map(|spelling| spelling.canonical)
}

/// All labels of an item in that spelling, the primary one first; not those of its metadata.
pub(super) fn keys_of(item: &Item) -> Vec<String> {
    let labels = item.labels.iter().chain(item.aliases.iter().map(String::as_str));
    labels.filter_map(key_of).collect()
}

/// Labels of any forms as primary labels: the first of each form.
pub(super) fn labels_from<'a>(labels: impl Iterator<Item = &'a str>) -> Labels {
    let mut found = Labels::default();
    for label in labels {
        if let Ok(parsed) = ibi_id::Label::parse(label) {
            found.of(parsed.form()).get_or_insert_with(|| label.to_owned());
        }
    }
    found
}

fn older_labels(link: &LinkStatement) -> Labels {
    labels_from(link.older_labels.iter().map(String::as_str).chain([link.older.as_str()]))
}

pub(super) fn newer_labels(link: &LinkStatement) -> Labels {
    labels_from(link.newer_labels.iter().map(String::as_str).chain([link.newer.as_str()]))
}

/// Of statements about the same links, those with the highest counters; of equal ones the last.
fn highest<'a, K: Ord>(
    statements: Vec<LinkStatement>,
    link: impl Fn(&LinkStatement) -> K + 'a,
) -> Vec<LinkStatement> {
    let mut highest: BTreeMap<K, LinkStatement> = BTreeMap::new();
    for statement in statements {
        let known = highest.entry(link(&statement)).or_insert_with(|| statement.clone());
        if statement.counter >= known.counter {
            *known = statement;
        }
    }
    highest.into_values().collect()
}

impl Holdings {
    /// What counts of the links of a kind that lead to an older item, one statement a newer item.
    pub(crate) fn links_to(&self, kind: LinkKind, older: &Item) -> Result<Vec<LinkStatement>, ArchiveError> {
        self.links_to_keys(kind, &keys_of(older))
    }

    fn links_to_keys(&self, kind: LinkKind, older: &[String]) -> Result<Vec<LinkStatement>, ArchiveError> {
        let mut all = Vec::new();
        for key in older {
            all.extend(self.records.links_to_older(kind, key)?);
        }
        Ok(highest(all, |link| link.newer.clone()))
    }

    /// The same of the links that lead from a newer item, one statement an older item.
    pub(crate) fn links_from(
        &self,
        kind: LinkKind,
        newer: &Item,
    ) -> Result<Vec<LinkStatement>, ArchiveError> {
        self.links_from_keys(kind, &keys_of(newer))
    }

    fn links_from_keys(&self, kind: LinkKind, newer: &[String]) -> Result<Vec<LinkStatement>, ArchiveError> {
        let mut all = Vec::new();
        for key in newer {
            all.extend(self.records.links_from_newer(kind, key)?);
        }
        Ok(highest(all, |link| link.older.clone()))
    }

    /// The counter of the next statement about links to an older item.
    pub(crate) fn next_link_counter(&self, older: &Item) -> Result<u64, ArchiveError> {
        let mut last = 0;
        for kind in [LinkKind::Edition, LinkKind::Translation] {
            last = self.links_to(kind, older)?.iter().map(|link| link.counter).fold(last, u64::max);
        }
        Ok(last.saturating_add(1))
    }

    /// The next edition of an item, if one was accepted.
    pub(crate) fn next_edition(&self, of: &Holding) -> Result<Option<NextEdition>, ArchiveError> {
        let accepted = self.links_to(LinkKind::Edition, &of.item)?.into_iter();
        let accepted = accepted.filter(|link| link.status == LinkStatus::Accepted);
        let Some(link) = accepted.max_by_key(|link| link.counter) else { return Ok(None) };
        Ok(match self.held_by_key(&link.newer)? {
            Some(next) if next.path == of.path => None,
            Some(next) => Some(NextEdition::Held(Box::new(next))),
            None => Some(NextEdition::Elsewhere(newer_labels(&link))),
        })
    }

    /// The item that a label in the spelling of statements leads to, if it is here.
    pub(crate) fn held_by_key(&self, key: &str) -> Result<Option<Holding>, ArchiveError> {
        let found = self.records.find(key, key)?;
        found.first().map(|found| self.item(&found.path)).transpose()
    }

    /// All items of this one's group of translations, itself first: up to the root along the links that items
    /// state, and down to all members. A root elsewhere can name members, and make nobody a member who does not
    /// state it.
    pub(crate) fn translation_group(&self, of: &Arc<Holding>) -> Result<Vec<GroupMember>, ArchiveError> {
        let mut group = vec![GroupMember::held(Arc::clone(of))];
        let mut seen: HashSet<String> = keys_of(&of.item).into_iter().collect();
        let mut at = 0;
        while let Some(member) = group.get(at).cloned() {
            at += 1;
            let Some(held) = &member.held else { continue };
            for link in self.accepted_roots(&held.item)? {
                if group.len() == MAX_GROUP_MEMBERS || !seen.insert(link.older.clone()) {
                    continue;
                }
                let root = match self.held_by_key(&link.older)? {
                    Some(root) => GroupMember::held(Arc::new(root)),
                    None => told_member(&link, true),
                };
                seen.extend(root.keys());
                group.push(root);
            }
        }
        let mut at = 0;
        while let Some(member) = group.get(at).cloned() {
            at += 1;
            for link in self.links_to_keys(LinkKind::Translation, &member.keys())? {
                let full = group.len() == MAX_GROUP_MEMBERS;
                if link.status != LinkStatus::Accepted || seen.contains(&link.newer) || full {
                    continue;
                }
                let member = match self.held_by_key(&link.newer)? {
                    // Also who was told otherwise knows what it states itself.
                    Some(held) if held.item.translation_of.is_none() => continue,
                    Some(held) => GroupMember::held(Arc::new(held)),
                    None => told_member(&link, false),
                };
                seen.insert(link.newer.clone());
                seen.extend(member.keys());
                group.push(member);
            }
        }
        Ok(group)
    }

    /// The accepted links of an item that states one: to what it names, and to the root that its link was taken
    /// to.
    fn accepted_roots(&self, item: &Item) -> Result<Vec<LinkStatement>, ArchiveError> {
        if item.translation_of.is_none() {
            return Ok(Vec::new());
        }
        let links = self.links_from(LinkKind::Translation, item)?.into_iter();
        Ok(links.filter(|link| link.status == LinkStatus::Accepted).collect())
    }

    /// What other Archives are told of the links of an item: those to it, those from it, and those of its
    /// group of translations. Proposals only if they are asked for: nobody has agreed to them.
    pub fn link_list(&self, of: &Item, proposals: bool) -> Result<Vec<LinkStatement>, ArchiveError> {
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
            all.extend(self.links_to_keys(LinkKind::Translation, &keys)?);
        }
        let mut all = highest(all, |link| (link.kind, link.older.clone(), link.newer.clone()));
        all.retain(|link| proposals || link.status != LinkStatus::Proposed);
        for link in &mut all {
            self.fill_in(link)?;
        }
        all.truncate(MAX_STATEMENTS_PER_ITEM);
        Ok(all)
    }

    /// Says of the older item what is known here now.
    fn fill_in(&self, link: &mut LinkStatement) -> Result<(), ArchiveError> {
        if let Some(older) = self.held_by_key(&link.older)? {
            link.older_language = older.item.language.map(|language| language.to_string());
            link.older_labels = older.item.labels.iter().map(str::to_owned).collect();
        }
        Ok(())
    }

    /// What another Archive knows of the links of an item, beside what is known here.
    #[cfg(feature = "web")]
    pub(crate) fn compare_links(
        &self,
        path: &str,
        theirs: &[LinkStatement],
    ) -> Result<LinksCompared, ArchiveError> {
        let Ok(holding) = self.item(path) else { return Ok(LinksCompared::Newer) };
        let ours = self.link_list(&holding.item, false)?;
        let lacks = |link: &LinkStatement| {
            !theirs.iter().any(|known| known.is_about_same(link) && known.counter >= link.counter)
        };
        Ok(match (self.link_news(theirs)?.is_empty(), ours.iter().any(lacks)) {
            (true, false) => LinksCompared::Equal,
            (true, true) => LinksCompared::Older,
            (false, false) => LinksCompared::Newer,
            (false, true) => LinksCompared::Differ,
        })
    }

    /// Which of the statements that another Archive tells are news here.
    pub(crate) fn link_news(&self, told: &[LinkStatement]) -> Result<Vec<LinkStatement>, ArchiveError> {
        let mut news = Vec::new();
        for link in told.iter().take(MAX_STATEMENTS_PER_ITEM).filter(|link| is_sound(link)) {
            let known = self.records.links_to_older(link.kind, &link.older)?.into_iter();
            let known = known.filter(|known| known.newer == link.newer).map(|known| known.counter).max();
            if known.is_none_or(|known| known < link.counter) {
                news.push(link.clone());
            }
        }
        Ok(news)
    }
}

fn told_member(link: &LinkStatement, is_older: bool) -> GroupMember {
    let language = if is_older { &link.older_language } else { &link.newer_language };
    GroupMember {
        language: language.as_ref().and_then(|language| language.parse().ok()),
        labels: if is_older { older_labels(link) } else { newer_labels(link) },
        created: if is_older { String::new() } else { link.created.clone() },
        removed: !is_older && link.removed,
        held: None,
    }
}

/// Whether a statement from elsewhere is one that could have been made here.
pub(crate) fn is_sound(link: &LinkStatement) -> bool {
    const MAX_LABELS: usize = 100;
    const MAX_TEXT: usize = 300;
    let is_key = |key: &str| key_of(key).as_deref() == Some(key);
    let labels = || link.older_labels.iter().chain(&link.newer_labels);
    let texts = [&link.older_language, &link.newer_language, &link.archive, &link.decided_by, &link.receipt];
    let texts = texts.into_iter().flatten().chain([&link.created]).chain(labels());
    is_key(&link.older)
        && is_key(&link.newer)
        && link.older != link.newer
        && (1..=super::MAX_COUNTER).contains(&link.counter)
        && labels().count() <= MAX_LABELS
        && labels().all(|label| ibi_id::Label::parse(label).is_ok())
        && texts.into_iter().all(|text| text.len() <= MAX_TEXT && !text.chars().any(char::is_control))
}
