//! 4.3: outcomes, row by row.

use ibi_protocol::analysis::{ArchiveId, Decision, Endless, NotFound, Purpose, Wanted};
use ibi_protocol::{FilePath, Relation};

use crate::federation::{ITEM, SECOND, again, decided, wanted};

fn status(wanted: &Wanted, said: &[&str]) -> u16 {
    decided(wanted, said).status().unwrap()
}

fn modifiers(offered: &[Relation]) -> String {
    offered.iter().map(|relation| format!("[{}]", relation.modifiers())).collect()
}

#[test]
fn found() {
    let Decision::Found(found) =
        decided(&wanted(""), &["url http://N/x state Copy timestamp 2020 urlkey 1234567890"])
    else {
        panic!()
    };
    let acknowledgment = found.acknowledgment(vec!["::1".parse().unwrap()], "http://r.br/x").unwrap();
    assert_eq!(acknowledgment.contenttype.as_str(), "Data", "where the Archive does not say it");
    assert_eq!(acknowledgment.ibi.unwrap().to_string(), format!("rep {ITEM}"));
    assert_eq!(Decision::Found(found).status(), Some(302));
    let Decision::Found(found) = decided(&wanted(""), &["url http://N/x"]) else { panic!() };
    assert_eq!(found.acknowledgment(Vec::new(), ""), None, "without a urlkey");
}

#[test]
fn an_archive_says_deleted_and_nobody_who_answered_has_it_live() {
    let said = ["state Deleted timestamp 2020-01-01T00:00:00Z", "-", ""];
    let Decision::Deleted { tombstones, .. } = decided(&wanted("!:"), &said) else { panic!() };
    assert_eq!(tombstones.len(), 1);
    let (archive, tombstone) = &tombstones[0];
    assert_eq!((*archive, tombstone.timestamp.as_deref()), (ArchiveId(0), Some("2020-01-01T00:00:00Z")));
    assert_eq!(status(&wanted(""), &said), 410);
}

#[test]
fn every_archive_answered_and_none_has_it() {
    assert_eq!(decided(&wanted(""), &["", ""]), Decision::NotFound(NotFound::Item));
    assert_eq!(status(&wanted("+"), &[]), 404);
}

#[test]
fn not_found_but_some_archive_is_off_line_unconfirmed_or_silent() {
    let Decision::Incomplete { failed, otherwise } = decided(&wanted(""), &["", "-"]) else { panic!() };
    assert_eq!(failed, [(ArchiveId(1), "it is off line".to_owned())]);
    assert_eq!(otherwise, NotFound::Item);
    assert_eq!(
        status(&wanted(":(x)"), &["url http://N/x", "-"]),
        503,
        "never a false 404: it may have the format"
    );
}

#[test]
fn two_or_more_originals_claimed() {
    let claim = "url http://N/x state Original";
    let required = Wanted { original: true, ..wanted("") };
    let recount = again(&required, &[claim, claim]);
    assert_eq!(status(&recount, &[claim, claim]), 409);
    let Decision::Found(found) = decided(&wanted(""), &[claim, claim]) else { panic!() };
    let suspected: Vec<ArchiveId> = found.suspects[0].claims.iter().map(|claim| claim.archive).collect();
    assert_eq!(suspected, [ArchiveId(0), ArchiveId(1)], "else 302, and the alert");
}

#[test]
fn item_known_but_not_that_translation_format_or_file() {
    // Asked again without the parameter, to name what there is.
    let first = wanted("+(fr)");
    let second = again(&first, &["url http://N/x"]);
    assert_eq!((second.verbs.to_string().as_str(), second.round), ("GetTranslation", 2));
    assert!(matches!(second.purpose, Purpose::NameOffers { .. }));
    let offers = "url.translation(pt) http://N/pt url.translation(en) http://N/en";
    let Decision::NotFound(NotFound::Related { item, offered }) = decided(&second, &[offers, "-"]) else {
        panic!()
    };
    assert_eq!((item.to_string(), modifiers(&offered)), (format!("rep {ITEM}"), "[+(en)][+(pt)]".to_owned()));
    assert_eq!(decided(&second, &["..."]), Decision::Wait);

    let second = again(&wanted(":(marc)"), &["url http://N/x"]);
    assert_eq!(second.verbs.to_string(), "GetMetadata");
    let Decision::NotFound(NotFound::Related { offered, .. }) =
        decided(&second, &["url.metadata http://N/m"])
    else {
        panic!()
    };
    assert_eq!(modifiers(&offered), "[:][:(oai_dc)]", "oai_dc always is");

    let first = Wanted { file: FilePath::new(b"/none.pdf").unwrap(), ..wanted("") };
    let second = again(&first, &["ibi.platformsoftware {}"]);
    assert_eq!((second.verbs.is_empty(), &second.file), (true, &None));
    let Decision::NotFound(NotFound::File { .. }) = decided(&second, &["url http://N/x"]) else { panic!() };

    // It is not for the file that a format is not there.
    let first = Wanted { file: FilePath::new(b"/none.pdf").unwrap(), ..wanted(":(marc)") };
    let second = again(&first, &["url http://N/x"]);
    let Decision::NotFound(NotFound::Related { offered, .. }) =
        decided(&second, &["url.metadata http://N/m"])
    else {
        panic!()
    };
    assert_eq!(modifiers(&offered), "[:][:(oai_dc)]");

    // Nothing could be left out, or there is no round left.
    assert_eq!(status(&wanted(":"), &["url http://N/x"]), 404);
    assert_eq!(status(&Wanted { round: 32, ..wanted(":(marc)") }, &["url http://N/x"]), 404);
}

#[test]
fn original_required_only_copies_found() {
    let required = Wanted { original: true, ..wanted("") };
    let copy = "url http://N/x state Copy";
    let recount = again(&required, &[copy, ""]);
    let Decision::NotFound(NotFound::Original { copies }) = decided(&recount, &[copy, "", copy]) else {
        panic!()
    };
    let copies: Vec<&str> = copies.iter().map(|copy| copy.url.as_str()).collect();
    assert_eq!(copies, ["http://archive.n0.br/x", "http://archive.n2.br/x"]);
    let Decision::Incomplete { otherwise: NotFound::Original { .. }, .. } = decided(&recount, &[copy, "-"])
    else {
        panic!()
    };
    assert_eq!(status(&required, &["", ""]), 404, "nothing to count");
    // One that claims it and cannot serve it is no alert: the original is not reachable.
    let Decision::NotFound(NotFound::Original { copies }) = decided(&recount, &["state Original", copy])
    else {
        panic!()
    };
    assert_eq!(copies.len(), 1);
}

#[test]
fn a_cycle_or_more_than_32_rounds() {
    let next = |item: &str| format!("ibi.nextedition {{rep {item}}}");
    let second = again(&wanted("!"), &[&next(SECOND)]);
    assert_eq!(status(&second, &[&next(ITEM)]), 508);
    let last = Wanted { round: 32, ..wanted("!") };
    let Decision::Cycle { why: Endless::TooManyRounds, chain } = decided(&last, &[&next(SECOND)]) else {
        panic!()
    };
    assert_eq!(chain.len(), 2);
}

#[test]
fn a_spelling_that_is_canonical_for_several_items() {
    let several = "ibi.alternatives {{rep a.br/b@80/2009/02.16.17.46} {rep a.br/b/2009/02.16.17.46.00}}";
    let Decision::Ambiguous(items) = decided(&wanted(""), &[several, "", several]) else { panic!() };
    assert_eq!(items.len(), 2);
    assert_eq!(status(&wanted("!"), &[several, "-"]), 300);
    assert_eq!(decided(&wanted(""), &[several, "..."]), Decision::Wait, "somebody may have just that one");
    let exactly = "url http://N/x state Copy";
    assert_eq!(status(&wanted(""), &[several, exactly]), 302);
    let other = format!("ibi {{rep a.br/b@80/2009/02.16.17.46}} {exactly}");
    assert_eq!(status(&wanted(""), &[several, &other]), 300, "one of several");
}

#[test]
fn a_label_reserved_for_a_draft() {
    assert_eq!(status(&wanted(":"), &["state Reserved", "-", ""]), 403);
    assert_eq!(status(&wanted(""), &["state Reserved", "url http://N/x"]), 302);
    assert_eq!(decided(&wanted(""), &["state Reserved", "..."]), Decision::Wait);
}
