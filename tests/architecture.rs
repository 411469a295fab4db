//! Crates depend on each other only as drawn in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Allowed dependencies of each crate at run time. Tests and benchmarks may use more.
const ALLOWED: &[(&str, &[&str])] = &[
    ("ibi-id", &[]),
    ("ibi-protocol", &["ibi-id", "percent-encoding", "serde", "thiserror"]),
    (
        "ibi-http",
        &[
            "axum",
            "bytes",
            "getrandom",
            "http",
            "http-body-util",
            "hyper",
            "hyper-util",
            "metrics",
            "metrics-exporter-prometheus",
            "percent-encoding",
            "reqwest",
            "rustix",
            "rustls",
            "rustls-native-certs",
            "serde",
            "serde_json",
            "sha2",
            "subtle",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tower",
            "tracing",
            "tracing-subscriber",
            "unicode-normalization",
        ],
    ),
    (
        "ibi-store",
        &[
            "ibi-id",
            "blake3",
            "fearless_simd",
            "heed",
            "rusqlite",
            "rustix",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "unicode-normalization",
        ],
    ),
    ("ibi-mint", &["ibi-id", "ibi-store", "rustix", "thiserror", "tracing", "loom"]),
    (
        "ibi-resolver",
        &[
            "ibi-id",
            "ibi-protocol",
            "ibi-store",
            "ibi-http",
            "argon2",
            "askama",
            "axum",
            "bytes",
            "futures-util",
            "getrandom",
            "http",
            "metrics",
            "percent-encoding",
            "serde",
            "serde_json",
            "subtle",
            "thiserror",
            "tokio",
            "tracing",
        ],
    ),
    (
        "ibi-archive",
        &[
            "ibi-id",
            "ibi-mint",
            "ibi-protocol",
            "ibi-store",
            "ibi-http",
            "askama",
            "axum",
            "base64",
            "blake3",
            "bytes",
            "csv",
            "getrandom",
            "http",
            "http-body",
            "http-body-util",
            "httpdate",
            "md-5",
            "metrics",
            "mime_guess",
            "percent-encoding",
            "quick-xml",
            "rustix",
            "serde",
            "serde_json",
            "sha1",
            "sha2",
            "thiserror",
            "thread-priority",
            "tokio",
            "tracing",
        ],
    ),
    (
        "ibi",
        &[
            "ibi-id",
            "ibi-mint",
            "ibi-archive",
            "ibi-resolver",
            "ibi-http",
            "ibi-protocol",
            "axum",
            "clap",
            "clap_complete",
            "clap_mangen",
            "getrandom",
            "indicatif",
            "mimalloc",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tower",
            "tracing",
        ],
    ),
];

#[test]
fn crates_depend_only_on_what_the_architecture_allows() {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let metadata: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    assert_eq!(metadata["packages"].as_array().unwrap().len(), ALLOWED.len());
    assert_eq!(violations(&metadata), [""; 0]);
}

#[test]
fn an_arrow_that_is_not_drawn_is_found() {
    let package = |name: &str, dependency: &str, kind: Value| json!({ "packages": [{ "name": name, "dependencies": [{ "name": dependency, "kind": kind }] }] });
    assert_eq!(violations(&package("ibi-id", "serde", Value::Null)), ["ibi-id depends on serde"]);
    assert_eq!(violations(&package("ibi-id", "ibi", json!("build"))), ["ibi-id depends on ibi"]);
    assert_eq!(violations(&package("new", "ibi-id", Value::Null)), ["new depends on ibi-id"]);
    assert_eq!(violations(&package("ibi-id", "proptest", json!("dev"))), [""; 0]);
}

fn violations(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let allowed =
            ALLOWED.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, allowed)| allowed);
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            if dependency["kind"] != "dev" && !allowed.contains(&on) {
                found.push(format!("{name} depends on {on}"));
            }
        }
    }
    found
}

#[test]
fn no_type_name_occurs_twice() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut sources = Vec::new();
    for (name, _) in ALLOWED {
        add_sources(&crates.join(name).join("src"), &mut sources);
    }
    assert!(sources.len() > 300, "{} files", sources.len());
    assert_eq!(names_used_twice(&sources), [""; 0]);
}

#[test]
fn a_type_name_that_occurs_twice_is_found() {
    let twice = |texts: [&str; 2]| names_used_twice(&texts.map(str::to_owned));
    assert_eq!(twice(["pub(crate) struct Report;\nenum Once {}", "trait Report {}"]), ["Report"]);
    // In a macro, and as an alias; but neither in tests nor as an associated type.
    let made = "macro_rules! made {\n    () => {\n        pub(in crate::web) struct Report;\n    };\n}";
    assert_eq!(twice([made, "pub type Report<'a> = &'a str;"]), ["Report"]);
    assert_eq!(twice(["struct Report;", "#[cfg(test)]\nmod tests {\n    struct Report;\n}"]), [""; 0]);
    assert_eq!(twice(["struct Output;", "impl A for B {\n    type Output = C;\n}"]), [""; 0]);
}

/// The texts of all sources in a folder, without tests.
fn add_sources(folder: &Path, sources: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            add_sources(&path, sources);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") && !name.ends_with("test.rs") {
            sources.push(std::fs::read_to_string(path).unwrap());
        }
    }
}

/// The names of types outside tests, also inside functions and macros, and of aliases at the left
/// margin: others are associated types.
fn names_used_twice(sources: &[String]) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources {
        for line in without_tests(&without_texts(source)).lines() {
            let bare = line.trim_start();
            let bare = match bare.strip_prefix("pub") {
                Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or("", |(_, rest)| rest),
                Some(rest) => rest.trim_start(),
                None => bare,
            };
            let Some((keyword, rest)) = bare.split_once(' ') else { continue };
            let is_alias = keyword == "type" && !line.starts_with(' ');
            if is_alias || ["struct", "enum", "trait"].contains(&keyword) {
                let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
                *seen.entry(name).or_default() += 1;
            }
        }
    }
    // A macro's parameter: `struct $name`.
    seen.remove("");
    seen.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name).collect()
}

/// Each metric has a help text, in its own crate.
#[test]
fn every_metric_is_described() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = 0;
    for (name, _) in ALLOWED {
        let mut sources = Vec::new();
        add_sources(&crates.join(name).join("src"), &mut sources);
        let (used, described) = metric_names(&sources);
        all += used.len();
        assert_eq!(used, described, "{name}");
    }
    assert!(all > 20, "{all} metrics");
}

/// The names of metrics that sources use, and those that they describe.
fn metric_names(sources: &[String]) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let names = |starts: [&str; 3]| {
        let each = sources.iter().flat_map(|source| {
            starts.into_iter().flat_map(|start| {
                source.match_indices(start).filter_map(|(at, _)| source[at + start.len()..].split('"').next())
            })
        });
        each.collect::<BTreeSet<&str>>()
    };
    let used = ["metrics::counter!(\"", "metrics::gauge!(\"", "metrics::histogram!(\""];
    let described = ["describe_counter!(\"", "describe_gauge!(\"", "describe_histogram!(\""];
    (names(used), names(described))
}

#[test]
fn no_modules_of_a_crate_form_a_cycle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (name, _) in ALLOWED {
        let sources = crate_sources(&crates.join(name).join("src"));
        assert!(!sources.is_empty(), "{name}");
        assert_eq!(cyclic_edges(&sources), [""; 0], "{name}");
    }
}

#[test]
fn a_cycle_of_modules_is_found_and_tests_do_not_count() {
    let planted = |b: &str| {
        let text = |text: &str| text.to_owned();
        BTreeMap::from([
            ("lib".to_owned(), text("mod a; mod b; mod c; pub use a::Apple;")),
            ("a".to_owned(), text("mod inner; use crate::{c, c::{Cherry, self}}; // crate::b")),
            ("a/inner".to_owned(), text("use super::super::b::Blackberry; use super::Apple;")),
            ("b".to_owned(), b.to_owned()),
            ("c".to_owned(), text("const C: &str = \"crate::a::Apple\"; const Q: char = '\"';")),
        ])
    };
    let cycle = ["a -> b (a/inner: crate::b::Blackberry)", "b -> a (b: crate::a::Apple)"];
    assert_eq!(cyclic_edges(&planted("fn b(_: crate::a::Apple) {}")), cycle);
    // Through a name that the root of the crate exports again.
    let root = ["a -> b (a/inner: crate::b::Blackberry)", "b -> a (b: crate::Apple)"];
    assert_eq!(cyclic_edges(&planted("use crate::Apple;")), root);
    let tests = "#[cfg(test)]\nmod tests { use crate::a::Apple; fn f() { [1] } }\nuse crate::c::Cherry;";
    assert_eq!(cyclic_edges(&planted(tests)), [""; 0]);
}

/// The sources of a crate without tests, by their paths below `src` without `.rs`.
fn crate_sources(src: &Path) -> BTreeMap<String, String> {
    fn add(folder: &Path, prefix: &str, sources: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                add(&path, &format!("{prefix}{name}/"), sources);
            } else if let Some(name) = name.strip_suffix(".rs")
                && !name.ends_with("tests")
                && !name.ends_with("test")
            {
                sources.insert(format!("{prefix}{name}"), std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut sources = BTreeMap::new();
    add(src, "", &mut sources);
    sources
}

/// The uses between top modules of a crate that lie on a cycle, each with one place where it is.
fn cyclic_edges(sources: &BTreeMap<String, String>) -> Vec<String> {
    let top = |path: &str| path.split('/').next().unwrap().to_owned();
    let modules: BTreeSet<String> = sources.keys().map(|path| top(path)).collect();
    let code: BTreeMap<&String, String> =
        sources.iter().map(|(path, text)| (path, without_tests(&without_texts(text)))).collect();
    // Where the names that the root exports again come from.
    let mut exports: BTreeMap<String, String> = BTreeMap::new();
    for root in ["lib", "main"].iter().filter_map(|root| code.get(&(*root).to_owned())) {
        for (at, _) in root.match_indices("use ") {
            for path in paths_at(&root[at + "use ".len()..]).0 {
                let path: Vec<String> =
                    path.into_iter().filter(|part| part != "crate" && part != "self").collect();
                if let [module, .., name] = &path[..]
                    && modules.contains(module)
                {
                    exports.insert(name.clone(), module.clone());
                }
            }
        }
    }
    let mut edges: BTreeMap<(String, String), String> = BTreeMap::new();
    for (file, text) in &code {
        if ["lib", "main"].contains(&file.as_str()) {
            continue;
        }
        for path in used_paths(file, text) {
            let Some(first) = path.first() else { continue };
            let to = if modules.contains(first) { Some(first) } else { exports.get(first) };
            if let Some(to) = to.filter(|to| **to != top(file)) {
                let place = format!("{file}: crate::{}", path.join("::"));
                edges.entry((top(file), to.clone())).or_insert(place);
            }
        }
    }
    let reaches = |from: &String, goal: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(at) = open.pop() {
            if at == *goal {
                return true;
            }
            if seen.insert(at.clone()) {
                open.extend(edges.keys().filter(|(from, _)| *from == at).map(|(_, to)| to.clone()));
            }
        }
        false
    };
    let cyclic = edges.iter().filter(|((from, to), _)| reaches(to, from));
    cyclic.map(|((from, to), place)| format!("{from} -> {to} ({place})")).collect()
}

/// The paths that a file uses, from the root of its crate on.
fn used_paths(file: &str, text: &str) -> Vec<Vec<String>> {
    let here: Vec<String> = file.split('/').map(str::to_owned).collect();
    let mut used = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            for path in paths_at(&text[at..]).0 {
                let above = path.iter().take_while(|part| *part == "super").count();
                let from = if above > 0 { &here[..here.len().saturating_sub(above)] } else { &[][..] };
                let rest = path.into_iter().skip(above.max(1));
                used.push(from.iter().cloned().chain(rest).collect());
            }
        }
    }
    used
}

/// The paths of a tree such as `crate::a::{b, c::d}` at the beginning of a text, and where it ends.
fn paths_at(text: &str) -> (Vec<Vec<String>>, usize) {
    let blank = |at: usize| at + text[at..].len() - text[at..].trim_start().len();
    let start = blank(0);
    if text[start..].starts_with('{') {
        let (mut all, mut at) = (Vec::new(), start + 1);
        loop {
            at = blank(at);
            match text[at..].chars().next() {
                None => return (all, at),
                Some('}') => return (all, at + 1),
                Some(c) if !(c.is_alphanumeric() || c == '_' || c == '{') => at += c.len_utf8(),
                Some(_) => {
                    let (paths, end) = paths_at(&text[at..]);
                    all.extend(paths);
                    at += end;
                }
            }
        }
    }
    let word: String = text[start..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let end = start + word.len();
    match text[end..]
        .strip_prefix("::")
        .filter(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '{'))
    {
        Some(rest) => {
            let (below, length) = paths_at(rest);
            let paths = below.into_iter().map(|path| [word.clone()].into_iter().chain(path).collect());
            (paths.collect(), end + "::".len() + length)
        }
        None => (vec![vec![word]], end),
    }
}

/// Source without comments and without what literals contain.
fn without_texts(source: &str) -> String {
    let (mut code, mut rest) = (String::new(), source);
    while let Some(c) = rest.chars().next() {
        let ends_word = code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let raw = rest.strip_prefix('r').filter(|_| !ends_word || code.ends_with('b')).and_then(|after| {
            let hashes = &after[..after.len() - after.trim_start_matches('#').len()];
            let text = after[hashes.len()..].strip_prefix('"')?;
            text.split_once(&format!("\"{hashes}")).map(|(_, behind)| behind)
        });
        rest = if rest.starts_with("//") {
            rest.find('\n').map_or("", |end| &rest[end..])
        } else if rest.starts_with("/*") {
            rest.split_once("*/").map_or("", |(_, behind)| behind)
        } else if let Some(behind) = raw {
            behind
        } else if c == '"' {
            let (mut end, bytes) = (1, rest.as_bytes());
            while end < bytes.len() && bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            rest.get(end + 1..).unwrap_or_default()
        } else if let Some(text) = rest.strip_prefix('\'') {
            // A character, or a lifetime.
            let length = match text.strip_prefix('\\') {
                Some(escaped) => escaped.find('\'').map(|end| end + 1),
                None => text.chars().next().map(char::len_utf8),
            };
            match length.filter(|length| text[*length..].starts_with('\'')) {
                Some(length) => &text[length + 1..],
                None => text,
            }
        } else {
            code.push(c);
            &rest[c.len_utf8()..]
        };
    }
    code
}

/// Code without the items that are only compiled for tests.
fn without_tests(code: &str) -> String {
    let (mut kept, mut rest) = (String::new(), code);
    while let Some((before, behind)) =
        rest.split_once("#[cfg(test)]").or_else(|| rest.split_once("#[cfg(all(test, loom))]"))
    {
        kept.push_str(before);
        let mut depth = 0_i32;
        let end = behind.find(|c: char| {
            depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
            depth < 0 || (depth == 0 && (c == ';' || c == '}' || c == ','))
        });
        rest = end.map_or("", |end| if depth < 0 { &behind[end..] } else { &behind[end + 1..] });
    }
    kept + rest
}
