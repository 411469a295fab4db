//! Where things are on the Web: `/col/<label>/…` (clause 2.3).

use ibi_id::{Form, Label};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use crate::archive::Holding;
use crate::item::Labels;
use crate::relations::What;

/// What stands in the path of a URL as it is (RFC 3986), without what the list of pairs keeps for itself.
const PATH: &AsciiSet = &CONTROLS
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

/// The address of an Archive, as links have it.
#[derive(Debug, Clone)]
pub struct Address {
    /// Host and port: `archiveaddress`.
    pub archive: String,
    /// Whether over TLS.
    pub secure: bool,
}

impl Address {
    /// A URL of ours.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.archive)
    }
}

/// The page of an item.
pub fn item(labels: &Labels) -> String {
    format!("/col/{}/", labels.primary())
}

/// The files of an item, and what opens there if none is named.
pub fn folder(labels: &Labels) -> String {
    format!("/col/{}/doc/", labels.primary())
}

/// A file of an item, by its name in the inventory.
pub fn file(labels: &Labels, name: &str) -> String {
    format!("/col/{}/doc/{}", labels.primary(), percent_encode(&crate::keep::raw(name), PATH))
}

/// The list of files of an item.
pub fn file_list(labels: &Labels) -> String {
    format!("/col/{}/files", labels.primary())
}

/// The metadata of an item, in a format, or as a page in a language.
pub fn metadata(item: &Holding, what: &What) -> String {
    let page = self::item(&item.item.metadata);
    match what {
        What::Metadata { format: Some(format), .. } => format!("{page}{format}"),
        What::Metadata { language: Some(language), .. } => format!("{page}?lang={language}"),
        What::Metadata { .. } | What::Item => page,
    }
}

/// Reads the path after `/col/`: a label, and what follows it. The order of reading is that of clause 4.1.
pub fn split(path: &str) -> Option<(&str, &str)> {
    let mut ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    let second = ends.nth(1);
    let fourth = ends.nth(1);
    let candidates = [(second, Form::Ibip), (fourth, Form::Repository), (second, Form::Legacy)];
    candidates.into_iter().find_map(|(end, form)| {
        let (label, rest) = path.split_at(end?);
        let is = Label::parse(label).is_ok_and(|label| label.form() == form);
        is.then_some((label, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_found_in_a_path() {
        let rep = "sid.inpe.br/mtc-m18/2009/02.16.17.46";
        assert_eq!(split(&format!("{rep}/doc/a/b")), Some((rep, "/doc/a/b")));
        assert_eq!(split(rep), Some((rep, "")));
        assert_eq!(split("8JMKD3MGP8W/34PGRBS/doc/x"), Some(("8JMKD3MGP8W/34PGRBS", "/doc/x")));
        for none in ["", "/", "a", "a/b", "a/b/c/d", "//doc", "../../etc/passwd"] {
            assert_eq!(split(none), None, "{none}");
        }
    }
}
