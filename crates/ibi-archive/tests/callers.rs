//! Many callers of one minter on a real disk.

use std::collections::HashSet;
use std::time::Duration;

use ibi_archive::mint::clock::SystemClock;
use ibi_archive::mint::{self, Edition, Limits, Request};
use ibi_id::{Granularity, Host};

const CALLERS: usize = 8;
const CALLS: usize = 200;

#[test]
fn callers_share_syncs_and_no_label() {
    let folder = tempfile::tempdir().unwrap();
    let host = format!("t{}.callers.test", std::process::id());
    let from = mint::From {
        host: Some((Host::parse(&host).unwrap(), None)),
        ip: None,
        edition: Edition::Rtc2015,
        allow_private: true,
    };
    mint::init(folder.path(), &from, [9; 16], &SystemClock::new()).unwrap();
    let minter = mint::open(folder.path(), SystemClock::new(), Limits::default()).unwrap();
    let request =
        Request { count: 2, granularity: Granularity::NANOSECOND, max_wait: Duration::from_secs(5) };
    let dates: Vec<Vec<_>> = std::thread::scope(|scope| {
        let call = || (0..CALLS).flat_map(|_| minter.mint(request).unwrap().dates().to_vec()).collect();
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert!(dates.iter().all(|own| own.is_sorted()), "each caller's labels come in order");
    let all: HashSet<_> = dates.iter().flatten().collect();
    assert_eq!(all.len(), CALLERS * CALLS * 2, "and no two callers have one label");
    drop(minter);
    let marks = mint::look(folder.path()).unwrap().mark.unwrap().sequence;
    assert!(marks < (CALLERS * CALLS) as u64, "{marks} marks: callers that wait share one");
    for claims in ["/run/lock", "/var/tmp"] {
        let _ = std::fs::remove_file(format!("{claims}/ibi-callers.test+t{}", std::process::id()));
    }
}
