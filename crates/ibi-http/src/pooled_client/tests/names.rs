//! Names with changing or several addresses (threat K5).

use std::io;
use std::pin::Pin;
use std::sync::Mutex;

use super::*;

/// Returns these answers in order, then the last one forever; counts the lookups.
struct StubLookup {
    answers: Mutex<Vec<Option<Vec<IpAddr>>>>,
    lookups: AtomicUsize,
}

fn stub(answers: &[Option<&[&str]>]) -> Arc<StubLookup> {
    let ips = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let answers = answers.iter().rev().map(|answer| answer.map(ips)).collect();
    Arc::new(StubLookup { answers: Mutex::new(answers), lookups: AtomicUsize::new(0) })
}

impl HostLookup for StubLookup {
    fn lookup(&self, _: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop().unwrap() } else { answers[0].clone() };
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            answer.ok_or_else(|| io::Error::other("no such name"))
        })
    }
}

impl StubLookup {
    fn lookups(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }
}

/// An ordinary address that is unassigned (the former 6bone).
const UNASSIGNED_ADDRESS: &str = "3ffe::1";

fn is_refused(result: &Result<String, PooledClientError>) -> bool {
    matches!(result, Err(PooledClientError::Refused { .. }))
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_bound_anew_leads_nowhere() {
    let stub = stub(&[Some(&[UNASSIGNED_ADDRESS]), Some(&["127.0.0.1"])]);
    let client = PooledClient::with_lookup(false, stub.clone());
    let target = client.target("rebinds.example.org:80").unwrap();
    assert!(matches!(get(&client, &target, "/").await, Err(PooledClientError::Silent(_))));
    assert!(matches!(get(&client, &target, "/").await, Err(PooledClientError::Silent(_))));
    assert_eq!(stub.lookups(), 1);
    tokio::time::advance(Duration::from_secs(31)).await;
    assert!(is_refused(&get(&client, &target, "/").await));
    assert_eq!(stub.lookups(), 2);
}

#[tokio::test]
async fn each_address_of_a_name_is_checked() {
    let server = play(|_, _, _| Act::Say(answer("yes"))).await;
    let port = server.address.rsplit(':').next().unwrap();
    let name = format!("several.example.org:{port}");
    for ips in [&["127.0.0.1"][..], &["10.0.0.1", "127.0.0.1"], &["::ffff:127.0.0.1"], &["0.0.0.0"]] {
        let client = PooledClient::with_lookup(false, stub(&[Some(ips)]));
        let target = client.target(&name).unwrap();
        assert!(is_refused(&get(&client, &target, "/").await), "{ips:?}");
    }
    assert_eq!(server.connections(), 0);
    // The permitted ones are tried in order.
    let client = PooledClient::with_lookup(true, stub(&[Some(&["169.254.169.254", "127.0.0.1"])]));
    assert_eq!(get(&client, &client.target(&name).unwrap(), "/").await.unwrap(), "yes");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn loopback_only_if_it_is_allowed() {
    let server = play(|_, _, _| Act::Say(answer("yes"))).await;
    let client = PooledClient::new(false);
    assert!(is_refused(&get(&client, &client.target(&server.address).unwrap(), "/").await));
    assert_eq!(server.connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_looked_up_once_for_all_who_wait() {
    let stub = stub(&[Some(&["10.0.0.1"])]);
    let client = PooledClient::with_lookup(false, stub.clone());
    let target = client.target("slow.example.org").unwrap();
    // A caller that gives up does not make others start over.
    let lookups = client.get(&target, "/".to_owned());
    assert!(tokio::time::timeout(Duration::from_millis(1), lookups).await.is_err());
    let lookups: Vec<_> = (0..50).map(|_| tokio::spawn(client.get(&target, "/".to_owned()))).collect();
    for lookups in lookups {
        assert!(matches!(lookups.await.unwrap(), Err(PooledClientError::Refused { .. })));
    }
    assert_eq!(stub.lookups(), 1);
}

#[tokio::test(start_paused = true)]
async fn that_a_name_is_not_there_is_soon_forgotten() {
    let stub = stub(&[None, Some(&["10.0.0.1"])]);
    let client = PooledClient::with_lookup(false, stub.clone());
    let target = client.target("new.example.org").unwrap();
    for _ in 0..2 {
        assert!(matches!(get(&client, &target, "/").await, Err(PooledClientError::Silent(_))));
    }
    assert_eq!(stub.lookups(), 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(is_refused(&get(&client, &target, "/").await));
}
