//! Texts of the pages, in two languages.

use axum::http::{HeaderMap, StatusCode};
use ibi_http::accept::UiLanguage;
use ibi_store::journal::State;

use crate::access::AccessRule;
use crate::dublin_core::Element;
use crate::ownership::LOCAL_OPERATOR;

/// The language of a page. If the reader chose it, links keep it; otherwise the browser sends its
/// preference with each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) struct PageLanguage {
    pub(in crate::web) ui: UiLanguage,
    is_chosen: bool,
}

impl PageLanguage {
    pub(in crate::web) fn of(headers: &HeaderMap, query: Option<&str>) -> Self {
        let chosen = UiLanguage::chosen(query);
        Self { ui: chosen.unwrap_or_else(|| UiLanguage::of(headers, None)), is_chosen: chosen.is_some() }
    }
}

/// The texts in a language.
pub(in crate::web) fn words(language: PageLanguage) -> &'static ArchivePageTexts {
    match (language.ui, language.is_chosen) {
        (UiLanguage::English, false) => &ENGLISH,
        (UiLanguage::English, true) => {
            &const { ArchivePageTexts { keep: "?lang=en", keep_more: "&lang=en", ..ENGLISH } }
        }
        (UiLanguage::Portuguese, false) => &PORTUGUESE,
        (UiLanguage::Portuguese, true) => {
            &const { ArchivePageTexts { keep: "?lang=pt", keep_more: "&lang=pt", ..PORTUGUESE } }
        }
    }
}

macro_rules! words {
    ($($name:ident: $english:expr, $portuguese:expr;)*) => {
        /// Texts of the pages.
        pub(in crate::web) struct ArchivePageTexts {
            pub(in crate::web) lang: &'static str,
            /// Query string that keeps a chosen language: alone, and appended to another query.
            pub(in crate::web) keep: &'static str,
            pub(in crate::web) keep_more: &'static str,
            months: [&'static str; 12],
            day_and_month: &'static str,
            first_of_month: &'static str,
            $(pub(in crate::web) $name: &'static str,)*
        }
        const ENGLISH: ArchivePageTexts = ArchivePageTexts {
            lang: "en", keep: "", keep_more: "", months: ENGLISH_MONTHS, day_and_month: " ",
            first_of_month: "", $($name: $english,)*
        };
        const PORTUGUESE: ArchivePageTexts = ArchivePageTexts {
            lang: "pt", keep: "", keep_more: "", months: PORTUGUESE_MONTHS, day_and_month: " de ",
            first_of_month: "º", $($name: $portuguese,)*
        };
    };
}

const ENGLISH_MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const PORTUGUESE_MONTHS: [&str; 12] = [
    "janeiro",
    "fevereiro",
    "março",
    "abril",
    "maio",
    "junho",
    "julho",
    "agosto",
    "setembro",
    "outubro",
    "novembro",
    "dezembro",
];

// In Portuguese an Archive is an "acervo": "Arquivo", the standard's word, is also a file.
words! {
    archive: "Archive", "Acervo";
    skip: "Skip to the content", "Ir para o conteúdo";
    next: "Next items", "Próximos itens";
    other_name: "Português", "English";
    other: "pt", "en";
    identifier: "Identifier", "Identificador";
    aliases: "Also known as", "Também conhecido como";
    state: "State", "Estado";
    original: "Original", "Original";
    copy: "Copy", "Cópia";
    removed_state: "Removed", "Removido";
    version: "Version", "Versão";
    language: "Language", "Idioma";
    created: "Deposited", "Depositado";
    updated: "Updated", "Atualizado";
    access: "Access", "Acesso";
    open_to_all: "open to everybody", "aberto a todos";
    some_networks: "some networks only", "só em algumas redes";
    closed_until: "closed until", "fechado até";
    translation_of: "Translation of", "Tradução de";
    next_edition_of: "Next edition of", "Próxima edição de";
    metadata: "Metadata", "Metadados";
    metadata_of: "Metadata of", "Metadados de";
    element: "Element", "Elemento";
    value: "Value", "Valor";
    files: "Files", "Conteúdo";
    file: "File", "Arquivo";
    size: "Bytes", "Bytes";
    kind: "Type", "Tipo";
    open_it: "Open", "Abrir";
    behind: "This copy is outdated; latest version:", "Esta cópia está desatualizada; última versão:";
    leads_to: "Redirects to", "Redireciona para";
    leaving: "This item is hosted elsewhere", "Este item está hospedado em outro lugar";
    leaving_host: "This link leaves the Archive for", "Este link sai do acervo para";
    data_updated: "Data updated", "Dados atualizados";
    metadata_created: "Metadata created", "Metadados criados";
    metadata_updated: "Metadata updated", "Metadados atualizados";
    all_files: "All files", "Todos os arquivos";
    no_files: "This item has no files.", "Este item não tem arquivos.";
    closed: "The files of this item and their list are restricted. The metadata are public.",
        "Os arquivos deste item e a sua lista têm acesso restrito. Os metadados são públicos.";
    removed: "This item was removed", "Este item foi removido";
    removed_at: "Removed", "Removido em";
    removed_by: "By", "Por";
    operator: "operator", "operador";
    reason: "Reason", "Motivo";
    error: "Error", "Erro";
    error_unread: "Invalid address", "Endereço inválido";
    error_closed: "Restricted", "Acesso restrito";
    error_not_found: "Not found", "Não encontrado";
    error_too_many: "Too many requests", "Pedidos demais";
    error_busy: "Try again", "Tente de novo";
    detail_unread: "The address is not valid.", "O endereço não é válido.";
    detail_closed: "Access is restricted.", "O acesso é restrito.";
    detail_not_found: "Nothing was found at this address.", "Nada foi encontrado neste endereço.";
    detail_too_many: "Too many requests; retry later.", "Pedidos demais; tente mais tarde.";
    detail_busy: "Temporarily unavailable; retry.", "Temporariamente indisponível; tente de novo.";
    detail_several: "Several items have this identifier.", "Vários itens têm este identificador.";
    detail_method: "Only GET and HEAD are supported.", "Só GET e HEAD são aceitos.";
    detail_failed: "The request failed.", "O pedido falhou.";
    home: "What this Archive holds", "O que este acervo contém";
    service: "Archive service", "Serviço do acervo (Arquivo, na norma)";
    api: "API", "API";
}

impl ArchivePageTexts {
    /// The name of an item's state.
    pub(super) fn state_name(&self, state: State) -> &'static str {
        match state {
            State::Original => self.original,
            State::Copy => self.copy,
            State::Deleted => self.removed_state,
        }
    }

    /// Describes who may read the files of an item.
    pub(super) fn access_rule(&self, access: &AccessRule) -> String {
        match access {
            AccessRule::Public => self.open_to_all.to_owned(),
            AccessRule::Ip(_) => {
                let rule = access.to_string();
                format!("{}: {}", self.some_networks, rule.trim_start_matches("ip:").replace(',', ", "))
            }
            AccessRule::Until(day) => format!("{} {}", self.closed_until, self.time(&day.to_string())),
        }
    }

    /// Formats a date, or a time in UTC, for people; anything else is returned unchanged.
    pub(in crate::web) fn time(&self, written: &str) -> String {
        self.read_time(written).unwrap_or_else(|| written.to_owned())
    }

    fn read_time(&self, written: &str) -> Option<String> {
        let (day, time) = written.split_at_checked(10)?;
        let mut parts = day.split('-').map(|part| part.parse::<usize>().ok());
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        let month = self.months.get(month.checked_sub(1)?)?;
        // Portuguese writes the first of a month as an ordinal.
        let ordinal = if day == 1 { self.first_of_month } else { "" };
        let day = format!("{day}{ordinal}{between}{month}{between}{year}", between = self.day_and_month);
        match time {
            "" => Some(day),
            _ => Some(format!("{day}, {} UTC", time.strip_prefix('T')?.strip_suffix('Z')?)),
        }
    }

    /// The name of an actor.
    pub(in crate::web) fn who<'a>(&self, by: &'a str) -> &'a str {
        if by == LOCAL_OPERATOR { self.operator } else { by }
    }

    /// The name of a Dublin Core element.
    pub(super) fn element_name(&self, element: Element) -> &'static str {
        if self.lang == "en" {
            return element.name();
        }
        match element {
            Element::Title => "título",
            Element::Creator => "autor",
            Element::Subject => "assunto",
            Element::Description => "descrição",
            Element::Publisher => "editora",
            Element::Contributor => "colaborador",
            Element::Date => "data",
            Element::Type => "tipo",
            Element::Format => "formato",
            Element::Identifier => "identificador",
            Element::Source => "fonte",
            Element::Language => "idioma",
            Element::Relation => "relação",
            Element::Coverage => "cobertura",
            Element::Rights => "direitos",
        }
    }

    /// The heading of an error page.
    pub(super) fn error_title(&self, status: StatusCode) -> &'static str {
        match status {
            StatusCode::BAD_REQUEST => self.error_unread,
            StatusCode::FORBIDDEN => self.error_closed,
            StatusCode::NOT_FOUND => self.error_not_found,
            StatusCode::TOO_MANY_REQUESTS => self.error_too_many,
            StatusCode::SERVICE_UNAVAILABLE => self.error_busy,
            _ => self.error,
        }
    }

    /// A general text for an error without a translation of its own.
    pub(super) fn error_detail(&self, status: StatusCode) -> &'static str {
        match status {
            StatusCode::MULTIPLE_CHOICES => self.detail_several,
            StatusCode::BAD_REQUEST => self.detail_unread,
            StatusCode::FORBIDDEN => self.detail_closed,
            StatusCode::NOT_FOUND => self.detail_not_found,
            StatusCode::METHOD_NOT_ALLOWED => self.detail_method,
            StatusCode::TOO_MANY_REQUESTS => self.detail_too_many,
            StatusCode::SERVICE_UNAVAILABLE => self.detail_busy,
            _ => self.detail_failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rules_are_told_as_people_write_them() {
        assert_eq!(ENGLISH.time("2009-09-09T17:46:05Z"), "9 September 2009, 17:46:05 UTC");
        assert_eq!(PORTUGUESE.time("2009-09-09"), "9 de setembro de 2009");
        assert_eq!(PORTUGUESE.time("2009-01-01"), "1º de janeiro de 2009");
        assert_eq!(PORTUGUESE.time("2009-01-11"), "11 de janeiro de 2009");
        assert_eq!(ENGLISH.time("2009-01-01"), "1 January 2009");
        for other in ["", "2009", "2009-13-01", "2009-00-01", "not a time at all", "áááááááááá"] {
            assert_eq!(PORTUGUESE.time(other), other);
        }
        let rule = |text: &str| PORTUGUESE.access_rule(&text.parse().unwrap());
        assert_eq!(rule("public"), "aberto a todos");
        assert_eq!(rule("until:2030-01-31"), "fechado até 31 de janeiro de 2030");
        assert_eq!(rule("ip:192.0.2.0/24,2001:db8::7"), "só em algumas redes: 192.0.2.0/24, 2001:db8::7");
    }

    /// "Arquivo" would mean both.
    #[test]
    fn an_archive_and_a_file_have_different_names() {
        assert_ne!(PORTUGUESE.archive, PORTUGUESE.file);
        for text in [PORTUGUESE.home, PORTUGUESE.leaving_host] {
            assert!(!text.contains("Arquivo"), "{text}");
        }
    }
}
