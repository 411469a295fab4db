//! urlRequest for random items out of a million: beside bare hyper with one prepared select; and
//! while others deposit.

use std::time::Duration;

use crate::archive::{Place, judge, lookup, median, settle};
use crate::online::{Server, load, pin, text};

const CONNECTIONS: usize = 16;
const TURNS: usize = 5;
const LONG: Duration = Duration::from_secs(3);

pub(super) fn compare(place: &Place) -> bool {
    let service = place.init_told();
    lookup::fill_archive(place);
    settle();
    let archive = Server::archive(place);
    let ask = move |number: u64| {
        format!(
            "GET /{service}?servicesubject=urlRequest&clientinformation.ipaddress=198.51.100.7&parsedibiurl.ibi={} HTTP/1.1\r\nHost: x\r\n\r\n",
            lookup::rep(number)
        )
    };
    let ask = random(ask);
    // What the bare one must answer with is as long as ours.
    let body = load::run(&archive.address, 1, Duration::from_millis(300), ask.clone()).body;
    drop(lookup::bare(place, body));
    let ours = std::env::current_exe().expect("this program");
    let database = text(&place.path("bare.sqlite"));
    let bare = Server::start(&[&text(&ours), "bare", &database]);
    let select = random(|number| format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", lookup::rep(number)));
    let (mut ratios, mut details, mut alone) = (Vec::new(), String::new(), Vec::new());
    for turn in 0..=TURNS {
        let theirs = load::run(&bare.address, CONNECTIONS, LONG, select.clone());
        let ours = load::run(&archive.address, CONNECTIONS, LONG, ask.clone());
        // The first turn is for the caches.
        if turn > 0 {
            ratios.push(ours.a_second / theirs.a_second);
            alone.push(ours.p99.as_secs_f64());
        }
        details = format!(
            "{:.0} a second, p99 {:.2} ms; bare hyper with a select {:.0}",
            ours.a_second,
            ours.p99.as_secs_f64() * 1e3,
            theirs.a_second
        );
    }
    let fast = judge("urlRequest", median(ratios), 0.5, &details);
    drop(bare);
    fast & beside_deposits(place, &archive, ask, median(alone))
}

/// The p99 of answers while four deposits stream in.
fn beside_deposits(
    place: &Place,
    archive: &Server,
    ask: impl FnMut() -> String + Clone + 'static,
    alone: f64,
) -> bool {
    let token = place.token();
    let large = place.path("streamed");
    std::fs::write(&large, vec![7; 256 << 20]).expect("room for a file");
    let script = format!(
        "while :; do id=$(curl -s -XPOST http://{0}/api/v1/drafts -H 'Authorization: Bearer {token}' -d '{{}}' | \
         sed 's/.*\"id\":\"\\([0-9a-f]*\\)\".*/\\1/'); curl -s -T {1} --limit-rate 40M http://{0}/api/v1/drafts/$id/files/f \
         -H 'Authorization: Bearer {token}' > /dev/null; curl -s -XDELETE http://{0}/api/v1/drafts/$id \
         -H 'Authorization: Bearer {token}'; done",
        archive.address,
        text(&large)
    );
    let mut streams: Vec<_> = (0..4)
        .map(|_| {
            use std::os::unix::process::CommandExt as _;
            std::process::Command::new("nice")
                .args(["-n", "19", "bash", "-c", &script])
                .process_group(0)
                .spawn()
                .expect("bash")
        })
        .collect();
    streams.iter().for_each(|stream| pin(stream.id(), 1));
    std::thread::sleep(Duration::from_secs(1));
    let beside: Vec<f64> = (0..3)
        .map(|_| load::run(&archive.address, CONNECTIONS, LONG, ask.clone()).p99.as_secs_f64())
        .collect();
    for stream in &mut streams {
        let group = format!("-{}", stream.id());
        let _ = std::process::Command::new("kill").args(["-9", "--", &group]).status();
        let _ = stream.wait();
    }
    let beside = median(beside);
    let details = format!("p99 {:.2} ms alone, {:.2} ms beside four deposits", alone * 1e3, beside * 1e3);
    judge("while depositing", alone / beside, 1.0 / 3.0, &details)
}

/// Requests for items by chance.
fn random(request: impl Fn(u64) -> String + Clone + 'static) -> impl FnMut() -> String + Clone + 'static {
    let mut chance = 1_u64;
    move || {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        request((chance >> 33) % lookup::ITEMS)
    }
}
