//! The description of the API.

use super::*;
use crate::web::RESOLVER_API_PATHS;

/// The description that programs were written against: it changes knowingly or not at all.
const FROZEN: &str = "e6eb3f130b16d951409d0b32f91a08e22cd37bd163cc9a62c7d1e6f140a291a2";

#[test]
fn the_description_is_frozen() {
    assert_eq!(ibi_http::secret::digest(OPENAPI_JSON), FROZEN, "the API has changed: is that meant?");
}

/// Whoever serves an Archive at the same address leaves all of these to the resolver.
#[test]
fn what_is_described_is_where_the_resolver_is_asked() {
    let description: serde_json::Value = serde_json::from_str(OPENAPI_JSON).unwrap();
    let paths: Vec<&String> = description["paths"].as_object().unwrap().keys().collect();
    let is_below = |path: &str, place: &str| path == place || path.starts_with(&format!("{place}/"));
    for path in &paths {
        assert!(
            *path == "/openapi.json" || RESOLVER_API_PATHS.iter().any(|place| is_below(path, place)),
            "{path}"
        );
    }
    assert!(RESOLVER_API_PATHS.iter().all(|place| paths.iter().any(|path| is_below(path, place))));
}

#[test]
fn a_flag_is_true_or_false() {
    let flags = [None, Some(""), Some("all=false"), Some("a=1&all=true"), Some("all=")];
    let read = flags.map(|query| flag(query, "all").map_err(|problem| problem.status().as_u16()));
    assert_eq!(read, [Ok(false), Ok(false), Ok(false), Ok(true), Err(400)]);
}
