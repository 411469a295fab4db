//! The words of the pages, in two languages.

use ibi_http::accept::Tongue;

/// The words of a language.
pub(in crate::web) fn words(tongue: Tongue) -> &'static Words {
    match tongue {
        Tongue::English => &ENGLISH,
        Tongue::Portuguese => &PORTUGUESE,
    }
}

macro_rules! words {
    ($($name:ident: $english:literal, $portuguese:literal;)*) => {
        /// The words of the pages.
        pub(in crate::web) struct Words { pub(in crate::web) lang: &'static str, $(pub(in crate::web) $name: &'static str,)* }
        const ENGLISH: Words = Words { lang: "en", $($name: $english,)* };
        const PORTUGUESE: Words = Words { lang: "pt", $($name: $portuguese,)* };
    };
}

words! {
    archive: "Archive", "Arquivo";
    skip: "Skip to the content", "Ir para o conteúdo";
    next: "Next items", "Próximos itens";
    other_name: "Português", "English";
    other: "pt", "en";
    identifier: "Identifier", "Identificador";
    aliases: "Also known as", "Também conhecido como";
    state: "State", "Estado";
    version: "Version", "Versão";
    language: "Language", "Idioma";
    created: "Deposited", "Depositado";
    updated: "Updated", "Atualizado";
    access: "Access", "Acesso";
    translation_of: "Translation of", "Tradução de";
    next_edition_of: "Next edition of", "Próxima edição de";
    metadata: "Metadata", "Metadados";
    metadata_of: "Metadata of", "Metadados de";
    element: "Element", "Elemento";
    value: "Value", "Valor";
    files: "Files", "Arquivos";
    file: "File", "Arquivo";
    size: "Bytes", "Bytes";
    kind: "Type", "Tipo";
    open_it: "Open", "Abrir";
    behind: "This copy is behind. There is a later version, of number",
        "Esta cópia está desatualizada. Há uma versão posterior, de número";
    leads_to: "Leads to", "Leva a";
    leaving: "This item is elsewhere", "Este item está em outro lugar";
    leaving_host: "The link leaves this Archive. It leads to", "O link sai deste Arquivo. Ele leva a";
    data_updated: "Data updated", "Dados atualizados";
    metadata_updated: "Metadata updated", "Metadados atualizados";
    all_files: "All files", "Todos os arquivos";
    no_files: "This item has no files.", "Este item não tem arquivos.";
    closed: "The files of this item, and the list of them, are closed to you. The metadata are open to all.",
        "Os arquivos deste item, e a lista deles, não estão abertos para você. Os metadados são abertos a todos.";
    removed: "This item was removed", "Este item foi removido";
    removed_at: "Removed", "Removido em";
    removed_by: "By", "Por";
    reason: "Reason", "Motivo";
    error: "Error", "Erro";
    home: "What this Archive holds", "O que este Arquivo contém";
    service: "Archive service", "Serviço do Arquivo";
    api: "API", "API";
}
