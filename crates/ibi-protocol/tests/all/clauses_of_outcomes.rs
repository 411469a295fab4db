//! 4.3: outcomes, row by row.

use ibi_protocol::analysis::{
    ArchiveId, CycleReason, NotFoundReason, RoundDecision, RoundPurpose, RoundQuery,
};
use ibi_protocol::{FilePath, Relation};

use crate::federation::{ITEM, SECOND, again, decided, query};

fn status(query: &RoundQuery, texts: &[&str]) -> u16 {
    decided(query, texts).status().unwrap()
}

fn modifiers(offered: &[Relation]) -> String {
    offered.iter().map(|relation| format!("[{}]", relation.modifiers())).collect()
}

#[test]
fn found() {
    let RoundDecision::Found(found) =
        decided(&query(""), &["url http://N/x state Copy timestamp 2020 urlkey 1234567890"])
    else {
        panic!()
    };
    let acknowledgment = found.acknowledgment(vec!["::1".parse().unwrap()], "http://r.br/x").unwrap();
    assert_eq!(acknowledgment.contenttype.as_str(), "Data", "where the Archive does not say it");
    assert_eq!(acknowledgment.ibi.unwrap().to_string(), format!("rep {ITEM}"));
    assert_eq!(RoundDecision::Found(found).status(), Some(302));
    let RoundDecision::Found(found) = decided(&query(""), &["url http://N/x"]) else { panic!() };
    assert_eq!(found.acknowledgment(Vec::new(), ""), None, "without a urlkey");
}

/// Clauses 3.4 and 4.3: who has no URL of an item does not hold it, whatever else it says of it.
#[test]
fn who_only_knows_of_a_removed_item_does_not_make_it_live() {
    for knows in [
        "ibi.nextedition {rep other.br/archive/2020/01.01.00.00}",
        "ibi.translation(pt) {rep other.br/archive/2020/01.01.00.00}",
        "url.translation(pt) http://N/x state.translation(pt) Original",
        "state Original timestamp 2020-01-01T00:00:00Z",
    ] {
        let said = ["state Deleted timestamp 2020-01-01T00:00:00Z", knows];
        assert_eq!(decided(&query(""), &said).status(), Some(410), "{knows}");
        assert_eq!(decided(&query(""), &[said[0], "url http://N/x state Copy"]).status(), Some(302));
        assert_eq!(decided(&query(""), &[knows]).status(), Some(404), "{knows}");
    }
}

#[test]
fn an_archive_says_deleted_and_nobody_who_answered_has_it_live() {
    let texts = ["state Deleted timestamp 2020-01-01T00:00:00Z", "-", ""];
    let RoundDecision::Deleted { tombstones, .. } = decided(&query("!:"), &texts) else { panic!() };
    assert_eq!(tombstones.len(), 1);
    let (archive, tombstone) = &tombstones[0];
    assert_eq!((*archive, tombstone.timestamp.as_deref()), (ArchiveId(0), Some("2020-01-01T00:00:00Z")));
    assert_eq!(status(&query(""), &texts), 410);
}

#[test]
fn every_archive_answered_and_none_has_it() {
    assert_eq!(decided(&query(""), &["", ""]), RoundDecision::NotFound(NotFoundReason::Item));
    assert_eq!(status(&query("+"), &[]), 404);
}

#[test]
fn not_found_but_some_archive_is_off_line_unconfirmed_or_silent() {
    let RoundDecision::Incomplete { failed, otherwise } = decided(&query(""), &["", "-"]) else { panic!() };
    assert_eq!(failed, [(ArchiveId(1), "it is offline".to_owned())]);
    assert_eq!(otherwise, NotFoundReason::Item);
    assert_eq!(
        status(&query(":(x)"), &["url http://N/x", "-"]),
        503,
        "never a false 404: it may have the format"
    );
}

#[test]
fn two_or_more_originals_claimed() {
    let claim = "url http://N/x state Original";
    let required = RoundQuery { original: true, ..query("") };
    let recount = again(&required, &[claim, claim]);
    assert_eq!(status(&recount, &[claim, claim]), 409);
    let RoundDecision::Found(found) = decided(&query(""), &[claim, claim]) else { panic!() };
    let suspected: Vec<ArchiveId> = found.suspects[0].claims.iter().map(|claim| claim.archive).collect();
    assert_eq!(suspected, [ArchiveId(0), ArchiveId(1)], "else 302, and the alert");
}

#[test]
fn item_known_but_not_that_translation_format_or_file() {
    // Queried again without the parameter, to list the available relations.
    let first = query("+(fr)");
    let second = again(&first, &["url http://N/x"]);
    assert_eq!((second.verbs.to_string().as_str(), second.round), ("GetTranslation", 2));
    assert!(matches!(second.purpose, RoundPurpose::NameOffers { .. }));
    let offers = "url.translation(pt) http://N/pt url.translation(en) http://N/en";
    let RoundDecision::NotFound(NotFoundReason::Related { item, offered }) = decided(&second, &[offers, "-"])
    else {
        panic!()
    };
    assert_eq!((item.to_string(), modifiers(&offered)), (format!("rep {ITEM}"), "[+(en)][+(pt)]".to_owned()));
    assert_eq!(decided(&second, &["..."]), RoundDecision::Wait);

    let second = again(&query(":(marc)"), &["url http://N/x"]);
    assert_eq!(second.verbs.to_string(), "GetMetadata");
    let RoundDecision::NotFound(NotFoundReason::Related { offered, .. }) =
        decided(&second, &["url.metadata http://N/m"])
    else {
        panic!()
    };
    assert_eq!(modifiers(&offered), "[:][:(oai_dc)]", "oai_dc always is");

    let first = RoundQuery { file: FilePath::new(b"/none.pdf").unwrap(), ..query("") };
    let second = again(&first, &["ibi.platformsoftware {}"]);
    assert_eq!((second.verbs.is_empty(), &second.file), (true, &None));
    let RoundDecision::NotFound(NotFoundReason::File { .. }) = decided(&second, &["url http://N/x"]) else {
        panic!()
    };

    // A missing format is not reported as a missing file.
    let first = RoundQuery { file: FilePath::new(b"/none.pdf").unwrap(), ..query(":(marc)") };
    let second = again(&first, &["url http://N/x"]);
    let RoundDecision::NotFound(NotFoundReason::Related { offered, .. }) =
        decided(&second, &["url.metadata http://N/m"])
    else {
        panic!()
    };
    assert_eq!(modifiers(&offered), "[:][:(oai_dc)]");

    // There is no parameter to remove, or no round left.
    assert_eq!(status(&query(":"), &["url http://N/x"]), 404);
    assert_eq!(status(&RoundQuery { round: 32, ..query(":(marc)") }, &["url http://N/x"]), 404);
}

#[test]
fn original_required_only_copies_found() {
    let required = RoundQuery { original: true, ..query("") };
    let copy = "url http://N/x state Copy";
    let recount = again(&required, &[copy, ""]);
    let RoundDecision::NotFound(NotFoundReason::Original { copies }) = decided(&recount, &[copy, "", copy])
    else {
        panic!()
    };
    let copies: Vec<&str> = copies.iter().map(|copy| copy.url.as_str()).collect();
    assert_eq!(copies, ["http://archive.n0.br/x", "http://archive.n2.br/x"]);
    let RoundDecision::Incomplete { otherwise: NotFoundReason::Original { .. }, .. } =
        decided(&recount, &[copy, "-"])
    else {
        panic!()
    };
    assert_eq!(status(&required, &["", ""]), 404, "nothing to count");
    // A claimant that cannot serve the item raises no alert: the Original is unreachable.
    let RoundDecision::NotFound(NotFoundReason::Original { copies }) =
        decided(&recount, &["state Original", copy])
    else {
        panic!()
    };
    assert_eq!(copies.len(), 1);
}

#[test]
fn a_cycle_or_more_than_32_rounds() {
    let next = |item: &str| format!("ibi.nextedition {{rep {item}}}");
    let second = again(&query("!"), &[&next(SECOND)]);
    assert_eq!(status(&second, &[&next(ITEM)]), 508);
    let last = RoundQuery { round: 32, ..query("!") };
    let RoundDecision::Cycle { why: CycleReason::TooManyRounds, chain } = decided(&last, &[&next(SECOND)])
    else {
        panic!()
    };
    assert_eq!(chain.len(), 2);
}

#[test]
fn a_spelling_that_is_canonical_for_several_items() {
    let several = "ibi.alternatives {{rep a.br/b@80/2009/02.16.17.46} {rep a.br/b/2009/02.16.17.46.00}}";
    let RoundDecision::Ambiguous(items) = decided(&query(""), &[several, "", several]) else { panic!() };
    assert_eq!(items.len(), 2);
    assert_eq!(status(&query("!"), &[several, "-"]), 300);
    assert_eq!(
        decided(&query(""), &[several, "..."]),
        RoundDecision::Wait,
        "somebody may have just that one"
    );
    let exactly = "url http://N/x state Copy";
    assert_eq!(status(&query(""), &[several, exactly]), 302);
    let other = format!("ibi {{rep a.br/b@80/2009/02.16.17.46}} {exactly}");
    assert_eq!(status(&query(""), &[several, &other]), 300, "one of several");
}

#[test]
fn a_label_reserved_for_a_draft() {
    assert_eq!(status(&query(":"), &["state Reserved", "-", ""]), 403);
    assert_eq!(status(&query(""), &["state Reserved", "url http://N/x"]), 302);
    assert_eq!(decided(&query(""), &["state Reserved", "..."]), RoundDecision::Wait);
}
