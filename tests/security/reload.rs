//! SIGHUP reloads certificates and configuration without dropping a connection.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::bare::{BareServer, answer, connect_from};
use crate::online::{Folder, until};

fn write_certificate(place: &Path, name: &str) {
    let (certificate, key) = (place.join("cert.pem"), place.join("key.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", &format!("/CN={name}"), "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Whose certificate a client sees.
fn seen(at: &str) -> String {
    let seen =
        Command::new("openssl").args(["s_client", "-connect", at]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&seen.stdout).into_owned();
    let subject = text.lines().find_map(|line| line.strip_prefix("subject=")).unwrap_or_default();
    subject.trim().to_owned()
}

/// Seen before: SIGHUP ended the server. A certificate that cannot be used leaves the old one.
#[test]
fn a_new_certificate_is_read_and_a_bad_one_is_not() {
    let folder = Folder::new();
    let place = folder.place.path();
    write_certificate(place, "first");
    let log = fs::File::create(place.join("log")).unwrap();
    let tls = format!("--tls-cert {0}/cert.pem --tls-key {0}/key.pem", place.display());
    let server = BareServer::start("", "archive serve", &folder.data(), &tls, log.into());
    assert!(seen(&server.at).ends_with("first"), "{}", seen(&server.at));
    write_certificate(place, "second");
    server.signal("-HUP");
    until("the new certificate is seen", || seen(&server.at).ends_with("second"));
    fs::write(place.join("cert.pem"), "nonsense").unwrap();
    server.signal("-HUP");
    let logged = || fs::read_to_string(place.join("log")).unwrap().contains("cannot reload the certificate");
    until("it is logged", logged);
    assert!(seen(&server.at).ends_with("second"));
}

/// Seen before: with a pipe in the place of the certificate, SIGHUP was never carried out again.
#[test]
fn what_is_no_file_holds_up_no_reload() {
    let folder = Folder::new();
    let place = folder.place.path();
    write_certificate(place, "first");
    let log = fs::File::create(place.join("log")).unwrap();
    let tls = format!("--tls-cert {0}/cert.pem --tls-key {0}/key.pem", place.display());
    let server = BareServer::start("", "archive serve", &folder.data(), &tls, log.into());
    let refused =
        || fs::read_to_string(place.join("log")).unwrap().matches("cannot reload the certificate").count();
    let (certificate, pipe) = (place.join("cert.pem"), place.join("key.pem"));
    fs::remove_file(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    server.signal("-HUP");
    until("the pipe is refused", || refused() == 1);
    fs::remove_file(&certificate).unwrap();
    fs::create_dir(&certificate).unwrap();
    server.signal("-HUP");
    until("the folder is refused", || refused() == 2);
    assert!(seen(&server.at).ends_with("first"));
    fs::remove_dir(&certificate).unwrap();
    fs::remove_file(&pipe).unwrap();
    write_certificate(place, "second");
    server.signal("-HUP");
    until("the new certificate is seen", || seen(&server.at).ends_with("second"));
}

#[test]
fn quotas_and_settings_are_read_again_and_connections_stay() {
    let folder = Folder::new();
    let token = folder.token("minter");
    let quotas = folder.place.path().join("quotas");
    fs::write(&quotas, "# few\nmint-token = 1/600\n").unwrap();
    let log = fs::File::create(folder.place.path().join("log")).unwrap();
    let more = format!("--quota-file {}", quotas.display());
    let server = BareServer::start("", "archive serve", &folder.data(), &more, log.into());
    let mint = || server.post(&token, "/api/v1/labels", b"{}").status;
    assert_eq!([mint(), mint()], [201, 429]);
    let mut open = connect_from(2, &server.at, b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut first = [0; 15];
    open.read_exact(&mut first).unwrap();
    fs::write(&quotas, "mint-token=1000/600\n").unwrap();
    server.signal("-HUP");
    until("the new quota holds", || mint() == 201);
    fs::write(&quotas, "mint-token=many\n").unwrap();
    server.signal("-HUP");
    let logged = || fs::read_to_string(folder.place.path().join("log")).unwrap();
    until("it is logged", || logged().contains("cannot reload the quotas"));
    assert_eq!(mint(), 201);
    open.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(answer(&mut open).matches("alive").count(), 2, "the connection was kept");
}

#[test]
fn a_resolver_and_both_in_one_process_live_on() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("both");
    let server = BareServer::start("", "serve", &data, "", Stdio::null());
    server.signal("-HUP");
    assert_eq!(server.get("/livez").text(), "alive\n");
    let data = place.path().join("resolver").display().to_string();
    crate::binary::ibi(&["resolver", "init", "--data", &data, "--public-url", "http://urlib.test"]);
    let server = BareServer::start("", "resolver serve", data.as_ref(), "", Stdio::null());
    server.signal("-HUP");
    assert_eq!(server.get("/livez").text(), "alive\n");
}
