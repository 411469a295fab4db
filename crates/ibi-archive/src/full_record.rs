//! The `oai_dc` record of an item, complete by itself (clause 2.2): what the depositor wrote, and
//! what the Archive knows besides.
//!
//! Whoever harvests the record alone learns which item it is of, where that is resolved, in which
//! language and formats it is, from when, and what it is related to. Nothing is said twice. The
//! stored metadata stay as they were written.

use std::sync::Arc;

use ibi_id::Label;
use ibi_protocol::{Language, PersistentUrl};
use ibi_store::journal::State;

use crate::ArchiveError;
use crate::archive::{Holding, Holdings};
use crate::dublin_core::{DublinCore, Element, MOST_STATEMENTS, Statement};
use crate::links::NextEdition;

/// Files that are looked at for their media types, and media types that are told.
const MAX_FILES_LOOKED_AT: usize = 1000;
const MAX_FORMATS: usize = 32;

/// Related items that are told.
const MAX_RELATED: usize = 64;

/// A record that is being completed.
struct Completing {
    statements: Vec<Statement>,
    /// Where persistent URLs are resolved: `http://urlib.net/`.
    resolver: Option<String>,
}

/// The whole record of an item. `resolver` is the base URL of the resolver that the Archive is set
/// to use; `open`: everybody may know which files it has.
pub fn full_record(
    holdings: &Holdings,
    holding: &Holding,
    resolver: Option<&str>,
    open: bool,
) -> Result<DublinCore, ArchiveError> {
    let item = &holding.item;
    let resolver = resolver.map(|base| format!("{}/", base.trim_end_matches('/')));
    let mut record = Completing { statements: holding.metadata.statements().to_vec(), resolver };
    for label in item.labels.iter().chain(item.aliases.iter().map(String::as_str)) {
        record.add_label(label);
    }
    record.add_persistent_url(item.labels.primary());
    if let Some(language) = item.language {
        record.add_language(language);
    }
    if open {
        let mut formats: Vec<String> = Vec::new();
        for file in holdings.files(&holding.path, "", MAX_FILES_LOOKED_AT)? {
            if formats.len() < MAX_FORMATS && !formats.contains(&file.media) {
                formats.push(file.media);
            }
        }
        formats.sort_unstable();
        formats.iter().for_each(|format| record.add(Element::Format, format));
    }
    record.add(Element::Date, &item.created);
    record.add(Element::Date, &item.updated);
    for label in related(holdings, holding)? {
        record.add_relation(&label);
    }
    // Within the bound by what was added above.
    DublinCore::new(record.statements).map_err(|error| ArchiveError::Value(error.to_string()))
}

/// The items that this one is linked to, in either direction, as far as it is known here.
fn related(holdings: &Holdings, holding: &Holding) -> Result<Vec<String>, ArchiveError> {
    let item = &holding.item;
    let mut labels: Vec<String> =
        [&item.next_edition_of, &item.translation_of].into_iter().flatten().cloned().collect();
    let next = holdings.next_edition(holding)?.and_then(|next| match next {
        NextEdition::Held(next) if next.state == State::Deleted => None,
        NextEdition::Held(next) => Some(next.item.labels.clone()),
        NextEdition::Elsewhere(labels) => Some(labels),
    });
    labels.extend(next.map(|next| next.primary().to_owned()));
    let from = Arc::new(holdings.item(&holding.path)?);
    // The first is the item itself.
    let group = holdings.translations(&from)?.into_iter().skip(1).filter(|member| !member.removed);
    let mut group: Vec<String> = group.map(|member| member.labels.primary().to_owned()).collect();
    group.sort_unstable();
    labels.extend(group);
    labels.truncate(MAX_RELATED);
    Ok(labels)
}

impl Completing {
    /// Adds a value, unless it is there.
    fn add(&mut self, element: Element, value: &str) {
        let is_there = self.of(element).any(|known| known.eq_ignore_ascii_case(value));
        self.push(element, value, is_there);
    }

    /// Adds a label of the item, unless it is there in any spelling (clause 1.3).
    fn add_label(&mut self, label: &str) {
        let is_there = self.of(Element::Identifier).any(|known| {
            let known = known.strip_prefix("ibi:").or_else(|| known.strip_prefix("ibi/")).unwrap_or(known);
            is_same(known, label)
        });
        self.push(Element::Identifier, label, is_there);
    }

    /// Adds the persistent URL, if a resolver is known, unless one of any resolver is there.
    fn add_persistent_url(&mut self, label: &str) {
        let Some(base) = &self.resolver else { return };
        let url = format!("{base}{label}");
        let is_there = self.of(Element::Identifier).any(|known| is_persistent_url_of(known, label));
        self.push(Element::Identifier, &url, is_there);
    }

    fn add_language(&mut self, language: Language) {
        let is_there = self.of(Element::Language).any(|known| known.parse() == Ok(language));
        self.push(Element::Language, &language.to_string(), is_there);
    }

    /// Adds a related item by its persistent URL, or by its label where no resolver is known.
    fn add_relation(&mut self, label: &str) {
        let is_there = self.of(Element::Relation).any(|known| {
            let bare = known.strip_prefix("ibi:").or_else(|| known.strip_prefix("ibi/")).unwrap_or(known);
            is_same(bare, label) || is_persistent_url_of(known, label)
        });
        let value = match &self.resolver {
            Some(base) => format!("{base}{label}"),
            None => label.to_owned(),
        };
        self.push(Element::Relation, &value, is_there);
    }

    fn of(&self, element: Element) -> impl Iterator<Item = &str> {
        self.statements.iter().filter(move |known| known.element() == element).map(Statement::value)
    }

    fn push(&mut self, element: Element, value: &str, is_there: bool) {
        if !is_there && self.statements.len() < MOST_STATEMENTS {
            // Labels, media types and dates: nothing that a statement refuses.
            self.statements.extend(Statement::new(element, None, value.to_owned()));
        }
    }
}

fn is_same(a: &str, b: &str) -> bool {
    a == b || Label::parse(a).ok().zip(Label::parse(b).ok()).is_some_and(|(a, b)| a == b)
}

/// Whether a text is the persistent URL of an item at some resolver, without anything more.
fn is_persistent_url_of(text: &str, label: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let Some((_, path)) = rest.and_then(|rest| rest.split_once('/')) else { return false };
    let plain = PersistentUrl::parse(&format!("/{path}"), None).ok();
    plain
        .is_some_and(|url| url.verbs.is_empty() && url.file.is_none() && is_same(url.label.spelling(), label))
}
