//! What is read from files that this software wrote, and somebody may have changed, and documents
//! of other Archives. Nothing panics, and what passes its checks comes back when it is written.
//!
//! The first byte says which.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use ibi_archive::access::AddressRange;
use ibi_archive::item::ItemDescription;
use ibi_archive::links::trust::trusted_archives;
use ibi_archive::replica::object_description::ObjectDescription;
use ibi_archive::replication::messages::TransferMessage;
use ibi_archive::replication::trusted_givers::TrustedGiver;
use ibi_archive::service::open_tokens;
use ibi_http::ServerTls;
use ibi_http::rate::{RatePolicy, RateQuota};
use ibi_resolver::registry::{Registry, ResolverSettings};
use ibi_store::digests::hex;
use ibi_store::journal::{Journal, JournalPosition, JournalScan, JournalScanPart};
use ibi_store::journal_salvage::salvage;
use ibi_store::{FileMarkStorage, minter_settings, settings};
use sha2::Digest as _;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();
static REGISTRY: OnceLock<Registry> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind {
        b'I' => {
            let Ok(item) = serde_json::from_slice::<ItemDescription>(bytes) else { return };
            let written = serde_json::to_vec(&item).expect("texts and numbers");
            let again: ItemDescription = serde_json::from_slice(&written).expect("what was written");
            assert_eq!(serde_json::to_vec(&again).expect("likewise"), written, "item.json comes back");
        }
        b'H' => {
            let Ok(held) = serde_json::from_slice::<ObjectDescription>(bytes) else { return };
            if held.check().is_ok() {
                assert!(held.files.keys().all(|path| !path.split('/').any(|part| part == "..")));
                held.files.keys().for_each(|path| drop(held.embedded_file(path)));
            }
        }
        b'O' => {
            let Ok(message) = serde_json::from_slice::<TransferMessage>(bytes) else { return };
            if message.check().is_ok() {
                assert!((1..=64).contains(&message.terms.handover.len()), "bounded");
                assert!(message.from.len() <= 300 && message.by.len() <= 200, "bounded");
            }
        }
        b'M' => {
            write("minter/state", bytes);
            let _ = FileMarkStorage::read_current(folder());
        }
        b'G' => {
            write("minter/settings", bytes);
            let _ = minter_settings::granularity(folder());
        }
        b'S' => {
            write("archive", bytes);
            let _ = settings::read(folder());
        }
        b'T' => {
            write("service/tokens.json", bytes);
            let tokens = open_tokens(folder());
            if tokens.list().is_ok() {
                let _ = tokens.find_by_secret("ibi_nothing");
            }
        }
        b'Q' => {
            // Rules of quotas, as a file has them: one a line.
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
                let _ =
                    (name.parse::<RatePolicy>(), value.parse::<RateQuota>(), value.parse::<AddressRange>());
            }
        }
        b'L' => {
            write("service/trusted_archives-archives", bytes);
            write("service/trusted_archives-givers", bytes);
            let _ = (trusted_archives(folder()), TrustedGiver::all(folder()));
        }
        b'C' => {
            write("cert.pem", bytes);
            let path = folder().join("cert.pem");
            let _ = ServerTls::read(&path, &path);
        }
        b'P' => salvaged(bytes),
        b'R' => {
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            let registry = REGISTRY.get_or_init(|| {
                let service = "8JMKD3MGP8W/35MMLL8".parse().expect("a label");
                let settings = ResolverSettings { public_url: "http://resolver.test".to_owned(), service };
                std::fs::create_dir_all(folder().join("registry")).expect("room");
                Registry::create(&folder().join("registry"), &settings).expect("a registry")
            });
            if registry.import(text).is_ok() {
                let written = registry.export().expect("it can be read");
                registry.import(&written).expect("what was written");
                assert_eq!(registry.export().expect("likewise"), written, "a registry comes back");
            }
        }
        _ => {}
    }
});

/// A journal of these lines, in which a line that begins with `+` gets the right checksum: what can
/// be read is found in order, and a salvage leaves a whole journal with all of it.
fn salvaged(bytes: &[u8]) {
    let mut text = b"ibi journal, format 4\n".to_vec();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match line {
            [b'+', line @ ..] => {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                let sum = hex(&sha2::Sha256::digest(line));
                text.extend([line, b" sha256=", &sum.as_bytes()[..16], b"\n"].concat());
            }
            damaged => text.extend(damaged),
        }
    }
    write("journal", &text);
    let (mut last, mut lines) = (0, 0);
    let mut scan = JournalScan::new(folder()).expect("it is there");
    while let Some(part) = scan.next_part().expect("it can be read") {
        match part {
            JournalScanPart::Line { number, .. } => {
                assert!(number > last, "lines are in order");
                (last, lines) = (number, lines + 1);
            }
            JournalScanPart::Damage { first, next, .. } => {
                assert!(first > last && next.is_none_or(|next| next >= first), "where lines are missing");
            }
            JournalScanPart::Torn => {}
        }
    }
    // A number may say that very many lines are missing: that is refused, or takes long.
    if last > 1000 {
        return;
    }
    let Ok(found) = salvage(folder(), None, None) else { return };
    if let Some(found) = found {
        found.install(&folder().join("journal.damaged")).expect("room for a file");
        std::fs::remove_file(folder().join("journal.damaged")).expect("it was put there");
    }
    let mut whole = 0;
    let read = Journal::read(folder(), JournalPosition::START, &mut |_| {
        whole += 1;
        Ok(())
    });
    assert!(read.is_ok() && whole >= lines, "{whole} of {lines} lines are left");
}

/// In memory where there is such a place.
fn folder() -> &'static PathBuf {
    FOLDER.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let folder = place.join(format!("ibi-fuzz-files-{}", std::process::id()));
        for below in ["minter", "service"] {
            std::fs::create_dir_all(folder.join(below)).expect("room for a folder");
        }
        folder
    })
}

fn write(name: &str, bytes: &[u8]) {
    std::fs::write(folder().join(name), bytes).expect("room for a file");
}
