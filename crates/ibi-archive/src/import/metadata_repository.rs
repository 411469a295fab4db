//! Metadata repositories of a plain tree. In the founding documents the metadata of an item are a
//! repository of their own (003 Example 7.8), shown by a program in its `doc`
//! (`metadata.cgi?choice=oai_dc`, Example 7.10). Programs are never run (D31); what can be read is
//! the `oai_dc` document that lies beside the program, or that a mirror saved under its address.

use ibi_id::Label;
use ibi_protocol::LabelLink;

use crate::dublin_core::{DublinCore, Element};
use crate::item::LabelKey;

/// The record of a metadata repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataRecord {
    /// What it says.
    pub record: DublinCore,
    /// The canonical spellings of the labels that its identifiers name, apart from the repository's
    /// own.
    pub names: Vec<String>,
}

/// Reads the record of a repository: an `oai_dc` document whose `dc:identifier` names another
/// label, by itself or in a link. Nothing if it is none: then the file is an item's own.
pub fn read_record(own: &str, text: &str) -> Option<MetadataRecord> {
    let record = DublinCore::from_xml(text).ok()?;
    let own = LabelKey::parse(own).ok().map(|own| own.canonical);
    let mut names: Vec<String> =
        record.of(Element::Identifier).filter_map(|statement| canonical_label(statement.value())).collect();
    names.retain(|name| own.as_ref() != Some(name));
    names.sort();
    names.dedup();
    (!names.is_empty()).then_some(MetadataRecord { record, names })
}

/// The label that an identifier tells.
fn canonical_label(value: &str) -> Option<String> {
    let value = value.trim();
    if let Ok(label) = Label::parse(value) {
        return Some(LabelKey::of(&label).canonical);
    }
    let link = LabelLink::parse(value).ok().filter(|_| LabelLink::is_link(value));
    link.map(|link| LabelKey::of(&link.url.label).canonical)
}

/// Whether a file of this name may hold the record.
pub(super) fn is_record_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".xml") || name == "metadata.cgi?choice=oai_dc"
}

/// The program of the founding documents that shows metadata: it says nothing that can be read.
pub(super) const METADATA_PROGRAM: &str = "metadata.cgi";

#[cfg(test)]
mod tests {
    use super::*;

    fn xml(inside: &str) -> String {
        format!(
            "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>T</dc:title>{inside}</oai_dc:dc>"
        )
    }

    #[test]
    fn a_record_names_the_item_that_it_is_of() {
        let own = "sid.inpe.br/mtc-m18@80/2009/07.21.13.23.47";
        let names = |inside: &str| read_record(own, &xml(inside)).map(|found| found.names);
        let item = Some(vec!["8jmkd3mgp8w/35mmll8".to_owned()]);
        assert_eq!(names("<dc:identifier>8JMKD3MGP8W/35MMLL8</dc:identifier>"), item);
        assert_eq!(names("<dc:identifier> http://urlib.net/rep/8JMKD3MGP8W/35MMLL8 </dc:identifier>"), item);
        let both = format!(
            "<dc:identifier>ibi:{own}</dc:identifier><dc:identifier>8jmkd3mgp8w/35mmll8</dc:identifier>"
        );
        assert_eq!(names(&both), item);
        assert_eq!(names(""), None);
        assert_eq!(names(&format!("<dc:identifier>{own}.00</dc:identifier>")), None, "itself");
        assert_eq!(names("<dc:identifier>ISBN 85-17-00001</dc:identifier>"), None);
        assert_eq!(
            names("<dc:relation>8JMKD3MGP8W/35MMLL8</dc:relation>"),
            None,
            "a relation is to something else"
        );
        assert_eq!(read_record(own, "8JMKD3MGP8W/35MMLL8"), None);
    }
}
