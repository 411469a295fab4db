//! Bounds: what hangs, floods or fails costs a known amount and nobody else.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ibi_protocol::analysis::{AcceptedLanguages, ArchiveId};
use ibi_protocol::{PersistentUrl, WireRequest};
use ibi_resolver::{
    ArchiveDirectory, ArchivePlatform, ArchiveTransport, ArchiveTransportError, RaisedAlert,
    RegisteredArchive, RegistrationStatus, ResolutionOutcome, ResolutionRequest, Resolver,
};
use tokio::time::{Instant, sleep};

const ITEM: &str = "a.br/b/2009/02.16.17.46";

/// Archive 0 has every item; Archive 1 never answers. Acknowledgments go as `acknowledge` has it.
#[derive(Default)]
struct Two {
    archives: Arc<[Arc<RegisteredArchive>]>,
    /// Questions that an Archive is holding: for each, now and at most.
    held: [Arc<Held>; 2],
    /// Questions that an Archive got.
    questions: [AtomicUsize; 2],
    acknowledged: AtomicUsize,
    /// So many attempts to acknowledge fail.
    refuse: AtomicUsize,
    acknowledging: Duration,
}

#[derive(Default)]
struct Held {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct Holding(Arc<Held>);

impl Holding {
    fn new(held: &Arc<Held>) -> Self {
        let now = held.now.fetch_add(1, Ordering::SeqCst) + 1;
        held.most.fetch_max(now, Ordering::SeqCst);
        Self(Arc::clone(held))
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

fn two(acknowledging: Duration, refuse: usize) -> Arc<Two> {
    let archive = |number: u64| {
        Arc::new(RegisteredArchive {
            id: ArchiveId(number),
            service: format!("n{number}.br/archive/2001/01.01.01.01").parse().unwrap(),
            address: Some(format!("n{number}.br")),
            hosts: Vec::new(),
            standing: RegistrationStatus::OnLine,
            registered: 0,
            changed: 0,
            email: None,
            platform: ArchivePlatform::default(),
        })
    };
    let refuse = AtomicUsize::new(refuse);
    Arc::new(Two { archives: [archive(0), archive(1)].into(), acknowledging, refuse, ..Two::default() })
}

impl ArchiveTransport for Two {
    fn ask(
        &self,
        archive: &RegisteredArchive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
        let is_acknowledgment = matches!(WireRequest::parse(query).unwrap(), WireRequest::Acknowledgment(_));
        let mut result = Ok(Bytes::from(format!(
            "ibi {{rep {ITEM}}} ibi.archiveservice {{rep n0.br/archive/2001/01.01.01.01}} state Original \
             url http://n0.br/x urlkey 1234567890"
        )));
        let mut after = Duration::from_millis(1);
        self.questions[archive.id.0 as usize].fetch_add(usize::from(!is_acknowledgment), Ordering::SeqCst);
        if is_acknowledgment {
            after = self.acknowledging;
            let refuses = |left: usize| left.checked_sub(1);
            let refused = self.refuse.fetch_update(Ordering::SeqCst, Ordering::SeqCst, refuses).is_ok();
            result = if refused { Err(ArchiveTransportError("no".to_owned())) } else { Ok(Bytes::new()) };
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
        }
        let holding = Holding::new(&self.held[archive.id.0 as usize]);
        let hangs = archive.id.0 == 1;
        async move {
            let _holding = holding;
            if hangs {
                std::future::pending::<()>().await;
            }
            sleep(after).await;
            result
        }
    }
}

impl ArchiveDirectory for Two {
    fn archives(&self) -> Arc<[Arc<RegisteredArchive>]> {
        Arc::clone(&self.archives)
    }

    fn record_alert(&self, suspected: &RaisedAlert, _now: i64) {
        panic!("{suspected:?}");
    }
}

fn asked() -> ResolutionRequest {
    ResolutionRequest {
        robot: false,
        fresh: false,
        url: PersistentUrl::parse(&format!("/{ITEM}"), None).unwrap(),
        persistent: format!("http://r.br/{ITEM}"),
        languages: AcceptedLanguages::default(),
        client: vec![IpAddr::from([192, 0, 2, 1])],
        explain: false,
        goes: true,
    }
}

/// The same of another client: equal questions of one client are asked once.
fn asked_from(number: u16) -> ResolutionRequest {
    let [high, low] = number.to_be_bytes();
    ResolutionRequest { client: vec![IpAddr::from([198, 51, high, low])], ..asked() }
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_hangs_is_soon_not_asked_any_more_and_holds_nothing_beyond_the_deadline() {
    let two = two(Duration::ZERO, 0);
    let resolver = Resolver::new(Arc::clone(&two), Arc::clone(&two), Arc::new(|| 1_700_000_000));
    let began = Instant::now();
    for number in 0..500 {
        let resolution = resolver.resolve(asked_from(number)).await;
        assert_eq!(resolution.outcome.status(), 302);
    }
    assert!(began.elapsed() < Duration::from_millis(1500), "1 ms each: {:?}", began.elapsed());
    let most = two.held[1].most.load(Ordering::SeqCst);
    assert!((200..300).contains(&most), "those of the first 250 ms: {most}");
    sleep(Duration::from_secs(3)).await;
    assert_eq!(two.held[1].now.load(Ordering::SeqCst), 0, "given back after the deadline");
    // It is asked again, once it is not known any more who has the item.
    sleep(Duration::from_secs(60)).await;
    resolver.resolve(asked()).await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(two.held[1].now.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_leaves_nothing_behind() {
    let two = two(Duration::ZERO, 0);
    let resolver = Resolver::new(Arc::clone(&two), Arc::clone(&two), Arc::new(|| 1_700_000_000));
    let mut required = asked();
    required.url.original = true;
    let gone = tokio::time::timeout(Duration::from_millis(100), resolver.resolve(required)).await;
    assert!(gone.is_err(), "the original is waited for");
    assert_eq!(two.held[1].now.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn clause_3_5_the_client_never_waits_for_the_acknowledgment() {
    let two = two(Duration::from_secs(60), 0);
    let resolver = Resolver::new(Arc::clone(&two), Arc::clone(&two), Arc::new(|| 1_700_000_000));
    let began = Instant::now();
    let outcome = resolver.resolve(asked()).await.outcome;
    assert!(
        matches!(outcome, ResolutionOutcome::Found { .. }) && began.elapsed() < Duration::from_millis(10)
    );
    resolver.close(Duration::from_secs(1)).await;
    let closing = began.elapsed();
    assert!(Duration::from_secs(1) <= closing && closing < Duration::from_millis(1100), "{closing:?}");
}

#[tokio::test(start_paused = true)]
async fn clause_3_5_an_acknowledgment_is_tried_twice() {
    for (refused, attempts) in [(0, 1), (1, 2), (9, 2)] {
        let two = two(Duration::from_millis(1), refused);
        let resolver = Resolver::new(Arc::clone(&two), Arc::clone(&two), Arc::new(|| 1_700_000_000));
        resolver.resolve(asked()).await;
        resolver.close(Duration::from_secs(10)).await;
        assert_eq!(two.acknowledged.load(Ordering::SeqCst), attempts, "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_answers_is_asked_by_many_at_once() {
    let two = two(Duration::from_millis(1), 0);
    let resolver = Resolver::new(Arc::clone(&two), Arc::clone(&two), Arc::new(|| 1_700_000_000));
    let client = || {
        let resolver = resolver.clone();
        tokio::spawn(async move { resolver.resolve(asked()).await.outcome.status() })
    };
    let clients: Vec<_> = (0..1000).map(|_| client()).collect();
    for client in clients {
        assert_eq!(client.await.unwrap(), 302);
    }
    resolver.close(Duration::from_secs(100)).await;
    assert_eq!(two.acknowledged.load(Ordering::SeqCst), 1000);
}

/// R12: 1,000 equal resolutions at once cost each Archive one question.
#[tokio::test(start_paused = true)]
async fn equal_questions_are_asked_once_and_a_client_that_goes_away_cancels_none() {
    let two = two(Duration::from_millis(1), 0);
    let resolver = Resolver::new(Arc::clone(&two), Arc::clone(&two), Arc::new(|| 1_700_000_000));
    let client = || {
        let resolver = resolver.clone();
        tokio::spawn(async move { resolver.resolve(asked()).await.outcome.status() })
    };
    let clients: Vec<_> = (0..1000).map(|_| client()).collect();
    tokio::task::yield_now().await;
    clients[0].abort();
    for client in clients.into_iter().skip(1) {
        assert_eq!(client.await.unwrap(), 302);
    }
    assert_eq!(two.questions.each_ref().map(|count| count.load(Ordering::SeqCst)), [1, 1]);
}

/// It must be possible to resolve on any thread.
#[test]
fn a_resolver_can_be_shared() {
    fn shared<T: Send + Sync + Clone>() {}
    fn sent<T: Send>(_: &T) {}
    shared::<Resolver<Two, Two>>();
    let two = two(Duration::ZERO, 0);
    let resolver = Resolver::new(Arc::clone(&two), two, Arc::new(|| 1_700_000_000));
    sent(&resolver.resolve(asked()));
}
