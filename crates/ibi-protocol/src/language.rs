//! The language of an item: ISO 639-1, optionally with an ISO 3166-1 country (2.2, 4.1).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::untrusted_text::quote_untrusted;

/// A language of an item: `pt`, or with a country, `pt-BR`.
///
/// Parsed case-insensitively and with `-` or `_`; written in the customary spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Language {
    language: [u8; 2],
    country: Option<[u8; 2]>,
}

impl Language {
    /// The code of ISO 639-1, in lower case: `pt`.
    pub fn language(&self) -> &str {
        ascii(&self.language)
    }

    /// The code of ISO 3166-1, in upper case: `BR`.
    pub fn country(&self) -> Option<&str> {
        self.country.as_ref().map(ascii)
    }

    /// Whether this language satisfies a request for `requested`; a request without a country
    /// accepts any country.
    pub fn matches(&self, requested: Language) -> bool {
        self.language == requested.language
            && (requested.country.is_none() || self.country == requested.country)
    }
}

impl FromStr for Language {
    type Err = LanguageError;

    fn from_str(text: &str) -> Result<Self, LanguageError> {
        let (language, country) = match *text.as_bytes() {
            [a, b] => ([a, b], None),
            [a, b, b'-' | b'_', c, d] => ([a, b], Some([c, d])),
            _ => return Err(LanguageError::Shape { given: quote_untrusted(text) }),
        };
        let language = language.map(|letter| letter.to_ascii_lowercase());
        if LANGUAGES.binary_search(&&language).is_err() {
            return Err(LanguageError::Language { given: quote_untrusted(text) });
        }
        let country = country.map(|code| code.map(|letter| letter.to_ascii_uppercase()));
        if country.is_some_and(|code| COUNTRIES.binary_search(&&code).is_err()) {
            return Err(LanguageError::Country { given: quote_untrusted(text) });
        }
        Ok(Self { language, country })
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.country() {
            None => f.pad(self.language()),
            Some(country) => f.pad(&format!("{}-{country}", self.language())),
        }
    }
}

impl TryFrom<String> for Language {
    type Error = LanguageError;

    fn try_from(text: String) -> Result<Self, LanguageError> {
        text.parse()
    }
}

impl From<Language> for String {
    fn from(language: Language) -> Self {
        language.to_string()
    }
}

/// Not a valid language.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LanguageError {
    /// Neither two letters nor two and two.
    #[error(
        "`{given}` is not a language: write the two letters of ISO 639-1, and those of a country where it matters, as \
         in pt or pt-BR"
    )]
    Shape {
        /// What was given.
        given: String,
    },
    /// Not an ISO 639-1 code.
    #[error(
        "`{given}` is not a language: ISO 639-1 has no such code. Portuguese is pt, English en, Spanish es; with a \
         country, pt-BR"
    )]
    Language {
        /// What was given.
        given: String,
    },
    /// Not an ISO 3166-1 code.
    #[error(
        "`{given}` is not a language: ISO 3166-1 has no such country. Brazil is BR, as in pt-BR; Great Britain is GB, as \
         in en-GB; without a country, pt will do"
    )]
    Country {
        /// What was given.
        given: String,
    },
}

/// A language is always ASCII, so the fallback is never used.
fn ascii(code: &[u8; 2]) -> &str {
    std::str::from_utf8(code).unwrap_or_default()
}

/// ISO 639-1 as of 2026, sorted, plus `bh` (Bihari), withdrawn in 2021 but present in older items.
const LANGUAGES: [&[u8; 2]; 184] = [
    b"aa", b"ab", b"ae", b"af", b"ak", b"am", b"an", b"ar", b"as", b"av", b"ay", b"az", b"ba", b"be", b"bg",
    b"bh", b"bi", b"bm", b"bn", b"bo", b"br", b"bs", b"ca", b"ce", b"ch", b"co", b"cr", b"cs", b"cu", b"cv",
    b"cy", b"da", b"de", b"dv", b"dz", b"ee", b"el", b"en", b"eo", b"es", b"et", b"eu", b"fa", b"ff", b"fi",
    b"fj", b"fo", b"fr", b"fy", b"ga", b"gd", b"gl", b"gn", b"gu", b"gv", b"ha", b"he", b"hi", b"ho", b"hr",
    b"ht", b"hu", b"hy", b"hz", b"ia", b"id", b"ie", b"ig", b"ii", b"ik", b"io", b"is", b"it", b"iu", b"ja",
    b"jv", b"ka", b"kg", b"ki", b"kj", b"kk", b"kl", b"km", b"kn", b"ko", b"kr", b"ks", b"ku", b"kv", b"kw",
    b"ky", b"la", b"lb", b"lg", b"li", b"ln", b"lo", b"lt", b"lu", b"lv", b"mg", b"mh", b"mi", b"mk", b"ml",
    b"mn", b"mr", b"ms", b"mt", b"my", b"na", b"nb", b"nd", b"ne", b"ng", b"nl", b"nn", b"no", b"nr", b"nv",
    b"ny", b"oc", b"oj", b"om", b"or", b"os", b"pa", b"pi", b"pl", b"ps", b"pt", b"qu", b"rm", b"rn", b"ro",
    b"ru", b"rw", b"sa", b"sc", b"sd", b"se", b"sg", b"si", b"sk", b"sl", b"sm", b"sn", b"so", b"sq", b"sr",
    b"ss", b"st", b"su", b"sv", b"sw", b"ta", b"te", b"tg", b"th", b"ti", b"tk", b"tl", b"tn", b"to", b"tr",
    b"ts", b"tt", b"tw", b"ty", b"ug", b"uk", b"ur", b"uz", b"ve", b"vi", b"vo", b"wa", b"wo", b"xh", b"yi",
    b"yo", b"za", b"zh", b"zu",
];

/// ISO 3166-1 alpha-2 as of 2026, sorted.
const COUNTRIES: [&[u8; 2]; 249] = [
    b"AD", b"AE", b"AF", b"AG", b"AI", b"AL", b"AM", b"AO", b"AQ", b"AR", b"AS", b"AT", b"AU", b"AW", b"AX",
    b"AZ", b"BA", b"BB", b"BD", b"BE", b"BF", b"BG", b"BH", b"BI", b"BJ", b"BL", b"BM", b"BN", b"BO", b"BQ",
    b"BR", b"BS", b"BT", b"BV", b"BW", b"BY", b"BZ", b"CA", b"CC", b"CD", b"CF", b"CG", b"CH", b"CI", b"CK",
    b"CL", b"CM", b"CN", b"CO", b"CR", b"CU", b"CV", b"CW", b"CX", b"CY", b"CZ", b"DE", b"DJ", b"DK", b"DM",
    b"DO", b"DZ", b"EC", b"EE", b"EG", b"EH", b"ER", b"ES", b"ET", b"FI", b"FJ", b"FK", b"FM", b"FO", b"FR",
    b"GA", b"GB", b"GD", b"GE", b"GF", b"GG", b"GH", b"GI", b"GL", b"GM", b"GN", b"GP", b"GQ", b"GR", b"GS",
    b"GT", b"GU", b"GW", b"GY", b"HK", b"HM", b"HN", b"HR", b"HT", b"HU", b"ID", b"IE", b"IL", b"IM", b"IN",
    b"IO", b"IQ", b"IR", b"IS", b"IT", b"JE", b"JM", b"JO", b"JP", b"KE", b"KG", b"KH", b"KI", b"KM", b"KN",
    b"KP", b"KR", b"KW", b"KY", b"KZ", b"LA", b"LB", b"LC", b"LI", b"LK", b"LR", b"LS", b"LT", b"LU", b"LV",
    b"LY", b"MA", b"MC", b"MD", b"ME", b"MF", b"MG", b"MH", b"MK", b"ML", b"MM", b"MN", b"MO", b"MP", b"MQ",
    b"MR", b"MS", b"MT", b"MU", b"MV", b"MW", b"MX", b"MY", b"MZ", b"NA", b"NC", b"NE", b"NF", b"NG", b"NI",
    b"NL", b"NO", b"NP", b"NR", b"NU", b"NZ", b"OM", b"PA", b"PE", b"PF", b"PG", b"PH", b"PK", b"PL", b"PM",
    b"PN", b"PR", b"PS", b"PT", b"PW", b"PY", b"QA", b"RE", b"RO", b"RS", b"RU", b"RW", b"SA", b"SB", b"SC",
    b"SD", b"SE", b"SG", b"SH", b"SI", b"SJ", b"SK", b"SL", b"SM", b"SN", b"SO", b"SR", b"SS", b"ST", b"SV",
    b"SX", b"SY", b"SZ", b"TC", b"TD", b"TF", b"TG", b"TH", b"TJ", b"TK", b"TL", b"TM", b"TN", b"TO", b"TR",
    b"TT", b"TV", b"TW", b"TZ", b"UA", b"UG", b"UM", b"US", b"UY", b"UZ", b"VA", b"VC", b"VE", b"VG", b"VI",
    b"VN", b"VU", b"WF", b"WS", b"YE", b"YT", b"ZA", b"ZM", b"ZW",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Language {
        text.parse().unwrap()
    }

    #[test]
    fn clause_2_2_a_language_has_a_country_or_none() {
        let (portuguese, brazilian) = (read("pt"), read("pt-BR"));
        assert_eq!((portuguese.language(), portuguese.country()), ("pt", None));
        assert_eq!((brazilian.language(), brazilian.country()), ("pt", Some("BR")));
        assert_eq!(format!("{portuguese} {brazilian} {brazilian:>7}"), "pt pt-BR   pt-BR");
    }

    #[test]
    fn case_and_underscore_do_not_matter() {
        for spelling in ["pt-BR", "pt-br", "PT-BR", "pt_BR", "Pt_bR"] {
            assert_eq!(read(spelling), read("pt-BR"), "{spelling}");
        }
    }

    #[test]
    fn a_request_without_a_country_matches_any() {
        assert!(read("pt-BR").matches(read("pt")) && read("pt").matches(read("pt")));
        assert!(read("pt-BR").matches(read("pt-BR")));
        assert!(!read("pt").matches(read("pt-BR")) && !read("pt-PT").matches(read("pt-BR")));
        assert!(!read("es").matches(read("pt")));
    }

    #[test]
    fn the_lists_are_sorted_and_whole() {
        assert!(LANGUAGES.is_sorted_by(|a, b| a < b) && COUNTRIES.is_sorted_by(|a, b| a < b));
        assert!(LANGUAGES.iter().all(|code| code.iter().all(u8::is_ascii_lowercase)));
        assert!(COUNTRIES.iter().all(|code| code.iter().all(u8::is_ascii_uppercase)));
        assert_eq!((LANGUAGES.len(), COUNTRIES.len()), (183 + 1, 249));
    }

    #[test]
    fn errors_quote_the_input_and_suggest_a_fix() {
        let error = |text: &str| text.parse::<Language>().unwrap_err().to_string();
        assert!(error("por").starts_with("`por` is not a language: write the two letters of ISO 639-1"));
        assert!(error("").starts_with("`` is not a language: write the two letters"));
        assert!(error("xx").starts_with("`xx` is not a language: ISO 639-1 has no such code"));
        assert!(error("en-UK").contains("Great Britain is GB"));
        assert!(error("sh").contains("no such code"), "withdrawn in 2000");
        assert!(error("p\x1b").starts_with("`p\\u{1b}` is"), "{}", error("p\x1b"));
        assert!(error(&"x".repeat(10_000)).len() < 300);
        assert!(error("pt-BR ").contains("write the two letters"));
    }

    proptest! {
        #[test]
        fn display_round_trips(language in prop::sample::select(LANGUAGES.to_vec()),
                                         country in prop::option::of(prop::sample::select(COUNTRIES.to_vec()))) {
            let whole = Language { language: *language, country: country.copied() };
            prop_assert_eq!(whole.to_string().parse(), Ok(whole));
            prop_assert_eq!(whole.to_string().to_lowercase().parse(), Ok(whole));
        }

        #[test]
        fn any_text_parses_or_fails_without_panic(text in "\\PC{0,7}|[a-z]{2}([-_][A-Za-z]{2})?") {
            if let Ok(language) = text.parse::<Language>() {
                prop_assert!(language.to_string().eq_ignore_ascii_case(&text.replace('_', "-")));
            }
        }
    }
}
