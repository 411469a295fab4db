//! The location feed: a stable format between resolvers and Archives
//! (`docs/formats/location-feed.md`).

use ibi_protocol::location::{LocationPage, LocationTarget};

const FROZEN: &str = include_str!("../samples/location-page-1.json");

/// Frozen: Archives and resolvers of different versions talk to each other.
#[test]
fn a_page_is_read_and_written_as_ever() {
    let page: LocationPage = serde_json::from_str(FROZEN).unwrap();
    assert_eq!(serde_json::to_string(&page).unwrap(), FROZEN.trim_end());
    let [record] = &page.records[..] else { panic!("{page:?}") };
    assert_eq!(record.target, LocationTarget::File("report%201.pdf".to_owned()));
    assert_eq!(record.target_path().0, format!("/col/{}/doc/report%201.pdf", record.path));
    assert!(!record.ask && !page.ask && !page.restart, "left out where they are false");
    assert!(!record.next_edition.is_empty() && !record.translations.is_empty());
}

/// What a later version adds does not stop an older resolver.
#[test]
fn unknown_members_are_skipped() {
    let later = FROZEN.replace("\"epoch\":1", "\"epoch\":1,\"later\":{\"x\":[1]}");
    assert_ne!(later, FROZEN);
    let page: LocationPage = serde_json::from_str(&later).unwrap();
    assert_eq!(page, serde_json::from_str(FROZEN).unwrap());
}
