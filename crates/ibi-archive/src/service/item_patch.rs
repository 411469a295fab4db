//! The description of an item as sent over the API, for a new item or an update.

use ibi_protocol::Language;
use serde::{Deserialize, Deserializer, Serialize};

use crate::access::AccessRule;
use crate::dublin_core::DublinCore;
use crate::target_url::TargetUrl;
use crate::{ArchiveError, ItemChanges, deposit};

/// A patch to an item. Omitted fields stay unchanged. `null` clears the language, the links and the
/// URL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes an item")]
pub struct ItemPatch {
    /// Metadata.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub metadata: Option<DublinCore>,
    /// Language.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub language: Option<Option<Language>>,
    /// The item that this one translates.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub translation_of: Option<Option<String>>,
    /// The item that this one is the next edition of.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub next_edition_of: Option<Option<String>>,
    /// The file that the persistent URL opens.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub target: Option<String>,
    /// The URL to redirect to, instead of files.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub url: Option<Option<TargetUrl>>,
    /// Who may read the files.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub access: Option<AccessRule>,
    /// Labels that the item already has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Labels that the metadata already have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata_labels: Vec<String>,
    /// Creation time in another system.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub created: Option<String>,
    /// Time of the last update in another system.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub updated: Option<String>,
    /// Creation time of the metadata in another system.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub metadata_created: Option<String>,
    /// Time of the last metadata update in another system.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub metadata_updated: Option<String>,
    /// With a label from elsewhere: marks this item as the Original.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub original: bool,
    /// Other labels that resolve to the item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Whether the Original may be transferred to another Archive.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub transferable: Option<bool>,
}

/// Distinguishes `null` (`Some(None)`) from an omitted field (`None`).
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Rejects `null`: a field that is present must have a value.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// An RFC 3339 date. Whether the date is acceptable is checked at publication.
fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_date = text.contains(['T', 't']) && text.parse::<ibi_id::Instant>().is_ok();
    match is_date {
        true => Ok(Some(text)),
        false => Err(serde::de::Error::custom("a date is written as in 2014-04-04T17:39:54Z (RFC 3339)")),
    }
}

impl ItemPatch {
    /// All labels in the patch: of the item, of its metadata and aliases. They may belong to
    /// someone else (clause 2.1).
    pub fn all_labels(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().chain(&self.metadata_labels).chain(&self.aliases).map(String::as_str)
    }

    /// Merges `more` over this patch; its fields take precedence.
    pub fn merge_patch(&mut self, more: Self) {
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
        put(&mut self.metadata_created, more.metadata_created);
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

    /// The request to deposit a new item.
    pub(super) fn into_deposit_draft(
        self,
        by: &str,
        title: &str,
    ) -> Result<deposit::DepositRequest, ArchiveError> {
        let draft = deposit::DepositRequest::new(by);
        let metadata = self.metadata.filter(|metadata| !metadata.statements().is_empty());
        Ok(deposit::DepositRequest {
            metadata: metadata.map_or_else(|| deposit::title_only_metadata(title), Ok)?,
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
            metadata_created: self.metadata_created,
            metadata_updated: self.metadata_updated,
            original: self.original,
            aliases: self.aliases,
            transferable: self.transferable.unwrap_or(true),
            ..draft
        })
    }

    /// The changes to an existing item.
    pub fn into_changes(self) -> Result<ItemChanges, ArchiveError> {
        let refused = |what: &str| {
            Err(ArchiveError::Value(format!("{what} of an item that is there stay as they are")))
        };
        if !self.labels.is_empty() || !self.metadata_labels.is_empty() {
            return refused("labels");
        }
        let dates = [&self.created, &self.updated, &self.metadata_created, &self.metadata_updated];
        if dates.iter().any(|date| date.is_some()) {
            return refused("dates");
        }
        if self.original || self.transferable == Some(true) {
            return refused("its state and whether it may be handed over");
        }
        Ok(ItemChanges {
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
