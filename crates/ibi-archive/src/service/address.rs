//! Web addresses of items and files: `/col/<label>/…` (clause 2.3).

use ibi_id::{Form, Label};
use ibi_protocol::{FilePath, location};

use crate::archive::HeldItem;
use crate::item::ItemLabels;
use crate::relations::TargetPart;

/// The address of an Archive, as used in links.
#[derive(Debug, Clone)]
pub struct ServiceAddress {
    /// Host and port: `archiveaddress`.
    pub archive: String,
    /// Whether it uses TLS.
    pub secure: bool,
}

impl ServiceAddress {
    /// An absolute URL on this Archive.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.archive)
    }
}

/// The page of an item.
pub fn item_page_path(labels: &ItemLabels) -> String {
    location::page_path(labels.primary())
}

/// The folder of an item's files; without a file name, it opens the item's target.
pub fn item_folder_path(labels: &ItemLabels) -> String {
    location::folder_path(labels.primary())
}

/// A file of an item, by its name in the inventory.
pub fn item_file_path(labels: &ItemLabels, name: &str) -> String {
    location::file_path(labels.primary(), &encoded_file_name(name))
}

/// A file's name in the inventory, percent-encoded for a URL.
pub(crate) fn encoded_file_name(name: &str) -> String {
    location::encode_path_bytes(&crate::store::decode_logical_path(name)).to_string()
}

/// A path below the target URL of an item: this Archive redirects from there.
pub fn below_target_path(labels: &ItemLabels, path: &FilePath) -> String {
    location::below_target_path(labels.primary(), path)
}

/// The page that lists the files of an item.
pub fn file_list_path(labels: &ItemLabels) -> String {
    location::file_list_path(labels.primary())
}

/// The metadata of an item, in a format or as a page in a language.
pub fn metadata_path(item: &HeldItem, what: &TargetPart) -> String {
    location::metadata_path(item.item.metadata.primary(), what)
}

/// Splits the path after `/col/` into a label and the rest. Forms are tried in the order of clause
/// 4.1.
pub fn split_label(path: &str) -> Option<(&str, &str)> {
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
        assert_eq!(split_label(&format!("{rep}/doc/a/b")), Some((rep, "/doc/a/b")));
        assert_eq!(split_label(rep), Some((rep, "")));
        assert_eq!(split_label("8JMKD3MGP8W/34PGRBS/doc/x"), Some(("8JMKD3MGP8W/34PGRBS", "/doc/x")));
        for none in ["", "/", "a", "a/b", "a/b/c/d", "//doc", "../../etc/passwd"] {
            assert_eq!(split_label(none), None, "{none}");
        }
    }
}
