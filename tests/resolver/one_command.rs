//! `ibi serve`: an Archive and a resolver in one process.

use std::path::Path;

use super::{Server, follow, location, until};
use crate::binary::ibi;
use crate::online::rep;

/// The claims of its prefix are removed with it.
struct Claims(String);

impl Drop for Claims {
    fn drop(&mut self) {
        for folder in ["/run/lock", "/var/tmp"] {
            let _ = std::fs::remove_file(format!("{folder}/ibi-localhost+{}", self.0));
        }
    }
}

/// The token that it printed on standard error.
fn token(server: &Server) -> String {
    until("it says its token", || server.log().contains("curl -L"));
    let log = server.log();
    let line = log.lines().find(|line| line.starts_with("token for deposits over the API")).unwrap();
    line.rsplit(' ').next().unwrap().to_owned()
}

fn serve(data: &Path, arguments: &[&str]) -> Server {
    Server::run(&["serve"], data, arguments)
}

#[test]
fn one_command_is_all_it_takes() {
    let place = tempfile::tempdir().unwrap();
    let (data, folder) = (place.path().join("a folder"), place.path().join("a folder").display().to_string());
    // Only the data folder is given.
    let mut server = serve(&data, &[]);
    let listed = ibi(&["archive", "list", "--data", &folder, "--json"]).json();
    let service = rep(&listed[0]);
    let word = service.strip_prefix("localhost/").unwrap().split('/').next().unwrap().to_owned();
    let _claims = Claims(word);
    assert!(server.at.starts_with("127.0.0.1:80"), "{}", server.at);
    let token = token(&server);
    let log = server.log();
    for word in ["not globally unique", "archive deposit ", "curl -L http://", &folder] {
        assert!(log.contains(word), "it does not say {word}: {log}");
    }

    // A deposit by a command, while it runs.
    let file = place.path().join("a.txt");
    std::fs::write(&file, "one").unwrap();
    let file = file.display().to_string();
    let run = ibi(&["archive", "deposit", &file, "--data", &folder, "--json", "--dc", "title=One"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let first = rep(&run.json()[0]);
    // And one over the API, with the token.
    let draft = server.api(&token, "POST", "/drafts", b"").json();
    let draft = format!("/drafts/{}", draft["id"].as_str().unwrap());
    assert_eq!(server.api(&token, "PUT", &format!("{draft}/files/b.txt"), b"two").status, 200);
    let committed = server.api(&token, "POST", &format!("{draft}/publish"), b"");
    assert!([200, 201].contains(&committed.status), "{}", committed.text());
    let second = rep(&committed.json());
    assert_eq!(server.api("", "POST", "/drafts", b"").status, 401);

    until("its own Archive is online", || server.get(&format!("/{first}")).status == 302);
    assert_eq!(
        location(&server.get(&format!("/{first}"))),
        format!("http://{}/col/{first}/doc/a.txt", server.at)
    );
    for (item, bytes) in [(&first, b"one"), (&second, b"two")] {
        assert_eq!(follow(&server.get(&format!("/{item}"))).body, bytes);
    }
    assert!(follow(&server.get(&format!("/{first}:"))).text().contains("One"));
    assert_eq!(server.get("/8JMKD3MGP8W/34PGRBS").status, 404);
    // A chosen language stays, whichever of the two made the page or the redirect.
    let page = |path: &str| server.get_with(path, "Accept: text/html\r\nAccept-Language: en\r\n");
    for path in ["/?ibiurl.lang=pt", "/?lang=pt", "/nada?lang=pt", "/nada?ibiurl.lang=pt"] {
        assert!(page(path).text().contains("<html lang=\"pt\">"), "{path}");
    }
    let metadata = page(&format!("/{first}:?ibiurl.lang=pt"));
    assert!(location(&metadata).ends_with("/?lang=pt"), "{}", location(&metadata));
    assert!(!location(&page(&format!("/{first}?ibiurl.lang=pt"))).contains("lang="), "a file has none");
    // Both have their API, their pages and their service at one address.
    assert_eq!(server.api("", "GET", "/archives", b"").json()["archives"][0]["service"], service);
    assert_eq!(server.api("", "GET", &format!("/items/{first}"), b"").json()["rep"], first);
    assert_eq!(
        server.get(&format!("/{service}?servicesubject=inclusionConfirmationRequest")).text(),
        "confirmation yes"
    );
    assert_eq!(server.get("/readyz").text(), "ready\n");
    // The commands of a resolver work on the same folder.
    let archives = ibi(&["resolver", "archives", "--data", &folder, "--json"]).json();
    assert_eq!(archives[0]["standing"], "online");
    // Everything is on this machine: the folder is marked as one of `ibi serve`.
    let found = std::process::Command::new(crate::binary::IBI)
        .args(["resolver", "resolve", &first, "--data", &folder])
        .env("IBI_ALLOW_PRIVATE", "no")
        .output()
        .unwrap();
    let found = (found.status.code(), String::from_utf8(found.stdout).unwrap());
    assert_eq!(found, (Some(0), format!("{}\n", location(&server.get(&format!("/{first}"))))));

    // Only once.
    for command in [&["serve"][..], &["archive", "serve"]] {
        let again = ibi(&[command, &["--data", &folder, "--listen", "127.0.0.1:0"]].concat());
        assert_eq!((again.status, again.stdout.as_str()), (4, ""), "{}", again.stderr);
        assert!(
            again.stderr.contains("another server already serves") && again.stderr.contains(&folder),
            "{}",
            again.stderr
        );
    }
    assert_eq!(follow(&server.get(&format!("/{first}"))).body, b"one", "it did no harm");

    server.signal("-TERM");
    let (status, rest) = (server.end(), server.rest());
    assert_eq!((status, rest.as_str()), (Some(0), ""), "one address on stdout: {}", server.log());
    assert!(server.log().contains("\noffline\n") && !server.log().contains("panicked"), "{}", server.log());

    // Restarted at another address, it uses the same data; the previous token is refused.
    let again = serve(&data, &["--listen", "127.0.0.1:0"]);
    until("it is online again", || again.get(&format!("/{first}")).status == 302);
    for (item, bytes) in [(&first, b"one"), (&second, b"two")] {
        let reply = again.get(&format!("/{item}"));
        assert!(location(&reply).contains(&again.at));
        assert_eq!(follow(&reply).body, bytes);
    }
    assert_eq!(again.api(&token, "POST", "/drafts", b"").status, 401);
    assert_eq!(again.api(&self::token(&again), "POST", "/drafts", b"").status, 201);
    // A kill does no harm.
    let mut again = again;
    again.signal("-KILL");
    again.end();
    let last = serve(&data, &["--listen", "127.0.0.1:0"]);
    until("it is online again", || last.get(&format!("/{first}")).status == 302);
    assert_eq!(last.stop().0, Some(0));
}

/// Its links would have an unusable address.
#[test]
fn all_addresses_are_no_address() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let run = ibi(&["serve", "--data", &data.display().to_string(), "--listen", listen]);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        assert!(
            run.stderr.contains("needs one address") && run.stderr.contains("ibi resolver serve"),
            "{}",
            run.stderr
        );
    }
    assert!(!data.exists(), "nothing was made");
}
