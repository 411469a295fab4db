//! Output and errors of the resolver's commands.

use super::{PUBLIC, Resolver};
use crate::binary::{ibi, ibi_with};

const SERVICE: &str = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";
const KEY: &str = "1234567890-0987654321";

/// Runs a command that must fail: checks its status, and that its message contains these words.
fn refused(resolver: &Resolver, command: &str, arguments: &[&str], status: i32, words: &[&str]) {
    let run = resolver.run(command, arguments);
    assert_eq!((run.status, run.stdout.as_str()), (status, ""), "{command} {arguments:?}: {}", run.stderr);
    for word in words {
        assert!(run.stderr.contains(word), "{command} {arguments:?} does not say `{word}`: {}", run.stderr);
    }
}

/// House rule: errors say what is wrong, where, and what to do.
#[test]
fn every_refusal_names_the_next_step() {
    let resolver = Resolver::new();
    refused(
        &resolver,
        "init",
        &["--public-url", PUBLIC],
        4,
        &["a resolver already exists in this folder", "registry.sqlite", "ibi resolver register"],
    );
    refused(
        &resolver,
        "retire",
        &["--service", SERVICE],
        1,
        &["is not registered here", "ibi resolver register"],
    );
    refused(&resolver, "register", &["--service", "nonsense"], 2, &["an IBI is like `sid.inpe.br/"]);
    refused(&resolver, "register", &["--service", SERVICE, "--key", "12"], 2, &["ten digits or more"]);
    refused(
        &resolver,
        "register",
        &["--service", SERVICE, "--host", "http://x/"],
        2,
        &["is not a valid host", "without http://"],
    );
    refused(&resolver, "register", &["--key", KEY], 2, &["--service <IBI>"]);
    refused(
        &resolver,
        "alerts",
        &["--resolve", "7", "--note", "x"],
        1,
        &["there is no alert 7", "ibi resolver alerts --all"],
    );
    refused(&resolver, "alerts", &["--resolve", "7"], 2, &["--note"]);
    refused(&resolver, "resolve", &["no label"], 2, &["not a valid IBI", "of the path)"]);
    refused(&resolver, "import", &["none.txt"], 2, &["cannot read none.txt"]);
    refused(&resolver, "token revoke", &["none"], 1, &["there is no token none", "token list"]);
    refused(&resolver, "serve", &["--listen", "nowhere"], 2, &["cannot listen on nowhere"]);
    // A valid address that cannot be bound is not a usage error.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&resolver, "serve", &["--listen", &address], 3, &["Another program uses this port"]);
    refused(&resolver, "serve", &["--listen", "192.0.2.1:80"], 3, &["does not have that address"]);
    refused(&resolver, "serve", &["--tls-cert", "none.pem"], 2, &["--tls-key"]);
    assert_eq!(resolver.json("archives", &[]).len(), 0, "nothing was registered");
    let empty = tempfile::tempdir().unwrap();
    let nowhere = Resolver { place: empty, at: String::new() };
    let no_folder: [(&str, &[&str]); 9] = [
        ("register", &["--service", SERVICE]),
        ("retire", &["--service", SERVICE]),
        ("serve", &["--listen", "127.0.0.1:0"]),
        ("archives", &[]),
        ("alerts", &[]),
        ("resolve", &[SERVICE]),
        ("export", &[]),
        ("import", &["-"]),
        ("token create", &[]),
    ];
    for (command, arguments) in no_folder {
        refused(
            &nowhere,
            command,
            arguments,
            4,
            &["no resolver in this folder", "registry.sqlite", "`ibi resolver init` creates one"],
        );
    }
    for url in ["urlib.net", "ftp://urlib.net", "http://", "http://a b", "http://urlib.net/?x"] {
        refused(
            &nowhere,
            "init",
            &["--public-url", url],
            2,
            &["cannot be the public URL", "as in http://urlib.net"],
        );
    }
    assert_eq!(nowhere.run("archives", &[]).status, 4, "nothing was made");
}

/// All or nothing; the error names the line.
#[test]
fn a_text_that_cannot_be_imported_names_its_line() {
    let resolver = Resolver::new();
    let run = resolver.run("register", &["--service", SERVICE, "--key", KEY]);
    assert_eq!((run.status, run.stdout.as_str()), (0, ""), "a key that was given is not repeated");
    let text = resolver.run("export", &[]).stdout;
    let other = text.replace("mtc-m18@80", "mtc-m19");
    let both = format!("{text}{}", other.split_once('\n').unwrap().1);
    let data = resolver.data().display().to_string();
    let import = |text: &str| ibi_with(&["resolver", "import", "--data", &data, "-"], text.as_bytes());
    for (text, line) in [
        (String::new(), 1),
        (both.replace("format 1", "format 9"), 1),
        (both.replacen("standing   new", "standing   asleep", 1), 4),
        (both.replacen("  registered ", "  registered x", 1), 5),
        (both.replace("$argon2id$", "$plain$"), 7),
        (format!("{both}{}", text.split_once('\n').unwrap().1), 15),
        (both.replace("archive sid.inpe.br/mtc-m19", "archive nonsense"), 9),
        (format!("{both}  colour red\n"), 14),
    ] {
        let run = import(&text);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{text}{}", run.stderr);
        let says = format!("error: line {line}: ");
        assert!(
            run.stderr.starts_with(&says) && run.stderr.contains("Nothing was imported"),
            "{says}{}\n{text}",
            run.stderr
        );
    }
    assert_eq!(resolver.json("archives", &[]).len(), 1);
    let run = import(&both);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stderr.contains("1 Archive added, 0 replaced, 1 kept"), "{}", run.stderr);
}

/// Data goes to stdout, messages to stderr; every reading command has `--json`.
#[test]
fn commands_answer_on_stdout_and_talk_on_stderr() {
    let resolver = Resolver::new();
    let run = resolver.run("register", &["--service", SERVICE]);
    let key = run.stdout.trim_end().to_owned();
    assert!(key.len() >= 10 && key.bytes().all(|c| c.is_ascii_digit() || c == b'-'), "{key}");
    assert!(
        run.stderr.contains("shown only once")
            && run.stderr.contains(&format!("--resolver {PUBLIC} --key-file"))
    );
    assert!(!run.stderr.contains(&key));
    let again = resolver.register(SERVICE);
    assert_ne!(again, key, "another key takes its place");
    let listed = resolver.run("archives", &[]).stdout;
    assert!(listed.starts_with(&format!("{SERVICE}\tnew\t-\t")), "{listed}");
    let shown = resolver.json("archives", &[]).pop().unwrap();
    assert_eq!(
        (&shown["service"], &shown["standing"], &shown["address"]),
        (&SERVICE.into(), &"new".into(), &serde_json::Value::Null)
    );
    assert_eq!(resolver.json("export", &[]), std::slice::from_ref(&shown));
    let retired = resolver.run("retire", &["--service", SERVICE]);
    assert!(
        retired.stdout.starts_with(&format!("{SERVICE}\tretired\t"))
            && retired.stderr.contains("`register` reinstates it")
    );
    let back = resolver
        .json("register", &["--service", SERVICE, "--key", KEY, "--host", "files.test"])
        .pop()
        .unwrap();
    assert_eq!((&back["standing"], &back["hosts"][0]), (&"new".into(), &"files.test".into()));
    let none = resolver.run("alerts", &[]);
    assert_eq!((none.status, none.stdout.as_str(), none.stderr.trim_end()), (0, "", "no alerts"));
    let made = resolver.json("token create", &["--name", "Ana"]).pop().unwrap();
    let secret = made["token"].as_str().unwrap();
    assert_eq!(resolver.json("token list", &[])[0]["name"], "Ana");
    assert!(!resolver.run("token list", &[]).stdout.contains(secret));
    assert_eq!(resolver.run("token revoke", &[made["id"].as_str().unwrap()]).status, 0);
    assert_eq!(resolver.json("token list", &[]).len(), 0);
    assert_eq!(ibi(&["resolver", "--help"]).status, 0);
    assert_eq!(ibi(&["resolver", "nonsense"]).status, 2);
}
