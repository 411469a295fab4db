//! Minting through the built binary, with concurrent callers. Fault injection is in
//! `tests/torture`.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use ibi_id::Label;
use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{IBI, Run, ibi};

/// A data folder and a host name that no other test, and no other run, uses.
struct Place {
    folder: TempDir,
    host: String,
}

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { folder: TempDir::new().unwrap(), host: format!("t{}x{number}.mint.test", std::process::id()) }
    }

    fn started(arguments: &[&str]) -> Self {
        let place = Self::new();
        let run = place.init(arguments);
        assert_eq!(run.status, 0, "{}", run.stderr);
        place
    }

    fn path(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    fn init(&self, arguments: &[&str]) -> Run {
        let init = ["minter", "init", "--data", self.path(), "--host", &self.host, "--allow-private"];
        ibi(&[&init[..], arguments].concat())
    }

    fn ibi(&self, arguments: &[&str]) -> Run {
        ibi(&[arguments, &["--data", self.path()]].concat())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let word = self.host.split('.').next().unwrap().to_owned();
        for folder in ["/run/lock", "/var/tmp"] {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().contains(&word) {
                    let _ = std::fs::remove_file(entry.path());
                }
            }
        }
    }
}

#[test]
fn labels_are_canonical_and_all_different() {
    let place = Place::started(&[]);
    let mut seen = HashSet::new();
    for number in ["1", "5", "2000"] {
        let run = place.ibi(&["mint", "-n", number]);
        assert_eq!(
            (run.status, run.stdout.lines().count().to_string().as_str()),
            (0, number),
            "{}",
            run.stderr
        );
        for line in run.stdout.lines() {
            let label = Label::parse(line).unwrap();
            assert_eq!(label.to_string(), line);
            assert_eq!(label.host().unwrap().to_string(), place.host);
            assert!(seen.insert(line.to_owned()));
        }
    }
}

#[test]
fn one_instant_gives_one_label_of_each_form() {
    let place = Place::new();
    let ip = ["--ip", "192.0.2.77", "--ip-port", &(20_000 + std::process::id() % 40_000).to_string()]
        .map(str::to_owned);
    let run = place.init(&ip.each_ref().map(String::as_str));
    assert_eq!(run.status, 0, "{}", run.stderr);
    for line in place.ibi(&["mint", "-n", "20"]).stdout.lines() {
        let (rep, ibip) = line.split_once('\t').unwrap();
        let (rep, ibip) = (Label::parse(rep).unwrap(), Label::parse(ibip).unwrap());
        assert_eq!((rep.instant(), ibip.ip().unwrap().to_string()), (ibip.instant(), "192.0.2.77".into()));
    }
    for label in place.ibi(&["mint", "-n", "20", "--json"]).json() {
        let instant = |name: &str| Label::parse(label[name].as_str().unwrap()).unwrap().instant().to_string();
        assert_eq!(Value::String(instant("rep")), label["instant"]);
        assert_eq!(Value::String(instant("ibip")), label["instant"]);
    }
    // The claims of the address must not outlive the test either.
    let shown = &place.ibi(&["minter", "show", "--json"]).json()[0];
    for folder in ["/run/lock", "/var/tmp"] {
        let _ = std::fs::remove_file(format!("{folder}/ibi-{}", shown["ibip"].as_str().unwrap()));
    }
}

#[test]
fn a_second_process_is_told_who_holds_the_prefix() {
    let place = Place::started(&[]);
    // Three labels on whole seconds hold the prefix for two seconds.
    let mut first = Command::new(IBI)
        .args(["mint", "-n", "3", "--granularity", "1", "--data", place.path()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It says that it waits when it holds the prefix.
    let mut talk = std::io::BufReader::new(first.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut talk, &mut String::new()).unwrap();
    let second = place.ibi(&["mint"]);
    assert_eq!((second.status, second.stdout.as_str()), (4, ""));
    assert!(second.stderr.contains(&format!("held by process {}", first.id())), "{}", second.stderr);
    // A minter in another folder is refused, too.
    let other = TempDir::new().unwrap();
    let folder = other.path().to_str().unwrap();
    let init_other = || ibi(&["minter", "init", "--data", folder, "--host", &place.host, "--allow-private"]);
    let init = init_other();
    assert_eq!(init.status, 4);
    assert!(init.stderr.contains(&format!("held by process {}", first.id())), "{}", init.stderr);
    // The lock is released when its holder dies.
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(place.ibi(&["mint", "--granularity", "1e-9"]).status, 0);
    let init = init_other();
    assert!(init.status == 4 && init.stderr.contains("is minted from the folder"), "{}", init.stderr);
}

#[test]
fn a_prefix_is_started_once_by_name_and_must_be_unique() {
    let place = Place::new();
    let nothing = place.ibi(&["mint"]);
    assert!(nothing.status == 4 && nothing.stderr.contains("ibi minter init"), "{}", nothing.stderr);
    let private = ibi(&["minter", "init", "--data", place.path(), "--host", &place.host]);
    assert!(private.status == 4 && private.stderr.contains("--allow-private"), "{}", private.stderr);
    let loopback = ibi(&["minter", "init", "--data", place.path(), "--ip", "127.0.0.1"]);
    assert!(loopback.status == 4 && loopback.stderr.contains("loopback"), "{}", loopback.stderr);
    assert_eq!(ibi(&["minter", "init", "--data", place.path()]).status, 2, "a prefix must be named");
    assert_eq!(place.init(&[]).status, 0);
    assert!(place.init(&[]).stderr.contains("already"));
}

#[test]
fn a_refusal_names_the_wait_and_consumes_nothing() {
    let place = Place::started(&[]);
    let before = place.ibi(&["minter", "show", "--json"]).stdout;
    let refused = place.ibi(&["mint", "-n", "100", "--granularity", "1", "--max-wait", "2s"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (4, ""));
    assert!(refused.stderr.contains("would need a wait of 9"), "{}", refused.stderr);
    assert_eq!(place.ibi(&["minter", "show", "--json"]).stdout, before);
    let long = place.ibi(&["mint", "--max-wait", "6m"]);
    assert!(long.status == 4 && long.stderr.contains("too long"), "{}", long.stderr);
    for bad in ["soon", "5h", "-1s", "1.2.3s", "", "s"] {
        assert_eq!(place.ibi(&["mint", "--max-wait", bad]).status, 2, "{bad}");
    }
    for good in ["0", "1500ms", "2.5s", "0.5", "5m"] {
        assert_eq!(place.ibi(&["mint", "--max-wait", good]).status, 0, "{good}");
    }
    assert_eq!(place.ibi(&["mint", "-n", "0"]).status, 2);
}

#[test]
fn the_2011_edition_is_followed_by_name() {
    let place = Place::started(&["--edition", "2011"]);
    let run = place.ibi(&["mint", "-n", "2"]);
    assert_eq!((run.status, run.stdout.lines().count()), (0, 2), "{}", run.stderr);
    let refused = place.ibi(&["mint", "--granularity", "0.1"]);
    assert!(refused.status == 4 && refused.stderr.contains("2011 edition"));
}

#[test]
fn damage_stops_the_minter_until_it_is_recovered() {
    let place = Place::started(&[]);
    let before = place.ibi(&["mint", "-n", "3"]).stdout;
    let state = Path::new(place.path()).join("minter/state");
    let mut bytes = std::fs::read(&state).unwrap();
    bytes[4096 + 20] ^= 1;
    bytes[8192 + 20] ^= 1;
    std::fs::write(&state, bytes).unwrap();
    let refused = place.ibi(&["mint"]);
    assert!(refused.status == 4 && refused.stderr.contains("damaged"), "{}", refused.stderr);
    assert_eq!(place.ibi(&["minter", "show"]).status, 1);
    let recovered = place.ibi(&["minter", "recover", "--json"]);
    assert_eq!((recovered.status, recovered.json().len()), (0, 1), "{}", recovered.stderr);
    let after = place.ibi(&["mint", "-n", "3"]).stdout;
    assert_eq!(before.lines().chain(after.lines()).collect::<HashSet<_>>().len(), 6);
}

#[test]
fn the_data_folder_comes_from_the_option_the_environment_or_the_platform() {
    let place = Place::started(&[]);
    let with = |name: &str, value: &Path| {
        let output = Command::new(IBI)
            .args(["minter", "show", "--json"])
            .env_clear()
            .env(name, value)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(with("IBI_DATA", place.folder.path()).0, Some(0));
    let home = TempDir::new().unwrap();
    let data = home.path().join(".local/share/ibi");
    std::fs::create_dir_all(data.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(place.folder.path(), &data).unwrap();
    assert_eq!(with("HOME", home.path()).0, Some(0));
    assert_eq!(with("XDG_DATA_HOME", data.parent().unwrap()).0, Some(0));
    assert_eq!(with("NOTHING", home.path()).0, Some(2));
}
