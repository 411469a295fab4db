//! The steps of a hand-over at two real Archives, without a network: each durable, each once, each
//! only when it may be (clause 2.1); and what comes from another Archive, compared with what is
//! here.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ibi_archive::custody::TransferGiver;
use ibi_archive::rebuild::rebuild;
use ibi_archive::replica::ReplicaComparison;
use ibi_archive::replica::original_witness::SourceStanding;
use ibi_archive::replica::replica_object::{ReplicaBytes, ReplicaObject};
use ibi_archive::replication::messages::{TransferMessage, TransferReply, TransferStatus};
use ibi_archive::replication::outgoing_transfer::OutgoingTransfer;
use ibi_archive::store::State;
use ibi_archive::transfer_protocol::{TakerAction, TransferDenied, TransferTerms};
use ibi_archive::{Archive, ArchiveError, ItemChanges};

use crate::ours::{Ours, answers, deposit, titled};

const HANDOVER: &str = "5f0c1b7a5f0c1b7a5f0c1b7a5f0c1b7a";

fn with_item(ours: &Ours) -> (Archive, String) {
    let mut archive = ours.init();
    let path = ours.files(&BTreeMap::from([("a.txt".to_owned(), b"one".to_vec())]));
    let label = deposit(&mut archive, &path, titled("first")).unwrap();
    (archive, label)
}

/// What another Archive would fetch of an item, from the tree itself.
pub(crate) fn brought(archive: &Archive, label: &str) -> ReplicaObject {
    let (holding, _) = archive.holdings().find(label).unwrap();
    let object = archive.holdings().data().join("tree").join(&holding.path);
    let inventory = archive.holdings().inventory(&holding.path).unwrap().unwrap();
    let versions = 1..=inventory.head_number();
    let read = |version| fs::read(object.join(format!("v{version}/inventory.json"))).unwrap();
    let files =
        inventory.manifest.values().flatten().map(|file| (file.clone(), ReplicaBytes::At(object.join(file))));
    let links = archive.holdings().link_list(&holding.item, false).unwrap();
    let mut item = holding.item;
    item.files =
        serde_json::from_slice::<ibi_archive::item::ItemDescription>(&described(&object, &inventory))
            .unwrap()
            .files;
    ReplicaObject {
        source: "http://giver.test".to_owned(),
        state: holding.state,
        epoch: holding.epoch,
        believed: false,
        standing: match holding.state {
            State::Original => SourceStanding::Witness,
            State::Copy | State::Deleted => SourceStanding::Unproven,
        },
        history: Vec::new(),
        links,
        inventories: versions.map(read).collect(),
        files: files.collect(),
        inventory,
        item,
        metadata: holding.metadata.clone(),
        overwrite: false,
        word: false,
        only_tombstone: false,
        mends: false,
        turn: None,
    }
}

fn described(object: &Path, inventory: &ibi_store::ocfl::Inventory) -> Vec<u8> {
    let (_, _, place) = inventory.files().find(|(name, ..)| *name == "item.json").unwrap();
    fs::read(object.join(place.unwrap())).unwrap()
}

pub(crate) fn bring(archive: &mut Archive, brought: &ReplicaObject) -> bool {
    let Some(change) = archive.prepare_replica(brought, "tester").unwrap() else { return false };
    archive.commit(vec![change]).pop().unwrap().unwrap();
    true
}

fn state(archive: &Archive, label: &str) -> (State, u64) {
    let (holding, _) = archive.holdings().find(label).unwrap();
    (holding.state, holding.epoch)
}

pub(crate) fn same_after_rebuilding(ours: &Ours, archive: Archive) -> Archive {
    let before = answers(archive.holdings());
    drop(archive);
    let rebuilt = rebuild(&ours.data(), "tester", &|_| ()).unwrap();
    assert!(
        rebuilt.adopted.is_empty() && rebuilt.missing.is_empty() && rebuilt.damaged.is_empty(),
        "{rebuilt:?}"
    );
    let (archive, _) = ours.open();
    assert_eq!(answers(archive.holdings()), before);
    archive
}

#[test]
fn an_original_goes_over_in_four_steps_and_comes_back() {
    let (here, there) = (Ours::new(), Ours::new());
    let (mut giver, label) = with_item(&here);
    let mut taker = there.init();
    let from = TransferGiver { url: "http://giver.test", by: "Ana", past: None, links: Vec::new() };
    let (holding, terms) = giver.holdings().transfer_terms(&label, HANDOVER.to_owned()).unwrap();
    assert_eq!(terms.epoch, 2);
    assert_eq!(taker.accept(&label, &terms, &from).unwrap(), TakerAction::Fetch, "nothing is there");
    assert!(bring(&mut taker, &brought(&giver, &label)));
    assert_eq!(state(&taker, &label), (State::Copy, 1));
    assert!(fs::exists(there.data().join("tree").join(&holding.path)).unwrap(), "at the same path");
    giver.grant(&label, &terms, "http://taker.test", "Ana").unwrap();
    giver.grant(&label, &terms, "http://taker.test", "Ana").unwrap();
    assert_eq!(
        (state(&giver, &label), state(&taker, &label)),
        ((State::Copy, 2), (State::Copy, 1)),
        "for a moment both are copies"
    );
    for refused in [
        giver.declare_original(&label, "Ana"),
        giver.drop_copy(&label, "Ana", None),
        giver.holdings().transfer_terms(&label, "another".to_owned()).map(drop),
        giver.prepare_removal(&label, "a reason", "Ana", false).map(drop),
    ] {
        assert!(matches!(refused, Err(ArchiveError::Granted { .. })), "no one-sided way back: {refused:?}");
    }
    let mut giver = same_after_rebuilding(&here, giver);
    assert_eq!(taker.accept(&label, &terms, &from).unwrap(), TakerAction::Accepted);
    assert_eq!(
        taker.accept(&label, &terms, &from).unwrap(),
        TakerAction::Accepted,
        "as often as it is granted"
    );
    assert_eq!(state(&taker, &label), (State::Original, 2));
    giver.complete_transfer(&label, HANDOVER, "http://taker.test", "Ana").unwrap();
    giver.complete_transfer(&label, HANDOVER, "http://taker.test", "Ana").unwrap();
    assert_eq!(giver.holdings().replica_source(&holding.path).unwrap().as_deref(), Some("http://taker.test"));
    giver.drop_copy(&label, "Ana", None).unwrap();
    assert!(matches!(giver.holdings().find(&label), Err(ArchiveError::Dropped { to: Some(_), .. })));
    let (mut giver, mut taker) = (same_after_rebuilding(&here, giver), same_after_rebuilding(&there, taker));
    // And back again; the first grant, late, is nothing new.
    let (_, back) = taker.holdings().transfer_terms(&label, "back".to_owned()).unwrap();
    assert!(bring(&mut giver, &brought(&taker, &label)));
    taker.grant(&label, &back, "http://giver.test", "Ana").unwrap();
    assert_eq!(giver.accept(&label, &back, &from).unwrap(), TakerAction::Accepted);
    assert_eq!(taker.accept(&label, &terms, &from).unwrap(), TakerAction::Accepted);
    assert_eq!((state(&giver, &label), state(&taker, &label)), ((State::Original, 3), (State::Copy, 3)));
}

#[test]
fn what_may_not_go_does_not() {
    let ours = Ours::new();
    let (mut archive, label) = with_item(&ours);
    let service = archive.holdings().settings().service.primary().to_owned();
    let refused =
        |archive: &Archive, label: &str| match archive.holdings().transfer_terms(label, "x".to_owned()) {
            Err(ArchiveError::NoHandover { no, .. }) => no,
            other => panic!("{other:?}"),
        };
    assert_eq!(refused(&archive, &service), TransferDenied::NonTransferable);
    // Changed since it was offered.
    let (_, terms) = archive.holdings().transfer_terms(&label, HANDOVER.to_owned()).unwrap();
    let changes = ItemChanges { statements: vec!["title=second".parse().unwrap()], ..ItemChanges::default() };
    let change = archive.prepare_update(&label, None, changes, "tester", &|_| ()).unwrap().unwrap();
    archive.commit(vec![change]).pop().unwrap().unwrap();
    let late = archive.grant(&label, &terms, "http://taker.test", "Ana");
    assert!(matches!(late, Err(ArchiveError::NoHandover { no: TransferDenied::Changed, .. })), "{late:?}");
    assert_eq!(state(&archive, &label).0, State::Original);
    // What is the Original, or was removed, is not taken from others.
    let from = TransferGiver { url: "http://giver.test", by: "Eve", past: None, links: Vec::new() };
    let grant = |epoch| TransferTerms { handover: "eve".to_owned(), epoch, inventory: "0".repeat(32) };
    let own = archive.accept(&label, &grant(9), &from);
    assert!(matches!(own, Err(ArchiveError::NoHandover { no: TransferDenied::IsOriginal, .. })), "{own:?}");
    let removal = archive.prepare_removal(&label, "a reason", "tester", false).unwrap();
    archive.commit(vec![removal]).pop().unwrap().unwrap();
    let gone = archive.accept(&label, &grant(9), &from);
    assert!(matches!(gone, Err(ArchiveError::NoHandover { no: TransferDenied::Removed, .. })), "{gone:?}");
    assert_eq!(refused(&archive, &label), TransferDenied::Removed);
}

#[test]
fn the_operators_word_brings_the_original_back_when_the_taker_is_gone() {
    let ours = Ours::new();
    let (mut archive, label) = with_item(&ours);
    assert!(archive.reclaim_original(&label, "Ana").is_err(), "there is no taker");
    let (_, terms) = archive.holdings().transfer_terms(&label, HANDOVER.to_owned()).unwrap();
    archive.grant(&label, &terms, "http://taker.test", "Ana").unwrap();
    archive.reclaim_original(&label, "Ana").unwrap();
    assert_eq!(state(&archive, &label), (State::Original, 3), "in an epoch after the one that was granted");
    same_after_rebuilding(&ours, archive);
}

#[test]
fn copies_follow_their_original_and_nothing_altered_is_overwritten() {
    let (here, there) = (Ours::new(), Ours::new());
    let (mut original, label) = with_item(&here);
    let mut holder = there.init();
    assert!(bring(&mut holder, &brought(&original, &label)));
    assert!(!bring(&mut holder, &brought(&original, &label)), "equal");
    let update = |archive: &mut Archive, title: &str| {
        let changes = ItemChanges {
            statements: vec![format!("title={title}").parse().unwrap()],
            ..ItemChanges::default()
        };
        let change = archive.prepare_update(&label, None, changes, "tester", &|_| ()).unwrap().unwrap();
        archive.commit(vec![change]).pop().unwrap().unwrap();
    };
    update(&mut original, "second");
    let second = brought(&original, &label);
    assert!(bring(&mut holder, &second), "behind");
    let tree = |ours: &Ours, archive: &Archive| {
        let path = archive.holdings().find(&label).unwrap().0.path;
        ours.data().join("tree").join(path)
    };
    let trees = [tree(&here, &original), tree(&there, &holder)];
    let compared = std::process::Command::new("diff").arg("-r").args(trees).status().unwrap();
    assert!(compared.success(), "byte-equal at all holders (clause 2.3)");
    // Declared the Original by mistake, both go on: neither is what the other one is, and neither
    // is overwritten.
    holder.declare_original(&label, "tester").unwrap();
    assert!(!bring(&mut holder, &brought(&original, &label)), "the Original is here");
    update(&mut holder, "other");
    update(&mut original, "third");
    assert!(
        !bring(&mut original, &brought(&holder, &label)),
        "another epoch, another course: the Original is here"
    );
    // A third Archive has a copy of one course: the other one is neither earlier nor later.
    let third = Ours::new();
    let mut copy = third.init();
    assert!(bring(&mut copy, &brought(&original, &label)));
    let other = ReplicaObject { epoch: 1, ..brought(&holder, &label) };
    assert!(!bring(&mut copy, &other), "altered");
    assert_eq!(copy.holdings().find(&label).unwrap().0.version, 3);
    assert!(bring(&mut copy, &ReplicaObject { overwrite: true, ..other }), "but for the operator's word");
    assert_eq!(
        copy.holdings().inventory(second.item.labels.primary()).unwrap(),
        holder.holdings().inventory(second.item.labels.primary()).unwrap()
    );
    same_after_rebuilding(&third, copy);
}

/// Threat S8: what somebody tells of epochs stands in nobody's way who has the Original.
#[test]
fn a_lie_about_the_epoch_is_put_right_by_who_has_the_original() {
    let (here, there) = (Ours::new(), Ours::new());
    let (mut original, label) = with_item(&here);
    let mut holder = there.init();
    assert!(bring(&mut holder, &ReplicaObject { epoch: 1 << 40, ..brought(&original, &label) }));
    assert_eq!(state(&holder, &label), (State::Copy, 1 << 40));
    let changes = ItemChanges { statements: vec!["title=second".parse().unwrap()], ..ItemChanges::default() };
    let change = original.prepare_update(&label, None, changes, "tester", &|_| ()).unwrap().unwrap();
    original.commit(vec![change]).pop().unwrap().unwrap();
    assert!(!bring(&mut holder, &brought(&original, &label)), "of an earlier epoch, says somebody");
    let believed = ReplicaObject { believed: true, ..brought(&original, &label) };
    assert!(bring(&mut holder, &believed), "who the copy came from, and has the Original, is believed");
    assert_eq!(state(&holder, &label), (State::Copy, 1));
    // Equal but for the epoch.
    assert!(bring(
        &mut holder,
        &ReplicaObject { epoch: 1 << 40, overwrite: true, ..brought(&original, &label) }
    ));
    assert!(bring(&mut holder, &believed));
    assert!(!bring(&mut holder, &believed), "once");
    // It is handed over, though the taker has heard of a later epoch and has not been told better.
    assert!(bring(
        &mut holder,
        &ReplicaObject { epoch: 1 << 40, overwrite: true, ..brought(&original, &label) }
    ));
    let (_, terms) = original.holdings().transfer_terms(&label, HANDOVER.to_owned()).unwrap();
    original.grant(&label, &terms, "http://taker.test", "Ana").unwrap();
    let from = TransferGiver { url: "http://giver.test", by: "Ana", past: None, links: Vec::new() };
    assert_eq!(holder.accept(&label, &terms, &from).unwrap(), TakerAction::Accepted);
    assert_eq!(state(&holder, &label), (State::Original, 2));
    let (_, back) = holder.holdings().transfer_terms(&label, "back".to_owned()).unwrap();
    assert_eq!(back.epoch, 3, "the lie does not spread");
    same_after_rebuilding(&there, holder);
}

#[test]
fn a_removed_original_makes_its_copies_say_so_and_none_comes_back() {
    for purge in [false, true] {
        let (here, there) = (Ours::new(), Ours::new());
        let (mut original, label) = with_item(&here);
        let mut holder = there.init();
        let before = brought(&original, &label);
        assert!(bring(&mut holder, &before));
        // The tree of the original is about to change: what was fetched then is kept apart.
        let files = before.files.iter();
        let files =
            files.map(|(name, bytes)| (name.clone(), ReplicaBytes::Here(bytes.read().unwrap().into_owned())));
        let before = ReplicaObject { files: files.collect(), ..before };
        let removal = original.prepare_removal(&label, "a reason", "tester", purge).unwrap();
        original.commit(vec![removal]).pop().unwrap().unwrap();
        let tombstone = brought(&original, &label);
        assert!(bring(&mut holder, &tombstone));
        assert_eq!(state(&holder, &label).0, State::Deleted);
        let (holding, _) = holder.holdings().find(&label).unwrap();
        assert_eq!(holding.item.removed.unwrap().purged, purge);
        let bytes = there.data().join("tree").join(&holding.path).join("v1/content/doc/a.txt");
        assert_eq!(bytes.exists(), !purge, "where they were destroyed, they are destroyed here too");
        assert!(!bring(&mut holder, &before), "an older copy does not bring it back");
        let mut empty = Ours::new().init();
        assert!(!bring(&mut empty, &tombstone), "there is nothing to copy");
        same_after_rebuilding(&there, holder);
    }
}

#[test]
fn a_lost_object_comes_back_as_what_it_was() {
    let (here, there) = (Ours::new(), Ours::new());
    let (mut original, label) = with_item(&here);
    // A last line without its object would be taken for a change that was never made.
    let file = here.files(&BTreeMap::from([("b.txt".to_owned(), b"two".to_vec())]));
    deposit(&mut original, &file, titled("after it")).unwrap();
    let mut holder = there.init();
    assert!(bring(&mut holder, &brought(&original, &label)));
    let path = original.holdings().find(&label).unwrap().0.path;
    drop(original);
    fs::remove_dir_all(here.data().join("tree").join(&path)).unwrap();
    rebuild(&here.data(), "tester", &|_| ()).unwrap();
    let (mut original, _) = here.open();
    let lost = original.holdings().find(&label);
    assert!(matches!(lost, Err(ArchiveError::Lost { .. })), "{lost:?}");
    assert!(bring(&mut original, &brought(&holder, &label)));
    assert_eq!(state(&original, &label), (State::Original, 1), "it is what the journal says that it is");
    same_after_rebuilding(&here, original);
}

#[test]
fn verdicts_have_names_for_programs() {
    let all = [
        ReplicaComparison::New,
        ReplicaComparison::Behind,
        ReplicaComparison::Removed,
        ReplicaComparison::Equal,
        ReplicaComparison::Ahead,
        ReplicaComparison::Altered,
    ];
    let more = [
        ReplicaComparison::Original,
        ReplicaComparison::Conflict,
        ReplicaComparison::Gone,
        ReplicaComparison::Beyond,
        ReplicaComparison::Lacking,
    ]
    .into_iter();
    for verdict in all.into_iter().chain(more) {
        assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.name());
    }
}

fn sample(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)).unwrap()
}

/// What Archives say to each other, in its first form, byte for byte.
#[test]
fn the_messages_of_format_1_are_still_read_and_written() {
    for line in sample("handover-1.json").lines() {
        let again = match line {
            _ if line.starts_with("{\"message\"") => {
                serde_json::to_string(&serde_json::from_str::<TransferMessage>(line).unwrap())
            }
            _ if line.starts_with("{\"step\"") => {
                serde_json::to_string(&serde_json::from_str::<TransferStatus>(line).unwrap())
            }
            _ => serde_json::to_string(&serde_json::from_str::<TransferReply>(line).unwrap()),
        };
        assert_eq!(again.unwrap(), line);
    }
}

#[test]
fn a_hand_over_that_goes_on_is_still_read_and_written() {
    let text = sample("handing-1.json");
    let handing: OutgoingTransfer = serde_json::from_str(&text).unwrap();
    assert_eq!(handing.to, "http://archive.library.org.br:8080");
    assert_eq!(serde_json::to_string_pretty(&handing).unwrap() + "\n", text);
}
