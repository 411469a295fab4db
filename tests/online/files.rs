//! Files over HTTP: byte-equal, in ranges, with validators (RFC 9110), and isolated from our own
//! pages.

use super::client::{Reply, ask};
use super::{Folder, Server, bytes, filter};

/// An item with several files online; the large one spans four blocks.
struct OnLine {
    server: Server,
    _folder: Folder,
    doc: String,
    large: Vec<u8>,
}

impl OnLine {
    fn new() -> Self {
        let folder = Folder::new();
        let large = bytes(3 << 20 | 4321);
        let rep = folder.deposit(
            &[
                (b"large.bin", &large),
                (b"page.html", b"<script>parent.location='x'</script>"),
                (b"drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>"),
                (b"strict.xhtml", b"<html xmlns='http://www.w3.org/1999/xhtml'/>"),
                (b"paper.pdf", b"%PDF-1.4 <script>"),
                (b"notes.txt", b"<script>"),
                (b"unknown.qqq", b"<html><script>"),
                (b"nothing", b""),
            ],
            &["--dc", "title=<script>alert(1)</script>"],
        );
        let server = folder.serve();
        Self { server, _folder: folder, doc: format!("/col/{rep}/doc/"), large }
    }

    fn get(&self, name: &str, headers: &str) -> Reply {
        self.server.get_with(&format!("{}{name}", self.doc), headers)
    }
}

fn base64(hex: &str) -> String {
    let raw: Vec<u8> =
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
    filter("base64", &raw).split_whitespace().collect()
}

#[test]
fn a_file_comes_byte_equal_with_its_type_and_its_digest() {
    let on_line = OnLine::new();
    for (name, kind) in [
        ("large.bin", "application/octet-stream"),
        ("page.html", "text/html"),
        ("drawing.svg", "image/svg+xml"),
        ("paper.pdf", "application/pdf"),
        ("notes.txt", "text/plain"),
        ("nothing", "application/octet-stream"),
    ] {
        let file = on_line.get(name, "");
        assert_eq!((file.status, file.is_whole()), (200, true), "{name}");
        assert_eq!(file.header("content-type").split(';').next(), Some(kind), "{name}");
        assert_eq!(file.header("accept-ranges"), "bytes");
        let digest = filter("sha512sum", &file.body);
        assert_eq!(file.header("repr-digest"), format!("sha-512=:{}:", base64(&digest[..128])), "{name}");
    }
    assert!(on_line.get("large.bin", "").body == on_line.large);
}

/// RFC 9110 §14: the digest stays that of the whole (RFC 9530).
#[test]
fn a_range_gives_its_bytes_and_no_others() {
    let on_line = OnLine::new();
    let (size, mib) = (on_line.large.len(), 1 << 20);
    let whole = on_line.get("large.bin", "");
    for (range, from, to) in [
        ("0-0".to_owned(), 0, 1),
        ("0-99".to_owned(), 0, 100),
        (format!("{}-{}", mib - 10, mib + 9), mib - 10, mib + 10),
        (format!("{}-{}", mib, 2 * mib - 1), mib, 2 * mib),
        (format!("{}-{}", mib - 1, 3 * mib), mib - 1, 3 * mib + 1),
        (format!("{}-", size - 1), size - 1, size),
        ("-4322".to_owned(), size - 4322, size),
        (format!("{}-999999999999999999999", 2 * mib), 2 * mib, size),
        ("-999999999999".to_owned(), 0, size),
    ] {
        let part = on_line.get("large.bin", &format!("Range: bytes={range}\r\n"));
        assert_eq!(part.status, 206, "{range}");
        assert!(part.is_whole() && part.body == on_line.large[from..to], "{range}");
        assert_eq!(part.header("content-range"), format!("bytes {from}-{}/{size}", to - 1));
        for name in ["etag", "repr-digest", "content-type"] {
            assert_eq!(part.header(name), whole.header(name), "{range}");
        }
    }
    for beyond in [format!("{size}-"), "-0".to_owned(), "99999999999999999999999-".to_owned()] {
        let none = on_line.get("large.bin", &format!("Range: bytes={beyond}\r\n"));
        assert_eq!((none.status, none.body.len()), (416, 0), "{beyond}");
        assert_eq!(none.header("content-range"), format!("bytes */{size}"));
    }
    for nonsense in ["bytes=9-5", "bytes=a-b", "lines=1-2", "bytes"] {
        let all = on_line.get("large.bin", &format!("Range: {nonsense}\r\n"));
        assert!(all.status == 200 && all.body == on_line.large, "{nonsense} is as if it were not there");
    }
}

/// RFC 9110 §13.
#[test]
fn validators_decide_whether_a_file_is_sent() {
    let on_line = OnLine::new();
    let mut file = on_line.get("notes.txt", "");
    // In its first second a date is not a validator (§8.8.2.2), and is not sent.
    super::until("there is a date", || {
        file = on_line.get("notes.txt", "");
        !file.header("last-modified").is_empty()
    });
    let (tag, date) = (file.header("etag"), file.header("last-modified"));
    let past = "Thu, 01 Jan 2015 00:00:00 GMT";
    for (condition, status) in [
        (format!("If-None-Match: {tag}"), 304),
        (format!("If-None-Match: \"x\", W/{tag}"), 304),
        ("If-None-Match: *".to_owned(), 304),
        ("If-None-Match: \"x\"".to_owned(), 200),
        (format!("If-Match: {tag}"), 200),
        ("If-Match: \"x\"".to_owned(), 412),
        (format!("If-Modified-Since: {date}"), 304),
        (format!("If-Modified-Since: {past}"), 200),
        (format!("If-Unmodified-Since: {date}"), 200),
        (format!("If-Unmodified-Since: {past}"), 412),
        (format!("If-Range: {tag}\r\nRange: bytes=1-2"), 206),
        (format!("If-Range: {date}\r\nRange: bytes=1-2"), 206),
        ("If-Range: \"x\"\r\nRange: bytes=1-2".to_owned(), 200),
        (format!("If-Range: W/{tag}\r\nRange: bytes=1-2"), 200),
        (format!("If-Range: {past}\r\nRange: bytes=1-2"), 200),
    ] {
        let answer = on_line.get("notes.txt", &format!("{condition}\r\n"));
        assert_eq!(answer.status, status, "{condition}");
        let sent: &[u8] = match status {
            200 => b"<script>",
            206 => b"sc",
            _ => b"",
        };
        assert_eq!(answer.body, sent, "{condition}");
        assert_eq!(answer.header("etag"), tag, "{condition}");
    }
}

#[test]
fn looking_at_the_head_says_what_fetching_says() {
    let on_line = OnLine::new();
    let item = on_line.doc.strip_suffix("doc/").unwrap();
    for (path, headers) in [
        (format!("{item}doc/large.bin"), ""),
        (format!("{item}doc/nothing"), ""),
        (format!("{item}doc/missing"), ""),
        (item.to_owned(), ""),
        (item.to_owned(), "Accept: application/json\r\n"),
        (format!("{item}files"), ""),
        ("/".to_owned(), ""),
        ("/livez".to_owned(), ""),
        ("/api/v1/openapi.json".to_owned(), ""),
        ("/api/v1/nothing".to_owned(), ""),
    ] {
        let [get, head] = ["GET", "HEAD"].map(|method| ask(&on_line.server.at, method, &path, headers, b""));
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        assert_eq!(head.lasting_headers(), get.lasting_headers(), "{path}");
    }
}

/// Threat W5: no origin, no scripts, and never another type than declared.
#[test]
fn what_was_deposited_is_a_stranger_to_our_pages() {
    let on_line = OnLine::new();
    for (name, how) in [
        ("page.html", "inline"),
        ("drawing.svg", "inline"),
        ("strict.xhtml", "attachment"),
        ("notes.txt", "inline"),
        ("unknown.qqq", "attachment"),
        ("nothing", "attachment"),
    ] {
        for file in [on_line.get(name, ""), on_line.get(name, "Range: bytes=0-3\r\n")] {
            let policy: Vec<&str> = file.header("content-security-policy").split([' ', ';']).collect();
            assert!(policy.contains(&"sandbox"), "{name}: {policy:?}");
            for freedom in ["allow-scripts", "allow-same-origin", "allow-top-navigation", "allow-forms"] {
                assert!(!policy.contains(&freedom), "{name}: {policy:?}");
            }
            assert_eq!(file.header("x-content-type-options"), "nosniff", "{name}");
            assert_eq!(file.header("content-disposition").split(';').next(), Some(how), "{name}");
            assert_eq!(file.header("set-cookie"), "", "{name}");
        }
    }
    // Browsers show these in their own viewers, which a sandbox would block; they run nothing in
    // our name.
    let paper = on_line.get("paper.pdf", "");
    assert_eq!(
        (paper.header("content-security-policy"), paper.header("x-content-type-options")),
        ("", "nosniff")
    );
}

/// Threat W4: no scripts run on our pages, and nobody can frame them.
#[test]
fn our_pages_allow_nothing_but_their_style() {
    let on_line = OnLine::new();
    let item = on_line.doc.strip_suffix("doc/").unwrap();
    for path in
        ["/", item, &format!("{item}files"), &format!("{item}doc/missing"), "/%3Cscript%3E", "/nowhere"]
    {
        let page = on_line.server.get(path);
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8", "{path}");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none';"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        for freedom in ["script-src", "unsafe", "*", "http:", "https:", "data:", "sandbox"] {
            assert!(!policy.contains(freedom), "{path}: {policy}");
        }
        assert_eq!(page.header("x-content-type-options"), "nosniff", "{path}");
        assert!(page.header("access-control-allow-origin").is_empty(), "{path}");
        assert!(!page.text().contains("<script"), "{path}");
    }
}

/// Browsers request these with nearly every page.
#[test]
fn an_icon_and_what_robots_should_leave_alone() {
    let folder = Folder::new();
    let archive = folder.serve();
    let resolver = crate::resolver::Resolver::new();
    let resolving = resolver.serve();
    for server in [&archive, &resolving] {
        let icon = server.get("/favicon.ico");
        assert_eq!((icon.status, icon.header("content-type")), (200, "image/svg+xml"));
        assert!(icon.text().starts_with("<svg"));
        assert_eq!(server.get("/robots.txt").text(), "User-agent: *\nDisallow: /api/\n");
        assert!(server.get_with("/", "Accept: text/html\r\n").text().contains("href=\"/favicon.ico\""));
    }
    // The form of the resolver's page redirects to Archives on other hosts.
    let policy = resolving.get("/").header("content-security-policy").to_owned();
    assert!(policy.contains("form-action 'self' http: https:;"), "{policy}");
}
