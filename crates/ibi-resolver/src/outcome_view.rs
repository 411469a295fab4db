//! Outcomes for programs (JSON) and for people (text).

mod page_texts;

use ibi_http::accept::UiLanguage;
use ibi_protocol::analysis::{CycleReason, ItemQuery, NotFoundReason};
use ibi_protocol::{LabelForms, PersistentUrl};
use serde::Serialize;

use crate::api_view::AlertView;
use crate::archive::RegisteredArchive;
use crate::resolve::ResolutionOutcome;
use crate::resolve::explanation::question_text;

pub use page_texts::{ResolverPageTexts, words};

/// The outcome of a resolution (4.3).
#[derive(Debug, Clone, Default, Serialize)]
pub struct OutcomeView {
    /// For errors, a stable name for the kind of problem (RFC 9457).
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind, as text.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// The details of this case.
    pub detail: String,
    /// The redirect target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The Archive that has this URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// What the Archive holds: `Original` or `Copy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// The item, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// What is available of the item instead, as persistent URLs without the resolver.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<String>,
    /// A newer edition or a translation that an Archive names and no Archive holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unheld: Option<String>,
    /// The URLs of copies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<String>,
    /// Archives that did not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
    /// Archives that claim the original.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// The evidence gathered so far for these claims.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<ClaimEvidence>,
    /// Archives that report a removal, and when it happened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<OutcomeRemoval>,
    /// The queries that form a cycle or exceed the limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
}

/// A removal.
#[derive(Debug, Clone, Serialize)]
pub struct OutcomeRemoval {
    /// The Archive that reports it.
    pub archive: String,
    /// When it was removed, as the Archive writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// The public evidence for a claim of the original. Contact data are for the operator only.
#[derive(Debug, Clone, Serialize)]
pub struct ClaimEvidence {
    /// The Archive that claims it.
    pub archive: String,
    /// Whether the label was minted under that Archive's own prefix, if that can be determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_prefix: Option<bool>,
    /// When it was deposited there, according to the Archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deposited: Option<String>,
    /// Who deposited it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depositor: Option<String>,
    /// One plus the number of times the Original was handed over or declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// SHA-512 of the inventory of its latest version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<String>,
}

impl ClaimEvidence {
    /// The evidence in an alert, one entry per claim.
    pub(crate) fn of(alert: AlertView) -> Vec<Self> {
        let each = alert.claims.into_iter().map(|claim| Self {
            archive: claim.archive,
            own_prefix: claim.own_prefix,
            deposited: claim.deposited,
            depositor: claim.depositor,
            epoch: claim.epoch,
            inventory: claim.versions.into_iter().next_back().map(|version| version.inventory),
        });
        each.collect()
    }

    fn to_text(&self, words: &ResolverPageTexts) -> String {
        let mut text = self.archive.clone();
        let mut add = |title: &str, value: &str| text.push_str(&format!("; {title} {value}"));
        match self.own_prefix {
            Some(true) => add(words.minted, words.minted_here),
            Some(false) => add(words.minted, words.minted_elsewhere),
            None => {}
        }
        self.deposited.iter().for_each(|time| add(words.deposited, time));
        self.depositor.iter().for_each(|name| add(words.depositor, name));
        self.epoch.iter().for_each(|epoch| add(words.epoch, &epoch.to_string()));
        self.inventory.iter().for_each(|digest| add("SHA-512", digest));
        text
    }
}

impl OutcomeView {
    /// Describes an outcome in a language.
    pub fn new(outcome: &ResolutionOutcome, language: UiLanguage) -> Self {
        let words = words(language);
        let told = |name: &str, title, detail: &str| Self {
            kind: format!("urn:ibi:problem:{name}"),
            title,
            status: outcome.status(),
            detail: detail.to_owned(),
            ..Self::default()
        };
        match outcome {
            ResolutionOutcome::Found { location, archive, found } => Self {
                location: Some(location.clone()),
                archive: Some(service(archive)),
                state: found.state.map(ibi_protocol::State::as_str),
                item: found.ibi.as_ref().map(LabelForms::to_string),
                ..told("none", words.found, location)
            },
            ResolutionOutcome::Alert(suspects) => Self {
                item: suspects.first().map(|suspected| suspected.item.to_string()),
                claims: suspects
                    .iter()
                    .flat_map(|suspected| {
                        suspected.claims.iter().map(|claim| claim.service.spelling().to_owned())
                    })
                    .collect(),
                ..told("several-originals", words.alert, words.alert_detail)
            },
            ResolutionOutcome::Deleted { tombstones, living } => Self {
                offered: living.iter().map(query_path).collect(),
                item: tombstones.first().map(|(_, tombstone)| tombstone.ibi.to_string()),
                removed: tombstones
                    .iter()
                    .map(|(archive, tombstone)| OutcomeRemoval {
                        archive: service(archive),
                        at: tombstone.timestamp.clone(),
                    })
                    .collect(),
                ..told("removed", words.removed, words.removed_detail)
            },
            ResolutionOutcome::Ambiguous { items, asked } => Self {
                offered: items.iter().filter_map(|item| item_path(item, asked)).collect(),
                ..told("several-items", words.several, words.several_detail)
            },
            ResolutionOutcome::Reserved(item) => Self {
                item: Some(item.to_string()),
                ..told("reserved", words.reserved, words.reserved_detail)
            },
            ResolutionOutcome::NotFound(missing) => {
                told("not-found", words.not_found, "").with_missing(missing, words)
            }
            ResolutionOutcome::Incomplete { silent, otherwise } => {
                let known = told("incomplete", words.incomplete, "").with_missing(otherwise, words);
                Self {
                    detail: match otherwise {
                        // If nothing is known, say only that the search was incomplete.
                        NotFoundReason::Item => words.incomplete_detail.to_owned(),
                        _ => format!("{} {}", known.detail, words.incomplete_detail),
                    },
                    silent: silent.iter().map(|(archive, _)| service(archive)).collect(),
                    ..known
                }
            }
            ResolutionOutcome::Cycle { chain, why } => Self {
                chain: chain.iter().map(question_text).collect(),
                ..told(
                    "cycle",
                    words.cycle,
                    match why {
                        CycleReason::Repeats => words.cycle_repeats,
                        CycleReason::TooManyRounds => words.cycle_rounds,
                    },
                )
            },
        }
    }

    fn with_missing(self, missing: &NotFoundReason, words: &ResolverPageTexts) -> Self {
        let label = |item: &LabelForms| {
            item.labels().first().map_or_else(String::new, |label| label.spelling().to_owned())
        };
        match missing {
            NotFoundReason::Item => Self { detail: words.no_item.to_owned(), ..self },
            NotFoundReason::Related { item, offered } | NotFoundReason::File { item, offered } => {
                let is_file = matches!(missing, NotFoundReason::File { .. });
                let label = label(item);
                Self {
                    detail: (if is_file { words.no_file } else { words.no_relation }).to_owned(),
                    item: Some(item.to_string()),
                    offered: offered
                        .iter()
                        .map(|relation| format!("/{label}{}", relation.modifiers()))
                        .collect(),
                    ..self
                }
            }
            NotFoundReason::Unheld { item, older } => Self {
                detail: words.unheld.to_owned(),
                unheld: Some(item.to_string()),
                offered: older.iter().map(query_path).collect(),
                ..self
            },
            NotFoundReason::Original { copies } => Self {
                detail: words.no_original.to_owned(),
                copies: copies.iter().map(|copy| copy.url.clone()).collect(),
                ..self
            },
        }
    }

    /// As plain text: the outcome and the alternatives.
    pub fn to_text(&self, language: UiLanguage) -> String {
        let words = words(language);
        let mut text = format!("{}: {}\n", self.title, self.detail);
        if let Some(item) = &self.item {
            text.push_str(&format!("{}: {item}\n", words.item));
        }
        if let Some(unheld) = &self.unheld {
            text.push_str(&format!("{}: {unheld}\n", words.unheld_item));
        }
        for (title, entries) in self.lists(words) {
            text.push_str(&format!("{title}:\n"));
            entries.iter().for_each(|(entry, _)| text.push_str(&format!("  {entry}\n")));
        }
        text
    }

    /// The lists to show: titles, each with texts that may be links.
    pub(crate) fn lists<'a>(&'a self, words: &'a ResolverPageTexts) -> Vec<(&'a str, Vec<(String, bool)>)> {
        let plain =
            |texts: &[String], link: bool| texts.iter().map(|text| (text.clone(), link)).collect::<Vec<_>>();
        let removed = self.removed.iter().map(|removed| match &removed.at {
            Some(at) => (format!("{at}  {}", removed.archive), false),
            None => (removed.archive.clone(), false),
        });
        let lists = [
            (words.offered, plain(&self.offered, true)),
            (words.copies, plain(&self.copies, true)),
            (words.silent, plain(&self.silent, false)),
            (words.claims, plain(&self.claims, false)),
            (words.evidence, self.evidence.iter().map(|claim| (claim.to_text(words), false)).collect()),
            (words.removed_by, removed.collect()),
            (words.chain, plain(&self.chain, false)),
        ];
        lists.into_iter().filter(|(_, entries)| !entries.is_empty()).collect()
    }
}

/// A query as a persistent URL, without the resolver.
fn query_path(question: &ItemQuery) -> String {
    let ItemQuery { label, verbs, file } = question.clone();
    PersistentUrl { label, verbs, file, original: false, passed_on: String::new() }.to_string()
}

/// The requested path for the item with these labels, in the item's own spelling.
fn item_path(item: &LabelForms, asked: &PersistentUrl) -> Option<String> {
    let own = item.labels().iter().find(|label| **label == asked.label).or(item.labels().first())?;
    Some(PersistentUrl { label: own.clone(), ..asked.clone() }.to_string())
}

fn service(archive: &RegisteredArchive) -> String {
    archive.service.spelling().to_owned()
}

#[cfg(test)]
mod tests;
