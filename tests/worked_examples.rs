//! The 80 worked examples and tables of the founding documents, run through the built binary.
//!
//! `fixtures/worked-examples.json` has a row for each: what goes in and what the document prints. A
//! row is reproduced, or it differs by a decision of `docs/decisions-on-the-standard.md` and says
//! how (`ours`). Nothing else is allowed. A runner sees the input of a row and never what is
//! expected of it.

mod archives;
mod family;
mod labels;
mod replay;
mod resolver_side;
mod routines;
mod urls;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value;

/// The number of rows of each document: 000 is the report of 2011, 001 and 002 are its drafts, 003
/// is resolution, 004 is RTC-10-I.
const ROWS: [(&str, usize); 5] = [("000", 10), ("001", 5), ("002", 5), ("003", 50), ("004", 10)];

/// The servers that rows are run against, started when the first row needs them, and stopped at the
/// end.
#[derive(Default)]
struct WorkedWorld {
    urls: OnceCell<urls::UrlWorld>,
    family: OnceCell<family::FamilyArchive>,
    inpe: OnceCell<archives::InpeArchives>,
}

/// A row of the fixture.
struct ExampleRow {
    seed: String,
    place: String,
    kind: String,
    input: Value,
    expected: Value,
    /// The differing parts of `expected`, as `ibi` gives them.
    ours: Value,
    decisions: Vec<String>,
}

impl ExampleRow {
    fn name(&self) -> String {
        format!("{} {}", self.seed, self.place)
    }

    /// The expected result.
    fn wanted(&self) -> Value {
        let mut wanted = self.expected.clone();
        if !self.ours.is_null() {
            replace(&mut wanted, &self.ours);
        }
        wanted
    }

    fn run(&self, world: &WorkedWorld) -> Result<Value, String> {
        let run = || match self.kind.as_str() {
            "label" => urls::label(world, &self.input),
            "labels" => labels::read(&self.input),
            "distributor" => labels::distributed(&self.input),
            "to decimal" => labels::to_decimal(&self.input),
            "from decimal" => labels::from_decimal(&self.input),
            "digits" => labels::digits(&self.input),
            "import" => archives::imported(&self.input),
            "relative link" => archives::linked(&self.input),
            "pairs of a list" => labels::pairs(&self.input),
            "special characters" => resolver_side::special(&self.input),
            "sent to the Archive" => resolver_side::sent(&self.input),
            "registration keys" => resolver_side::keys(&self.input),
            "registration" => resolver_side::registered(&self.input),
            "going online" => resolver_side::included(&self.input),
            "conversation" => resolver_side::conversation(&self.input),
            "persistent URLs" => urls::led(world, &self.input),
            "URLs that are read" => urls::read(world, &self.input),
            "answer" => archives::answer(world, &self.input),
            "subjects" => family::subjects(world, &self.input),
            "demanded pairs" => family::demanded(world, &self.input),
            "forms" => family::forms(world, &self.input),
            "relations" => family::relations(world, &self.input),
            "languages" => family::languages(world, &self.input),
            "pair values" => family::values(&self.input),
            "routines" => routines::seen(world, &self.input),
            other => Value::String(format!("no runner for `{other}`")),
        };
        catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
        })
    }
}

#[test]
fn every_worked_example_comes_out_or_differs_by_a_decision() {
    let rows = rows();
    for (seed, count) in ROWS {
        assert_eq!(rows.iter().filter(|row| row.seed == seed).count(), count, "rows of {seed}");
    }
    let mut places: Vec<String> = rows.iter().map(ExampleRow::name).collect();
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 80, "a place stands twice");
    let decided = crate::standard::decisions();
    let world = WorkedWorld::default();
    let mut wrong = Vec::new();
    for row in &rows {
        let (name, wanted) = (row.name(), row.wanted());
        for decision in &row.decisions {
            assert!(decided.contains(decision), "{name}: there is no decision {decision}");
        }
        assert_eq!(row.decisions.is_empty(), row.ours.is_null(), "{name}: a difference has a decision");
        assert!(row.ours.is_null() || wanted != row.expected, "{name}: `ours` is what the document prints");
        let found = row.run(&world).and_then(|found| match difference(&wanted, &found) {
            None => Ok(found),
            Some(difference) => Err(difference),
        });
        match found {
            Err(difference) => wrong.push(format!("{name}: {difference}")),
            Ok(found) => wrong.extend(
                blind_spots(&wanted, &found)
                    .map(|leaf| format!("{name}: a wrong expectation is not noticed at {leaf}")),
            ),
        }
    }
    assert!(wrong.is_empty(), "{} of 80:\n{}", wrong.len(), wrong.join("\n"));
}

/// The control: a change planted into each leaf of an expectation must be detected.
fn blind_spots<'a>(wanted: &'a Value, found: &'a Value) -> impl Iterator<Item = String> + 'a {
    leaves(wanted, String::new()).into_iter().filter(move |leaf| {
        let mut planted = wanted.clone();
        let place = planted.pointer_mut(leaf).unwrap();
        *place = Value::String(format!("{place} planted"));
        difference(&planted, found).is_none()
    })
}

/// The pointers (RFC 6901) of all leaf values.
fn leaves(value: &Value, at: String) -> Vec<String> {
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(members) if !members.is_empty() => members
            .iter()
            .flat_map(|(name, value)| leaves(value, format!("{at}/{}", escaped(name))))
            .collect(),
        Value::Array(values) if !values.is_empty() => {
            values.iter().enumerate().flat_map(|(i, value)| leaves(value, format!("{at}/{i}"))).collect()
        }
        _ => vec![at],
    }
}

/// The differences from the expectation: additional members are ignored, everything else counts.
fn difference(expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => expected.iter().find_map(|(name, value)| {
            let found = found.get(name).unwrap_or(&Value::Null);
            difference(value, found).map(|difference| format!("{name}: {difference}"))
        }),
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let mut both = expected.iter().zip(found).enumerate();
            both.find_map(|(i, (expected, found))| {
                difference(expected, found).map(|difference| format!("{i}: {difference}"))
            })
        }
        _ => (expected != found).then(|| format!("`{expected}` is expected, `{found}` came out")),
    }
}

#[test]
fn what_is_not_as_expected_is_found() {
    let found = serde_json::json!({ "a": ["1", { "b": "2" }], "more": true });
    let same = serde_json::json!({ "a": ["1", { "b": "2" }] });
    assert_eq!(difference(&same, &found), None);
    assert_eq!(blind_spots(&same, &found).count(), 0);
    for wrong in [
        serde_json::json!({ "a": ["1"] }),
        serde_json::json!({ "a": ["1", { "b": "3" }] }),
        serde_json::json!({ "a": ["1", { "c": "2" }] }),
        serde_json::json!({ "z": "" }),
    ] {
        assert!(difference(&wrong, &found).is_some(), "{wrong}");
    }
}

fn rows() -> Vec<ExampleRow> {
    let rows: Vec<Value> = serde_json::from_str(include_str!("fixtures/worked-examples.json")).unwrap();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let row = |row: &Value| {
        let decisions = row["decision"].as_str().unwrap_or_default();
        let known = ["seed", "place", "kind", "input", "expected", "ours", "decision", "reproduced", "note"];
        assert!(row.as_object().unwrap().keys().all(|name| known.contains(&name.as_str())), "{row}");
        let marks = ["reproduced", "decision"].iter().filter(|mark| !row[**mark].is_null()).count();
        assert_eq!(marks, 1, "{row}: reproduced, or differing by a decision");
        ExampleRow {
            seed: text(row, "seed"),
            place: text(row, "place"),
            kind: text(row, "kind"),
            input: looked_up(&row["input"]),
            expected: looked_up(&row["expected"]),
            ours: looked_up(&row["ours"]),
            decisions: decisions.split(", ").filter(|id| !id.is_empty()).map(str::to_owned).collect(),
        }
    };
    rows.iter().map(row).collect()
}

/// A value, with `{"from": "FILE#POINTER"}` replaced by the value there: other tests share the
/// data.
fn looked_up(value: &Value) -> Value {
    match value {
        Value::Object(members) if members.contains_key("from") => {
            let (file, pointer) = members["from"].as_str().unwrap().split_once('#').unwrap();
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            let data: Value = serde_json::from_str(&text).unwrap();
            let found = data.pointer(pointer).unwrap();
            if members.contains_key("pairs") { replay::normal_pairs(found) } else { found.clone() }
        }
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), looked_up(value))).collect()
        }
        Value::Array(values) => values.iter().map(looked_up).collect(),
        other => other.clone(),
    }
}

/// Replaces values member by member; `null` removes one.
fn replace(value: &mut Value, instead: &Value) {
    match (value, instead) {
        (Value::Object(value), Value::Object(instead)) => {
            for (name, instead) in instead {
                replace(value.entry(name.clone()).or_insert(Value::Null), instead);
            }
        }
        (value, instead) => *value = instead.clone(),
    }
}

/// The texts of a list, or of a member of an object.
fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// An object with the result of a function for each of some texts.
fn each(texts: &[&str], mut gives: impl FnMut(&str) -> Value) -> Value {
    let all: BTreeMap<&str, Value> = texts.iter().map(|text| (*text, gives(text))).collect();
    serde_json::to_value(all).unwrap()
}
