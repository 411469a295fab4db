//! The path of a persistent URL: a label, modifiers, a file (4.1).

use ibi_id::{Ibip, Label, Legacy, Repository, Rule};

use super::{PersistentUrlError, UrlPart};
use crate::file_path::FilePath;
use crate::relation::Relation;
use crate::untrusted_text::quote_untrusted;

/// Characters that end a label.
const MODIFIER_SIGNS: [char; 5] = ['!', '+', ':', '(', ')'];
/// Link prefixes in common use; `upn:<word>:` is another.
const LINK_PREFIXES: [&str; 7] = ["rep/", "rep-/", "ibi/", "ibi-/", "goto/", "goto-/", "ibi:"];
/// Limit on modifiers; the longest valid ones have four signs, two languages and one format.
const MAX_MODIFIERS_BYTES: usize = 128;

pub(super) struct PersistentPath {
    pub(super) label: Label,
    pub(super) modifiers: Relation,
    pub(super) file: Option<FilePath>,
}

pub(super) fn read(path: &str) -> Result<PersistentPath, PersistentUrlError> {
    let slash = usize::from(path.starts_with('/'));
    let raw = &path[slash..];
    let text: String = decoded(raw).map(|(c, _)| c).collect();
    let to_raw = |position| slash + raw_position(raw, position);
    // A label is tried before a link prefix, so that a label whose host begins with `rep` is read
    // as such and written text can be read back.
    let prefix_length = link_prefix_length(&text);
    let found = label(&text, 0).or_else(|| label(&text, prefix_length?));
    let (label, end) = found.ok_or_else(|| label_error(&text, prefix_length.unwrap_or(0), to_raw))?;
    let rest = &text[end..];
    let signs = &rest[..rest.find('/').unwrap_or(rest.len())];
    let modifiers = modifiers(signs, |position| to_raw(end + position))?;
    let start = to_raw(end + signs.len());
    let file =
        FilePath::from_url(&path[start..]).map_err(|why| PersistentUrlError::File { why, at: start })?;
    Ok(PersistentPath { label: label.into_owned(), modifiers, file })
}

/// Decodes `! + : ( )` in the path, and, because clients may encode them, `@` and the characters
/// that RFC 3986 (2.3) treats as equal to their escapes. Yields each character with its raw
/// position.
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

/// The character escaped at `at`, if [`decoded`] handles it.
fn code(raw: &[u8], at: usize) -> Option<char> {
    let digit = |at: usize| char::from(*raw.get(at)?).to_digit(16);
    let c = char::from_u32(digit(at + 1)? * 16 + digit(at + 2)?)?;
    (MODIFIER_SIGNS.contains(&c) || matches!(c, '@' | '-' | '.' | '_' | '~') || c.is_ascii_alphanumeric())
        .then_some(c)
}

/// Maps a position in the decoded text to the raw text.
fn raw_position(raw: &str, position: usize) -> usize {
    let mut length = 0;
    let found = decoded(raw).find(|(c, _)| {
        let is_reached = length >= position;
        length += c.len_utf8();
        is_reached
    });
    found.map_or(raw.len(), |(_, at)| at)
}

/// The label at `start`, and its end: `ibip`, else `rep`, else `legacy` (D17).
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
    Some(start + rest.find(|c| c == '/' || MODIFIER_SIGNS.contains(&c)).unwrap_or(rest.len()))
}

/// The length of the link prefix before a label.
pub(super) fn link_prefix_length(text: &str) -> Option<usize> {
    let upn = || {
        let rest = text.strip_prefix("upn:")?;
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-');
        let length = text.len() - rest.len();
        let rest = rest.strip_prefix(':').filter(|_| length > "upn:".len())?;
        Some(length + 1 + usize::from(rest.starts_with('/')))
    };
    LINK_PREFIXES.into_iter().find(|prefix| text.starts_with(prefix)).map(str::len).or_else(upn)
}

/// The error for a text that should begin with a label.
fn label_error(text: &str, start: usize, to_raw: impl Fn(usize) -> usize) -> PersistentUrlError {
    let text = &text[start..];
    let head = text.split('/').next().unwrap_or_default();
    // As many segments as a label of this shape has; everything, if a scheme is the problem.
    let segments = if head.contains(['.', '@', '-']) { 4 } else { 2 };
    let end = match end_of_segment(text, segments) {
        _ if head.contains(':') => text.len(),
        Some(end) => end,
        None => text.find(MODIFIER_SIGNS).unwrap_or(text.len()),
    };
    match Label::parse(&text[..end]) {
        Err(error) => PersistentUrlError::Label { rule: error.rule(), at: to_raw(start + error.position()) },
        // Unreachable: a valid label would have been found.
        Ok(_) => PersistentUrlError::Label { rule: Rule::Form, at: to_raw(start) },
    }
}

/// Parses modifiers, in normal spelling only: `+(pt-br)` is rejected.
fn modifiers(text: &str, to_raw: impl Fn(usize) -> usize) -> Result<Relation, PersistentUrlError> {
    let is_valid = |text: &str| Relation::from_modifiers(text).is_ok_and(|read| read.modifiers() == text);
    // The error begins where the longest valid prefix ends.
    let position = || {
        let ends = (0..=text.len().min(MAX_MODIFIERS_BYTES)).rev();
        to_raw(ends.filter_map(|end| text.get(..end)).find(|text| is_valid(text)).map_or(0, str::len))
    };
    match Relation::from_modifiers(text) {
        Err(why) => Err(PersistentUrlError::Modifiers { why, at: position() }),
        Ok(read) if read.modifiers() == text => Ok(read),
        Ok(read) => Err(PersistentUrlError::Spelling {
            given: quote_untrusted(text),
            right: read.modifiers(),
            part: UrlPart::Path,
            at: position(),
        }),
    }
}
