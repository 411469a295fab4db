//! 2.4 and 4.1: relations, modifiers and verbs.

use ibi_protocol::{Relation, RelationError, RelationPart, VerbError, Verbs};

fn relation(text: &str) -> Relation {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn clause_4_1_there_are_14_compositions() {
    let all: Vec<Relation> = Relation::all().collect();
    assert_eq!(all.len(), 14);
    let spelled: Vec<String> = all.iter().map(Relation::modifiers).collect();
    assert_eq!(spelled, Relation::ALL_COMPOSITIONS);
    // Of all sequences of up to five parts, the grammar accepts only these.
    for number in 0..4_usize.pow(5) {
        let signs: String = (0..5).map(|i| ["", "!", "+", ":"][number / 4_usize.pow(i) % 4]).collect();
        let wanted = signs.is_empty() || Relation::ALL_COMPOSITIONS.contains(&signs.as_str());
        assert_eq!(Relation::from_modifiers(&signs).is_ok(), wanted, "{signs}");
    }
}

#[test]
fn clause_2_4_elements_compose_left_to_right() {
    let text = ".translation(pt-BR).lastedition.metadata(oai_dc)";
    let read = relation(text);
    assert_eq!(read.parts().len(), 3);
    assert_eq!(read.parts()[1], RelationPart::LastEdition);
    assert_eq!(read.to_string(), text);
    assert_eq!(read.modifiers(), "+(pt-BR)!:(oai_dc)");
    assert_eq!(Relation::from_modifiers("+(pt-br)!:(oai_dc)"), Ok(read), "D24: case does not matter");
    assert_eq!((relation(""), relation("").modifiers().as_str()), (Relation::default(), ""));
}

#[test]
fn clause_2_4_what_is_no_relation_is_refused() {
    for text in [
        ".",
        "lastedition",
        ".lastedition.lastedition",
        ".metadata.metadata",
        ".metadata.lastedition",
        ".nextedition",
        ".translation()",
        ".translation(xx)",
        ".translation(pt",
        ".translation(pt))",
        ".translation(pt-UK)",
        ".lastedition(pt)",
        ".metadata()",
        ".metadata(a b)",
        ".metadata(a(b)",
        ".translation.translation",
        " ",
        ".alias",
    ] {
        assert!(text.parse::<Relation>().is_err(), "{text}");
    }
    let long = format!(".metadata({})", "x".repeat(65));
    assert!(matches!(Relation::parse(&long), Err(RelationError::Format { .. })));
    assert!(Relation::parse(&".metadata".repeat(1000)).is_err());
    assert!(Relation::new(vec![RelationPart::Metadata(Some("a b".to_owned()))]).is_err());
    assert!(Relation::new(vec![RelationPart::Metadata(None), RelationPart::LastEdition]).is_err());
    let error = Relation::from_modifiers(":!").unwrap_err().to_string();
    assert!(
        error.starts_with("`:!` does not go together: last edition (!) and translation (+) come first"),
        "{error}"
    );
}

#[test]
fn clause_4_1_metadata_formats_are_open_ended() {
    assert_eq!(Relation::from_modifiers(":(BibINPE)").unwrap().to_string(), ".metadata(BibINPE)");
}

#[test]
fn clause_4_2_leading_parts_come_longest_first_and_leave_the_rest() {
    let whole = relation(".lastedition.translation(pt).metadata(oai_dc).translation(en)");
    let leading: Vec<String> = whole.leading().map(|part| part.modifiers()).collect();
    assert_eq!(leading, ["!+(pt):(oai_dc)", "!+(pt)", "!"]);
    let rest: Vec<String> = whole.leading().map(|part| whole.after(&part).unwrap().modifiers()).collect();
    assert_eq!(rest, [":(oai_dc)+(en)", ":(oai_dc)+(en)", "+(pt):(oai_dc)+(en)"]);
    assert_eq!(relation(".metadata").leading().count(), 0);
    assert_eq!(relation("").leading().count(), 0);
    assert_eq!(whole.after(&relation(".metadata")), None);
    for whole in Relation::all() {
        for part in whole.leading() {
            let rest = whole.after(&part).unwrap();
            assert_eq!(Relation::new(rest.parts().to_vec()), Ok(rest), "what is left is a relation");
        }
    }
}

#[test]
fn clause_4_1_verbs_spell_a_relation() {
    let verbs = Verbs::parse("GetLastEdition GetMetadata(oai_dc)").unwrap();
    assert_eq!((verbs.relation.modifiers().as_str(), verbs.file_list), ("!:(oai_dc)", false));
    assert_eq!(Verbs::parse("GetLastEdition+GetMetadata(oai_dc)"), Ok(verbs.clone()), "D16");
    assert_eq!(verbs.to_string(), "GetLastEdition GetMetadata(oai_dc)");
    assert!(Verbs::parse("").unwrap().is_empty() && Verbs::parse("  ").unwrap().is_empty());
    for text in [
        "GetMetadata GetLastEdition",
        "GetTranslation GetTranslation",
        "GetX",
        "getmetadata",
        "GetMetadata(",
        "GetMetadata()",
        "GetTranslation(xx)",
        "GetLastEdition()",
        "GetMetadata(a)b",
        "GetFileList(x)",
    ] {
        assert!(Verbs::parse(text).is_err(), "{text}");
    }
    assert!(
        Verbs::parse("GetX").unwrap_err().to_string().starts_with("`GetX` is not a verb: use GetLastEdition")
    );
}

#[test]
fn clause_4_1_get_file_list_may_stand_anywhere() {
    for text in ["GetFileList GetLastEdition GetMetadata", "GetLastEdition GetFileList GetMetadata"] {
        let verbs = Verbs::parse(text).unwrap();
        assert_eq!(verbs.to_string(), "GetLastEdition GetMetadata GetFileList");
    }
    assert_eq!(Verbs::parse("GetFileList").unwrap().to_string(), "GetFileList");
    assert!(Verbs::parse("GetFileList GetMetadata GetLastEdition").is_err());
}

#[test]
fn clause_4_1_verb_lists_are_bounded() {
    assert_eq!(Verbs::parse(&" ".repeat(513)), Err(VerbError::TooLong));
    assert_eq!(Verbs::parse(&"GetFileList ".repeat(9)), Err(VerbError::TooMany));
}

#[test]
fn clause_d29_modifiers_stand_and_the_list_adds_what_is_not_among_them() {
    let joined = |modifiers: &str, list: &str| {
        Verbs::with_modifiers(&Relation::from_modifiers(modifiers).unwrap(), list)
            .map(|verbs| verbs.to_string())
    };
    assert_eq!(joined("+:+", "").unwrap(), "GetTranslation GetMetadata GetTranslation");
    assert_eq!(joined("+", "GetMetadata").unwrap(), "GetTranslation GetMetadata", "Example 6.8");
    assert_eq!(joined("!", "GetMetadata GetLastEdition").unwrap(), "GetLastEdition GetMetadata");
    assert_eq!(joined("!", "GetFileList").unwrap(), "GetLastEdition GetFileList");
    assert!(joined(":", "GetLastEdition").is_err());
    assert!(joined("+(pt)", "GetTranslation(en)").is_err());
}
