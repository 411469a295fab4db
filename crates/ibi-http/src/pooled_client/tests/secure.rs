//! Over TLS.

use std::path::Path;
use std::process::Command;

use super::*;
use crate::ServerTls;

fn openssl(place: &Path, arguments: &str) {
    let made =
        Command::new("openssl").args(arguments.split_whitespace()).current_dir(place).output().unwrap();
    assert!(made.status.success(), "{arguments}: {}", String::from_utf8_lossy(&made.stderr));
}

/// An issuer, `ca.pem`, and a certificate of its, `cert.pem` with `key.pem`, for this name.
fn certificates(place: &Path, name: &str) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(place, &format!("req -x509 {key} -days 2 -subj /CN=issuer -keyout ca.key -out ca.pem"));
    openssl(place, &format!("req {key} -subj /CN=server -keyout key.pem -out request.pem"));
    std::fs::write(place.join("names"), format!("subjectAltName={name}\nbasicConstraints=CA:FALSE\n"))
        .unwrap();
    openssl(
        place,
        "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert.pem",
    );
}

/// Answers every connection over TLS, once; returns its port and how many came.
async fn serve(place: &Path) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tls = ServerTls::read(&place.join("cert.pem"), &place.join("key.pem")).unwrap();
    let came = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&came);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let acceptor = tls.acceptor();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut read = Vec::new();
                while stream.read_buf(&mut read).await.unwrap_or(0) > 0 {
                    if read.ends_with(b"\r\n\r\n") {
                        let host = String::from_utf8(std::mem::take(&mut read)).unwrap();
                        let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
                        stream.write_all(&answer(host)).await.unwrap();
                    }
                }
            });
        }
    });
    (port, came)
}

fn client(place: &Path, allow_private: bool) -> PooledClient {
    let tls = ClientTls::read(Some(&place.join("ca.pem"))).unwrap();
    PooledClient::new(allow_private).trusting(tls)
}

#[tokio::test]
async fn a_certificate_that_fits_and_connections_that_are_used_again() {
    let place = tempfile::tempdir().unwrap();
    certificates(place.path(), "DNS:localhost,IP:127.0.0.1");
    let (port, came) = serve(place.path()).await;
    let asker = client(place.path(), true);
    for host in ["localhost", "127.0.0.1"] {
        let address = format!("{host}:{port}");
        let target = asker.secure_target(&address).unwrap();
        assert_eq!(get(&asker, &target, "/").await.unwrap(), address, "also in the head");
        assert_eq!(get(&asker, &target, "/").await.unwrap(), address);
    }
    assert_eq!(came.load(Ordering::SeqCst), 2, "one connection to each");
}

/// Threat K5 holds over TLS: what the guard refuses is not even connected to.
#[tokio::test]
async fn the_guard_holds() {
    let place = tempfile::tempdir().unwrap();
    certificates(place.path(), "DNS:localhost");
    let (port, came) = serve(place.path()).await;
    let asker = client(place.path(), false);
    let target = asker.secure_target(&format!("localhost:{port}")).unwrap();
    let said = get(&asker, &target, "/").await;
    assert!(matches!(said, Err(PooledClientError::Refused { .. })), "{said:?}");
    assert_eq!(came.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_certificate_that_does_not_fit_is_told() {
    let place = tempfile::tempdir().unwrap();
    certificates(place.path(), "DNS:other.example");
    let (port, _) = serve(place.path()).await;
    let asker = client(place.path(), true);
    let said = get(&asker, &asker.secure_target(&format!("localhost:{port}")).unwrap(), "/").await;
    let names = vec!["other.example".to_owned()];
    assert_eq!(said, Err(PooledClientError::Certificate(CertificateProblem::WrongName { names })));
    let asker = PooledClient::new(true).trusting(ClientTls::read(None).unwrap());
    let said = get(&asker, &asker.secure_target(&format!("localhost:{port}")).unwrap(), "/").await;
    assert_eq!(said, Err(PooledClientError::Certificate(CertificateProblem::UnknownIssuer)));
    // An issuer that serves with its own certificate, as `openssl req -x509` makes it.
    for (from, to) in [("ca.pem", "cert.pem"), ("ca.key", "key.pem")] {
        std::fs::copy(place.path().join(from), place.path().join(to)).unwrap();
    }
    let (port, _) = serve(place.path()).await;
    let asker = client(place.path(), true);
    let said = get(&asker, &asker.secure_target(&format!("localhost:{port}")).unwrap(), "/").await;
    assert_eq!(said, Err(PooledClientError::Certificate(CertificateProblem::IssuerItself)));
}

/// Who does not speak TLS is not asked without it, and cannot make the handshake endless.
#[tokio::test]
async fn no_tls_is_no_answer() {
    let asker = PooledClient::new(true);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        while stream.read_buf(&mut Vec::new()).await.unwrap_or(0) > 0 {}
    });
    let said = get(&asker, &asker.secure_target(&at).unwrap(), "/").await;
    assert_eq!(said, Err(PooledClientError::Certificate(CertificateProblem::NoTls)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // Records of a handshake without an end: each is a message that goes on.
        let record = [&[22, 3, 3, 0x40, 0, 2, 0xff, 0xff, 0xff][..], &[0; 0x4000 - 4]].concat();
        while stream.write_all(&record).await.is_ok() {}
    });
    let said = get(&asker, &asker.secure_target(&at).unwrap(), "/").await;
    assert!(said.is_err(), "{said:?}");
}
