//! Chains of editions over several Archives, and the response where they end in nothing (4.2 steps
//! 4 and 5, 4.3).

use serde_json::json;

use super::outcomes::told;
use super::scripted::Question;
use super::{Folder, Resolver, Scripted, follow, location, until};

const INPE: &str = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";
const USP: &str = "usp.br/archive/2008/03.17.15.17";

fn edition(number: usize) -> String {
    format!("sid.inpe.br/mtc-m18/2009/02.16.17.{number:02}")
}

/// The number of the requested edition, if it is one that an Archive holds.
fn asked(question: &Question, holds: impl Fn(usize) -> bool) -> Option<usize> {
    let label = question.value("parsedibiurl.ibi");
    let number = label.strip_prefix("sid.inpe.br/mtc-m18/2009/02.16.17.")?.parse().ok()?;
    holds(number).then_some(number)
}

/// An Archive that holds some editions of a chain, and knows the next of each.
fn holder(service: &str, last: usize, holds: impl Fn(usize) -> bool + Send + 'static) -> Scripted {
    Scripted::new(service, move |question, at| {
        let Some(number) = asked(question, &holds) else { return String::new() };
        let ibi = format!("ibi {{rep {}}}\r\n", edition(number));
        if number < last {
            return format!("{ibi}ibi.nextedition {{rep {}}}\r\n", edition(number + 1));
        }
        format!(
            "{ibi}ibi.lastedition {{rep {}}}\r\nurl.lastedition http://{at}/last\r\nstate.lastedition Original\r\n",
            edition(number)
        )
    })
}

/// Clause 4.2 step 5: 32 rounds.
#[test]
fn a_chain_of_thirty_editions_over_two_archives_is_followed() {
    let archives = [holder(INPE, 30, |number| number % 2 == 0), holder(USP, 30, |number| number % 2 == 1)];
    let resolver = Resolver::new();
    let server = resolver.serve();
    archives.iter().for_each(|archive| archive.come(&resolver));
    let found = server.get(&format!("/{}!", edition(1)));
    assert_eq!(location(&found), format!("http://{}/last", archives[0].at));
    // The same in the terminal.
    let run = resolver.run("resolve", &[&format!("{}!", edition(1)), "--allow-private"]);
    assert_eq!((run.status, run.stdout), (0, format!("http://{}/last\n", archives[0].at)));
}

/// Clause 4.2 step 4: a Copy's claim that there is no next edition waits for the Original's.
#[test]
fn copies_of_both_editions_elsewhere_never_lead_to_the_old_one() {
    let [a, b] = [Folder::new(), Folder::new()];
    let first = a.deposit(&[(b"a.txt", b"first")], &[]);
    let second = a.deposit(&[(b"a.txt", b"second")], &["--next-edition-of", &first]);
    for (label, bytes) in [(&first, b"first" as &[u8]), (&second, b"second")] {
        b.put(&[(b"a.txt", bytes)], &["--label", label]);
    }
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archives = [resolver.on_line(&a), resolver.on_line(&b)];
    for number in 0..200 {
        let found = server.get(&format!("/{first}!"));
        assert!(location(&found).contains(&format!("/col/{second}/")), "{number}: {}", location(&found));
    }
    assert_eq!(follow(&server.get(&format!("/{first}!"))).body, b"second");
    drop(archives);
}

/// Clauses 2.4 and 4.3: a newer edition that nobody has is named, and the older one offered; 503
/// while an Archive is silent.
#[test]
fn a_newer_edition_that_nobody_has_is_named_and_the_older_one_offered() {
    let [first, second] = [edition(1), edition(2)];
    let archive = Scripted::new(INPE, |question, at| match asked(question, |number| number == 1) {
        Some(_) => format!(
            "ibi {{rep {}}}\r\nibi.nextedition {{rep {}}}\r\nibi.lastedition {{rep {}}}\r\n\
             url.lastedition http://{at}/old\r\nstate.lastedition Original\r\n",
            edition(1),
            edition(2),
            edition(1)
        ),
        None => String::new(),
    });
    let resolver = Resolver::new();
    let server = resolver.serve();
    archive.come(&resolver);
    let url = format!("/{first}!");
    let (json, text) = told(&server, &url, 404, ["Not found", "Não encontrado"]);
    assert_eq!(
        (&json["unheld"], &json["offered"]),
        (&json!(format!("rep {second}")), &json!([format!("/{first}")]))
    );
    assert!(text.contains(&format!("Not held by any Archive: rep {second}\n")), "{text}");
    let page = server.get_with(&url, "Accept: text/html\r\n").text();
    assert!(page.contains(&format!("<a href=\"/{first}\">")) && page.contains(&second), "{page}");
    let told = resolver.run("resolve", &[&url, "--allow-private"]);
    assert!(told.status == 1 && told.stderr.contains(&second), "{}", told.stderr);
    // A silent Archive may have it.
    resolver.register(USP);
    until("the silent one counts", || server.get(&url).status == 503);
}

/// Clauses 3.4 and 4.3: a removed edition in the middle is skipped; if the last one was removed,
/// the last existing one is named.
#[test]
fn removed_editions_lead_on_or_are_a_410_that_links_the_last_one_that_lives() {
    let archive = Scripted::new(INPE, |question, at| {
        let Some(number) = asked(question, |number| (1..=4).contains(&number)) else { return String::new() };
        let ibi = format!("ibi {{rep {}}}\r\n", edition(number));
        let removed = "state Deleted\r\ntimestamp 2020-01-01T00:00:00Z\r\n";
        let has_editions = question.value("parsedibiurl.verblist").contains("GetLastEdition");
        let next = if has_editions && number < 4 {
            format!("ibi.nextedition {{rep {}}}\r\n", edition(number + 1))
        } else {
            String::new()
        };
        match number {
            2 | 4 => format!("{ibi}{removed}{next}"),
            _ if has_editions => format!("{ibi}{next}"),
            _ => format!("{ibi}url http://{at}/{number}\r\nstate Original\r\n"),
        }
    });
    let resolver = Resolver::new();
    let server = resolver.serve();
    archive.come(&resolver);
    let (json, _) = told(&server, &format!("/{}!", edition(1)), 410, ["Removed", "Removido"]);
    assert_eq!(json["item"], format!("rep {}", edition(4)));
    assert_eq!(
        json["offered"],
        json!([format!("/{}", edition(3))]),
        "not the first, and not the removed second"
    );
    let page = server.get_with(&format!("/{}!", edition(1)), "Accept: text/html\r\n").text();
    assert!(page.contains(&format!("<a href=\"/{}\">", edition(3))), "{page}");
    assert!(location(&server.get(&format!("/{}", edition(3)))).ends_with("/3"));
}

/// Clause 1.3: two items imported under spellings of one identifier; a third spelling is 300,
/// naming both.
#[test]
fn a_spelling_that_is_canonical_for_several_items_is_300_naming_them() {
    let folder = Folder::new();
    let spellings = ["x.org/w@80/1998/08.02.08.56", "x.org/w/1998/08.02.08.56.00"];
    for (label, bytes) in spellings.iter().zip([b"one" as &[u8], b"two"]) {
        folder.put(&[(b"a.txt", bytes)], &["--label", label]);
    }
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archive = resolver.on_line(&folder);
    let canonical = "/x.org/w/1998/08.02.08.56";
    let (json, text) = told(&server, &format!("{canonical}:"), 300, ["Several items", "Vários itens"]);
    assert_eq!(json["type"], "urn:ibi:problem:several-items");
    let mut offered: Vec<String> = serde_json::from_value(json["offered"].clone()).unwrap();
    offered.sort();
    assert_eq!(offered, ["/x.org/w/1998/08.02.08.56.00:", "/x.org/w@80/1998/08.02.08.56:"]);
    assert!(offered.iter().all(|path| text.contains(path)), "{text}");
    for (label, bytes) in spellings.iter().zip([b"one", b"two"]) {
        assert_eq!(follow(&server.get(&format!("/{label}"))).body, bytes, "each in its own spelling");
    }
    // The Archive's own address gives the same response.
    let own = archive.get_with(canonical, "Accept: application/json\r\n");
    assert_eq!(own.status, 300, "{}", own.text());
    assert!(spellings.iter().all(|label| own.text().contains(label)), "{}", own.text());
}

/// Clause 4.3: a label reserved for a draft.
#[test]
fn a_reserved_label_is_403() {
    let archive = Scripted::new(INPE, |question, _| match asked(question, |number| number == 1) {
        Some(_) => format!("ibi {{rep {}}}\r\nstate Reserved\r\n", edition(1)),
        None => String::new(),
    });
    let resolver = Resolver::new();
    let server = resolver.serve();
    archive.come(&resolver);
    let (json, _) = told(&server, &format!("/{}:", edition(1)), 403, ["Reserved", "Reservado"]);
    assert_eq!(json["type"], "urn:ibi:problem:reserved");
}
