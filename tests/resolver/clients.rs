//! What Archives learn about a client, and where a client is redirected (clauses 3.4, 3.5, 4.2
//! steps 1, 2 and 7).

use super::scripted::{Scripted, item};
use super::{PUBLIC, Resolver, figure, location, until};

const SERVICE: &str = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";
const IBI: &str = "sid.inpe.br/mtc-m18@80/2009/07.21.14.43";
const URL: &str = "/sid.inpe.br/mtc-m18@80/2009/07.21.14.43";

/// Clause 4.2 step 1; threat K6: a forwarded address is accepted from a trusted proxy only.
#[test]
fn a_forwarded_address_is_believed_of_a_trusted_proxy_only() {
    let archive = Scripted::with(SERVICE, IBI, "/a");
    let resolver = Resolver::new();
    let address = |arguments: &[&str], forwarded: &str| {
        let server = resolver.serve_with(&[&["--allow-private"], arguments].concat());
        archive.come(&resolver);
        let before = archive.asked("urlRequest").len();
        location(&server.get_with(URL, forwarded));
        let asked = archive.asked("urlRequest");
        assert_eq!(asked.len(), before + 1);
        asked[before].value("clientinformation.ipaddress").to_owned()
    };
    let forwarded = "X-Forwarded-For: 203.0.113.9, 198.51.100.1\r\nX-Forwarded-For: 192.0.2.3\r\n";
    assert_eq!(address(&[], forwarded), "127.0.0.1");
    assert_eq!(address(&["--trusted-proxy", "192.0.2.0/24"], forwarded), "127.0.0.1", "it is not who asks");
    assert_eq!(address(&["--trusted-proxy", "127.0.0.1"], forwarded), "192.0.2.3%20127.0.0.1");
    let two = ["--trusted-proxy", "127.0.0.0/8", "--trusted-proxy", "192.0.2.0/24"];
    assert_eq!(
        address(&two, forwarded),
        "198.51.100.1%20192.0.2.3%20127.0.0.1",
        "3.4: the client, then its proxies"
    );
    assert_eq!(address(&two, "X-Forwarded-For: 2001:db8::7\r\n"), "2001:db8::7%20127.0.0.1");
    // Some proxies write ports, some `Forwarded` (RFC 7239); an unreadable address is unknown, and
    // never the proxy's.
    assert_eq!(address(&two, "X-Forwarded-For: 198.51.100.7:4711\r\n"), "198.51.100.7%20127.0.0.1");
    let forwarded = "Forwarded: for=198.51.100.7;proto=http, for=\"192.0.2.3:80\"\r\n";
    assert_eq!(address(&two, forwarded), "198.51.100.7%20192.0.2.3%20127.0.0.1");
    let nobody = "0.0.0.0%20127.0.0.1";
    assert_eq!(address(&two, "X-Forwarded-For: 198.51.100.1, nonsense&x=y\r\n"), nobody);
    assert_eq!(address(&two, "X-Forwarded-For: 198.51.100.1\r\nForwarded: for=198.51.100.2\r\n"), nobody);
}

/// Clause 3.4: an `ip:` rule that covers the proxy's network is not opened by a malformed forwarded
/// address.
#[test]
fn nonsense_does_not_make_the_proxy_of_a_client() {
    let folder = super::Folder::new();
    let item = folder.put(&[(b"a.txt", b"one")], &["--access", "ip:127.0.0.0/8"]);
    let resolver = Resolver::new();
    let server = resolver.serve_with(&["--allow-private", "--trusted-proxy", "127.0.0.1"]);
    let _archive = resolver.on_line(&folder);
    let path = format!("/{}", crate::online::rep(&item));
    for nonsense in ["nonsense", "198.51.100.7:99999", "unknown"] {
        let reply = server.get_with(&path, &format!("X-Forwarded-For: {nonsense}\r\n"));
        assert!(!location(&reply).ends_with("/doc/a.txt"), "{nonsense}");
    }
    assert!(location(&server.get_with(&path, "X-Forwarded-For: 127.0.0.9:4711\r\n")).ends_with("/doc/a.txt"));
}

/// Clause 4.2 step 6: all lines of `Accept-Language` together (RFC 9110 5.3).
#[test]
fn every_line_of_accept_language_counts() {
    let archive = Scripted::new(SERVICE, |question, at| {
        if question.value("parsedibiurl.ibi") != IBI {
            return String::new();
        }
        let offer = |language: &str| {
            let relation = format!(".translation({language})");
            format!("url{relation} http://{at}/{language}\r\nstate{relation} Original\r\n")
        };
        format!("ibi {{rep {IBI}}}\r\n{}{}", offer("pt"), offer("en"))
    });
    let resolver = Resolver::new();
    let server = resolver.serve();
    archive.come(&resolver);
    let lines = "Accept-Language: en;q=0.5\r\nAccept-Language: pt\r\n";
    assert!(location(&server.get_with(&format!("{URL}+"), lines)).ends_with("/pt"));
    let page = server.get_with("/no/label", "Accept-Language: de\r\nAccept-Language: pt\r\n").text();
    assert!(page.contains("<html lang=\"pt\">"), "pages too: {page}");
}

/// Clause 3.4: neither the language preference nor the required status of a client is passed on.
#[test]
fn what_a_client_reads_and_requires_is_nobodys_business() {
    let archive = Scripted::with(SERVICE, IBI, "/a");
    let resolver = Resolver::new();
    let server = resolver.serve();
    archive.come(&resolver);
    let headers = "Accept-Language: gl-ES,pt;q=0.5\r\nUser-Agent: canary\r\nCookie: canary\r\nReferer: http://canary.test/\r\n\
         Authorization: Bearer canary\r\nX-Forwarded-For: 192.0.2.99\r\n";
    for url in ["", "+", "/a%20b?x=canary&ibiurl.requireditemstatus=Original"] {
        let reply = server.get_with(&format!("{URL}{url}"), headers);
        assert_ne!(reply.status, 400, "{}", reply.text());
    }
    let asked = archive.asked("urlRequest");
    assert!(asked.len() >= 3, "{asked:?}");
    for question in &asked {
        let said = question.0.to_ascii_lowercase();
        for word in ["accept-language", "gl-es", "canary", "original", "192.0.2.99", "requireditemstatus"] {
            assert!(!said.contains(word), "{word}: {said}");
        }
        assert!(
            said.starts_with(&format!("get /{SERVICE}?clientinformation.ipaddress=127.0.0.1&parsedibiurl."))
        );
    }
    assert!(asked.iter().any(|question| question.value("parsedibiurl.filepath") == "/a%20b"), "{asked:?}");
}

/// Clause 3.5: exactly these pairs, once, to the Archive whose URL was chosen; and only after a
/// redirect.
#[test]
fn an_acknowledgment_is_sent_once_and_only_for_a_redirect() {
    let archive = Scripted::new(SERVICE, |question, at| match question.value("parsedibiurl.ibi") {
        IBI => item(IBI, at, "/a%20b?c=d"),
        "sid.inpe.br/mtc-m18@80/2009/07.21.14.44" => {
            let without = item("sid.inpe.br/mtc-m18@80/2009/07.21.14.44", at, "/b");
            without.split_inclusive("\r\n").filter(|pair| !pair.starts_with("urlkey")).collect()
        }
        _ => String::new(),
    });
    let other = Scripted::with("sid.inpe.br/mtc-m19/2013/09.04.12.27.57", "LK47B6W/362SFKH", "/a");
    let resolver = Resolver::new();
    let server = resolver.serve_with(&["--allow-private", "--trusted-proxy", "127.0.0.1"]);
    archive.come(&resolver);
    other.come(&resolver);
    let asked = format!("{URL}?x=%C3%A9&ibiurl.requireditemstatus=Original");
    let reply = server.get_with(&asked, "X-Forwarded-For: 172.16.44.200\r\n");
    assert_eq!(location(&reply), format!("http://{}/a%20b?c=d&x=%C3%A9", archive.at));
    // No redirect: only explained, or only queried by a program.
    assert_eq!(server.get(&format!("{URL}?explain")).status, 200);
    assert_eq!(server.get(&format!("/api/v1/resolve?url={URL}")).status, 200);
    // Nothing to acknowledge: no key; nothing found; not understood.
    location(&server.get(&URL.replace("14.43", "14.44")));
    assert_eq!(server.get(&URL.replace("14.43", "14.45")).status, 404);
    assert_eq!(server.get(&format!("{URL}!!")).status, 400);
    until("it is sent", || figure(&server, "ibi_acknowledgments_total{result=\"sent\"}") == "1");
    // Before it stops, it sends pending acknowledgments.
    assert_eq!(server.stop().0, Some(0));
    let acknowledged = archive.asked("acknowledgment");
    assert_eq!(acknowledged.len(), 1, "{acknowledged:?}");
    let expected = format!(
        "clientinformation.ipaddress=172.16.44.200%20127.0.0.1&contenttype=Data&ibi=rep%20{IBI}&servicesubject=acknowledgment\
         &state=Original&url=http://{}/a%2520b%3Fc%3Dd&url.persistent={PUBLIC}{URL}%3Fx%3D%25C3%25A9%26ibiurl.requireditemstatus%3DOriginal\
         &urlkey=1427244889-5349022633744855",
        archive.at
    );
    assert_eq!(acknowledged[0].query(), expected);
    assert_eq!(other.asked("acknowledgment").len(), 0);
}

/// Clause 4.2 steps 2 and 7; threat S2: exactly one safe http or https URL, or none.
#[test]
fn nobody_is_sent_to_what_is_no_safe_url() {
    let archive = Scripted::new(SERVICE, |question, at| {
        let number: usize = question.value("parsedibiurl.ibi").rsplit('.').next().unwrap().parse().unwrap();
        let url = unsafe_urls(at)[number].clone();
        let ibi = question.value("parsedibiurl.ibi");
        format!("ibi {{rep {ibi}}}\r\ncontenttype Data\r\nstate Original\r\nurl {{{url}}}\r\n")
    });
    let resolver = Resolver::new();
    let server = resolver.serve();
    archive.come(&resolver);
    for (number, url) in unsafe_urls(&archive.at).iter().enumerate() {
        let reply = server.get(&format!("/sid.inpe.br/mtc-m18/2009/02.16.17.{number:02}"));
        assert_eq!((reply.status, reply.header("location")), (503, ""), "{url:?}");
        assert!(!reply.text().contains("evil"), "{url:?}");
    }
    assert_eq!(server.get("/readyz").status, 200);
}

fn unsafe_urls(at: &str) -> Vec<String> {
    [
        "javascript:alert(1)",
        "ftp://{at}/evil",
        "file:///etc/passwd",
        "//{at}/evil",
        "/evil",
        "http://evil.test/",
        "http://evil.test\\@{at}/",
        "http://{at}@evil.test/",
        "http://user:password@{at}/",
        "http://{at}.evil.test/",
        "http://{at}:80/",
        "http:///{at}/",
        "http://{at}/a b",
        "http://{at}/a\r\nX-Injected: evil",
        "http://[::1/",
        "http://127.0.0.1:99999/",
        "http://0x7f000001/",
        "http://127.1/",
        "data:text/html,evil",
    ]
    .map(|url| url.replace("{at}", at))
    .to_vec()
}
