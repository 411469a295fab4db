//! The tokens with which resolvers follow the honest Archives (4.4). An Archive gives its token to
//! the resolver that it is set to; here that is this program, which hands it on to the resolvers
//! that are judged.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long an Archive may take to come online.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(20);

pub struct FollowTokens {
    address: String,
    /// By the label of the service.
    known: Arc<Mutex<HashMap<String, String>>>,
}

impl FollowTokens {
    pub fn listen(address: &str) -> Result<Self, String> {
        let listener = TcpListener::bind(address).map_err(|why| format!("{address}: {why}"))?;
        let tokens = Self { address: address.to_owned(), known: Arc::default() };
        let known = Arc::clone(&tokens.known);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = include(stream, &known);
            }
        });
        Ok(tokens)
    }

    /// What honest Archives have as their resolver.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The token of an Archive, as soon as it has come online.
    pub fn of(&self, service: &str) -> Result<String, String> {
        for _ in 0..TOKEN_TIMEOUT.as_millis() / 50 {
            if let Some(token) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(service) {
                return Ok(token.clone());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("the honest Archive {service} gave no token for its feed"))
    }
}

/// Reads an inclusion request, and accepts it.
fn include(mut stream: TcpStream, known: &Mutex<HashMap<String, String>>) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let (mut head, mut piece) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        head.extend(&piece[..read]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let query =
        head.split(' ').nth(1).and_then(|target| target.split_once('?')).map_or("", |(_, query)| query);
    let service = query.split('&').find_map(|pair| pair.strip_prefix("archiveserviceibi="));
    let token = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("ibi-follow-token").then(|| value.trim().to_owned())
    });
    if let (Some(service), Some(token)) = (service, token) {
        let service = service.replace("%2F", "/").replace("%2f", "/");
        known.lock().unwrap_or_else(PoisonError::into_inner).insert(service, token);
    }
    let body = "status.archive included\r\nstatus.confirmation successful\r\n";
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
