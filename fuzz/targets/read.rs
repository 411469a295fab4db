//! What strangers hand to an Archive: metadata, bags, rules, names, inventories. Nothing panics, and what is read can be
//! written and read again.
#![no_main]

use ibi_archive::access::Access;
use ibi_archive::bag::{Algorithm, Kind, ManifestName, Version, read_info, write_info};
use ibi_archive::dublin_core::DublinCore;
use ibi_archive::language::Language;
use ibi_store::ocfl::{Inventory, logical, raw};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(name) = logical(bytes) {
        assert_eq!(raw(&name), bytes, "a name comes back");
    }
    if let Ok(inventory) = Inventory::parse(bytes) {
        assert_eq!(Inventory::parse(&inventory.to_bytes()).as_ref(), Ok(&inventory));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(record) = DublinCore::parse(text) {
        assert_eq!(DublinCore::from_xml(&record.to_xml()).ok(), Some(record), "a record comes back");
    }
    if let Ok(access) = text.parse::<Access>() {
        assert_eq!(access.to_string().parse::<Access>().ok(), Some(access));
    }
    if let Ok(language) = text.parse::<Language>() {
        assert_eq!(language.to_string().parse::<Language>().ok(), Some(language));
    }
    let _ = Version::of_declaration(text);
    for version in [Version::V0_97, Version::V1_0] {
        let name = ManifestName { kind: Kind::Payload, algorithm: Algorithm::Md5 };
        if let Ok(manifest) = name.read(text, version) {
            assert!(manifest.entries.iter().all(|entry| entry.path.starts_with("data/")));
            assert!(manifest.entries.iter().all(|entry| !entry.path.split('/').any(|part| part == "..")));
        }
    }
    if let Ok(pairs) = read_info(text) {
        let _ = write_info(pairs.iter().map(|(label, value)| (label.as_str(), value.as_str())));
    }
});
