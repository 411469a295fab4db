//! The routines of 003 Algorithms 1 and 2, each seen by what it puts into an answer.

use serde_json::Value;

use super::family::FamilyArchive;
use super::{WorkedWorld, each, texts};
use crate::online::client::Reply;

/// Tables 7.1 and 7.2: the work of each routine.
pub(super) fn seen(world: &WorkedWorld, input: &Value) -> Value {
    let archive = world.family.get_or_init(FamilyArchive::new);
    each(&texts(input), |routine| work(archive, routine).into())
}

fn work(archive: &FamilyArchive, routine: &str) -> String {
    let first = archive.first.as_str();
    match routine {
        "DECODQS" => {
            let pairs = [
                "servicesubject=urlRequest",
                "clientinformation.ipaddress=192.0.2.1",
                &format!("parsedibiurl.ibi={first}"),
            ];
            let same = |query: &str| archive.ask_raw(query).pair("ibi").contains(first);
            let reversed: Vec<&str> = pairs.iter().rev().copied().collect();
            match same(&pairs.join("&")) && same(&reversed.join("&")) {
                true => "pairs in any order are the same question".to_owned(),
                false => "the order of pairs counts".to_owned(),
            }
        }
        "MONTARLISTADEURL" => {
            let prefix = |name: String| name.split('.').next().unwrap_or_default().to_owned();
            joined(names(&archive.ask(first, "&clientinformation.wants=all")).map(prefix))
        }
        "FILTRARLISTADEURL" => {
            let answer = archive.ask(first, "&parsedibiurl.verblist=GetMetadata");
            let constant = ["archiveservice", "platformsoftware", "nextedition"];
            joined(names(&answer).filter(|name| {
                name.split_once('.').is_some_and(|(_, relation)| !constant.contains(&relation))
            }))
        }
        "CRIARPAR" => {
            let other = ["state", "ibi", "ibi.nextedition", "url"];
            joined(names(&archive.ask(first, "")).filter(|name| !other.contains(&name.as_str())))
        }
        "CRIARPARSTATE" => {
            let unknown = archive.ask("example.org/nobody/2020/01.01.01.01", "").text();
            let of_unknown = if unknown.trim().is_empty() { "nothing" } else { "something" };
            format!("{} of what is held, {of_unknown} of what is not", archive.ask(first, "").pair("state"))
        }
        "JUNTAR" => {
            let answer = archive.ask(first, "");
            match answer.text().lines().count() == answer.pairs().len() {
                true => "each pair on a line of its own".to_owned(),
                false => "pairs share lines".to_owned(),
            }
        }
        "CRIARPARNEXTEDITION" => {
            let verb = "&parsedibiurl.verblist=GetLastEdition";
            let next = |ibi: &str| match archive.ask(ibi, verb).pair("ibi.nextedition") {
                next if next.is_empty() => "nothing",
                next if next.contains(&archive.second) => "the second edition",
                _ => "another item",
            };
            format!("{} of the first, {} of the second", next(first), next(&archive.second))
        }
        "CRIARPARIBI" => {
            let answer = archive.ask(first, "&clientinformation.wants=all");
            let wanted = ["ibi", "ibi.lastedition", "ibi.metadata"];
            joined(names(&answer).filter(|name| wanted.contains(&name.as_str())))
        }
        "CRIARPARURL" => {
            let url = archive.ask(first, "&parsedibiurl.filepath=/file.txt").pair("url");
            let end = url.rfind('/').map_or("", |at| &url[at..]);
            format!("url {end}")
        }
        other => format!("no routine `{other}`"),
    }
}

fn names(answer: &Reply) -> impl Iterator<Item = String> {
    answer.pairs().into_iter().map(|(name, _)| name)
}

fn joined(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    names.join(" ")
}
