//! The query of a persistent URL: the resolver's own pairs, and those passed on to the item (4.1).

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::{PersistentUrlError, UrlPart};
use crate::relation::Relation;
use crate::untrusted_text::quote_untrusted;
use crate::verb::Verbs;

/// Characters escaped in passed-on pairs, so that they break no header and no URL.
const PASSED_QUERY_ESCAPES: &AsciiSet = &CONTROLS.add(b' ').add(b'#');

const VERB_LIST_PAIR: &str = "ibiurl.verblist";
const REQUIRED_STATUS_PAIR: &str = "ibiurl.requireditemstatus";

pub(super) struct PersistentQuery {
    pub(super) list: QueryVerbList,
    pub(super) original: bool,
    pub(super) passed_on: String,
}

/// A decoded list of verbs with its position.
#[derive(Default)]
pub(super) struct QueryVerbList {
    text: String,
    at: usize,
}

pub(super) fn read(query: &str) -> Result<PersistentQuery, PersistentUrlError> {
    if query == "?" {
        let list = QueryVerbList { text: "GetMetadata".to_owned(), at: 0 };
        return Ok(PersistentQuery { list, original: false, passed_on: String::new() });
    }
    let (mut list, mut status) = (None, None);
    let mut passed_on = Vec::new();
    let mut at = 0;
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value_at = (at + name.len() + 1).min(query.len());
        let decoded: Vec<u8> = percent_decode_str(name).collect();
        let (kept, name) = match decoded.as_slice() {
            b"ibiurl.verblist" => (&mut list, VERB_LIST_PAIR),
            b"ibiurl.requireditemstatus" => (&mut status, REQUIRED_STATUS_PAIR),
            other => {
                if !other.starts_with(b"ibiurl.") {
                    passed_on.push(utf8_percent_encode(pair, PASSED_QUERY_ESCAPES).to_string());
                }
                at += pair.len() + 1;
                continue;
            }
        };
        let text = percent_decode_str(value).decode_utf8_lossy().into_owned();
        if kept.replace(QueryVerbList { text, at: value_at }).is_some() {
            return Err(PersistentUrlError::Twice { name, at });
        }
        at += pair.len() + 1;
    }
    let original = match status {
        None => false,
        Some(QueryVerbList { text, .. }) if text == "Original" => true,
        Some(QueryVerbList { text, at }) => {
            return Err(PersistentUrlError::Status { given: quote_untrusted(&text), at });
        }
    };
    Ok(PersistentQuery { list: list.unwrap_or_default(), original, passed_on: passed_on.join("&") })
}

impl QueryVerbList {
    /// Combines modifiers and list; verbs must be in normal spelling.
    pub(super) fn join(&self, modifiers: &Relation) -> Result<Verbs, PersistentUrlError> {
        let Self { text, at } = self;
        let verbs = Verbs::with_modifiers(modifiers, text)
            .map_err(|why| PersistentUrlError::Verbs { why, at: *at })?;
        let written = verbs.to_string();
        let is_written = |verb: &&str| verb.is_empty() || written.split(' ').any(|right| right == *verb);
        match text.split([' ', '+']).find(|verb| !is_written(verb)) {
            None => Ok(verbs),
            Some(verb) => Err(PersistentUrlError::Spelling {
                given: quote_untrusted(verb),
                right: Verbs::parse(verb).map_or(written, |right| right.to_string()),
                part: UrlPart::Query,
                at: *at,
            }),
        }
    }
}
