//! Many callers of one minter on a real disk.

use std::collections::HashSet;
use std::time::Duration;

use ibi_id::{Granularity, Host};
use ibi_mint::clock::SystemClock;
use ibi_mint::{ClockLimits, DistributorEdition, MintRequest};

const CALLERS: usize = 8;
const CALLS: usize = 200;

#[test]
fn callers_share_syncs_and_no_label() {
    let folder = tempfile::tempdir().unwrap();
    let host = format!("t{}.callers.test", std::process::id());
    let from = ibi_mint::MinterConfig {
        host: Some((Host::parse(&host).unwrap(), None)),
        ip: None,
        edition: DistributorEdition::Rtc2015,
        allow_private: true,
    };
    ibi_mint::init(folder.path(), &from, [9; 16], &SystemClock::new()).unwrap();
    let minter = ibi_mint::open(folder.path(), SystemClock::new(), ClockLimits::default()).unwrap();
    let request =
        MintRequest { count: 2, granularity: Granularity::NANOSECOND, max_wait: Duration::from_secs(5) };
    let dates: Vec<Vec<_>> = std::thread::scope(|scope| {
        let call = || (0..CALLS).flat_map(|_| minter.mint(request).unwrap().dates().to_vec()).collect();
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert!(dates.iter().all(|own| own.is_sorted()), "each caller's labels come in order");
    let all: HashSet<_> = dates.iter().flatten().collect();
    assert_eq!(all.len(), CALLERS * CALLS * 2, "and no two callers have one label");
    drop(minter);
    let marks = ibi_mint::read_state(folder.path()).unwrap().mark.unwrap().sequence;
    assert!(marks < (CALLERS * CALLS) as u64, "{marks} marks: callers that wait share one");
    for claims in ["/run/lock", "/var/tmp"] {
        let _ = std::fs::remove_file(format!("{claims}/ibi-callers.test+t{}", std::process::id()));
    }
}
