//! Who keeps the readers when a feed claims another Archive's item (4.4).

use super::*;

/// Of a prefix that no Archive here has.
const IMPORTED: &str = "old.org.br/archive/1999/02.03.04.05";
const HOUR: i64 = 3600;
/// Its service has the prefix of [`ITEM`]; the others' do not.
const OWNER: u64 = 1;
const TAKER: u64 = 2;
const LIAR: u64 = 3;

struct ClaimedIndex {
    _folder: tempfile::TempDir,
    index: LocationIndex,
    archives: Vec<RegisteredArchive>,
    pages: u32,
}

impl ClaimedIndex {
    fn new() -> Self {
        let (folder, index) = open();
        let services = ["library.org.br/archive", "taker.org.br/archive", "liar.org.br/archive"];
        let of = |(service, id)| RegisteredArchive {
            service: format!("{service}/2026/11.16.08.00").parse().unwrap(),
            ..archive(id)
        };
        let archives: Vec<RegisteredArchive> = services.into_iter().zip(1..).map(of).collect();
        index.set_registered(archives.iter().cloned().map(Arc::new).collect());
        Self { _folder: folder, index, archives, pages: 0 }
    }

    fn apply(&mut self, id: u64, now: i64, records: Vec<LocationRecord>) -> AppliedPage {
        self.pages += 1;
        self.index.apply(ArchiveId(id), &page(&self.pages.to_string(), records), now).unwrap()
    }

    fn claim(&mut self, id: u64, now: i64, label: &str, state: State) {
        self.apply(id, now, vec![record(label, &[label], state)]);
    }

    fn restart(&mut self, id: u64, now: i64) {
        let page = LocationPage { restart: true, ..page("0", Vec::new()) };
        self.index.apply(ArchiveId(id), &page, now).unwrap();
    }

    /// The Archives for which the index offers the item as Original.
    fn holders(&self, label: &str) -> Vec<u64> {
        let query = query(label, "");
        let offers = |archive: &&RegisteredArchive| {
            let found = self.index.find(&query).unwrap();
            let reply = self.index.reply(&found, archive, &query).unwrap();
            matches!(reply, IndexReply::Answer(pairs) if pairs.get("state") == Some("Original"))
        };
        self.archives.iter().filter(offers).map(|archive| archive.id.0).collect()
    }

    fn located(&self, label: &str) -> Option<u64> {
        let found = self.index.locate(&label.parse::<Label>().unwrap()).unwrap();
        found.map(|found| found.archive.0)
    }
}

#[test]
fn clause_4_4_a_claim_before_the_archive_that_gives_the_label_gains_nothing() {
    let mut index = ClaimedIndex::new();
    index.claim(LIAR, NOW, ITEM, State::Original);
    index.claim(OWNER, NOW + HOUR, ITEM, State::Original);
    let holders = index.holders(ITEM);
    assert_eq!(holders, [OWNER, LIAR], "both are seen, and the prefix decides");
    // Of a label without an owner, the first claim counts.
    index.claim(TAKER, NOW, IMPORTED, State::Original);
    index.claim(LIAR, NOW + HOUR, IMPORTED, State::Original);
    assert_eq!(index.holders(IMPORTED), [TAKER]);
}

#[test]
fn clause_4_4_an_item_that_takes_up_a_label_of_another_does_not_bring_its_age() {
    let mut index = ClaimedIndex::new();
    let own = "liar.org.br/archive/2026/11.16.08.07";
    index.claim(LIAR, NOW, own, State::Original);
    index.claim(TAKER, NOW + HOUR, IMPORTED, State::Original);
    let both = record(own, &[own, IMPORTED], State::Original);
    let applied = index.apply(LIAR, NOW + 2 * HOUR, vec![both]);
    assert_eq!(applied.disputed, [IMPORTED]);
    assert_eq!(index.holders(IMPORTED), [TAKER]);
    assert_eq!(index.located(own), Some(LIAR));
}

#[test]
fn clause_4_4_a_holder_that_starts_anew_does_not_leave_its_readers_to_a_late_claim() {
    let mut index = ClaimedIndex::new();
    index.claim(TAKER, NOW, IMPORTED, State::Original);
    index.claim(LIAR, NOW + HOUR, IMPORTED, State::Original);
    index.restart(TAKER, NOW + 2 * HOUR);
    assert_eq!(index.holders(IMPORTED), [] as [u64; 0], "the holder is asked meanwhile");
    assert_eq!(index.located(IMPORTED), None);
    index.claim(TAKER, NOW + 2 * HOUR + 5, IMPORTED, State::Original);
    assert_eq!(index.holders(IMPORTED), [TAKER]);
    // The liar starts anew, too: its claim is a new one.
    index.restart(LIAR, NOW + 3 * HOUR);
    index.claim(LIAR, NOW + 3 * HOUR, IMPORTED, State::Original);
    assert_eq!(index.holders(IMPORTED), [TAKER]);
}

#[test]
fn clause_4_4_the_taker_gets_the_readers_whoever_claimed_the_item_before() {
    // In both orders in which two feeds may be read.
    for taker_first in [true, false] {
        let mut index = ClaimedIndex::new();
        index.claim(OWNER, NOW, ITEM, State::Original);
        index.claim(LIAR, NOW + HOUR, ITEM, State::Original);
        let handed_over = NOW + 2 * HOUR;
        if taker_first {
            index.claim(TAKER, handed_over, ITEM, State::Original);
            index.claim(OWNER, handed_over + 1, ITEM, State::Copy);
            assert_eq!(index.holders(ITEM), [TAKER]);
        } else {
            index.claim(OWNER, handed_over, ITEM, State::Copy);
            index.claim(TAKER, handed_over + 1, ITEM, State::Original);
            assert!(index.holders(ITEM).contains(&TAKER), "4.3 decides, with an alert");
        }
    }
}

/// A hand-over after which the giver keeps nothing: its feed may only say that the item is gone.
#[test]
fn clause_4_4_the_taker_gets_the_readers_when_the_giver_keeps_nothing() {
    let mut index = ClaimedIndex::new();
    index.claim(OWNER, NOW, ITEM, State::Original);
    index.claim(TAKER, NOW + HOUR, ITEM, State::Original);
    assert_eq!(index.holders(ITEM), [OWNER]);
    let gone = LocationPage { gone: vec![ITEM.to_owned()], ..page("9", Vec::new()) };
    index.index.apply(ArchiveId(OWNER), &gone, NOW + HOUR + 1).unwrap();
    assert_eq!(index.holders(ITEM), [TAKER]);
    assert_eq!(index.located(ITEM), Some(TAKER));
}

#[test]
fn clause_4_4_a_restored_archive_does_not_take_back_what_it_handed_over() {
    let mut index = ClaimedIndex::new();
    index.claim(OWNER, NOW, ITEM, State::Original);
    index.claim(TAKER, NOW + HOUR, ITEM, State::Original);
    assert_eq!(index.holders(ITEM), [OWNER], "nothing says yet that it was handed over");
    // The giver was away for long after it had granted it.
    index.claim(OWNER, NOW + 3 * HOUR, ITEM, State::Copy);
    assert_eq!(index.holders(ITEM), [TAKER]);
    index.restart(OWNER, NOW + 9 * HOUR);
    index.claim(OWNER, NOW + 9 * HOUR, ITEM, State::Original);
    assert_eq!(index.holders(ITEM), [TAKER]);
}
