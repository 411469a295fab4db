use ibi_protocol::analysis::ArchiveId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::archive::{ArchivePlatform, RegistrationStatus};
use crate::transport::BreakerState;

/// A server that reports each request and then always sends this response.
async fn serve(answer: &'static str) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut read = Vec::new();
                while stream.read_buf(&mut read).await.unwrap_or(0) > 0 {
                    if read.ends_with(b"\r\n\r\n") {
                        let asked = String::from_utf8(std::mem::take(&mut read)).unwrap();
                        let _ = tell.send(asked.lines().next().unwrap().to_owned());
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                }
            });
        }
    });
    (address, told)
}

fn archive(address: Option<String>) -> RegisteredArchive {
    RegisteredArchive {
        id: ArchiveId(1),
        service: "sid.inpe.br/mtc-m18@80/2008/03.17.15.17".parse().unwrap(),
        address,
        hosts: Vec::new(),
        standing: RegistrationStatus::OnLine,
        registered: 0,
        changed: 0,
        email: None,
        platform: ArchivePlatform::default(),
    }
}

#[tokio::test]
async fn clause_3_a_question_is_a_get_of_the_service_in_its_own_spelling() {
    let (address, mut told) = serve("HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\nconfirmation yes").await;
    let health = ArchiveHealth::default();
    let network = HttpTransport::new(true, health.clone());
    let archive = archive(Some(address));
    health.failed(archive.id);
    assert_eq!(network.ask(&archive, "servicesubject=x&a=b%20c").await.unwrap(), "confirmation yes");
    let asked = told.recv().await.unwrap();
    assert_eq!(asked, "GET /sid.inpe.br/mtc-m18@80/2008/03.17.15.17?servicesubject=x&a=b%20c HTTP/1.1");
    assert_eq!(health.failures(archive.id), 0);
    // A new address applies at once.
    let (address, mut told) = serve("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(network.ask(&self::archive(Some(address)), "q").await.unwrap(), "");
    told.recv().await.unwrap();
}

#[tokio::test]
async fn what_is_no_answer_is_said_and_counted() {
    let health = ArchiveHealth::default();
    let id = ArchiveId(1);
    let network = HttpTransport::new(true, health.clone());
    let ask = async |address: &str| network.ask(&archive(Some(address.to_owned())), "q").await.unwrap_err().0;
    // In turn: it answers but refuses the request; it has an internal error; nobody answers.
    let (address, _told) = serve("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!((ask(&address).await.as_str(), health.failures(id)), ("it answered 400 Bad Request", 0));
    let (address, _told) = serve("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(
        (ask(&address).await.as_str(), health.failures(id)),
        ("it answered 503 Service Unavailable", 1)
    );
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    assert!(ask(&closed).await.starts_with("no answer"));
    assert_eq!(health.failures(id), 2);
    assert!(ask("127.1").await.starts_with("no address"));
    assert_eq!(network.ask(&archive(None), "q").await.unwrap_err().0, "it has no address");
    let careful = HttpTransport::new(false, ArchiveHealth::default());
    let refused = careful.ask(&archive(Some(closed)), "q").await.unwrap_err().0;
    assert!(refused.contains("`--allow-private` allows it"), "{refused}");
}

#[tokio::test]
async fn who_gives_up_after_long_had_no_answer() {
    let health = ArchiveHealth::default();
    let id = ArchiveId(1);
    let network = HttpTransport::new(true, health.clone());
    let (address, mut told) = serve("").await;
    for (waits, failures) in [(50, 0), (1050, 1)] {
        let asked = network.ask(&archive(Some(address.clone())), "q");
        assert!(tokio::time::timeout(Duration::from_millis(waits), asked).await.is_err());
        told.recv().await.unwrap();
        assert_eq!(health.failures(id), failures);
    }
}

/// A breaker that opened is asked one question at a time, and closes when that is answered.
#[tokio::test]
async fn failures_open_the_breaker_and_only_an_answered_question_closes_it() {
    let health = ArchiveHealth::with_random(|| 0);
    let id = ArchiveId(1);
    let network = HttpTransport::new(true, health.clone());
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    for _ in 0..5 {
        assert_eq!(health.breaker(id), BreakerState::Closed);
        network.ask(&archive(Some(closed.clone())), "q").await.unwrap_err();
    }
    assert_eq!(health.breaker(id), BreakerState::Open);
    let record = health.record(id);
    assert!(record.admit(Instant::now()).is_none());
    let (address, _told) = serve("HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\nconfirmation yes").await;
    network.call_back(&archive(Some(address.clone())), "q").await.unwrap();
    assert_eq!((health.breaker(id), health.failures(id)), (BreakerState::Open, 0), "it may be tried");
    let probe = record.admit(Instant::now()).unwrap();
    assert_eq!(health.breaker(id), BreakerState::HalfOpen);
    assert!(record.admit(Instant::now()).is_none(), "one is enough");
    // A failed callback does not decide for the probe.
    network.call_back(&archive(Some(closed.clone())), "q").await.unwrap_err();
    assert_eq!(health.breaker(id), BreakerState::HalfOpen);
    network.ask(&archive(Some(closed)), "q").await.unwrap_err();
    drop(probe);
    assert_eq!(health.breaker(id), BreakerState::Open);
    assert!(record.admit(Instant::now()).is_none());
    health.confirmed(id);
    let probe = record.admit(Instant::now()).unwrap();
    network.ask(&archive(Some(address)), "q").await.unwrap();
    drop(probe);
    assert_eq!(health.breaker(id), BreakerState::Closed);
}
