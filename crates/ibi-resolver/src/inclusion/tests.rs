use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use bytes::Bytes;
use ibi_protocol::{RegistrationKey, WireProtocol};
use tokio::time::Instant;

use super::*;
use crate::keys::tests::cheap_hash;
use crate::registry::ResolverSettings;
use crate::transport::{ArchiveTransportError, BreakerState};

const SERVICE: &str = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";
const OTHER: &str = "dpi.inpe.br/banon/1998/08.02.08.56";
const KEY: &str = "1234567890";

/// The scripted reply to a callback.
#[derive(Debug, Clone)]
enum ScriptedReply {
    Says(&'static str),
    Fails,
    Hangs,
    /// Confirms once it is released.
    Waits(Arc<Notify>),
}

/// Scripted Archives by address, and when they were called.
struct ScriptedTransport {
    plays: Mutex<HashMap<String, ScriptedReply>>,
    calls: Mutex<Vec<(String, Instant)>>,
    started: AtomicUsize,
}

impl ArchiveTransport for ScriptedTransport {
    fn ask(
        &self,
        archive: &RegisteredArchive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
        assert_eq!(query, "servicesubject=inclusionConfirmationRequest");
        let address = archive.address.clone().unwrap();
        let plays = self.plays.lock().unwrap().get(&address).cloned().unwrap_or(ScriptedReply::Fails);
        self.calls.lock().unwrap().push((address, Instant::now()));
        self.started.fetch_add(1, Ordering::SeqCst);
        async move {
            match plays {
                ScriptedReply::Says(text) => Ok(Bytes::from_static(text.as_bytes())),
                ScriptedReply::Fails => Err(ArchiveTransportError("it is played so".to_owned())),
                ScriptedReply::Hangs => std::future::pending().await,
                ScriptedReply::Waits(go) => {
                    go.notified().await;
                    Ok(Bytes::from_static(b"confirmation yes"))
                }
            }
        }
    }
}

struct InclusionFixture {
    _folder: tempfile::TempDir,
    registry: Registry,
    played: Arc<ScriptedTransport>,
    health: ArchiveHealth,
    inclusion: InclusionService<ScriptedTransport>,
    begun: Instant,
}

const YES: ScriptedReply = ScriptedReply::Says("confirmation yes");

/// A resolver with one registered Archive in this status.
fn world(standing: &str) -> InclusionFixture {
    let folder = tempfile::tempdir().unwrap();
    let settings = ResolverSettings { public_url: "http://a.br".to_owned(), service: OTHER.parse().unwrap() };
    let registry = Registry::create(folder.path(), &settings).unwrap();
    let text = format!(
        "ibi registry, format 1\narchive {SERVICE}\nstanding {standing}\naddress a.br\nregistered 1\nchanged 1\nkey {}\n",
        cheap_hash(KEY)
    );
    registry.import(&text).unwrap();
    let played = Arc::new(ScriptedTransport {
        plays: Mutex::default(),
        calls: Mutex::default(),
        started: AtomicUsize::new(0),
    });
    let time = AtomicI64::new(100);
    let clock: ResolverClock = Arc::new(move || time.fetch_add(1, Ordering::SeqCst));
    let health = ArchiveHealth::default();
    let inclusion =
        InclusionService::new(registry.clone(), played.clone(), health.clone(), clock, None).unwrap();
    InclusionFixture { _folder: folder, registry, played, health, inclusion, begun: Instant::now() }
}

impl InclusionFixture {
    fn plays(&self, address: &str, plays: ScriptedReply) {
        self.played.plays.lock().unwrap().insert(address.to_owned(), plays);
    }

    fn tend(&self) {
        let inclusion = self.inclusion.clone();
        tokio::spawn(async move { inclusion.run_probes().await });
    }

    fn stands(&self) -> RegistrationStatus {
        self.registry.find(&SERVICE.parse().unwrap()).unwrap().standing
    }

    /// Why it did not confirm.
    fn problem(&self) -> Option<Arc<str>> {
        let archive = self.registry.find(&SERVICE.parse().unwrap()).unwrap();
        self.registry.problem(archive.id)
    }

    /// The times at which an Archive was called, in seconds since the start.
    fn calls(&self, address: &str) -> Vec<u64> {
        let calls = self.played.calls.lock().unwrap();
        let calls = calls.iter().filter(|(own, _)| own == address);
        calls.map(|(_, at)| at.duration_since(self.begun).as_secs()).collect()
    }

    async fn include(&self, address: &str) -> String {
        shown(
            &self
                .inclusion
                .handle(WireRequest::Inclusion(registration(SERVICE, address, KEY)), client(), None)
                .await,
        )
    }

    async fn exclude(&self) -> String {
        let archive = self.registry.find(&SERVICE.parse().unwrap()).unwrap();
        self.exclude_from(archive.address.as_deref().unwrap_or("a.br")).await
    }

    async fn exclude_from(&self, address: &str) -> String {
        let request = WireRequest::Exclusion(registration(SERVICE, address, KEY));
        shown(&self.inclusion.handle(request, client(), None).await)
    }
}

fn client() -> IpAddr {
    [192, 0, 2, 1].into()
}

fn registration(service: &str, address: &str, key: &str) -> WireRegistration {
    WireRegistration {
        address: address.to_owned(),
        service: service.to_owned(),
        ip: client(),
        protocol: WireProtocol::Http,
        platform_version: "ibi".to_owned(),
        email: "adm@a.br".to_owned(),
        key: key.parse::<RegistrationKey>().unwrap(),
    }
}

fn shown(answer: &InclusionAnswer) -> String {
    format!("{} {}", answer.status.as_u16(), answer.pairs.to_string().replace("\r\n", " "))
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

const SUCCESSFUL: &str = "200 status.archive included status.confirmation successful";
const UNSUCCESSFUL: &str = "200 status.archive included status.confirmation unsuccessful";

#[tokio::test(start_paused = true)]
async fn clause_3_3_inclusion_and_exclusion() {
    let world = world("new");
    world.plays("here.br:8080", YES);
    assert_eq!(world.include("here.br:8080").await, SUCCESSFUL);
    assert_eq!(world.stands(), RegistrationStatus::OnLine);
    let archive = world.registry.find(&SERVICE.parse().unwrap()).unwrap();
    assert_eq!(
        (archive.address.as_deref(), archive.email.as_deref()),
        (Some("here.br:8080"), Some("adm@a.br"))
    );
    // The exclusion concerns the old address.
    assert_eq!(world.exclude_from("before.br").await, "200 status.archive excluded");
    assert_eq!(world.stands(), RegistrationStatus::OnLine);
    assert_eq!(world.exclude().await, "200 status.archive excluded");
    assert_eq!(world.stands(), RegistrationStatus::OffLine);
    for plays in [
        ScriptedReply::Fails,
        ScriptedReply::Hangs,
        ScriptedReply::Says(""),
        ScriptedReply::Says("confirmation no"),
        ScriptedReply::Says("{{{"),
    ] {
        world.plays("there.br", plays.clone());
        assert_eq!(world.include("there.br").await, UNSUCCESSFUL, "{plays:?}");
        assert_eq!(world.stands(), RegistrationStatus::Unconfirmed);
        assert!(world.problem().unwrap().starts_with("it "), "{:?}", world.problem());
    }
    world.plays("there.br", ScriptedReply::Says("other {a b} confirmation yes"));
    assert_eq!(world.include("there.br").await, SUCCESSFUL);
    assert_eq!(world.problem(), None);
}

/// A confirmation lets a breaker try again; only coming online closes it at once.
#[tokio::test(start_paused = true)]
async fn an_archive_that_comes_online_is_asked_at_once_whatever_it_did_before() {
    let world = world("new");
    world.plays("here.br", YES);
    assert_eq!(world.include("here.br").await, SUCCESSFUL);
    let id = world.registry.find(&SERVICE.parse().unwrap()).unwrap().id;
    (0..5).for_each(|_| world.health.failed(id));
    world.health.confirmed(id);
    assert_eq!(world.health.breaker(id), BreakerState::Open);
    world.plays("here.br", ScriptedReply::Fails);
    world.include("here.br").await;
    assert_eq!(world.health.breaker(id), BreakerState::Open, "it did not confirm");
    world.plays("here.br", YES);
    assert_eq!(world.include("here.br").await, SUCCESSFUL);
    assert_eq!(world.health.breaker(id), BreakerState::Closed);
}

/// Asked over TLS from now on, at the address as before: only once that is confirmed.
#[tokio::test(start_paused = true)]
async fn another_protocol_is_confirmed_anew_and_certificates_are_told() {
    let world = world("new");
    world.plays("here.br", YES);
    assert_eq!(world.include("here.br").await, SUCCESSFUL);
    world.plays("here.br", ScriptedReply::Fails);
    let id = world.registry.find(&SERVICE.parse().unwrap()).unwrap().id;
    world.health.record(id).failed_because(Instant::now(), Some(&ibi_http::CertificateProblem::Expired));
    let secure = WireRegistration { protocol: WireProtocol::Https, ..registration(SERVICE, "here.br", KEY) };
    let told = world.inclusion.handle(WireRequest::Inclusion(secure), client(), None).await;
    assert_eq!(shown(&told), format!("{UNSUCCESSFUL} status.certificate expired"));
    assert_eq!(world.stands(), RegistrationStatus::Unconfirmed);
    assert!(world.problem().unwrap().starts_with("the certificate has expired: its operator must renew it"));
    assert_eq!(world.registry.find(&SERVICE.parse().unwrap()).unwrap().scheme(), HttpScheme::Https);
}

#[tokio::test(start_paused = true)]
async fn clause_3_3_who_is_not_registered_and_whose_key_is_wrong_are_refused_alike() {
    let world = world("new");
    let wrong = registration(SERVICE, "a.br", "9999999999");
    let unknown = registration(OTHER, "a.br", KEY);
    for registration in [wrong, unknown] {
        for request in
            [WireRequest::Inclusion(registration.clone()), WireRequest::Exclusion(registration.clone())]
        {
            let answer = world.inclusion.handle(request, client(), None).await;
            assert_eq!((shown(&answer).as_str(), answer.retry_after), ("403 status.archive refused", None));
        }
    }
    world.registry.retire(&SERVICE.parse().unwrap(), 9).unwrap();
    assert_eq!(world.include("a.br").await, "403 status.archive refused");
    // No callback was made, and nothing has changed.
    assert_eq!((world.calls("a.br").len(), world.stands()), (0, RegistrationStatus::Retired));
    // That was the fifth failure.
    let answer = world
        .inclusion
        .handle(WireRequest::Inclusion(registration(SERVICE, "a.br", KEY)), client(), None)
        .await;
    assert_eq!(shown(&answer), "429 status.archive refused");
    assert!(answer.retry_after.is_some_and(|wait| wait <= Duration::from_secs(1)));
    let elsewhere = [198, 51, 100, 1].into();
    let answer = world
        .inclusion
        .handle(WireRequest::Inclusion(registration(SERVICE, "a.br", KEY)), elsewhere, None)
        .await;
    assert_eq!(shown(&answer), "403 status.archive refused");
}

#[tokio::test(start_paused = true)]
async fn clause_3_6_what_is_malformed_is_said() {
    let world = world("new");
    assert!(
        world.include("127.1").await.starts_with("400 error bad-value message {archiveaddress: write host")
    );
    let other = world.inclusion.handle(WireRequest::InclusionConfirmation, client(), None).await;
    assert!(shown(&other).starts_with("400 error unknown-servicesubject"));
}

#[tokio::test(start_paused = true)]
async fn d21_who_has_not_confirmed_is_called_again_more_and_more_rarely() {
    let world = world("new");
    world.tend();
    assert_eq!(world.include("here.br").await, UNSUCCESSFUL);
    seconds(1200).await;
    assert_eq!(world.stands(), RegistrationStatus::Unconfirmed);
    let calls = world.calls("here.br");
    let between: Vec<u64> = calls.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(between, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300], "{calls:?}");
    world.plays("here.br", YES);
    seconds(301).await;
    assert_eq!(world.stands(), RegistrationStatus::OnLine);
}

#[tokio::test(start_paused = true)]
async fn d21_who_has_confirmed_confirms_again_and_may_fail_once() {
    let world = world("new");
    world.tend();
    world.plays("here.br", YES);
    assert_eq!(world.include("here.br").await, SUCCESSFUL);
    seconds(610).await;
    assert_eq!(world.calls("here.br"), [0, 300, 600]);
    // One failure is tolerated.
    world.plays("here.br", ScriptedReply::Fails);
    while world.calls("here.br").len() < 4 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(world.stands(), RegistrationStatus::OnLine);
    world.plays("here.br", YES);
    seconds(2).await;
    assert_eq!((world.calls("here.br").len(), world.stands()), (5, RegistrationStatus::OnLine));
    world.plays("here.br", ScriptedReply::Hangs);
    seconds(320).await;
    assert_eq!(world.stands(), RegistrationStatus::Unconfirmed);
    world.plays("here.br", YES);
    seconds(60).await;
    assert_eq!(world.stands(), RegistrationStatus::OnLine);
}

#[tokio::test(start_paused = true)]
async fn d21_who_does_not_answer_questions_is_called_soon() {
    let world = world("new");
    world.tend();
    world.plays("here.br", YES);
    assert_eq!(world.include("here.br").await, SUCCESSFUL);
    let id = world.registry.archives()[0].id;
    let fail = || (0..3).for_each(|_| world.health.failed(id));
    seconds(10).await;
    // It still confirms.
    fail();
    seconds(1).await;
    assert_eq!((world.calls("here.br"), world.stands()), (vec![0, 10], RegistrationStatus::OnLine));
    assert_eq!(world.health.failures(id), 0);
    // Not probed at every failure.
    fail();
    seconds(1).await;
    assert_eq!(world.calls("here.br"), [0, 10]);
    seconds(10).await;
    assert_eq!(world.calls("here.br"), [0, 10, 15]);
    // It no longer confirms.
    world.plays("here.br", ScriptedReply::Fails);
    fail();
    seconds(1).await;
    assert_eq!(world.stands(), RegistrationStatus::Unconfirmed);
    world.plays("here.br", YES);
    seconds(3).await;
    assert_eq!(world.stands(), RegistrationStatus::OnLine);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_those_on_line_stay_so_and_soon_confirm_it() {
    let world = world("online");
    world.plays("a.br", YES);
    world.tend();
    assert_eq!(world.stands(), RegistrationStatus::OnLine);
    seconds(6).await;
    assert_eq!((world.calls("a.br").len(), world.stands()), (1, RegistrationStatus::OnLine));
    seconds(300).await;
    assert_eq!(world.calls("a.br").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn others_are_not_called() {
    for standing in ["new", "offline", "retired"] {
        let world = world(standing);
        world.tend();
        seconds(1000).await;
        assert!(world.calls("a.br").is_empty(), "{standing}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_goes_while_its_confirmation_is_on_its_way_is_gone() {
    let world = world("new");
    world.tend();
    let go = Arc::new(Notify::new());
    world.plays("here.br", ScriptedReply::Waits(go.clone()));
    let (inclusion, registration) = (world.inclusion.clone(), registration(SERVICE, "here.br", KEY));
    let included =
        tokio::spawn(
            async move { inclusion.handle(WireRequest::Inclusion(registration), client(), None).await },
        );
    while world.played.started.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.exclude().await, "200 status.archive excluded");
    go.notify_one();
    assert_eq!(shown(&included.await.unwrap()), SUCCESSFUL);
    seconds(1000).await;
    assert_eq!((world.stands(), world.calls("here.br").len()), (RegistrationStatus::OffLine, 1));
}

#[tokio::test(start_paused = true)]
async fn who_goes_while_it_is_called_in_the_background_is_gone() {
    let world = world("unconfirmed");
    let go = Arc::new(Notify::new());
    world.plays("a.br", ScriptedReply::Waits(go.clone()));
    world.tend();
    while world.played.started.load(Ordering::SeqCst) == 0 {
        seconds(1).await;
    }
    assert_eq!(world.exclude().await, "200 status.archive excluded");
    go.notify_one();
    seconds(1000).await;
    assert_eq!((world.stands(), world.calls("a.br").len()), (RegistrationStatus::OffLine, 1));
}

#[tokio::test(start_paused = true)]
async fn a_new_address_is_followed_at_once() {
    let world = world("new");
    world.tend();
    let go = Arc::new(Notify::new());
    world.plays("old.br", ScriptedReply::Waits(go.clone()));
    world.plays("new.br", YES);
    let (inclusion, registration) = (world.inclusion.clone(), registration(SERVICE, "old.br", KEY));
    let old =
        tokio::spawn(
            async move { inclusion.handle(WireRequest::Inclusion(registration), client(), None).await },
        );
    while world.played.started.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    world.plays("new.br", ScriptedReply::Fails);
    assert_eq!(world.include("new.br").await, UNSUCCESSFUL);
    // The reply from the old address no longer counts.
    go.notify_one();
    old.await.unwrap();
    assert_eq!(world.stands(), RegistrationStatus::Unconfirmed);
    world.plays("new.br", YES);
    seconds(2).await;
    assert_eq!(world.stands(), RegistrationStatus::OnLine);
    assert_eq!(world.registry.archives()[0].address.as_deref(), Some("new.br"));
    assert_eq!(world.calls("old.br").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_retires_it_is_heard() {
    let world = world("online");
    world.plays("a.br", YES);
    world.tend();
    seconds(6).await;
    let command = Registry::open(world._folder.path()).unwrap();
    command.retire(&SERVICE.parse().unwrap(), 9).unwrap();
    seconds(1000).await;
    assert_eq!((world.stands(), world.calls("a.br").len()), (RegistrationStatus::Retired, 1));
}
