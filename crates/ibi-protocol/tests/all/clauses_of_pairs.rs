//! 3.1, and the filter of 3.4.

use ibi_protocol::{LabelForms, Pairs, PairsError, PairsLimits, Verbs, answer, words};

fn read(text: &str) -> Result<Pairs, PairsError> {
    Pairs::read(text.as_bytes(), &PairsLimits::default())
}

fn one(text: &str) -> String {
    let pairs = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(pairs.len(), 1, "{text}");
    pairs.get("x").unwrap().to_owned()
}

fn written(value: &str) -> String {
    let mut pairs = Pairs::new();
    pairs.push("x", value);
    pairs.to_string()
}

#[test]
fn clause_3_1_a_value_is_a_word_or_in_braces() {
    assert_eq!(written("Data"), "x Data");
    assert_eq!(written(""), "x {}");
    assert_eq!(written("acknowledgment received"), "x {acknowledgment received}");
    assert_eq!(written("a  b"), "x {a  b}", "1*SP");
    assert_eq!(written(" a "), "x a");
    assert_eq!(written("!\"#$%&'()*+,-./:;<=>?@[\\]^_`|~"), "x !\"#$%&'()*+,-./:;<=>?@[\\]^_`|~");
}

#[test]
fn clause_3_1_anything_else_is_percent_encoded_first() {
    assert_eq!(written("a{b}c"), "x a%7Bb%7Dc");
    assert_eq!(written("ó"), "x %C3%B3");
    assert_eq!(written("a\r\nurl http://evil.example"), "x {a%0D%0Aurl http://evil.example}");
    assert_eq!(written("a\tb\u{7f}\0"), "x a%09b%7F%00");
    assert_eq!(written("a%20b"), "x a%20b", "a value is encoded by who knows it");
    let mut pairs = Pairs::new();
    pairs.push("a b\n", "1");
    pairs.push("", "2");
    assert_eq!(pairs.to_string(), "a%20b%0A 1\r\n{} 2");
    assert_eq!(read(&pairs.to_string()), Ok(pairs));
}

#[test]
fn clause_3_1_words_are_always_in_braces() {
    let mut pairs = Pairs::new();
    pairs.push_words("ibi", &["rep", "a b"]);
    pairs.push_words("one", &["word"]);
    pairs.push_words("none", &[]);
    pairs.push_words("empty", &["", "x"]);
    let text = "ibi {rep a%20b}\r\none {word}\r\nnone {}\r\nempty {{} x}";
    assert_eq!(pairs.to_string(), text);
    assert_eq!(read(text), Ok(pairs));
}

#[test]
fn clause_3_1_written_one_pair_to_a_line_and_nothing_is_the_empty_text() {
    assert_eq!(Pairs::new().to_string(), "");
    assert_eq!(read(""), Ok(Pairs::new()));
    assert_eq!(read(" \r\n"), Ok(Pairs::new()));
    assert_eq!(read("a 1\n\n\tb\n2\r\n").unwrap().to_string(), "a 1\r\nb 2");
}

#[test]
fn clause_3_1_readers_take_tcl_lists() {
    assert_eq!(one("x {}"), "");
    assert_eq!(one("x {  }"), "");
    assert_eq!(one("{x} {y}"), "y");
    let value = one("x {title {A long title} readergroup {}}");
    assert_eq!(words(&value), Ok(vec!["title", "A long title", "readergroup", ""]));
    assert_eq!(one("x {a\r\n\t{b c}}"), "a   {b c}");
    assert_eq!(one("x a{b}c"), "a{b}c");
    assert_eq!(one("x {{a}}"), "{a}");
}

#[test]
fn clause_3_1_a_backslash_is_a_character_of_the_grammar_and_else_tcls() {
    assert_eq!(one("x a\\"), "a\\");
    assert_eq!(one("x {a b\\}"), "a b\\", "by the grammar");
    assert_eq!(one("x a\\{b"), "a%7Bb", "Tcl writes an unbalanced brace so");
    assert_eq!(one("x a\\ \\}\\ b\\\\"), "a%20%7D%20b\\");
    assert_eq!(one("x {title {a \\{ b}}"), "title {a %7B b}");
    assert_eq!(read("x {a \\q"), Err(PairsError::Open { at: 2 }), "neither");
}

#[test]
fn clause_3_1_unknown_pairs_are_kept_and_the_first_of_a_name_counts() {
    let pairs = read("who knows\nx 1\nx 2").unwrap();
    assert_eq!((pairs.get("who"), pairs.get("x"), pairs.get("y")), (Some("knows"), Some("1"), None));
    let shown: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(shown, ["who=knows", "x=1", "x=2"]);
}

#[test]
fn clause_d23_bytes_of_iso_8859_1_are_kept_as_percent_codes() {
    let pairs = Pairs::read(b"url http://a.br/Relat\xf3rio\nt {S\xc3\xa3o \x1b[2J}", &PairsLimits::default())
        .unwrap();
    assert_eq!(pairs.get("url"), Some("http://a.br/Relat%F3rio"));
    assert_eq!(pairs.get("t"), Some("S%C3%A3o %1B[2J"));
    assert_eq!(one("x Relat%f3rio"), "Relat%f3rio", "never decoded");
}

#[test]
fn clause_3_1_errors_say_what_and_at_which_byte() {
    let error = |text: &str| read(text).unwrap_err();
    assert_eq!(error("a b c"), PairsError::NoValue { at: 4 });
    assert_eq!(error("a {b {c} "), PairsError::Open { at: 2 });
    assert_eq!(error("a b{c"), PairsError::Open { at: 3 });
    assert_eq!(error("a }"), PairsError::Close { at: 2 });
    assert_eq!(error("a b}"), PairsError::Close { at: 3 });
    assert_eq!(error("a {b}}"), PairsError::Close { at: 5 });
    assert_eq!(error("a {b}c d"), PairsError::NoSpace { at: 5 });
    assert_eq!(error("a {").to_string(), "the brace at byte 2 is never closed: add `}`, or write `{` as %7B");
    assert_eq!(error("a").to_string(), "the name at byte 0 has no value: an empty one is written {}");
    assert_eq!(words("{a}b"), Err(PairsError::NoSpace { at: 3 }));
}

#[test]
fn clause_3_1_depth_size_and_number_are_bounded() {
    let limits = PairsLimits { bytes: 20, pairs: 2, depth: 2 };
    let read = |text: &str| Pairs::read(text.as_bytes(), &limits);
    assert!(read("a {{}}").is_ok() && read("a b{c}").is_ok());
    assert_eq!(read("a {{{}}}"), Err(PairsError::TooDeep { at: 4, most: 2 }));
    assert_eq!(read("a b{{}}"), Err(PairsError::TooDeep { at: 4, most: 2 }));
    assert_eq!(read("a 1 b 2 c 3"), Err(PairsError::TooMany { at: 8, most: 2 }));
    assert!(read(&" ".repeat(20)).is_ok());
    assert_eq!(read(&" ".repeat(21)), Err(PairsError::TooLong { most: 20 }));
    let deep = format!("a {}", "{".repeat(500_000));
    assert_eq!(self::read(&deep), Err(PairsError::TooDeep { at: 34, most: 32 }));
}

#[test]
fn clause_3_4_forms_are_read_and_written() {
    let text = "rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8";
    let forms: LabelForms = text.parse().unwrap();
    assert_eq!(forms.to_string(), text);
    assert!(
        forms.contains(&ibi_id::Label::parse("sid.inpe.br/mtc-m18/2009/07.21.14.43").unwrap()),
        "by meaning"
    );
    let mut pairs = Pairs::new();
    forms.push_to(&mut pairs, "ibi");
    assert_eq!(pairs.to_string(), format!("ibi {{{text}}}"));
    assert_eq!("".parse::<LabelForms>().unwrap(), LabelForms::default());
    assert_eq!("doi 10.1/x".parse::<LabelForms>().unwrap(), LabelForms::default());
    assert!("rep".parse::<LabelForms>().unwrap_err().to_string().contains("forms and labels"));
    assert!("rep x".parse::<LabelForms>().unwrap_err().to_string().starts_with("`x` is not a valid IBI: "));
}

/// Filters pairs given by their names.
fn filtered(names: &str, verbs: &str) -> String {
    let mut pairs = Pairs::new();
    for name in names.split(' ') {
        pairs.push(name, "1");
    }
    let kept = answer::filter(pairs, &Verbs::parse(verbs).unwrap());
    kept.iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
}

const WHO: &str = "archiveaddress ibi ibi.alias ibi.archiveservice ibi.platformsoftware";

#[test]
fn clause_3_4_who_answers_and_about_what_stays() {
    assert_eq!(filtered(&format!("{WHO} whatever urlx ibi.whatever url.alias"), "GetMetadata"), WHO);
    assert_eq!(filtered(&format!("{WHO} url state urlkey"), ""), format!("{WHO} url state urlkey"));
}

#[test]
fn clause_3_4_the_next_edition_stays_only_for_get_last_edition() {
    for (verbs, stays) in [
        ("GetLastEdition", true),
        ("GetTranslation GetLastEdition GetMetadata", true),
        ("GetMetadata", false),
        ("", false),
    ] {
        assert_eq!(filtered("ibi.nextedition", verbs) == "ibi.nextedition", stays, "{verbs}");
    }
}

#[test]
fn clause_3_4_the_key_stays_only_with_a_url() {
    assert_eq!(filtered("url urlkey", "GetMetadata"), "");
    assert_eq!(filtered("url.metadata urlkey", "GetMetadata"), "url.metadata urlkey");
    assert_eq!(filtered("ibi.metadata urlkey", "GetMetadata"), "ibi.metadata");
    assert_eq!(filtered("url urlkey", "GetFileList"), "url urlkey", "of the file list");
}

#[test]
fn clause_3_4_the_relation_stays_whole_and_its_leading_parts_by_their_ibi() {
    let offered = "ibi.lastedition url.lastedition state.lastedition ibi.lastedition.metadata url.lastedition.metadata \
                   ibi.lastedition.metadata(oai_dc) url.lastedition.metadata(oai_dc) ibi.metadata ibi.translation(pt)";
    assert_eq!(
        filtered(offered, "GetLastEdition GetMetadata(oai_dc)"),
        "ibi.lastedition ibi.lastedition.metadata(oai_dc) url.lastedition.metadata(oai_dc)"
    );
    assert_eq!(filtered(offered, "GetLastEdition"), "ibi.lastedition url.lastedition state.lastedition");
}

#[test]
fn clause_3_4_translations_stay_in_all_languages_or_all_countries() {
    let offered =
        "url.translation url.translation(en) url.translation(pt) url.translation(pt-BR) url.lastedition";
    let all = offered.strip_suffix(" url.lastedition").unwrap();
    assert_eq!(filtered(offered, "GetTranslation"), all);
    assert_eq!(filtered(offered, "GetTranslation(pt)"), "url.translation(pt) url.translation(pt-BR)");
    assert_eq!(filtered(offered, "GetTranslation(pt-BR)"), "url.translation(pt-BR)");
    let inner = "ibi.translation(pt) url.translation(pt) ibi.translation(pt).metadata ibi.translation.metadata.translation(en)";
    assert_eq!(
        filtered(inner, "GetTranslation GetMetadata GetTranslation"),
        "ibi.translation(pt) ibi.translation(pt).metadata ibi.translation.metadata.translation(en)",
        "in any position"
    );
}

#[test]
fn clause_3_4_a_removed_item_answers_its_tombstone_and_its_links() {
    let text = "archiveaddress a.br\r\nibi.archiveservice {}\r\nibi.platformsoftware {}\r\nibi {rep x}\r\nstate \
                Deleted\r\ntimestamp 2014-04-04T17:39:54Z";
    let (next, translation) = ("ibi.nextedition {rep y}", "ibi.translation(pt) {rep z}");
    for (verbs, more) in [
        ("", vec![]),
        ("GetMetadata", vec![]),
        ("GetLastEdition GetFileList", vec![next]),
        ("GetTranslation", vec![translation]),
        ("GetTranslation(en) GetLastEdition", vec![next, translation]),
    ] {
        let pairs =
            read(&format!("{text}\r\nurlkey 1234567890 url http://a.br/ {next} {translation}")).unwrap();
        let kept: Vec<&str> = [text].into_iter().chain(more).collect();
        assert_eq!(
            answer::filter(pairs, &Verbs::parse(verbs).unwrap()).to_string(),
            kept.join("\r\n"),
            "{verbs}"
        );
    }
}

#[test]
fn clause_3_4_where_editions_of_a_translation_go_on() {
    let text = "ibi {rep x}\r\nibi.nextedition {rep a}\r\nibi.translation(pt).nextedition {rep b}\r\n\
                ibi.translation(en).nextedition {rep c}";
    for (verbs, kept) in [
        ("GetLastEdition", "ibi ibi.nextedition"),
        ("GetTranslation(pt) GetLastEdition", "ibi ibi.nextedition ibi.translation(pt).nextedition"),
        (
            "GetTranslation GetLastEdition GetMetadata",
            "ibi ibi.nextedition ibi.translation(pt).nextedition ibi.translation(en).nextedition",
        ),
        ("GetTranslation", "ibi"),
    ] {
        let left = answer::filter(read(text).unwrap(), &Verbs::parse(verbs).unwrap());
        let names: Vec<&str> = left.iter().map(|(name, _)| name).collect();
        assert_eq!(names.join(" "), kept, "{verbs}");
    }
}

#[test]
fn clause_1_3_items_of_one_spelling_and_a_reserved_label_are_told_whatever_the_verbs() {
    let verbs = Verbs::parse("GetLastEdition GetMetadata").unwrap();
    let several = "ibi {rep x}\r\nibi.alternatives {{rep y} {rep z}}";
    assert_eq!(answer::filter(read(several).unwrap(), &verbs).to_string(), several);
    let reserved = "ibi {rep x}\r\nstate Reserved";
    assert_eq!(answer::filter(read(reserved).unwrap(), &verbs).to_string(), reserved);
}
