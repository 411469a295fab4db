//! Claims of the founding documents that no other test shows.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::binary::{IBI, ibi};
use crate::online::Folder;

/// 003 §2: there is one Archive service, and it cannot be moved or removed.
#[test]
fn the_archive_service_is_neither_removed_nor_handed_over() {
    let [folder, taker] = [Folder::new(), Folder::new()];
    let server = taker.serve();
    let token = folder.place.path().join("token");
    fs::write(&token, taker.token("holder")).unwrap();
    let [to, token] = [format!("http://{}", server.at), token.display().to_string()];
    for (command, arguments) in [
        ("remove", vec![&*folder.service, "--reason", "a test", "--yes"]),
        ("transfer", vec![&*folder.service, "--to", &to, "--token-file", &token]),
    ] {
        let run = folder.archive(command, &arguments);
        assert_eq!((run.status != 0, run.stdout.as_str()), (true, ""), "{command}: {}", run.stderr);
    }
    let shown = folder.archive("show", &[&folder.service]).json().remove(0);
    assert_eq!(shown["state"], "Original");
    assert_eq!(folder.archive("list", &[]).json().len(), 1, "an Archive has one");
}

/// 003 §3.2: in one Archive an IBI is one item, an Original or a Copy.
#[test]
fn one_label_is_one_item_in_an_archive() {
    let [folder, other] = [Folder::new(), Folder::new()];
    let label = "sid.inpe.br/mtc-m18/2009/02.16.17.46";
    folder.put(&[(b"a.txt", b"one")], &["--label", label, "--original"]);
    let from = folder.folder(&[(b"b.txt", b"two")]).display().to_string();
    for spelling in [label, "SID.INPE.br/mtc-m18/2009/02.16.17.46"] {
        for original in [&["--original"][..], &[]] {
            let run = folder.archive("deposit", &[&[&*from, "--label", spelling], original].concat());
            assert_eq!(run.status, 4, "{spelling}: {}", run.stderr);
        }
    }
    other.put(&[(b"a.txt", b"one")], &["--label", label]);
    let server = other.serve();
    let run = folder.archive("copy", &[label, "--from", &format!("http://{}", server.at)]);
    assert!(run.stdout.contains("original"), "{} {}", run.stdout, run.stderr);
    let shown = folder.archive("show", &[label]).json().remove(0);
    assert_eq!(shown["state"], "Original", "it is the original, and not a copy as well");
}

/// 000 §3, 004 §6: a subsystem is a host and a port; several share one machine.
#[test]
fn two_minters_share_a_host_by_port() {
    let host = format!("p{}.standard.test", std::process::id());
    let machine = host.split_once('.').unwrap().0;
    let mut all = Vec::new();
    for port in ["8081", "8082"] {
        let place = TempDir::new().unwrap();
        let data = place.path().display().to_string();
        let run =
            ibi(&["minter", "init", "--data", &data, "--host", &host, "--port", port, "--allow-private"]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let labels = ibi(&["mint", "--data", &data, "-n", "5"]).stdout;
        assert!(
            labels.lines().all(|label| label.starts_with(&format!("standard.test/{machine}.{port}/"))),
            "{labels}"
        );
        all.extend(labels.lines().map(str::to_owned));
        for folder in ["/run/lock", "/var/tmp"] {
            let _ = fs::remove_file(format!("{folder}/ibi-standard.test+{machine}.{port}"));
        }
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 10);
}

/// 000 §4: dates are UTC in any time zone.
#[test]
fn dates_are_utc_in_any_time_zone() {
    for (zone, at) in [
        ("UTC", "2009-02-16T17:46:00Z"),
        ("America/Sao_Paulo", "2009-02-16T17:46:00Z"),
        ("America/Sao_Paulo", "2009-02-16T14:46:00-03:00"),
    ] {
        let arguments = ["id", "encode", "--host", "mtc-m18.sid.inpe.br", "--at", at];
        let output = Command::new(IBI).args(arguments).env("TZ", zone).output().unwrap();
        assert_eq!(output.stdout, b"sid.inpe.br/mtc-m18/2009/02.16.17.46\n", "{zone} {at}");
    }
}

/// 004 §7: labels of an IPv6 address are minted, and decode to it.
#[test]
fn labels_of_an_ipv6_address_are_minted() {
    let place = TempDir::new().unwrap();
    let data = place.path().display().to_string();
    let host = format!("s{}.standard.test", std::process::id());
    let ip = format!("2001:db8::{:x}", std::process::id() % 0xffff + 1);
    let run = ibi(&["minter", "init", "--data", &data, "--host", &host, "--ip", &ip, "--allow-private"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let minted = ibi(&["mint", "--data", &data, "--json"]).json().remove(0);
    let label = minted["ibip"].as_str().unwrap();
    let parsed = ibi(&["id", "parse", "--json", label]).json().remove(0);
    assert_eq!((&parsed["ip"], &parsed["port"]), (&ip.into(), &800.into()), "{label}");
    assert!(label.split_once('/').unwrap().0.ends_with('X'), "{label}");
    let prefix = label.split_once('/').unwrap().0;
    let machine = host.split_once('.').unwrap().0;
    for folder in ["/run/lock", "/var/tmp"] {
        let _ = fs::remove_file(format!("{folder}/ibi-{prefix}"));
        let _ = fs::remove_file(format!("{folder}/ibi-standard.test+{machine}"));
    }
}
