//! The complete `oai_dc` record of an item (clause 2.2): what the depositor wrote, and what the
//! Archive knows besides.
//!
//! A harvester of the record alone learns which item it describes, where the item is resolved, its
//! language, formats and dates, and its relations. Nothing is repeated. The stored metadata is not
//! changed.

use std::collections::HashSet;
use std::sync::Arc;

use ibi_id::Label;
use ibi_protocol::{Language, PersistentUrl};
use ibi_store::journal::State;

use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::dublin_core::{DublinCore, Element, MAX_STATEMENTS, MetadataStatement};
use crate::item::LabelKey;
use crate::links::NextEdition;
use crate::media_type::without_parameters;

/// Limits on the files that are read for media types, and on the media types listed.
const MAX_INSPECTED_FILES: usize = 1000;
const MAX_RECORD_FORMATS: usize = 32;

/// Limit on related items listed.
const MAX_RELATED_ITEMS: usize = 64;

/// A record that is being completed.
struct FullRecordBuilder {
    statements: Vec<MetadataStatement>,
    /// Where persistent URLs are resolved: `http://urlib.net/`.
    resolver: Option<String>,
}

/// The whole record of an item. `resolver` is the base URL of the resolver that the Archive is set
/// to use; `open`: everybody may know which files it has.
pub fn full_record(
    holdings: &Holdings,
    holding: &HeldItem,
    resolver: Option<&str>,
    open: bool,
) -> Result<DublinCore, ArchiveError> {
    let item = &holding.item;
    let resolver = resolver.map(|base| format!("{}/", base.trim_end_matches('/')));
    let mut record = FullRecordBuilder { statements: holding.metadata.statements().to_vec(), resolver };
    record.add_labels(item.labels.iter().chain(item.aliases.iter().map(String::as_str)));
    record.add_persistent_url(item.labels.primary());
    if let Some(language) = item.language {
        record.add_language(language);
    }
    if open {
        let mut formats: Vec<String> = Vec::new();
        for file in holdings.files(&holding.path, "", MAX_INSPECTED_FILES)? {
            let media = without_parameters(&file.media);
            if formats.len() < MAX_RECORD_FORMATS && !formats.iter().any(|format| format == media) {
                formats.push(media.to_owned());
            }
        }
        formats.sort_unstable();
        formats.iter().for_each(|format| record.add(Element::Format, format));
    }
    record.add(Element::Date, &item.created);
    record.add(Element::Date, &item.updated);
    for label in related_labels(holdings, holding)? {
        record.add_relation(&label);
    }
    // Within the bound by what was added above.
    DublinCore::new(record.statements).map_err(|error| ArchiveError::Value(error.to_string()))
}

/// The items that this one is linked to, in either direction, as far as it is known here.
fn related_labels(holdings: &Holdings, holding: &HeldItem) -> Result<Vec<String>, ArchiveError> {
    let item = &holding.item;
    let mut labels: Vec<String> =
        [&item.next_edition_of, &item.translation_of].into_iter().flatten().cloned().collect();
    let next = holdings.accepted_next_edition(holding)?.and_then(|next| match next {
        NextEdition::Held(next) if next.state == State::Deleted => None,
        NextEdition::Held(next) => Some(next.item.labels.clone()),
        NextEdition::Elsewhere(labels) => Some(labels),
    });
    labels.extend(next.map(|next| next.primary().to_owned()));
    let from = Arc::new(holdings.item_bare(&holding.path)?);
    // The first is the item itself.
    let group = holdings.translation_members(&from)?.into_iter().skip(1).filter(|member| !member.removed);
    let mut group: Vec<String> = group.map(|member| member.labels.primary().to_owned()).collect();
    group.sort_unstable();
    labels.extend(group);
    labels.truncate(MAX_RELATED_ITEMS);
    Ok(labels)
}

impl FullRecordBuilder {
    /// Adds a value, unless it is there.
    fn add(&mut self, element: Element, value: &str) {
        let is_there = self.values_of(element).any(|known| known.eq_ignore_ascii_case(value));
        self.push_unless(element, value, is_there);
    }

    /// Adds labels of the item, unless they are there in any spelling (clause 1.3).
    fn add_labels<'a>(&mut self, labels: impl Iterator<Item = &'a str>) {
        let canonical = |label: &str| LabelKey::parse(label).ok().map(|spelling| spelling.canonical);
        let known = self.values_of(Element::Identifier).filter_map(|known| {
            let known = known.strip_prefix("ibi:").or_else(|| known.strip_prefix("ibi/")).unwrap_or(known);
            canonical(known)
        });
        let mut known: HashSet<String> = known.collect();
        for label in labels {
            let is_there = canonical(label).is_some_and(|label| !known.insert(label));
            self.push_unless(Element::Identifier, label, is_there);
        }
    }

    /// Adds the persistent URL, if a resolver is known, unless one of any resolver is there.
    fn add_persistent_url(&mut self, label: &str) {
        let Some(base) = &self.resolver else { return };
        let url = format!("{base}{label}");
        let is_there = self.values_of(Element::Identifier).any(|known| is_persistent_url_of(known, label));
        self.push_unless(Element::Identifier, &url, is_there);
    }

    fn add_language(&mut self, language: Language) {
        let is_there = self.values_of(Element::Language).any(|known| known.parse() == Ok(language));
        self.push_unless(Element::Language, &language.to_string(), is_there);
    }

    /// Adds a related item by its persistent URL, or by its label where no resolver is known.
    fn add_relation(&mut self, label: &str) {
        let is_there = self.values_of(Element::Relation).any(|known| {
            let bare = known.strip_prefix("ibi:").or_else(|| known.strip_prefix("ibi/")).unwrap_or(known);
            is_same_label(bare, label) || is_persistent_url_of(known, label)
        });
        let value = match &self.resolver {
            Some(base) => format!("{base}{label}"),
            None => label.to_owned(),
        };
        self.push_unless(Element::Relation, &value, is_there);
    }

    fn values_of(&self, element: Element) -> impl Iterator<Item = &str> {
        self.statements.iter().filter(move |known| known.element() == element).map(MetadataStatement::value)
    }

    fn push_unless(&mut self, element: Element, value: &str, is_there: bool) {
        if !is_there && self.statements.len() < MAX_STATEMENTS {
            // Labels, media types and dates: nothing that a statement refuses.
            self.statements.extend(MetadataStatement::new(element, None, value.to_owned()));
        }
    }
}

fn is_same_label(a: &str, b: &str) -> bool {
    a == b || Label::parse(a).ok().zip(Label::parse(b).ok()).is_some_and(|(a, b)| a == b)
}

/// Whether a text is the persistent URL of an item at some resolver, without anything more.
fn is_persistent_url_of(text: &str, label: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let Some((_, path)) = rest.and_then(|rest| rest.split_once('/')) else { return false };
    let plain = PersistentUrl::parse(&format!("/{path}"), None).ok();
    plain.is_some_and(|url| {
        url.verbs.is_empty() && url.file.is_none() && is_same_label(url.label.spelling(), label)
    })
}
