//! Feeds that fail as responses of HTTP (4.4, R6 to R8).

use std::io::{Read as _, Write as _};
use std::time::Duration;

use super::behaviour;
use super::compression::gzip_bomb;
use crate::behaviour::{BehaviourEffect::*, FeedAnswers, HostileAct::*, HostileBehaviour};
use crate::feed::{FeedRequest, json};
use crate::wire::framed;

/// Longer than a resolver waits for a page.
const LONGER_THAN_A_PAGE: Duration = Duration::from_secs(40);

pub const FEED_WIRE: &[HostileBehaviour] = &[
    behaviour(
        "feed-endless-body",
        Nothing,
        "4.4 R6",
        "a body in chunks that never ends",
        FeedDrives(FeedAnswers::Empty, |_, to| {
            to.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
            loop {
                to.write_all(&chunk)?;
            }
        }),
    ),
    behaviour(
        "feed-drips",
        Nothing,
        "4.4 R7",
        "a byte of the page every 100 ms",
        FeedDrives(FeedAnswers::Empty, |asked, to| {
            for byte in asked.page("1-1", "", &asked.claims(|record| record)) {
                to.write_all(&[byte])?;
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        }),
    ),
    behaviour(
        "feed-truncated",
        Nothing,
        "4.4 R16",
        "a whole page, of which the head says that it is longer",
        FeedDrives(FeedAnswers::Empty, |asked, to| {
            let page = asked.page("1-1", "", &asked.claims(|record| record));
            let page = String::from_utf8_lossy(&page).into_owned();
            to.write_all(page.replacen("Content-Length: ", "Content-Length: 1", 1).as_bytes())
        }),
    ),
    behaviour(
        "feed-gzip-bomb",
        Nothing,
        "4.4 R8",
        "32 MiB of zeros by gzip",
        Feeds(FeedAnswers::Empty, |_| framed("200 OK", "Content-Encoding: gzip\r\n", &gzip_bomb())),
    ),
    behaviour(
        "feed-redirects-to-another",
        Nothing,
        "4.4 R8",
        "redirects the feed to that of another Archive",
        Feeds(FeedAnswers::Empty, |asked| {
            let to = format!("Location: http://{}/api/v1/locations?after=0\r\n", asked.me.victim);
            framed("302 Found", &to, b"")
        }),
    ),
    behaviour(
        "feed-redirects-inside",
        Nothing,
        "4.4 R8 K5",
        "redirects the feed to an address of the resolver's own network",
        Feeds(FeedAnswers::Empty, |_| {
            framed("308 Permanent Redirect", "Location: http://169.254.169.254/latest/\r\n", b"")
        }),
    ),
    behaviour(
        "feed-401",
        Nothing,
        "4.4",
        "accepts its own token no more",
        Feeds(FeedAnswers::Empty, |_| framed("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", b"")),
    ),
    behaviour(
        "feed-403",
        Nothing,
        "4.4",
        "forbids it, with a page of claims as the body",
        Feeds(FeedAnswers::Empty, |asked| refused(asked, "403 Forbidden", "")),
    ),
    behaviour(
        "feed-410",
        Nothing,
        "4.4",
        "says that the feed is gone for good",
        Feeds(FeedAnswers::Empty, |asked| refused(asked, "410 Gone", "")),
    ),
    behaviour(
        "feed-429",
        Nothing,
        "4.4 R12",
        "wants to be asked later: by a negative time, at once, or in 3,000 years",
        Feeds(FeedAnswers::Empty, |asked| {
            let times = ["-1", "0", "99999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "soon"];
            let time = times[asked.number as usize % times.len()];
            refused(asked, "429 Too Many Requests", &format!("Retry-After: {time}\r\n"))
        }),
    ),
    behaviour(
        "feed-500",
        Nothing,
        "4.4",
        "fails, with a page of claims as the body",
        Feeds(FeedAnswers::Empty, |asked| refused(asked, "500 Oops", "Retry-After: 0\r\n")),
    ),
    behaviour(
        "feed-204",
        Nothing,
        "4.4",
        "has no content, with success",
        Feeds(FeedAnswers::Empty, |_| b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
    ),
    behaviour(
        "feed-206",
        Nothing,
        "4.4",
        "sends a part of a page for which nobody asked",
        Feeds(FeedAnswers::Empty, |asked| {
            refused(asked, "206 Partial Content", "Content-Range: bytes 0-9/10\r\n")
        }),
    ),
    behaviour(
        "feed-silent",
        Nothing,
        "4.4 R7",
        "never answers requests of its feed, and answers questions",
        FeedDrives(FeedAnswers::Empty, |_, _| silence()),
    ),
    behaviour(
        "feed-silent-after-a-page",
        Feed,
        "4.4 R7",
        "one page with claims, and no more",
        FeedDrives(FeedAnswers::Empty, |asked, to| match asked.number {
            0 => to.write_all(&asked.once(&asked.claims(|record| record))),
            _ => silence(),
        }),
    ),
    behaviour(
        "feed-silent-with-everything",
        Fails,
        "4.3 4.4 R7",
        "neither requests of its feed nor questions are answered: it may have anything",
        FeedDrives(FeedAnswers::None, |_, _| silence()),
    ),
    behaviour(
        "feed-fails-with-everything",
        Fails,
        "4.3 4.4",
        "its feed cannot be read, and questions are not answered",
        Feeds(FeedAnswers::None, |_| json("{")),
    ),
    behaviour(
        "feed-resets",
        Nothing,
        "4.4 R7",
        "resets the connection after half of a page",
        FeedDrives(FeedAnswers::Empty, |asked, to| {
            let page = asked.page("1-1", "", &asked.claims(|record| record));
            to.write_all(&page[..page.len() / 2])?;
            // A socket that is closed with something unread in it is reset: the next request.
            to.set_read_timeout(Some(Duration::from_millis(50)))?;
            let _ = to.peek(&mut [0]);
            Ok(())
        }),
    ),
    behaviour(
        "feed-closes",
        Nothing,
        "4.4 R7",
        "reads a request of its feed, and closes the connection",
        FeedDrives(FeedAnswers::Empty, |_, from| {
            from.set_read_timeout(Some(Duration::from_millis(1)))?;
            let _ = from.read(&mut [0]);
            Ok(())
        }),
    ),
    behaviour(
        "feed-endless-head",
        Nothing,
        "4.4 R8",
        "header lines without end",
        FeedDrives(FeedAnswers::Empty, |_, to| {
            to.write_all(b"HTTP/1.1 200 OK\r\n")?;
            loop {
                to.write_all(b"X-More: and more\r\n")?;
            }
        }),
    ),
];

/// A page of claims with another status.
fn refused(asked: &FeedRequest<'_>, status: &str, headers: &str) -> Vec<u8> {
    let page = asked.page("1-1", "", &asked.claims(|record| record));
    let page = String::from_utf8_lossy(&page).into_owned();
    let body = page.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    framed(status, headers, body.as_bytes())
}

fn silence() -> std::io::Result<()> {
    std::thread::sleep(LONGER_THAN_A_PAGE);
    Ok(())
}
