//! Links that contain a label, as copied from papers and browsers (4.1, D35):
//! `http://urlib.net/rep/…`, `https://host/…`, `ibi:…`, `upn:word:…`, `ibi/…`.

use crate::persistent::{PersistentUrl, PersistentUrlError, UrlPart, begins_as_link};

/// A parsed link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelLink {
    /// The label, modifiers, file and query that it contains.
    pub url: PersistentUrl,
}

/// Why a link is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct LinkError {
    /// The violated rule.
    pub error: PersistentUrlError,
    /// The byte of the whole text, from 0, at which it is violated.
    pub position: usize,
}

impl LabelLink {
    /// Parses a link. The host does not matter (D11): any resolver leads to the item.
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        let start = path_start(text).unwrap_or(0);
        let path_and_query = text[start..].split('#').next().unwrap_or_default();
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path_and_query, None),
        };
        let located = |error: PersistentUrlError| {
            let position = match error.position() {
                (UrlPart::Path, at) => start + at,
                (UrlPart::Query, at) => start + path.len() + 1 + at,
            };
            LinkError { error, position: position.min(text.len()) }
        };
        PersistentUrl::parse(path, query).map(|url| Self { url }).map_err(located)
    }

    /// Whether a text is meant as a link rather than a bare label, and should be parsed as one. A
    /// label followed by more text is neither (1.4).
    pub fn is_link(text: &str) -> bool {
        path_start(text).is_some() || begins_as_link(text)
    }
}

/// Where the path of a web address begins; `None` for other texts.
fn path_start(text: &str) -> Option<usize> {
    let schemes = ["http://", "https://"];
    let has = |scheme: &&str| text.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme));
    let host = schemes.into_iter().find(has)?.len();
    let length = text[host..].find(['/', '?', '#']).unwrap_or(text.len() - host);
    Some(host + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d35_links_in_common_use_are_read() {
        let label = "8JMKD3MGP8W/34PGRBS";
        for before in [
            "http://urlib.net/",
            "HTTPS://a.br:8443/",
            "http://urlib.net/rep/",
            "ibi:",
            "ibi/",
            "upn:w-1:",
            "upn:w:/",
        ] {
            let link = LabelLink::parse(&format!("{before}{label}!:/a.pdf?page=2#top"));
            let url = link.map(|link| link.url).unwrap_or_else(|error| panic!("{before}: {error}"));
            assert_eq!(url.to_string(), format!("/{label}!:/a.pdf?page=2"), "{before}");
        }
    }

    #[test]
    fn clause_1_4_what_follows_a_label_does_not_make_it_a_link() {
        let label = "8JMKD3MGP8W/34PGRBS";
        assert!(
            [label.to_owned(), format!("{label}!"), format!("{label}/a")]
                .iter()
                .all(|text| !LabelLink::is_link(text))
        );
        assert!(
            ["ibi:", "rep/", "upn:w:", "http://"]
                .iter()
                .all(|before| LabelLink::is_link(&format!("{before}{label}")))
        );
    }

    #[test]
    fn the_position_counts_from_the_beginning_of_the_text() {
        for (text, position) in
            [("http://urlib.net/8JMKD3MGPVW/34PGRBS", 26), ("http://urlib.net", 16), ("http://", 7)]
        {
            let error = LabelLink::parse(text).map(drop).map_err(|error| error.position);
            assert_eq!(error, Err(position), "{text}");
        }
    }
}
