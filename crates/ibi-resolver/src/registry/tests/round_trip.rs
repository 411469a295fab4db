//! An export is imported unchanged.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn a_row() -> impl Strategy<Value = ArchiveRow> {
    let standing = prop::sample::select(&["new", "unconfirmed", "online", "offline", "retired"][..]);
    let address = "[a-zA-Z][a-z0-9_-]{0,10}(\\.[a-z]{1,5}){0,3}(:[1-9][0-9]{0,3})?";
    let hosts = prop::collection::vec(address, 0..4);
    let email = prop::option::of("[!-~äç@]{1,5}@[!-~]{1,50}");
    let times = (0..4_000_000_000_i64, 0..4_000_000_000_i64);
    (1..28_u8, "[a-z]{1,5}", standing, prop::option::of(address), hosts, email, times).prop_map(
        |(day, name, standing, address, hosts, email, (registered, changed))| {
            let service = label(&format!("{name}.br/{name}@80/2009/02.{day:02}.17.46"));
            let needs = matches!(standing, "unconfirmed" | "online");
            ArchiveRow {
                key_hash: HASH.to_owned(),
                address: address.or_else(|| needs.then(|| "a.br".to_owned())),
                hosts,
                standing: standing.to_owned(),
                registered,
                changed,
                email,
                ..rows::new_row(&service, 0)
            }
        },
    )
}

proptest! {
    #[test]
    fn text(rows in prop::collection::vec(a_row(), 0..6)) {
        let rows: BTreeMap<String, ArchiveRow> = rows.into_iter().map(|row| (row.canonical.clone(), row)).collect();
        let rows: Vec<ArchiveRow> = rows.into_values().collect();
        let written = text::write(&rows);
        prop_assert_eq!(text::read(&written).unwrap(), rows);
    }

    #[test]
    fn whatever_is_read_does_no_harm(text in "\\PC*", lines in prop::collection::vec("(archive|key|host|changed|#)? ?\\PC{0,20}", 0..9)) {
        let _ = text::read(&text);
        let _ = text::read(&format!("ibi registry, format 1\n{}", lines.join("\n")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn registries(rows in prop::collection::vec(a_row(), 0..6)) {
        let rows: BTreeMap<String, ArchiveRow> = rows.into_iter().map(|row| (row.canonical.clone(), row)).collect();
        let text = text::write(&rows.into_values().collect::<Vec<_>>());
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, other] = folders.each_ref().map(|folder| Registry::create(folder.path(), &settings()).unwrap());
        one.import(&text).unwrap();
        prop_assert_eq!(&one.export().unwrap(), &text);
        other.import(&text).unwrap();
        prop_assert_eq!(one.archives(), other.archives());
        let again = other.import(&text).unwrap();
        prop_assert_eq!((again.added, again.replaced), (0, 0));
    }
}
