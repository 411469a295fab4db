//! Pages that cost more than they should.

use super::*;

#[test]
fn a_label_holds_a_bounded_number_of_items_of_one_archive() {
    let (_folder, index) = open();
    let crowd = (0..1000).map(|number| record(&format!("item{number}"), &[ITEM], State::Original)).collect();
    assert!(index.apply(ArchiveId(1), &page("1", crowd), NOW).unwrap().is_unfit);
    let aliased = LocationRecord {
        aliases: vec![OPAQUE.to_owned(); 1000],
        ..record("a", &["a.br/b/2009/02.16.17.46"], State::Original)
    };
    assert!(index.apply(ArchiveId(2), &page("1", vec![aliased]), NOW).unwrap().is_unfit);
    for label in [ITEM, OPAQUE] {
        let found = index.find(&query(label, "")).unwrap();
        assert!((1..=64).contains(&found.entries.len()), "{}", found.entries.len());
    }
    // Others are not affected.
    assert!(
        !index
            .apply(ArchiveId(3), &page("1", vec![record(ITEM, &[ITEM], State::Copy)]), NOW)
            .unwrap()
            .is_unfit
    );
    assert!(matches!(reply(&index, 3, &query(ITEM, "")), IndexReply::Answer(_)));
}

#[test]
fn a_record_is_bounded_in_every_member() {
    let plain = || record(ITEM, &[ITEM], State::Original);
    let many = |text: &str| vec![text.to_owned(); 1200];
    let translation =
        |labels| ibi_protocol::location::LocationTranslation { language: None, labels, removed: false };
    let large = [
        LocationRecord { data_time: "2".repeat(1 << 20), ..plain() },
        LocationRecord { metadata_time: Some("2".repeat(1 << 20)), ..plain() },
        LocationRecord { inventories: many("one"), ..plain() },
        LocationRecord { inventories: vec!["1".repeat(1000)], ..plain() },
        LocationRecord { next_edition: many(ITEM), ..plain() },
        LocationRecord { next_edition: vec!["a".repeat(1 << 20)], ..plain() },
        LocationRecord { translations: vec![translation(many(ITEM))], ..plain() },
        LocationRecord { translations: vec![translation(Vec::new()); 1200], ..plain() },
        LocationRecord { files: Some(many("a")), ..plain() },
        LocationRecord { files: Some(vec!["a".repeat(9000)]), ..plain() },
        LocationRecord { target: LocationTarget::File("a".repeat(9000)), ..plain() },
        LocationRecord { aliases: many(ITEM), ..plain() },
    ];
    for (at, record) in large.into_iter().enumerate() {
        let (_folder, index) = open();
        assert!(index.apply(ArchiveId(1), &page("1", vec![record]), NOW).unwrap().is_unfit, "{at}");
        assert_eq!(index.label_count().unwrap(), 0, "{at}");
    }
    let (_folder, index) = open();
    assert!(!index.apply(ArchiveId(1), &page("1", vec![plain()]), NOW).unwrap().is_unfit);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_feed_that_is_silent_already() {
    let (_folder, index) = open();
    index.confirm(ArchiveId(1), Instant::now(), false);
    tokio::time::advance(MAX_INDEX_AGE + Duration::from_secs(1)).await;
    let begun = Instant::now();
    index.sync().await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    index.confirm(ArchiveId(1), Instant::now(), false);
    tokio::time::advance(Duration::from_secs(1)).await;
    let begun = Instant::now();
    index.sync().await;
    assert!(begun.elapsed() >= SYNC_TIMEOUT, "it may still answer");
}
