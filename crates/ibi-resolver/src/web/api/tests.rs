//! The description of the API.

use super::*;
use crate::web::RESOLVER_API_PATHS;

/// The description that programs were written against: it changes knowingly or not at all.
const FROZEN: &str = "0133daad7a2788ba8eaf4b7efc3a41a602b61361d03e58c75a88a0143e303f55";

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
