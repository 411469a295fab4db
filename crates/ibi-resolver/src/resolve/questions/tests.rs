use std::sync::atomic::AtomicUsize;

use super::*;
use crate::archive::{ArchivePlatform, RegistrationStatus};
use crate::resolve::roster::{ArchiveRoster, RosterCache};

/// Answers each question after 100 ms with the number of questions so far.
#[derive(Default)]
struct CountingTransport {
    asked: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
}

struct RunningQuestion(Arc<AtomicUsize>);

impl Drop for RunningQuestion {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ArchiveTransport for CountingTransport {
    fn ask(
        &self,
        _archive: &RegisteredArchive,
        _query: &str,
    ) -> impl Future<Output = AnswerBody> + Send + 'static {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.running.fetch_add(1, Ordering::SeqCst);
        let running = RunningQuestion(Arc::clone(&self.running));
        async move {
            let _running = running;
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(Bytes::from(number.to_string()))
        }
    }
}

fn roster(address: &str) -> Arc<ArchiveRoster> {
    let archive = RegisteredArchive {
        id: ArchiveId(1),
        service: "sid.inpe.br/mtc-m18/2008/03.17.15.17".parse().unwrap(),
        address: Some(address.to_owned()),
        hosts: Vec::new(),
        standing: RegistrationStatus::OnLine,
        registered: 0,
        changed: 0,
        email: None,
        platform: ArchivePlatform::default(),
    };
    RosterCache::default().of(Arc::from([Arc::new(archive)]), None, None)
}

#[tokio::test(start_paused = true)]
async fn a_thousand_equal_questions_are_asked_once_and_different_ones_are_not() {
    let (pending, transport, roster) =
        (PendingQuestions::default(), CountingTransport::default(), roster("a.br"));
    let moved = self::roster("b.br");
    let ask = |query: &str, roster: &ArchiveRoster, shares: bool| {
        pending.ask(&transport, &roster.members[0], &Arc::from(query), shares).unwrap()
    };
    let equal: Vec<_> = (0..1000).map(|_| ask("q", &roster, true)).collect();
    assert_eq!((transport.asked.load(Ordering::SeqCst), pending.count()), (1, 1));
    let other = ask("p", &roster, true);
    let alone = ask("q", &roster, false);
    let elsewhere = ask("q", &moved, true);
    assert_eq!(transport.asked.load(Ordering::SeqCst), 4);
    for answer in equal {
        assert_eq!(answer.await.unwrap(), "1");
    }
    assert_eq!((other.await.unwrap(), alone.await.unwrap()), (Bytes::from("2"), Bytes::from("3")));
    assert_eq!(elsewhere.await.unwrap(), "4");
    // Nothing is kept beyond that.
    assert_eq!(pending.count(), 0);
    assert_eq!(ask("q", &roster, true).await.unwrap(), "5");
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_cancels_nothing_for_others_and_the_last_cancels() {
    let (pending, transport, roster) =
        (PendingQuestions::default(), CountingTransport::default(), roster("a.br"));
    let ask = || pending.ask(&transport, &roster.members[0], &Arc::from("q"), true).unwrap();
    let (first, second) = (ask(), ask());
    // The one that drove the question is dropped in the middle of it.
    assert!(tokio::time::timeout(Duration::from_millis(50), first).await.is_err());
    assert_eq!(transport.running.load(Ordering::SeqCst), 1);
    assert_eq!(second.await.unwrap(), "1");
    let (first, second) = (ask(), ask());
    drop(first);
    assert_eq!(transport.running.load(Ordering::SeqCst), 1);
    drop(second);
    assert_eq!((transport.running.load(Ordering::SeqCst), pending.count()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_has_waited_for_long_is_not_joined() {
    let (pending, roster) = (PendingQuestions::default(), roster("a.br"));
    #[derive(Default)]
    struct SilentTransport(AtomicUsize);
    impl ArchiveTransport for SilentTransport {
        fn ask(
            &self,
            _archive: &RegisteredArchive,
            _query: &str,
        ) -> impl Future<Output = AnswerBody> + Send + 'static {
            self.0.fetch_add(1, Ordering::SeqCst);
            std::future::pending()
        }
    }
    let transport = SilentTransport::default();
    let ask = || pending.ask(&transport, &roster.members[0], &Arc::from("q"), true).unwrap();
    let mut held = vec![ask()];
    tokio::time::sleep(MAX_JOINED_AGE).await;
    held.push(ask());
    assert_eq!(transport.0.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_millis(1)).await;
    held.push(ask());
    held.push(ask());
    assert_eq!(transport.0.load(Ordering::SeqCst), 2);
    // The end of the older one leaves the newer one on the table.
    held.drain(..2);
    assert_eq!(pending.count(), 1);
}
