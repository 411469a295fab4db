//! Prefixes whose labels a token may import from elsewhere (`docs/security.md`, *Identity and
//! ownership*).

use ibi_id::Label;

use crate::item::LabelKey;

/// Suffixes that complete a prefix to a label, one per form.
const SAMPLE_SUFFIXES: [&str; 2] = ["2001/01.01.00.00", "34PGRBS"];

/// A prefix in the form used for comparison: canonical and lowercase.
pub fn canonical_prefix(text: &str) -> Result<String, String> {
    let text = text.trim().trim_end_matches('/');
    let found = SAMPLE_SUFFIXES.iter().find_map(|suffix| {
        let label = format!("{text}/{suffix}");
        prefix_of(&label).filter(|_| Label::parse(&label).is_ok_and(|label| label.suffix() == *suffix))
    });
    found.ok_or_else(|| {
        format!(
            "`{}` is not a valid prefix: write how labels begin, like dpi.inpe.br/banon or 8JMKD3MGP8W",
            text.escape_debug()
        )
    })
}

/// Whether a label has one of these prefixes.
pub fn has_prefix(label: &str, prefixes: &[String]) -> bool {
    let Some(found) = prefix_of(label) else { return false };
    prefixes.iter().any(|prefix| canonical_prefix(prefix).is_ok_and(|prefix| prefix == found))
}

/// The canonical prefix of a label.
pub fn prefix_of(label: &str) -> Option<String> {
    let canonical = LabelKey::parse(label).ok()?.canonical;
    let parsed = Label::parse(&canonical).ok()?;
    Some(parsed.prefix().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_the_prefix_that_it_begins_with_and_no_part_of_it() {
        let granted = |label: &str, prefix: &str| has_prefix(label, &[prefix.to_owned()]);
        assert!(granted("dpi.inpe.br/banon/1998/08.02.08.56", "dpi.inpe.br/banon"));
        assert!(granted("DPI.inpe.br/Banon/1998/08.02.08.56", "dpi.inpe.br/banon/"));
        assert!(granted("8JMKD3MGP8W/34PGRBS", "8JMKD3MGP8W"));
        assert!(granted("8JMKD3MGP8W/34PGRBS", "8jmkd3mgp8w"));
        assert!(!granted("dpi.inpe.br/banon-2/1998/08.02.08.56", "dpi.inpe.br/banon"));
        assert!(!granted("dpi.inpe.br/banon/1998/08.02.08.56", "inpe.br/banon"));
        assert!(!granted("8JMKD3MGP8W/34PGRBS", "8JMKD3MGP8"));
        assert!(!granted("not a label", "dpi.inpe.br/banon"));
        for nonsense in ["", "/", "a b", "dpi.inpe.br/banon/1998/08.02.08.56"] {
            assert!(canonical_prefix(nonsense).is_err(), "{nonsense}");
        }
    }
}
