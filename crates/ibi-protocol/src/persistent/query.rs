//! The query of a persistent URL: what is ours, and what belongs to the item (4.1).

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::{PersistentError, Place};
use crate::relation::Relation;
use crate::shown::shown;
use crate::verb::Verbs;

/// What no URL has in its query: encoded, so that what is passed on breaks no header and no URL.
const IN_QUERIES: &AsciiSet = &CONTROLS.add(b' ').add(b'#');

const VERBS: &str = "ibiurl.verblist";
const STATUS: &str = "ibiurl.requireditemstatus";

pub(super) struct Asked {
    pub(super) list: List,
    pub(super) original: bool,
    pub(super) passed_on: String,
}

/// A list of verbs, decoded, and where it stood.
#[derive(Default)]
pub(super) struct List {
    text: String,
    at: usize,
}

pub(super) fn read(query: &str) -> Result<Asked, PersistentError> {
    if query == "?" {
        let list = List { text: "GetMetadata".to_owned(), at: 0 };
        return Ok(Asked { list, original: false, passed_on: String::new() });
    }
    let (mut list, mut status) = (None, None);
    let mut passed_on = Vec::new();
    let mut at = 0;
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value_at = (at + name.len() + 1).min(query.len());
        let decoded: Vec<u8> = percent_decode_str(name).collect();
        let (kept, name) = match decoded.as_slice() {
            b"ibiurl.verblist" => (&mut list, VERBS),
            b"ibiurl.requireditemstatus" => (&mut status, STATUS),
            other => {
                if !other.starts_with(b"ibiurl.") {
                    passed_on.push(utf8_percent_encode(pair, IN_QUERIES).to_string());
                }
                at += pair.len() + 1;
                continue;
            }
        };
        let text = percent_decode_str(value).decode_utf8_lossy().into_owned();
        if kept.replace(List { text, at: value_at }).is_some() {
            return Err(PersistentError::Twice { name, at });
        }
        at += pair.len() + 1;
    }
    let original = match status {
        None => false,
        Some(List { text, .. }) if text == "Original" => true,
        Some(List { text, at }) => return Err(PersistentError::Status { given: shown(&text), at }),
    };
    Ok(Asked { list: list.unwrap_or_default(), original, passed_on: passed_on.join("&") })
}

impl List {
    /// The verbs of modifiers and list; a verb has one spelling.
    pub(super) fn join(&self, modifiers: &Relation) -> Result<Verbs, PersistentError> {
        let Self { text, at } = self;
        let verbs = Verbs::joined(modifiers, text).map_err(|why| PersistentError::Verbs { why, at: *at })?;
        let written = verbs.to_string();
        let is_written = |verb: &&str| verb.is_empty() || written.split(' ').any(|right| right == *verb);
        match text.split([' ', '+']).find(|verb| !is_written(verb)) {
            None => Ok(verbs),
            Some(verb) => Err(PersistentError::Spelling {
                given: shown(verb),
                right: Verbs::parse(verb).map_or(written, |right| right.to_string()),
                place: Place::Query,
                at: *at,
            }),
        }
    }
}
