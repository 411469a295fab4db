//! Any clock, any granularities, restarts, reboots and recoveries: no date is ever given out twice.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use ibi_id::{Granularity, ibip, repository};
use ibi_store::{BootTime, MemoryMarkStorage};
use proptest::prelude::*;

use super::*;
use crate::MintRequest;

/// A machine whose clocks are set by hand. Sleeping moves both.
struct MintTestMachine {
    clocks: Mutex<MintTestClocks>,
}

#[derive(Clone, Copy)]
struct MintTestClocks {
    /// Nanoseconds since the Unix epoch.
    wall: i64,
    boot: u32,
    since_boot: u64,
}

const START_NANOS: i64 = 1_794_778_003_123_456_789;

impl MintTestMachine {
    fn new() -> Self {
        Self { clocks: Mutex::new(MintTestClocks { wall: START_NANOS, boot: 0, since_boot: 1_000_000_000 }) }
    }

    /// Time passes on both clocks; then the wall clock is set by some amount.
    fn pass(&self, nanos: u64, step: i64) {
        let mut clocks = self.clocks.lock().unwrap();
        clocks.since_boot += nanos;
        clocks.wall += nanos.cast_signed() + step;
        // Labels of an address cannot tell what was before 1995.
        clocks.wall = clocks.wall.max(900_000_000_000_000_000);
    }

    fn reboot(&self) {
        let mut clocks = self.clocks.lock().unwrap();
        (clocks.boot, clocks.since_boot) = (clocks.boot + 1, 0);
    }
}

impl MintClock for &MintTestMachine {
    fn read(&self) -> ClockReading {
        let MintTestClocks { wall, boot, since_boot } = *self.clocks.lock().unwrap();
        let seconds = wall.div_euclid(1_000_000_000);
        ClockReading {
            wall: Instant::new(seconds, wall.rem_euclid(1_000_000_000).unsigned_abs() * 1000).unwrap(),
            boot: BootTime { machine: "m".into(), id: format!("b{boot}"), nanos: since_boot },
        }
    }

    fn sleep(&self, time: Duration) {
        self.pass(u64::try_from(time.as_nanos()).unwrap(), 0);
    }
}

fn subsystem(edition: DistributorEdition) -> Subsystem {
    Subsystem { id: "0".repeat(32), rep: Some("inpe.br/a".into()), ibip: Some("8JMKD3MGP8W".into()), edition }
}

#[derive(Debug, Clone)]
enum MintTestStep {
    Mint { count: usize, granularity: usize, max_wait: u64 },
    Pass { nanos: u64, step: i64 },
    Restart,
    Reboot,
    Recover,
}

fn step() -> impl Strategy<Value = MintTestStep> {
    const SECOND_NANOS: i64 = 1_000_000_000;
    let mint = (1..40_usize, 0..11_usize, 0..70_u64)
        .prop_map(|(count, granularity, max_wait)| MintTestStep::Mint { count, granularity, max_wait });
    let set = prop_oneof![
        6 => Just(0),
        4 => -3 * SECOND_NANOS..3 * SECOND_NANOS,
        2 => -4000 * SECOND_NANOS..4000 * SECOND_NANOS,
        1 => prop_oneof![Just(-300 * 86_400 * SECOND_NANOS), Just(300 * 86_400 * SECOND_NANOS), Just(4 * 365 * 86_400 * SECOND_NANOS)],
    ];
    let pass = (prop_oneof![0..1000_u64, 0..2_000_000_000_u64, 0..90_000_000_000_u64], set)
        .prop_map(|(nanos, step)| MintTestStep::Pass { nanos, step });
    prop_oneof![8 => mint, 6 => pass, 1 => Just(MintTestStep::Restart), 1 => Just(MintTestStep::Reboot), 2 => Just(MintTestStep::Recover)]
}

/// Plays steps and returns how many labels were given out; panics at the first that was given out
/// before.
fn play(steps: &[MintTestStep], edition: DistributorEdition) -> usize {
    let machine = MintTestMachine::new();
    let mut mark = recovered_mark(&[], &[], 0, (&machine).read());
    let (mut reps, mut ibips) = (HashSet::new(), HashSet::new());
    for step in steps {
        match *step {
            MintTestStep::Mint { count, granularity, max_wait } => {
                let granularity = match edition {
                    DistributorEdition::Rtc2015 => Granularity::all().nth(granularity).unwrap(),
                    DistributorEdition::Nbr2011 => Granularity::SECOND,
                };
                let minter = Minter::new(
                    subsystem(edition),
                    MemoryMarkStorage::new(mark.clone()),
                    &machine,
                    ClockLimits::default(),
                );
                let request = MintRequest { count, granularity, max_wait: Duration::from_secs(max_wait) };
                let minted = minter.mint(request);
                let after = minter.into_mark();
                match minted {
                    Ok(minted) => {
                        assert_eq!(minted.dates().len(), count);
                        let now = (&machine).read().wall;
                        for &date in minted.dates() {
                            assert!(date <= now, "{date} was given out at {now}");
                            assert!(reps.insert(repository::suffix(date).to_string()), "{date} twice");
                            assert!(ibips.insert(ibip::suffix(date).unwrap().to_string()), "{date} twice");
                        }
                    }
                    Err(_) => assert_eq!(after, mark, "a refusal consumes nothing"),
                }
                mark = after;
            }
            MintTestStep::Pass { nanos, step } => machine.pass(nanos, step),
            // What `trusted` does where it cannot be sure.
            MintTestStep::Restart => mark.last = mark.last.max((&machine).read().wall),
            MintTestStep::Reboot => machine.reboot(),
            MintTestStep::Recover => {
                mark = recovered_mark(std::slice::from_ref(&mark), &[], 0, (&machine).read());
            }
        }
    }
    reps.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_date_is_given_out_twice(steps in prop::collection::vec(step(), 1..80)) {
        play(&steps, DistributorEdition::Rtc2015);
    }

    #[test]
    fn nor_by_the_2011_edition(steps in prop::collection::vec(step(), 1..80)) {
        play(&steps, DistributorEdition::Nbr2011);
    }
}

const FOUR_YEARS_NANOS: i64 = 4 * 365 * 86_400 * 1_000_000_000;
const MINT_STEP: MintTestStep = MintTestStep::Mint { count: 30, granularity: 0, max_wait: 5 };

#[test]
fn clause_1_6_a_poisoned_future_is_recovered_from() {
    // Minted in 2030 after a confirmed jump; the clock is set right; an operator confirms again.
    let to_2030 = [
        MINT_STEP,
        MintTestStep::Pass { nanos: 5, step: FOUR_YEARS_NANOS },
        MintTestStep::Recover,
        MINT_STEP,
    ];
    let back = [
        MintTestStep::Pass { nanos: 5, step: -FOUR_YEARS_NANOS },
        MINT_STEP,
        MintTestStep::Recover,
        MINT_STEP,
    ];
    let again_2030 =
        [MintTestStep::Pass { nanos: 1000, step: FOUR_YEARS_NANOS }, MintTestStep::Recover, MINT_STEP];
    let steps = [&to_2030[..], &back, &again_2030].concat();
    assert_eq!(
        play(&steps, DistributorEdition::Rtc2015),
        120,
        "one of five is refused: before the second recovery"
    );
}

#[test]
fn clause_1_6_a_clock_that_jumps_forward_stops_the_minter() {
    let minutes = |n: i64| n * 60 * 1_000_000_000;
    assert_eq!(
        play(
            &[MINT_STEP, MintTestStep::Pass { nanos: 5, step: minutes(4) }, MINT_STEP],
            DistributorEdition::Rtc2015
        ),
        60
    );
    assert_eq!(
        play(
            &[MINT_STEP, MintTestStep::Pass { nanos: 5, step: minutes(6) }, MINT_STEP],
            DistributorEdition::Rtc2015
        ),
        30
    );
    // Time that passes on both clocks is no jump.
    let idle = MintTestStep::Pass { nanos: 86_400_000_000_000, step: 0 };
    assert_eq!(play(&[MINT_STEP, idle, MINT_STEP], DistributorEdition::Rtc2015), 60);
}

#[test]
fn clause_1_6_after_a_reboot_a_long_gap_or_a_clock_before_the_mark_stops_the_minter() {
    let day = 86_400 * 1_000_000_000;
    let after = |step: i64| {
        play(
            &[MINT_STEP, MintTestStep::Reboot, MintTestStep::Pass { nanos: 5, step }, MINT_STEP],
            DistributorEdition::Rtc2015,
        )
    };
    assert_eq!(after(399 * day), 60);
    assert_eq!(after(401 * day), 30);
    assert_eq!(after(-1_000_000_000), 30);
}

#[test]
fn clause_1_6_the_clock_set_back_is_waited_for_or_refused() {
    let seconds = |n: i64| n * 1_000_000_000;
    assert_eq!(
        play(
            &[MINT_STEP, MintTestStep::Pass { nanos: 5, step: -seconds(4) }, MINT_STEP],
            DistributorEdition::Rtc2015
        ),
        60
    );
    assert_eq!(
        play(
            &[MINT_STEP, MintTestStep::Pass { nanos: 5, step: -seconds(6) }, MINT_STEP],
            DistributorEdition::Rtc2015
        ),
        30
    );
}

#[test]
fn a_refusal_names_the_time_it_would_need() {
    let machine = MintTestMachine::new();
    let mark = recovered_mark(&[], &[], 0, (&machine).read());
    let minter = Minter::new(
        subsystem(DistributorEdition::Rtc2015),
        MemoryMarkStorage::new(mark),
        &machine,
        ClockLimits::default(),
    );
    let ask = |count, granularity, seconds| {
        minter.mint(MintRequest { count, granularity, max_wait: Duration::from_secs(seconds) })
    };
    // The clock stands at .123…: nine more seconds have to begin.
    let Err(MintError::WouldWait { need, ahead: None, .. }) = ask(10, Granularity::SECOND, 5) else {
        panic!("not refused");
    };
    assert_eq!(need, Duration::from_nanos(9_876_543_211));
    assert!(matches!(ask(0, Granularity::SECOND, 5), Err(MintError::Count { .. })));
    assert!(matches!(ask(1, Granularity::SECOND, 301), Err(MintError::WaitTooLong { .. })));
    assert_eq!(ask(10, Granularity::SECOND, 10).unwrap().dates().len(), 10);
}

#[test]
fn a_disk_that_fails_gives_nothing_out_and_stops() {
    let machine = MintTestMachine::new();
    let mut marks = MemoryMarkStorage::new(recovered_mark(&[], &[], 0, (&machine).read()));
    marks.fail_after = Some(1);
    let minter = Minter::new(subsystem(DistributorEdition::Rtc2015), marks, &machine, ClockLimits::default());
    let request = MintRequest { count: 1, granularity: Granularity::NANOSECOND, max_wait: Duration::ZERO };
    machine.pass(1000, 0);
    assert!(minter.mint(request).is_ok());
    for _ in 0..3 {
        assert!(matches!(minter.mint(request), Err(MintError::Store(_))));
    }
}
