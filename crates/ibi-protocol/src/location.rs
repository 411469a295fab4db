//! The location feed: what an Archive reports of its items to the resolvers that follow it, so that
//! they can answer for it without asking (4.4). Formats: `docs/formats/location-feed.md`.

use std::sync::Arc;

use percent_encoding::{AsciiSet, CONTROLS, PercentEncode, percent_encode};
use serde::{Deserialize, Serialize};

use crate::answer::{ContentType, State};
use crate::file_path::FilePath;
use crate::language::Language;
use crate::offers::{
    LinkOf, LinkedItem, RelationGraph, RelationTarget, TargetPart, TranslationOf, last_edition,
    relation_offers,
};
use crate::pairs::Pairs;
use crate::relation::{Relation, RelationPart};
use crate::verb::Verbs;

/// The header with which an Archive gives a resolver a token for its feed when it comes online.
pub const FOLLOW_TOKEN_HEADER: &str = "ibi-follow-token";

/// Maximum number of file names in one record. For items with more, the Archive is asked.
pub const MAX_LOCATION_FILES: usize = 256;

/// Characters to escape in a URL path: those that RFC 3986 does not allow there, and those that the
/// list of pairs reserves.
const URL_PATH_ESCAPE_SET: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Bytes of a path, percent-encoded for a URL.
pub fn encode_path_bytes(bytes: &[u8]) -> PercentEncode<'_> {
    percent_encode(bytes, URL_PATH_ESCAPE_SET)
}

/// A page of the feed: changes in the order in which the Archive made them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocationPage {
    /// The labels of the Archive's service.
    pub service: Vec<String>,
    /// The position after this page: the `after` of the next request.
    pub next: String,
    /// Whether more changes follow at once.
    pub more: bool,
    /// Whether the Archive does not know the position of the request: its history is another one
    /// (a backup was restored). The page is the first of all.
    #[serde(default, skip_serializing_if = "is_false")]
    pub restart: bool,
    /// Whether the Archive has to be asked about everything: it was restored and is not confirmed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ask: bool,
    /// How long the request waited for a change before the Archive looked for the last time, in
    /// milliseconds.
    #[serde(default)]
    pub waited: u64,
    /// Items that are new or have changed.
    pub records: Vec<LocationRecord>,
    /// The paths of items that are no longer here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
}

/// What an Archive reports of one item. Access rules, and names of closed files, are never
/// reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocationRecord {
    /// Its name in the Archive.
    pub path: String,
    /// Its labels, the first one being that of its URLs.
    pub labels: Vec<String>,
    /// The labels of its metadata, likewise.
    pub metadata: Vec<String>,
    /// Its other labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Its state in the Archive.
    pub state: State,
    /// How often its Original was handed over.
    pub epoch: u64,
    /// Whether the Archive has to be asked: the answer depends on the client or on the time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ask: bool,
    /// What its URL opens.
    #[serde(default)]
    pub target: LocationTarget,
    /// The names of its files, percent-encoded for a URL; `None` if they are not all here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// When its data last changed, or it was removed.
    pub data_time: String,
    /// When its metadata last changed, if that was another time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_time: Option<String>,
    /// Its language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// The languages in which its metadata have values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata_languages: Vec<Language>,
    /// The labels of its next edition, if one was accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_edition: Vec<String>,
    /// The other items of its group of translations, one per language.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub translations: Vec<LocationTranslation>,
    /// The digests of the inventories of its versions, oldest first, shortened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inventories: Vec<String>,
}

/// What the URL of an item opens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocationTarget {
    /// Its metadata: it has no files.
    #[default]
    Metadata,
    /// A file, by its name, percent-encoded for a URL.
    File(String),
    /// A URL elsewhere, to which the Archive redirects.
    Url,
}

/// A translation of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocationTranslation {
    /// Its language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Its labels.
    pub labels: Vec<String>,
    /// Whether it was removed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub removed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde wants")]
fn is_false(value: &bool) -> bool {
    !value
}

impl LocationRecord {
    /// The label of its URLs.
    pub fn primary(&self) -> &str {
        self.labels.first().map_or("", String::as_str)
    }

    /// The path of what its URL opens, and its content type.
    pub fn target_path(&self) -> (String, ContentType) {
        match &self.target {
            LocationTarget::File(name) => (file_path(self.primary(), name), ContentType::Data),
            LocationTarget::Url => (folder_path(self.primary()), ContentType::Data),
            LocationTarget::Metadata => (self.metadata_path(&TargetPart::Item), ContentType::Metadata),
        }
    }

    fn metadata_path(&self, what: &TargetPart) -> String {
        metadata_path(self.metadata.first().map_or("", String::as_str), what)
    }

    fn metadata_time(&self) -> &str {
        self.metadata_time.as_deref().unwrap_or(&self.data_time)
    }

    fn labels_of(&self, what: &TargetPart) -> &[String] {
        match what {
            TargetPart::Item => &self.labels,
            TargetPart::Metadata { .. } => &self.metadata,
        }
    }
}

/// The page of an item.
pub fn page_path(label: &str) -> String {
    format!("/col/{label}/")
}

/// The folder of an item's files.
pub fn folder_path(label: &str) -> String {
    format!("/col/{label}/doc/")
}

/// A file of an item, by its percent-encoded name.
pub fn file_path(label: &str, name: &str) -> String {
    format!("/col/{label}/doc/{name}")
}

/// A path below the target URL of an item.
pub fn below_target_path(label: &str, path: &FilePath) -> String {
    format!("/col/{label}/doc{}", encode_path_bytes(path.as_bytes()))
}

/// The page that lists the files of an item.
pub fn file_list_path(label: &str) -> String {
    format!("/col/{label}/files")
}

/// The metadata with this label, in a format or as a page in a language.
pub fn metadata_path(label: &str, what: &TargetPart) -> String {
    let page = page_path(label);
    match what {
        TargetPart::Metadata { format: Some(format), .. } => format!("{page}{format}"),
        TargetPart::Metadata { language: Some(language), .. } => format!("{page}?lang={language}"),
        TargetPart::Metadata { .. } | TargetPart::Item => page,
    }
}

/// The records of one Archive, by label.
pub trait LocationLookup {
    /// Why records cannot be read.
    type Error;

    /// The item with a label, whatever its spelling.
    fn by_label(&self, label: &str) -> Result<Option<Arc<LocationRecord>>, Self::Error>;
}

struct LocationGraph<'a, L>(&'a L);

impl<L: LocationLookup> LocationGraph<'_, L> {
    fn linked(
        &self,
        of: &Arc<LocationRecord>,
        labels: &[String],
    ) -> Result<LinkedItem<Arc<LocationRecord>, Vec<String>>, L::Error> {
        if labels.first() == of.labels.first() {
            return Ok(LinkedItem::Held(Arc::clone(of)));
        }
        for label in labels {
            if let Some(record) = self.0.by_label(label)? {
                return Ok(LinkedItem::Held(record));
            }
        }
        Ok(LinkedItem::Elsewhere(labels.to_vec()))
    }
}

impl<L: LocationLookup> RelationGraph for LocationGraph<'_, L> {
    type Item = Arc<LocationRecord>;
    type Labels = Vec<String>;
    type Error = L::Error;

    fn identity<'a>(&self, item: &'a Arc<LocationRecord>) -> &'a str {
        &item.path
    }

    fn next_edition(&self, of: &Arc<LocationRecord>) -> Result<Option<LinkOf<Self>>, L::Error> {
        (!of.next_edition.is_empty()).then(|| self.linked(of, &of.next_edition)).transpose()
    }

    fn translations(&self, of: &Arc<LocationRecord>) -> Result<Vec<TranslationOf<Self>>, L::Error> {
        let own = Ok((of.language, LinkedItem::Held(Arc::clone(of))));
        let others =
            of.translations.iter().map(|other| Ok((other.language, self.linked(of, &other.labels)?)));
        [own].into_iter().chain(others).collect()
    }

    fn metadata_languages(&self, of: &Arc<LocationRecord>) -> Result<Vec<Language>, L::Error> {
        Ok(of.metadata_languages.clone())
    }
}

/// A question about an item of one Archive.
#[derive(Debug, Clone, Copy)]
pub struct LocationQuery<'a> {
    /// The requested label, in the spelling of the Archive.
    pub label: &'a str,
    /// Whether the label is that of the item's metadata.
    pub is_metadata: bool,
    /// The requested verbs.
    pub verbs: &'a Verbs,
    /// The requested file.
    pub file: Option<&'a FilePath>,
}

/// The Archive that is answered for.
#[derive(Debug, Clone, Copy)]
pub struct LocationArchive<'a> {
    /// The labels of its service.
    pub service: &'a [String],
    /// Scheme and address: `http://archive.example.org`.
    pub base: &'a str,
}

/// The answer that the Archive would give (3.4), without a `urlkey`; `None` if it has to be asked.
pub fn answer<L: LocationLookup>(
    records: &L,
    record: &Arc<LocationRecord>,
    query: &LocationQuery<'_>,
    archive: &LocationArchive<'_>,
) -> Result<Option<Pairs>, L::Error> {
    let graph = LocationGraph(records);
    let what = if query.is_metadata { TargetPart::METADATA_PAGE } else { TargetPart::Item };
    let from = RelationTarget { holding: Arc::clone(record), what };
    let wanted = &query.verbs.relation;
    let mut pairs = Pairs::new();
    push_labels(&mut pairs, "ibi.archiveservice", archive.service);
    push_labels(&mut pairs, "ibi", record.labels_of(&from.what));
    if wanted.parts().contains(&RelationPart::LastEdition) && from.what == TargetPart::Item {
        let elsewhere = last_edition(&graph, record)?.err();
        match elsewhere.as_deref().unwrap_or(&record.next_edition) {
            [] => {}
            labels => push_labels(&mut pairs, "ibi.nextedition", labels),
        }
    }
    if record.state == State::Deleted {
        pairs.push("state", State::Deleted.as_str());
        pairs.push("timestamp", &record.data_time);
        let asked = wanted.parts().iter().find(|part| matches!(part, RelationPart::Translation(_)));
        if let Some(asked) = asked.filter(|_| from.what == TargetPart::Item) {
            for member in record.translations.iter().filter(|member| !member.removed) {
                let part = RelationPart::Translation(member.language);
                if asked.accepts_part(&part)
                    && let Ok(relation) = Relation::new(vec![part])
                {
                    push_labels(&mut pairs, &format!("ibi{relation}"), &member.labels);
                }
            }
        }
        return Ok(Some(pairs));
    }
    if record.aliases.iter().any(|alias| alias == query.label) {
        pairs.push("ibi.alias", query.label);
    }
    let offers = relation_offers(&graph, &from, wanted)?;
    for (relation, labels) in &offers.elsewhere {
        push_labels(&mut pairs, &format!("ibi{relation}"), labels);
    }
    for (relation, labels) in offers.next_editions.iter().filter(|(relation, _)| !relation.is_empty()) {
        push_labels(&mut pairs, &format!("ibi{relation}.nextedition"), labels);
    }
    for (relation, led) in &offers.leading {
        push_labels(&mut pairs, &format!("ibi{relation}"), led.holding.labels_of(&led.what));
    }
    for (relation, led) in &offers.whole {
        if !relation.is_empty() {
            push_labels(&mut pairs, &format!("ibi{relation}"), led.holding.labels_of(&led.what));
        }
        if led.holding.state == State::Deleted {
            continue;
        }
        let place = match place(led, query) {
            LocationPlace::Path(path, kind) => (path, kind),
            LocationPlace::Nowhere => continue,
            LocationPlace::Ask => return Ok(None),
        };
        pairs.push(format!("url{relation}"), &format!("{}{}", archive.base, place.0));
        pairs.push(format!("contenttype{relation}"), place.1.as_str());
        pairs.push(format!("state{relation}"), led.holding.state.as_str());
        let time = match place.1 {
            ContentType::Data => &led.holding.data_time,
            ContentType::Metadata => led.holding.metadata_time(),
        };
        pairs.push(format!("timestamp{relation}"), time);
    }
    Ok(Some(pairs))
}

/// Where a client is sent.
enum LocationPlace {
    Path(String, ContentType),
    /// Metadata have no files.
    Nowhere,
    /// Only the Archive knows.
    Ask,
}

fn place(led: &RelationTarget<Arc<LocationRecord>>, query: &LocationQuery<'_>) -> LocationPlace {
    let record = &led.holding;
    if led.what != TargetPart::Item {
        return match query.file.is_none() || query.verbs.file_list {
            true => LocationPlace::Path(record.metadata_path(&led.what), ContentType::Metadata),
            false => LocationPlace::Nowhere,
        };
    }
    if query.verbs.file_list {
        return LocationPlace::Path(file_list_path(record.primary()), ContentType::Data);
    }
    if record.ask {
        return LocationPlace::Ask;
    }
    let Some(file) = query.file else {
        let (path, kind) = record.target_path();
        return LocationPlace::Path(path, kind);
    };
    if record.target == LocationTarget::Url {
        return LocationPlace::Path(below_target_path(record.primary(), file), ContentType::Data);
    }
    let name = encode_path_bytes(file.as_bytes().strip_prefix(b"/").unwrap_or_default()).to_string();
    match &record.files {
        Some(files) if files.contains(&name) => {
            LocationPlace::Path(file_path(record.primary(), &name), ContentType::Data)
        }
        // The Archive also finds files by the names in its inventories.
        _ => LocationPlace::Ask,
    }
}

fn push_labels(pairs: &mut Pairs, name: &str, labels: &[String]) {
    let forms = labels.iter().filter_map(|label| {
        let form = ibi_id::Label::parse(label).ok()?.form().name();
        Some([form, label.as_str()])
    });
    pairs.push_words(name, &forms.flatten().collect::<Vec<_>>());
}
