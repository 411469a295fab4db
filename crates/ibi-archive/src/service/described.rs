//! What is said of an item over the API, of a new one or of one that is there.

use ibi_protocol::Language;
use serde::{Deserialize, Deserializer, Serialize};

use crate::access::Access;
use crate::dublin_core::DublinCore;
use crate::target_url::TargetUrl;
use crate::{ArchiveError, Changes, deposit};

/// What is said of an item. What is left out stays as it is; of the language, the links and the
/// URL, `null` takes them away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes an item")]
pub struct Described {
    /// Its metadata.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub metadata: Option<DublinCore>,
    /// Its language.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub language: Option<Option<Language>>,
    /// What it is a translation of.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub translation_of: Option<Option<String>>,
    /// What it is the next edition of.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub next_edition_of: Option<Option<String>>,
    /// The file that its persistent URL opens.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub target: Option<String>,
    /// The URL that it leads to instead of to files.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub url: Option<Option<TargetUrl>>,
    /// Who may read its files.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub access: Option<Access>,
    /// Labels that it has already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Labels that its metadata have already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata_labels: Vec<String>,
    /// When it was created elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub created: Option<String>,
    /// When it was last updated elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub updated: Option<String>,
    /// When its metadata were last updated elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub metadata_updated: Option<String>,
    /// With a label from elsewhere: this is the Original.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub original: bool,
    /// Other labels that lead to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Whether the Original may be handed over.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub transferable: Option<bool>,
}

/// What is there was said, also `null`.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// What is there has a value.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A date as RFC 3339 writes it; whether it may be is seen when the item is published.
fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_date = text.contains(['T', 't']) && text.parse::<ibi_id::Instant>().is_ok();
    match is_date {
        true => Ok(Some(text)),
        false => Err(serde::de::Error::custom("a date is written as in 2014-04-04T17:39:54Z (RFC 3339)")),
    }
}

impl Described {
    /// What only an operator may say: that this is the Original of a label from elsewhere, and that other labels lead to it
    /// (clause 2.1).
    pub fn claims(&self) -> bool {
        self.original || !self.aliases.is_empty()
    }

    /// Says more, in the place of what was said before.
    pub fn add(&mut self, more: Self) {
        fn put<T>(old: &mut Option<T>, new: Option<T>) {
            if new.is_some() {
                *old = new;
            }
        }
        put(&mut self.metadata, more.metadata);
        put(&mut self.language, more.language);
        put(&mut self.translation_of, more.translation_of);
        put(&mut self.next_edition_of, more.next_edition_of);
        put(&mut self.target, more.target);
        put(&mut self.url, more.url);
        put(&mut self.access, more.access);
        put(&mut self.transferable, more.transferable);
        put(&mut self.created, more.created);
        put(&mut self.updated, more.updated);
        put(&mut self.metadata_updated, more.metadata_updated);
        self.original |= more.original;
        let lists = [
            (&mut self.labels, more.labels),
            (&mut self.metadata_labels, more.metadata_labels),
            (&mut self.aliases, more.aliases),
        ];
        for (old, new) in lists {
            if !new.is_empty() {
                *old = new;
            }
        }
    }

    /// Of a new item.
    pub(super) fn draft(self, by: &str, title: &str) -> Result<deposit::Draft, ArchiveError> {
        let draft = deposit::Draft::new(by);
        let metadata = self.metadata.filter(|metadata| !metadata.statements().is_empty());
        Ok(deposit::Draft {
            metadata: metadata.map_or_else(|| deposit::titled(title), Ok)?,
            language: self.language.flatten(),
            translation_of: self.translation_of.flatten(),
            next_edition_of: self.next_edition_of.flatten(),
            target: self.target,
            url: self.url.flatten(),
            access: self.access.unwrap_or_default(),
            labels: self.labels,
            metadata_labels: self.metadata_labels,
            created: self.created,
            updated: self.updated,
            metadata_updated: self.metadata_updated,
            original: self.original,
            aliases: self.aliases,
            transferable: self.transferable.unwrap_or(true),
            ..draft
        })
    }

    /// Of an item that is there.
    pub fn changes(self) -> Result<Changes, ArchiveError> {
        let refused = |what: &str| {
            Err(ArchiveError::Value(format!("{what} of an item that is there stay as they are")))
        };
        if !self.labels.is_empty() || !self.metadata_labels.is_empty() {
            return refused("labels");
        }
        if self.created.is_some() || self.updated.is_some() || self.metadata_updated.is_some() {
            return refused("dates");
        }
        if self.original || self.transferable == Some(true) {
            return refused("its state and whether it may be handed over");
        }
        Ok(Changes {
            record: self.metadata,
            statements: Vec::new(),
            language: self.language,
            translation_of: self.translation_of,
            next_edition_of: self.next_edition_of,
            target: self.target,
            url: self.url,
            access: self.access,
            aliases: self.aliases,
            non_transferable: self.transferable == Some(false),
        })
    }
}
