//! The URL that an item redirects to instead of opening a file: a Web service, or something kept
//! elsewhere (clause 2.2, D31).
//!
//! ```
//! use ibi_archive::target_url::TargetUrl;
//!
//! let url: TargetUrl = "https://maps.library.org.br/wms?service=WMS".parse()?;
//! assert_eq!(
//!     url.with_query("layer=roads"),
//!     "https://maps.library.org.br/wms?service=WMS&layer=roads",
//! );
//! assert!("javascript:alert(1)".parse::<TargetUrl>().is_err());
//! # Ok::<(), ibi_archive::target_url::TargetUrlError>(())
//! ```

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

#[cfg(feature = "web")]
use ibi_protocol::FilePath;
use ibi_protocol::persistent::append_query;
use serde::{Deserialize, Serialize};

/// The longest target URL: what browsers and proxies accept in a header.
pub const MAX_TARGET_URL_BYTES: usize = 2048;

/// The longest host name (RFC 1035).
const MAX_HOST_BYTES: usize = 253;

/// An absolute http or https URL without user information, safe to send in a header as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct TargetUrl(String);

impl TargetUrl {
    /// The URL as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the scheme is https.
    pub fn is_secure(&self) -> bool {
        self.0.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
    }

    /// Host and port as written.
    pub fn authority(&self) -> &str {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        rest.split(['/', '?', '#']).next().unwrap_or_default()
    }

    /// Host in lower case with an explicit port: equal for the same server.
    pub fn server(&self) -> String {
        let (host, port) = split_port(self.authority());
        let usual = if self.is_secure() { "443" } else { "80" };
        let port = port.filter(|port| !port.is_empty()).unwrap_or(usual);
        format!("{}:{port}", host.to_ascii_lowercase())
    }

    /// Path and query for the request: without fragment, never empty.
    pub fn path_and_query(&self) -> String {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        let rest = rest.get(self.authority().len()..).unwrap_or_default();
        let rest = rest.split('#').next().unwrap_or_default();
        if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") }
    }

    /// Appends a path: what follows the label in a persistent URL belongs to the target (D31: like
    /// the *partial* redirects of a PURL server). The target's own query and fragment stay after
    /// the path.
    #[cfg(feature = "web")]
    pub fn below(&self, path: &FilePath) -> Result<Self, TargetUrlError> {
        let (before, behind) = self.0.split_at(self.0.find(['?', '#']).unwrap_or(self.0.len()));
        let before = before.strip_suffix('/').unwrap_or(before);
        // The path begins with a slash, so it cannot change host or port.
        format!("{before}{}{behind}", ibi_protocol::location::encode_path_bytes(path.as_bytes())).parse()
    }

    /// Appends the raw query pairs of the persistent URL that belong to the item (clause 4.1).
    pub fn with_query(&self, pairs: &str) -> String {
        append_query(&self.0, pairs)
    }
}

impl FromStr for TargetUrl {
    type Err = TargetUrlError;

    fn from_str(text: &str) -> Result<Self, TargetUrlError> {
        if text.len() > MAX_TARGET_URL_BYTES {
            return Err(TargetUrlError::TooLong { bytes: text.len() });
        }
        // RFC 3986 allows none of these. In a header, a page or another parser they could be
        // misread.
        let is_wrong = |c: &char| !c.is_ascii_graphic() || "\"<>\\^`{|}".contains(*c);
        if let Some((at, character)) = text.chars().enumerate().find(|(_, c)| is_wrong(c)) {
            return Err(TargetUrlError::Character { character, at: at + 1 });
        }
        let (scheme, rest) = text.split_once("://").ok_or(TargetUrlError::Scheme)?;
        if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Err(TargetUrlError::Scheme);
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(TargetUrlError::UserInfo);
        }
        let (host, port) = split_port(authority);
        if !is_host(host) {
            return Err(TargetUrlError::Host);
        }
        match port.map(str::parse::<u16>) {
            None | Some(Ok(1..)) => Ok(Self(text.to_owned())),
            Some(_) => Err(TargetUrlError::Port),
        }
    }
}

impl TryFrom<String> for TargetUrl {
    type Error = TargetUrlError;

    fn try_from(text: String) -> Result<Self, TargetUrlError> {
        text.parse()
    }
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Splits into host, with the brackets of an IPv6 address, and port.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    let end = authority.rfind(']').unwrap_or(0);
    match authority.get(end..).and_then(|rest| rest.find(':')) {
        Some(colon) => (&authority[..end + colon], authority.get(end + colon + 1..)),
        None => (authority, None),
    }
}

/// A name, an IPv4 address or an IPv6 address in brackets.
fn is_host(host: &str) -> bool {
    if let Some(inside) = host.strip_prefix('[') {
        return inside.strip_suffix(']').is_some_and(|inside| inside.parse::<Ipv6Addr>().is_ok());
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'))
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    name.len() <= MAX_HOST_BYTES && name.split('.').all(is_label)
}

/// Why a text cannot be a target URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetUrlError {
    /// Neither http nor https, or not absolute.
    #[error("a target URL begins with http:// or https://")]
    Scheme,
    /// The URL contains a user name or password.
    #[error(
        "a target URL has no user name or password in it: everybody who asks for the item would get them"
    )]
    UserInfo,
    /// The host is missing or invalid.
    #[error("a target URL names a host, as in https://maps.library.org.br/wms")]
    Host,
    /// Invalid port.
    #[error("the port of a target URL is a number from 1 to 65535")]
    Port,
    /// A character that is not allowed in a URL.
    #[error("character {at} of the target URL is {character:?}, which no URL has: percent-encode it")]
    Character {
        /// The character.
        character: char,
        /// Its position, from 1.
        at: usize,
    },
    /// More than [`MAX_TARGET_URL_BYTES`].
    #[error("the target URL has {bytes} bytes, and {MAX_TARGET_URL_BYTES} is the most")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn clause_2_2_http_or_https_without_credentials_or_control_characters() {
        for good in [
            "http://a.br",
            "HTTPS://A.br:8443/x?y=1#z",
            "http://[2001:db8::1]:80/",
            "http://192.0.2.7/a%20b",
            "https://service_1.a.br./wms?a=b&c={d}".replace(['{', '}'], "").as_str(),
        ] {
            assert_eq!(good.parse::<TargetUrl>().map(|url| url.to_string()), Ok(good.to_owned()));
        }
        let long = format!("http://a.br/{}", "x".repeat(MAX_TARGET_URL_BYTES));
        for (bad, why) in [
            ("", TargetUrlError::Scheme),
            ("//a.br/", TargetUrlError::Scheme),
            ("ftp://a.br/", TargetUrlError::Scheme),
            ("javascript:alert(1)", TargetUrlError::Scheme),
            ("http:/a.br", TargetUrlError::Scheme),
            ("http://", TargetUrlError::Host),
            ("http:///x", TargetUrlError::Host),
            ("http://a..br/", TargetUrlError::Host),
            ("http://[::1/", TargetUrlError::Host),
            ("http://:80/", TargetUrlError::Host),
            ("http://me@a.br/", TargetUrlError::UserInfo),
            ("http://me:secret@a.br/", TargetUrlError::UserInfo),
            ("http://a.br:0/", TargetUrlError::Port),
            ("http://a.br:x/", TargetUrlError::Port),
            ("http://a.br:65536/", TargetUrlError::Port),
            ("http://a.br/\r\nx: y", TargetUrlError::Character { character: '\r', at: 13 }),
            ("http://a.br/\0", TargetUrlError::Character { character: '\0', at: 13 }),
            ("http://a.br/ó", TargetUrlError::Character { character: 'ó', at: 13 }),
            ("http://a.br\\@b.br/", TargetUrlError::Character { character: '\\', at: 12 }),
            (long.as_str(), TargetUrlError::TooLong { bytes: long.len() }),
        ] {
            assert_eq!(bad.parse::<TargetUrl>(), Err(why), "{bad}");
        }
    }

    #[test]
    fn a_server_is_the_same_however_it_is_spelled() {
        let server = |text: &str| text.parse::<TargetUrl>().unwrap().server();
        assert_eq!(server("http://A.br/x"), server("http://a.br:80?y"));
        assert_eq!(server("https://a.br"), "a.br:443");
        assert_eq!(server("http://[::1]/"), "[::1]:80");
        let path = |text: &str| text.parse::<TargetUrl>().unwrap().path_and_query();
        assert_eq!(path("http://a.br"), "/");
        assert_eq!(path("http://a.br?x=1#f"), "/?x=1");
        assert_eq!(path("http://a.br/b/c?x#f"), "/b/c?x");
    }

    #[cfg(feature = "web")]
    #[test]
    fn clause_d31_what_follows_the_label_follows_the_target() {
        let below = |url: &str, path: &str| {
            let path = FilePath::from_url(path).unwrap().unwrap();
            url.parse::<TargetUrl>().unwrap().below(&path).map(|url| url.to_string())
        };
        for (url, path, to) in [
            ("http://a.br", "/x", "http://a.br/x"),
            ("http://a.br/", "x/y/", "http://a.br/x/y/"),
            ("http://a.br/b", "//x", "http://a.br/b/x"),
            ("http://a.br/b/?c=/d#e", "/x", "http://a.br/b/x?c=/d#e"),
            ("http://a.br?c", "/x%3Fy%23z%20%F3", "http://a.br/x%3Fy%23z%20%F3?c"),
            ("http://a.br", "/@b.br/%5Cb.br", "http://a.br/@b.br/%5Cb.br"),
        ] {
            assert_eq!(below(url, path), Ok(to.to_owned()), "{url} {path}");
        }
        let long = "x".repeat(MAX_TARGET_URL_BYTES);
        assert!(matches!(below("http://a.br", &long), Err(TargetUrlError::TooLong { .. })));
    }

    proptest! {
        #[cfg(feature = "web")]
        #[test]
        fn no_path_leads_to_another_server(
            url in "https?://[a-z]{1,5}(:[1-9][0-9]{0,3})?(/[a-z/]{0,5})?([?][a-z=]{0,4})?(#[a-z]{0,3})?",
            path in proptest::collection::vec(any::<u8>(), 1..20),
        ) {
            let url = url.parse::<TargetUrl>().unwrap();
            if let Ok(Some(path)) = FilePath::new(&path) {
                let below = url.below(&path).unwrap();
                prop_assert_eq!(below.server(), url.server());
                prop_assert!(below.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }

        #[test]
        fn what_is_read_can_stand_in_a_header(text in "(https?://)?[a-z.@:\\[\\]]{0,12}\\PC{0,12}") {
            if let Ok(url) = text.parse::<TargetUrl>() {
                prop_assert!(url.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
                prop_assert!(!url.authority().contains('@'));
                let led = url.with_query("a=b&c").parse::<TargetUrl>();
                prop_assert_eq!(led.map(|led| led.server()), Ok(url.server()), "no query leads elsewhere");
                prop_assert_eq!(url.to_string().parse::<TargetUrl>(), Ok(url));
            }
        }
    }
}
