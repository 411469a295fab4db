use super::*;
use crate::holders::whole::tests::object;

const STATES: [State; 3] = [State::Original, State::Copy, State::Deleted];

/// One case: what is here, what is there, and what the operator said.
struct Case<'a> {
    mine: Mine,
    theirs: Theirs<'a>,
    overwrite: bool,
    word: bool,
}

/// Every case there is: inventories that are equal, behind, ahead and altered, own epochs and heard ones before and after theirs.
fn all(look: &mut dyn FnMut(&Case<'_>, Compared)) -> usize {
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
                    let stand = Stand {
                        state: Some(state),
                        epoch: own,
                        inventory: Some(short(&held).to_owned()),
                        restored,
                        transferable: true,
                        granted: None,
                    };
                    let mine = Mine {
                        stand,
                        inventory: Some(ours.clone()),
                        missing: false,
                        sound: true,
                        destroyed: destroyed && state == State::Deleted,
                        heard,
                    };
                    let purged = purged && told == State::Deleted;
                    let theirs =
                        Theirs { state: told, epoch: 3, inventory: there, digest: &digest, purged, believed };
                    look(&Case { mine, theirs, overwrite, word }, compare(ours, there));
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
        let verdict = judge(mine, theirs);
        let brings = is_meant(verdict, mine, theirs, (*overwrite, *word));
        let stand = &mine.stand;
        let case = || format!("{mine:?} {theirs:?} {overwrite} {word}: {verdict:?}");
        match stand.state {
            Some(State::Deleted) => {
                assert!(!brings || (theirs.purged && verdict == Verdict::Removed), "revived: {}", case());
            }
            Some(State::Original) if !stand.restored => {
                assert!(!brings || (*overwrite && *word), "an Original gave way: {}", case());
                let lossless = compared == Compared::Behind
                    && (verdict == Verdict::Lacking || theirs.epoch < stand.epoch);
                let yields = verdict == Verdict::Conflict && theirs.epoch >= stand.epoch;
                assert!(!brings || lossless || yields, "{}", case());
                assert!(!brings || compared != Compared::Ahead, "versions are lost: {}", case());
            }
            Some(State::Copy) => {
                let silent = brings && !*overwrite && !theirs.purged;
                assert!(!silent || matches!(compared, Compared::Behind | Compared::Equal), "{}", case());
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

/// A lie about an epoch does not keep a copy from who has the Original, and a tombstone travels.
#[test]
fn who_is_believed_is_followed_whatever_others_told() {
    all(&mut |Case { mine, theirs, .. }, compared| {
        let in_time = theirs.epoch >= mine.stand.epoch;
        if mine.stand.state == Some(State::Copy) && theirs.believed && in_time && compared == Compared::Behind
        {
            let expected = if theirs.state == State::Deleted { Verdict::Removed } else { Verdict::Behind };
            assert_eq!(judge(mine, theirs), expected, "{mine:?} {theirs:?}");
        }
        if mine.stand.state == Some(State::Copy) && theirs.purged && in_time && theirs.believed {
            assert_eq!(judge(mine, theirs), Verdict::Removed, "{mine:?} {theirs:?}");
        }
    });
}

/// Of two that say that they have the Original, one can yield, and not the one of the later epoch; that one first gets what only
/// the other has.
#[test]
fn of_two_originals_the_one_of_the_earlier_epoch_can_yield() {
    all(&mut |Case { mine, theirs, .. }, compared| {
        if judge(mine, theirs) == Verdict::Conflict {
            let (earlier, meant) =
                (theirs.epoch >= mine.stand.epoch, is_meant(Verdict::Conflict, mine, theirs, (true, true)));
            assert_eq!(meant && earlier, earlier && compared != Compared::Ahead);
            assert_eq!(meant && !earlier, !earlier && compared == Compared::Behind);
        }
    });
}
