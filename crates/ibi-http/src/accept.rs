//! What a client would rather read: a page, JSON or plain text; in Portuguese or English.

use http::{HeaderMap, header};
use percent_encoding::percent_decode_str;

/// What a client would rather read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taste {
    /// A page.
    Page,
    /// JSON.
    Json,
    /// Plain text.
    Text,
}

impl Taste {
    /// What is accepted with the highest weight, of several the first; a browser likes pages best, `curl` anything.
    pub fn of(headers: &HeaderMap) -> Self {
        let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        let mut best = (Taste::Page, 0);
        for range in accept.split(',') {
            let (kind, parameters) = range.split_once(';').unwrap_or((range, ""));
            let taste = match kind.trim() {
                "text/html" | "application/xhtml+xml" => Taste::Page,
                "application/json" | "application/problem+json" => Taste::Json,
                "text/plain" => Taste::Text,
                _ => continue,
            };
            let weight = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
            let weight = weight.map_or(1000, thousandths);
            if weight > best.1 {
                best = (taste, weight);
            }
        }
        best.0
    }
}

/// The language of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tongue {
    /// English.
    English,
    /// Portuguese.
    Portuguese,
}

impl Tongue {
    /// What the query asks for (`lang=pt`), or what the client likes best.
    pub fn of(headers: &HeaderMap, query: Option<&str>) -> Self {
        let asked = query.and_then(|query| value(query, "lang"));
        if let Some(tongue) = asked.as_deref().and_then(Self::named) {
            return tongue;
        }
        let liked = lines(headers, &header::ACCEPT_LANGUAGE);
        let mut best = (Self::English, 0);
        for range in liked.split(',') {
            let (name, weight) = range.split_once(';').unwrap_or((range, "q=1"));
            let weight = thousandths(weight.trim().trim_start_matches("q="));
            if let Some(tongue) = Self::named(name.trim())
                && weight > best.1
            {
                best = (tongue, weight);
            }
        }
        best.0
    }

    /// The tongue of this code, if it is one of ours.
    pub fn named(name: &str) -> Option<Self> {
        match name.get(..2)?.to_ascii_lowercase().as_str() {
            "pt" => Some(Self::Portuguese),
            "en" => Some(Self::English),
            _ => None,
        }
    }

    /// Its code.
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Portuguese => "pt",
        }
    }
}

/// All lines of a header together: a list may be sent in several (RFC 9110 §5.3).
pub fn lines(headers: &HeaderMap, name: &header::HeaderName) -> String {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}

/// A weight of RFC 9110 §12.4.2: at most 1, with at most three digits.
fn thousandths(weight: &str) -> u32 {
    let (whole, digits) = weight.trim().split_once('.').unwrap_or((weight.trim(), ""));
    format!("{whole}{digits:0<3.3}").parse::<u32>().map_or(0, |weight| weight.min(1000))
}

/// The value of a pair of a query, decoded.
pub fn value(query: &str, name: &str) -> Option<String> {
    let pair = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let text = pair?.replace('+', " ");
    Some(percent_decode_str(&text).decode_utf8_lossy().into_owned())
}
