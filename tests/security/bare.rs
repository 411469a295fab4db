//! A server started by a shell, with limits and standard error set by the test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::binary::IBI;
use crate::online::client::{Reply, ask};

/// A server process, which is stopped when it is dropped.
pub(crate) struct BareServer {
    pub(crate) child: Child,
    /// Host and port.
    pub(crate) at: String,
    _said: BufReader<ChildStdout>,
}

impl BareServer {
    /// `PREPARE; exec ibi COMMAND --data DATA --listen 127.0.0.1:0 MORE`, with this as its standard
    /// error.
    pub(crate) fn start(prepare: &str, command: &str, data: &Path, more: &str, stderr: Stdio) -> Self {
        let script = format!("{prepare}\nexec \"$0\" {command} --data \"$1\" --listen 127.0.0.1:0 {more}");
        let mut child = Command::new("sh")
            .args(["-c", &script, IBI])
            .arg(data)
            .env("IBI_LOG", "trace")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let at = line.trim().rsplit("://").next().unwrap().trim_end_matches('/').to_owned();
        assert!(!at.is_empty(), "it did not start");
        Self { child, at, _said: said }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        ask(&self.at, "GET", path, "", b"")
    }

    pub(crate) fn post(&self, token: &str, path: &str, body: &[u8]) -> Reply {
        ask(&self.at, "POST", path, &format!("Authorization: Bearer {token}\r\n"), body)
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// A metric at `/metrics`, summed over its labels.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let of_name = |line: &&str| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ') || rest.starts_with('{'))
        };
        text.lines().filter(of_name).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        let id = self.child.id().to_string();
        for signal in ["-TERM", "-CONT"] {
            let _ = Command::new("kill").args([signal, &id]).status();
        }
        let _ = self.child.wait();
    }
}

/// Connects from 127.0.0.LAST, and sends this; `None` if it is refused.
pub(crate) fn connect_from(last: u8, to: &str, bytes: &[u8]) -> Option<TcpStream> {
    let to: SocketAddr = to.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
        socket.connect(to).await
    });
    let mut stream = stream.ok()?.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(bytes).ok()?;
    Some(stream)
}

/// The response on this connection, until the server closes it.
pub(crate) fn answer(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
