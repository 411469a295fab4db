//! Threat K1: registration keys and tokens are in no log, page, response, metric or file.

use super::scripted::{Scripted, tell};
use super::{Folder, Resolver, ask, until};

/// Planted keys: a correct one, and a wrong one.
const KEY: &str = "5550199555-0199555019955501995550";
const WRONG: &str = "7770177777-0177777017777701777770";
const SERVICE: &str = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";

#[test]
fn no_key_and_no_token_is_seen_again() {
    let folder = Folder::new();
    let item = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let resolver = Resolver::new();
    let token = resolver.token();
    let mut seen: Vec<(String, Vec<u8>)> = Vec::new();
    for service in [folder.service.as_str(), SERVICE] {
        let run = resolver.run("register", &["--service", service, "--key", KEY, "--json"]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        seen.push((format!("register {service}"), (run.stdout + &run.stderr).into_bytes()));
    }
    std::fs::write(folder.place.path().join("key"), KEY).unwrap();
    let server = resolver.serve();
    let archive = resolver.on_line(&folder);
    let scripted = Scripted::with(SERVICE, "sid.inpe.br/mtc-m18@80/2009/07.21.14.43", "/a");
    let mut keep = |what: &str, reply: &super::Reply| {
        let headers = format!("{:?}", reply.lasting_headers());
        seen.push((what.to_owned(), [headers.as_bytes(), &reply.body].concat()));
    };
    for key in [KEY, WRONG] {
        for subject in ["inclusionRequest", "exclusionRequest", "urlRequest", "acknowledgment", "nonsense"] {
            keep(subject, &scripted.tell(&resolver, subject, key));
        }
        // In the wrong places: in a query, in a header, in a body, in a malformed request.
        for path in [
            format!("/{item}?registrationkey={key}&explain"),
            format!("/{item}!!?registrationkey={key}"),
            format!("/?registrationkey={key}"),
            format!("/api/v1/archives?registrationkey={key}"),
            format!("/{SERVICE}?servicesubject=inclusionRequest&registrationkey={key}"),
        ] {
            // The item's own pairs are sent back to the client, and not stored.
            let reply =
                server.get_with(&path, &format!("Ibi-Registration-Key: {key}\r\nCookie: a={key}\r\n"));
            assert_ne!(reply.status, 500, "{path}");
        }
        for secret in [key, &token, "ibi_canarycanarycanarycanarycanarycanarycanarycanarycanarycanary42"] {
            let header = format!("Authorization: Bearer {secret}\r\n");
            for (method, path, body) in [
                ("GET", "/api/v1/alerts", String::new()),
                ("GET", "/api/v1/registry", String::new()),
                ("PUT", "/api/v1/registry", "nonsense".to_owned()),
                ("POST", "/api/v1/archives", format!("{{\"service\": \"{SERVICE}\", \"key\": \"{KEY}\"}}")),
                ("POST", "/api/v1/archives", format!("{{\"service\": \"none\", \"key\": \"{key}\"}}")),
                ("POST", "/api/v1/archives", format!("{{\"service\": \"{SERVICE}\", \"key\": \"{key}x\"}}")),
                ("POST", "/api/v1/archives", format!("{{\"service\": \"{SERVICE}\", \"{key}\": \"{key}\"}}")),
                ("POST", "/api/v1/archives/retire", "{".to_owned()),
            ] {
                let reply = ask(&resolver.at, method, path, &header, body.as_bytes());
                assert_ne!(reply.status, 500, "{method} {path}");
                // An unknown field is named in the error: it is no key of ours.
                if !body.contains(&format!("\"{key}\":")) {
                    keep(&format!("{method} {path} {body}"), &reply);
                }
            }
        }
    }
    for path in ["/", "/metrics", "/api/v1/archives", "/api/v1/openapi.json"] {
        keep(path, &server.get(path));
    }
    let broken = format!(
        "GET /{SERVICE}?registrationkey={KEY} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nHost\r\n\r\n"
    );
    let broken = server.raw(broken.as_bytes());
    seen.push(("a broken request".to_owned(), broken));
    for command in ["archives", "export", "alerts", "token list"] {
        let run = resolver.run(command, &[]);
        assert_eq!(run.status, 0, "{command}: {}", run.stderr);
        seen.push((command.to_owned(), (run.stdout + &run.stderr).into_bytes()));
    }
    // A failure is logged.
    tell(&resolver, "inclusionRequest", "127.0.0.1:9", SERVICE, WRONG);
    until("there is a log to look at", || server.log().contains("refused: not registered, or a wrong key"));
    seen.push(("the Archive's log".to_owned(), archive.stop().1.into_bytes()));
    seen.push(("the log".to_owned(), server.stop().1.into_bytes()));
    let secrets = [&KEY[..10], &KEY[11..], &WRONG[..10], &WRONG[11..], token.strip_prefix("ibi_").unwrap()];
    for (what, bytes) in &seen {
        let text = String::from_utf8_lossy(bytes);
        for secret in secrets {
            assert!(!text.contains(secret), "{what} tells {secret}: {text}");
        }
    }
    let kept = resolver.data().display().to_string();
    for secret in secrets {
        let found = std::process::Command::new("grep").args(["-rlaF", secret, &kept]).output().unwrap();
        assert_eq!(String::from_utf8(found.stdout).unwrap(), "", "a secret is on disk");
    }
}
