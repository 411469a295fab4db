//! Names of tokens and of the operator. People tell them apart by name, so no two may look alike.

use unicode_normalization::UnicodeNormalization as _;

/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// How item histories name whoever works on the data folder, unless the operator has another name.
const DEFAULT_OPERATOR_NAME: &str = "operator";

/// Characters allowed in a name besides letters, digits and single inner spaces.
const NAME_PUNCTUATION: [char; 4] = ['.', '_', '-', '@'];

/// Start of the East Asian scripts, none of whose letters looks like a Latin one. Latin letters may
/// be mixed with them.
const FIRST_EAST_ASIAN: char = '\u{2e80}';

/// Letters that look like others, each followed by its small Latin look-alike: first capitals whose
/// small letters look different, then small letters. What looks like i, l or 1 maps to l.
const LOOK_ALIKES: &str = "Ηh Νn Υy Ζz Μm \
    αa βb ϲc εe γy ηn ιl ϳj κk νv οo ρp τt υu χx ωw \
    аa вb сc ԁd еe ґr һh іl ӏl јj кk мm нh оo рp ԛq гr ѕs тt уy ԝw хx ьb \
    աw հh օo սu ոn ռn զq ցg յj ıl ſs ɑa ɡg ɩl 0o 1l il";

/// Why a name is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenNameError {
    /// Too long or too short.
    #[error("a name has 1 to {MAX_NAME_CHARS} characters")]
    Length,
    /// Invisible or confusable characters.
    #[error("use letters, digits, `.`, `_`, `-`, `@` and single spaces between them")]
    Signs,
    /// Not in normalised form.
    #[error("it is not in Unicode normal form NFKC")]
    NotNormal,
    /// Latin letters mixed with letters that look like them.
    #[error("Latin letters cannot be mixed with another alphabet")]
    MixedAlphabets,
    /// Reserved for the operator.
    #[error("it is the operator's name, or looks like it")]
    Operator,
}

/// Checks a name for a new token or the operator. Existing names are not checked.
pub(crate) fn check_token_name(name: &str) -> Result<(), TokenNameError> {
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
        return Err(TokenNameError::Length);
    }
    if !name.nfkc().eq(name.chars()) {
        return Err(TokenNameError::NotNormal);
    }
    let is_mark = |sign: char| unicode_normalization::char::is_combining_mark(sign);
    let is_known = |sign: char| {
        sign == ' '
            || NAME_PUNCTUATION.contains(&sign)
            || sign.is_alphabetic()
            || sign.is_numeric()
            || is_mark(sign)
    };
    let starts_well = |name: &str| name.starts_with(|sign: char| sign != ' ' && !is_mark(sign));
    if !name.chars().all(is_known) || !starts_well(name) || name.ends_with(' ') || name.contains("  ") {
        return Err(TokenNameError::Signs);
    }
    let letters = || name.chars().filter(|sign| sign.is_alphabetic() && *sign < FIRST_EAST_ASIAN);
    if letters().any(is_latin) && !letters().all(is_latin) {
        return Err(TokenNameError::MixedAlphabets);
    }
    Ok(())
}

/// Whether a name looks like the operator's, default or custom.
pub(crate) fn is_operator_name(name: &str, operator: Option<&str>) -> bool {
    let shape = confusable_shape(name);
    [DEFAULT_OPERATOR_NAME].into_iter().chain(operator).any(|second| confusable_shape(second) == shape)
}

/// The visual shape of a name: two names with the same shape are confusable.
pub(crate) fn confusable_shape(name: &str) -> String {
    let looks_like = |sign: char| {
        let found = LOOK_ALIKES.split_whitespace().find_map(|pair| pair.strip_prefix(sign));
        found.and_then(|latin| latin.chars().next()).unwrap_or(sign)
    };
    let small = name.nfkc().map(looks_like).flat_map(char::to_lowercase).nfkc().map(looks_like);
    let small: String = small.collect();
    small.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_latin(letter: char) -> bool {
    letter.is_ascii_alphabetic()
        || matches!(letter, 'ª' | 'º' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_people_and_programs_are_valid() {
        for name in [
            "Ana",
            "José da Silva",
            "ana@inpe.br",
            "harvest-2.dpi_inpe",
            "Дарья",
            "山田 太郎",
            "LAC 山田",
            "Ελένη",
        ] {
            assert_eq!(check_token_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn invisible_or_confusable_names_are_refused() {
        let cases = [
            ("", TokenNameError::Length),
            (" Ana", TokenNameError::Signs),
            ("Ana ", TokenNameError::Signs),
            ("Ana  Rui", TokenNameError::Signs),
            ("Ana\tRui", TokenNameError::Signs),
            ("Ana\u{200b}", TokenNameError::Signs),
            ("Ana\u{202e}", TokenNameError::Signs),
            ("Ana/Rui", TokenNameError::Signs),
            ("Ana\u{a0}Rui", TokenNameError::NotNormal),
            ("Ａｎａ", TokenNameError::NotNormal),
            ("Jose\u{301}", TokenNameError::NotNormal),
            ("Аna", TokenNameError::MixedAlphabets),
            ("Anα", TokenNameError::MixedAlphabets),
        ];
        for (name, error) in cases {
            assert_eq!(check_token_name(name), Err(error), "{name:?}");
        }
        assert_eq!(check_token_name(&"a".repeat(MAX_NAME_CHARS + 1)), Err(TokenNameError::Length));
    }

    #[test]
    fn names_that_look_alike_have_one_shape() {
        for (first, second) in [
            ("Ana", "ANA"),
            ("ape", "аре"),
            ("Rio", "Ri0"),
            ("Lia", "Iia"),
            ("Ana", " ana "),
            ("ANA", "ΑΝΑ"),
            ("José", "JOSÉ"),
        ] {
            assert_eq!(confusable_shape(first), confusable_shape(second), "{first} {second}");
        }
        for (first, second) in
            [("Ana", "Anna"), ("José", "Jose"), ("minter", "depositor"), ("token-1", "token-2")]
        {
            assert_ne!(confusable_shape(first), confusable_shape(second), "{first} {second}");
        }
    }
}
