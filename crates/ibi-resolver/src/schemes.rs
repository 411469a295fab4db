//! Identifiers of other schemes in resolver-independent links: `doi/10.1087/20110107` (D35).

use std::collections::BTreeMap;
use std::str::FromStr;

use ibi_protocol::untrusted_text::quote_untrusted;

/// Maximum length of a proxy URL, in bytes.
const MAX_PROXY_BYTES: usize = 1024;

/// A foreign identifier scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForeignScheme {
    /// `doi/10.…`
    Doi,
    /// `hdl/…`
    Handle,
    /// `ark:…`
    Ark,
}

impl ForeignScheme {
    const ALL: [Self; 3] = [Self::Doi, Self::Handle, Self::Ark];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Doi => "doi",
            Self::Handle => "hdl",
            Self::Ark => "ark",
        }
    }

    /// The scheme of a path, and the identifier as its proxy expects it: an ARK with its `ark:`,
    /// others without.
    pub fn of_path(path: &str) -> Option<(Self, &str)> {
        let path = path.trim_start_matches('/');
        let after = |start: &str| {
            let (head, rest) = path.split_at_checked(start.len())?;
            (head.eq_ignore_ascii_case(start) && !rest.is_empty()).then_some(rest)
        };
        match () {
            () if after("ark:").is_some() => Some((Self::Ark, path)),
            () => [Self::Doi, Self::Handle].into_iter().find_map(|scheme| {
                let (slash, colon) = (format!("{}/", scheme.name()), format!("{}:", scheme.name()));
                Some((scheme, after(&slash).or_else(|| after(&colon))?))
            }),
        }
    }
}

/// One proxy in the operator's notation: `doi=https://doi.org/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemeProxy {
    scheme: ForeignScheme,
    base: String,
}

impl FromStr for SchemeProxy {
    type Err = SchemeProxyError;

    fn from_str(text: &str) -> Result<Self, SchemeProxyError> {
        let wrong = || SchemeProxyError { given: quote_untrusted(text) };
        let (name, base) = text.split_once('=').ok_or_else(wrong)?;
        let scheme = ForeignScheme::ALL.into_iter().find(|scheme| scheme.name() == name).ok_or_else(wrong)?;
        let host =
            base.strip_prefix("http://").or_else(|| base.strip_prefix("https://")).ok_or_else(wrong)?;
        let is_plain =
            |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '@' | '\\' | '"' | '<' | '>');
        if host.is_empty()
            || host.starts_with('/')
            || !host.chars().all(is_plain)
            || base.len() > MAX_PROXY_BYTES
        {
            return Err(wrong());
        }
        Ok(Self { scheme, base: base.trim_end_matches('/').to_owned() })
    }
}

/// Not a valid proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` names no proxy: write doi, hdl or ark, `=`, and an http or https URL, as in doi=https://doi.org/"
)]
pub struct SchemeProxyError {
    given: String,
}

/// The configured proxies. The last one set for a scheme wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemeProxies(BTreeMap<ForeignScheme, String>);

impl FromIterator<SchemeProxy> for SchemeProxies {
    fn from_iter<I: IntoIterator<Item = SchemeProxy>>(proxies: I) -> Self {
        Self(proxies.into_iter().map(|SchemeProxy { scheme, base }| (scheme, base)).collect())
    }
}

impl SchemeProxies {
    /// The redirect target of an identifier, with the query unchanged.
    pub fn location(&self, scheme: ForeignScheme, identifier: &str, query: Option<&str>) -> Option<String> {
        let base = self.0.get(&scheme)?;
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        Some(format!("{base}/{identifier}{query}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clause_d35_identifiers_of_other_schemes_are_known_by_their_beginning() {
        for (path, scheme, identifier) in [
            ("/doi/10.1087/20110107", ForeignScheme::Doi, "10.1087/20110107"),
            ("/doi:10.1087/20110107", ForeignScheme::Doi, "10.1087/20110107"),
            ("/hdl/2027/x", ForeignScheme::Handle, "2027/x"),
            ("/ark:/12148/btv1", ForeignScheme::Ark, "ark:/12148/btv1"),
            ("/ark:12148/btv1", ForeignScheme::Ark, "ark:12148/btv1"),
        ] {
            assert_eq!(ForeignScheme::of_path(path), Some((scheme, identifier)), "{path}");
        }
        for path in ["/", "/doi/", "/doi", "/ark:", "/dois/x", "/x/doi/10.1", "/é"] {
            assert_eq!(ForeignScheme::of_path(path), None, "{path}");
        }
    }

    #[test]
    fn clause_d35_they_go_to_the_proxy_that_the_operator_sets() {
        let proxies: SchemeProxies = ["doi=https://doi.org/", "ark=https://n2t.net"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let doi = proxies.location(ForeignScheme::Doi, "10.1087/20110107", Some("a=1"));
        assert_eq!(doi.unwrap(), "https://doi.org/10.1087/20110107?a=1");
        let ark = proxies.location(ForeignScheme::Ark, "ark:/12148/btv1", None);
        assert_eq!(ark.unwrap(), "https://n2t.net/ark:/12148/btv1");
        assert_eq!(proxies.location(ForeignScheme::Handle, "2027/x", None), None);
        for wrong in [
            "doi",
            "doi=",
            "urn=http://a.br/",
            "doi=ftp://a.br",
            "doi=http://",
            "doi=http://u@a.br/",
            "doi=http://a.br/?x",
        ] {
            assert!(wrong.parse::<SchemeProxy>().is_err(), "{wrong}");
        }
    }
}
