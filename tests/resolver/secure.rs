//! Archives and resolvers over TLS: how they find each other, and what both are told when a
//! certificate does not fit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::scripted::{KEY, Scripted};
use super::{Resolver, SERVICE, address, ask, until};
use crate::binary::ibi;
use crate::online::Folder;
use crate::online::server::Server;

/// An issuer of certificates, which nobody knows unless told.
struct Issuer(tempfile::TempDir);

const KEY_PAIR: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

impl Issuer {
    fn new() -> Self {
        let issuer = Self(tempfile::tempdir().unwrap());
        issuer.openssl(&format!("req -x509 {KEY_PAIR} -days 2 -subj /CN=issuer -keyout ca.key -out ca.pem"));
        fs::write(issuer.0.path().join("index"), "").unwrap();
        let settings = "[ca]\ndefault_ca=own\n[own]\ndatabase=index\nnew_certs_dir=.\nrand_serial=yes\n\
                        default_md=sha256\nunique_subject=no\npolicy=any\n[any]\ncommonName=supplied\n";
        fs::write(issuer.0.path().join("settings"), settings).unwrap();
        issuer
    }

    fn openssl(&self, arguments: &str) {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let made = Command::new("openssl").args(&arguments).current_dir(&self.0).output().unwrap();
        assert!(made.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&made.stderr));
    }

    fn ca(&self) -> String {
        self.0.path().join("ca.pem").display().to_string()
    }

    /// Writes `cert.pem` and `key.pem` into a folder: for this name, until this date.
    fn certify(&self, folder: &Path, name: &str, until: &str) {
        self.openssl(&format!("req {KEY_PAIR} -subj /CN=server -keyout key.pem -out request.pem"));
        let extensions = format!("subjectAltName={name}\nbasicConstraints=CA:FALSE\n");
        fs::write(self.0.path().join("names"), extensions).unwrap();
        self.openssl(&format!(
            "ca -batch -notext -config settings -cert ca.pem -keyfile ca.key -in request.pem -out cert.pem \
             -extfile names -startdate 20200101000000Z -enddate {until}"
        ));
        for file in ["cert.pem", "key.pem"] {
            fs::copy(self.0.path().join(file), folder.join(file)).unwrap();
        }
    }
}

const FUTURE: &str = "20490101000000Z";
const PAST: &str = "20200201000000Z";

/// The options of a server with the certificate in a folder.
fn tls(folder: &Path) -> [String; 4] {
    let file = |name: &str| folder.join(name).display().to_string();
    ["--tls-cert".to_owned(), file("cert.pem"), "--tls-key".to_owned(), file("key.pem")]
}

/// An Archive that comes online over TLS at a resolver, and the folder of its certificate.
fn archive_of(folder: &Folder, resolver: &Resolver, url: &str, more: &[&str]) -> Server {
    let key = folder.place.path().join("key");
    if !key.exists() {
        fs::write(&key, resolver.register(&folder.service)).unwrap();
    }
    let (key, tls) = (key.display().to_string(), tls(folder.place.path()));
    let tls: Vec<&str> = tls.iter().map(String::as_str).collect();
    folder.serve_with(&[&["--resolver", url, "--key-file", &key], more, &tls[..]].concat())
}

/// What `ibi resolver archives` says of an Archive.
fn listed(resolver: &Resolver, folder: &Folder) -> Value {
    let all = resolver.json("archives", &[]);
    all.into_iter().find(|archive| archive["service"] == *folder.service).unwrap()
}

/// What curl gets, which trusts this issuer only.
fn curl(ca: &str, url: &str, more: &[&str]) -> String {
    let got = Command::new("curl").args(["-sS", "--cacert", ca, url]).args(more).output().unwrap();
    assert!(got.status.success(), "{url}: {}", String::from_utf8_lossy(&got.stderr));
    String::from_utf8(got.stdout).unwrap()
}

/// A line of a log with both of these.
fn has_line(log: &str, message: &str, words: &str) -> bool {
    log.lines().any(|line| line.contains(message) && line.contains(words))
}

#[test]
fn a_federation_over_https_resolves_acknowledges_and_counts() {
    let issuer = Issuer::new();
    let (ca, resolver) = (issuer.ca(), Resolver::new());
    let own = resolver.place.path();
    issuer.certify(own, &format!("IP:{}", resolver.at.split_once(':').unwrap().0), FUTURE);
    let files = tls(own);
    let served: Vec<&str> = files.iter().map(String::as_str).collect();
    let server = resolver.serve_with(&[&["--allow-private", "--ca-file", &ca], &served[..]].concat());
    let url = format!("https://{}", resolver.at);
    let [a, b] = [Folder::new(), Folder::new()];
    let mut archives = [&a, &b].map(|folder| {
        issuer.certify(folder.place.path(), "IP:127.0.0.1", FUTURE);
        archive_of(folder, &resolver, &url, &["--ca-file", &ca])
    });
    for (folder, archive) in [&a, &b].into_iter().zip(&archives) {
        until("it is online", || listed(&resolver, folder)["standing"] == "online");
        let told = listed(&resolver, folder);
        assert_eq!((&told["protocol"], &told["secure"]), (&"HTTPS".into(), &true.into()));
        assert_eq!((&told["address"], &told["problem"]), (&archive.at.as_str().into(), &Value::Null));
    }
    // Asked, redirected, acknowledged, counted.
    let item = a.deposit(&[(b"a.txt", b"one")], &[]);
    let there =
        curl(&ca, &format!("{url}/{item}"), &["-w", "%{http_code} %{redirect_url}", "-o", "/dev/null"]);
    assert_eq!(there, format!("302 https://{}/col/{item}/doc/a.txt", archives[0].at));
    // Whoever requires the Original asks all Archives (4.4), and the chosen one is told.
    let original = format!("{url}/{item}?ibiurl.requireditemstatus=Original");
    assert_eq!(curl(&ca, &original, &["-L"]), "one");
    let statistics = format!("https://{}/api/v1/items/{item}/statistics", archives[0].at);
    let counted = || -> Value { serde_json::from_str(&curl(&ca, &statistics, &[])).unwrap() };
    let resolutions = || {
        let totals = counted()["totals"]["resolutions"].clone();
        totals.as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>()
    };
    until("both redirects are counted", || resolutions() == 2);
    let figures = curl(&ca, &format!("{url}/metrics"), &[]);
    assert!(figures.contains("ibi_acknowledgments_total{result=\"sent\"}"), "{figures}");
    // A command asks in the same way; without the issuer it says what to do, and asks nothing else.
    let found = resolver.run("resolve", &[&item, "--allow-private", "--ca-file", &ca]);
    assert_eq!(found.stdout, format!("https://{}/col/{item}/doc/a.txt\n", archives[0].at));
    let lost = resolver.run("resolve", &[&item, "--allow-private"]);
    assert_eq!((lost.status, lost.stdout.as_str()), (1, ""));
    assert!(lost.stderr.contains("the issuer of the certificate is not known here"), "{}", lost.stderr);
    // Archives find each other through the resolver, over TLS; evidence of a second claim too.
    let copied =
        b.archive("copy", &[&item, "--from", &format!("https://{}", archives[0].at), "--ca-file", &ca]);
    assert_eq!(copied.status, 0, "{}", copied.stderr);
    let audited = a.archive("audit", &[&item, "--resolver", &url, "--ca-file", &ca]);
    assert_eq!(audited.status, 0, "{}", audited.stderr);
    assert_eq!(audited.json()[0]["holders"][0]["archive"], format!("https://{}", archives[1].at));
    let untrusted = a.archive("audit", &[&item, "--resolver", &url]);
    assert!(untrusted.stderr.contains("trust a private issuer with --ca-file"), "{}", untrusted.stderr);
    let other = a.deposit(&[(b"b.txt", b"two")], &[]);
    b.put(&[(b"b.txt", b"two")], &["--label", &other, "--original"]);
    curl(&ca, &format!("{url}/{other}?ibiurl.requireditemstatus=Original"), &[]);
    let claims = || resolver.json("alerts", &[]).pop().unwrap()["claims"].as_array().unwrap().clone();
    until("both have told", || claims().iter().all(|claim| claim["epoch"].is_u64()));
    // Going offline.
    archives[0].signal("-TERM");
    archives[0].end();
    assert_eq!(listed(&resolver, &a)["standing"], "offline");
    drop(server);
}

/// A certificate that does not fit: the problem is in both logs, in the list and in the answer to
/// the Archive, each with the next step. Once it fits, the Archive comes online by itself.
#[test]
fn a_certificate_that_does_not_fit_is_told_to_both_operators() {
    // Both are called alike, as an issuer that was made anew is.
    let (issuer, stranger) = (Issuer::new(), Issuer::new());
    let resolver = Resolver::new();
    let server = resolver.serve_with(&["--allow-private", "--ca-file", &issuer.ca()]);
    let url = format!("http://{}", resolver.at);
    let cases: [(&Issuer, &str, &str, &str, &str, &str); 3] = [
        (
            &issuer,
            "DNS:other.example",
            FUTURE,
            "the certificate is not for this name",
            "but for other.example: use a name in the certificate",
            "get a certificate for the name in --address",
        ),
        (
            &issuer,
            "IP:127.0.0.1",
            PAST,
            "the certificate has expired",
            "its operator must renew it",
            "renew it and reload the server (SIGHUP)",
        ),
        (
            &stranger,
            "IP:127.0.0.1",
            FUTURE,
            "the issuer of the certificate is not known here",
            "trust a private issuer with --ca-file",
            "put the whole chain into --tls-cert",
        ),
    ];
    for (from, name, end, words, next, next_there) in cases {
        let folder = Folder::new();
        from.certify(folder.place.path(), name, end);
        let archive = archive_of(&folder, &resolver, &url, &[]);
        until("the Archive tells its operator", || {
            let log = archive.log();
            let message = "the resolver cannot call this Archive back over TLS";
            has_line(&log, message, words) && has_line(&log, message, next_there)
        });
        let told = listed(&resolver, &folder);
        assert_eq!(told["standing"], "unconfirmed");
        let problem = told["problem"].as_str().unwrap();
        assert!(problem.starts_with(words) && problem.contains(next), "{problem}");
        let text = resolver.run("archives", &[]).stdout;
        assert!(text.contains(&format!("\t{problem}\t")), "{text}");
        let log = server.log();
        for message in ["not queried: invalid certificate", "included, but not confirmed"] {
            assert!(has_line(&log, message, words) && has_line(&log, message, next), "{message}: {log}");
        }
        // Others than the operator are not told.
        assert!(!server.get("/api/v1/archives").text().contains("certificate"));
        // What to do next is of use: the Archive comes online by itself.
        issuer.certify(folder.place.path(), "IP:127.0.0.1", FUTURE);
        archive.signal("-HUP");
        until("it is online", || listed(&resolver, &folder)["standing"] == "online");
        assert_eq!(listed(&resolver, &folder)["problem"], Value::Null);
    }
}

/// What the resolver serves does not fit: the Archive tells its operator, and nobody its key.
#[test]
fn a_resolver_whose_certificate_does_not_fit_is_told_no_key() {
    let issuer = Issuer::new();
    let resolver = Resolver::new();
    issuer.certify(resolver.place.path(), "DNS:other.example", FUTURE);
    let files = tls(resolver.place.path());
    let served: Vec<&str> = files.iter().map(String::as_str).collect();
    let server = resolver.serve_with(&[&["--allow-private"], &served[..]].concat());
    let folder = Folder::new();
    let key = folder.place.path().join("key");
    fs::write(&key, resolver.register(&folder.service)).unwrap();
    let (url, key) = (format!("https://{}", resolver.at), key.display().to_string());
    let message = "the resolver's certificate is invalid";
    for (trust, words) in [
        (vec![], "the issuer of the certificate is not known here"),
        (vec!["--ca-file".to_owned(), issuer.ca()], "but for other.example"),
    ] {
        let trust: Vec<&str> = trust.iter().map(String::as_str).collect();
        let archive = folder.serve_with(&[&["--resolver", &url, "--key-file", &key], &trust[..]].concat());
        until("the Archive tells its operator", || has_line(&archive.log(), message, words));
    }
    assert_eq!(listed(&resolver, &folder)["standing"], "new");
    assert!(!server.log().contains("inclusion"), "{}", server.log());
}

/// An Archive that says HTTPS is asked over TLS or not at all.
#[test]
fn who_says_https_is_never_asked_without() {
    const IBI: &str = "a.br/b/2009/02.16.17.46";
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archive = Scripted::with("x.test/archive/2026/11.16.08.00", IBI, "/one");
    resolver.json("register", &["--service", &archive.service, "--key", KEY]);
    let tell = |protocol: &str| {
        let path = format!(
            "/{SERVICE}?servicesubject=inclusionRequest&archiveaddress={}&archiveserviceibi={}&archiveip=127.0.0.1\
             &archiveprotocol={protocol}&archiveplatformversion=script&archiveadmemailaddress=ana@library.test\
             &registrationkey={KEY}",
            archive.at, archive.service
        );
        ask(&resolver.at, "GET", &path, "", b"").text()
    };
    assert!(tell("https").contains("status.confirmation unsuccessful"));
    assert_eq!(server.get(&format!("/{IBI}")).status, 503, "it may have it");
    assert_eq!(archive.all().len(), 0, "nothing came in the clear");
    // It says with its key that it is asked without TLS: its operator's word, and logged.
    assert!(tell("HTTP").contains("status.confirmation successful"));
    assert!(server.log().contains("Archive downgraded from HTTPS to HTTP"));
    assert_eq!(server.get(&format!("/{IBI}")).status, 302);
    // And back: from then on nothing goes in the clear, though it stood as online.
    until("the redirect is acknowledged", || archive.asked("acknowledgment").len() == 1);
    let before = archive.all().len();
    assert!(tell("HTTPS").contains("status.confirmation unsuccessful"));
    assert_eq!(server.get(&format!("/{IBI}")).status, 503);
    assert_eq!(archive.all().len(), before);
}

/// A proxy in front does TLS: links and resolvers are told https. If nothing does, that is told.
#[test]
fn an_address_may_be_of_a_proxy_that_does_tls() {
    let issuer = Issuer::new();
    let resolver = Resolver::new();
    let _server = resolver.serve_with(&["--allow-private", "--ca-file", &issuer.ca()]);
    let folder = Folder::new();
    let key = folder.place.path().join("key");
    fs::write(&key, resolver.register(&folder.service)).unwrap();
    let (at, key, data) = (address(), key.display().to_string(), folder.data());
    let (public, url) = (format!("https://{at}"), format!("http://{}", resolver.at));
    let serve = |more: &[&str]| {
        let own = ["--address", &public, "--resolver", &url, "--key-file", &key];
        Server::run(&["archive", "serve", "--listen", &at], &data, &[&own, more].concat())
    };
    let archive = serve(&[]);
    until("nothing does TLS there", || {
        has_line(&archive.log(), "cannot call this Archive back over TLS", "there is no TLS at this address")
    });
    assert_eq!(listed(&resolver, &folder)["standing"], "unconfirmed");
    drop(archive);
    let place: PathBuf = folder.place.path().to_owned();
    issuer.certify(&place, &format!("IP:{}", at.split_once(':').unwrap().0), FUTURE);
    let files = tls(&place);
    let _archive = serve(&files.iter().map(String::as_str).collect::<Vec<_>>());
    until("it is online", || listed(&resolver, &folder)["standing"] == "online");
    let said = ["archive", "serve", "--listen", "127.0.0.1:0", "--address", "http://a.example", "--data"];
    let data = data.display().to_string();
    let more = files.iter().map(String::as_str);
    let refused = ibi(&said.into_iter().chain([data.as_str()]).chain(more).collect::<Vec<_>>());
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("pass https://"), "{}", refused.stderr);
}
