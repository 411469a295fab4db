//! Where an Archive is asked what an item is, and where its bytes lie.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The files of an object, and all their bytes.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// What an Archive answers for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It does not answer.
    Down,
    /// It has nothing of it.
    Nothing,
    Copy,
    Original,
    Deleted,
}

impl Answer {
    /// What an item's description says first.
    pub fn told(description: &str) -> Self {
        match description.split("\"state\":\"").nth(1).and_then(|rest| rest.split('"').next()) {
            Some("Original") => Self::Original,
            Some("Copy") => Self::Copy,
            Some("Deleted") => Self::Deleted,
            _ => Self::Nothing,
        }
    }
}

/// Where an Archive is asked, from any thread.
#[derive(Debug, Clone)]
pub struct Address {
    pub data: PathBuf,
    pub port: u16,
    pub path: String,
}

impl Address {
    /// Asks over HTTP, at the address that counts for nothing (`killat.c`).
    pub fn ask(&self) -> Answer {
        match self.get(&format!("/api/v1/items/{}", self.path)) {
            Ok(body) if body.starts_with("HTTP/1.1 200") && body.trim_end().ends_with('}') => {
                Answer::told(&body)
            }
            Ok(body) if body.starts_with("HTTP/1.1 404") || body.starts_with("HTTP/1.1 410") => {
                Answer::Nothing
            }
            _ => Answer::Down,
        }
    }

    /// Asks as a resolver does (clause 3.4), at the same address: the pairs; nothing if there was
    /// no whole answer.
    pub fn ask_for(&self, label: &str, verbs: &str) -> Option<String> {
        let settings = fs::read_to_string(self.data.join("archive")).ok()?;
        let service = settings.lines().find_map(|line| line.strip_prefix("service-rep "))?;
        let answer = self.get(&format!(
            "/{service}?servicesubject=urlRequest&clientinformation.ipaddress=127.0.0.1&parsedibiurl.ibi={label}\
             &parsedibiurl.verblist={verbs}"
        ));
        let answer = answer.ok().filter(|answer| answer.starts_with("HTTP/1.1 200"))?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        (length == Some(body.len())).then(|| body.to_owned())
    }

    fn get(&self, target: &str) -> std::io::Result<String> {
        let patience = Duration::from_secs(5);
        let address = SocketAddr::from(([127, 0, 0, 2], self.port));
        let mut stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        let head = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", self.port);
        stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    pub fn journal(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.data.join("journal")).unwrap_or_default()).into_owned()
    }

    /// Whether the journal tells that this happened to the item.
    pub fn has(&self, verb: &str) -> bool {
        let (verb, path) = (format!(" {verb} batch="), format!(" path={} ", self.path));
        self.journal().lines().any(|line| line.contains(&verb) && line.contains(&path))
    }

    pub fn object(&self) -> PathBuf {
        self.data.join("tree").join(&self.path)
    }
}

/// All files below a folder; those that go away meanwhile are left out.
pub fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let (Ok(bytes), Ok(name)) = (fs::read(&path), path.strip_prefix(folder)) {
                found.insert(name.to_owned(), bytes);
            }
        }
    }
    found
}
