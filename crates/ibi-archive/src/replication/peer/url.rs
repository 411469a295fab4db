//! Parses the URL of another Archive.

use std::net::Ipv6Addr;

use http::Uri;

/// Accepts a URL with a host and an optional port, and nothing else.
pub(super) fn parse_base_url(url: &str) -> Result<String, &'static str> {
    let parsed: Uri = url.parse().map_err(|_| "it cannot be read as a URL")?;
    let scheme = parsed.scheme_str().filter(|scheme| ["http", "https"].contains(scheme));
    let scheme = scheme.ok_or("it begins with neither http:// nor https://")?;
    let authority = parsed.authority().ok_or("it has no host")?;
    if authority.as_str().contains('@') {
        return Err("it contains a user name: pass the token separately");
    }
    let host = authority.host();
    let port = authority.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)),
    };
    if host.is_empty() || !is_host || authority.as_str() != format!("{host}{port}") {
        return Err("its host or port cannot be read");
    }
    if parsed.path() != "/" || parsed.query().is_some() || url.contains(['?', '#']) {
        return Err("it has more than a host and a port");
    }
    Ok(format!("{scheme}://{}{port}", host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_a_host_and_maybe_a_port() {
        for (given, url) in [
            ("http://a.example", "http://a.example"),
            ("https://A.example/", "https://a.example"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080/", "http://[::1]:8080"),
            ("http://archive_1:8080", "http://archive_1:8080"),
        ] {
            assert_eq!(parse_base_url(given).as_deref(), Ok(url));
        }
        for bad in [
            "",
            "a.example",
            "ftp://a.example",
            "http://",
            "http://a.example/x",
            "http://a.example/?x",
            "http://a.example?",
            "http://a.example#x",
            "http://u@a.example",
            "http://u:p@a.example",
            "http://a.example:",
            "http://a.example:99999",
            "http:// a",
            "http://0*",
            "http://a!b;c",
            "http://%61.example",
            "http://[::g]",
            "http://[v1.a]",
            "/",
            "http://a.example//",
        ] {
            assert!(parse_base_url(bad).is_err(), "{bad}");
        }
    }
}
