//! The standard's worked examples through the built binary.

use serde_json::Value;

use crate::binary::{Run, ibi, ibi_with};

fn identifiers() -> Value {
    serde_json::from_str(include_str!("fixtures/identifiers.json")).unwrap()
}

fn distributor() -> Value {
    serde_json::from_str(include_str!("fixtures/distributor.json")).unwrap()
}

fn rows<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let rows = value[name].as_array().unwrap();
    assert!(!rows.is_empty());
    rows
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap()
}

/// Parses labels from standard input into one JSON object each.
fn parse(labels: &[&str]) -> (i32, Vec<Value>) {
    let run = ibi_with(&["id", "parse", "--json"], (labels.join("\n") + "\n").as_bytes());
    let records = run.json();
    assert_eq!(records.len(), labels.len());
    for (record, label) in records.iter().zip(labels) {
        assert_eq!(record["input"], *label);
    }
    (run.status, records)
}

fn encode(row: &Value, at: &str) -> Run {
    let (option, from) = match row["host"].as_str() {
        Some(host) => ("--host", host),
        None => ("--ip", text(row, "ip")),
    };
    ibi(&["id", "encode", option, from, "--port", &row["port"].to_string(), "--at", at])
}

#[test]
fn minted_labels_are_built_and_read_back() {
    for row in rows(&identifiers(), "mint") {
        let form = if row["rep"].is_string() { "rep" } else { "ibip" };
        let built = encode(row, text(row, "unix"));
        assert_eq!((built.status, built.stdout.trim_end()), (0, text(row, form)));
        let (status, records) = parse(&[text(row, form)]);
        assert_eq!(status, 0);
        assert_eq!(records[0]["form"], form);
        assert_eq!(records[0]["canonical"], row[form]);
        assert_eq!(records[0]["unix"], row["unix"]);
        assert_eq!(records[0]["port"], row["port"]);
        assert_eq!(records[0]["host"], row["host"]);
        assert_eq!(records[0]["ip"], row["ip"]);
    }
}

#[test]
fn tables_7_2_and_7_3_are_built() {
    let identifiers = identifiers();
    for row in rows(&identifiers, "to_decimal") {
        // Table 7.3 encodes the same numbers that table 7.2 gives.
        let coded =
            rows(&identifiers, "from_decimal").iter().find(|coded| coded["decimal"] == row["decimal"]);
        let mark = if text(row, "table") == "ipv4" { "W" } else { "X" };
        let built = ibi(&["id", "encode", "--ip", text(row, "text"), "--at", "807235200"]);
        assert_eq!(built.stdout.trim_end(), format!("{}{mark}/2", text(coded.unwrap(), "ibip")));
    }
    for row in rows(&identifiers, "from_decimal") {
        let Ok(seconds) = text(row, "decimal").parse::<u64>() else { continue };
        if seconds < 250_000_000_000 {
            let at = (seconds + 807_235_200).to_string();
            let built = ibi(&["id", "encode", "--ip", "8.8.8.8", "--at", &at]);
            assert!(
                built.stdout.trim_end().ends_with(&format!("/{}", text(row, "ibip"))),
                "{}",
                built.stdout
            );
        }
    }
}

#[test]
fn tables_5_2_and_5_3_of_000_are_printed_by_verbose_parse() {
    let identifiers = identifiers();
    for row in rows(&identifiers, "to_decimal") {
        let label = ibi(&["id", "encode", "--ip", text(row, "text"), "--at", "1288227862"]).stdout;
        let run = ibi(&["id", "parse", "--verbose", "--json", label.trim_end()]);
        let decimals = &run.json()[0]["decimals"];
        assert_eq!(decimals["address"], row["decimal"], "{label}");
        assert_eq!((&decimals["port"], &decimals["seconds"]), (&Value::Null, &"480992662".into()));
        let run = ibi(&["id", "parse", "--verbose", label.trim_end()]);
        assert!(run.stdout.contains(&format!("decimal    {} (address)\n", text(row, "decimal"))));
    }
    let run = ibi(&["id", "parse", "-v", "--json", "J8LNKAN8PW38/2WT", "83LX3pFwXQZeBBx/kfnE"]);
    assert_eq!(run.json()[0]["decimals"]["port"], "33");
    assert_eq!(run.json()[0]["decimals"]["fraction"], "25");
    assert_eq!(run.json()[1]["decimals"]["seconds"], "2717400", "1995-09-01 10:50");
    assert!(ibi(&["id", "parse", "--json", "J8LNKAN8PW/2"]).json()[0]["decimals"].is_null());
}

#[test]
fn d35_links_are_read_and_d34_long_years_refused_as_such() {
    for link in [
        "http://urlib.net/rep/8JMKD3MGP8W/34PGRBS",
        "https://host.example:8443/8JMKD3MGP8W/34PGRBS",
        "ibi:8JMKD3MGP8W/34PGRBS",
        "ibi/8JMKD3MGP8W/34PGRBS",
        "upn:a-word:8JMKD3MGP8W/34PGRBS",
    ] {
        let run = ibi(&["id", "parse", "--json", link]);
        let record = &run.json()[0];
        assert_eq!((run.status, record["canonical"].as_str()), (0, Some("8JMKD3MGP8W/34PGRBS")), "{link}");
        assert_eq!(record["link"]["label"], "8JMKD3MGP8W/34PGRBS");
        assert_eq!(ibi(&["id", "equal", link, "8jmkd3mgp8w/34pgrbs"]).stdout, "equal\n");
    }
    let run = ibi(&["id", "parse", "--json", "http://urlib.net/J8LNKAN8PW/36CMBU2!:(oai_dc)/a/b.pdf?x=1"]);
    let link = &run.json()[0]["link"];
    assert_eq!((&link["modifiers"], &link["file"]), (&"!:(oai_dc)".into(), &"/a/b.pdf".into()));
    assert_eq!(link["query"], "x=1");
    let run =
        ibi(&["id", "parse", "--json", "http://urlib.net/8JMKD3MGP8W/34PGVBS", "http://", "mailto:a@b.br"]);
    let errors: Vec<_> = run.json().iter().map(|record| record["error"]["position"].as_u64()).collect();
    assert_eq!((run.status, errors), (1, vec![Some(33), Some(7), Some(0)]), "{}", run.stdout);
    // Clause 1.4: a label with trailing text is neither a label nor a link.
    let run = ibi(&["id", "parse", "--json", "8JMKD3MGP8W/34PGRBS/doc", "8JMKD3MGP8W/34PGRBS!"]);
    assert!(run.json().iter().all(|record| record["valid"] == false), "{}", run.stdout);
    let run = ibi(&["id", "parse", "--json", "sid.inpe.br/mtc-m18/12010/08.25.12.38"]);
    let error = &run.json()[0]["error"];
    assert_eq!(error["rule"], "year");
    assert!(text(error, "message").contains("longer ones are not read"), "{error}");
}

#[test]
fn prefixes_decode() {
    for row in rows(&identifiers(), "decode_prefix") {
        let (status, records) = parse(&[&format!("{}/34PGRBS", text(row, "prefix"))]);
        assert_eq!((status, &records[0]["ip"], &records[0]["port"]), (0, &row["ip"], &row["port"]));
    }
}

#[test]
fn valid_and_legacy_labels_are_read() {
    let identifiers = identifiers();
    let valid: Vec<_> = rows(&identifiers, "valid_rep").iter().map(|label| label.as_str().unwrap()).collect();
    let (status, records) = parse(&valid);
    assert_eq!(status, 0);
    assert!(records.iter().all(|record| record["valid"] == true && record["form"] == "rep"));
    for row in rows(&identifiers, "legacy") {
        let (status, records) = parse(&[text(row, "ibi")]);
        assert_eq!((status, records[0]["form"].as_str()), (0, Some("legacy")));
        assert_eq!(records[0]["unix"], row["unix"]);
    }
    for row in rows(&identifiers, "two_forms_of_one_item") {
        let (status, records) = parse(&[text(row, "rep"), text(row, "ibip")]);
        assert_eq!(status, 0);
        let minute = |record: &Value| text(record, "instant")[..16].to_owned();
        assert_eq!(minute(&records[0]), minute(&records[1]));
    }
}

#[test]
fn equal_labels_are_equal() {
    for group in rows(&identifiers(), "equal") {
        let group: Vec<_> = group.as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect();
        for label in &group {
            let run = ibi(&["id", "equal", group[0], label]);
            assert_eq!((run.status, run.stdout.as_str()), (0, "equal\n"), "{label}");
        }
        let (_, records) = parse(&group);
        assert!(records.iter().all(|record| record["canonical"] == records[0]["canonical"]));
    }
}

#[test]
fn invalid_labels_are_refused_with_rule_and_position() {
    for label in rows(&identifiers(), "invalid") {
        let label = label.as_str().unwrap();
        let (status, records) = parse(&[label]);
        assert_eq!((status, &records[0]["valid"]), (1, &Value::Bool(false)), "{label}");
        let error = &records[0]["error"];
        assert!(error["position"].as_u64().unwrap() <= label.len() as u64);
        assert!(!text(error, "rule").is_empty() && text(error, "message").len() > 10);
        assert_eq!(ibi(&["id", "parse", label]).status, 1);
        assert_eq!(ibi(&["id", "equal", label, "8JMKD3MGP8W/34PGRBS"]).status, 2);
    }
}

#[test]
fn fractions_are_built_in_both_forms() {
    for row in rows(&identifiers(), "fraction") {
        let at = text(row, "unix");
        let rep = ibi(&["id", "encode", "--host", "a.inpe.br", "--at", at]);
        assert_eq!(rep.stdout.trim_end(), format!("inpe.br/a/{}", text(row, "rep")));
        let ibip = ibi(&["id", "encode", "--ip", "150.163.34.243", "--at", at]);
        assert_eq!(ibip.stdout.trim_end(), format!("8JMKD3MGP8W/{}", text(row, "ibip")));
        let (_, records) = parse(&[rep.stdout.trim_end(), ibip.stdout.trim_end()]);
        assert!(records.iter().all(|record| record["unix"] == at));
    }
}

#[test]
fn tables_6_2_and_4_2_are_distributed() {
    let distributor = distributor();
    for edition in ["2015", "2011"] {
        let rows = rows(&distributor[edition], "rows");
        let times: String = rows.iter().map(|row| format!("{}\n", text(row, "requested"))).collect();
        let arguments = ["id", "distribute", "--edition", edition, "--granularity", "1"];
        let run = ibi_with(&arguments, times.as_bytes());
        assert_eq!(run.status, 0, "{}", run.stderr);
        let lines: Vec<Vec<&str>> = run.stdout.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(lines.len(), rows.len());
        let json = ibi_with(&[&arguments[..], &["--json"]].concat(), times.as_bytes()).json();
        for ((line, record), row) in lines.iter().zip(&json).zip(rows) {
            assert_eq!(line[1], text(row, "suffix"));
            assert_eq!((&record["suffix"], &record["requested"]), (&row["suffix"], &row["requested"]));
            // 004 Table 6.2, column t'(i); 000 Table 4.2, column t(i).
            assert_eq!(record["pair"], row["pair"], "{row}");
            let [creation, previous] = [0, 1].map(|member| row["pair"][member].as_str().unwrap());
            assert_eq!(
                (line[3], &record["creation"]),
                (&*format!("({creation}, {previous})"), &row["pair"][0])
            );
            if edition == "2015" {
                assert_eq!((line[0], &record["date"]), (text(row, "date"), &row["date"]));
                assert_eq!((line[4], &record["r"]), (text(row, "r"), &row["r"]));
            }
        }
    }
}
