//! Every course that hand-overs between two Archives can take (clause 2.1), and what is true at
//! every instant of each.
//!
//! The decisions are those of `ibi_archive::holders::handover`; disk, network and crashes are of
//! the model. All states are visited, breadth first, so that what is found comes with the shortest
//! way to it. The crate `stateright` would do that too, but its `eventually` holds only where no
//! two ways lead to one state, and here most are such; besides it brings a web server. A hundred
//! lines (`explore`) do.
//!
//! Messages are late, doubled, and in any order: what was said once may arrive whenever it likes.
//! One that is lost is one that never arrives, so no step is needed for it. A crash may come
//! between writing and saying, and an Archive with nothing unsaid comes back from it as it was. A
//! giver acts on any `Ready`, and a Copy may be fetched at any time: more courses than an Archive
//! takes, not fewer. A taker also asks the giver by itself before it believes it: where that does
//! not confirm what came, it is as if it had not arrived, so that no course is added by it.
//!
//! Beside the two there is an impostor: an Archive of somebody who has a token, which confirms
//! whatever is wanted and claims the Original at the resolver. Who is asked about a giver may
//! answer or not, each time anew (`World::trusts`).

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and tells what it saw"
)]

mod explore;
mod model;
mod steps;

use explore::{Broken, explore};
use ibi_archive::replication::giver_trust::{GiverEvidence, GiverTrust, decide_giver_trust};
use ibi_archive::transfer_protocol::{CustodyState, TakerAction, TransferDenied, TransferTerms, decide_take};
use model::{Bounds, Fault, Message, OURS, Rules};
use steps::Step;

/// There and back, and there again.
const BOUNDS: Bounds = Bounds {
    handovers: 3,
    updates: 2,
    drops: 2,
    removal: true,
    restore: false,
    forgets: false,
    transferable: true,
    resolver: false,
    third: false,
    copied: false,
    word: false,
};

/// There and back: for worlds that are larger in another way, and for wrong rules.
const SMALL: Bounds = Bounds { handovers: 2, updates: 1, drops: 1, ..BOUNDS };

#[test]
fn at_every_instant_there_is_one_original_at_most_and_no_byte_is_lost_and_it_ends_well() {
    all_is_well(&BOUNDS, |_| true, 100_000);
}

/// A resolver names the giver; a third Archive does, from which the Copy came; both.
#[test]
fn so_it_is_when_others_name_the_giver() {
    let with = |resolver, third| Bounds { resolver, third, ..SMALL };
    for bounds in [with(true, false), with(false, true), with(true, true)] {
        all_is_well(&bounds, |_| true, 4_000);
    }
}

/// The Copy came from one that only had a copy, and that hands over what it never had.
#[test]
fn so_it_is_when_a_copy_came_from_another_copy() {
    let with = |resolver, third| Bounds { resolver, third, copied: true, ..SMALL };
    for bounds in [with(false, false), with(true, false), with(false, true), with(true, true)] {
        all_is_well(&bounds, |_| true, 4_000);
    }
}

/// The resolver hears from too few, and the operators say who has the Original of this item. That
/// makes nobody a witness; when all answer later, an impostor claims what was granted.
#[test]
fn so_it_is_when_the_operator_says_who_has_the_original() {
    let with = |copied| Bounds { resolver: true, copied, word: true, ..SMALL };
    for bounds in [with(false), with(true)] {
        all_is_well(&bounds, |_| true, 4_000);
    }
    let forgets_the_word = |evidence: &GiverEvidence| {
        decide_giver_trust(&GiverEvidence { is_promised_to_another: false, ..*evidence })
    };
    let rules = Rules { giver_trust: forgets_the_word, ..OURS };
    finds(&rules, &with(true), Broken::Fault(Fault::ImpostorBelieved));
}

/// A restored Archive gives nothing, takes nothing, drops nothing, and does not answer Original.
#[test]
fn so_it_is_when_an_archive_is_brought_back_from_any_backup() {
    all_is_well(&Bounds { restore: true, removal: false, ..SMALL }, |_| true, 10_000);
}

/// The epoch alone keeps an old grant from being accepted again.
#[test]
fn what_was_accepted_may_be_forgotten_without_a_second_original() {
    all_is_well(&Bounds { forgets: true, ..SMALL }, |broken| *broken != Broken::Stuck, 5_000);
}

#[test]
fn what_is_non_transferable_stays() {
    all_is_well(&Bounds { transferable: false, ..BOUNDS }, |_| true, 10);
}

fn all_is_well_by(rules: &Rules, bounds: &Bounds) {
    assert_eq!(explore(rules, bounds, |_| true).found, None, "after these steps");
}

fn all_is_well(bounds: &Bounds, looked_for: impl Fn(&Broken) -> bool, states: usize) {
    let explored = explore(&OURS, bounds, looked_for);
    println!("{} states", explored.states);
    assert_eq!(explored.found, None, "after these steps");
    assert!(explored.states > states, "{} states are too few: the model does nothing", explored.states);
}

#[test]
fn a_giver_that_grants_before_it_is_durably_a_copy_makes_two_originals() {
    let rules = Rules { granted_before_written: true, ..OURS };
    let way = finds(&rules, &SMALL, Broken::TwoOriginals);
    assert!(way.contains(&Step::Arrive(Message::Grant, 1)), "{way:?}");
}

#[test]
fn a_taker_that_minds_neither_epoch_nor_memory_takes_twice() {
    let rules = Rules { take: blind, ..OURS };
    finds(&rules, &SMALL, Broken::Fault(Fault::AcceptedTwice));
    let way = finds(&rules, &SMALL, Broken::TwoOriginals);
    let first = Step::Arrive(Message::Grant, 1);
    assert_eq!(way.iter().filter(|step| **step == first).count(), 2, "the old grant comes again: {way:?}");
}

fn blind(stand: &CustodyState, _: bool, terms: &TransferTerms) -> Result<TakerAction, TransferDenied> {
    decide_take(&CustodyState { epoch: 0, ..stand.clone() }, false, terms)
}

#[test]
fn a_taker_that_does_not_ask_its_giver_believes_anybody() {
    let rules = Rules { is_given: |_, _, _, _| true, ..OURS };
    let way = finds(&rules, &SMALL, Broken::TwoOriginals);
    assert_eq!(way, [Step::Fetch(1), Step::Forge(0)]);
}

/// Doubt that fails open: whom nobody names and nobody contradicts is believed.
#[test]
fn a_taker_that_believes_whom_nobody_names_takes_from_an_impostor() {
    let open = |evidence: &GiverEvidence| match decide_giver_trust(evidence) {
        GiverTrust::Unconfirmed => GiverTrust::Believed,
        clear => clear,
    };
    let rules = Rules { giver_trust: open, ..OURS };
    let way = finds(&rules, &SMALL, Broken::TwoOriginals);
    assert_eq!(way, [Step::Impostor(1, false, false)]);
    // Who knows better is closed, or offline.
    let way = finds(&rules, &Bounds { third: true, resolver: true, ..SMALL }, Broken::TwoOriginals);
    assert_eq!(way, [Step::Impostor(1, false, false)]);
    // While it is granted, nobody has the Original, and nobody contradicts.
    finds(&rules, &SMALL, Broken::Fault(Fault::ImpostorBelieved));
}

/// Doubt that only minds another Original: the item was removed, and comes back.
#[test]
fn a_taker_that_minds_no_tombstone_brings_back_what_was_removed() {
    let only_originals = |evidence: &GiverEvidence| match decide_giver_trust(evidence) {
        GiverTrust::Refused(TransferDenied::OriginalElsewhere) => {
            GiverTrust::Refused(TransferDenied::OriginalElsewhere)
        }
        _ => GiverTrust::Believed,
    };
    let rules = Rules { giver_trust: only_originals, ..OURS };
    finds(&rules, &SMALL, Broken::Fault(Fault::RemovedCameBack));
}

/// The source of a copy is believed, though it only had a copy: it gives while the Original is
/// offline.
#[test]
fn a_taker_that_believes_the_source_of_a_copy_takes_from_an_impostor() {
    let any_source = |evidence: &GiverEvidence| {
        let source = evidence.source.or(evidence.copy_holder);
        decide_giver_trust(&GiverEvidence { source, copy_holder: None, ..*evidence })
    };
    let rules = Rules { giver_trust: any_source, ..OURS };
    for resolver in [false, true] {
        let bounds = Bounds { copied: true, resolver, ..SMALL };
        let way = finds(&rules, &bounds, Broken::TwoOriginals);
        assert_eq!(way, [Step::Impostor(1, false, false)]);
    }
    // Where no Copy came from another Copy, it is the same rule.
    all_is_well_by(&rules, &SMALL);
}

/// The resolver's word instead of the source's: an impostor that is registered claims what is
/// granted.
#[test]
fn a_taker_that_asks_only_the_resolver_takes_from_an_impostor() {
    let no_source =
        |evidence: &GiverEvidence| decide_giver_trust(&GiverEvidence { source: None, ..*evidence });
    let rules = Rules { giver_trust: no_source, ..OURS };
    finds(&rules, &Bounds { resolver: true, ..SMALL }, Broken::Fault(Fault::ImpostorBelieved));
}

/// The taker has dropped its Copy since it was ready: the giver's bytes were the last.
#[test]
fn a_giver_that_drops_when_it_grants_loses_the_item() {
    let rules = Rules { dropped_when_granted: true, ..OURS };
    finds(&rules, &SMALL, Broken::Fewer);
    finds(&rules, &SMALL, Broken::Lost);
}

#[test]
fn a_giver_that_takes_back_after_a_while_makes_two_originals() {
    finds(&Rules { taken_back_after_a_while: true, ..OURS }, &SMALL, Broken::TwoOriginals);
}

/// A taker that accepted and has forgotten it refuses, and is the Original.
#[test]
fn a_giver_that_takes_back_what_is_refused_makes_two_originals() {
    let rules = Rules { taken_back_when_refused: true, ..OURS };
    finds(&rules, &Bounds { forgets: true, ..SMALL }, Broken::TwoOriginals);
}

/// The answer to the hand-over before comes late, and counts for this one: nobody is the Original.
#[test]
fn a_giver_that_minds_not_what_is_answered_leaves_no_original() {
    finds(&Rules { any_answer_counts: true, ..OURS }, &BOUNDS, Broken::Stuck);
}

/// The giver asks for ever.
#[test]
fn a_taker_that_forgets_what_it_accepted_leaves_a_grant_open() {
    finds(&OURS, &Bounds { forgets: true, ..SMALL }, Broken::Stuck);
}

fn finds(rules: &Rules, bounds: &Bounds, wanted: Broken) -> Vec<Step> {
    let explored = explore(rules, bounds, |broken| *broken == wanted);
    let (broken, way) = explored.found.expect("what is wrong is found");
    println!("{broken:?} among {} states: {way:?}", explored.states);
    way
}
