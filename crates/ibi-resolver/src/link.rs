//! Persistent URLs as people paste them, with or without the address of a resolver.

/// The path and query of a persistent URL, from its `/`, whichever resolver it names.
pub fn path_and_query(url: &str) -> String {
    let url = url.trim();
    let rest = ["http://", "https://"].into_iter().find_map(|scheme| {
        let (start, rest) = url.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    });
    let path = match rest {
        None => url,
        // A host without a path asks for nothing.
        Some(rest) => rest.find(['/', '?']).map_or("", |at| &rest[at..]),
    };
    format!("/{}", path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_url_is_as_good_as_its_path() {
        for url in [
            "8JMKD3MGP8W/34PGRBS!?a=1",
            "/8JMKD3MGP8W/34PGRBS!?a=1",
            "http://urlib.net/8JMKD3MGP8W/34PGRBS!?a=1",
            "HTTPS://urlib.net:80//8JMKD3MGP8W/34PGRBS!?a=1",
        ] {
            assert_eq!(path_and_query(url), "/8JMKD3MGP8W/34PGRBS!?a=1", "{url}");
        }
        assert_eq!(path_and_query("http://urlib.net"), "/");
        assert_eq!(path_and_query("http://urlib.net?a=/b"), "/?a=/b");
        assert_eq!(path_and_query("é"), "/é");
    }
}
