//! Shutdown: requests in progress finish, and no new ones start.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::client::{Reply, connect};
use super::{Folder, bytes, until};

#[test]
fn a_download_in_progress_ends_whole_and_new_connections_are_refused() {
    let folder = Folder::new();
    let large = bytes(48 << 20);
    let rep = folder.deposit(&[(b"large.bin", &large)], &[]);
    let mut server = folder.serve();
    let mut stream = connect(&server.at);
    let request = format!("GET /col/{rep}/doc/large.bin HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = vec![0; 1 << 16];
    stream.read_exact(&mut answer).unwrap();
    server.signal("-TERM");
    until("no new connections", || TcpStream::connect(&server.at).is_err());
    assert!(server.child.try_wait().unwrap().is_none(), "it waits for the download");
    stream.read_to_end(&mut answer).unwrap();
    let reply = Reply::read(&answer).unwrap();
    assert!(reply.status == 200 && reply.is_whole() && reply.body == large);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn an_upload_in_progress_is_taken_whole() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let mut server = folder.serve();
    let draft = server.api(&token, "POST", "/drafts", b"").json();
    let draft = format!("/drafts/{}", draft["id"].as_str().unwrap());
    let content = bytes(1 << 20);
    let mut stream = connect(&server.at);
    let head = format!(
        "PUT /api/v1{draft}/files/a.bin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    stream.write_all(&[head.as_bytes(), &content[..1000]].concat()).unwrap();
    // The request is in progress: its head was read.
    until("the draft gave it a number", || {
        let id = draft.rsplit('/').next().unwrap();
        folder.data().join("service/drafts").join(id).read_dir().unwrap().count() > 1
    });
    server.signal("-TERM");
    until("no new connections", || TcpStream::connect(&server.at).is_err());
    stream.write_all(&content[1000..]).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(Reply::read(&answer).unwrap().status, 200);
    assert_eq!(server.end(), Some(0));
    let server = folder.serve();
    assert_eq!(server.api(&token, "GET", &draft, b"").json()["files"][0]["size"], content.len());
}

/// Idle connections delay nothing, and counts are kept.
#[test]
fn idle_connections_are_let_go_and_counts_are_kept() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let server = folder.serve();
    let mut idle = connect(&server.at);
    idle.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    idle.read_exact(&mut [0; 15]).unwrap();
    let person = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0\r\n";
    assert_eq!(server.get_with(&format!("/col/{rep}/doc/a.txt"), person).status, 200);
    let (status, log) = server.stop();
    assert_eq!(status, Some(0), "{log}");
    assert!(idle.read_to_end(&mut Vec::new()).is_ok(), "closed, not forgotten");
    let counted = folder.archive("stats", &[&rep]).json().pop().unwrap();
    let day = &counted["days"][0];
    assert_eq!((&day["what"], &day["robots"], &day["times"]), (&"download".into(), &false.into(), &1.into()));
}
