//! Copies between two Archives: a file of 1 GiB beside the rate at which it is served, to a client
//! that keeps it as durably; a thousand small items beside depositing the same items.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::archive::{Place, judge, large, median, settle, table};
use crate::online::file::fetch;
use crate::online::{Server, text};

const SIZE: u64 = 1 << 30;
const TURNS: usize = 3;
const ITEMS: usize = 1000;

pub(super) fn compare(place: &Place) -> bool {
    large(place) & small(place)
}

fn large(place: &Place) -> bool {
    place.init();
    let file = place.path("large.bin");
    large::make(&file, SIZE);
    let rep = place.deposited(&text(&file));
    fs::remove_file(&file).expect("just made");
    let archive = Server::archive(place);
    let path = format!("/col/{rep}/doc/large.bin");
    let (mut kept, mut bare, mut details) = (Vec::new(), Vec::new(), String::new());
    for turn in 0..=TURNS {
        let served = fetch(&archive.address, &path);
        settle();
        let downloaded = keep(&archive.address, &path, &file);
        let other = Other::new(place, turn);
        settle();
        let copied = other.copy(&archive.address, &[&rep]);
        // The first turn is for the caches.
        if turn > 0 {
            kept.push(downloaded / copied);
            bare.push(served / copied);
        }
        let rate = |seconds: f64| (SIZE >> 20) as f64 / seconds;
        details = format!(
            "{:.0} MiB/s; served to who keeps it {:.0}, to who throws it away {:.0} MiB/s, that is {:.2} times",
            rate(copied),
            rate(downloaded),
            rate(served),
            served / copied
        );
    }
    judge("copy", median(kept), 0.6, &details)
}

fn small(place: &Place) -> bool {
    let table = table::make(place, ITEMS);
    let (mut ratios, mut others, mut details) = (Vec::new(), Vec::new(), String::new());
    for turn in 1..=TURNS {
        // Nothing is deleted between turns: ext4 looks for long at what was deleted before it makes
        // a file.
        let _ = fs::rename(place.path("data"), place.path(&format!("before-{turn}")));
        place.init();
        settle();
        let deposited = place.archive(&["deposit", "--table", &text(&table)]).as_secs_f64();
        let archive = Server::archive(place);
        let other = Other::new(place, TURNS + turn);
        settle();
        let copied = other.copy(&archive.address, &["--prefix", "bench.test/"]);
        others.push(other);
        ratios.push(deposited / copied);
        let rate = |seconds: f64| ITEMS as f64 / seconds;
        details = format!("1,000 items: {:.0} a second, deposited {:.0}", rate(copied), rate(deposited));
    }
    judge("copies", median(ratios), 0.5, &details)
}

/// Seconds that it takes to fetch a file and have it on the disk.
fn keep(address: &str, path: &str, to: &std::path::Path) -> f64 {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).expect("a server");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .expect("a server that listens");
    let mut file = File::create(to).expect("room for a file");
    let mut buffer = vec![0; 1 << 18];
    loop {
        match stream.read(&mut buffer).expect("an answer") {
            0 => break,
            read => file.write_all(&buffer[..read]).expect("room for a file"),
        }
    }
    file.sync_all().expect("a disk");
    let seconds = begun.elapsed().as_secs_f64();
    fs::remove_file(to).expect("just made");
    seconds
}

/// Another Archive, of one turn. It may use all cores, as one on another machine would.
struct Other<'a> {
    place: &'a Place,
    number: usize,
}

impl<'a> Other<'a> {
    fn new(place: &'a Place, number: usize) -> Self {
        let other = Self { place, number };
        let host = format!("o{}x{number}.bench.test", std::process::id());
        other.archive(&["init", "--host", &host, "--allow-private"]);
        other
    }

    fn archive(&self, arguments: &[&str]) -> f64 {
        let begun = Instant::now();
        let status = Command::new("taskset")
            .args(["-c", "0,1", &self.place.ibi, "archive"])
            .args(arguments)
            .arg("--data")
            .arg(self.data())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("the built binary");
        assert!(status.success(), "ibi archive {arguments:?}: {status}");
        begun.elapsed().as_secs_f64()
    }

    fn copy(&self, from: &str, what: &[&str]) -> f64 {
        let from = format!("http://{from}");
        self.archive(&[&["copy", "--from", &from], what].concat())
    }

    fn data(&self) -> std::path::PathBuf {
        self.place.path(&format!("other-{}", self.number))
    }
}

impl Drop for Other<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.data());
        for folder in ["/run/lock", "/var/tmp"] {
            let _ =
                fs::remove_file(format!("{folder}/ibi-bench.test+o{}x{}", std::process::id(), self.number));
        }
    }
}
