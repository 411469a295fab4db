//! Objects over the network: told, fetched, gone on with, and refused when they are not what they
//! should be.

mod liars;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ibi_archive::deposit::{DepositRequest, DepositSource};
use ibi_archive::item_view::ItemEvent;
use ibi_archive::replica::object_description::ObjectDescription;
use ibi_archive::replica::replica_object::ReplicaBytes;
use ibi_archive::replication::fetch::{FetchError, FetchedObject, fetch_object, remove_fetch_folder};
use ibi_archive::replication::peer::{PeerArchive, PeerError};
use ibi_archive::service::address::ServiceAddress;
use ibi_archive::service::{ServiceRole, open_tokens};
use ibi_archive::store::State;
use ibi_archive::web::{ArchiveSite, ArchiveSiteOptions, router};
use ibi_archive::{Archive, ItemChanges};
use ibi_http::ServerLimits;
use ibi_http::client::TrustedProxies;
use ibi_http::token_store::NewToken;

use crate::ours::{Ours, deposit, titled};

const LARGE: usize = 3 << 20;

/// Bytes that look like nothing, and are the same every time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn deposited(ours: &Ours, archive: &mut Archive, draft: DepositRequest) -> String {
    let files = [("large.bin", noise(LARGE + 7)), ("a b%.txt", b"first".to_vec()), ("empty", Vec::new())];
    let folder = ours.files(&files.map(|(name, bytes)| (name.to_owned(), bytes)).into_iter().collect());
    deposit(archive, &folder, draft).unwrap()
}

/// An Archive with an item of two versions; what was `first` is `second` in the last.
fn two_versions(ours: &Ours) -> String {
    let mut archive = ours.init();
    let label = deposited(ours, &mut archive, titled("x"));
    let files = [("large.bin", noise(LARGE + 7)), ("a b%.txt", b"second".to_vec())];
    let folder = ours.files(&files.map(|(name, bytes)| (name.to_owned(), bytes)).into_iter().collect());
    let source = DepositSource::at(&folder).unwrap();
    let update = archive.prepare_update(&label, Some(&source), ItemChanges::default(), "tester", &|_| ());
    archive.commit(vec![update.unwrap().unwrap()]).pop().unwrap().unwrap();
    label
}

async fn listen(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    at
}

async fn serve(ours: &Ours) -> String {
    let options = ArchiveSiteOptions {
        memory: ibi_http::memory::DEFAULT_MEMORY_BYTES,
        drafts: ibi_archive::service::DraftQuota::default(),
        address: ServiceAddress { archive: "a.test".to_owned(), secure: false },
        proxies: TrustedProxies::new(|_| false),
        limits: ServerLimits::default(),
        resolver: None,
        shows_targets: false,
        rates: Arc::new(ibi_http::rate::RateLimiter::new(ibi_http::rate::RateQuotas::default())),
    };
    let (site, _) = ArchiveSite::open(&ours.data(), "tester", options, None).unwrap();
    listen(router(Arc::new(site))).await
}

fn peer(at: &str, token: Option<&str>) -> PeerArchive {
    // All of them are on this machine.
    ibi_http::outgoing::allow_private();
    PeerArchive::new(at, token.map(str::to_owned)).unwrap()
}

fn token(ours: &Ours, role: ServiceRole) -> String {
    let new = NewToken::new(None, role, "2026-11-16T00:00:00Z".to_owned());
    let (_, secret) = open_tokens(&ours.data()).create(new).unwrap();
    secret.reveal().to_owned()
}

async fn fetched(peer: &PeerArchive, label: &str, place: &Path) -> Result<(FetchedObject, u64), FetchError> {
    let held = peer.describe_object(label).await?;
    let (peer, label, place) = (peer.clone(), label.to_owned(), place.to_owned());
    let bytes = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&bytes);
    // On another thread, as a server would.
    let task = tokio::spawn(async move {
        let progress = |more| {
            counted.fetch_add(more, Ordering::Relaxed);
        };
        fetch_object(&peer, &label, &held, &|_| None, &place, &progress).await
    });
    Ok((task.await.unwrap()?, bytes.load(Ordering::Relaxed)))
}

/// Every file is byte for byte that of the object on the other side.
fn is_same(fetched: &FetchedObject, object: &Path) {
    let paths: Vec<&String> = fetched.inventory.manifest.values().flatten().collect();
    assert_eq!(fetched.files.len(), paths.len());
    for (path, bytes) in &fetched.files {
        assert!(fs::read(object.join(path)).unwrap() == *bytes.read().unwrap(), "{path}");
    }
    for (number, bytes) in (1..).zip(&fetched.inventories) {
        assert_eq!(&fs::read(object.join(format!("v{number}/inventory.json"))).unwrap(), bytes);
    }
    assert_eq!(fs::read(object.join("inventory.json")).unwrap(), fetched.inventory.to_bytes());
}

fn object(ours: &Ours, held: &ObjectDescription) -> PathBuf {
    ours.data().join("tree").join(&held.path)
}

/// The file of the manifest that ends so, and its digest.
fn named(fetched: &FetchedObject, end: &str) -> (String, String) {
    let mut manifest = fetched.inventory.manifest.iter();
    let found = manifest.find_map(|(digest, paths)| {
        paths.iter().find(|path| path.ends_with(end)).map(|path| (path.clone(), digest.clone()))
    });
    found.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_two_versions_is_copied_whole() {
    let ours = Ours::new();
    let label = two_versions(&ours);
    let peer = peer(&serve(&ours).await, None);
    let held = peer.describe_object(&label.to_uppercase()).await.unwrap();
    assert_eq!((held.state, held.epoch, held.version, held.item.as_str()), (State::Original, 1, 2, &*label));
    assert_eq!(
        held.history.iter().map(|happened| &*happened.event).collect::<Vec<_>>(),
        ["deposit", "update"]
    );
    assert!(held.files.contains_key("v1/content/item.json") && held.files.contains_key("v1/inventory.json"));
    assert!(
        held.files.contains_key("v2/content/doc/a b%25.txt") || held.files.len() > 6,
        "{:?}",
        held.files.keys()
    );
    assert!(!held.files.contains_key("v1/content/doc/large.bin"), "it is not small");
    let place = ours.path("copies/one");
    let (got, bytes) = fetched(&peer, &label, &place).await.unwrap();
    is_same(&got, &object(&ours, &held));
    assert_eq!(bytes, LARGE as u64 + 7, "all else came with the object");
    assert_eq!(got.item.labels.primary(), label);
    assert_eq!(
        got.metadata.to_xml(),
        ibi_archive::dublin_core::DublinCore::parse("title=x").unwrap().to_xml()
    );
    // What is there is not asked for again, nor what lies elsewhere.
    assert_eq!(fetched(&peer, &label, &place).await.unwrap().1, 0);
    let (_, digest) = named(&got, "large.bin");
    let near = place.join(&digest);
    let other = ours.path("copies/two");
    let have = |asked: &str| (asked == digest).then(|| near.clone());
    let again =
        fetch_object(&peer, &label, &held, &have, &other, &|_| panic!("nothing is asked for")).await.unwrap();
    is_same(&again, &object(&ours, &held));
    assert!(again.files.iter().any(|(_, bytes)| matches!(bytes, ReplicaBytes::At(at) if *at == near)));
    remove_fetch_folder(&place).unwrap();
    remove_fetch_folder(&place).unwrap();
    assert!(!place.exists());
    // Without what comes with it, each file is asked for by itself.
    let bare = ObjectDescription { files: BTreeMap::new(), ..held.clone() };
    let alone =
        fetch_object(&peer, &label, &bare, &|_| None, &ours.path("copies/three"), &|_| ()).await.unwrap();
    is_same(&alone, &object(&ours, &held));
    assert!(matches!(
        peer.describe_object("dpi.inpe.br/banon/1998/08.02.08.56").await,
        Err(PeerError::Unknown { .. })
    ));
    let page = peer.list("").await.unwrap();
    assert!(page.items.iter().any(|item| item.path == held.path) && page.next.is_none());
    let changes = peer.changes(0).await.unwrap();
    assert_eq!(changes.changes.last().unwrap().item.primary(), label);
    assert!(matches!(peer.post("/handovers", &1).await, Err(PeerError::Unknown { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_inventory_names_is_given_out() {
    let ours = Ours::new();
    let label = two_versions(&ours);
    let at = serve(&ours).await;
    for path in [
        "",
        "inventory.json.sha512",
        "0=ocfl_object_1.1",
        "v3/inventory.json",
        "v01/inventory.json",
        "v1",
        "v1/content",
        "v1/content/doc/../item.json",
        "v1/content/doc/nothing",
        "../../../../archive",
        "..%2f..%2f..%2f..%2farchive",
        "%2e%2e/%2e%2e/archive",
        "v1/content/doc/%2e%2e/item.json",
        "v1/content/item.json%00",
        "/etc/passwd",
        "v1/content/item.json/",
    ] {
        let status = raw(&at, &format!("/api/v1/items/{label}/object/{path}")).await;
        assert_eq!(status, "HTTP/1.1 404 Not Found", "{path}");
    }
    for path in
        ["inventory.json", "v1/inventory.json", "v1%2Fcontent%2fdoc/large%2Ebin", "v2/content/item.json"]
    {
        let status = raw(&at, &format!("/api/v1/items/{label}/object/{path}")).await;
        assert_eq!(status, "HTTP/1.1 200 OK", "{path}");
    }
}

/// The first line of an answer, to a path that no client library has made pretty.
async fn raw(at: &str, path: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(at.strip_prefix("http://").unwrap()).await.unwrap();
    let request = format!("HEAD {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap().lines().next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_cut_off_goes_on_and_what_was_wrong_begins_anew() {
    let ours = Ours::new();
    let label = two_versions(&ours);
    let peer = peer(&serve(&ours).await, None);
    let held = peer.describe_object(&label).await.unwrap();
    let place = ours.path("copies/one");
    let (got, _) = fetched(&peer, &label, &place).await.unwrap();
    let (_, digest) = named(&got, "large.bin");
    let part = place.join(&digest).with_extension("part");
    let (whole, all) = (noise(LARGE + 7), LARGE as u64 + 7);
    let mut wrong = whole[..LARGE / 2].to_vec();
    wrong[100] ^= 1;
    for (there, comes) in [
        (whole[..LARGE / 2].to_vec(), all - LARGE as u64 / 2),
        (whole.clone(), 0),
        (Vec::new(), all),
        // Half of it comes, is found to be wrong with what was there, and all of it comes.
        (wrong, all - LARGE as u64 / 2 + all),
        ([&whole[..], b"more"].concat(), all),
    ] {
        fs::remove_file(place.join(&digest)).unwrap();
        fs::write(&part, &there).unwrap();
        let (got, bytes) = fetched(&peer, &label, &place).await.unwrap();
        assert_eq!(bytes, comes, "with {} bytes there", there.len());
        is_same(&got, &object(&ours, &held));
        assert!(!part.exists());
    }
    // Small files are not synced: what a power cut left of one is looked at.
    let (_, small) = named(&got, "v2/content/item.json");
    fs::write(place.join(&small), b"").unwrap();
    is_same(&fetched(&peer, &label, &place).await.unwrap().0, &object(&ours, &held));
    // Of a description nobody says how long it is: a part that is all of it is asked for anew.
    fs::rename(place.join(&small), place.join(&small).with_extension("part")).unwrap();
    let bare = ObjectDescription { files: BTreeMap::new(), ..held.clone() };
    let got = fetch_object(&peer, &label, &bare, &|_| None, &place, &|_| ()).await.unwrap();
    is_same(&got, &object(&ours, &held));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_damaged_there_is_not_given_out() {
    let ours = Ours::new();
    let label = two_versions(&ours);
    let peer = peer(&serve(&ours).await, None);
    let held = peer.describe_object(&label).await.unwrap();
    let flip = |path: &str, at: usize| {
        let path = object(&ours, &held).join(path);
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    flip("v1/content/doc/large.bin", 10);
    let place = ours.path("copies/one");
    let error = fetched(&peer, &label, &place).await.unwrap_err();
    assert!(matches!(&error, FetchError::Peer(PeerError::Refused { status: 500, .. })), "{error}");
    assert!(error.to_string().contains("server error, see its log"), "{error}");
    // In the middle, the answer is cut off; what came before stays.
    flip("v1/content/doc/large.bin", 10);
    flip("v1/content/doc/large.bin", LARGE - 10);
    let error = fetched(&peer, &label, &place).await.unwrap_err();
    assert!(matches!(&error, FetchError::Peer(PeerError::Silent { .. })), "{error}");
    flip("v1/content/doc/large.bin", LARGE - 10);
    let (got, bytes) = fetched(&peer, &label, &place).await.unwrap();
    is_same(&got, &object(&ours, &held));
    assert!(bytes < LARGE as u64, "{bytes} came again");
    // A description is left out of the document, and said to be damaged when it is asked for.
    flip("v1/content/item.json", 10);
    let held = peer.describe_object(&label).await.unwrap();
    assert!(
        !held.files.contains_key("v1/content/item.json") && held.files.contains_key("v2/content/item.json")
    );
    let error = fetched(&peer, &label, &ours.path("copies/two")).await.unwrap_err();
    assert!(error.to_string().contains("server error, see its log"), "{error}");
    flip("inventory.json", 10);
    let error = peer.describe_object(&label).await.unwrap_err();
    assert!(error.to_string().contains("server error, see its log"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_item_is_for_holders() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let closed = DepositRequest { access: "ip:192.0.2.0/24".parse().unwrap(), ..titled("x") };
    let label = deposited(&ours, &mut archive, closed);
    drop(archive);
    let (holder, depositor, operator) = (
        token(&ours, ServiceRole::Holder),
        token(&ours, ServiceRole::Depositor),
        token(&ours, ServiceRole::Operator),
    );
    let at = serve(&ours).await;
    for nobody in [peer(&at, None), peer(&at, Some(&depositor)), peer(&at, Some("ibi_0"))] {
        let held = nobody.describe_object(&label).await;
        assert!(matches!(held, Err(PeerError::NeedsToken { .. })), "{held:?}");
        for path in ["inventory.json", "v1/content/item.json", "v1/content/doc/large.bin", "nothing"] {
            let file = nobody.file(&label, path, None).await;
            assert!(matches!(file, Err(PeerError::NeedsToken { .. })), "{path}: {file:?}");
        }
    }
    let told = peer(&at, None).describe_object(&label).await.unwrap_err().to_string();
    assert!(told.contains("asks for a token: Not allowed"), "{told}");
    for (name, token) in [("one", holder), ("two", operator)] {
        let peer = peer(&at, Some(&token));
        let (got, _) = fetched(&peer, &label, &ours.path(name)).await.unwrap();
        is_same(&got, &object(&ours, &peer.describe_object(&label).await.unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tombstone_travels_and_the_bytes_only_to_holders() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let label = deposited(&ours, &mut archive, titled("x"));
    let removal = archive.prepare_removal(&label, "a test", "tester", false).unwrap();
    archive.commit(vec![removal]).pop().unwrap().unwrap();
    drop(archive);
    let holder = token(&ours, ServiceRole::Holder);
    let at = serve(&ours).await;
    let (nobody, holder) = (peer(&at, None), peer(&at, Some(&holder)));
    let held = nobody.describe_object(&label).await.unwrap();
    assert_eq!((held.state, held.version), (State::Deleted, 2));
    assert!(held.files.contains_key("v1/content/item.json"));
    assert!(!held.files.keys().any(|path| path.contains("/doc/")), "{:?}", held.files.keys());
    let refused = nobody.file(&label, "v1/content/doc/large.bin", None).await;
    assert!(matches!(refused, Err(PeerError::NeedsToken { .. })), "{refused:?}");
    nobody.file(&label, "v2/inventory.json", None).await.unwrap();
    nobody.file(&label, "v2/content/item.json", None).await.unwrap();
    let held = holder.describe_object(&label).await.unwrap();
    assert!(held.files.keys().any(|path| path.contains("/doc/")));
    let (got, _) = fetched(&holder, &label, &ours.path("one")).await.unwrap();
    is_same(&got, &object(&ours, &held));
    assert!(got.item.removed.is_some());
}

/// A document of format 1 that this program wrote once, byte for byte; later ones may say more.
#[test]
fn the_document_of_format_1_is_still_read_and_written() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/held-1.json");
    let held = ObjectDescription {
        format: 1,
        archive: "inpe.br/smp/2026/11.16.04.49".to_owned(),
        item: "inpe.br/smp/2026/11.16.04.49.18".to_owned(),
        path: "inpe.br/smp/2026/11.16.04.49.18".to_owned(),
        state: State::Copy,
        epoch: 3,
        version: 1,
        inventory: "0123456789abcdef".repeat(8),
        history: vec![ItemEvent {
            at: Some("inpe.br/smp/2026/11.16.04.49".to_owned()),
            told_by: None,
            change: 7,
            time: "2026-11-16T04:49:18Z".to_owned(),
            event: "deposit".to_owned(),
            version: 1,
            state: "Copy".to_owned(),
            by: "Ana".to_owned(),
            source: None,
            to: None,
            note: None,
        }],
        links: Vec::new(),
        files: BTreeMap::from([("inventory.json".to_owned(), STANDARD.encode("{}\n"))]),
    };
    let written = serde_json::to_string(&held).unwrap() + "\n";
    let sample = fs::read_to_string(path).unwrap();
    assert_eq!(written, sample);
    assert_eq!(serde_json::from_str::<ObjectDescription>(&sample).unwrap(), held);
    held.check().unwrap();
    assert_eq!(held.embedded_file("inventory.json").unwrap(), b"{}\n");
    let later = sample.replacen('{', "{\"more\":1,", 1);
    assert_eq!(serde_json::from_str::<ObjectDescription>(&later).unwrap(), held);
}
