//! How Archives are asked (clause 4.4): a bounded number of questions, whatever readers and
//! Archives do, and never a false 404.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use super::scripted::{KEY, Question, Scripted, item, tell};
use super::{Resolver, ask, figure, location, until};

/// As browsers ask: not for what is true at this very moment.
const AS_IT_IS: &str = "Cache-Control: max-age=60\r\n";
const ITEM: &str = "other.test/works/2009/02.16.17.46";
const SERVICES: [&str; 2] = ["one.test/archive/2001/01.01.01.01", "two.test/archive/2001/01.01.01.01"];

fn unknown(number: usize) -> String {
    format!("/nobody.test/n{number}/2001/02.03.04.05")
}

/// An Archive that confirms and has nothing; on demand it closes connections instead of answering.
struct Moody {
    at: String,
    asked: Arc<AtomicUsize>,
    fails: Arc<AtomicBool>,
}

impl Moody {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let (asked, fails) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, closes) = (Arc::clone(&asked), Arc::clone(&fails));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                let is_question = head.iter().any(|line| line.contains("servicesubject=urlRequest"));
                counted.fetch_add(usize::from(is_question), Ordering::SeqCst);
                if is_question && closes.load(Ordering::SeqCst) {
                    continue;
                }
                let body = if is_question { "" } else { "confirmation yes" };
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
                let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
            }
        });
        Self { at, asked, fails }
    }
}

/// 4.3: an Archive that fails is soon asked no more, counts as one that did not answer, and is
/// asked again when it answers.
#[test]
fn clause_4_3_an_archive_that_fails_is_asked_seldom_and_never_is_anything_404_meanwhile() {
    let resolver = Resolver::new();
    let token = resolver.token();
    let server = resolver.serve();
    let archive = Moody::new();
    resolver.json("register", &["--service", SERVICES[0], "--key", KEY]);
    let told = tell(&resolver, "inclusionRequest", &archive.at, SERVICES[0], KEY);
    assert!(told.text().contains("successful"), "{}", told.text());
    let status = |number: usize| ask(&resolver.at, "GET", &unknown(number), AS_IT_IS, b"").status;
    let breaker = |token: &str| {
        let listed = server.api(token, "GET", "/archives", b"").json();
        listed["archives"][0]["breaker"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!((status(0), breaker(&token).as_str(), breaker("").as_str()), (404, "closed", ""));
    archive.fails.store(true, Ordering::SeqCst);
    let before = archive.asked.load(Ordering::SeqCst);
    for number in 1..=200 {
        assert_eq!(status(number), 503, "{number}");
    }
    let asked = archive.asked.load(Ordering::SeqCst) - before;
    // Five that open it, then one each time it was open long enough: after 0.25 s at least, then
    // ever longer, and after a callback every five seconds.
    assert!((5..=60).contains(&asked), "{asked} questions of 200");
    assert_ne!(breaker(&token), "closed");
    let refused =
        format!("ibi_archive_questions_refused_total{{archive=\"{}\",reason=\"breaker\"}}", SERVICES[0]);
    until("what was not asked is counted", || {
        figure(&server, &refused).parse::<u64>().is_ok_and(|count| count >= 100)
    });
    archive.fails.store(false, Ordering::SeqCst);
    until("it is asked again", || status(1000) == 404);
    assert_eq!(breaker(&token), "closed");
}

/// R12: whoever asks the same at the same time gets the same answer, from one question.
#[test]
fn equal_questions_in_flight_are_asked_once() {
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archive = Scripted::new(SERVICES[0], |question: &Question, at: &str| {
        thread::sleep(Duration::from_millis(400));
        if question.value("parsedibiurl.ibi") == ITEM { item(ITEM, at, "/a.pdf") } else { String::new() }
    });
    archive.come(&resolver);
    let readers = 40;
    for (path, expected) in [(format!("/{ITEM}"), 302), (unknown(1), 404)] {
        let before = archive.asked("urlRequest").len();
        let start = Barrier::new(readers);
        thread::scope(|scope| {
            for _ in 0..readers {
                scope.spawn(|| {
                    start.wait();
                    assert_eq!(ask(&resolver.at, "GET", &path, AS_IT_IS, b"").status, expected);
                });
            }
        });
        let asked = archive.asked("urlRequest").len() - before;
        assert!((1..=4).contains(&asked), "{asked} questions of {readers} readers");
    }
    assert_ne!(figure(&server, "ibi_questions_joined_total"), "");
    // Nothing of it is kept: the next reader's question is a new one.
    let before = archive.asked("urlRequest").len();
    assert_eq!(ask(&resolver.at, "GET", &unknown(1), AS_IT_IS, b"").status, 404);
    assert_eq!(archive.asked("urlRequest").len(), before + 1);
}

/// A flood of unknown labels costs the Archives what the quota allows; beyond it 429, never 404.
#[test]
fn a_flood_of_unknown_labels_costs_the_archives_a_bounded_number_of_questions() {
    let resolver = Resolver::new();
    let _server = resolver.serve_with(&["--allow-private", "--quota", "unknown-address=30/3600"]);
    let archives = SERVICES.map(|service| Scripted::with(service, ITEM, "/a.pdf"));
    archives[1].come(&resolver);
    location(&ask(&resolver.at, "GET", &format!("/{ITEM}"), AS_IT_IS, b""));
    let before = archives[1].asked("urlRequest").len();
    let statuses: Vec<u16> =
        (0..200).map(|number| ask(&resolver.at, "GET", &unknown(number), AS_IT_IS, b"").status).collect();
    assert_eq!(statuses, [vec![404; 30], vec![429; 170]].concat());
    assert_eq!(archives[1].asked("urlRequest").len(), before + 30);
    let told = ask(&resolver.at, "GET", &unknown(1000), AS_IT_IS, b"");
    assert!(!told.header("retry-after").is_empty(), "{}", told.text());
    // What is there is still found.
    location(&ask(&resolver.at, "GET", &format!("/{ITEM}"), AS_IT_IS, b""));
}

/// 4.4: of an Archive without a feed, only that it holds the item is remembered: it is asked alone,
/// and gets its acknowledgment (3.5).
#[test]
fn clause_4_4_the_holder_is_asked_alone_and_all_are_asked_if_it_does_not_answer_well() {
    let resolver = Resolver::new();
    let _server = resolver.serve();
    let holds = Arc::new(AtomicUsize::new(0));
    let archives = [0, 1].map(|number| {
        let holds = Arc::clone(&holds);
        let archive = Scripted::new(SERVICES[number], move |question: &Question, at: &str| {
            let is_here = holds.load(Ordering::SeqCst) == number;
            let is_asked = question.value("parsedibiurl.ibi") == ITEM;
            if is_here && is_asked { item(ITEM, at, "/a.pdf") } else { String::new() }
        });
        archive.come(&resolver);
        archive
    });
    let get = || ask(&resolver.at, "GET", &format!("/{ITEM}"), AS_IT_IS, b"");
    let counts = || archives.each_ref().map(|archive| archive.asked("urlRequest").len());
    location(&get());
    until("both were asked", || counts() == [1, 1]);
    until("it is asked alone", || {
        let before = counts();
        assert!(location(&get()).contains(&archives[0].at));
        thread::sleep(Duration::from_millis(100));
        counts() == [before[0] + 1, before[1]]
    });
    let questions = counts()[0];
    until("each redirect was acknowledged", || archives[0].asked("acknowledgment").len() == questions);
    // It moves: at once, it is found where it is.
    holds.store(1, Ordering::SeqCst);
    assert!(location(&get()).contains(&archives[1].at));
    // A forced reload asks all.
    let before = counts();
    let reply = ask(&resolver.at, "GET", &format!("/{ITEM}"), "Cache-Control: no-cache\r\n", b"");
    assert!(location(&reply).contains(&archives[1].at));
    until("all were asked", || counts().iter().zip(before).all(|(now, before)| *now > before));
}
