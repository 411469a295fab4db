//! The languages that a client prefers: `Accept-Language` with RFC 4647 lookup (4.2 step 6).

use crate::language::Language;

/// Limit on language ranges read from a header.
const MAX_LANGUAGE_RANGES: usize = 64;

/// A client's languages, most preferred first: `pt-BR,fr;q=0.8,en;q=0.5,pt;q=0.3`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AcceptedLanguages {
    accepted: Vec<LanguageRange>,
    /// Languages with weight 0.
    refused: Vec<Language>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LanguageRange {
    language: Language,
    /// Whether subtags that items cannot have were dropped, as in `zh-Hant-TW`; a lookup truncates
    /// likewise.
    is_truncated: bool,
}

/// How well a language matches: index of the range, then closeness. Smaller is better.
pub(crate) type LanguageFit = (usize, u8);

impl AcceptedLanguages {
    /// Parses the header value. Ranges that are not languages of items (`*`, the region of
    /// `es-419`) and ranges with an invalid weight are ignored. An empty header is valid.
    pub fn parse(header: &str) -> Self {
        let mut weighed: Vec<(u16, LanguageRange)> =
            header.split(',').take(MAX_LANGUAGE_RANGES).filter_map(range).collect();
        // Stable sort: of equal weights the first is preferred.
        weighed.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let (refused, accepted): (Vec<_>, Vec<_>) = weighed.into_iter().partition(|(weight, _)| *weight == 0);
        Self {
            accepted: accepted.into_iter().map(|(_, range)| range).collect(),
            refused: refused.into_iter().map(|(_, range)| range.language).collect(),
        }
    }

    /// Whether the client states no preference.
    pub fn is_empty(&self) -> bool {
        self.accepted.is_empty()
    }

    /// The best match among the offered languages, if any.
    pub fn choose(&self, offered: impl IntoIterator<Item = Language>) -> Option<Language> {
        let fits = offered.into_iter().filter_map(|language| Some((self.fit(language)?, language)));
        fits.min_by_key(|(fit, _)| *fit).map(|(_, language)| language)
    }

    /// How well a language matches. `pt-BR` accepts `pt` if there is no `pt-BR`, and `pt` accepts
    /// `pt-BR` if there is no `pt`.
    pub(crate) fn fit(&self, offered: Language) -> Option<LanguageFit> {
        let is_named = |range: &LanguageRange| range.language == offered;
        let is_refused = self.refused.iter().any(|refused| {
            *refused == offered || offered.matches(*refused) && !self.accepted.iter().any(is_named)
        });
        if is_refused {
            return None;
        }
        self.accepted.iter().enumerate().find_map(|(index, range)| {
            let LanguageRange { language, is_truncated } = *range;
            match () {
                () if language == offered => Some((index, u8::from(is_truncated))),
                () if offered.country().is_none() && language.matches(offered) => Some((index, 1)),
                () if offered.matches(language) && !is_truncated => Some((index, 2)),
                () => None,
            }
        })
    }
}

/// A range and its weight in thousandths.
fn range(item: &str) -> Option<(u16, LanguageRange)> {
    let mut parts = item.split(';').map(str::trim);
    let tag = parts.next()?;
    let mut weight = 1000;
    for part in parts {
        let (name, value) = part.split_once('=')?;
        if name.trim().eq_ignore_ascii_case("q") {
            weight = thousandths(value.trim())?;
        }
    }
    let is_truncated =
        || Some(LanguageRange { language: tag.split(['-', '_']).next()?.parse().ok()?, is_truncated: true });
    let whole = tag.parse().map(|language| LanguageRange { language, is_truncated: false });
    Some((weight, whole.ok().or_else(is_truncated)?))
}

/// `0.8` is 800: at most three digits after the point, and not above 1 (RFC 9110, 12.4.2).
fn thousandths(text: &str) -> Option<u16> {
    let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
    if !matches!(whole, "0" | "1") || digits.len() > 3 || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let weight: u16 = format!("{whole}{digits:0<3}").parse().ok()?;
    (weight <= 1000).then_some(weight)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn choose(header: &str, offered: &str) -> String {
        let offered = offered.split(' ').map(|language| language.parse().unwrap());
        AcceptedLanguages::parse(header).choose(offered).map_or("none".to_owned(), |found| found.to_string())
    }

    #[test]
    fn clause_4_2_6_the_best_for_accept_language_with_weights() {
        let header = "pt-BR,fr;q=0.8,en;q=0.5,pt;q=0.3";
        for (offered, accepted) in [
            ("en fr pt pt-BR", "pt-BR"),
            ("en fr pt", "pt"),
            ("en fr pt-PT", "fr"),
            ("en pt-PT", "en"),
            ("de pt-PT", "pt-PT"),
            ("de es", "none"),
        ] {
            assert_eq!(choose(header, offered), accepted, "{offered}");
        }
        assert_eq!(choose("en;q=0.1, pt ; Q=0.9", "en pt"), "pt");
        assert_eq!(choose("en,pt", "pt en"), "en", "of equal weights the first");
    }

    #[test]
    fn clause_4_2_6_pt_also_takes_pt_br_and_d24_case_does_not_matter() {
        assert_eq!(choose("pt", "en pt-BR"), "pt-BR");
        assert_eq!(choose("pt", "pt-BR pt"), "pt");
        assert_eq!(choose("PT-br", "pt-BR"), "pt-BR");
        assert_eq!(choose("pt-BR", "pt-PT"), "none", "RFC 4647: a lookup goes from pt-BR to pt, no further");
        assert_eq!(choose("zh-Hant-TW, en;q=0.5", "en zh"), "zh");
        assert_eq!(choose("zh-Hant", "zh-TW"), "none");
    }

    #[test]
    fn rfc_9110_weight_0_is_not_acceptable() {
        assert_eq!(choose("pt, pt-PT;q=0", "pt-PT"), "none");
        assert_eq!(choose("pt, pt-PT;q=0", "pt-PT pt-BR"), "pt-BR");
        assert_eq!(choose("pt-BR, pt;q=0.000", "pt"), "none");
        assert_eq!(choose("pt-BR, pt;q=0", "pt-BR"), "pt-BR");
        assert_eq!(choose("pt, en;q=0", "pt-BR"), "pt-BR", "another language is refused");
        // A refusal wins over an acceptance.
        assert_eq!(choose("pt, pt;q=0", "pt"), "none");
        assert_eq!(choose("pt, pt;q=0", "pt-BR"), "none");
    }

    #[test]
    fn invalid_ranges_are_skipped() {
        for header in ["", "*", ",,;", "por", "xx", "pt;q=2", "pt;q=1.001", "pt;q=0.0001", "pt;q=-1", "pt;x"]
        {
            assert!(AcceptedLanguages::parse(header).is_empty(), "{header}");
        }
        assert!(!AcceptedLanguages::parse("pt").is_empty());
        assert_eq!(choose("*;q=0.5, xx, en;q=0.1", "pt en"), "en");
        assert_eq!(choose("en;q=1.", "en"), "en");
        assert_eq!(choose(&format!("{}pt", "en,".repeat(MAX_LANGUAGE_RANGES)), "pt"), "none", "bounded");
    }

    proptest! {
        #[test]
        fn any_header_chooses_what_is_offered(header in "\\PC{0,40}|((pt|en|fr)(-[A-Z]{2})?(;q=[01](\\.[0-9]{0,3})?)?,){0,6}") {
            let offered: Vec<Language> = ["pt", "pt-BR", "en"].map(|text| text.parse().unwrap()).to_vec();
            if let Some(chosen) = AcceptedLanguages::parse(&header).choose(offered.clone()) {
                prop_assert!(offered.contains(&chosen));
            }
        }
    }
}
