//! Misbehaviour at inclusion, confirmation and acknowledgment (3.3, 3.5; K1 to K5, K8).

use std::io::Write as _;
use std::time::Duration;

use super::behaviour;
use super::bodies::drip;
use super::framing::{forever, wait};
use crate::behaviour::{BehaviourEffect::*, HostileAct::*, HostileBehaviour};
use crate::identity::HostileIdentity;
use crate::wire::{announce, announce_as, framed, good, send};

pub const INCLUSION: &[HostileBehaviour] = &[
    behaviour(
        "confirms-not",
        Fails,
        "3.3",
        "comes online and does not confirm it",
        Confirms(|_, to| to.write_all(&good("confirmation no\r\n"))),
    ),
    behaviour(
        "confirms-without-end",
        Fails,
        "3.3 R6",
        "a confirmation, and pairs without end after it",
        Confirms(|_, to| {
            to.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nconfirmation yes\r\n")?;
            forever(&b"a b\r\n".repeat(1000), to)
        }),
    ),
    behaviour(
        "confirms-slowly",
        Fails,
        "3.3 R7",
        "a confirmation, a byte every 50 ms",
        Confirms(|_, to| drip(&framed("200 OK", &"X: y\r\n".repeat(20), b"confirmation yes"), to)),
    ),
    behaviour(
        "confirms-elsewhere",
        Fails,
        "3.3 K5",
        "redirects the confirmation to an honest Archive, which would confirm",
        Confirms(|asked, to| {
            let victim = format!("http://{}/{}", asked.me.victim, asked.me.victim_service);
            let there = format!("Location: {victim}?servicesubject=inclusionConfirmationRequest\r\n");
            to.write_all(&framed("302 Found", &there, b"confirmation yes"))
        }),
    ),
    behaviour(
        "address-of-another",
        Fails,
        "3.3 K3 K5",
        "comes online at the address of an honest Archive",
        Announces(|me| at_address(me, &me.victim)),
    ),
    behaviour(
        "address-of-the-resolver",
        Fails,
        "3.3 K5",
        "comes online at the address of the resolver",
        Announces(|me| at_address(me, &me.resolver)),
    ),
    behaviour(
        "address-link-local",
        Fails,
        "3.3 K5",
        "comes online at the address of a cloud's metadata service",
        Announces(|me| at_address(me, "169.254.169.254")),
    ),
    behaviour(
        "address-that-is-none",
        Fails,
        "3.3 K5",
        "comes online at addresses with paths, user info, line ends and ports that are none",
        Announces(|me| {
            let mut said = String::new();
            for address in ["a/b", "user@host", "host%0d%0aX-Injected:y", "host:99999", "", "[::1", "0x7f.1"]
            {
                said.push_str(&at_address(me, address)?);
            }
            Ok(said)
        }),
    ),
    behaviour(
        "another-name",
        Fails,
        "3.3 K2 K3",
        "comes online and goes offline in the name of an honest Archive, with its own key",
        Announces(|me| {
            let mut said = announce_as(me, "exclusionRequest", &me.victim_service, &me.key, &me.victim)?;
            said.push_str(&announce_as(me, "inclusionRequest", &me.victim_service, &me.key, &me.address)?);
            Ok(said)
        }),
    ),
    behaviour(
        "markup-at-inclusion",
        Original,
        "3.3 W4",
        "comes online with line ends, markup and 4 KiB of text about itself, and claims Originals",
        Announces(|me| {
            let text = format!("%0d%0aX-Injected:y%3Cscript%3Ealert(1)%3C/script%3E{}", "a".repeat(4096));
            let said = send(
                me,
                &format!(
                    "servicesubject=inclusionRequest&archiveaddress={}&archiveserviceibi={}&archiveip={text}\
                     &archiveprotocol=HTTP&archiveplatformversion={text}&archiveadmemailaddress={text}\
                     &registrationkey={}",
                    me.address, me.service, me.key
                ),
            );
            // Whether that is taken is up to the resolver: what follows is not.
            let again = announce(me, "inclusionRequest")?;
            Ok(format!("{again} {}", said?.split(' ').next().unwrap_or_default()))
        }),
    ),
    behaviour(
        "flapping",
        Varies,
        "3.3 K4",
        "goes offline and online all the time, and claims Originals",
        Repeats(|me, number| {
            let subject = if number % 2 == 0 { "exclusionRequest" } else { "inclusionRequest" };
            let _ = announce(me, subject);
            std::thread::sleep(Duration::from_millis(30));
        }),
    ),
    behaviour(
        "inclusion-flood",
        Varies,
        "3.3 K2",
        "comes online without a pause, at its own address and at others, and claims Originals",
        Repeats(|me, number| {
            let _ = if number % 4 == 3 {
                at_address(me, "192.0.2.1:80")
            } else {
                announce(me, "inclusionRequest")
            };
        }),
    ),
    behaviour(
        "acknowledged-without-end",
        Original,
        "3.5 R6",
        "false Originals whose acknowledgment is answered without end",
        Acknowledges(|_, to| {
            to.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            forever(&b"notice {and more}\r\n".repeat(500), to)
        }),
    ),
    behaviour(
        "acknowledged-in-silence",
        Original,
        "3.5 R7",
        "false Originals whose acknowledgment is never answered",
        Acknowledges(|_, _| wait()),
    ),
];

/// Comes online at an address that is not its own.
fn at_address(me: &HostileIdentity, address: &str) -> std::io::Result<String> {
    announce_as(me, "inclusionRequest", &me.service, &me.key, address)
}
