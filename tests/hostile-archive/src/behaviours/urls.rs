//! False Originals at URLs that nobody may be sent to (4.2 step 2; R3, R5, R11).

use super::behaviour;
use crate::behaviour::{BehaviourEffect, BehaviourEffect::*, HostileAct::*, HostileBehaviour};
use crate::question::ArchiveQuestion;

const fn url(
    name: &'static str,
    effect: BehaviourEffect,
    does: &'static str,
    say: fn(&ArchiveQuestion<'_>) -> String,
) -> HostileBehaviour {
    behaviour(name, effect, "4.2 R3", does, Says(say))
}

fn at(asked: &ArchiveQuestion<'_>, url: &str) -> String {
    asked.claim("Original", url)
}

pub const URLS: &[HostileBehaviour] = &[
    url("url-other-host", Fails, "at a host that is nobody's", |asked| {
        at(asked, "http://elsewhere.test/lie")
    }),
    url("url-other-archive", Fails, "at the host of another Archive", |asked| {
        at(asked, &format!("http://{}/lie", asked.me.victim))
    }),
    url("url-resolver", Fails, "at the resolver itself: a redirect that comes back (R11)", |asked| {
        at(asked, &format!("http://{}/{}", asked.me.resolver, asked.label))
    }),
    url("url-user-info", Fails, "with user info before its own host", |asked| {
        at(asked, &format!("http://user:pass@{}/lie", asked.me.address))
    }),
    url("url-host-as-user", Fails, "with its own host as the user of another", |asked| {
        at(asked, &format!("http://{}@elsewhere.test/lie", asked.me.address))
    }),
    url("url-javascript", Fails, "a script", |asked| at(asked, "javascript:alert(document.domain)")),
    url("url-javascript-slashes", Fails, "a script that looks like a URL", |asked| {
        at(asked, &format!("javascript://{}/%0aalert(1)", asked.me.address))
    }),
    url("url-data", Fails, "a page in a URL", |asked| at(asked, "data:text/html,lie")),
    url("url-file", Fails, "a file of the reader", |asked| at(asked, "file:///etc/passwd")),
    url("url-ftp", Fails, "its own host by FTP", |asked| {
        at(asked, &format!("ftp://{}/lie", asked.me.address))
    }),
    url("url-no-scheme", Fails, "two slashes and a host", |asked| at(asked, "//elsewhere.test/lie")),
    url("url-relative", Fails, "a path", |asked| at(asked, "/lie")),
    url("url-one-slash", Fails, "one slash after the scheme", |asked| at(asked, "http:/elsewhere.test/lie")),
    url("url-backslash", Fails, "a backslash that browsers take for a slash", |asked| {
        at(asked, &format!("http://elsewhere.test\\@{}/lie", asked.me.address))
    }),
    url("url-hash-in-host", Fails, "another host, and its own after a #", |asked| {
        at(asked, &format!("http://elsewhere.test#@{}/lie", asked.me.address))
    }),
    url("url-line-end", Fails, "a raw CR LF and a header (R5)", |asked| {
        at(asked, &format!("{{{}\r\nX-Injected: y}}", asked.own_url()))
    }),
    url("url-lone-line-feed", Fails, "a raw LF, a header and a body (R5)", |asked| {
        at(asked, &format!("{{{}\nSet-Cookie: a=b\n\n<b>lie</b>}}", asked.own_url()))
    }),
    url(
        "url-encoded-line-end",
        Original,
        "%0d%0a and a header on its own host: it stays encoded (R5)",
        |asked| at(asked, &format!("{}%0d%0aX-Injected:%20y", asked.own_url())),
    ),
    url("url-unicode-line-end", Varies, "U+2028 and bytes of UTF-8 on its own host (R5, R9)", |asked| {
        at(asked, &format!("{}\u{2028}\u{85}x", asked.own_url()))
    }),
    url("url-markup", Fails, "quotes and angle brackets", |asked| {
        at(asked, &format!("{}\"><script>alert(1)</script>", asked.own_url()))
    }),
    url("url-trailing-dot", Fails, "its own host with a dot after it", |asked| {
        at(asked, &format!("http://{}./lie", asked.me.host()))
    }),
    url("url-longer-host", Fails, "its own host as the beginning of another", |asked| {
        at(asked, &format!("http://{}.elsewhere.test/lie", asked.me.host()))
    }),
    url("url-decimal-host", Fails, "an address as one number", |asked| at(asked, "http://2130706433/lie")),
    url("url-octal-host", Fails, "an address with zeros in front", |asked| {
        at(asked, "http://0177.0.0.01/lie")
    }),
    url("url-mapped-host", Fails, "its own address as one of IPv6", |asked| {
        at(asked, &format!("http://[::ffff:{}]/lie", asked.me.host()))
    }),
    url("url-zone-host", Fails, "an IPv6 address with a zone", |asked| {
        at(asked, "http://[fe80::1%25lo]/lie")
    }),
    url("url-open-bracket", Fails, "a bracket that is not closed", |asked| at(asked, "http://[::1/lie")),
    url("url-punycode", Fails, "a host in Punycode that looks like another", |asked| {
        at(asked, "http://xn--bcher-kva.test/lie")
    }),
    url("url-unicode-host", Fails, "a host in full-width digits", |asked| {
        at(asked, "http://１２７.0.0.1/lie")
    }),
    url("url-empty-host", Fails, "no host", |asked| at(asked, "http:///lie")),
    url("url-port-too-large", Fails, "a port that is none", |asked| {
        at(asked, &format!("http://{}:99999/lie", asked.me.host()))
    }),
    url("url-two-ports", Fails, "two ports", |asked| {
        at(asked, &format!("http://{}:80:80/lie", asked.me.host()))
    }),
    url("url-other-port", Original, "another port of its own host, which is allowed", |asked| {
        at(asked, &format!("http://{}:1/lie", asked.me.host()))
    }),
    url("url-too-long", Fails, "100,000 bytes on its own host", |asked| {
        at(asked, &format!("{}{}", asked.own_url(), "/a".repeat(50_000)))
    }),
    url("url-two-words", Fails, "two URLs in one value", |asked| {
        at(asked, &format!("{{{} http://elsewhere.test/lie}}", asked.own_url()))
    }),
    url("url-empty", Varies, "an empty one", |asked| at(asked, "{}")),
];
