//! What strangers hand to an Archive: metadata, bags, rules, names, inventories. Nothing panics,
//! and what is read can be written and read again.
#![no_main]

use std::path::PathBuf;

use ibi_archive::access::AccessRule;
use ibi_archive::bag::{BagVersion, ChecksumAlgorithm, ManifestKind, ManifestName, read_info, write_info};
use ibi_archive::dublin_core::DublinCore;
use ibi_archive::import::read_record;
use ibi_archive::language::Language;
use ibi_archive::replica::object_validation::{self, HistoryComparison};
use ibi_archive::robots_txt::RobotsTxt;
use ibi_archive::table::DepositTable;
use ibi_archive::target_url::TargetUrl;
use ibi_id::Label;
use ibi_store::digests::hex;
use ibi_store::journal::{Journal, JournalLine, JournalPosition};
use ibi_store::ocfl::{CompactInventory, Inventory, decode_logical_path, logical_path};
use sha2::Digest as _;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // What is read from files only: the first byte says of which kind. Files are slow, so others go
    // without.
    match bytes {
        [b'J', line @ ..] => return journal(line),
        [b'T', table @ ..] => return drop(DepositTable::open(&file("table.csv", table))),
        [b'W', inventories @ ..] => return whole(inventories),
        _ => {}
    }
    if let Ok(name) = logical_path(bytes) {
        assert_eq!(decode_logical_path(&name), bytes, "a name comes back");
    }
    if let Ok(compact) = CompactInventory::parse(bytes) {
        for version in compact.versions() {
            compact.state(version).filter_map(|(_, id)| id).for_each(|id| drop(compact.digest(id)));
        }
    }
    let is_inventory = Inventory::parse(bytes).is_ok();
    assert_eq!(CompactInventory::parse(bytes).is_ok(), is_inventory, "two readers of one format");
    if let Ok(inventory) = Inventory::parse(bytes) {
        assert_eq!(Inventory::parse(&inventory.to_bytes()).as_ref(), Ok(&inventory));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(record) = DublinCore::parse(text) {
        assert_eq!(DublinCore::from_xml(&record.to_xml()).ok(), Some(record), "a record comes back");
    }
    const OWN: &str = "a.br/b/2001/01.01.00.00";
    if let Some(found) = read_record(OWN, text) {
        let own = Label::parse(OWN).expect("a label");
        assert!(!found.names.is_empty());
        for name in &found.names {
            assert!(Label::parse(name).expect("a label") != own, "a metadata repository is not its own");
        }
    }
    if let Ok(access) = text.parse::<AccessRule>() {
        assert_eq!(access.to_string().parse::<AccessRule>().ok(), Some(access));
    }
    if let Ok(language) = text.parse::<Language>() {
        assert_eq!(language.to_string().parse::<Language>().ok(), Some(language));
    }
    if let Ok(url) = text.parse::<TargetUrl>() {
        assert!(url.as_str().bytes().all(|byte| byte.is_ascii_graphic()), "it can stand in a header");
        assert!(!url.authority().contains('@'), "nobody's password");
        let led = url.with_query("a=b");
        assert_eq!(
            led.parse::<TargetUrl>().map(|led| led.server()).ok(),
            (led.len() <= 2048).then(|| url.server())
        );
        assert_eq!(url.to_string().parse::<TargetUrl>().ok(), Some(url));
    }
    // A robots.txt, then what is asked for.
    if let Some((robots, path)) = text.rsplit_once('\n') {
        let robots = RobotsTxt::parse(robots.as_bytes());
        assert_eq!(robots.allows("IBI", path), robots.allows("ibi", path), "names have no case");
    }
    let _ = BagVersion::of_declaration(text);
    for version in [BagVersion::V0_97, BagVersion::V1_0] {
        let name = ManifestName { kind: ManifestKind::Payload, algorithm: ChecksumAlgorithm::Md5 };
        if let Ok(manifest) = name.read(text, version) {
            assert!(manifest.entries.iter().all(|entry| entry.path.starts_with("data/")));
            assert!(manifest.entries.iter().all(|entry| !entry.path.split('/').any(|part| part == "..")));
        }
    }
    if let Ok(pairs) = read_info(text) {
        let _ = write_info(pairs.iter().map(|(label, value)| (label.as_str(), value.as_str())));
    }
});

/// Inventories as another Archive tells them, with a zero byte between them: what is one whole
/// object can be laid in the tree.
fn whole(bytes: &[u8]) {
    let inventories: Vec<Vec<u8>> = bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    let Ok(last) = object_validation::validate_object("test/a/2026/01.01.00.00", &inventories) else {
        return;
    };
    let paths = last.manifest.values().flatten();
    assert!(paths.clone().all(|path| path.starts_with('v') && !path.split('/').any(|part| matches!(part, "" | "." | ".."))));
    for number in 1..=last.head_number() {
        let older = object_validation::inventory_at(&last, number);
        let expected =
            if number == last.head_number() { HistoryComparison::Equal } else { HistoryComparison::Behind };
        assert_eq!(object_validation::compare_inventories(&older, &last), expected);
    }
}

/// A journal of this line, with the right checksum if the bytes have none: what is read has a
/// number, and is whole.
fn journal(line: &[u8]) {
    let Ok(text) = std::str::from_utf8(line) else { return };
    let sum = hex(&sha2::Sha256::digest(text.as_bytes()));
    let whole = format!("ibi journal, format 1\n{text} sha256={}\n{text}", &sum[..16]);
    let folder = file("journal", whole.as_bytes()).parent().expect("a folder").to_owned();
    let mut entries = Vec::new();
    let read = Journal::read(&folder, JournalPosition::START, &mut |told| {
        entries.push(told);
        Ok(())
    });
    if let (Ok(reading), [JournalLine::Entry(entry), ..]) = (read, &entries[..]) {
        assert_eq!((entry.change, reading.end.next), (1, 2), "lines are numbered");
    }
}

/// A file of these bytes, in memory where there is such a place.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = place.join(format!("ibi-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("room for a folder");
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("room for a file");
    path
}
