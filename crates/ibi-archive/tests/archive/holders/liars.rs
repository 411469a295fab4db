//! Peers that lie, never end, or are something else: none is believed.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ibi_archive::opening;
use ibi_archive::replica::object_description::ObjectDescription;
use ibi_archive::replication::fetch::{FetchError, fetch_object};
use ibi_archive::replication::peer::{PeerArchive, PeerError};
use ibi_archive::replication::repair::{self, PeerCandidate};
use ibi_archive::store::State;
use ibi_store::digests::sha512;

use super::{LARGE, deposited, fetched, listen, named, noise, object, peer, serve, two_versions};
use crate::ours::{Ours, titled};

/// What an honest Archive said, to be twisted.
struct Honest {
    label: String,
    held: ObjectDescription,
    large: (String, String),
    _ours: Ours,
}

async fn honest() -> Honest {
    let ours = Ours::new();
    let label = two_versions(&ours);
    let peer = peer(&serve(&ours).await, None);
    let held = peer.describe_object(&label).await.unwrap();
    let (got, _) = fetched(&peer, &label, &ours.path("honest")).await.unwrap();
    Honest { label, held, large: named(&got, "large.bin"), _ours: ours }
}

/// A peer that says this of the object, and answers for files so.
async fn liar(
    held: ObjectDescription,
    file: impl Fn(&Request) -> Response + Clone + Send + Sync + 'static,
) -> PeerArchive {
    let answer = move |request: Request| {
        let is_object = request.uri().path().ends_with("/object");
        let answer = if is_object { axum::Json(&held).into_response() } else { file(&request) };
        async { answer }
    };
    peer(&listen(Router::new().fallback(answer)).await, None)
}

fn not_here(_: &Request) -> Response {
    ibi_http::Problem::not_found("no").into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_lies_is_not_believed() {
    let Honest { label, held, large: (path, digest), _ours: ours } = honest().await;
    let place = ours.path("lied");
    // Other bytes, of the right length; a file of any length.
    let mut other = noise(LARGE + 7);
    other[LARGE] ^= 1;
    let bytes = other.clone();
    let lying = liar(held.clone(), move |_| bytes.clone().into_response()).await;
    let error = fetched(&lying, &label, &place).await.unwrap_err();
    assert!(matches!(&error, FetchError::Wrong { file, .. } if *file == path), "{error}");
    assert!(error.to_string().contains(lying.url()) && error.to_string().contains("large.bin"), "{error}");
    assert!(!place.join(&digest).exists() && !place.join(&digest).with_extension("part").exists());
    // A part that was not asked for.
    let lying = liar(held.clone(), |_| (StatusCode::PARTIAL_CONTENT, "x").into_response()).await;
    let error = fetched(&lying, &label, &place).await.unwrap_err();
    assert!(matches!(&error, FetchError::Peer(PeerError::NotAnArchive { .. })), "{error}");
    // Short.
    let lying = liar(held.clone(), |_| "x".into_response()).await;
    assert!(matches!(fetched(&lying, &label, &place).await, Err(FetchError::Wrong { .. })));
    // One that does not know of parts begins anew.
    let whole = noise(LARGE + 7);
    let plain = liar(held.clone(), move |_| whole.clone().into_response()).await;
    fs::write(place.join(&digest).with_extension("part"), &other[..LARGE / 2]).unwrap();
    let (_, bytes) = fetched(&plain, &label, &place).await.unwrap();
    assert_eq!(bytes, LARGE as u64 + 7);
}

/// Bytes without an end.
struct Endless;

impl http_body::Body for Endless {
    type Data = bytes::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, std::io::Error>>> {
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(vec![b'{'; 1 << 16].into()))))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_is_cut_off() {
    let Honest { label, held, _ours: ours, .. } = honest().await;
    let lying = liar(held.clone(), |_| Body::new(Endless).into_response()).await;
    let error = fetched(&lying, &label, &ours.path("one")).await.unwrap_err();
    assert!(matches!(&error, FetchError::TooLong { most, .. } if *most == LARGE as u64 + 7), "{error}");
    let bare = ObjectDescription { files: BTreeMap::new(), ..held };
    let lying = liar(bare, |_| Body::new(Endless).into_response()).await;
    let error = fetched(&lying, &label, &ours.path("two")).await.unwrap_err();
    assert!(matches!(&error, FetchError::TooLong { .. }), "{error}");
    let endless = peer(&listen(Router::new().fallback(|| async { Body::new(Endless) })).await, None);
    assert!(matches!(endless.describe_object(&label).await, Err(PeerError::TooLong { .. })));
}

/// Threat S5: an audit reads the bytes of others, and believes none of them.
#[tokio::test(flavor = "multi_thread")]
async fn other_bytes_than_the_inventory_promises_are_damage() {
    let Honest { label, held, large: (path, _), _ours: ours } = honest().await;
    let archive = "other.test/o/2026/01.01.00.00".to_owned();
    let held = ObjectDescription { archive, state: State::Copy, ..held };
    let here = Mutex::new(opening::open_to_read(&ours.data()).unwrap().0);
    let audited = async |lying: PeerArchive| {
        let asked = vec![PeerCandidate::from(lying)];
        let compared =
            repair::compare_with_peers(&here, &ours.data(), &label, asked, None, false, &|_| ()).await;
        let report = compared.unwrap().report;
        let other = report.holders.into_iter().next().unwrap();
        (other.equal, other.damaged, other.unread, report.alarms.len())
    };
    let root = held.embedded_file("inventory.json").unwrap();
    let lying = async |file: fn() -> Response| {
        let (held, root) = (held.clone(), root.clone());
        let answer = move |request: &Request| match request.uri().path().ends_with("inventory.json") {
            true => root.clone().into_response(),
            false => file(),
        };
        liar(held, answer).await
    };
    let good = lying(|| noise(LARGE + 7).into_response()).await;
    assert_eq!(audited(good).await, (true, Vec::new(), None, 0));
    let flipped = || {
        let mut other = noise(LARGE + 7);
        other[LARGE] ^= 1;
        other.into_response()
    };
    let gone = || ibi_http::Problem::not_found("no").into_response();
    let files: [fn() -> Response; 4] =
        [flipped, || Body::new(Endless).into_response(), gone, || "x".into_response()];
    for file in files {
        assert_eq!(audited(lying(file).await).await, (true, vec![path.clone()], None, 1));
    }
    // The inventory of a version.
    let forged = liar(held.clone(), |request| match request.uri().path().ends_with("inventory.json") {
        true => "{}".into_response(),
        false => noise(LARGE + 7).into_response(),
    });
    assert_eq!(audited(forged.await).await, (true, vec!["v2/inventory.json".to_owned()], None, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn inventories_and_descriptions_that_lie_are_not_believed() {
    let Honest { label, held, _ours: ours, .. } = honest().await;
    let place = ours.path("lied");
    let twisted = |path: &str, from: &str, to: &str| {
        let mut held = held.clone();
        let text = String::from_utf8(held.embedded_file(path).unwrap()).unwrap();
        assert!(text.contains(from), "{text}");
        held.files.insert(path.to_owned(), STANDARD.encode(text.replacen(from, to, 1)));
        held
    };
    let refused = async |held: ObjectDescription| {
        let lying = liar(held, not_here).await;
        fetched(&lying, &label, &place).await.unwrap_err()
    };
    let error = refused(twisted("inventory.json", "tester", "nobody")).await;
    assert!(matches!(&error, FetchError::Wrong { file, .. } if file == "inventory.json"), "{error}");
    let error = refused(twisted("v1/inventory.json", "tester", "nobody")).await;
    assert!(matches!(&error, FetchError::NotWhole { .. }), "{error}");
    let error = refused(twisted("v1/content/item.json", "\"size\": 5", "\"size\": 6")).await;
    assert!(matches!(&error, FetchError::Wrong { file, .. } if file == "v1/content/item.json"), "{error}");
    // Another item than the one that was asked for.
    let lying = liar(held.clone(), not_here).await;
    let error = fetched(&lying, "dpi.inpe.br/banon/1998/08.02.08.56", &place).await.unwrap_err();
    assert!(matches!(&error, FetchError::Description { .. }), "{error}");
    for bad in [
        ObjectDescription { format: 2, ..held.clone() },
        ObjectDescription { version: 0, ..held.clone() },
        ObjectDescription { version: 200_000, ..held.clone() },
        ObjectDescription { inventory: "x".to_owned(), ..held.clone() },
        ObjectDescription { path: "../../etc".to_owned(), ..held.clone() },
    ] {
        let error = refused(bad).await;
        assert!(matches!(&error, FetchError::Peer(PeerError::NotAnArchive { .. })), "{error}");
    }
}

/// All digests are right, but for those of the blocks: taken as it is, the file could never be read
/// here.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_are_described_wrongly_are_noticed() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let label = deposited(&ours, &mut archive, titled("x"));
    drop(archive);
    let at = serve(&ours).await;
    let mut held = peer(&at, None).describe_object(&label).await.unwrap();
    let text =
        |held: &ObjectDescription, path: &str| String::from_utf8(held.embedded_file(path).unwrap()).unwrap();
    let description = text(&held, "v1/content/item.json");
    let digest = sha512(description.as_bytes());
    let blocks = |digit: &str| format!("\"blocks\": \"{digit}");
    let twisted = ('0'..='9').map(String::from).find(|digit| description.contains(&blocks(digit))).unwrap();
    let other = if twisted == "0" { "1" } else { "0" };
    let twisted = description.replacen(&blocks(&twisted), &blocks(other), 1);
    let inventory = text(&held, "inventory.json").replace(&digest, &sha512(twisted.as_bytes()));
    held.inventory = sha512(inventory.as_bytes());
    held.files.insert("v1/content/item.json".to_owned(), STANDARD.encode(twisted));
    for path in ["inventory.json", "v1/inventory.json"] {
        held.files.insert(path.to_owned(), STANDARD.encode(&inventory));
    }
    let lying = liar(held, |_| noise(LARGE + 7).into_response()).await;
    let place = ours.path("one");
    // As little when it comes as when its bytes lie here already.
    let error = fetched(&lying, &label, &place).await.unwrap_err();
    assert!(matches!(&error, FetchError::Description { .. }), "{error}");
    assert!(error.to_string().contains("other blocks"), "{error}");
    let held = lying.describe_object(&label).await.unwrap();
    let here = object(&ours, &held);
    let have = |asked: &str| {
        let bytes = ["large.bin", "empty", "a b%25.txt"].map(|name| here.join("v1/content/doc").join(name));
        bytes.into_iter().find(|path| fs::read(path).is_ok_and(|bytes| sha512(&bytes) == asked))
    };
    let error = fetch_object(&lying, &label, &held, &have, &place, &|_| ()).await.unwrap_err();
    assert!(matches!(&error, FetchError::Description { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_something_else_is_told_apart() {
    let label = "dpi.inpe.br/banon/1998/08.02.08.56";
    let at = |status: u16, body: &'static str| async move {
        let status = StatusCode::from_u16(status).unwrap();
        let kind = [(header::CONTENT_TYPE, "application/problem+json"), (header::LOCATION, "/elsewhere")];
        let answer = move || async move { (status, kind, body) };
        peer(&listen(Router::new().fallback(answer)).await, None).describe_object(label).await.unwrap_err()
    };
    assert!(matches!(at(200, "<html>").await, PeerError::NotAnArchive { .. }));
    assert!(matches!(at(200, "{}").await, PeerError::NotAnArchive { .. }));
    assert!(matches!(at(404, "<html>").await, PeerError::NotAnArchive { .. }));
    assert!(matches!(at(302, "{}").await, PeerError::NotAnArchive { .. }));
    let problem = r#"{"type":"urn:ibi:problem:x","title":"x","status":404,"detail":"so it is"}"#;
    // Of its words, only the title: who answers may be anybody.
    assert!(matches!(at(404, problem).await, PeerError::Unknown { detail, .. } if detail == "x"));
    let stranger = r#"{"type":"about:blank","title":"x","status":404,"detail":"so it is"}"#;
    assert!(matches!(at(404, stranger).await, PeerError::NotAnArchive { .. }));
    assert!(matches!(at(410, problem).await, PeerError::Gone { .. }));
    assert!(matches!(at(401, problem).await, PeerError::NeedsToken { .. }));
    assert!(matches!(at(409, problem).await, PeerError::Refused { status: 409, .. }));
    let nobody = peer("http://127.0.0.1:1", None).describe_object(label).await.unwrap_err();
    assert!(matches!(nobody, PeerError::Silent { .. }), "{nobody}");
    assert!(nobody.to_string().contains("http://127.0.0.1:1 does not answer"), "{nobody}");
}
