//! Parse errors: the violated rule, and where.

use std::fmt;

/// A rejected text: the violated rule and its byte position.
///
/// The position counts bytes from 0 and never exceeds the length of the text. At the end of the
/// text it means that something is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseError {
    rule: Rule,
    position: usize,
}

impl ParseError {
    /// No date is left before the end of the year 9999.
    pub const NO_DATE_LEFT: Self = Self { rule: Rule::InstantRange, position: 0 };

    pub(crate) const fn new(rule: Rule, position: usize) -> Self {
        Self { rule, position }
    }

    /// The violated rule.
    pub const fn rule(&self) -> Rule {
        self.rule
    }

    /// The byte, from 0, at which it is violated.
    pub const fn position(&self) -> usize {
        self.position
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.rule.message(), self.position)
    }
}

impl std::error::Error for ParseError {}

impl Rule {
    /// Whether it concerns the syntax of a date, not its value.
    pub(crate) const fn is_of_dates_grammar(self) -> bool {
        matches!(self, Rule::DateShape | Rule::RepositoryParts | Rule::Extra | Rule::Fraction)
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident $code:literal $clause:literal $message:literal)*) => {
        /// A rule that a text can violate.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule { $(#[doc = $message] $(#[$doc])* $variant),* }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),*];

            /// A short stable code for programs.
            pub const fn code(self) -> &'static str {
                match self { $(Rule::$variant => $code),* }
            }

            /// The clause that requires it: a section of `docs/formats/labels.md`.
            pub const fn clause(self) -> &'static str {
                match self { $(Rule::$variant => $clause),* }
            }

            /// A message for people, with the correct form.
            pub const fn message(self) -> &'static str {
                match self { $(Rule::$variant => $message),* }
            }
        }
    };
}

rules! {
    HostWord "host-word" "1.1"
        "a word of a host name has only letters, digits and inner hyphens, and is not empty"
    HostLastWord "host-last-word" "1.1"
        "the last word of a host name begins with a letter"
    HostTooFewWords "host-too-few-words" "1.1"
        "a host name needs at least two words, as in `mtc-m18.sid.inpe.br`"
    RepositoryParts "repository-parts" "1.1"
        "a repository name has four parts, as in `sid.inpe.br/mtc-m18/2009/02.16.17.46`, where the host is \
         mtc-m18.sid.inpe.br"
    DateShape "date-shape" "1.1"
        "the date is written `year/month.day.hour.minute`, then `.second` and `.fraction` if needed, \
         two digits each"
    IbipCharacter "ibip-character" "1.2"
        "an IBIp uses the digits 2-9 and the letters A-H, J-N, P-U, W and X only: never 0, 1, I, O, V, Y or Z"
    IbipMarker "ibip-marker" "1.2"
        "the first word of an IBIp is a coded address, then one W (IPv4) or X (IPv6), then a coded port or nothing"
    IbipSuffix "ibip-suffix" "1.2"
        "the second word of an IBIp is a coded instant, then at most one W with a coded fraction after it"
    BeforeIbip "before-ibip" "1.2"
        "an IBIp cannot represent instants before 1995-08-01T00:00:00Z"
    LegacyWord "legacy-word" "1.3"
        "a legacy label is two words of letters and digits, with a capital Z in the first"
    LegacyLowerZ "legacy-lower-z" "1.3"
        "no label has a small z here: legacy labels are case-sensitive and have a capital Z, so a copy in small \
         letters has lost its meaning"
    LegacyDigit "legacy-digit" "1.3"
        "the second word of a legacy label uses 2-9, the small letters but l, and the capitals A-V but I and O"
    Empty "empty" "1.4"
        "there is no label: it is empty"
    Form "form" "1.4"
        "not an IBI: an IBI is like `sid.inpe.br/mtc-m18/2009/02.16.17.46` or \
         `8JMKD3MGP8W/34PGRBS`"
    Scheme "scheme" "1.4"
        "this begins with a scheme or a web address: leave out everything before the label itself"
    Invisible "invisible" "1.4"
        "here is a space or another invisible character: no label has one"
    Extra "extra" "1.4"
        "the label ends here: what follows is no part of it"
    LabelLength "label-length" "1.4"
        "a label has at most 255 bytes"
    HostWordLength "host-word-length" "1.4"
        "a word of a host name has at most 63 characters"
    HostLength "host-length" "1.4"
        "a host name has at most 253 characters"
    Port "port" "1.4"
        "a port is a number from 1 to 65535"
    Year "year" "1.4"
        "the year has four digits, 0001 to 9999: longer ones are not read"
    Month "month" "1.4"
        "the month is 01 to 12"
    Day "day" "1.4"
        "that month of that year has no such day"
    Hour "hour" "1.4"
        "the hour is 00 to 23"
    Minute "minute" "1.4"
        "the minute is 00 to 59"
    Second "second" "1.4"
        "the second is 00 to 59"
    Fraction "fraction" "1.4"
        "a fraction of a second has 1 to 12 digits"
    IbipAddress "ibip-address" "1.4"
        "the first word of this IBIp does not decode to an IP address"
    InstantRange "instant-range" "1.4"
        "the instant lies outside the years 0001 to 9999"
    Granularity "granularity" "1.5"
        "the granularity is 60, 1, 0.1, 0.01 and so on down to 0.000000001 (1e-9) seconds"
    Time "time" "1.5"
        "a time is written as in `2009-02-16T17:46:00Z` (RFC 3339) or as Unix seconds, `1234806360.5`"
}
