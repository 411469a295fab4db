//! The path of a persistent URL: a label, modifiers, a file (4.1).

use ibi_id::{Ibip, Label, Legacy, Repository, Rule};

use super::{PersistentError, Place};
use crate::file_path::FilePath;
use crate::relation::Relation;
use crate::shown::shown;

/// With these a label ends.
const SIGNS: [char; 5] = ['!', '+', ':', '(', ')'];
/// What links in the field have before a label; and `upn:<word>:`.
const BEFORE: [&str; 7] = ["rep/", "rep-/", "ibi/", "ibi-/", "goto/", "goto-/", "ibi:"];
/// No modifiers that mean something are longer: four signs, two languages, one format.
const LONGEST_MODIFIERS: usize = 128;

pub(super) struct Head {
    pub(super) label: Label,
    pub(super) modifiers: Relation,
    pub(super) file: Option<FilePath>,
}

pub(super) fn read(path: &str) -> Result<Head, PersistentError> {
    let slash = usize::from(path.starts_with('/'));
    let raw = &path[slash..];
    let text: String = decoded(raw).map(|(c, _)| c).collect();
    let at = |position| slash + raw_position(raw, position);
    // A label comes first: one whose host begins with `rep` is what it is, and what is written is read again.
    let before = before(&text);
    let found = label(&text, 0).or_else(|| label(&text, before?));
    let (label, end) = found.ok_or_else(|| no_label(&text, before.unwrap_or(0), at))?;
    let rest = &text[end..];
    let signs = &rest[..rest.find('/').unwrap_or(rest.len())];
    let modifiers = modifiers(signs, |position| at(end + position))?;
    let start = at(end + signs.len());
    let file = FilePath::from_url(&path[start..]).map_err(|why| PersistentError::File { why, at: start })?;
    Ok(Head { label: label.into_owned(), modifiers, file })
}

/// The path with `! + : ( )` decoded; and, since no client can be told to leave them alone, `@` and the characters
/// that RFC 3986 (2.3) has equal to their codes. Each with where it stands.
fn decoded(raw: &str) -> impl Iterator<Item = (char, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let c = raw.get(at..)?.chars().next()?;
        match code(raw.as_bytes(), at).filter(|_| c == '%') {
            Some(code) => {
                at += 3;
                Some((code, start))
            }
            None => {
                at += c.len_utf8();
                Some((c, start))
            }
        }
    })
}

/// The character whose code stands there, if it may be in a code.
fn code(raw: &[u8], at: usize) -> Option<char> {
    let digit = |at: usize| char::from(*raw.get(at)?).to_digit(16);
    let c = char::from_u32(digit(at + 1)? * 16 + digit(at + 2)?)?;
    (SIGNS.contains(&c) || matches!(c, '@' | '-' | '.' | '_' | '~') || c.is_ascii_alphanumeric()).then_some(c)
}

/// Where in the raw text a position of the decoded one is.
fn raw_position(raw: &str, position: usize) -> usize {
    let mut length = 0;
    let found = decoded(raw).find(|(c, _)| {
        let here = length >= position;
        length += c.len_utf8();
        here
    });
    found.map_or(raw.len(), |(_, at)| at)
}

/// The label that stands there, and where it ends: `ibip`, else `rep`, else `legacy` (D17).
fn label(text: &str, start: usize) -> Option<(Label<&str>, usize)> {
    let text = &text[start..];
    let two = end_of_segment(text, 2)?;
    let repository = || {
        let four = end_of_segment(text, 4)?;
        Some((Label::Repository(Repository::parse(&text[..four]).ok()?), four))
    };
    let found = match Ibip::parse(&text[..two]) {
        Ok(label) => Some((Label::Ibip(label), two)),
        Err(_) => repository().or_else(|| Some((Label::Legacy(Legacy::parse(&text[..two]).ok()?), two))),
    };
    found.map(|(label, length)| (label, start + length))
}

fn end_of_segment(text: &str, number: usize) -> Option<usize> {
    let start = text.match_indices('/').nth(number.checked_sub(2)?)?.0 + 1;
    let rest = &text[start..];
    Some(start + rest.find(|c| c == '/' || SIGNS.contains(&c)).unwrap_or(rest.len()))
}

/// How much of a text links in the field put before a label.
pub(super) fn before(text: &str) -> Option<usize> {
    let upn = || {
        let rest = text.strip_prefix("upn:")?;
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-');
        let length = text.len() - rest.len();
        let rest = rest.strip_prefix(':').filter(|_| length > "upn:".len())?;
        Some(length + 1 + usize::from(rest.starts_with('/')))
    };
    BEFORE.into_iter().find(|before| text.starts_with(before)).map(str::len).or_else(upn)
}

/// Says what is wrong with what should be a label.
fn no_label(text: &str, start: usize, at: impl Fn(usize) -> usize) -> PersistentError {
    let text = &text[start..];
    let head = text.split('/').next().unwrap_or_default();
    // As much as a label of its shape would have; all, if a scheme is what is wrong.
    let segments = if head.contains(['.', '@', '-']) { 4 } else { 2 };
    let end = match end_of_segment(text, segments) {
        _ if head.contains(':') => text.len(),
        Some(end) => end,
        None => text.find(SIGNS).unwrap_or(text.len()),
    };
    match Label::parse(&text[..end]) {
        Err(error) => PersistentError::Label { rule: error.rule(), at: at(start + error.position()) },
        // Not so: it would have been found.
        Ok(_) => PersistentError::Label { rule: Rule::Form, at: at(start) },
    }
}

/// Reads modifiers in the one spelling that they have: `+(pt-br)` is none.
fn modifiers(text: &str, at: impl Fn(usize) -> usize) -> Result<Relation, PersistentError> {
    let right = |text: &str| Relation::from_modifiers(text).is_ok_and(|read| read.modifiers() == text);
    // What is wrong begins where the longest beginning ends that is right.
    let position = || {
        let ends = (0..=text.len().min(LONGEST_MODIFIERS)).rev();
        at(ends.filter_map(|end| text.get(..end)).find(|text| right(text)).map_or(0, str::len))
    };
    match Relation::from_modifiers(text) {
        Err(why) => Err(PersistentError::Modifiers { why, at: position() }),
        Ok(read) if read.modifiers() == text => Ok(read),
        Ok(read) => Err(PersistentError::Spelling {
            given: shown(text),
            right: read.modifiers(),
            place: Place::Path,
            at: position(),
        }),
    }
}
