use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use bytes::Bytes;
use ibi_protocol::{Key, Protocol};
use tokio::time::Instant;

use super::*;
use crate::ask::AskFailed;
use crate::keys::tests::cheap_hash;
use crate::registry::Settings;

const SERVICE: &str = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";
const OTHER: &str = "dpi.inpe.br/banon/1998/08.02.08.56";
const KEY: &str = "1234567890";

/// What an Archive says when it is called back.
#[derive(Debug, Clone)]
enum Plays {
    Says(&'static str),
    Fails,
    Hangs,
    /// Says yes once it is let go.
    Waits(Arc<Notify>),
}

/// Archives that are played, by address; and when they were called.
struct Played {
    plays: Mutex<HashMap<String, Plays>>,
    calls: Mutex<Vec<(String, Instant)>>,
    started: AtomicUsize,
}

impl Ask for Played {
    fn ask(
        &self,
        archive: &Archive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, AskFailed>> + Send + 'static {
        assert_eq!(query, "servicesubject=inclusionConfirmationRequest");
        let address = archive.address.clone().unwrap();
        let plays = self.plays.lock().unwrap().get(&address).cloned().unwrap_or(Plays::Fails);
        self.calls.lock().unwrap().push((address, Instant::now()));
        self.started.fetch_add(1, Ordering::SeqCst);
        async move {
            match plays {
                Plays::Says(text) => Ok(Bytes::from_static(text.as_bytes())),
                Plays::Fails => Err(AskFailed("it is played so".to_owned())),
                Plays::Hangs => std::future::pending().await,
                Plays::Waits(go) => {
                    go.notified().await;
                    Ok(Bytes::from_static(b"confirmation yes"))
                }
            }
        }
    }
}

struct World {
    _folder: tempfile::TempDir,
    registry: Registry,
    played: Arc<Played>,
    health: Health,
    inclusion: Inclusion<Played>,
    begun: Instant,
}

const YES: Plays = Plays::Says("confirmation yes");

/// A resolver with one registered Archive, which stands so.
fn world(standing: &str) -> World {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { public_url: "http://a.br".to_owned(), service: OTHER.parse().unwrap() };
    let registry = Registry::create(folder.path(), &settings).unwrap();
    let text = format!(
        "ibi registry, format 1\narchive {SERVICE}\nstanding {standing}\naddress a.br\nregistered 1\nchanged 1\nkey {}\n",
        cheap_hash(KEY)
    );
    registry.import(&text).unwrap();
    let played =
        Arc::new(Played { plays: Mutex::default(), calls: Mutex::default(), started: AtomicUsize::new(0) });
    let time = AtomicI64::new(100);
    let clock: Clock = Arc::new(move || time.fetch_add(1, Ordering::SeqCst));
    let health = Health::default();
    let inclusion = Inclusion::new(registry.clone(), played.clone(), health.clone(), clock).unwrap();
    World { _folder: folder, registry, played, health, inclusion, begun: Instant::now() }
}

impl World {
    fn plays(&self, address: &str, plays: Plays) {
        self.played.plays.lock().unwrap().insert(address.to_owned(), plays);
    }

    fn tend(&self) {
        let inclusion = self.inclusion.clone();
        tokio::spawn(async move { inclusion.tend().await });
    }

    fn stands(&self) -> Standing {
        self.registry.find(&SERVICE.parse().unwrap()).unwrap().standing
    }

    /// The seconds at which an Archive was called since the start.
    fn calls(&self, address: &str) -> Vec<u64> {
        let calls = self.played.calls.lock().unwrap();
        let calls = calls.iter().filter(|(own, _)| own == address);
        calls.map(|(_, at)| at.duration_since(self.begun).as_secs()).collect()
    }

    async fn include(&self, address: &str) -> String {
        shown(&self.inclusion.handle(Request::Inclusion(registration(SERVICE, address, KEY)), client()).await)
    }

    async fn exclude(&self) -> String {
        let archive = self.registry.find(&SERVICE.parse().unwrap()).unwrap();
        self.exclude_from(archive.address.as_deref().unwrap_or("a.br")).await
    }

    async fn exclude_from(&self, address: &str) -> String {
        let request = Request::Exclusion(registration(SERVICE, address, KEY));
        shown(&self.inclusion.handle(request, client()).await)
    }
}

fn client() -> IpAddr {
    [192, 0, 2, 1].into()
}

fn registration(service: &str, address: &str, key: &str) -> Registration {
    Registration {
        address: address.to_owned(),
        service: service.to_owned(),
        ip: client(),
        protocol: Protocol::Http,
        platform_version: "ibi".to_owned(),
        email: "adm@a.br".to_owned(),
        key: key.parse::<Key>().unwrap(),
    }
}

fn shown(answer: &Answer) -> String {
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
    assert_eq!(world.stands(), Standing::OnLine);
    let archive = world.registry.find(&SERVICE.parse().unwrap()).unwrap();
    assert_eq!(
        (archive.address.as_deref(), archive.email.as_deref()),
        (Some("here.br:8080"), Some("adm@a.br"))
    );
    // One that it left behind goes: it is no longer there.
    assert_eq!(world.exclude_from("before.br").await, "200 status.archive excluded");
    assert_eq!(world.stands(), Standing::OnLine);
    assert_eq!(world.exclude().await, "200 status.archive excluded");
    assert_eq!(world.stands(), Standing::OffLine);
    for plays in
        [Plays::Fails, Plays::Hangs, Plays::Says(""), Plays::Says("confirmation no"), Plays::Says("{{{")]
    {
        world.plays("there.br", plays.clone());
        assert_eq!(world.include("there.br").await, UNSUCCESSFUL, "{plays:?}");
        assert_eq!(world.stands(), Standing::Unconfirmed);
    }
    world.plays("there.br", Plays::Says("other {a b} confirmation yes"));
    assert_eq!(world.include("there.br").await, SUCCESSFUL);
}

#[tokio::test(start_paused = true)]
async fn clause_3_3_who_is_not_registered_and_whose_key_is_wrong_are_refused_alike() {
    let world = world("new");
    let wrong = registration(SERVICE, "a.br", "9999999999");
    let unknown = registration(OTHER, "a.br", KEY);
    for registration in [wrong, unknown] {
        for request in [Request::Inclusion(registration.clone()), Request::Exclusion(registration.clone())] {
            let answer = world.inclusion.handle(request, client()).await;
            assert_eq!((shown(&answer).as_str(), answer.retry_after), ("403 status.archive refused", None));
        }
    }
    world.registry.retire(&SERVICE.parse().unwrap(), 9).unwrap();
    assert_eq!(world.include("a.br").await, "403 status.archive refused");
    // Nobody was called, and nothing has changed.
    assert_eq!((world.calls("a.br").len(), world.stands()), (0, Standing::Retired));
    // That was the fifth time.
    let answer =
        world.inclusion.handle(Request::Inclusion(registration(SERVICE, "a.br", KEY)), client()).await;
    assert_eq!(shown(&answer), "429 status.archive refused");
    assert!(answer.retry_after.is_some_and(|wait| wait <= Duration::from_secs(1)));
    let elsewhere = [198, 51, 100, 1].into();
    let answer =
        world.inclusion.handle(Request::Inclusion(registration(SERVICE, "a.br", KEY)), elsewhere).await;
    assert_eq!(shown(&answer), "403 status.archive refused");
}

#[tokio::test(start_paused = true)]
async fn clause_3_6_what_is_malformed_is_said() {
    let world = world("new");
    assert!(
        world.include("127.1").await.starts_with("400 error bad-value message {archiveaddress: write host")
    );
    let other = world.inclusion.handle(Request::InclusionConfirmation, client()).await;
    assert!(shown(&other).starts_with("400 error unknown-servicesubject"));
}

#[tokio::test(start_paused = true)]
async fn d21_who_has_not_confirmed_is_called_again_more_and_more_rarely() {
    let world = world("new");
    world.tend();
    assert_eq!(world.include("here.br").await, UNSUCCESSFUL);
    seconds(1200).await;
    assert_eq!(world.stands(), Standing::Unconfirmed);
    let calls = world.calls("here.br");
    let between: Vec<u64> = calls.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(between, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300], "{calls:?}");
    world.plays("here.br", YES);
    seconds(301).await;
    assert_eq!(world.stands(), Standing::OnLine);
}

#[tokio::test(start_paused = true)]
async fn d21_who_has_confirmed_confirms_again_and_may_fail_once() {
    let world = world("new");
    world.tend();
    world.plays("here.br", YES);
    assert_eq!(world.include("here.br").await, SUCCESSFUL);
    seconds(610).await;
    assert_eq!(world.calls("here.br"), [0, 300, 600]);
    // Once is pardoned.
    world.plays("here.br", Plays::Fails);
    while world.calls("here.br").len() < 4 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(world.stands(), Standing::OnLine);
    world.plays("here.br", YES);
    seconds(2).await;
    assert_eq!((world.calls("here.br").len(), world.stands()), (5, Standing::OnLine));
    world.plays("here.br", Plays::Hangs);
    seconds(320).await;
    assert_eq!(world.stands(), Standing::Unconfirmed);
    world.plays("here.br", YES);
    seconds(60).await;
    assert_eq!(world.stands(), Standing::OnLine);
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
    // It is there all the same.
    fail();
    seconds(1).await;
    assert_eq!((world.calls("here.br"), world.stands()), (vec![0, 10], Standing::OnLine));
    assert_eq!(world.health.failures(id), 0);
    // Not at every failure.
    fail();
    seconds(1).await;
    assert_eq!(world.calls("here.br"), [0, 10]);
    seconds(10).await;
    assert_eq!(world.calls("here.br"), [0, 10, 15]);
    // It is not.
    world.plays("here.br", Plays::Fails);
    fail();
    seconds(1).await;
    assert_eq!(world.stands(), Standing::Unconfirmed);
    world.plays("here.br", YES);
    seconds(3).await;
    assert_eq!(world.stands(), Standing::OnLine);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_those_on_line_stay_so_and_soon_confirm_it() {
    let world = world("online");
    world.plays("a.br", YES);
    world.tend();
    assert_eq!(world.stands(), Standing::OnLine);
    seconds(6).await;
    assert_eq!((world.calls("a.br").len(), world.stands()), (1, Standing::OnLine));
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
    world.plays("here.br", Plays::Waits(go.clone()));
    let (inclusion, registration) = (world.inclusion.clone(), registration(SERVICE, "here.br", KEY));
    let included =
        tokio::spawn(async move { inclusion.handle(Request::Inclusion(registration), client()).await });
    while world.played.started.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.exclude().await, "200 status.archive excluded");
    go.notify_one();
    assert_eq!(shown(&included.await.unwrap()), SUCCESSFUL);
    seconds(1000).await;
    assert_eq!((world.stands(), world.calls("here.br").len()), (Standing::OffLine, 1));
}

#[tokio::test(start_paused = true)]
async fn who_goes_while_it_is_called_in_the_background_is_gone() {
    let world = world("unconfirmed");
    let go = Arc::new(Notify::new());
    world.plays("a.br", Plays::Waits(go.clone()));
    world.tend();
    while world.played.started.load(Ordering::SeqCst) == 0 {
        seconds(1).await;
    }
    assert_eq!(world.exclude().await, "200 status.archive excluded");
    go.notify_one();
    seconds(1000).await;
    assert_eq!((world.stands(), world.calls("a.br").len()), (Standing::OffLine, 1));
}

#[tokio::test(start_paused = true)]
async fn a_new_address_is_followed_at_once() {
    let world = world("new");
    world.tend();
    let go = Arc::new(Notify::new());
    world.plays("old.br", Plays::Waits(go.clone()));
    world.plays("new.br", YES);
    let (inclusion, registration) = (world.inclusion.clone(), registration(SERVICE, "old.br", KEY));
    let old = tokio::spawn(async move { inclusion.handle(Request::Inclusion(registration), client()).await });
    while world.played.started.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    world.plays("new.br", Plays::Fails);
    assert_eq!(world.include("new.br").await, UNSUCCESSFUL);
    // What the old address says does not count any more.
    go.notify_one();
    old.await.unwrap();
    assert_eq!(world.stands(), Standing::Unconfirmed);
    world.plays("new.br", YES);
    seconds(2).await;
    assert_eq!(world.stands(), Standing::OnLine);
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
    assert_eq!((world.stands(), world.calls("a.br").len()), (Standing::Retired, 1));
}
