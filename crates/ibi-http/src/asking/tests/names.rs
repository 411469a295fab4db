//! Names that lead here and there (threat K5).

use std::io;
use std::pin::Pin;
use std::sync::Mutex;

use super::*;

/// Gives these answers one after the other, then the last one for ever; counts how often it was asked.
struct Stub {
    answers: Mutex<Vec<Option<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

fn stub(answers: &[Option<&[&str]>]) -> Arc<Stub> {
    let ips = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let answers = answers.iter().rev().map(|answer| answer.map(ips)).collect();
    Arc::new(Stub { answers: Mutex::new(answers), asked: AtomicUsize::new(0) })
}

impl Lookup for Stub {
    fn lookup(&self, _: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop().unwrap() } else { answers[0].clone() };
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            answer.ok_or_else(|| io::Error::other("no such name"))
        })
    }
}

impl Stub {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// An ordinary address that nobody has (the former 6bone).
const NOBODY: &str = "3ffe::1";

fn is_refused(said: &Result<String, AskError>) -> bool {
    matches!(said, Err(AskError::Refused { .. }))
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_bound_anew_leads_nowhere() {
    let stub = stub(&[Some(&[NOBODY]), Some(&["127.0.0.1"])]);
    let asker = Asker::with(false, stub.clone());
    let target = asker.target("rebinds.example.org:80").unwrap();
    assert!(matches!(get(&asker, &target, "/").await, Err(AskError::Silent(_))));
    assert!(matches!(get(&asker, &target, "/").await, Err(AskError::Silent(_))));
    assert_eq!(stub.asked(), 1);
    tokio::time::advance(Duration::from_secs(31)).await;
    assert!(is_refused(&get(&asker, &target, "/").await));
    assert_eq!(stub.asked(), 2);
}

#[tokio::test]
async fn each_address_of_a_name_is_checked() {
    let server = play(|_, _, _| Act::Say(answer("yes"))).await;
    let port = server.address.rsplit(':').next().unwrap();
    let name = format!("several.example.org:{port}");
    for ips in [&["127.0.0.1"][..], &["10.0.0.1", "127.0.0.1"], &["::ffff:127.0.0.1"], &["0.0.0.0"]] {
        let asker = Asker::with(false, stub(&[Some(ips)]));
        let target = asker.target(&name).unwrap();
        assert!(is_refused(&get(&asker, &target, "/").await), "{ips:?}");
    }
    assert_eq!(server.connections(), 0);
    // Those that are allowed are tried, one after the other.
    let asker = Asker::with(true, stub(&[Some(&["169.254.169.254", "127.0.0.1"])]));
    assert_eq!(get(&asker, &asker.target(&name).unwrap(), "/").await.unwrap(), "yes");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn loopback_only_if_it_is_allowed() {
    let server = play(|_, _, _| Act::Say(answer("yes"))).await;
    let asker = Asker::new(false);
    assert!(is_refused(&get(&asker, &asker.target(&server.address).unwrap(), "/").await));
    assert_eq!(server.connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_looked_up_once_for_all_who_wait() {
    let stub = stub(&[Some(&["10.0.0.1"])]);
    let asker = Asker::with(false, stub.clone());
    let target = asker.target("slow.example.org").unwrap();
    // One who gives up does not make others begin again.
    let asked = asker.get(&target, "/".to_owned());
    assert!(tokio::time::timeout(Duration::from_millis(1), asked).await.is_err());
    let asked: Vec<_> = (0..50).map(|_| tokio::spawn(asker.get(&target, "/".to_owned()))).collect();
    for asked in asked {
        assert!(matches!(asked.await.unwrap(), Err(AskError::Refused { .. })));
    }
    assert_eq!(stub.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn that_a_name_is_not_there_is_soon_forgotten() {
    let stub = stub(&[None, Some(&["10.0.0.1"])]);
    let asker = Asker::with(false, stub.clone());
    let target = asker.target("new.example.org").unwrap();
    for _ in 0..2 {
        assert!(matches!(get(&asker, &target, "/").await, Err(AskError::Silent(_))));
    }
    assert_eq!(stub.asked(), 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(is_refused(&get(&asker, &target, "/").await));
}
