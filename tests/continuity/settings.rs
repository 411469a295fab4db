//! Settings of the Archive and its minter, and the checks of hosts at `init`.

use serde_json::json;

use crate::binary::{IBI, ibi};
use crate::online::{Folder, until};

const SERVICE: &str = "sid.inpe.br/mtc-m21/2012/06.05.15.34.39";

fn settings(folder: &Folder, more: &[&str]) -> serde_json::Value {
    let run = folder.archive("settings", more);
    assert_eq!(run.status, 0, "{}", run.stderr);
    run.json().remove(0)
}

/// Clause 2: an Archive that continues another keeps the labels of its service, of any form, under
/// any prefix.
#[test]
fn an_archive_goes_on_under_its_own_service() {
    for labels in [
        &[SERVICE][..],
        &["8JMKD3MGP8W/34PGRBS"],
        &["83LX3pFwXQZeBBx/hwiTk"],
        &["8JMKD3MGP8W/34PGRBS", SERVICE, "83LX3pFwXQZeBBx/hwiTk"],
    ] {
        let options: Vec<&str> = labels.iter().flat_map(|label| ["--service", label]).collect();
        let folder =
            Folder::begun_with(&[&options[..], &["--service-metadata", "a.br/b/2001/01.01.00.00"]].concat());
        let set = settings(&folder, &[]);
        assert_eq!(
            (&set["registered_label"], &set["service"].as_array().unwrap().len()),
            (&json!(labels[0]), &labels.len())
        );
        assert_eq!(set["service_metadata"], json!(["a.br/b/2001/01.01.00.00"]));
        let server = folder.serve();
        for label in labels {
            let reply = server.get(&format!("/{label}?servicesubject=inclusionConfirmationRequest"));
            assert_eq!((reply.status, reply.text().as_str()), (200, "confirmation yes"), "{label}");
            let item = folder.archive("show", &[label]).json().remove(0);
            assert_eq!((&item["state"], &item["transferable"]), (&json!("Original"), &json!(false)));
        }
        drop(server);
        assert_eq!(folder.archive("rebuild", &[]).status, 0);
        assert_eq!(folder.archive("audit", &[]).status, 0);
    }
}

#[test]
fn labels_that_cannot_be_a_service_are_refused_before_anything_is_made() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data").display().to_string();
    let host = format!("r{}.settings.test", std::process::id());
    let init = |service: &[&str]| {
        let init = ["archive", "init", "--data", &data, "--host", &host, "--allow-private"];
        ibi(&[&init[..], service].concat())
    };
    assert_eq!(init(&["--service", "nonsense"]).status, 2);
    assert!(!place.path().join("data").exists());
    let twice = init(&["--service", SERVICE, "--service-metadata", &SERVICE.replace("m21/", "m21@80/")]);
    assert!(
        twice.status == 2 && twice.stderr.contains("is named twice"),
        "{} {}",
        twice.status,
        twice.stderr
    );
    assert!(!place.path().join("data").exists());
    let [machine, domain @ ..] = &host.split('.').collect::<Vec<_>>()[..] else { unreachable!() };
    let ahead = format!("{}/{machine}/2999/01.01.00.00", domain.join("."));
    let run = init(&["--service", &ahead]);
    assert!(run.status == 4 && run.stderr.contains("but was not minted"), "{}", run.stderr);
    // An earlier label under its own prefix, from before this minter, is valid.
    let earlier = format!("{}/{machine}/2001/01.01.00.00", domain.join("."));
    let run = init(&["--service", &earlier]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    for folder in ["/run/lock", "/var/tmp"] {
        let _ = std::fs::remove_file(format!("{folder}/ibi-settings.test+{machine}"));
    }
}

/// Clause 2: aliases of the service are the service; clause 3.4: answers use them.
#[test]
fn aliases_of_the_service_are_the_service_and_the_registered_label_is_told() {
    let folder = Folder::new();
    let alias = "8JMKD3MGP8W/34PGRBS";
    let run = folder.archive("settings", &["--registered-label", alias]);
    assert!(run.status != 0 && run.stderr.contains("not a label of the Archive service"), "{}", run.stderr);
    let server = folder.serve();
    let ask = |label: &str, query: &str| server.get(&format!("/{label}?{query}"));
    let confirm = "servicesubject=inclusionConfirmationRequest";
    assert_eq!(ask(alias, confirm).status, 404);
    assert_eq!(folder.archive("update", &[&folder.service, "--alias", alias]).status, 0);
    assert_eq!(ask(alias, confirm).text(), "confirmation yes");
    assert_eq!(ask("8jmkd3mgp8w/34pgrbs", confirm).text(), "confirmation yes");
    let request = |ibi: &str| {
        ask(
            alias,
            &format!(
                "servicesubject=urlRequest&clientinformation.ipaddress=192.0.2.1&parsedibiurl.ibi={ibi}"
            ),
        )
    };
    let item = folder.deposit(&[(b"a", b"x")], &[]);
    assert_eq!(request(&item).pair("ibi.archiveservice"), format!("rep {}", folder.service));
    assert_eq!(request(&item).pair("ibi.platformsoftware"), "");
    // A running server applies them at once (003 Algorithm 2, line 9).
    let software = "dpi.inpe.br/banon/1998/08.02.08.56";
    settings(&folder, &["--registered-label", alias, "--platform-software", software]);
    assert_eq!(request(&item).pair("ibi.archiveservice"), format!("rep {} ibip {alias}", folder.service));
    assert_eq!(request(&item).pair("ibi.platformsoftware"), format!("rep {software}"));
    assert_eq!(settings(&folder, &[])["platform_software"], software);
    settings(&folder, &["--platform-software", ""]);
    assert_eq!(request(&item).pair("ibi.platformsoftware"), "");
    assert_ne!(folder.archive("settings", &["--platform-software", "x"]).status, 0);
}

/// D37: the granularity is a setting of the minter, changed at any time; that of a call overrides
/// it.
#[test]
fn granularity_is_a_setting_of_the_minter() {
    let folder = Folder::new();
    let data = folder.data().display().to_string();
    let show = || ibi(&["minter", "show", "--data", &data, "--json"]).json().remove(0)["granularity"].clone();
    assert_eq!(show(), "0.000000001");
    let token = folder.token("depositor");
    let server = folder.serve();
    let set = |r: &str| {
        let run = ibi(&["minter", "set", "--data", &data, "--granularity", r]);
        assert_eq!(run.status, 0, "{}", run.stderr);
    };
    set("1");
    assert_eq!(show(), "1");
    let whole = |label: &str| label.rsplit('/').next().unwrap().split('.').count() <= 5;
    let minted = ibi(&["mint", "--data", &data, "-n", "1"]).stdout;
    assert!(minted.lines().count() == 1 && minted.lines().all(whole), "{minted}");
    let labels = server.api(&token, "POST", "/labels", b"{\"count\": 1}").json()["labels"].clone();
    assert!(labels.as_array().unwrap().iter().all(|label| whole(label["rep"].as_str().unwrap())), "{labels}");
    let item = folder.put(&[(b"a", b"x")], &[]);
    assert!(
        whole(item["rep"].as_str().unwrap()) && whole(item["metadata"]["rep"].as_str().unwrap()),
        "{item}"
    );
    let draft = server.api(&token, "POST", "/drafts", b"{}").json()["id"].as_str().unwrap().to_owned();
    let published = server.api(&token, "POST", &format!("/drafts/{draft}/publish"), b"").json();
    assert!(whole(published["rep"].as_str().unwrap()), "{published}");
    let fine = ibi(&["mint", "--data", &data, "-n", "5", "--granularity", "1e-9"]).stdout;
    assert!(!fine.lines().all(whole), "{fine}");
    let fine = server.api(&token, "POST", "/labels", b"{\"count\": 5, \"granularity\": \"0.001\"}").json();
    let fine: Vec<_> = fine["labels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|label| whole(label["rep"].as_str().unwrap()))
        .collect();
    assert!(fine.contains(&false), "{fine:?}");
    assert_eq!(server.api(&token, "POST", "/labels", b"{\"granularity\": \"0.5\"}").status, 422);
    assert_eq!(ibi(&["minter", "set", "--data", &data, "--granularity", "2"]).status, 2);
    // A backup includes it.
    let place = folder.place.path();
    let (backup, restored) =
        (place.join("backup").display().to_string(), place.join("restored").display().to_string());
    assert_eq!(ibi(&["backup", "--data", &data, "--out", &backup]).status, 0);
    assert_eq!(ibi(&["restore", "--from", &backup, "--data", &restored]).status, 0);
    let shown = ibi(&["minter", "show", "--data", &restored, "--json"]).json().remove(0);
    assert_eq!(shown["granularity"], "1");
}

/// D36: a foreign host name causes a warning, without waiting indefinitely; without a name, the
/// machine's is proposed.
#[test]
fn hosts_are_compared_with_dns_and_the_machine() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data").display().to_string();
    let name = format!("n{}.no-such-name-in-dns.org.br", std::process::id());
    // Only one folder of a machine mints under a prefix: no other run of the tests uses this one.
    let process = std::process::id();
    let ip = format!("8.{}.{}.8", 1 + process / 250 % 250, 1 + process % 250);
    // DNS lookups time out.
    let init = format!("timeout 20 {IBI} minter init --data '{data}' --host {name} --ip {ip}");
    let output = std::process::Command::new("sh").args(["-c", &init]).output().unwrap();
    let (status, said) = (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned());
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("warning: ") && said.contains(&name), "{said}");
    assert!(said.contains(&format!("no interface of this machine has {ip}")), "{said}");
    // A server repeats the warning when it starts.
    let data_of_archive = place.path().join("archive").display().to_string();
    let archive_name = format!("a{name}");
    let started = ibi(&["archive", "init", "--data", &data_of_archive, "--host", &archive_name]);
    assert!(started.status == 0 && started.stderr.contains("warning: "), "{}", started.stderr);
    let log = std::fs::File::create(place.path().join("log")).unwrap();
    let child = std::process::Command::new(IBI)
        .args(["archive", "serve", "--data", &data_of_archive, "--listen", "127.0.0.1:0"])
        .stdout(std::process::Stdio::null())
        .stderr(log)
        .spawn();
    let mut child = child.unwrap();
    until("it warns", || {
        let said = std::fs::read_to_string(place.path().join("log")).unwrap_or_default();
        said.contains("warning: ") && said.contains(&archive_name)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let machine = name.split('.').next().unwrap();
    let shown = ibi(&["minter", "show", "--data", &data, "--json"]).json().remove(0);
    for folder in ["/run/lock", "/var/tmp"] {
        for machine in [machine, &format!("a{machine}")] {
            let _ = std::fs::remove_file(format!("{folder}/ibi-no-such-name-in-dns.org.br+{machine}"));
        }
        let _ = std::fs::remove_file(format!("{folder}/ibi-{}", shown["ibip"].as_str().unwrap()));
    }
    for command in ["minter", "archive"] {
        let run = ibi(&[command, "init", "--data", &data]);
        assert_eq!(run.status, 2);
        assert!(run.stderr.contains("--host NAME"), "{}", run.stderr);
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_lowercase();
        assert!(run.stderr.contains(&format!("This machine is called {own}")), "{}", run.stderr);
    }
}
