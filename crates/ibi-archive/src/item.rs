//! What an item has (clause 2.2), as it is written in the item's object: `item.json` (`docs/formats/item.md`).

use ibi_id::{Form, Label, ParseError};
use ibi_store::digests::{Digests, hex};
use ibi_store::records::{FileRecord, LabelRecord, LinkKind, LinkRecord, Role};
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::language::Language;
use crate::target_url::TargetUrl;

/// The format of `item.json` for an item that has none of the members that came later.
pub(crate) const FORMAT: u32 = 1;

/// The format of an `item.json` with `url`, `data_updated` or `metadata_updated`. Written only
/// where it is needed, so that programs that know format 1 alone go on reading all other items.
pub(crate) const FORMAT_WITH_URL_AND_CLOCKS: u32 = 2;

/// An item, apart from its bytes and its metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Item {
    /// The format of this description.
    pub format: u32,
    /// Its primary labels, one a form.
    #[serde(flatten)]
    pub labels: Labels,
    /// Other labels that lead to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The labels of its metadata, an identified item of its own.
    pub metadata: Labels,
    /// Whether the Original may be handed over to another Archive (clause 2.1).
    pub transferable: bool,
    /// When it was deposited.
    pub created: String,
    /// When it was last updated, or removed.
    pub updated: String,
    /// When its data last changed, if that was not `updated` (D32).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_updated: Option<String>,
    /// When its metadata last changed, likewise.
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
    /// Where its persistent URL leads, if not to a file of its own (clause 2.2, D31).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<TargetUrl>,
    /// Who may read its files.
    pub access: Access,
    /// Its files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ItemFile>,
    /// If it was removed: when, by whom, why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removed>,
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// An item as it is read: member by member, which is much faster than the labels flattened.
#[derive(Deserialize)]
struct Written {
    format: u32,
    rep: Option<String>,
    ibip: Option<String>,
    legacy: Option<String>,
    #[serde(default)]
    aliases: Vec<String>,
    metadata: Labels,
    transferable: bool,
    created: String,
    updated: String,
    data_updated: Option<String>,
    metadata_updated: Option<String>,
    language: Option<Language>,
    translation_of: Option<String>,
    next_edition_of: Option<String>,
    target: Option<String>,
    url: Option<TargetUrl>,
    access: Access,
    #[serde(default)]
    files: Vec<ItemFile>,
    removed: Option<Removed>,
}

impl From<Written> for Item {
    fn from(written: Written) -> Self {
        Self {
            format: written.format,
            labels: Labels { rep: written.rep, ibip: written.ibip, legacy: written.legacy },
            aliases: written.aliases,
            metadata: written.metadata,
            transferable: written.transferable,
            created: written.created,
            updated: written.updated,
            data_updated: written.data_updated,
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

/// Primary labels, at most one a form (clause 1.3), as they are spelled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// The name of the uniform repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rep: Option<String>,
    /// The opaque form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ibip: Option<String>,
    /// From before 2009.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legacy: Option<String>,
}

impl Labels {
    /// All of them, the one that names the object first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        [&self.rep, &self.ibip, &self.legacy].into_iter().flatten().map(String::as_str)
    }

    /// All of them with their forms, likewise.
    #[cfg(feature = "web")]
    pub(crate) fn by_form(&self) -> impl Iterator<Item = (Form, &str)> {
        let forms = [(Form::Repository, &self.rep), (Form::Ibip, &self.ibip), (Form::Legacy, &self.legacy)];
        forms.into_iter().filter_map(|(form, label)| Some((form, label.as_deref()?)))
    }

    /// The first of [`Labels::iter`].
    pub fn primary(&self) -> &str {
        self.iter().next().unwrap_or_default()
    }

    /// Whether a label, as others spell it, is one of them (clause 1.3).
    pub fn have(&self, label: &str) -> bool {
        let Ok(label) = Spelling::parse(label) else { return false };
        self.iter().any(|own| Spelling::parse(own).is_ok_and(|own| own.canonical == label.canonical))
    }

    /// The place of a label of this form.
    pub(crate) fn of(&mut self, form: Form) -> &mut Option<String> {
        match form {
            Form::Repository => &mut self.rep,
            Form::Ibip => &mut self.ibip,
            Form::Legacy => &mut self.legacy,
        }
    }
}

impl From<crate::mint::Labels> for Labels {
    fn from(minted: crate::mint::Labels) -> Self {
        Self { rep: minted.rep, ibip: minted.ibip, legacy: None }
    }
}

/// A file of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemFile {
    /// Its path below `doc/`, as the inventory has it.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Media type.
    #[serde(rename = "type")]
    pub media: String,
    /// BLAKE3 of each block of 1 MiB, in hex, one after the other.
    pub blocks: String,
    /// What the state of SHA-512 was after each 4 MiB that more bytes follow, in hex, one after the other: with it the digest of the
    /// whole is checked faster. Nobody has to believe it, and it may be missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stations: String,
}

impl ItemFile {
    pub(crate) fn new(path: String, digests: &Digests) -> Self {
        let media = mime_guess::from_path(&path).first_or_octet_stream().to_string();
        let blocks = hex(&digests.blocks);
        Self { path, size: digests.size, media, blocks, stations: hex(&digests.stations) }
    }

    /// As it is recorded, with where its bytes lie.
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

/// Bytes that are written as two hex digits each.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let nibble = |digit: u8| char::from(digit).to_digit(16);
    // Two digits are at most 255.
    let byte = |pair: &[u8]| Some((nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?) as u8);
    text.as_bytes().chunks(2).map(byte).collect()
}

/// A removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    /// When.
    pub at: String,
    /// By whom.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Whether the bytes were destroyed at once.
    pub purged: bool,
}

/// A label in the two spellings that it is looked up by (clause 1.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spelling {
    pub(crate) folded: String,
    pub(crate) canonical: String,
}

impl Spelling {
    pub(crate) fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self::of(&Label::parse(text)?))
    }

    pub(crate) fn of<S: AsRef<str>>(label: &Label<S>) -> Self {
        Self { folded: Self::folded(label), canonical: fold(label.form(), label.to_string()) }
    }

    /// Only the first of them, which finds most.
    pub(crate) fn folded<S: AsRef<str>>(label: &Label<S>) -> String {
        fold(label.form(), label.spelling().to_owned())
    }

    fn record(self, role: Role) -> LabelRecord {
        LabelRecord { folded: self.folded, canonical: self.canonical, role }
    }
}

/// Labels are case-insensitive, but for legacy ones, which have one spelling.
fn fold(form: Form, mut text: String) -> String {
    match form {
        Form::Legacy => {}
        Form::Repository | Form::Ibip => text.make_ascii_lowercase(),
    }
    text
}

impl Item {
    /// Reads `item.json`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let item: Result<Self, _> = serde_json::from_slice(bytes);
        let format = match &item {
            Ok(item) => Some(item.format),
            // A newer one may differ in anything but this.
            Err(_) => serde_json::from_slice::<Format>(bytes).ok().map(|written| written.format),
        };
        match format {
            Some(format) if !(FORMAT..=FORMAT_WITH_URL_AND_CLOCKS).contains(&format) => Err(format!(
                "its format is {format}, and this program knows {FORMAT} to {FORMAT_WITH_URL_AND_CLOCKS}"
            )),
            _ => item.map_err(|error| error.to_string()),
        }
    }

    /// As it is written: the same bytes for the same item.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Text, numbers and lists: nothing that JSON could refuse.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Its labels, as they are looked up. What cannot be read as a label leads nowhere.
    pub(crate) fn label_records(&self) -> Vec<LabelRecord> {
        let item = self.labels.iter().map(|label| (label, Role::Item));
        let aliases = self.aliases.iter().map(|label| (label.as_str(), Role::Alias));
        let metadata = self.metadata.iter().map(|label| (label, Role::Metadata));
        let records = item.chain(aliases).chain(metadata);
        records.filter_map(|(label, role)| Some(Spelling::parse(label).ok()?.record(role))).collect()
    }

    /// Its links, likewise.
    pub(crate) fn link_records(&self) -> Vec<LinkRecord> {
        let links =
            [(LinkKind::Translation, &self.translation_of), (LinkKind::Edition, &self.next_edition_of)];
        let links = links.into_iter().filter_map(|(kind, to)| Some((kind, to.as_deref()?)));
        links
            .filter_map(|(kind, to)| Some(LinkRecord { kind, to: Spelling::parse(to).ok()?.canonical }))
            .collect()
    }

    /// The oldest format that can tell all that it has.
    pub(crate) fn needed_format(&self) -> u32 {
        let is_plain = self.url.is_none() && self.data_updated.is_none() && self.metadata_updated.is_none();
        if is_plain { FORMAT } else { FORMAT_WITH_URL_AND_CLOCKS }
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
        Ok(Spelling::parse(self.labels.primary())?.folded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT_2: &str = include_str!("../tests/samples/item-2.json");

    /// Frozen: what this program wrote once, it reads for ever.
    #[test]
    fn an_item_of_format_2_is_still_read_and_written_so() {
        let item = Item::parse(FORMAT_2.as_bytes()).unwrap();
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
        let plain =
            Item::parse(FORMAT_2.as_bytes()).map(|item| Item { url: None, data_updated: None, ..item });
        assert_eq!(plain.as_ref().map(Item::needed_format), Ok(1));
        let later = plain.map(|item| Item { metadata_updated: Some(String::new()), ..item });
        assert_eq!(later.map(|item| item.needed_format()), Ok(2));
        let newer = FORMAT_2.replace("\"format\": 2", "\"format\": 3");
        assert!(Item::parse(newer.as_bytes()).unwrap_err().contains("format is 3"));
        let hostile = FORMAT_2.replace("https://", "javascript://");
        assert!(Item::parse(hostile.as_bytes()).is_err(), "whoever it comes from");
    }
}
