//! Chooses the most helpful error for a text that is no label of any form.

use super::Label;
use crate::{Ibip, MAX_LABEL_BYTES, ParseError, Rule};

/// Chooses the error that fits the shape of a text, given its errors as a repository name and as a
/// legacy label.
#[cold]
pub(super) fn diagnose(text: &str, as_repository: ParseError, as_legacy: ParseError) -> ParseError {
    let error = by_shape(text, as_repository, as_legacy);
    match text.get(error.position()..).and_then(|rest| rest.chars().next()) {
        // An error position under white space would not help.
        Some(c) if is_invisible(c) => ParseError::new(Rule::Invisible, error.position()),
        _ => error,
    }
}

fn by_shape(text: &str, as_repository: ParseError, as_legacy: ParseError) -> ParseError {
    if text.is_empty() {
        return ParseError::new(Rule::Empty, 0);
    }
    if text.len() > MAX_LABEL_BYTES {
        return ParseError::new(Rule::LabelLength, MAX_LABEL_BYTES);
    }
    let slashes: Vec<usize> = text.match_indices('/').map(|(at, _)| at).collect();
    let head = &text[..slashes.first().copied().unwrap_or(text.len())];
    if head.contains(':') {
        return ParseError::new(Rule::Scheme, 0);
    }
    if let Some(&end) = slashes.get(1)
        && Label::parse(&text[..end]).is_ok()
    {
        return ParseError::new(Rule::Extra, end);
    }
    match slashes.len() {
        // A host name without the rest, or not an IBI at all.
        0 if head.contains(['.', '@']) => ParseError::new(Rule::RepositoryParts, text.len()),
        0 => ParseError::new(Rule::Form, text.len()),
        1 if head.is_empty() => ParseError::new(Rule::Form, 0),
        1 if head.contains(['.', '-', '@']) => as_repository,
        1 if head.contains('Z') => as_legacy,
        1 => Ibip::parse(text).err().unwrap_or(as_legacy),
        // A host name in DNS order, or a missing part: the words themselves are valid.
        2 if !matches!(as_repository.rule(), Rule::HostWord | Rule::HostLastWord) => {
            ParseError::new(Rule::RepositoryParts, text.len())
        }
        _ => as_repository,
    }
}

/// White space, control characters, byte-order and direction marks, and zero-width characters.
fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
}
