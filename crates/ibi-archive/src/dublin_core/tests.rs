use proptest::prelude::*;

use super::*;

fn lines(text: &str) -> DublinCore {
    DublinCore::parse(text).unwrap()
}

fn written(metadata: &DublinCore) -> String {
    metadata.statements().iter().map(|statement| format!("{statement}\n")).collect()
}

fn xml(text: &str) -> String {
    written(&DublinCore::from_xml(text).unwrap())
}

fn error(text: &str) -> String {
    DublinCore::parse(text).unwrap_err().to_string()
}

#[test]
fn clause_2_2_the_15_elements_repeat_and_have_languages() {
    let all: String =
        Element::ALL.iter().map(|element| format!("{element}=1\n{element}@pt-BR=2\n")).collect();
    assert_eq!(written(&lines(&all)), all);
    assert_eq!(DublinCore::from_xml(&lines(&all).to_xml()).unwrap(), lines(&all));
    let titles: Vec<_> = lines(&all).of(Element::Title).map(ToString::to_string).collect();
    assert_eq!(titles, ["title=1", "title@pt-BR=2"]);
}

#[test]
fn clause_2_2_metadata_is_served_as_oai_dc() {
    let metadata = lines("title@pt=Água & <luz>\ncreator=Banon, Gerald\ndescription=tab\there");
    assert_eq!(
        metadata.to_xml(),
        r#"<?xml version="1.0" encoding="UTF-8"?>
<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd">
  <dc:title xml:lang="pt">Água &amp; &lt;luz&gt;</dc:title>
  <dc:creator>Banon, Gerald</dc:creator>
  <dc:description>tab&#9;here</dc:description>
</oai_dc:dc>
"#
    );
    assert_eq!(DublinCore::from_xml(&DublinCore::default().to_xml()).unwrap(), DublinCore::default());
}

#[test]
fn a_statement_may_have_a_prefix_spaces_and_any_case() {
    for text in ["title@pt=x = y", "dc:title@pt=x = y", "DC.Title @ pt = x = y ", " dc.TITLE@pt= x = y"] {
        assert_eq!(text.parse::<MetadataStatement>().unwrap().to_string(), "title@pt=x = y", "{text}");
    }
    let statement: MetadataStatement = "rights=©".parse().unwrap();
    assert_eq!((statement.element(), statement.language(), statement.value()), (Element::Rights, None, "©"));
}

#[test]
fn a_file_has_a_statement_a_line_with_comments_and_blank_lines() {
    let text = "\u{feff}# who and what\r\n\r\ntitle@en=Harvest\r\n   \r\n  # no\r\ncreator=A=B\r\n";
    assert_eq!(written(&lines(text)), "title@en=Harvest\ncreator=A=B\n");
    assert_eq!(lines(""), DublinCore::default());
}

#[test]
fn a_file_that_begins_with_an_angle_bracket_is_xml() {
    let text = "\u{feff}\n  <x xmlns:d='http://purl.org/dc/elements/1.1/'><d:title>T</d:title></x>";
    assert_eq!(written(&lines(text)), "title=T\n");
}

#[test]
fn xml_of_others_is_read_with_any_prefix_and_wrapper() {
    let record = r#"<?xml version="1.0"?>
        <record xmlns="http://www.openarchives.org/OAI/2.0/"><header><identifier>oai:x:1</identifier></header>
        <!-- comment --><?pi x?><metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"
            xmlns:e="http://purl.org/dc/elements/1.1/" xmlns:q='http://purl.org/dc/terms/' xmlns:o="urn:other">
          <e:title xml:lang = 'pt_BR'>
             Um <![CDATA[<título>]]> &amp; mais<!-- no -->&#x21;
          </e:title>
          <q:creator><o:name>Ana</o:name></q:creator><q:abstract>no</q:abstract><o:title>no</o:title>
          <e:subject/><e:subject>  </e:subject><e:subject xml:lang="*">s</e:subject>
          <title xmlns="http://purl.org/dc/elements/1.1/">inner</title><title>no</title>
        </oai_dc:dc></metadata></record>"#;
    assert_eq!(xml(record), "title@pt-BR=Um <título> & mais!\ncreator=Ana\nsubject=s\ntitle=inner\n");
}

#[test]
fn a_language_holds_for_what_is_inside() {
    let text = "<a xmlns:d='http://purl.org/dc/elements/1.1/' xml:lang='pt'><d:title>1</d:title><b xml:lang='en'>\
                <d:title>2</d:title><d:title xml:lang=''>3</d:title></b><d:title>4</d:title></a>";
    assert_eq!(xml(text), "title@pt=1\ntitle@en=2\ntitle=3\ntitle@pt=4\n");
}

#[test]
fn line_ends_are_one_character_unless_they_are_references() {
    let text = "<d:title xmlns:d='http://purl.org/dc/elements/1.1/'>a\r\nb\rc&#13;&#10;d</d:title>";
    assert_eq!(xml(text), "title=a\nb\nc\r\nd\n");
}

#[test]
fn xml_that_is_not_whole_or_not_wanted_is_refused_with_its_line() {
    for (text, line, what) in [
        ("<a>\n<b></a>", 2, "expected `</b>`, but `</a>` was found"),
        ("<a>\n<b>", 2, "it ends before its outermost element does"),
        ("<a/>\n\n<b/>", 3, "there is another"),
        ("<a/>\ntext", 2, "there is text outside"),
        ("<!-- nothing -->", 1, "it has no element"),
        ("<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>\n<a>&x;</a>", 1, "a DOCTYPE is not allowed"),
        ("<a>&x;</a>", 1, "&x; is not known"),
        ("<a>&#0;</a>", 1, "the XML cannot be read"),
        ("<a>\n<b c></a>", 2, "the XML cannot be read"),
        ("<a>&amp</a>", 1, "the XML cannot be read"),
        ("<dc:title>x</dc:title>", 1, r#"add xmlns:dc="http://purl.org/dc/elements/1.1/""#),
        (
            "<a xmlns:d='http://purl.org/dc/elements/1.1/'>\n<d:date>\n2\u{1}</d:date></a>",
            3,
            "U+0001 as its character 2",
        ),
    ] {
        let error = error(text);
        assert!(error.starts_with(&format!("line {line}: ")) && error.contains(what), "{text}: {error}");
    }
    assert!(error(&format!("<a>\n</{}>", "\u{1b}b".repeat(10_000))).len() < 1000);
}

#[test]
fn depth_number_and_length_are_bounded() {
    let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(DublinCore::from_xml(&nested(64)).is_ok());
    assert!(error(&nested(65)).contains("more than 64 deep"));
    assert_eq!(lines(&"date=1\n".repeat(10_000)).statements().len(), 10_000);
    assert_eq!(
        error(&"date=1\n".repeat(10_001)),
        "line 10001: there are more than 10000 statements: leave some out"
    );
    let long = |bytes: usize| format!("date={}", "x".repeat(bytes));
    assert_eq!(lines(&long(1 << 20)).statements().len(), 1);
    assert!(error(&long((1 << 20) + 1)).contains("1048577 bytes, and 1048576 is the most"));
    let many = format!("<a{}/>", (0..200).map(|n| format!(" xmlns:p{n}='u'")).collect::<String>());
    assert!(error(&many).starts_with("line 1: the XML cannot be read"), "{}", error(&many));
}

#[test]
fn errors_say_what_is_wrong_where_and_what_would_do() {
    assert_eq!(
        error("title=x\ntitel=x"),
        "line 2: `titel` is not an element of Dublin Core: these are title, creator, subject, description, publisher, \
         contributor, date, type, format, identifier, source, language, relation, coverage, rights"
    );
    assert!(error("a title").starts_with("line 1: `a title` is not element=value: write it like title="));
    assert!(error("title@=x").contains("`` is not the language of a value: write it as in pt"));
    assert!(error("title@pt_BR=x").contains("`pt_BR` is not the language"));
    assert!(error("title= ").contains("the value of title is empty"));
    assert!(error("date=ab\u{0}c").contains("the value of date has U+0000 as its character 3"));
    assert!(error("date=\u{ffff}").contains("U+FFFF as its character 1"));
}

#[test]
fn a_tag_keeps_its_spelling_and_may_mean_a_language() {
    let language =
        |tag: &str| tag.parse::<LanguageTag>().unwrap().language().map(|language| language.to_string());
    for (tag, meant) in [
        ("pt", Some("pt")),
        ("PT-br", Some("pt-BR")),
        ("zh-Hant-TW", Some("zh-TW")),
        ("zh-cmn-Hans-CN", Some("zh-CN")),
        ("es-419", Some("es")),
        ("en-x-us", Some("en")),
        ("pt-ZZ", Some("pt")),
        ("por", None),
        ("xx", None),
        ("i-klingon", None),
    ] {
        assert_eq!(language(tag).as_deref(), meant, "{tag}");
        assert_eq!(tag.parse::<LanguageTag>().unwrap().as_str(), tag);
    }
    for wrong in ["", "-", "pt-", "-pt", "pt--BR", "1pt", "portuguese", "pt BR", "é", "p\u{0}"] {
        assert!(wrong.parse::<LanguageTag>().is_err(), "{wrong}");
    }
    assert!("a-".repeat(40).trim_end_matches('-').parse::<LanguageTag>().is_err(), "too long");
}

#[test]
fn json_is_a_list_of_statements_and_is_checked() {
    let metadata = lines("title@pt=T\ndate=1");
    let json = r#"[{"element":"title","language":"pt","value":"T"},{"element":"date","value":"1"}]"#;
    assert_eq!(serde_json::to_string(&metadata).unwrap(), json);
    assert_eq!(serde_json::from_str::<DublinCore>(json).unwrap(), metadata);
    for wrong in [
        r#"[{"element":"titel","value":"T"}]"#,
        r#"[{"element":"title","value":" "}]"#,
        r#"[{"element":"title","language":"","value":"T"}]"#,
        r#"[{"element":"title","value":"\u0000"}]"#,
        r#"[{"element":"title","lang":"pt","value":"T"}]"#,
    ] {
        assert!(serde_json::from_str::<DublinCore>(wrong).is_err(), "{wrong}");
    }
}

fn a_value() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(any::<char>(), 1..40).prop_map(String::from_iter),
        "[&<>\"'\r\n\t \u{85}\u{2028}\u{feff}a-c;#\\]]{1,20}",
    ]
}

prop_compose! {
    fn a_statement()(element in prop::sample::select(Element::ALL.to_vec()),
                     language in prop::option::of("[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8}){0,3}"),
                     value in a_value().prop_filter_map("a value", |value| {
                         let value: String = value.chars().filter(|c| is_xml_char(*c)).collect();
                         MetadataStatement::new(Element::Title, None, value).ok()
                     })) -> MetadataStatement {
        let language = language.map(|language| language.parse().unwrap());
        MetadataStatement::new(element, language, value.value).unwrap()
    }
}

proptest! {
    #[test]
    fn what_is_written_as_xml_is_read_again(statements in prop::collection::vec(a_statement(), 0..20)) {
        let metadata = DublinCore(statements);
        prop_assert_eq!(&DublinCore::from_xml(&metadata.to_xml()).unwrap(), &metadata);
        prop_assert_eq!(&DublinCore::parse(&metadata.to_xml()).unwrap(), &metadata);
        let json = serde_json::to_string(&metadata).unwrap();
        prop_assert_eq!(&serde_json::from_str::<DublinCore>(&json).unwrap(), &metadata);
    }

    #[test]
    fn what_is_written_as_lines_is_read_again(statements in prop::collection::vec(a_statement(), 0..20)) {
        let one_line = |statement: &MetadataStatement| !statement.value.contains('\n');
        let metadata = DublinCore(statements.into_iter().filter(one_line).collect());
        prop_assert_eq!(DublinCore::parse(&written(&metadata)).unwrap(), metadata);
    }

    #[test]
    fn any_text_is_metadata_or_an_error(text in any::<String>(), bytes in any::<Vec<u8>>()) {
        let _ = DublinCore::parse(&text);
        let _ = DublinCore::from_xml(&text);
        let _ = DublinCore::from_xml(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_markup_is_metadata_or_an_error(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "<", ">", "</", "/>", "<!", "<!--", "-->", "<![CDATA[", "]]>", "<?xml", "?>", "&", ";", "#", "x", "=", "'", "\"", " ",
            "\n", "a", "é", "\u{feff}", "<a xmlns:d='http://purl.org/dc/elements/1.1/'>", "</a>", "<d:title>", "</d:title>",
            "xml:lang", "xmlns:d", "xmlns", ":", "<!DOCTYPE", "[", "]",
        ]), 0..24),
    ) {
        if let Ok(metadata) = DublinCore::from_xml(&pieces.concat()) {
            prop_assert_eq!(DublinCore::from_xml(&metadata.to_xml()).unwrap(), metadata);
        }
    }

    #[test]
    fn damage_to_a_document_is_never_a_panic(
        statements in prop::collection::vec(a_statement(), 1..4), cut in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = DublinCore(statements).to_xml().into_bytes();
        let at = cut.index(bytes.len());
        bytes[at] = byte;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let _ = DublinCore::from_xml(&text);
        let _ = DublinCore::from_xml(text.get(..at).unwrap_or_default());
    }
}
