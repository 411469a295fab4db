//! Editions, translations and originals in different Archives (clause 4.2).

use super::{Folder, Resolver, Scripted, follow, location, until};
use crate::binary::ibi;
use crate::online::rep;

/// Clause 4.2 step 4: a copy may be behind, so an Archive that knows a next edition beats one that
/// does not.
#[test]
fn a_later_edition_in_another_archive_beats_a_copy_that_is_behind() {
    let [a, b] = [Folder::new(), Folder::new()];
    let first = a.deposit(&[(b"a.txt", b"first")], &["--language", "en"]);
    b.put(&[(b"a.txt", b"first")], &["--label", &first, "--language", "en"]);
    let second = b.deposit(&[(b"a.txt", b"second")], &["--next-edition-of", &first]);
    let other = &["--translation-of", &first, "--language", "pt"];
    let translated = b.deposit(&[(b"a.txt", b"primeira")], other);
    let data = a.data().display().to_string();
    let trusts = ibi(&["archive", "links", "trust", &b.service, "--data", &data]);
    assert_eq!(trusts.status, 0, "{}", trusts.stderr);
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archives = [resolver.on_line(&a), resolver.on_line(&b)];
    until("the Archive of the first edition accepts the second, and the translation", || {
        let links = b.archive("links list", &["--status", "accepted"]).json();
        [&second, &translated].into_iter().all(|item| links.iter().any(|link| link["newer"] == **item))
    });
    // Within the grace period: a loaded machine may need a few tries.
    until("the later one is chosen", || follow(&server.get(&format!("/{first}!"))).body == b"second");
    assert_eq!(follow(&server.get(&format!("/{first}+(pt)"))).body, b"primeira", "only the other has it");
    // Step 3: the Original, however fast the copy is.
    let original = format!("/{first}?ibiurl.requireditemstatus=Original");
    for _ in 0..5 {
        assert!(location(&server.get(&original)).contains(&archives[0].at));
    }
    // Step 6: by the client's languages; the item itself, if none fits.
    for (languages, content) in [("pt-BR", "primeira"), ("en;q=0.9,pt;q=0.8", "first"), ("fr", "first")] {
        let reply = server.get_with(&format!("/{first}+"), &format!("Accept-Language: {languages}\r\n"));
        assert_eq!(follow(&reply).text(), content, "{languages}");
    }
}

/// Clause 4.2 step 5, §8.2: one Archive knows the next edition, another has it and its metadata.
#[test]
fn a_chain_goes_from_archive_to_archive() {
    let folder = Folder::new();
    let item = folder.put(&[(b"a.txt", b"second")], &["--dc", "title=Second"]);
    let next = rep(&item);
    let first = "sid.inpe.br/mtc-m18@80/2009/07.21.14.43";
    let other = Scripted::new("sid.inpe.br/mtc-m18@80/2008/03.17.15.17", move |question, _| {
        let is_first = question.value("parsedibiurl.ibi") == first;
        if is_first {
            format!("ibi {{rep {first}}}\r\nibi.nextedition {{rep {next}}}\r\n")
        } else {
            String::new()
        }
    });
    let resolver = Resolver::new();
    let server = resolver.serve();
    let _archive = resolver.on_line(&folder);
    other.come(&resolver);
    assert_eq!(follow(&server.get(&format!("/{first}!"))).body, b"second");
    assert_eq!(follow(&server.get(&format!("/{first}!/a.txt"))).body, b"second", "the path goes along");
    assert!(
        follow(&server.get(&format!("/{first}!:(oai_dc)"))).text().contains("<dc:title>Second</dc:title>")
    );
    assert!(location(&server.get(&format!("/{first}!?ibiurl.verblist=GetFileList"))).ends_with("/files"));
    let verbs: Vec<String> = other
        .asked("urlRequest")
        .iter()
        .map(|question| question.value("parsedibiurl.verblist").to_owned())
        .collect();
    assert!(verbs.contains(&"GetLastEdition%20GetMetadata(oai_dc)".to_owned()), "D16: {verbs:?}");
}
