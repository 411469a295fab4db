//! Persistent URLs: what a client asks a resolver for (4.1).
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
//! # Ok::<(), ibi_protocol::PersistentError>(())
//! ```

mod error;
mod path;
mod query;

use std::fmt;

use ibi_id::Label;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

pub use error::{PersistentError, Place};

use crate::file_path::FilePath;
use crate::verb::Verbs;

/// What a path is written without: what would end it, what no URL has, and `%`, for a path is held decoded.
const IN_PATHS: &AsciiSet = &CONTROLS
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

/// Whether a text begins with what links in the field put before a label: `rep/`, `ibi:`, `upn:word:` …
pub(crate) fn begins_as_link(text: &str) -> bool {
    path::before(text).is_some()
}

/// What a persistent URL asks for.
///
/// Of what [`PersistentUrl::parse`] gives, `Display` writes the one plain form, from the path's `/` on: the label as it
/// was found and without what links in the field put before it, verbs as modifiers. Read again, it is the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PersistentUrl {
    /// The item, in the spelling that was found.
    pub label: Label,
    /// What is wanted of it, by modifiers and by `ibiurl.verblist`.
    pub verbs: Verbs,
    /// A file in it.
    pub file: Option<FilePath>,
    /// Whether it has to be the original: `ibiurl.requireditemstatus=Original`.
    pub original: bool,
    /// The pairs of the query that belong to the item, undecoded and in order, without `?`. What no URL can have
    /// (white space, `#`, what is not ASCII) is encoded.
    pub passed_on: String,
}

impl PersistentUrl {
    /// Reads a path, from the `/` after the host on, and a query, without its `?`: both undecoded.
    pub fn parse(path: &str, query: Option<&str>) -> Result<Self, PersistentError> {
        let head = path::read(path)?;
        let query::Asked { list, original, passed_on } = query::read(query.unwrap_or_default())?;
        Ok(Self {
            verbs: list.join(&head.modifiers)?,
            label: head.label,
            file: head.file,
            original,
            passed_on,
        })
    }

    /// An item's URL with the pairs that belong to the item: after `?`, or after `&` if it has a query already.
    pub fn append(&self, url: &str) -> String {
        append_query(url, &self.passed_on)
    }
}

/// A URL with more pairs in its query, as they are: before its fragment.
pub fn append_query(url: &str, pairs: &str) -> String {
    if pairs.is_empty() {
        return url.to_owned();
    }
    let (before, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let sign = match before.find('?') {
        None => "?",
        Some(_) if before.ends_with(['?', '&']) => "",
        Some(_) => "&",
    };
    [before, sign, pairs, fragment].concat()
}

impl fmt::Display for PersistentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}{}", self.label.spelling(), self.verbs.relation.modifiers())?;
        if let Some(file) = &self.file {
            write!(f, "{}", percent_encode(file.as_bytes(), IN_PATHS))?;
        }
        let mut pairs = Vec::new();
        if self.original {
            pairs.push("ibiurl.requireditemstatus=Original");
        }
        match self.verbs.file_list {
            true => pairs.push("ibiurl.verblist=GetFileList"),
            // Alone it would mean `:`.
            false if self.passed_on == "?" && !self.original => pairs.push("ibiurl.verblist="),
            false => {}
        }
        if !self.passed_on.is_empty() {
            pairs.push(&self.passed_on);
        }
        if pairs.is_empty() { Ok(()) } else { write!(f, "?{}", pairs.join("&")) }
    }
}
