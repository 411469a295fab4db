//! Standard input, standard output and exit status, with and without errors.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use crate::binary::{IBI, feed, ibi, ibi_with};

const LABEL: &str = "8JMKD3MGP8W/34PGRBS";

#[test]
fn a_closed_pipe_is_no_error() {
    // More than any pipe holds, to a reader that takes one line.
    let many = format!("{LABEL}\n").repeat(200_000);
    for arguments in [&["id", "parse", "--json"][..], &["id", "parse"]] {
        let (mut child, writer) = feed(arguments, many.as_bytes());
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    }
}

#[test]
fn a_full_disk_is_an_error() {
    for arguments in [&["id", "parse", LABEL][..], &["id", "encode", "--ip", "8.8.8.8", "--at", "1234806360"]]
    {
        let full = std::fs::File::create("/dev/full").unwrap();
        let output = Command::new(IBI).args(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert!(
            String::from_utf8(output.stderr).unwrap().starts_with("error: cannot write to standard output")
        );
    }
}

#[test]
fn lines_end_with_lf_or_cr_lf_or_the_input() {
    for input in
        [format!("{LABEL}\n{LABEL}\n"), format!("{LABEL}\r\n{LABEL}\r\n"), format!("{LABEL}\n{LABEL}")]
    {
        let run = ibi_with(&["id", "parse", "--json"], input.as_bytes());
        assert_eq!((run.status, run.json().len()), (0, 2));
    }
    let run = ibi_with(&["id", "parse", "--json"], format!("{LABEL}\n\n").as_bytes());
    assert_eq!(
        (run.status, run.json()[1]["error"]["rule"].as_str()),
        (1, Some("empty")),
        "one answer a line"
    );
    assert_eq!(ibi_with(&["id", "parse"], b"").status, 0, "no label, none invalid");
}

#[test]
fn lines_of_any_length_are_read_in_constant_memory() {
    let long = [vec![b'A'; 3_000_000], b"\n".to_vec(), LABEL.into(), b"\n".to_vec()].concat();
    let run = ibi_with(&["id", "parse", "--json"], &long);
    let records = run.json();
    assert_eq!((run.status, records.len()), (1, 2));
    assert_eq!(records[0]["error"]["rule"], "label-length");
    assert!(records[0]["input"].as_str().unwrap().len() < 100_000, "what is beyond every label is cut");
    assert_eq!(records[1]["valid"], true, "the next line is read as usual");
}

#[test]
fn bytes_that_are_no_text_are_refused_where_they_stand() {
    let run = ibi_with(&["id", "parse", "--json"], b"8JMK\xff3MGP8W/34PGRBS\n");
    let record = &run.json()[0];
    assert_eq!((run.status, record["error"]["position"].as_u64()), (1, Some(4)));
}

#[test]
fn characters_that_steer_a_terminal_do_not_reach_it() {
    for steers in ['\u{1b}', '\u{9b}', '\u{7f}', '\u{202e}', '\u{feff}'] {
        let label = format!("a{steers}31m/b");
        for command in [
            &["id", "parse", &label][..],
            &["id", "equal", &label, LABEL],
            &["id", "parse", "--json", &label],
        ] {
            let run = ibi(command);
            assert!(!run.stdout.contains(steers) && !run.stderr.contains(steers), "{command:?}");
            assert_ne!(run.status, 0);
        }
        assert_eq!(
            ibi(&["id", "parse", "--json", &label]).json()[0]["input"],
            label.as_str(),
            "nothing is lost"
        );
    }
}

#[test]
fn a_byte_order_mark_at_the_beginning_is_passed_over() {
    let run = ibi_with(&["id", "parse", "--json"], format!("\u{feff}{LABEL}\n\u{feff}{LABEL}\n").as_bytes());
    let valid: Vec<_> = run.json().iter().map(|record| record["valid"].as_bool()).collect();
    assert_eq!(valid, [Some(true), Some(false)], "and nowhere else");
}

#[test]
fn every_line_of_a_large_file_is_answered_as_it_stands() {
    // Several times the buffer, so that lines cross its end.
    let label = |number: usize| format!("sid.inpe.br/m{number}/2009/02.16.17.46");
    let lines: String = (0..20_000).map(|number| label(number) + "\n").collect();
    let run = ibi_with(&["id", "parse", "--json"], lines.as_bytes());
    let records = run.json();
    assert_eq!((run.status, records.len()), (0, 20_000));
    for (number, record) in records.iter().enumerate() {
        assert_eq!((&record["input"], &record["canonical"]), (&label(number).into(), &label(number).into()));
    }
}

#[test]
fn encode_warns_of_what_is_not_unique() {
    for from in [["--ip", "10.0.0.1"], ["--host", "archive.local"]] {
        let run = ibi(&["id", "encode", from[0], from[1], "--at", "1234806360"]);
        assert_eq!((run.status, run.stdout.lines().count()), (0, 1));
        assert!(
            run.stderr.starts_with("warning: ") && run.stderr.contains("not globally unique"),
            "{}",
            run.stderr
        );
    }
    let run = ibi(&["id", "encode", "--ip", "8.8.8.8", "--at", "1234806360"]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
}

#[test]
fn each_line_is_answered_at_once() {
    let mut child = Command::new(IBI)
        .args(["id", "parse", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        stdin.write_all(format!("{LABEL}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        std::io::BufRead::read_line(&mut stdout, &mut answer).unwrap();
        assert!(answer.contains("\"valid\":true"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn bad_lines_of_times_are_told_and_the_rest_goes_on() {
    let run = ibi_with(&["id", "distribute", "--granularity", "1"], b"1287588115\nnow\n1287588115\n");
    assert_eq!((run.status, run.stdout.lines().count()), (1, 2));
    assert!(run.stderr.starts_with("line 2: `now`"));
    let run = ibi_with(&["id", "distribute", "--json"], b"1287588115\nnow\n1287588115\n");
    assert_eq!((run.status, run.json()[1]["error"]["rule"].as_str()), (1, Some("time")));
    let run =
        ibi_with(&["id", "distribute", "--json"], b"253402300799.999999999\n253402300799.999999999\n5\n");
    let rules: Vec<_> =
        run.json().iter().map(|row| row["error"]["rule"].as_str().map(str::to_owned)).collect();
    let range = Some("instant-range".to_owned());
    assert_eq!((run.status, rules), (1, vec![None, range.clone(), range]), "no date after the year 9999");
}

#[test]
fn commands_that_cannot_be_understood_are_status_2() {
    for arguments in [
        &["id", "encode", "--at", "1"][..],
        &["id", "encode", "--host", "a.inpe.br", "--ip", "8.8.8.8", "--at", "1234806360"],
        &["id", "encode", "--host", "localhost", "--at", "1234806360"],
        &["id", "encode", "--host", "a_b.inpe.br", "--at", "1234806360"],
        &["id", "encode", "--ip", "150.163.34", "--at", "1234806360"],
        &["id", "encode", "--ip", "8.8.8.8", "--port", "65536", "--at", "1234806360"],
        &["id", "encode", "--ip", "8.8.8.8", "--at", "yesterday"],
        &["id", "encode", "--ip", "8.8.8.8", "--at", "1995-07-31T23:59:59Z"],
        &["id", "distribute", "--granularity", "0.5"],
        &["id", "distribute", "--edition", "2011", "--granularity", "0.1"],
        &["id", "distribute", "--edition", "2012"],
        &["id", "equal", LABEL],
        &["frobnicate"],
    ] {
        let run = ibi(arguments);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    }
}

#[test]
fn help_completions_and_manual_come_from_one_definition() {
    for command in
        [&["--help"][..], &["id", "--help"], &["id", "parse", "--help"], &["id", "distribute", "-h"]]
    {
        let run = ibi(command);
        assert_eq!(run.status, 0);
        assert!(run.stdout.contains("Usage:") && !run.stdout.contains('\u{1b}'));
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = ibi(&["completions", shell]);
        assert!(run.status == 0 && run.stdout.contains("distribute"), "{shell}");
    }
    assert!(ibi(&["man"]).stdout.contains(".TH ibi 1"));
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert_eq!(ibi(&["man", "--dir", pages.to_str().unwrap()]).status, 0);
    for page in [
        "ibi.1",
        "ibi-id.1",
        "ibi-id-parse.1",
        "ibi-id-equal.1",
        "ibi-id-encode.1",
        "ibi-id-distribute.1",
        "ibi-minter.1",
        "ibi-mint.1",
    ] {
        assert!(std::fs::read_to_string(pages.join(page)).unwrap().contains(".TH"), "{page}");
    }
    let page = std::fs::read_to_string(pages.join("ibi.1")).unwrap();
    assert!(!page.contains("help(1)"), "no page refers to one that is not there");
    assert_eq!(ibi(&["man", "--dir", "/dev/null/pages"]).status, 3);
}
