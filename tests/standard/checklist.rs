//! Every row of `docs/standard.md` names a test that is in the tree, or a decision.

use std::fs;

use super::{cells, decisions, page, root};

/// The number of entries of the founding documents.
const ENTRIES: usize = 195;

/// The faults of a checklist.
fn faults(page: &str, decisions: &[String], has: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    let rows = cells(page);
    let numbers: Vec<String> = rows.iter().map(|cells| cells[0].clone()).collect();
    if numbers != (1..=ENTRIES).map(|number| number.to_string()).collect::<Vec<_>>() {
        let missing = (1..=ENTRIES).find(|number| numbers.get(number - 1) != Some(&number.to_string()));
        faults.push(format!("row {} is not where it should be", missing.unwrap_or(ENTRIES + 1)));
    }
    for row in &rows {
        if row.len() != 5 || row.iter().any(String::is_empty) {
            faults.push(format!("row {} has not all of its five cells", row[0]));
            continue;
        }
        for name in row[4].split(", ").filter(|name| !decisions.iter().any(|decision| decision == name)) {
            match name.trim_matches('`').split_once("::") {
                Some((file, test)) if has(file, test) => {}
                Some((file, test)) => {
                    faults.push(format!("row {}: there is no test {test} in {file}", row[0]));
                }
                None => faults.push(format!("row {}: `{name}` is neither a test nor a decision", row[0])),
            }
        }
    }
    faults
}

/// Whether a source has a function of this name with a test attribute.
fn has_test(file: &str, test: &str) -> bool {
    let text = fs::read_to_string(root().join(file)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_it = |line: &str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(test))
            .is_some_and(|rest| rest.starts_with('('))
    };
    let at = lines.iter().position(|line| is_it(line));
    at.is_some_and(|at| {
        let above =
            lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        above.clone().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn the_checklist_is_whole_and_names_tests_that_exist() {
    let faults = faults(&page("standard.md"), &decisions(), has_test);
    assert!(faults.is_empty(), "docs/standard.md:\n{}", faults.join("\n"));
}

/// The control: rows that are missing, empty or name a missing test are found.
#[test]
fn a_checklist_that_went_stale_is_found_out() {
    let row = |number: usize| {
        format!("| {number} | 000 §1 | asked | done | `tests/standard/checklist.rs::here`, D1 |\n")
    };
    let whole: Vec<String> = (1..=ENTRIES).map(row).collect();
    let known = ["D1".to_owned()];
    let look = |rows: &[String]| {
        let page = format!(
            "| # | place | asked | done | shown by |\n| --- | --- | --- | --- | --- |\n{}",
            rows.concat()
        );
        faults(&page, &known, |_, test| test == "here")
    };
    assert_eq!(look(&whole), Vec::<String>::new());
    for (row, instead, fault) in [
        (7, String::new(), "row 8 is not where it should be"),
        (7, whole[6].clone(), "row 8 is not where it should be"),
        (
            3,
            whole[3].replace("::here", "::gone"),
            "row 4: there is no test gone in tests/standard/checklist.rs",
        ),
        (3, whole[3].replace("D1", "D99"), "row 4: `D99` is neither a test nor a decision"),
        (3, whole[3].replace("D1", "pending"), "row 4: `pending` is neither a test nor a decision"),
        (
            3,
            whole[3].replace("`tests/standard/checklist.rs::here`, D1", ""),
            "row 4 has not all of its five cells",
        ),
        (3, whole[3].replace("done", ""), "row 4 has not all of its five cells"),
    ] {
        let mut rows = whole.clone();
        rows[row] = instead;
        assert!(look(&rows).iter().any(|found| found == fault), "{fault}: {:?}", look(&rows));
    }
    assert!(has_test("tests/standard/checklist.rs", "a_checklist_that_went_stale_is_found_out"));
    assert!(!has_test("tests/standard/checklist.rs", "has_test"), "a function that is no test");
    assert!(!has_test("tests/none.rs", "has_test"));
}
