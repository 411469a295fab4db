//! Persistent URLs, which clients send to a resolver (4.1).
//!
//! ```text
//! URL = "http://" resolver "/" IBI [mdf] [path-absolute] ["?" query]
//! ```
//!
//! ```
//! use ibi_protocol::PersistentUrl;
//! let url = PersistentUrl::parse("/rep/8JMKD3MGP8W/35MMLL8!/a.pdf", Some("ibiurl.verblist=GetMetadata&page=2"))?;
//! assert_eq!(url.to_string(), "/8JMKD3MGP8W/35MMLL8!:/a.pdf?page=2");
//! assert_eq!(url.append("http://a.br/x?y"), "http://a.br/x?y&page=2");
//! # Ok::<(), ibi_protocol::PersistentUrlError>(())
//! ```

mod error;
mod path;
mod portuguese;
mod query;

use std::fmt;

use ibi_id::Label;

pub use error::{PersistentUrlError, UrlPart};

use crate::file_path::FilePath;
use crate::location::encode_path_bytes;
use crate::verb::Verbs;

/// Whether a text begins with a link prefix in common use: `rep/`, `ibi:`, `upn:word:` …
pub(crate) fn begins_as_link(text: &str) -> bool {
    path::link_prefix_length(text).is_some()
}

/// A parsed persistent URL.
///
/// `Display` writes the normal form of what [`PersistentUrl::parse`] accepts, from the path's `/`
/// on: the label as spelled, without link prefixes, verbs as modifiers. Parsing it gives the same
/// value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PersistentUrl {
    /// The item, as spelled in the URL.
    pub label: Label,
    /// What is requested of the item, by modifiers and `ibiurl.verblist`.
    pub verbs: Verbs,
    /// The requested file within the item.
    pub file: Option<FilePath>,
    /// Whether the Original is required: `ibiurl.requireditemstatus=Original`.
    pub original: bool,
    /// The query pairs that are passed on to the item, undecoded and in order, without `?`.
    /// Characters that a URL cannot contain (white space, `#`, non-ASCII) are encoded.
    pub passed_on: String,
}

impl PersistentUrl {
    /// Parses a path (from the `/` after the host) and a query (without `?`), both undecoded.
    pub fn parse(path: &str, query: Option<&str>) -> Result<Self, PersistentUrlError> {
        let head = path::read(path)?;
        let query::PersistentQuery { list, original, passed_on } = query::read(query.unwrap_or_default())?;
        Ok(Self {
            verbs: list.join(&head.modifiers)?,
            label: head.label,
            file: head.file,
            original,
            passed_on,
        })
    }

    /// Appends the passed-on pairs to an item's URL: after `?`, or after `&` if it has a query
    /// already.
    pub fn append(&self, url: &str) -> String {
        append_query(url, &self.passed_on)
    }
}

/// Appends pairs verbatim to a URL's query, before its fragment.
pub fn append_query(url: &str, pairs: &str) -> String {
    if pairs.is_empty() {
        return url.to_owned();
    }
    let (before, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let separator = match before.find('?') {
        None => "?",
        Some(_) if before.ends_with(['?', '&']) => "",
        Some(_) => "&",
    };
    [before, separator, pairs, fragment].concat()
}

impl fmt::Display for PersistentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}{}", self.label.spelling(), self.verbs.relation.modifiers())?;
        if let Some(file) = &self.file {
            write!(f, "{}", encode_path_bytes(file.as_bytes()))?;
        }
        let mut pairs = Vec::new();
        if self.original {
            pairs.push("ibiurl.requireditemstatus=Original");
        }
        match self.verbs.file_list {
            true => pairs.push("ibiurl.verblist=GetFileList"),
            // A query of only `?` would mean `:`.
            false if self.passed_on == "?" && !self.original => pairs.push("ibiurl.verblist="),
            false => {}
        }
        if !self.passed_on.is_empty() {
            pairs.push(&self.passed_on);
        }
        if pairs.is_empty() { Ok(()) } else { write!(f, "?{}", pairs.join("&")) }
    }
}
