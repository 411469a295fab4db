//! Every course that hand-overs between two Archives can take (clause 2.1), and what is true at every instant of each.
//!
//! The decisions are those of `ibi_archive::holders::handover`; disk, network and crashes are of the model. All states are
//! visited, breadth first, so that what is found comes with the shortest way to it. The crate `stateright` would do that
//! too, but its `eventually` holds only where no two ways lead to one state, and here most are such; besides it brings a
//! web server. A hundred lines (`explore`) do.
//!
//! Messages are late, doubled, and in any order: what was said once may arrive whenever it likes. One that is lost is one
//! that never arrives, so no step is needed for it. A crash may come between writing and saying, and an Archive with
//! nothing unsaid comes back from it as it was. A giver acts on any `Ready`, and a Copy may be fetched at any time: more
//! courses than an Archive takes, not fewer. A taker also asks the giver by itself before it believes it: where that does not
//! confirm what came, it is as if it had not arrived, so that no course is added by it.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and tells what it saw"
)]

mod explore;
mod model;
mod steps;

use explore::{Broken, explore};
use ibi_archive::holders::handover::{No, Stand, Take, Terms, take};
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
};

/// There and back: for worlds that are larger in another way, and for wrong rules.
const SMALL: Bounds = Bounds { handovers: 2, updates: 1, drops: 1, ..BOUNDS };

#[test]
fn at_every_instant_there_is_one_original_at_most_and_no_byte_is_lost_and_it_ends_well() {
    all_is_well(&BOUNDS, |_| true, 100_000);
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

fn blind(stand: &Stand, _: bool, terms: &Terms) -> Result<Take, No> {
    take(&Stand { epoch: 0, ..stand.clone() }, false, terms)
}

#[test]
fn a_taker_that_does_not_ask_its_giver_believes_anybody() {
    let rules = Rules { is_given: |_, _, _, _| true, ..OURS };
    let way = finds(&rules, &SMALL, Broken::TwoOriginals);
    assert_eq!(way, [Step::Fetch(1), Step::Forge(0)]);
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
