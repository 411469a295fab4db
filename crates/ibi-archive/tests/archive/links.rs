//! Links between items (clause 2.4, *Across Archives*), at real Archives without a network.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use ibi_archive::custody::TransferGiver;
use ibi_archive::deposit::DepositRequest;
use ibi_archive::links::{LinkAuthority, LinkDecision, LinkKind, LinkStatement, LinkStatus};
use ibi_archive::ownership::{DepositorIdentity, LOCAL_OPERATOR};
use ibi_archive::rebuild::rebuild;
use ibi_archive::replica::replica_object::ReplicaObject;
use ibi_archive::service::AckKeys;
use ibi_archive::service::address::ServiceAddress;
use ibi_archive::service::answer::{ServiceAnswerContext, answer_request};
use ibi_archive::transfer_protocol::TakerAction;
use ibi_archive::{Archive, ArchiveError, ItemChanges};
use ibi_protocol::{Pairs, Relation, UrlRequest, Verbs};

use crate::handing::{bring, brought, same_after_rebuilding};
use crate::ours::{Ours, deposit, titled};

fn some_file(ours: &Ours) -> PathBuf {
    ours.files(&BTreeMap::from([("a.txt".to_owned(), b"one".to_vec())]))
}

fn edition(of: &str) -> DepositRequest {
    DepositRequest {
        next_edition_of: Some(of.to_owned()),
        language: Some("en".parse().unwrap()),
        ..titled("next")
    }
}

fn translation(of: &str, language: &str) -> DepositRequest {
    DepositRequest {
        translation_of: Some(of.to_owned()),
        language: Some(language.parse().unwrap()),
        ..titled("t")
    }
}

/// What a resolver is answered that asks for these modifiers.
fn asked(archive: &Archive, label: &str, modifiers: &str) -> Pairs {
    let relation = Relation::from_modifiers(modifiers).unwrap();
    let verbs = Verbs { relation, file_list: false };
    let request =
        UrlRequest { client: Vec::new(), ibi: label.to_owned(), file: None, verbs, wants_all: false };
    let address = ServiceAddress { archive: "archive.test".to_owned(), secure: false };
    let keys = AckKeys::new([1; 32]);
    let now = ServiceAnswerContext { address: &address, keys: &keys, now: 1_800_000_000 };
    answer_request(archive.holdings(), &request, &now).unwrap()
}

fn value<'a>(pairs: &'a Pairs, name: &str) -> &'a str {
    pairs.get(name).unwrap_or("-")
}

fn standing(archive: &Archive) -> Vec<(&'static str, &'static str, String)> {
    let links = archive.holdings().all_links(None).unwrap();
    links.into_iter().map(|link| (link.kind, link.status, link.newer)).collect()
}

fn remove(archive: &mut Archive, label: &str) {
    let removal = archive.prepare_removal(label, "a test", "tester", false).unwrap();
    archive.commit(vec![removal]).pop().unwrap().unwrap();
}

fn change(archive: &mut Archive, label: &str, changes: ItemChanges) {
    let update = archive.prepare_update(label, None, changes, "tester", &|_| ()).unwrap().unwrap();
    archive.commit(vec![update]).pop().unwrap().unwrap();
}

/// 2.4, *Consent*: both ends are written in one commit if the depositor may change the older item;
/// another depositor's link is a proposal, which moves no reader.
#[test]
fn clause_2_4_a_link_of_another_depositor_is_a_proposal() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let first = deposit(&mut archive, &path, titled("first")).unwrap();
    let by = |id: &str| LinkAuthority::Depositor(DepositorIdentity { id: id.to_owned(), earlier: None });
    let strange = DepositRequest { authority: by("e0e0"), ..edition(&first) };
    let strange = deposit(&mut archive, &path, strange).unwrap();
    assert_eq!(standing(&archive), [("edition", "proposed", strange.clone())]);
    let pairs = asked(&archive, &first, "!");
    assert_eq!(value(&pairs, "ibi.nextedition"), "-");
    assert!(value(&pairs, "url.lastedition").contains(&first));
    // Whoever deposited the older item may say so.
    let own = DepositRequest { authority: by(LOCAL_OPERATOR), ..edition(&first) };
    let own = deposit(&mut archive, &path, own).unwrap();
    assert!(standing(&archive).contains(&("edition", "accepted", own.clone())));
    assert!(value(&asked(&archive, &first, "!"), "url.lastedition").contains(&own));
    same_after_rebuilding(&ours, archive);
}

/// 2.4, *One successor*: a second one is always a proposal; accepting it withdraws the first.
#[test]
fn clause_2_4_an_item_has_one_accepted_next_edition() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let first = deposit(&mut archive, &path, titled("first")).unwrap();
    let second = deposit(&mut archive, &path, edition(&first)).unwrap();
    let beside = deposit(&mut archive, &path, edition(&first)).unwrap();
    let before = standing(&archive);
    assert!(before.contains(&("edition", "accepted", second.clone())), "{before:?}");
    assert!(before.contains(&("edition", "proposed", beside.clone())), "{before:?}");
    let refused = archive.decide_link(&second, None, LinkDecision::Refuse, "tester");
    assert!(matches!(refused, Err(ArchiveError::NoSuchLink { stands: Some("accepted"), .. })), "{refused:?}");
    archive.decide_link(&beside, None, LinkDecision::Accept, "tester").unwrap();
    let after = standing(&archive);
    assert!(after.contains(&("edition", "withdrawn", second.clone())), "{after:?}");
    assert!(after.contains(&("edition", "accepted", beside.clone())), "{after:?}");
    assert!(value(&asked(&archive, &first, "!"), "url.lastedition").contains(&beside));
    // Both ways, as often as the operator likes.
    archive.decide_link(&second, Some(&first), LinkDecision::Accept, "tester").unwrap();
    archive.decide_link(&second, None, LinkDecision::Withdraw, "tester").unwrap();
    assert!(value(&asked(&archive, &first, "!"), "url.lastedition").contains(&first));
    let archive = same_after_rebuilding(&ours, archive);
    assert_eq!(value(&asked(&archive, &first, "!"), "ibi.nextedition"), "-");
}

/// 2.4: a removed edition in the middle leads on; the last one, removed, has no URL.
#[test]
fn clause_2_4_a_removed_edition_in_the_middle_leads_on() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let first = deposit(&mut archive, &path, titled("first")).unwrap();
    let second = deposit(&mut archive, &path, edition(&first)).unwrap();
    let third = deposit(&mut archive, &path, edition(&second)).unwrap();
    remove(&mut archive, &second);
    assert!(value(&asked(&archive, &first, "!"), "url.lastedition").contains(&third));
    let gone = asked(&archive, &second, "!");
    assert_eq!(
        (value(&gone, "state"), value(&gone, "ibi.nextedition")),
        ("Deleted", &*format!("rep {third}"))
    );
    assert_eq!(
        value(&asked(&archive, &second, ""), "ibi.nextedition"),
        "-",
        "only if editions are asked for"
    );
    remove(&mut archive, &third);
    let last = asked(&archive, &first, "!");
    assert_eq!(
        (value(&last, "ibi.lastedition"), value(&last, "url.lastedition")),
        (&*format!("rep {third}"), "-")
    );
}

/// 2.4: an item that is linked to otherwise leaves the link before behind, withdrawn.
#[test]
fn clause_2_4_a_link_that_is_stated_no_longer_is_withdrawn() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let first = deposit(&mut archive, &path, titled("first")).unwrap();
    let other = deposit(&mut archive, &path, titled("other")).unwrap();
    let second = deposit(&mut archive, &path, edition(&first)).unwrap();
    let to = |to: Option<&str>| ItemChanges {
        next_edition_of: Some(to.map(str::to_owned)),
        ..ItemChanges::default()
    };
    change(&mut archive, &second, to(Some(&other)));
    let links = standing(&archive);
    assert!(links.contains(&("edition", "withdrawn", second.clone())), "{links:?}");
    assert!(links.contains(&("edition", "accepted", second.clone())), "{links:?}");
    assert!(value(&asked(&archive, &first, "!"), "url.lastedition").contains(&first));
    assert!(value(&asked(&archive, &other, "!"), "url.lastedition").contains(&second));
    change(&mut archive, &second, to(None));
    assert!(standing(&archive).iter().all(|(_, status, _)| *status == "withdrawn"));
    change(&mut archive, &second, to(Some(&first)));
    assert!(value(&asked(&archive, &first, "!"), "url.lastedition").contains(&second), "stated again");
}

/// 2.4: a link makes no version and moves no timestamp; the feed tells of it.
#[test]
fn clause_2_4_a_link_makes_no_version() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let first = deposit(&mut archive, &path, titled("first")).unwrap();
    let before = archive.holdings().find(&first).unwrap().0;
    let second = deposit(&mut archive, &path, edition(&first)).unwrap();
    let after = archive.holdings().find(&first).unwrap().0;
    assert_eq!((before.version, before.item), (after.version, after.item));
    assert!(after.change > before.change, "who follows the feed learns of it");
    let last = archive.holdings().history(&after.path).unwrap().pop().unwrap();
    assert_eq!(last.verb.name(), "link");
    let _ = second;
}

/// 2.4: translations form a group around its root, and each member offers all others.
#[test]
fn clause_2_4_translations_form_one_group() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let root = DepositRequest { language: Some("en".parse().unwrap()), ..titled("root") };
    let root = deposit(&mut archive, &path, root).unwrap();
    let pt = deposit(&mut archive, &path, translation(&root, "pt")).unwrap();
    let fr = deposit(&mut archive, &path, translation(&pt, "fr")).unwrap();
    let links = archive.holdings().all_links(None).unwrap();
    assert!(links.iter().all(|link| link.older == root && link.status == "accepted"), "{links:?}");
    for from in [&root, &pt, &fr] {
        let pairs = asked(&archive, from, "+");
        for (language, to) in [("en", &root), ("pt", &pt), ("fr", &fr)] {
            let url = value(&pairs, &format!("url.translation({language})")).to_owned();
            assert!(url.contains(to.as_str()), "{from} in {language}: {url}");
        }
    }
    // A removed root keeps the list.
    remove(&mut archive, &root);
    assert!(value(&asked(&archive, &pt, "+(fr)"), "url.translation(fr)").contains(&fr));
    let gone = asked(&archive, &root, "+");
    assert_eq!(value(&gone, "ibi.translation(pt)"), format!("rep {pt}"));
    assert_eq!(value(&gone, "state"), "Deleted");
}

/// 2.4, *Nothing is lost*: links travel with copies, and an item that leaves leaves the links to it
/// behind.
#[test]
fn clause_2_4_links_travel_with_copies_and_hand_overs() {
    let (here, there) = (Ours::new(), Ours::new());
    let (mut giver, mut taker) = (here.init(), there.init());
    let path = some_file(&here);
    let first = DepositRequest { language: Some("en".parse().unwrap()), ..titled("first") };
    let first = deposit(&mut giver, &path, first).unwrap();
    let second = deposit(&mut giver, &path, edition(&first)).unwrap();
    let pt = deposit(&mut giver, &path, translation(&first, "pt")).unwrap();
    let fr = deposit(&mut giver, &path, translation(&first, "fr")).unwrap();
    hand_over(&mut giver, &mut taker, &second);
    giver.drop_copy(&second, "Ana", None).unwrap();
    let giver_after = asked(&giver, &first, "!");
    assert_eq!(value(&giver_after, "ibi.nextedition"), format!("rep {second}"));
    assert_eq!(value(&giver_after, "ibi.lastedition"), "-", "never an older edition");
    assert_eq!(value(&asked(&giver, &first, "!:"), "ibi.nextedition"), format!("rep {second}"));
    // A member of a group knows the others wherever it goes.
    hand_over(&mut giver, &mut taker, &pt);
    giver.drop_copy(&pt, "Ana", None).unwrap();
    let pairs = asked(&taker, &pt, "+");
    for (language, to) in [("en", &first), ("fr", &fr)] {
        assert_eq!(value(&pairs, &format!("ibi.translation({language})")), format!("rep {to}"));
        assert_eq!(value(&pairs, &format!("url.translation({language})")), "-", "it is not here");
    }
    assert_eq!(value(&asked(&giver, &fr, "+(pt)"), "ibi.translation(pt)"), format!("rep {pt}"));
    assert_eq!(
        value(&asked(&giver, &fr, "+(en)!"), "ibi.translation(en).nextedition"),
        format!("rep {second}"),
        "where the chain leaves this Archive"
    );
    // The older item takes its links along.
    hand_over(&mut giver, &mut taker, &first);
    giver.drop_copy(&first, "Ana", None).unwrap();
    assert!(value(&asked(&taker, &first, "!"), "url.lastedition").contains(&second));
    assert!(value(&asked(&taker, &first, "+(pt)"), "url.translation(pt)").contains(&pt));
    same_after_rebuilding(&here, giver);
    same_after_rebuilding(&there, taker);
}

/// 2.4, *Consent*: what comes as a Copy, or by hand-over, states its links as proposals.
#[test]
fn clause_2_4_a_link_that_a_copy_states_is_a_proposal() {
    let (here, there) = (Ours::new(), Ours::new());
    let (mut home, mut other) = (here.init(), there.init());
    let path = some_file(&here);
    let first = deposit(&mut home, &path, titled("first")).unwrap();
    let claimed = deposit(&mut other, &path, edition(&first)).unwrap();
    assert_eq!(standing(&other), [], "only the Archive of the older item decides");
    assert!(bring(&mut home, &brought(&other, &claimed)));
    assert_eq!(standing(&home), [("edition", "proposed", claimed.clone())]);
    assert!(value(&asked(&home, &first, "!"), "url.lastedition").contains(&first));
    hand_over(&mut other, &mut home, &claimed);
    assert_eq!(standing(&home), [("edition", "proposed", claimed.clone())]);
    assert_eq!(
        home.holdings().link_status(&home.holdings().find(&claimed).unwrap().0.item, LINK).unwrap(),
        Some(LinkStatus::Proposed)
    );
}

const LINK: LinkKind = LinkKind::Edition;

fn hand_over(giver: &mut Archive, taker: &mut Archive, label: &str) {
    let name = ibi_store::digests::sha512(label.as_bytes())[..32].to_owned();
    let (_, terms) = giver.holdings().transfer_terms(label, name).unwrap();
    if taker.holdings().find(label).is_err() {
        assert!(bring(taker, &brought(giver, label)));
    }
    giver.grant(label, &terms, "http://taker.test", "Ana").unwrap();
    let item = giver.holdings().find(label).unwrap().0.item;
    let links = giver.holdings().link_list(&item, true).unwrap();
    let from = TransferGiver { url: "http://giver.test", by: "Ana", past: None, links };
    assert_eq!(taker.accept(label, &terms, &from).unwrap(), TakerAction::Accepted);
    giver.complete_transfer(label, &terms.handover, "http://taker.test", "Ana").unwrap();
}

/// 2.3 with 2.4: a deposit and its link are one commit; a link whose item was not made did not
/// happen either.
#[test]
fn clause_2_4_a_link_is_void_with_the_deposit_that_states_it() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let first = deposit(&mut archive, &path, titled("first")).unwrap();
    let second = deposit(&mut archive, &path, edition(&first)).unwrap();
    let place = archive.holdings().find(&second).unwrap().0.path;
    drop(archive);
    // The lines are durable, the object is not in its place, and the index has not followed: a
    // power cut.
    fs::remove_dir_all(ours.data().join("tree").join(place)).unwrap();
    fs::remove_file(ours.data().join("index.sqlite")).unwrap();
    let control = fs::read_to_string(ours.data().join("journal")).unwrap();
    assert!(control.contains(" link ") && control.contains("depends-on="), "{control}");
    rebuild(&ours.data(), "tester", &|_| ()).unwrap();
    let (archive, _) = ours.open();
    assert_eq!(standing(&archive), []);
    assert!(value(&asked(&archive, &first, "!"), "url.lastedition").contains(&first));
}

/// 2.4: a restored Archive that is not confirmed gives links without URLs: it may not know the
/// newest.
#[test]
fn clause_2_4_a_restored_archive_gives_links_without_urls() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let first = deposit(&mut archive, &path, titled("first")).unwrap();
    let second = deposit(&mut archive, &path, edition(&first)).unwrap();
    drop(archive);
    let (copy, restored) = (ours.path("backup"), ours.path("restored"));
    ibi_archive::backup::backup(&ours.data(), &copy, &|_| ()).unwrap();
    ibi_archive::backup::restore(&copy, &restored, "tester", &|_| ()).unwrap();
    let (archive, _) = ibi_archive::opening::open(&restored, "tester").unwrap();
    let pairs = asked(&archive, &first, "!");
    assert_eq!(value(&pairs, "ibi.lastedition"), format!("rep {second}"));
    assert_eq!(value(&pairs, "url.lastedition"), "-");
    assert!(value(&asked(&archive, &first, ""), "url").contains(&first));
    assert_eq!(value(&asked(&archive, &second, "+(en)"), "ibi.translation(en)"), format!("rep {second}"));
}

/// 2.4: a removed root keeps the list, and its Archive's operator consents to what it deposits.
/// Seen before: the link was a proposal.
#[test]
fn clause_2_4_an_operators_translation_of_a_removed_root_is_accepted() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let root = DepositRequest { language: Some("en".parse().unwrap()), ..titled("root") };
    let root = deposit(&mut archive, &path, root).unwrap();
    let pt = deposit(&mut archive, &path, translation(&root, "pt")).unwrap();
    remove(&mut archive, &root);
    let fr = deposit(&mut archive, &path, translation(&root, "fr")).unwrap();
    let links = archive.holdings().all_links(None).unwrap();
    assert!(links.iter().all(|link| link.older == root && link.status == "accepted"), "{links:?}");
    assert!(value(&asked(&archive, &pt, "+(fr)"), "url.translation(fr)").contains(&fr));
}

/// 2.4: of a link that was moved, what is told is how the new one stands.
#[test]
fn clause_2_4_a_moved_link_is_told_as_it_stands_now() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let first = deposit(&mut archive, &path, titled("first")).unwrap();
    let other = deposit(&mut archive, &path, titled("other")).unwrap();
    let second = deposit(&mut archive, &path, edition(&first)).unwrap();
    for _ in 0..2 {
        for to in [&other, &first] {
            let changes = ItemChanges { next_edition_of: Some(Some(to.clone())), ..ItemChanges::default() };
            change(&mut archive, &second, changes);
            let item = archive.holdings().find(&second).unwrap().0.item;
            assert_eq!(archive.holdings().link_status(&item, LINK).unwrap(), Some(LinkStatus::Accepted));
        }
    }
}

/// Seen before: what came with another item decided on links to an Original that was here.
#[test]
fn clause_2_4_nobody_else_decides_on_links_to_an_original_that_is_here() {
    let (here, there) = (Ours::new(), Ours::new());
    let (mut home, mut other) = (here.init(), there.init());
    let path = some_file(&here);
    let first = deposit(&mut home, &path, titled("first")).unwrap();
    let claimed = deposit(&mut other, &path, edition(&first)).unwrap();
    let forged = decision(LINK, &first, &claimed, LinkStatus::Accepted);
    assert!(bring(&mut home, &ReplicaObject { links: vec![forged], ..brought(&other, &claimed) }));
    assert_eq!(standing(&home), [("edition", "proposed", claimed)]);
    assert!(value(&asked(&home, &first, "!"), "url.lastedition").contains(&first));
}

fn decision(kind: LinkKind, older: &str, newer: &str, status: LinkStatus) -> LinkStatement {
    LinkStatement {
        kind,
        older: older.to_owned(),
        newer: newer.to_owned(),
        status,
        counter: 99,
        older_labels: vec![older.to_owned()],
        newer_labels: vec![newer.to_owned()],
        older_language: None,
        newer_language: Some("pt".to_owned()),
        created: String::new(),
        removed: false,
        unstated: false,
        archive: None,
        decided_by: None,
        receipt: None,
        told_with: None,
    }
}

/// Three Archives: the first has two editions, and the second a copy of the older one.
fn two_editions() -> ([Ours; 3], [Archive; 3], [String; 2]) {
    let ours = [Ours::new(), Ours::new(), Ours::new()];
    let [mut home, mut copies, other] = [0, 1, 2].map(|at| ours[at].init());
    let path = some_file(&ours[0]);
    let first = deposit(&mut home, &path, titled("first")).unwrap();
    let second = deposit(&mut home, &path, edition(&first)).unwrap();
    assert!(bring(&mut copies, &brought(&home, &first)));
    (ours, [home, copies, other], [first, second])
}

fn last_edition(archive: &Archive, of: &str) -> String {
    value(&asked(archive, of, "!"), "ibi.nextedition").trim_start_matches("rep ").to_owned()
}

/// Seen before: a copy of any item brought decisions on links between items that are here as
/// copies, and a copy of the older item from one that only has a copy did the same.
#[test]
fn clause_2_4_who_only_has_a_copy_decides_nothing() {
    let (ours, [_home, mut copies, mut other], [first, second]) = two_editions();
    assert_eq!(last_edition(&copies, &first), second, "its Original's Archive told so");
    let evil = deposit(&mut other, &some_file(&ours[2]), edition(&first)).unwrap();
    let forged = [
        decision(LINK, &first, &evil, LinkStatus::Accepted),
        decision(LINK, &first, &second, LinkStatus::Withdrawn),
    ];
    // With another item, from the Archive that has its Original.
    assert!(bring(&mut copies, &ReplicaObject { links: forged.to_vec(), ..brought(&other, &evil) }));
    assert_eq!(last_edition(&copies, &first), second);
    // With the older item itself, from one that only has a copy of it.
    assert!(bring(&mut other, &ReplicaObject { links: forged.to_vec(), ..brought(&copies, &first) }));
    assert_eq!(last_edition(&other, &first), "-");
    let heard: Vec<_> = other.holdings().all_links(None).unwrap();
    assert!(
        heard.iter().filter(|link| link.older == first).all(|link| link.status == "unconfirmed"),
        "{heard:?}"
    );
    // It does not tell others what it has only heard of, and counters of others leave room.
    let item = other.holdings().find(&first).unwrap().0.item;
    assert_eq!(other.holdings().link_list(&item, true).unwrap(), []);
    for archive in [copies, other] {
        let data = archive.holdings().data().to_owned();
        let before = archive.holdings().all_links(None).unwrap();
        drop(archive);
        rebuild(&data, "tester", &|_| ()).unwrap();
        let (again, _) = ibi_archive::opening::open(&data, "tester").unwrap();
        assert_eq!(again.holdings().all_links(None).unwrap(), before);
    }
}

/// Seen before: a giver decided on links between other items that are at the taker as copies.
#[test]
fn clause_2_4_a_giver_decides_on_links_to_what_it_gives_only() {
    let (ours, [_home, mut copies, mut other], [first, second]) = two_editions();
    let given = deposit(&mut other, &some_file(&ours[2]), titled("given")).unwrap();
    let later = deposit(&mut other, &some_file(&ours[2]), edition(&given)).unwrap();
    assert!(bring(&mut copies, &brought(&other, &given)));
    let (_, terms) = other.holdings().transfer_terms(&given, "ab".to_owned()).unwrap();
    other.grant(&given, &terms, "http://taker.test", "Ana").unwrap();
    let mut links = other.holdings().link_list(&other.holdings().find(&given).unwrap().0.item, true).unwrap();
    links.push(decision(LINK, &first, &given, LinkStatus::Accepted));
    links.push(decision(LINK, &first, &second, LinkStatus::Withdrawn));
    let from = TransferGiver { url: "http://giver.test", by: "Ana", past: None, links };
    assert_eq!(copies.accept(&given, &terms, &from).unwrap(), TakerAction::Accepted);
    assert_eq!(last_edition(&copies, &first), second);
    assert_eq!(last_edition(&copies, &given), later, "about that it decided");
}
