//! File names: any bytes round-trip, and names on disk suit every filesystem.

use std::collections::HashSet;

use ibi_store::ocfl::{ContentNames, MAX_NAME_BYTES, OcflNameError, decode_logical_path, logical_path};
use proptest::prelude::*;

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(1_u8..=255, 1..40)
        .prop_filter("a name", |name| !name.contains(&b'/') && name != b"." && name != b"..")
}

proptest! {
    #[test]
    fn any_bytes_round_trip(parts in prop::collection::vec(name(), 1..5)) {
        let path = parts.join(&b'/');
        let text = logical_path(&path).unwrap();
        prop_assert_eq!(decode_logical_path(&text), path);
        prop_assert!(!text.chars().any(char::is_control));
        prop_assert!(text.split('/').all(|part| !matches!(part, "" | "." | "..")));
    }

    #[test]
    fn reading_never_panics(text in ".*") {
        decode_logical_path(&text);
    }

    /// Names on disk always differ by more than case or composition, and none is too long or
    /// reserved.
    #[test]
    fn names_on_disk_suit_every_filesystem(paths in prop::collection::hash_set("doc/[aA%éE\u{301}:. ]{1,6}(/[aAb]{1,2})?", 1..20)) {
        let mut names = ContentNames::default();
        let mut seen = HashSet::new();
        for path in paths {
            if path.split('/').any(|part| part.is_empty() || part.trim_matches('.').is_empty()) {
                continue;
            }
            let name = names.name(&path);
            prop_assert!(name.starts_with("doc/"));
            prop_assert!(!name.contains([':', '<', '>', '"', '|', '?', '*', '\\']), "{}", name);
            prop_assert!(name.split('/').all(|part| part.len() <= MAX_NAME_BYTES && !part.ends_with(['.', ' '])));
            use unicode_normalization::UnicodeNormalization as _;
            let folded: String = name.nfc().flat_map(char::to_lowercase).collect();
            prop_assert!(seen.insert(folded), "{} twice", name);
        }
    }
}

#[test]
fn path_traversal_is_refused() {
    for (path, error) in [
        (&b"a/../b"[..], OcflNameError::Dots),
        (b"..", OcflNameError::Dots),
        (b"./a", OcflNameError::Dots),
        (b"/etc/passwd", OcflNameError::Empty),
        (b"a//b", OcflNameError::Empty),
        (b"a/", OcflNameError::Empty),
        (b"", OcflNameError::Empty),
        (b"a\0b", OcflNameError::Nul),
    ] {
        assert_eq!(logical_path(path), Err(error), "{}", path.escape_ascii());
    }
    assert_eq!(logical_path(&[b'a'; 256]), Err(OcflNameError::Long));
    assert!(logical_path(&[b'a'; 255]).is_ok());
    assert_eq!(logical_path(&vec![b'/'; 3000]), Err(OcflNameError::Long));
}

#[test]
fn examples_of_encoded_names() {
    assert_eq!(logical_path("relatório final.pdf".as_bytes()).unwrap(), "relatório final.pdf");
    assert_eq!(logical_path(b"relat\xf3rio.pdf").unwrap(), "relat%F3rio.pdf");
    assert_eq!(logical_path(b"100%\n.txt").unwrap(), "100%25%0A.txt");
    let mut names = ContentNames::default();
    assert_eq!(names.name("doc/Read me.txt"), "doc/Read me.txt");
    assert_eq!(names.name("doc/sub/CON.txt"), "doc/%~fe2d1a75cf766e861df30f982a868a13");
    assert!(names.name("doc/read ME.txt").starts_with("doc/%~"), "a twin but for case");
    assert!(names.name("doc/read me.txt/x").starts_with("doc/%~"), "a folder that is the twin of a file");
}
