use proptest::prelude::*;

use super::*;

const TEST_CHECKSUM: &str = "d41d8cd98f00b204e9800998ecf8427e";
const OTHER_CHECKSUM: &str = "D41D8CD98F00B204E9800998ECF8427F";
const PAYLOAD_MANIFEST: ManifestName =
    ManifestName { kind: ManifestKind::Payload, algorithm: ChecksumAlgorithm::Md5 };
const TAG_MANIFEST: ManifestName =
    ManifestName { kind: ManifestKind::Tag, algorithm: ChecksumAlgorithm::Md5 };

fn declared(text: &str) -> Result<BagVersion, String> {
    BagVersion::of_declaration(text).map_err(|error| error.to_string())
}

fn path(line: &str, version: BagVersion) -> (String, Option<String>) {
    let manifest = PAYLOAD_MANIFEST.read(&format!("{TEST_CHECKSUM}  {line}"), version).unwrap();
    let [entry] = manifest.entries.try_into().unwrap();
    (entry.path, entry.otherwise)
}

fn refused(manifest: ManifestName, line: &str) -> String {
    manifest.read(line, BagVersion::V1_0).unwrap_err().to_string()
}

#[test]
fn rfc_8493_2_1_1_the_declaration_has_version_and_encoding() {
    for version in [BagVersion::V0_97, BagVersion::V1_0] {
        assert_eq!(declared(version.declaration()), Ok(version));
        assert_eq!(declared(&version.declaration().replace('\n', "\r\n")), Ok(version));
        assert_eq!(declared(version.declaration().trim()), Ok(version));
    }
    assert_eq!(
        declared("BagIt-version : 0.97\rTag-File-Character-Encoding:\tutf-8\r"),
        Ok(BagVersion::V0_97)
    );
    let (first, second) = ("BagIt-Version: 1.0\n", "Tag-File-Character-Encoding: UTF-8\n");
    for wrong in [
        "",
        first,
        second,
        &format!("{second}{first}"),
        &format!("{first}{second}Extra: 1\n"),
        "BagIt-Version : 1.0\nTag-File-Character-Encoding : UTF-8\n",
        "BagIt-Version 1.0\nTag-File-Character-Encoding: UTF-8\n",
    ] {
        assert!(
            declared(wrong).unwrap_err().starts_with("bagit.txt is not right: it has to have two lines"),
            "{wrong}"
        );
    }
    assert!(declared(&format!("\u{feff}{first}{second}")).unwrap_err().contains("byte order mark"));
}

#[test]
fn other_versions_and_encodings_are_refused_by_name() {
    let old = declared("BagIt-Version: 0.96\nTag-File-Character-Encoding: UTF-8").unwrap_err();
    assert!(old.starts_with("bagit.txt says version `0.96`: bags of 0.97 and 1.0 can be read"), "{old}");
    let latin = declared("BagIt-Version: 1.0\nTag-File-Character-Encoding: ISO-8859-1").unwrap_err();
    assert!(latin.contains("in `ISO-8859-1`: only UTF-8 can be read. Convert"), "{latin}");
}

#[test]
fn a_manifest_is_known_by_its_name() {
    for algorithm in ["md5", "sha1", "sha256", "sha512"] {
        for name in [format!("manifest-{algorithm}.txt"), format!("tagmanifest-{algorithm}.txt")] {
            assert_eq!(ManifestName::of_file(&name).unwrap().unwrap().to_string(), name);
        }
    }
    for name in ["bagit.txt", "bag-info.txt", "manifest.txt", "manifest-md5", "my-manifest-md5.txt", ""] {
        assert_eq!(ManifestName::of_file(name), Ok(None), "{name}");
    }
    let error = ManifestName::of_file("manifest-sha3.txt").unwrap_err().to_string();
    assert!(
        error.starts_with("`manifest-sha3.txt` cannot be checked: md5, sha1, sha256 and sha512"),
        "{error}"
    );
}

#[test]
fn rfc_8493_2_1_3_a_manifest_has_a_checksum_and_a_path_a_line() {
    let text = format!(
        "\u{feff}{TEST_CHECKSUM} data/a b \r\n\r\n# made by hand\n{OTHER_CHECKSUM}\t *data/*c\r{TEST_CHECKSUM}  ./data/é"
    );
    let manifest = PAYLOAD_MANIFEST.read(&text, BagVersion::V1_0).unwrap();
    let entries: Vec<_> = manifest.entries.iter().map(|entry| (&*entry.checksum, &*entry.path)).collect();
    assert_eq!(
        entries,
        [
            (TEST_CHECKSUM, "data/a b "),
            (&OTHER_CHECKSUM.to_lowercase(), "data/*c"),
            (TEST_CHECKSUM, "data/é")
        ]
    );
    assert_eq!(manifest.starred, Some(4), "the user is to be warned of it");
}

#[test]
fn rfc_8493_2_1_3_line_breaks_and_percent_signs_are_encoded_in_1_0_and_nothing_in_0_97() {
    for (written, in_1_0, in_0_97) in [
        ("data/a%0Ab%0d%0a", "data/a\nb\r\n", "data/a%0Ab%0d%0a"),
        ("data/100%25", "data/100%", "data/100%25"),
        ("data/%250A", "data/%0A", "data/%250A"),
        ("data/%2525", "data/%25", "data/%2525"),
        ("data/%7E%", "data/%7E%", "data/%7E%"),
        ("data/%é%0", "data/%é%0", "data/%é%0"),
    ] {
        assert_eq!(path(written, BagVersion::V1_0).0, in_1_0);
        assert_eq!(path(written, BagVersion::V0_97).0, in_0_97);
    }
}

#[test]
fn a_path_of_a_program_that_encodes_in_its_own_way_has_a_second_reading() {
    let second = |written, version| path(written, version).1;
    assert_eq!(second("data/100%25", BagVersion::V1_0).unwrap(), "data/100%25", "1.0 without encoding");
    assert_eq!(second("data/a%0Ab%25", BagVersion::V0_97).unwrap(), "data/a\nb%25", "0.97 of bagit of PyPI");
    assert_eq!(second("data/100%", BagVersion::V1_0), None);
    assert_eq!(second("data/100%25", BagVersion::V0_97), None);
}

#[test]
fn rfc_8493_5_1_paths_that_lead_out_of_the_bag_are_refused() {
    for path in [
        "/etc/passwd",
        "../x",
        "data/../../x",
        "data/..",
        "~/x",
        "~root/x",
        "data//x",
        "data/",
        "data/./x",
        "C:\\x",
        "c:/x",
        "\\\\?\\C:\\x",
        "\\x",
        "data/a\\..\\..\\x",
        "data/\0",
        "bagit.txt",
        "data",
        "DATA/x",
        "././data/x",
        "**data/x",
    ] {
        let error = refused(PAYLOAD_MANIFEST, &format!("{TEST_CHECKSUM} {path}\n"));
        assert!(error.starts_with("manifest-md5.txt, line 1: the path `"), "{path}: {error}");
        assert!(error.ends_with(". Ask the creator of the bag for a corrected one"), "{error}");
    }
    for path in ["data/x", "tagmanifest-md5.txt", "/bagit.txt", "a/../../x"] {
        assert!(refused(TAG_MANIFEST, &format!("{TEST_CHECKSUM} {path}")).contains("is refused"), "{path}");
    }
    for path in ["bagit.txt", "manifest-md5.txt", "metadata/oai_dc.xml", "database"] {
        assert!(TAG_MANIFEST.read(&format!("{TEST_CHECKSUM} {path}"), BagVersion::V1_0).is_ok(), "{path}");
    }
    for path in ["data/~x", "data/...", "data/..x", "data/a\\b", "data/c:x", "data/#", "data/ x"] {
        assert!(
            PAYLOAD_MANIFEST.read(&format!("{TEST_CHECKSUM} {path}"), BagVersion::V1_0).is_ok(),
            "{path}"
        );
    }
}

#[test]
fn a_line_that_is_no_checksum_of_the_algorithm_is_refused() {
    for line in [
        "data/x",
        TEST_CHECKSUM,
        &format!("{TEST_CHECKSUM}0 data/x"),
        &format!("\\{TEST_CHECKSUM} data/x"),
        "g41d8cd98f00b204e9800998ecf8427e data/x",
    ] {
        let error = refused(PAYLOAD_MANIFEST, &format!("{TEST_CHECKSUM} data/1\n{line}"));
        assert!(
            error.contains("line 2: `") && error.contains("is not a checksum of 32 hexadecimal digits"),
            "{error}"
        );
    }
}

#[test]
fn a_path_stands_in_a_manifest_once_but_0_97_may_repeat_itself() {
    let (same, other) = (
        format!("{TEST_CHECKSUM} data/x\n{TEST_CHECKSUM} ./data/x"),
        format!("{TEST_CHECKSUM} data/x\n{OTHER_CHECKSUM} data/x"),
    );
    assert!(refused(PAYLOAD_MANIFEST, &same).contains("line 2: duplicate path `data/x`"));
    assert_eq!(PAYLOAD_MANIFEST.read(&same, BagVersion::V0_97).unwrap().entries.len(), 1);
    assert!(
        PAYLOAD_MANIFEST.read(&other, BagVersion::V0_97).is_err()
            && PAYLOAD_MANIFEST.read(&other, BagVersion::V1_0).is_err()
    );
}

#[test]
fn manifests_are_written_as_their_version_has_it() {
    let entries = [(TEST_CHECKSUM, "data/a b"), (TEST_CHECKSUM, "data/100%\n")];
    assert_eq!(
        PAYLOAD_MANIFEST.write(BagVersion::V1_0, entries).unwrap(),
        format!("{TEST_CHECKSUM}  data/a b\n{TEST_CHECKSUM}  data/100%25%0A\n")
    );
    let error = PAYLOAD_MANIFEST.write(BagVersion::V0_97, entries).unwrap_err().to_string();
    assert!(
        error.contains("`data/100%\\n` is refused: a manifest of this version has no way to write it"),
        "{error}"
    );
    for (manifest, path) in [
        (PAYLOAD_MANIFEST, "x"),
        (PAYLOAD_MANIFEST, "./data/x"),
        (TAG_MANIFEST, "*x"),
        (TAG_MANIFEST, " x"),
        (TAG_MANIFEST, "data/x"),
    ] {
        assert!(manifest.write(BagVersion::V1_0, [(TEST_CHECKSUM, path)]).is_err(), "{path}");
    }
    assert!(PAYLOAD_MANIFEST.write(BagVersion::V1_0, [("d41d", "data/x")]).is_err());
}

/// What `bagit` 1.9.0 of PyPI reports for bags with one file of each name, as written here.
/// Recorded from its output; valid until its behaviour changes.
#[test]
fn the_version_is_the_one_that_bagit_of_pypi_validates() {
    use BagVersion::{V0_97, V1_0};
    for (name, validates) in [
        ("a b", &[V1_0, V0_97][..]),
        (" a", &[V1_0, V0_97]),
        ("São.txt", &[V1_0, V0_97]),
        ("Sa\u{303}o.txt", &[V1_0, V0_97]),
        ("*a", &[V1_0, V0_97]),
        ("#a", &[V1_0, V0_97]),
        ("~a", &[V1_0, V0_97]),
        ("a\\b", &[V1_0, V0_97]),
        ("a\tb", &[V1_0, V0_97]),
        ("a\u{1f}b", &[V1_0, V0_97]),
        ("a\u{200b}", &[V1_0, V0_97]),
        ("100% done", &[V0_97]),
        ("a%25b", &[V0_97]),
        ("a%20b", &[V0_97]),
        ("a%0ab", &[V0_97]),
        ("a\nb", &[V1_0]),
        ("a\r\nb\r\n", &[V1_0]),
        ("a\n", &[V1_0]),
        ("a \n", &[V1_0]),
        ("a\nb\nc\nd", &[]),
        ("100%\nb", &[]),
        ("a%0Ab", &[]),
        ("a%0Db", &[]),
        ("a ", &[]),
        ("a\t", &[]),
        ("a\u{a0}", &[]),
        ("a\u{3000}", &[]),
        ("a\u{1f}", &[]),
        ("a\u{b}b", &[]),
        ("a\u{1c}b", &[]),
        ("a\u{85}b", &[]),
        ("a\u{2028}b", &[]),
    ] {
        let path = format!("data/{name}");
        for version in [V0_97, V1_0] {
            assert_eq!(version.suits_pypi(&path), validates.contains(&version), "{name:?} as {version}");
        }
        let best = BagVersion::best_for([path.as_str(), "data/plain"].into_iter());
        assert_eq!(best, if validates == [V0_97] { V0_97 } else { V1_0 }, "{name:?}");
    }
    assert_eq!(BagVersion::best_for(["data/100%", "data/a\nb"].into_iter()), V1_0, "no version has both");
    assert_eq!(BagVersion::best_for(std::iter::empty()), V1_0);
}

#[test]
fn rfc_8493_2_2_2_bag_info_has_labels_and_values_of_several_lines() {
    let text = "Source-Organization: FOO University\r\nExternal-Description: Images from the\r\n      FOO papers\r\n\tand more\r\n\
                Test-Tag   :  5: 6\r\n\r\nEmpty:\r\n";
    let pairs = read_info(text).unwrap();
    let expected = [
        ("Source-Organization", "FOO University"),
        ("External-Description", "Images from the\nFOO papers\nand more"),
        ("Test-Tag", "5: 6"),
        ("Empty", ""),
    ];
    assert_eq!(pairs, expected.map(|(label, value)| (label.to_owned(), value.to_owned())));
    for wrong in ["no colon", ": no label"] {
        let error = read_info(&format!("\n{wrong}")).unwrap_err().to_string();
        assert!(error.starts_with(&format!("bag-info.txt, line 2: `{wrong}` has no label")), "{error}");
    }
}

#[test]
fn lines_of_values_are_indented_so_that_no_reader_takes_them_for_labels() {
    let text = write_info([("A", "1\r\n\r\nB: 2\u{2028}C: 3\u{85}D: 4"), ("Payload-Oxum", "5.1")]).unwrap();
    assert_eq!(text, "A: 1\n  B: 2\n  C: 3\n  D: 4\nPayload-Oxum: 5.1\n");
    for label in ["", " A", "A ", "A:B", "A\nB", "A\u{2028}B"] {
        assert!(matches!(write_info([(label, "1")]), Err(BagError::Label { .. })), "{label:?}");
    }
    assert!(write_info([("A", " \n ")]).unwrap_err().to_string().starts_with("the value of A is empty"));
}

#[test]
fn an_oxum_is_bytes_and_files() {
    let oxum = PayloadOxum { bytes: 279_164_409_832, files: 1198 };
    assert_eq!((oxum.to_string().as_str(), "279164409832.1198".parse()), ("279164409832.1198", Ok(oxum)));
    for wrong in ["", "1", "1.", ".1", "+1.1", "1.1.1", "1.-1", "99999999999999999999.1", "1. 1"] {
        assert!(
            wrong.parse::<PayloadOxum>().unwrap_err().to_string().contains("is not a Payload-Oxum"),
            "{wrong}"
        );
    }
}

fn a_path() -> impl Strategy<Value = String> {
    let part = prop_oneof!["[^/\\\\\0]{1,12}", "[%02ADad5\n\r *#.~]{1,10}"];
    prop::collection::vec(part, 1..4).prop_map(|parts| format!("data/{}", parts.join("/")))
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(paths in prop::collection::btree_set(a_path(), 0..8)) {
        let proper = |path: &&String| path.split('/').all(|part| !matches!(part, "." | ".."));
        let paths: Vec<&str> = paths.iter().filter(proper).map(String::as_str).collect();
        let version = BagVersion::best_for(paths.iter().copied());
        let text = PAYLOAD_MANIFEST.write(version, paths.iter().map(|path| (TEST_CHECKSUM, *path))).unwrap();
        let manifest = PAYLOAD_MANIFEST.read(&text, version).unwrap();
        prop_assert_eq!(manifest.entries.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), paths);
        prop_assert_eq!(manifest.starred, None);
    }

    #[test]
    fn no_path_that_is_read_leads_out_of_the_bag(
        path in prop_oneof![any::<String>(), "(\\./)?(data)?([/\\\\.~*%C:a ]|%2[fFeE5]|%0[aAdD]){0,12}"],
        version in prop::sample::select(vec![BagVersion::V0_97, BagVersion::V1_0]),
    ) {
        for name in [PAYLOAD_MANIFEST, TAG_MANIFEST] {
            let Ok(manifest) = name.read(&format!("{TEST_CHECKSUM}  {path}"), version) else { continue };
            for entry in manifest.entries {
                for path in [Some(entry.path), entry.otherwise].into_iter().flatten() {
                    use std::path::{Component, Path};
                    let path = Path::new(&path);
                    prop_assert!(path.components().all(|part| matches!(part, Component::Normal(_))), "{:?}", path);
                    prop_assert_eq!(path.starts_with("data"), name == PAYLOAD_MANIFEST || path == "data");
                }
            }
        }
    }

    #[test]
    fn bag_info_is_read_as_it_was_written(
        pairs in prop::collection::vec(("[!-9;-~]([ !-9;-~]{0,8}[!-9;-~])?", "(\\PC|[\n\r\t\u{b}\u{85}\u{2028}:]){0,30}"), 0..6),
    ) {
        let given = pairs.iter().map(|(label, value)| (label.as_str(), value.as_str()));
        let Ok(text) = write_info(given) else {
            prop_assert!(pairs.iter().any(|(_, value)| value.trim().is_empty()));
            return Ok(());
        };
        let read = read_info(&text).unwrap();
        let words = |pairs: &[(String, String)]| pairs.iter()
            .map(|(label, value)| (label.clone(), value.split_whitespace().map(String::from).collect()))
            .collect::<Vec<(String, Vec<String>)>>();
        prop_assert_eq!(words(&read), words(&pairs));
        prop_assert_eq!(write_info(read.iter().map(|(label, value)| (label.as_str(), value.as_str()))).unwrap(), text);
    }

    #[test]
    fn any_text_is_read_or_an_error(text in any::<String>(), bytes in any::<Vec<u8>>()) {
        for text in [&*text, &*String::from_utf8_lossy(&bytes), &*format!("{TEST_CHECKSUM} {text}")] {
            let _ = BagVersion::of_declaration(text);
            let _ = read_info(text);
            let _ = text.parse::<PayloadOxum>();
            let _ = ManifestName::of_file(text);
            for version in [BagVersion::V0_97, BagVersion::V1_0] {
                let _ = PAYLOAD_MANIFEST.read(text, version);
                let _ = TAG_MANIFEST.read(text, version);
            }
        }
    }
}
