//! Which Archives may come online, and which are called back (clauses 3.2 and 3.3; threats K2 and
//! S1).

use super::scripted::{KEY, Scripted, item, tell};
use super::{Reply, Resolver, SERVICE, ask, location, until};

const KNOWN: &str = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";
const UNKNOWN: &str = "sid.inpe.br/mtc-m19/2013/09.04.12.27.57";
const IBI: &str = "sid.inpe.br/mtc-m18@80/2009/07.21.14.43";

fn refused(reply: &Reply) -> (u16, String, Vec<(String, String)>) {
    (reply.status, reply.text(), reply.lasting_headers())
}

#[test]
fn an_unknown_archive_and_a_wrong_key_get_the_same_answer() {
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archive = Scripted::with(KNOWN, IBI, "/a");
    archive.come(&resolver);
    let asked = archive.all().len();
    let wrong = archive.tell(&resolver, "exclusionRequest", "9999999999");
    assert_eq!((wrong.status, wrong.text().trim_end()), (403, "status.archive refused"));
    for subject in ["inclusionRequest", "exclusionRequest"] {
        // Another Archive's key is as wrong as any.
        let unknown = tell(&resolver, subject, &archive.at, UNKNOWN, KEY);
        assert_eq!(refused(&unknown), refused(&wrong), "{subject}");
    }
    // No message had an effect: not moved, not called back, not offline.
    let moved = tell(&resolver, "inclusionRequest", "127.0.0.1:9", KNOWN, "1234567890");
    assert_eq!(refused(&moved), refused(&wrong));
    assert_eq!(resolver.standing(KNOWN), ("online".to_owned(), archive.at.clone()));
    assert_eq!(archive.all().len(), asked, "only those who are registered are called back");
    location(&server.get(&format!("/{IBI}")));
    // A retired Archive is unknown.
    assert_eq!(resolver.run("retire", &["--service", KNOWN]).status, 0);
    until("it is retired", || server.get(&format!("/{IBI}")).status == 404);
    assert_eq!(refused(&archive.tell(&resolver, "inclusionRequest", KEY)), refused(&wrong));
}

/// Threat K2: five attempts are free; then there is a delay.
#[test]
fn who_is_wrong_again_and_again_has_to_wait() {
    let resolver = Resolver::new();
    let server = resolver.serve();
    resolver.json("register", &["--service", KNOWN, "--key", KEY]);
    for service in [KNOWN, UNKNOWN] {
        let replies: Vec<Reply> = (0..20)
            .map(|_| tell(&resolver, "inclusionRequest", "127.0.0.1:9", service, "9999999999"))
            .collect();
        let late: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 429).collect();
        assert!(
            !late.is_empty() && replies.iter().all(|reply| [403, 429].contains(&reply.status)),
            "{service}"
        );
        for reply in late {
            assert_eq!(reply.text().trim_end(), "status.archive refused");
            assert!(reply.header("retry-after").parse::<u64>().unwrap() > 0);
        }
    }
    assert_eq!(server.get("/readyz").status, 200);
}

/// Threat S1: unless the operator allows it, no address of the machine or its network is contacted.
#[test]
fn private_addresses_are_neither_called_back_nor_asked_unless_allowed() {
    let archive = Scripted::with(KNOWN, IBI, "/a");
    let resolver = Resolver::new();
    resolver.json("register", &["--service", KNOWN, "--key", KEY]);
    let server = resolver.serve_with(&[]);
    for address in [archive.at.replace("127.0.0.1", "localhost"), archive.at.clone()] {
        let told = tell(&resolver, "inclusionRequest", &address, KNOWN, KEY);
        assert_eq!(told.status, 200, "{}", told.text());
        assert_eq!(
            (told.pair("status.archive"), told.pair("status.confirmation")),
            ("included".to_owned(), "unsuccessful".to_owned())
        );
        assert_eq!(resolver.standing(KNOWN), ("unconfirmed".to_owned(), address), "D21");
    }
    assert_eq!(server.get(&format!("/{IBI}")).status, 503, "not asked, and it may have it");
    let run = resolver.run("resolve", &[IBI]);
    assert_eq!((run.status, run.stdout.as_str()), (1, ""));
    assert_eq!(archive.all().len(), 0);
    drop(server);
    // If allowed, it is called back in the background.
    let server = resolver.serve();
    until("it has confirmed", || resolver.standing(KNOWN).0 == "online");
    location(&server.get(&format!("/{IBI}")));
}

/// Clause 4.2 step 2: a URL is only followed on hosts that are registered for the Archive.
#[test]
fn an_archive_that_points_elsewhere_is_not_followed() {
    let archive =
        Scripted::new(KNOWN, |_, at| item(IBI, at, "/a").replace("http://127.0.0.1", "http://127.9.9.9"));
    let resolver = Resolver::new();
    let server = resolver.serve();
    archive.come(&resolver);
    let url = format!("/{IBI}");
    let reply = server.get(&url);
    assert_eq!((reply.status, reply.header("location")), (503, ""), "a failed answer, not an empty one");
    let why = server.get_with(&format!("{url}?explain"), "Accept: text/plain\r\n").text();
    assert!(why.contains("its host is not registered for the Archive"), "{why}");
    // Unless the operator registers them.
    resolver.json("register", &["--service", KNOWN, "--key", KEY, "--host", "127.9.9.9"]);
    until("the host is known", || server.get(&url).status == 302);
    assert!(location(&server.get(&url)).starts_with("http://127.9.9.9:"));
}

/// Clause 3.6, D15: errors are reported as pairs; the key may be in a header.
#[test]
fn messages_are_read_as_the_norm_writes_them() {
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archive = Scripted::with(KNOWN, IBI, "/a");
    archive.come(&resolver);
    let rest = format!(
        "archiveaddress={}&archiveserviceibi={KNOWN}&archiveip=127.0.0.1&archiveprotocol=HTTP\
         &archiveplatformversion=1&archiveadmemailaddress=a@b.test",
        archive.at
    );
    let header = format!("ibi-registration-key: {KEY}\r\n");
    let excluded = format!("/{SERVICE}?servicesubject=exclusionRequest&{rest}");
    assert_eq!(
        ask(&resolver.at, "GET", &excluded, &header, b"").text().trim_end(),
        "status.archive excluded"
    );
    assert_eq!(resolver.standing(KNOWN).0, "offline");
    let bad = rest.replace("archiveaddress=", "archiveaddress=user@");
    for query in [
        "servicesubject=".to_owned(),
        "servicesubject=nonsense".to_owned(),
        "servicesubject=inclusionRequest".to_owned(),
        format!("servicesubject=inclusionRequest&{rest}"),
        format!("servicesubject=inclusionRequest&{rest}&registrationkey=12"),
        format!("servicesubject=inclusionRequest&{bad}&registrationkey={KEY}"),
        format!("servicesubject=inclusionRequest&{rest}&{rest}&registrationkey={KEY}"),
        format!("servicesubject=urlRequest&clientinformation.ipaddress=192.0.2.1&parsedibiurl.ibi={IBI}"),
        "servicesubject=inclusionConfirmationRequest".to_owned(),
    ] {
        let reply = server.get(&format!("/{SERVICE}?{query}"));
        assert_eq!(reply.status, 400, "{query}: {}", reply.text());
        assert!(!reply.pair("error").is_empty() && !reply.pair("message").is_empty(), "{}", reply.text());
        assert!(!reply.text().contains(KEY), "{query}");
    }
    assert_eq!(resolver.standing(KNOWN).0, "offline");
}
