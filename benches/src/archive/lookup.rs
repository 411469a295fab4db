//! Looking up an item by any of its labels, among a million: beside a bare point select of SQLite.

use std::fs;
use std::time::Instant;

use ibi_archive::opening;
use ibi_store::SqliteIndex;
use ibi_store::index::{FileRecord, IndexRecord, IndexStorage as _, IndexedItem, LabelRecord, LabelRole};
use ibi_store::journal::{JournalPosition, State};

use crate::archive::{Place, judge, median, settle};

pub(crate) const ITEMS: u64 = 1_000_000;
const LOOKUPS: u64 = 100_000;
const TURNS: usize = 5;

pub(super) fn compare(place: &Place) -> bool {
    place.init();
    let data = place.path("data");
    fill_archive(place);
    settle();
    let bare = bare(place, 300);
    let mut select = bare.prepare("SELECT value FROM bare WHERE key = ?1").expect("a table");
    let (holdings, _) = opening::open_to_read(&data).expect("an Archive");
    let mut chance = 1_u64;
    let mut next = || {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % ITEMS
    };
    let mut ratios = Vec::new();
    let (mut ours, mut theirs) = (0.0, 0.0);
    for turn in 0..=TURNS {
        let start = Instant::now();
        for _ in 0..LOOKUPS {
            let key = rep(next());
            std::hint::black_box(select.query_row([key], |row| row.get::<_, String>(0)).expect("a row"));
        }
        theirs = start.elapsed().as_secs_f64();
        let start = Instant::now();
        for lookup in 0..LOOKUPS {
            let number = next();
            let label = match lookup % 5 {
                0 => rep(number),
                1 => ibip(number),
                2 => metadata(number),
                3 => alias(number),
                // Another spelling: no folded one is found.
                _ => rep(number).replacen("/b/", "/b@80/", 1),
            };
            std::hint::black_box(holdings.find(&label).expect("an item"));
        }
        ours = start.elapsed().as_secs_f64();
        // The first turn is for the caches.
        if turn > 0 {
            ratios.push(theirs / ours);
        }
    }
    let memory = resident();
    let details = format!(
        "1,000,000 items: {:.1} µs a lookup, bare select {:.1} µs; {memory} MB resident",
        ours * 1e6 / LOOKUPS as f64,
        theirs * 1e6 / LOOKUPS as f64
    );
    let fast = judge("lookup", median(ratios), 1.0 / 3.0, &details);
    if memory >= 100 {
        println!("lookup         {memory} MB, bar 100: MISSED");
    }
    fast && memory < 100
}

pub(crate) fn rep(number: u64) -> String {
    format!("lookup.test/b/2026/01.02.03.04.05.{number:06}1")
}

fn ibip(number: u64) -> String {
    ibi_id::IbipPrefix::new("150.163.34.243".parse().expect("an address"), None)
        .label(ibi_id::Instant::new(1_500_000_000 + number as i64, 0).expect("a time"))
        .expect("after 1995")
}

fn metadata(number: u64) -> String {
    format!("lookup.test/b/2026/01.02.03.04.06.{number:06}1")
}

fn alias(number: u64) -> String {
    format!("alias.test/b/2026/01.02.03.04.05.{number:06}1")
}

fn item(number: u64, item: &str, dc: &str) -> IndexedItem {
    let path = rep(number);
    let label = |text: String, role| {
        let folded = text.to_ascii_lowercase();
        LabelRecord { canonical: folded.clone(), folded, role }
    };
    let properties = item
        .replace("ITEM-REP", &path)
        .replace("ITEM-IBIP", &ibip(number))
        .replace("META-REP", &metadata(number))
        .replace("ALIAS", &alias(number));
    IndexedItem {
        record: IndexRecord {
            path: path.clone(),
            change: number + 10,
            version: 1,
            inventory: "0".repeat(32),
            state: State::Original,
            epoch: 1,
            properties,
            metadata: dc.replace("TITLE", &format!("The title of item {number}")),
        },
        labels: vec![
            label(path, LabelRole::Item),
            label(ibip(number), LabelRole::Item),
            label(metadata(number), LabelRole::Metadata),
            label(alias(number), LabelRole::Alias),
        ],
        links: Vec::new(),
        files: vec![FileRecord {
            name: "report.pdf".to_owned(),
            content: "v1/content/doc/report.pdf".to_owned(),
            size: 1000,
            sha512: "0".repeat(128),
            media: "application/pdf".to_owned(),
            blocks: vec![0; 32],
        }],
    }
}

/// Puts a million items into the index of the Archive that is there.
pub(crate) fn fill_archive(place: &Place) {
    let index = place.path("data/index.sqlite");
    let index = SqliteIndex::open(&index).expect("an index");
    let position = index.position().expect("an index");
    let service = index.list("", 1).expect("an index").pop().expect("the service");
    drop(index);
    fill(place, position, service);
}

fn fill(place: &Place, position: JournalPosition, service: IndexRecord) {
    let fresh = place.path("data/staging/fresh");
    let index = SqliteIndex::create_for_bulk_load(&fresh).expect("room for an index");
    let properties = r#"{"format":1,"rep":"ITEM-REP","ibip":"ITEM-IBIP","aliases":["ALIAS"],"metadata":{"rep":"META-REP"},"transferable":true,"created":"2026-01-02T03:04:05Z","updated":"2026-01-02T03:04:05Z","language":"en","target":"report.pdf","access":"public"}"#;
    let dc = r#"[{"element":"title","value":"TITLE"},{"element":"creator","value":"Doe, J."}]"#;
    index.begin().expect("a transaction");
    let labels = [service.path.clone()].map(|folded| LabelRecord {
        canonical: folded.clone(),
        folded,
        role: LabelRole::Item,
    });
    index
        .put_item(&IndexedItem {
            record: service,
            labels: labels.to_vec(),
            links: Vec::new(),
            files: Vec::new(),
        })
        .expect("room for a record");
    for number in 0..ITEMS {
        index.put_item(&item(number, properties, dc)).expect("room for a record");
    }
    index.commit(position).expect("a commit");
    drop(index);
    SqliteIndex::replace_index(&fresh, &place.path("data/index.sqlite")).expect("in its place");
}

/// A table of the same size with nothing but a key and a value.
pub(crate) fn bare(place: &Place, body: usize) -> rusqlite::Connection {
    let path = place.path("bare.sqlite");
    let _ = fs::remove_file(&path);
    let mut bare = rusqlite::Connection::open(path).expect("room for a database");
    bare.execute_batch(
        "PRAGMA journal_mode = wal; CREATE TABLE bare (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    )
    .expect("a table");
    let transaction = bare.transaction().expect("a transaction");
    {
        let mut insert = transaction.prepare("INSERT INTO bare VALUES (?1, ?2)").expect("a table");
        let value = "x".repeat(body);
        for number in 0..ITEMS {
            insert.execute([rep(number), value.clone()]).expect("room for a row");
        }
    }
    transaction.commit().expect("a commit");
    bare
}

/// Megabytes of this process that are its own, not files that the system keeps in memory.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(u64::MAX) / 1000
}
