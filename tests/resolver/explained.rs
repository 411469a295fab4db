//! Explanations of a resolution, on the Web and in the terminal.

use super::{Folder, PUBLIC, Resolver, follow, location};

#[test]
fn an_explanation_tells_who_was_asked_what_they_said_and_why() {
    let [a, b] = [Folder::new(), Folder::new()];
    let first = b.deposit(&[(b"a.txt", b"first")], &[]);
    let second = b.deposit(&[(b"a.txt", b"second")], &["--next-edition-of", &first]);
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archives = [resolver.on_line(&a), resolver.on_line(&b)];
    let url = format!("/{first}!");
    let to = format!("http://{}/col/{second}/doc/a.txt", archives[1].at);

    let json = server.get_with(&format!("{url}?explain"), "Accept: application/json\r\n");
    assert_eq!((json.status, json.header("location")), (200, ""));
    let json = json.json();
    assert_eq!((&json["status"], &json["location"]), (&302.into(), &to.as_str().into()));
    assert_eq!(json["persistent"], format!("{PUBLIC}{url}"));
    let round = &json["rounds"][0];
    assert_eq!(round["question"], format!("{first}!"));
    let query = round["query"].as_str().unwrap();
    assert!(query.contains("parsedibiurl.verblist=GetLastEdition&servicesubject=urlRequest"), "{query}");
    let heard = |folder: &Folder| {
        let all = round["archives"].as_array().unwrap();
        all.iter().find(|heard| heard["archive"] == folder.service).unwrap()
    };
    assert_eq!([&heard(&a)["address"], &heard(&b)["address"]], [&archives[0].at, &archives[1].at]);
    assert!(["nothing", "waiting"].contains(&heard(&a)["said"].as_str().unwrap()), "{}", heard(&a));
    let chosen = heard(&b);
    assert_eq!((&chosen["said"], &chosen["offers"][0]["url"]), (&"offered".into(), &to.as_str().into()));
    // Asked, or from the index.
    let is_timed = chosen["microseconds"].as_u64().is_some_and(|time| time > 0);
    assert!(is_timed || chosen["index_age"].is_u64(), "{chosen}");
    assert!(chosen["next_edition"].is_string(), "{chosen}");
    let because = json["because"].as_str().unwrap();
    assert!(because.contains("(4.2 step 4)"), "{because}");

    let text = server.get_with(&format!("{url}?explain"), "Accept: text/plain\r\n");
    assert_eq!((text.status, text.header("content-type")), (200, "text/plain; charset=utf-8"));
    let text = text.text();
    assert!(text.starts_with(&format!("{PUBLIC}{url}\n")) && text.ends_with(&format!("-> {to}\n")), "{text}");
    for word in [&a.service, &b.service, &archives[1].at, "302: ", " ms"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    for (language, title) in [("en", "How this was resolved"), ("pt", "Como isto foi resolvido")] {
        let page =
            server.get_with(&format!("{url}?explain"), &format!("Accept-Language: {language}\r\n")).text();
        assert!(
            page.contains(&format!("<h1>{title}</h1>")) && page.contains(&format!("<a href=\"{to}\">")),
            "{page}"
        );
    }
    // D33: `explain` alone is ours; beside other pairs `ibiurl.explain=yes` is; anything else
    // belongs to the item.
    let beside = format!("/{first}?a=1&ibiurl.explain=yes&b");
    let json = server.get_with(&beside, "Accept: application/json\r\n").json();
    assert!(json["location"].as_str().unwrap().ends_with("/doc/a.txt?a=1&b"), "{json}");
    for items in ["explain=1", "a=1&explain&b", "explain=yes"] {
        assert!(location(&server.get(&format!("/{first}?{items}"))).ends_with(&format!("?{items}")));
    }
    assert_eq!(server.get(&format!("/{first}?ibiurl.explain=maybe")).status, 400);
    // 4.1: the text before a label is accepted, and never printed.
    let text = server.get_with(&format!("/goto/{first}?explain"), "Accept: text/plain\r\n").text();
    assert!(text.starts_with(&format!("{PUBLIC}/{first}\n")), "{text}");
    // A 404 is explained, too.
    let text = server.get_with("/8JMKD3MGP8W/34PGRBS?explain", "Accept: text/plain\r\n").text();
    assert!(text.contains("404: every Archive answered, and none has it (4.3)"), "{text}");
    assert_eq!(text.matches(": does not hold it").count(), 2, "{text}");
}

#[test]
fn the_command_resolves_and_explains() {
    let folder = Folder::new();
    let item = folder.deposit(&[(b"a.txt", b"one")], &["--language", "en"]);
    let pt = folder.deposit(&[(b"a.txt", b"um")], &["--translation-of", &item, "--language", "pt"]);
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archive = resolver.on_line(&folder);
    // The command queries Archives itself: no resolver has to be online.
    drop(server);
    let to = |rep: &str| format!("http://{}/col/{rep}/doc/a.txt", archive.at);
    for given in [item.clone(), format!("/{item}"), format!("{PUBLIC}/{item}"), format!("rep/{item}?")] {
        let run = resolver.run("resolve", &[&given, "--allow-private"]);
        assert_eq!((run.status, run.stdout.trim_end()), (0, to(&item).as_str()), "{given}: {}", run.stderr);
        assert_eq!(run.stderr, "", "no explanation was asked for");
    }
    let plus = format!("{item}+");
    let run =
        resolver.run("resolve", &[&plus, "--allow-private", "--language", "pt-BR,en;q=0.5", "--explain"]);
    assert_eq!((run.status, run.stdout.trim_end()), (0, to(&pt).as_str()));
    assert!(
        run.stderr.contains("it suits the client best (4.2 step 6)") && run.stderr.contains(&archive.at),
        "{}",
        run.stderr
    );

    let found = resolver.json("resolve", &[&item, "--allow-private", "--explain"]).pop().unwrap();
    assert_eq!(
        (&found["outcome"]["status"], &found["outcome"]["location"]),
        (&302.into(), &to(&item).into())
    );
    assert_eq!(
        (&found["outcome"]["archive"], &found["outcome"]["state"]),
        (&folder.service.as_str().into(), &"Original".into())
    );
    assert_eq!(found["explanation"]["rounds"][0]["archives"][0]["said"], "offered");
    let missing = format!("{item}+(fr)");
    let run = resolver.run("resolve", &[&missing, "--allow-private", "--json"]);
    assert_eq!(run.status, 1);
    assert_eq!(run.json()[0]["outcome"]["offered"].as_array().unwrap().len(), 2, "{}", run.stdout);
    assert_eq!(run.json()[0]["explanation"], serde_json::Value::Null);
    let run = resolver.run("resolve", &[&missing, "--allow-private"]);
    assert_eq!((run.status, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains(&format!("/{item}+(pt)")), "{}", run.stderr);
    let bad = format!("{item}!!");
    let run = resolver.run("resolve", &[&bad, "--allow-private"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("`!!` does not go together"), "{}", run.stderr);
    // Private addresses are not contacted unless allowed.
    let run = resolver.run("resolve", &[&item]);
    assert_eq!((run.status, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr.contains("Temporarily not found") && run.stderr.contains(&folder.service),
        "{}",
        run.stderr
    );
    let served = resolver.serve();
    assert_eq!(follow(&served.get(&format!("/{item}"))).body, b"one");
}
