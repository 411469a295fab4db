use super::*;
use crate::replica::object_validation::tests::object;

const STATES: [State; 3] = [State::Original, State::Copy, State::Deleted];

/// One case: the local replica, the remote one, and the operator's flags.
struct Case<'a> {
    mine: LocalReplicaState,
    theirs: PeerReplicaState<'a>,
    overwrite: bool,
    word: bool,
}

/// All cases: equal, behind, ahead and altered inventories; own and reported epochs before and
/// after theirs.
fn all(look: &mut dyn FnMut(&Case<'_>, HistoryComparison)) -> usize {
    let course = object(&[vec![1], vec![2], vec![3]]);
    let other = object(&[vec![1], vec![7]]);
    let mut many = 0;
    for (ours, there) in [(1, &course[1]), (1, &course[2]), (1, &course[0]), (1, &other[1])] {
        let ours = &course[ours];
        let digest = Inventory::digest(&there.to_bytes());
        let held = Inventory::digest(&ours.to_bytes());
        for (state, own, heard) in STATES.iter().flat_map(|state| {
            [(1, 1), (1, 9), (3, 3), (3, 9), (5, 5), (5, 9)].map(move |(own, heard)| (*state, own, heard))
        }) {
            for bits in 0..64_u32 {
                let [restored, purged, destroyed, believed, overwrite, word] =
                    std::array::from_fn(|bit| bits & (1 << bit) != 0);
                for told in STATES {
                    let stand = CustodyState {
                        state: Some(state),
                        epoch: own,
                        inventory: Some(short_digest(&held).to_owned()),
                        restored,
                        transferable: true,
                        granted: None,
                    };
                    let mine = LocalReplicaState {
                        stand,
                        inventory: Some(ours.clone()),
                        missing: false,
                        sound: true,
                        destroyed: destroyed && state == State::Deleted,
                        heard,
                    };
                    let purged = purged && told == State::Deleted;
                    let theirs = PeerReplicaState {
                        state: told,
                        epoch: 3,
                        inventory: there,
                        digest: &digest,
                        purged,
                        believed,
                    };
                    look(&Case { mine, theirs, overwrite, word }, compare_inventories(ours, there));
                    many += 1;
                }
            }
        }
    }
    many
}

/// Clause 2.1, threats S7 to S9.
#[test]
fn whatever_is_told_nothing_comes_back_to_life_and_nothing_is_overwritten_in_silence() {
    let many = all(&mut |Case { mine, theirs, overwrite, word }, compared| {
        let verdict = compare_replicas(mine, theirs);
        let brings = operator_allows(verdict, mine, theirs, (*overwrite, *word));
        let stand = &mine.stand;
        let case = || format!("{mine:?} {theirs:?} {overwrite} {word}: {verdict:?}");
        match stand.state {
            Some(State::Deleted) => {
                assert!(
                    !brings || (theirs.purged && verdict == ReplicaComparison::Removed),
                    "revived: {}",
                    case()
                );
            }
            Some(State::Original) if !stand.restored => {
                assert!(!brings || (*overwrite && *word), "an Original gave way: {}", case());
                let lossless = compared == HistoryComparison::Behind
                    && (verdict == ReplicaComparison::Lacking || theirs.epoch < stand.epoch);
                let yields = verdict == ReplicaComparison::Conflict && theirs.epoch >= stand.epoch;
                assert!(!brings || lossless || yields, "{}", case());
                assert!(!brings || compared != HistoryComparison::Ahead, "versions are lost: {}", case());
            }
            Some(State::Copy) => {
                let silent = brings && !*overwrite && !theirs.purged;
                assert!(
                    !silent || matches!(compared, HistoryComparison::Behind | HistoryComparison::Equal),
                    "{}",
                    case()
                );
                assert!(
                    !brings || *overwrite || theirs.epoch >= stand.epoch,
                    "against its own epoch: {}",
                    case()
                );
            }
            _ => {}
        }
    });
    assert_eq!(many, 4 * 3 * 6 * 64 * 3);
}

/// A false epoch does not keep a copy from following the Original, and a tombstone propagates.
#[test]
fn who_is_believed_is_followed_whatever_others_told() {
    all(&mut |Case { mine, theirs, .. }, compared| {
        let in_time = theirs.epoch >= mine.stand.epoch;
        if mine.stand.state == Some(State::Copy)
            && theirs.believed
            && in_time
            && compared == HistoryComparison::Behind
        {
            let expected = if theirs.state == State::Deleted {
                ReplicaComparison::Removed
            } else {
                ReplicaComparison::Behind
            };
            assert_eq!(compare_replicas(mine, theirs), expected, "{mine:?} {theirs:?}");
        }
        if mine.stand.state == Some(State::Copy) && theirs.purged && in_time && theirs.believed {
            assert_eq!(compare_replicas(mine, theirs), ReplicaComparison::Removed, "{mine:?} {theirs:?}");
        }
    });
}

/// Of two that claim the Original, one can yield, never the one of the later epoch; that one first
/// gets what only the other has.
#[test]
fn of_two_originals_the_one_of_the_earlier_epoch_can_yield() {
    all(&mut |Case { mine, theirs, .. }, compared| {
        if compare_replicas(mine, theirs) == ReplicaComparison::Conflict {
            let (earlier, meant) = (
                theirs.epoch >= mine.stand.epoch,
                operator_allows(ReplicaComparison::Conflict, mine, theirs, (true, true)),
            );
            assert_eq!(meant && earlier, earlier && compared != HistoryComparison::Ahead);
            assert_eq!(meant && !earlier, !earlier && compared == HistoryComparison::Behind);
        }
    });
}
