//! The errors of persistent URLs in Portuguese, for pages.

use ibi_id::Rule;

use super::{PersistentUrlError, UrlPart};
use crate::file_path::FilePathError;
use crate::language::LanguageError;
use crate::relation::RelationError;
use crate::verb::VerbError;

impl PersistentUrlError {
    /// The message in Portuguese.
    pub fn in_portuguese(&self) -> String {
        let (part, at) = self.position();
        let part = match part {
            UrlPart::Path => "do caminho",
            UrlPart::Query => "da consulta",
        };
        let what = match self {
            PersistentUrlError::Label { rule, .. } => format!("Não é um IBI válido: {}", rule_text(*rule)),
            PersistentUrlError::Modifiers { why, .. } => format!("Depois do IBI, {}", relation_text(why)),
            PersistentUrlError::Spelling { given, right, .. } => {
                format!("`{given}` se escreve `{right}` em um URL persistente")
            }
            PersistentUrlError::File { why, .. } => why.in_portuguese(),
            PersistentUrlError::Verbs { why, .. } => format!("ibiurl.verblist: {}", verb_text(why)),
            PersistentUrlError::Status { given, .. } => format!(
                "ibiurl.requireditemstatus: `{given}` não pode ser exigido: escreva Original, ou omita o par"
            ),
            PersistentUrlError::Twice { name, .. } => {
                format!("{name} aparece duas vezes: informe-o uma só vez")
            }
        };
        format!("{what} (no byte {at} {part})")
    }
}

impl FilePathError {
    /// The message in Portuguese.
    pub fn in_portuguese(&self) -> String {
        let text = match self {
            FilePathError::LeadsUp => {
                "o caminho tem `..`: escreva o caminho do arquivo a partir da raiz do item"
            }
            FilePathError::Zero => "o caminho tem um byte zero, que nenhum nome de arquivo pode ter",
            FilePathError::TooLong => "o caminho é longo demais: o limite é de 4096 bytes",
        };
        text.to_owned()
    }
}

fn relation_text(error: &RelationError) -> String {
    match error {
        RelationError::Order { given } => format!(
            "`{given}` está fora de ordem: primeiro a última edição (!) e a tradução (+), cada uma no máximo uma vez, \
             depois os metadados (:), depois uma tradução dos metadados, como em !+(pt):+(pt)"
        ),
        RelationError::Step { given } => format!(
            "`{given}` não é uma relação: use .lastedition (!), .translation (+) ou .metadata (:), as duas últimas com \
             um parâmetro se preciso, como em .translation(pt) ou :(oai_dc)"
        ),
        RelationError::Parameter { given } => {
            format!("a última edição não tem parâmetro: omita `({given})`")
        }
        RelationError::Format { given } => format!(
            "`{given}` não é um formato de metadados: um nome tem de 1 a 64 letras, algarismos ou caracteres -_.!~*' \
             como em oai_dc"
        ),
        RelationError::Language(error) => language_text(error),
    }
}

fn verb_text(error: &VerbError) -> String {
    match error {
        VerbError::Unknown { given } => format!(
            "`{given}` não é um verbo: use GetLastEdition, GetTranslation, GetMetadata ou GetFileList, o segundo e o \
             terceiro com um parâmetro se preciso, como em GetTranslation(pt) ou GetMetadata(oai_dc)"
        ),
        VerbError::TooLong => "a lista de verbos é longa demais".to_owned(),
        VerbError::TooMany => "há verbos demais".to_owned(),
        VerbError::Relation(error) => relation_text(error),
    }
}

fn language_text(error: &LanguageError) -> String {
    match error {
        LanguageError::Shape { given } => format!(
            "`{given}` não é um idioma: escreva as duas letras da ISO 639-1, e as do país se preciso, como em pt ou \
             pt-BR"
        ),
        LanguageError::Language { given } => format!(
            "`{given}` não é um idioma: a ISO 639-1 não tem esse código. Português é pt, inglês en, espanhol es; com um \
             país, pt-BR"
        ),
        LanguageError::Country { given } => format!(
            "`{given}` não é um idioma: a ISO 3166-1 não tem esse país. O Brasil é BR, como em pt-BR; sem país, basta pt"
        ),
    }
}

/// The rule of a label in Portuguese.
fn rule_text(rule: Rule) -> &'static str {
    match rule {
        Rule::HostWord => {
            "uma palavra de um nome de host só tem letras, algarismos e hifens internos, e não é vazia"
        }
        Rule::HostLastWord => "a última palavra de um nome de host começa com uma letra",
        Rule::HostTooFewWords => {
            "um nome de host tem pelo menos duas palavras, como em `mtc-m18.sid.inpe.br`"
        }
        Rule::RepositoryParts => {
            "um nome de repositório tem quatro partes, como em `sid.inpe.br/mtc-m18/2009/02.16.17.46`"
        }
        Rule::DateShape => {
            "a data se escreve `ano/mês.dia.hora.minuto`, depois `.segundo` e `.fração` se preciso, com dois algarismos \
             cada"
        }
        Rule::IbipCharacter => {
            "um IBIp só usa os algarismos 2-9 e as letras A-H, J-N, P-U, W e X: nunca 0, 1, I, O, V, Y ou Z"
        }
        Rule::IbipMarker => {
            "a primeira palavra de um IBIp é um endereço codificado, depois um W (IPv4) ou X (IPv6), depois uma porta \
             codificada ou nada"
        }
        Rule::IbipSuffix => {
            "a segunda palavra de um IBIp é um instante codificado, depois no máximo um W com uma fração codificada"
        }
        Rule::BeforeIbip => "um IBIp não representa instantes antes de 1995-08-01T00:00:00Z",
        Rule::LegacyWord => {
            "um rótulo legado são duas palavras de letras e algarismos, com um Z maiúsculo na primeira"
        }
        Rule::LegacyLowerZ => {
            "nenhum rótulo tem um z minúsculo aqui: rótulos legados distinguem maiúsculas e têm um Z maiúsculo"
        }
        Rule::LegacyDigit => {
            "a segunda palavra de um rótulo legado usa 2-9, as minúsculas menos l, e as maiúsculas A-V menos I e O"
        }
        Rule::Empty => "não há rótulo: está vazio",
        Rule::Form => {
            "não é um IBI: um IBI é como `sid.inpe.br/mtc-m18/2009/02.16.17.46` ou `8JMKD3MGP8W/34PGRBS`"
        }
        Rule::Scheme => "começa com um esquema ou um endereço web: omita tudo o que vem antes do rótulo",
        Rule::Invisible => "há aqui um espaço ou outro caractere invisível: nenhum rótulo tem um",
        Rule::Extra => "o rótulo termina aqui: o que segue não faz parte dele",
        Rule::LabelLength => "um rótulo tem no máximo 255 bytes",
        Rule::HostWordLength => "uma palavra de um nome de host tem no máximo 63 caracteres",
        Rule::HostLength => "um nome de host tem no máximo 253 caracteres",
        Rule::Port => "uma porta é um número de 1 a 65535",
        Rule::Year => "o ano tem quatro algarismos, de 0001 a 9999",
        Rule::Month => "o mês vai de 01 a 12",
        Rule::Day => "esse mês desse ano não tem esse dia",
        Rule::Hour => "a hora vai de 00 a 23",
        Rule::Minute => "o minuto vai de 00 a 59",
        Rule::Second => "o segundo vai de 00 a 59",
        Rule::Fraction => "uma fração de segundo tem de 1 a 12 algarismos",
        Rule::IbipAddress => "a primeira palavra deste IBIp não codifica um endereço IP",
        Rule::InstantRange => "o instante está fora dos anos 0001 a 9999",
        Rule::Granularity => {
            "a granularidade é 60, 1, 0.1, 0.01 e assim por diante até 0.000000001 (1e-9) segundos"
        }
        Rule::Time => "uma hora se escreve como em `2009-02-16T17:46:00Z` (RFC 3339) ou em segundos Unix",
        // The enum is open to other crates; the test below covers every rule.
        _ => UNTRANSLATED,
    }
}

const UNTRANSLATED: &str = "não segue as regras dos rótulos";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PersistentUrl;

    #[test]
    fn every_rule_has_a_text_in_portuguese() {
        for rule in Rule::ALL {
            assert_ne!(rule_text(*rule), UNTRANSLATED, "{}", rule.code());
        }
    }

    #[test]
    fn errors_name_rule_and_position_in_portuguese() {
        for (path, query, text) in [
            ("/LK47B6W/362SFKH!!", None, "(no byte 17 do caminho)"),
            ("/a.br/b/2009/13.16.17.46", None, "o mês vai de 01 a 12"),
            (
                "/LK47B6W/362SFKH",
                Some("ibiurl.verblist=GetMetadata&ibiurl.verblist=GetMetadata"),
                "ibiurl.verblist aparece duas vezes",
            ),
        ] {
            let told = PersistentUrl::parse(path, query).unwrap_err().in_portuguese();
            assert!(told.contains(text), "{told}");
        }
    }
}
