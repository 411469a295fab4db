//! The properties of an item (clause 2.2), as stored in its object: `item.json`
//! (`docs/formats/item.md`).

use ibi_id::{Form, Label, ParseError};
use ibi_store::digests::{ContentDigests, hex};
use ibi_store::index::{FileRecord, LabelRecord, LabelRole, LinkKind, LinkRecord};
use serde::{Deserialize, Serialize};

use crate::ArchiveError;
use crate::access::AccessRule;
use crate::language::Language;
use crate::target_url::TargetUrl;

/// The format of an `item.json` without any of the later members.
pub(crate) const ITEM_FORMAT: u32 = 1;

/// The format of an `item.json` with `url`, `data_updated`, `metadata_created` or
/// `metadata_updated`. Written only where needed, so programs that know only format 1 can still
/// read all other items.
pub(crate) const FORMAT_WITH_URL_AND_CLOCKS: u32 = 2;

/// An item without its bytes and metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ItemJson")]
pub struct ItemDescription {
    /// The format of this description.
    pub format: u32,
    /// Its primary labels, one per form.
    #[serde(flatten)]
    pub labels: ItemLabels,
    /// Its other labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The labels of its metadata, which is an identified item of its own.
    pub metadata: ItemLabels,
    /// Whether the Original may be handed over to another Archive (clause 2.1).
    pub transferable: bool,
    /// When it was deposited.
    pub created: String,
    /// When it was last updated, or removed.
    pub updated: String,
    /// When its data last changed, if that was not `updated` (D32).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_updated: Option<String>,
    /// When its metadata were created, if that was not `created` (clause 2.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_created: Option<String>,
    /// When its metadata last changed, if that was not `updated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_updated: Option<String>,
    /// Its language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// What it is a translation of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation_of: Option<String>,
    /// What it is the next edition of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_edition_of: Option<String>,
    /// The file that its persistent URL opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Where its persistent URL redirects, if not to a file of its own (clause 2.2, D31).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<TargetUrl>,
    /// Who may read its files.
    pub access: AccessRule,
    /// Its files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ItemFile>,
    /// If it was removed: when, by whom, why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<ItemRemoval>,
}

/// Fails if an item has too many aliases.
pub(crate) fn check_alias_count(count: usize) -> Result<(), ArchiveError> {
    match count <= MAX_ALIASES {
        true => Ok(()),
        false => {
            Err(ArchiveError::Value(format!("an item has at most {MAX_ALIASES} aliases, and not {count}")))
        }
    }
}

/// The most aliases per item: each one is looked up, and every listing contains them all.
pub const MAX_ALIASES: usize = 1000;

/// What the index adds to the properties of an item with long metadata, so that relations can be
/// followed without reading them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LongMetadataNote {
    /// The languages in which its metadata have values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) metadata_languages: Vec<Language>,
}

impl LongMetadataNote {
    /// Reads the note from the properties in the index; empty if there is none.
    pub(crate) fn parse(properties: &str) -> Self {
        serde_json::from_str(properties).unwrap_or_default()
    }
}

/// The properties of an item as the index has them.
#[derive(Serialize)]
pub(crate) struct IndexedProperties<'a> {
    #[serde(flatten)]
    pub(crate) item: &'a ItemDescription,
    #[serde(flatten)]
    pub(crate) note: LongMetadataNote,
}

#[derive(Deserialize)]
struct ItemFormat {
    format: u32,
}

/// The form for deserialization, member by member: much faster than the flattened labels.
#[derive(Deserialize)]
struct ItemJson {
    format: u32,
    rep: Option<String>,
    ibip: Option<String>,
    legacy: Option<String>,
    #[serde(default)]
    aliases: Vec<String>,
    metadata: ItemLabels,
    transferable: bool,
    created: String,
    updated: String,
    data_updated: Option<String>,
    metadata_created: Option<String>,
    metadata_updated: Option<String>,
    language: Option<Language>,
    translation_of: Option<String>,
    next_edition_of: Option<String>,
    target: Option<String>,
    url: Option<TargetUrl>,
    access: AccessRule,
    #[serde(default)]
    files: Vec<ItemFile>,
    removed: Option<ItemRemoval>,
}

impl From<ItemJson> for ItemDescription {
    fn from(written: ItemJson) -> Self {
        Self {
            format: written.format,
            labels: ItemLabels { rep: written.rep, ibip: written.ibip, legacy: written.legacy },
            aliases: written.aliases,
            metadata: written.metadata,
            transferable: written.transferable,
            created: written.created,
            updated: written.updated,
            data_updated: written.data_updated,
            metadata_created: written.metadata_created,
            metadata_updated: written.metadata_updated,
            language: written.language,
            translation_of: written.translation_of,
            next_edition_of: written.next_edition_of,
            target: written.target,
            url: written.url,
            access: written.access,
            files: written.files,
            removed: written.removed,
        }
    }
}

/// Primary labels, at most one per form (clause 1.3), with their spelling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemLabels {
    /// The name of the uniform repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rep: Option<String>,
    /// The opaque form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ibip: Option<String>,
    /// The form used before 2009.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legacy: Option<String>,
}

impl ItemLabels {
    /// All labels. The one that names the object comes first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        [&self.rep, &self.ibip, &self.legacy].into_iter().flatten().map(String::as_str)
    }

    /// All labels with their forms, in the same order.
    #[cfg(feature = "web")]
    pub(crate) fn by_form(&self) -> impl Iterator<Item = (Form, &str)> {
        let forms = [(Form::Repository, &self.rep), (Form::Ibip, &self.ibip), (Form::Legacy, &self.legacy)];
        forms.into_iter().filter_map(|(form, label)| Some((form, label.as_deref()?)))
    }

    /// The first of [`ItemLabels::iter`].
    pub fn primary(&self) -> &str {
        self.iter().next().unwrap_or_default()
    }

    /// Whether a label, in any spelling, is one of these (clause 1.3).
    pub fn has_label(&self, label: &str) -> bool {
        let Ok(label) = LabelKey::parse(label) else { return false };
        self.iter().any(|own| LabelKey::parse(own).is_ok_and(|own| own.canonical == label.canonical))
    }

    /// The field for labels of this form.
    pub(crate) fn slot_mut(&mut self, form: Form) -> &mut Option<String> {
        match form {
            Form::Repository => &mut self.rep,
            Form::Ibip => &mut self.ibip,
            Form::Legacy => &mut self.legacy,
        }
    }
}

impl From<ibi_mint::MintedLabels> for ItemLabels {
    fn from(minted: ibi_mint::MintedLabels) -> Self {
        Self { rep: minted.rep, ibip: minted.ibip, legacy: None }
    }
}

/// A file of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemFile {
    /// Its path below `doc/`, as in the inventory.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Media type, with `charset=utf-8` for UTF-8 text.
    #[serde(rename = "type")]
    pub media: String,
    /// BLAKE3 of each 1 MiB block, in hex, concatenated.
    pub blocks: String,
    /// SHA-512 midstates after each 4 MiB that is followed by more bytes, in hex, concatenated.
    /// They speed up checking the whole digest. They are optional and need not be trusted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stations: String,
}

impl ItemFile {
    pub(crate) fn new(path: String, media: String, digests: &ContentDigests) -> Self {
        let blocks = hex(&digests.blocks);
        Self { path, size: digests.size, media, blocks, stations: hex(&digests.stations) }
    }

    /// The index record of the file, with the location of its bytes.
    pub(crate) fn record(&self, sha512: &str, content: &str) -> Option<FileRecord> {
        Some(FileRecord {
            name: self.path.clone(),
            content: content.to_owned(),
            size: self.size,
            sha512: sha512.to_owned(),
            media: self.media.clone(),
            blocks: unhex(&self.blocks)?,
        })
    }
}

/// Decodes hex; `None` if it is malformed.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let nibble = |digit: u8| char::from(digit).to_digit(16);
    // Two hex digits are at most 255: the cast is lossless.
    let byte = |pair: &[u8]| Some((nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?) as u8);
    text.as_bytes().chunks(2).map(byte).collect()
}

/// A removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemRemoval {
    /// When.
    pub at: String,
    /// By whom.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Whether the bytes were destroyed at once.
    pub purged: bool,
}

/// A label in the two spellings used for lookup (clause 1.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelKey {
    pub(crate) folded: String,
    pub(crate) canonical: String,
}

impl LabelKey {
    pub(crate) fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self::of(&Label::parse(text)?))
    }

    pub(crate) fn of<S: AsRef<str>>(label: &Label<S>) -> Self {
        Self { folded: Self::folded(label), canonical: fold(label.form(), label.to_string()) }
    }

    /// Only the folded spelling, which suffices for most lookups.
    pub(crate) fn folded<S: AsRef<str>>(label: &Label<S>) -> String {
        fold(label.form(), label.spelling().to_owned())
    }

    fn record(self, role: LabelRole) -> LabelRecord {
        LabelRecord { folded: self.folded, canonical: self.canonical, role }
    }
}

/// Labels are case-insensitive, except legacy ones, which have one spelling.
fn fold(form: Form, mut text: String) -> String {
    match form {
        Form::Legacy => {}
        Form::Repository | Form::Ibip => text.make_ascii_lowercase(),
    }
    text
}

fn check_known_format(format: u32) -> Result<(), String> {
    match (ITEM_FORMAT..=FORMAT_WITH_URL_AND_CLOCKS).contains(&format) {
        true => Ok(()),
        false => Err(format!(
            "its format is {format}, and this program knows {ITEM_FORMAT} to {FORMAT_WITH_URL_AND_CLOCKS}"
        )),
    }
}

impl ItemDescription {
    /// Parses `item.json`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let item: Result<Self, _> = serde_json::from_slice(bytes);
        let format = match &item {
            Ok(item) => Some(item.format),
            // A newer format may differ in everything except this member.
            Err(_) => serde_json::from_slice::<ItemFormat>(bytes).ok().map(|written| written.format),
        };
        format.map_or(Ok(()), check_known_format)?;
        item.map_err(|error| error.to_string())
    }

    /// Fails if `item.json` is of an unknown format.
    #[cfg(feature = "web")]
    pub(crate) fn check_format(bytes: &[u8]) -> Result<(), String> {
        let written: ItemFormat = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        check_known_format(written.format)
    }

    /// Serializes the item. The output is deterministic.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Strings, numbers and lists only: serialization cannot fail.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Its labels as index records. What does not parse as a label is skipped.
    pub(crate) fn label_records(&self) -> Vec<LabelRecord> {
        let item = self.labels.iter().map(|label| (label, LabelRole::Item));
        let aliases = self.aliases.iter().map(|label| (label.as_str(), LabelRole::Alias));
        let metadata = self.metadata.iter().map(|label| (label, LabelRole::Metadata));
        let records = item.chain(aliases).chain(metadata);
        records.filter_map(|(label, role)| Some(LabelKey::parse(label).ok()?.record(role))).collect()
    }

    /// Its links as index records. What does not parse as a label is skipped.
    pub(crate) fn link_records(&self) -> Vec<LinkRecord> {
        let links =
            [(LinkKind::Translation, &self.translation_of), (LinkKind::Edition, &self.next_edition_of)];
        let links = links.into_iter().filter_map(|(kind, to)| Some((kind, to.as_deref()?)));
        links
            .filter_map(|(kind, to)| Some(LinkRecord { kind, to: LabelKey::parse(to).ok()?.canonical }))
            .collect()
    }

    /// The oldest format that can represent this item.
    pub(crate) fn needed_format(&self) -> u32 {
        let clocks = [&self.data_updated, &self.metadata_created, &self.metadata_updated];
        let is_plain = self.url.is_none() && clocks.iter().all(|clock| clock.is_none());
        if is_plain { ITEM_FORMAT } else { FORMAT_WITH_URL_AND_CLOCKS }
    }

    /// When its data last changed, or it was removed (clause 3.4, `timestamp`).
    pub fn data_time(&self) -> &str {
        self.data_updated.as_deref().unwrap_or(&self.updated)
    }

    /// When its metadata last changed, or it was removed (clause 3.4, `timestamp.metadata`).
    pub fn metadata_time(&self) -> &str {
        self.metadata_updated.as_deref().unwrap_or(&self.updated)
    }

    /// The path of its object: the folded spelling of its first label.
    pub(crate) fn object_path(&self) -> Result<String, ParseError> {
        Ok(LabelKey::parse(self.labels.primary())?.folded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT_2: &str = include_str!("../tests/samples/item-2.json");

    /// Frozen: this format must stay readable forever.
    #[test]
    fn an_item_of_format_2_is_still_read_and_written_so() {
        let item = ItemDescription::parse(FORMAT_2.as_bytes()).unwrap();
        assert_eq!(
            item.url.as_ref().map(TargetUrl::as_str),
            Some("https://maps.library.org.br/wms?service=WMS")
        );
        assert_eq!(item.data_time(), "2026-11-17T20:15:46Z", "D32");
        assert_eq!(item.metadata_time(), "2026-11-17T20:15:47Z", "D32");
        assert_eq!(String::from_utf8(item.to_bytes()).unwrap(), FORMAT_2);
        assert_eq!(item.needed_format(), 2);
    }

    #[test]
    fn format_2_is_written_only_for_what_format_1_cannot_tell() {
        let plain = ItemDescription::parse(FORMAT_2.as_bytes()).map(|item| ItemDescription {
            url: None,
            data_updated: None,
            ..item
        });
        assert_eq!(plain.as_ref().map(ItemDescription::needed_format), Ok(1));
        let time = || Some(String::new());
        let updated = plain.clone().map(|item| ItemDescription { metadata_updated: time(), ..item });
        let created = plain.map(|item| ItemDescription { metadata_created: time(), ..item });
        for later in [updated, created] {
            assert_eq!(later.map(|item| item.needed_format()), Ok(2));
        }
        let newer = FORMAT_2.replace("\"format\": 2", "\"format\": 3");
        assert!(ItemDescription::parse(newer.as_bytes()).unwrap_err().contains("format is 3"));
        let hostile = FORMAT_2.replace("https://", "javascript://");
        assert!(ItemDescription::parse(hostile.as_bytes()).is_err(), "whoever it comes from");
    }
}
