//! The Archive through the built binary.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{IBI, Run, ibi};

/// An Archive in its own folder, with its own prefix. Its claims are removed with it.
struct Ours {
    place: TempDir,
    host: String,
}

impl Ours {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let ours = Self {
            place: tempfile::tempdir().unwrap(),
            host: format!("s{}x{number}.system.test", std::process::id()),
        };
        let run = ours.archive("init", &["--host", &ours.host, "--allow-private"]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        ours
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn data(&self) -> String {
        self.path("data").display().to_string()
    }

    /// `ibi archive COMMAND --data … --json`.
    fn archive(&self, command: &str, arguments: &[&str]) -> Run {
        let data = self.data();
        let mut all = vec!["archive", command, "--data", &data, "--json"];
        all.extend_from_slice(arguments);
        ibi(&all)
    }

    fn deposit(&self, path: &Path, arguments: &[&str]) -> Value {
        let path = path.display().to_string();
        let mut all = vec![path.as_str()];
        all.extend_from_slice(arguments);
        let run = self.archive("deposit", &all);
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.json().pop().unwrap()
    }

    /// All output: the list, and each item.
    fn answers(&self) -> String {
        let list = self.archive("list", &[]);
        assert_eq!(list.status, 0, "{}", list.stderr);
        let shown = list
            .json()
            .iter()
            .map(|item| self.archive("show", &[item["rep"].as_str().unwrap()]).stdout)
            .collect::<String>();
        list.stdout + &shown
    }

    /// A folder with files, to be deposited.
    fn folder(&self, files: &[(&str, &[u8])]) -> PathBuf {
        let folder = self.path("folder");
        let _ = fs::remove_dir_all(&folder);
        for (name, bytes) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        forget(&self.host);
    }
}

fn forget(host: &str) {
    let (machine, domain) = host.split_once('.').unwrap();
    for folder in ["/run/lock", "/var/tmp"] {
        let _ = fs::remove_file(format!("{folder}/ibi-{domain}+{machine}"));
    }
}

fn text(item: &Value, name: &str) -> String {
    item[name].as_str().unwrap().to_owned()
}

/// All files below a folder, with their bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(within) = left.pop() {
        for entry in fs::read_dir(within).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                all.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    all
}

fn shell(script: &str, folder: &Path) -> String {
    let output = Command::new("sh").arg("-ec").arg(script).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_folder_an_edition_and_a_translation_go_in_and_come_out_byte_equal() {
    let ours = Ours::new();
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 253) as u8).collect();
    let files: &[(&str, &[u8])] =
        &[("index.html", b"<p>oi"), ("img/Foto \u{e9}.jpg", &large), ("empty", b"")];
    let folder = ours.folder(files);
    let first = ours.deposit(
        &folder,
        &[
            "--dc",
            "title=Report",
            "--dc",
            "title@pt=Relatório",
            "--dc",
            "creator=Doe, J.",
            "--language",
            "en",
        ],
    );
    assert_eq!(
        (text(&first, "state"), text(&first, "target")),
        ("Original".to_owned(), "index.html".to_owned())
    );
    assert_eq!(first["files"].as_array().unwrap().len(), 3);
    let rep = text(&first, "rep");
    let edition = ours.deposit(&folder, &["--next-edition-of", &rep]);
    assert_eq!(text(&edition, "next_edition_of"), rep);
    let translation =
        ours.deposit(&folder.join("index.html"), &["--translation-of", &rep, "--language", "pt-br"]);
    assert_eq!(text(&translation, "language"), "pt-BR");
    let bag = ours.path("bag");
    let run = ours.archive("export", &[&rep, "--out", &bag.display().to_string()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(contents(&bag.join("data")), contents(&folder));
    // A bag is deposited again, with its metadata.
    let again = ours.deposit(&bag, &[]);
    assert_eq!(again["metadata"]["dc"], first["metadata"]["dc"]);
    assert_eq!(again["files"], first["files"]);
    // Uses only ls, cat and sha512sum.
    let object = ours.path("data").join("tree").join(&rep);
    shell("sha512sum -c inventory.json.sha512", &object);
    shell("cd v1 && sha512sum -c inventory.json.sha512", &object);
    let listed = shell("sha512sum v1/content/doc/index.html | cut -c1-128; cat inventory.json", &object);
    let (digest, inventory) = listed.split_once('\n').unwrap();
    let inventory: Value = serde_json::from_str(inventory).unwrap();
    assert_eq!(inventory["manifest"][digest][0], "v1/content/doc/index.html");
    assert_eq!(inventory["versions"]["v1"]["state"][digest][0], "doc/index.html");
    let record = shell("cat v1/content/metadata/oai_dc.xml", &object);
    assert!(record.contains("<dc:title xml:lang=\"pt\">Relatório</dc:title>"), "{record}");
}

#[test]
fn an_update_makes_a_version_and_nothing_that_was_deposited_changes() {
    let ours = Ours::new();
    let folder = ours.folder(&[("a.txt", b"one"), ("b.txt", b"two")]);
    let rep = text(&ours.deposit(&folder, &["--dc", "title=First", "--dc", "creator=Me"]), "rep");
    let object = ours.path("data").join("tree").join(&rep);
    let before = contents(&object.join("v1"));
    let run = ours.archive("update", &[&rep, "--dc", "title=Second", "--access", "until:2090-01-01"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let updated = run.json().pop().unwrap();
    assert_eq!((&updated["version"], &updated["files"][0]["path"]), (&Value::from(2), &Value::from("a.txt")));
    assert_eq!(updated["metadata"]["dc"][0]["value"], "Me");
    assert_eq!(updated["metadata"]["dc"][1]["value"], "Second");
    let run = ours.archive(
        "update",
        &[&rep, &ours.folder(&[("a.txt", b"one"), ("c.txt", b"new")]).display().to_string()],
    );
    let names: Vec<String> =
        run.json()[0]["files"].as_array().unwrap().iter().map(|file| text(file, "path")).collect();
    assert_eq!(names, ["a.txt", "c.txt"]);
    assert!(!object.join("v3/content/doc/a.txt").exists(), "what did not change is not stored again");
    assert_eq!(contents(&object.join("v1")), before);
    assert_eq!(ours.archive("update", &[&rep]).status, 2, "nothing to change was given");
    let same = ours.archive("update", &[&rep, "--dc", "title=Second"]);
    assert_eq!((same.status, &same.json()[0]["version"]), (0, &Value::from(3)));
    assert!(same.stderr.contains("no new version"), "{}", same.stderr);
}

#[test]
fn removal_is_explicit_and_leaves_a_tombstone() {
    let ours = Ours::new();
    let rep =
        text(&ours.deposit(&ours.folder(&[("a.txt", b"secret bytes")]), &["--dc", "title=Gone"]), "rep");
    let unsure = ours.archive("remove", &[&rep, "--reason", "by law"]);
    assert_eq!(unsure.status, 4);
    assert!(unsure.stderr.contains("--yes"));
    assert_eq!(ours.archive("remove", &[&rep, "--yes"]).status, 2, "why?");
    assert_eq!(ours.archive("remove", &[&rep, "--reason", "by law", "--purge", "--yes"]).status, 0);
    let shown = ours.archive("show", &[&rep]).json().pop().unwrap();
    assert_eq!(text(&shown, "state"), "Deleted");
    assert_eq!(text(&shown["removed"], "reason"), "by law");
    assert_eq!(shown["metadata"]["dc"][0]["value"], "Gone");
    assert_eq!(shown["history"].as_array().unwrap().len(), 2);
    let left = shell("grep -rl 'secret bytes' . || true", &ours.path("data"));
    assert_eq!(left, "", "the bytes are destroyed");
    assert_eq!(ours.archive("export", &[&rep, "--out", &ours.path("bag").display().to_string()]).status, 4);
}

/// Clause 2.1: the bytes of removed items stay for the grace period that the operator sets.
#[test]
fn bytes_of_removed_items_go_when_their_grace_is_over() {
    let ours = Ours::new();
    let [gone, kept] = ["gone", "kept"].map(|name| {
        let folder = ours.folder(&[("a.txt", name.as_bytes())]);
        text(&ours.deposit(&folder, &["--dc", &format!("title={name}")]), "rep")
    });
    assert_eq!(ours.archive("remove", &[&gone, "--reason", "a mistake", "--yes"]).status, 0);
    let purge = |arguments: &[&str]| ours.archive("purge", &[&["--older-than"], arguments].concat());
    assert_eq!(purge(&["90d", "--yes"]).stdout, "", "its grace is not over");
    assert_eq!(text(&purge(&["0d"]).json()[0], "rep"), gone);
    assert_eq!(shell("grep -rlw gone tree | grep -c /doc/ || true", &ours.path("data")).trim(), "1");
    let purged = purge(&["0d", "--yes"]).json();
    assert_eq!((purged.len(), &purged[0]["removed"]["purged"]), (1, &Value::Bool(true)));
    assert_eq!(text(&purged[0]["removed"], "reason"), "a mistake", "why it was removed stays");
    assert_eq!(shell("grep -rlw gone tree | grep -c /doc/ || true", &ours.path("data")).trim(), "0");
    assert_eq!(purge(&["0d", "--yes"]).stdout, "", "once");
    assert_eq!(text(&ours.archive("show", &[&kept]).json()[0], "state"), "Original");
    assert_eq!(purge(&["soon"]).status, 2);
}

#[test]
fn a_table_is_reported_row_by_row_and_never_deposited_twice() {
    let ours = Ours::new();
    let folder = ours.folder(&[("a.txt", b"one"), ("b.txt", b"two"), ("sub/c.txt", b"three")]);
    let table = folder.join("t.csv");
    // In the format of a Brazilian spreadsheet: semicolons, a byte order mark, quoted values.
    let rows = "\u{feff}file;language;dc.title;dc.title@pt;dc.creator;access\r\n\
        a.txt;en;\"One; or more\";Um;Doe, J.||Roe, R.;\r\n\
        missing.txt;en;Two;;;\r\n\
        b.txt;xx;Three;;;\r\n\
        sub;pt-BR;Four;;;ip:192.0.2.0/24\r\n\
        a.txt;en;\"One; or more\";Um;Doe, J.||Roe, R.;\r\n";
    fs::write(&table, rows).unwrap();
    let arguments = ["--table", &table.display().to_string()];
    let dry = ours.archive("deposit", &[arguments[0], arguments[1], "--dry-run"]);
    let statuses = |run: &Run| run.json().iter().map(|row| text(row, "status")).collect::<Vec<_>>();
    assert_eq!(statuses(&dry), ["right", "refused", "refused", "right", "right"]);
    assert_eq!(ours.archive("list", &[]).json().len(), 1, "only the service");
    let run = ours.archive("deposit", &arguments);
    assert_eq!(
        (run.status, statuses(&run)),
        (1, statuses(&dry).iter().map(|status| status.replace("right", "deposited")).collect())
    );
    let rows_told = run.json();
    assert_eq!(rows_told[1]["line"], 3);
    assert!(text(&rows_told[1], "error").contains("missing.txt"));
    assert!(text(&rows_told[2], "error").contains("column language"), "{}", rows_told[2]);
    assert_eq!(rows_told[0]["metadata"]["dc"].as_array().unwrap().len(), 4);
    assert_ne!(rows_told[0]["rep"], rows_told[4]["rep"], "equal rows are two items");
    // Corrected and rerun: only what is new is deposited.
    fs::write(&table, rows.replace("missing.txt", "b.txt").replace(";xx;", ";fr;")).unwrap();
    let run = ours.archive("deposit", &arguments);
    assert_eq!(
        (run.status, statuses(&run)),
        (0, ["already", "deposited", "deposited", "already", "already"].map(str::to_owned).to_vec())
    );
    assert_eq!(run.json()[0]["rep"], rows_told[0]["rep"]);
    assert_eq!(ours.archive("list", &[]).json().len(), 6);
    fs::write(&table, "file;dc.titel\nx;y\n").unwrap();
    let wrong = ours.archive("deposit", &arguments);
    assert_eq!((wrong.status, wrong.stdout.as_str()), (4, ""));
    assert!(wrong.stderr.contains("titel"), "{}", wrong.stderr);
}

#[test]
fn a_table_that_was_killed_goes_on_without_doubling() {
    let ours = Ours::new();
    let rows = 700;
    let names: Vec<String> = (0..rows).map(|row| format!("{row}.txt")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), name.as_bytes())).collect();
    let folder = ours.folder(&files);
    let lines: String = names.iter().map(|name| format!("{name},Title of {name}\n")).collect();
    let table = folder.join("t.csv");
    fs::write(&table, format!("file,dc.title\n{lines}")).unwrap();
    let table = table.display().to_string();
    let mut child = Command::new(IBI)
        .args(["archive", "deposit", "--json", "--data", &ours.data(), "--table", &table])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // As soon as the first rows are reported.
    let mut first = [0; 1];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let run = ours.archive("deposit", &["--table", &table]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let already = run.json().iter().filter(|row| row["status"] == "already").count();
    assert!(already > 0, "what was told of was safe");
    assert_eq!(ours.archive("list", &[]).json().len(), rows + 1, "{already} were there already");
}

#[test]
fn the_index_can_be_deleted_and_every_answer_is_the_same() {
    let ours = Ours::new();
    let folder = ours.folder(&[("a.txt", b"one"), ("b.txt", b"two")]);
    let rep = text(&ours.deposit(&folder, &["--alias", "8JMKD3MGP8W/34PGRBS", "--language", "en"]), "rep");
    ours.deposit(&folder, &["--label", "dpi.inpe.br/banon/1998/08.02.08.56"]);
    ours.archive("update", &[&rep, "--dc", "subject=x"]);
    let gone = text(&ours.deposit(&folder, &["--translation-of", &rep]), "rep");
    ours.archive("remove", &[&gone, "--reason", "a test", "--yes"]);
    let before = ours.answers();
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        let _ = fs::remove_file(ours.path("data").join(name));
    }
    let missing = ours.archive("list", &[]);
    assert_eq!(missing.status, 3);
    assert!(missing.stderr.contains("ibi archive rebuild"), "{}", missing.stderr);
    let rebuilt = ours.archive("rebuild", &[]);
    assert_eq!((rebuilt.status, &rebuilt.json()[0]["items"]), (0, &Value::from(4)));
    assert_eq!(ours.answers(), before);
}

#[test]
fn the_drill_backup_restore_recover_confirm() {
    let ours = Ours::new();
    let folder = ours.folder(&[("a.txt", b"one")]);
    let rep = text(&ours.deposit(&folder, &["--dc", "title=Kept"]), "rep");
    let before = ours.answers();
    let [backup, restored] = ["backup", "restored"].map(|name| ours.path(name).display().to_string());
    let run = ibi(&["backup", "--data", &ours.data(), "--out", &backup, "--json"]);
    assert_eq!((run.status, &run.json()[0]["items"]), (0, &Value::from(2)), "{}", run.stderr);
    // Again, with what is new since; what was damaged meanwhile is never copied.
    let second = text(&ours.deposit(&folder, &["--dc", "title=Late"]), "rep");
    let run = ibi(&["backup", "--data", &ours.data(), "--out", &backup, "--json"]);
    assert_eq!(
        (run.status, &run.json()[0]["items"], &run.json()[0]["files"]),
        (0, &Value::from(3), &Value::from(3))
    );
    ours.archive("remove", &[&second, "--reason", "a test", "--yes"]);
    let run = ibi(&["restore", "--from", &backup, "--data", &restored, "--json"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let at = |command: &str, arguments: &[&str]| {
        let mut all = vec!["archive", command, "--data", &restored];
        all.extend_from_slice(arguments);
        ibi(&all)
    };
    // 2.1: after a restore it answers Copy until that is confirmed, and mints nothing until it is
    // recovered.
    let shown = at("show", &[&rep, "--json"]).json().pop().unwrap();
    assert_eq!(text(&shown, "state"), "Copy");
    let refused = ibi(&["mint", "--data", &restored]);
    assert_eq!((refused.status, refused.stdout.as_str()), (4, ""));
    assert!(refused.stderr.contains("ibi minter recover"), "{}", refused.stderr);
    let path = folder.display().to_string();
    assert_eq!(at("deposit", &[&path]).status, 4);
    assert_eq!(at("update", &[&rep, "--dc", "title=x"]).status, 4);
    assert_eq!(at("confirm", &[]).status, 0);
    assert_eq!(text(&at("show", &[&rep, "--json"]).json()[0], "state"), "Original");
    assert_eq!(ibi(&["minter", "recover", "--data", &restored]).status, 0);
    assert_eq!(at("deposit", &[&path]).status, 0);
    let list = at("list", &["--json"]).stdout;
    assert!(before.lines().take(2).all(|line| list.contains(line)), "{list}\n{before}");
    assert_eq!(at("audit", &[]).status, 0);
}

#[test]
fn commands_at_the_same_time_wait_for_each_other() {
    let ours = Ours::new();
    let path = ours.folder(&[("a.txt", b"one")]).display().to_string();
    let start = || {
        Command::new(IBI)
            .args(["archive", "deposit", &path, "--data", &ours.data()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..8).map(|_| start()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(ours.archive("list", &[]).json().len(), 9);
}

#[test]
fn answers_about_what_is_not_there_say_so() {
    let ours = Ours::new();
    let unknown = ours.archive("show", &["8JMKD3MGP8W/34PGRBS"]);
    assert_eq!((unknown.status, unknown.stdout.as_str()), (1, ""));
    assert!(unknown.stderr.contains("ibi archive list"), "{}", unknown.stderr);
    assert_eq!(ours.archive("show", &["not a label"]).status, 2);
    let nowhere = ibi(&["archive", "list", "--data", &ours.path("nowhere").display().to_string()]);
    assert_eq!(nowhere.status, 4);
    assert!(nowhere.stderr.contains("ibi archive init"), "{}", nowhere.stderr);
    let again = ours.archive("init", &["--host", &ours.host, "--allow-private"]);
    assert_eq!(again.status, 4, "{}", again.stderr);
    let private =
        ibi(&["archive", "init", "--data", &ours.path("p").display().to_string(), "--host", "a.b.test"]);
    assert_eq!(private.status, 4);
    assert!(private.stderr.contains("--allow-private"), "{}", private.stderr);
}

/// Data written by earlier programs stays readable, with the same output.
#[test]
fn the_frozen_data_folder_gives_the_frozen_answers() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ibi-archive/tests/samples/data-1");
    shell(
        &format!("cp -r '{}' '{}' && mkdir '{}/staging'", sample.display(), data.display(), data.display()),
        place.path(),
    );
    let data = data.display().to_string();
    assert_eq!(ibi(&["archive", "rebuild", "--data", &data]).status, 0);
    let list = ibi(&["archive", "list", "--data", &data, "--json"]);
    let expected = fs::read_to_string(sample.with_file_name("data-1.list.json")).unwrap();
    assert_eq!(list.stdout, expected);
}
