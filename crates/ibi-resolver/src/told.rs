//! An outcome, told to a program; in words, to a person.

mod words;

use ibi_http::accept::Tongue;
use ibi_protocol::analysis::{Endless, NotFound, Question};
use ibi_protocol::{Forms, PersistentUrl};
use serde::Serialize;

use crate::archive::Archive;
use crate::explain::question;
use crate::resolve::Outcome;
use crate::shown::AlertShown;

pub use words::{Words, words};

/// What a resolution came to (4.3).
#[derive(Debug, Clone, Default, Serialize)]
pub struct Told {
    /// The kind, for errors: a name that stays (RFC 9457).
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is, in words.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What it is this time.
    pub detail: String,
    /// Where the client goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Whose URL that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// What the Archive says that it has: `Original` or `Copy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// The item, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// What there is of the item instead: the persistent URLs, without the resolver.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<String>,
    /// A newer edition or a translation that an Archive names and nobody has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unheld: Option<String>,
    /// Where copies are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<String>,
    /// Archives that did not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
    /// Archives that claim the original.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// What those who claim the original tell of it, as far as it is known by now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<ClaimEvidence>,
    /// Archives that say that it was removed, and when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Removed>,
    /// The questions that lead in circles, or too far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
}

/// A removal.
#[derive(Debug, Clone, Serialize)]
pub struct Removed {
    /// The Archive that says so.
    pub archive: String,
    /// When, as it writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// What is known of a claim of the original. How to reach who runs the Archive is for the operator only.
#[derive(Debug, Clone, Serialize)]
pub struct ClaimEvidence {
    /// The Archive that claims it.
    pub archive: String,
    /// Whether the label was minted under that Archive's own prefix, if it can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_prefix: Option<bool>,
    /// When it was deposited there, the Archive says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deposited: Option<String>,
    /// By whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depositor: Option<String>,
    /// How often the Original was handed over or declared, and one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// SHA-512 of the inventory of its last version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<String>,
}

impl ClaimEvidence {
    /// What an alert has of each claim.
    pub(crate) fn of(alert: AlertShown) -> Vec<Self> {
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

    fn to_text(&self, words: &Words) -> String {
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

impl Told {
    /// What an outcome is, in a language.
    pub fn new(outcome: &Outcome, tongue: Tongue) -> Self {
        let words = words(tongue);
        let told = |name: &str, title, detail: &str| Self {
            kind: format!("urn:ibi:problem:{name}"),
            title,
            status: outcome.status(),
            detail: detail.to_owned(),
            ..Self::default()
        };
        match outcome {
            Outcome::Found { location, archive, found } => Self {
                location: Some(location.clone()),
                archive: Some(service(archive)),
                state: found.state.map(ibi_protocol::State::as_str),
                item: found.ibi.as_ref().map(Forms::to_string),
                ..told("none", words.found, location)
            },
            Outcome::Alert(suspects) => Self {
                item: suspects.first().map(|suspected| suspected.item.to_string()),
                claims: suspects
                    .iter()
                    .flat_map(|suspected| {
                        suspected.claims.iter().map(|claim| claim.service.spelling().to_owned())
                    })
                    .collect(),
                ..told("several-originals", words.alert, words.alert_detail)
            },
            Outcome::Deleted { tombstones, living } => Self {
                offered: living.iter().map(path).collect(),
                item: tombstones.first().map(|(_, tombstone)| tombstone.ibi.to_string()),
                removed: tombstones
                    .iter()
                    .map(|(archive, tombstone)| Removed {
                        archive: service(archive),
                        at: tombstone.timestamp.clone(),
                    })
                    .collect(),
                ..told("removed", words.removed, words.removed_detail)
            },
            Outcome::Ambiguous { items, asked } => Self {
                offered: items.iter().filter_map(|item| spelled(item, asked)).collect(),
                ..told("several-items", words.several, words.several_detail)
            },
            Outcome::Reserved(item) => Self {
                item: Some(item.to_string()),
                ..told("reserved", words.reserved, words.reserved_detail)
            },
            Outcome::NotFound(missing) => told("not-found", words.not_found, "").with(missing, words),
            Outcome::Incomplete { silent, otherwise } => {
                let known = told("incomplete", words.incomplete, "").with(otherwise, words);
                Self {
                    detail: match otherwise {
                        // Nothing is known: nothing is said but that.
                        NotFound::Item => words.incomplete_detail.to_owned(),
                        _ => format!("{} {}", known.detail, words.incomplete_detail),
                    },
                    silent: silent.iter().map(|(archive, _)| service(archive)).collect(),
                    ..known
                }
            }
            Outcome::Cycle { chain, why } => Self {
                chain: chain.iter().map(question).collect(),
                ..told(
                    "cycle",
                    words.cycle,
                    match why {
                        Endless::Repeats => words.cycle_repeats,
                        Endless::TooManyRounds => words.cycle_rounds,
                    },
                )
            },
        }
    }

    fn with(self, missing: &NotFound, words: &Words) -> Self {
        let label = |item: &Forms| {
            item.labels().first().map_or_else(String::new, |label| label.spelling().to_owned())
        };
        match missing {
            NotFound::Item => Self { detail: words.no_item.to_owned(), ..self },
            NotFound::Related { item, offered } | NotFound::File { item, offered } => {
                let is_file = matches!(missing, NotFound::File { .. });
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
            NotFound::Unheld { item, older } => Self {
                detail: words.unheld.to_owned(),
                unheld: Some(item.to_string()),
                offered: older.iter().map(path).collect(),
                ..self
            },
            NotFound::Original { copies } => Self {
                detail: words.no_original.to_owned(),
                copies: copies.iter().map(|copy| copy.url.clone()).collect(),
                ..self
            },
        }
    }

    /// As plain text: what it is, and what there is instead.
    pub fn to_text(&self, tongue: Tongue) -> String {
        let words = words(tongue);
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

    /// What is listed: titles, and under each texts that may be links.
    pub(crate) fn lists<'a>(&'a self, words: &'a Words) -> Vec<(&'a str, Vec<(String, bool)>)> {
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

/// A question as a persistent URL, without the resolver.
fn path(question: &Question) -> String {
    let Question { label, verbs, file } = question.clone();
    PersistentUrl { label, verbs, file, original: false, passed_on: String::new() }.to_string()
}

/// What was asked for, of the item with these labels: under the spelling that is its own.
fn spelled(item: &Forms, asked: &PersistentUrl) -> Option<String> {
    let own = item.labels().iter().find(|label| **label == asked.label).or(item.labels().first())?;
    Some(PersistentUrl { label: own.clone(), ..asked.clone() }.to_string())
}

fn service(archive: &Archive) -> String {
    archive.service.spelling().to_owned()
}

#[cfg(test)]
mod tests;
