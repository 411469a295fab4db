//! Content negotiation: the format (page, JSON or plain text) and language (Portuguese or English)
//! a client prefers.

use http::{HeaderMap, header};
use percent_encoding::percent_decode_str;

/// The response format that a client prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreferredFormat {
    /// An HTML page.
    Page,
    /// JSON.
    Json,
    /// Plain text.
    Text,
}

impl PreferredFormat {
    /// The accepted format with the highest weight; the first of several with equal weight.
    /// Browsers prefer pages, `curl` accepts anything.
    pub fn of(headers: &HeaderMap) -> Self {
        let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        let mut best = (PreferredFormat::Page, 0);
        for range in accept.split(',') {
            let (kind, parameters) = range.split_once(';').unwrap_or((range, ""));
            let taste = match kind.trim() {
                "text/html" | "application/xhtml+xml" => PreferredFormat::Page,
                "application/json" | "application/problem+json" => PreferredFormat::Json,
                "text/plain" => PreferredFormat::Text,
                _ => continue,
            };
            let weight = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
            let weight = weight.map_or(1000, parse_weight);
            if weight > best.1 {
                best = (taste, weight);
            }
        }
        best.0
    }
}

/// The query pair that selects the page language and is never passed on to an item.
pub const PAGE_LANGUAGE_PAIR: &str = "ibiurl.lang";

/// The language of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UiLanguage {
    /// English.
    English,
    /// Portuguese.
    Portuguese,
}

impl UiLanguage {
    /// The language requested in the query (`lang=pt`), or the client's preferred one.
    pub fn of(headers: &HeaderMap, query: Option<&str>) -> Self {
        let requested = query.and_then(|query| query_value(query, "lang"));
        if let Some(language) = requested.as_deref().and_then(Self::from_code) {
            return language;
        }
        let liked = join_header_lines(headers, &header::ACCEPT_LANGUAGE);
        let mut best = (Self::English, 0);
        for range in liked.split(',') {
            let (name, weight) = range.split_once(';').unwrap_or((range, "q=1"));
            let weight = parse_weight(weight.trim().trim_start_matches("q="));
            if let Some(language) = Self::from_code(name.trim())
                && weight > best.1
            {
                best = (language, weight);
            }
        }
        best.0
    }

    /// The language that a query chooses for pages: `ibiurl.lang`, which items never see, or
    /// `lang`. Both servers read both names, because they may share an address.
    pub fn chosen(query: Option<&str>) -> Option<Self> {
        let query = query?;
        let named = |name| query_value(query, name).as_deref().and_then(Self::from_code);
        named(PAGE_LANGUAGE_PAIR).or_else(|| named("lang"))
    }

    /// The language with this code, if it is supported.
    pub fn from_code(name: &str) -> Option<Self> {
        match name.get(..2)?.to_ascii_lowercase().as_str() {
            "pt" => Some(Self::Portuguese),
            "en" => Some(Self::English),
            _ => None,
        }
    }

    /// The language code.
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Portuguese => "pt",
        }
    }
}

/// Joins all lines of a header: a list may be sent in several lines (RFC 9110 §5.3).
pub fn join_header_lines(headers: &HeaderMap, name: &header::HeaderName) -> String {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}

/// Parses a weight (RFC 9110 §12.4.2): at most 1, with at most three digits.
fn parse_weight(weight: &str) -> u32 {
    let (whole, digits) = weight.trim().split_once('.').unwrap_or((weight.trim(), ""));
    format!("{whole}{digits:0<3.3}").parse::<u32>().map_or(0, |weight| weight.min(1000))
}

/// The decoded value of a query pair.
pub fn query_value(query: &str, name: &str) -> Option<String> {
    let pair = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let text = pair?.replace('+', " ");
    Some(percent_decode_str(&text).decode_utf8_lossy().into_owned())
}
