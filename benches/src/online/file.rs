//! A file of 1 GiB, every block checked: beside nginx with sendfile.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Instant;

use crate::archive::{Place, judge, large, median, settle};
use crate::online::{Server, processor, text};

const SIZE: u64 = 1 << 30;
const TURNS: usize = 5;

pub(super) fn compare(place: &Place) -> bool {
    place.init();
    let folder = place.path("www");
    fs::create_dir_all(&folder).expect("room for a folder");
    let file = folder.join("large.bin");
    large::make(&file, SIZE);
    let rep = place.deposited(&text(&file));
    let nginx = Nginx::start(place);
    let archive = Server::archive(place);
    settle();
    let path = format!("/col/{rep}/doc/large.bin");
    let (mut rates, mut costs, mut details) = (Vec::new(), Vec::new(), String::new());
    for turn in 0..=TURNS {
        let (before, theirs) = (nginx.processor(), fetch("127.0.0.1:8471", "/large.bin"));
        let their_cost = nginx.processor() - before;
        let (before, ours) = (archive.processor(), fetch(&archive.address, &path));
        let our_cost = archive.processor() - before;
        // The first turn is for the caches.
        if turn > 0 {
            rates.push(theirs / ours);
            costs.push(their_cost.max(0.01) / our_cost);
        }
        let rate = |seconds: f64| (SIZE >> 20) as f64 / seconds;
        details = format!(
            "{:.0} MiB/s and {our_cost:.2} s of processor time; nginx {:.0} MiB/s and {their_cost:.2} s",
            rate(ours),
            rate(theirs)
        );
    }
    judge("file", median(rates), 0.4, &details) & judge("file, processor", median(costs), 1.0 / 3.0, &details)
}

/// Seconds that it takes to fetch a file of the size.
pub(super) fn fetch(address: &str, path: &str) -> f64 {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).expect("a server");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .expect("a server that listens");
    let (mut buffer, mut all) = (vec![0; 1 << 18], 0);
    loop {
        match stream.read(&mut buffer).expect("an answer") {
            0 => break,
            read => all += read as u64,
        }
    }
    assert!((SIZE..SIZE + 10_000).contains(&all), "{address}{path} gave {all} bytes");
    begun.elapsed().as_secs_f64()
}

/// nginx with one worker, on the first core.
struct Nginx {
    folder: std::path::PathBuf,
    worker: u32,
}

impl Nginx {
    fn start(place: &Place) -> Self {
        let folder = place.path("nginx");
        fs::create_dir_all(&folder).expect("room for a folder");
        let www = text(&place.path("www"));
        let config = format!(
            "worker_processes 1; pid {0}/pid; error_log {0}/log; user root; events {{}} http {{ access_log off; sendfile on; \
             tcp_nopush on; client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c; uwsgi_temp_path {0}/d; \
             scgi_temp_path {0}/e; server {{ listen 127.0.0.1:8471; root {www}; }} }}",
            text(&folder)
        );
        fs::write(folder.join("conf"), config).expect("room for a file");
        let status = Command::new("taskset")
            .args(["-c", "0", "nginx", "-c", &text(&folder.join("conf"))])
            .status()
            .expect("nginx");
        assert!(status.success(), "nginx does not start");
        let master = fs::read_to_string(folder.join("pid")).expect("running").trim().to_owned();
        std::thread::sleep(std::time::Duration::from_millis(300));
        let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children")).expect("Linux");
        let worker = children.split_whitespace().next().expect("a worker").parse().expect("a number");
        Self { folder, worker }
    }

    fn processor(&self) -> f64 {
        processor(self.worker)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = fs::read_to_string(self.folder.join("pid")).unwrap_or_default();
        let _ = Command::new("kill").arg(pid.trim()).status();
    }
}
