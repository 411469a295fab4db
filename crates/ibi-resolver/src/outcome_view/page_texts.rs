//! The texts of the pages in two languages.

use ibi_http::accept::UiLanguage;

/// The texts in a language.
pub fn words(language: UiLanguage) -> &'static ResolverPageTexts {
    match language {
        UiLanguage::English => &ENGLISH,
        UiLanguage::Portuguese => &PORTUGUESE,
    }
}

macro_rules! words {
    ($($name:ident: $english:literal, $portuguese:literal;)*) => {
        /// The texts of the pages.
        #[derive(Debug)]
        pub struct ResolverPageTexts {
            pub(crate) lang: &'static str,
            $(pub(crate) $name: &'static str,)*
        }
        const ENGLISH: ResolverPageTexts = ResolverPageTexts { lang: "en", $($name: $english,)* };
        const PORTUGUESE: ResolverPageTexts = ResolverPageTexts { lang: "pt", $($name: $portuguese,)* };
    };
}

words! {
    resolver: "Resolver of persistent identifiers", "Resolvedor de identificadores persistentes";
    skip: "Skip to the content", "Ir para o conteúdo";
    other: "pt", "en";
    other_name: "Português", "English";
    ask: "An identifier (IBI), with modifiers if you like", "Um identificador (IBI), com modificadores se quiser";
    go: "Go", "Ir";
    archives: "Archives", "Acervos (Arquivos, na norma)";
    no_archives: "No Archive is registered yet.", "Nenhum acervo foi cadastrado ainda.";
    standing: "Status", "Situação";
    address: "Address", "Endereço";
    new: "new", "novo";
    online: "online", "no ar";
    offline: "offline", "fora do ar";
    unconfirmed: "unconfirmed", "não confirmado";
    retired: "retired", "desativado";
    modifiers: "Modifiers", "Modificadores";
    modifier_metadata: "its metadata", "os seus metadados";
    modifier_edition: "its last edition", "a sua última edição";
    modifier_translation: "its translation", "a sua tradução";
    item: "Item", "Item";
    api: "API", "API";
    found: "Found", "Encontrado";
    bad: "Not a valid identifier", "Não é um identificador válido";
    bad_explain:
        "ibiurl.explain must be given once, as `yes` or `no`.",
        "ibiurl.explain deve ser informado uma só vez, como `yes` ou `no`.";
    alert: "Several originals", "Vários originais";
    alert_detail:
        "More than one Archive claims to have the original of this item. Requests are not redirected until this is settled; the operator of this resolver has been alerted.",
        "Mais de um acervo afirma ter o original deste item. Os pedidos não são redirecionados até que isso se esclareça; o operador deste resolvedor foi alertado.";
    removed: "Removed", "Removido";
    removed_detail:
        "An Archive reports that it removed this item, and no other Archive that answered has it. The identifier stays, and is never reused.",
        "Um acervo informa que removeu este item, e nenhum outro que respondeu o tem. O identificador permanece, e nunca é reutilizado.";
    several: "Several items", "Vários itens";
    several_detail:
        "Several items were given this identifier long ago, in different spellings. Choose one.",
        "Vários itens receberam este identificador há muito tempo, em grafias diferentes. Escolha um.";
    reserved: "Reserved", "Reservado";
    reserved_detail:
        "This identifier is reserved for an item that has not been published yet.",
        "Este identificador está reservado para um item que ainda não foi publicado.";
    unheld:
        "An Archive names a newer edition or a translation, but no Archive that this resolver knows holds it.",
        "Um acervo nomeia uma edição mais nova ou uma tradução, mas nenhum acervo que este resolvedor conhece a tem.";
    unheld_item: "Not held by any Archive", "Em nenhum acervo";
    service: "Service", "Serviço";
    service_detail:
        "This address is the service of a resolver of persistent identifiers. Archives notify it when they go online or offline; persistent URLs begin with its base address.",
        "Este endereço é o serviço de um resolvedor de identificadores persistentes. Os acervos lhe informam quando entram no ar e saem do ar; os URLs persistentes começam com o seu endereço base.";
    base: "Base address", "Endereço base";
    software: "Software", "Programa";
    scheme: "Another identifier scheme", "Outro esquema de identificadores";
    scheme_detail:
        "This is not an IBI. The operator of this resolver has set no proxy for identifiers of this scheme:",
        "Isto não é um IBI. O operador deste resolvedor não definiu um proxy para identificadores deste esquema:";
    too_many: "Too many requests", "Muitos pedidos";
    too_many_detail:
        "You requested many identifiers that no Archive has. Try again later; recently found ones still work.",
        "Você pediu muitos identificadores que nenhum acervo tem. Tente mais tarde; os encontrados recentemente continuam a funcionar.";
    not_found: "Not found", "Não encontrado";
    no_item:
        "No Archive that this resolver knows has this item. Check that the identifier is complete.",
        "Nenhum acervo que este resolvedor conhece tem este item. Verifique se o identificador está completo.";
    no_relation:
        "The item is known, but not in that edition, translation or format.",
        "O item é conhecido, mas não nessa edição, tradução ou formato.";
    no_file: "The item is known, but it has no such file.", "O item é conhecido, mas não tem esse arquivo.";
    no_original: "No Original is available, only copies.", "Nenhum original está disponível, só cópias.";
    incomplete: "Temporarily not found", "Temporariamente não encontrado";
    incomplete_detail:
        "Some Archives did not answer, and one of them may have it: try again in a moment.",
        "Alguns acervos não responderam, e um deles pode tê-lo: tente novamente em instantes.";
    cycle: "Resolution loop", "Ciclo na resolução";
    cycle_repeats:
        "The replies of the Archives form a loop.",
        "As respostas dos acervos formam um ciclo.";
    cycle_rounds:
        "Too many steps.",
        "Passos demais.";
    offered: "Available instead", "Disponível em seu lugar";
    copies: "Copies", "Cópias";
    silent: "Archives that did not answer", "Acervos que não responderam";
    claims: "Archives that claim the original", "Acervos que afirmam ter o original";
    evidence: "Evidence", "Evidências";
    minted: "label minted", "rótulo gerado";
    minted_here: "under its own prefix", "com o seu próprio prefixo";
    minted_elsewhere: "under another prefix", "com outro prefixo";
    deposited: "deposited", "depositado";
    depositor: "by", "por";
    epoch: "epoch", "época";
    removed_by: "Reported as removed by", "Remoção informada por";
    chain: "Queries", "Consultas";
    explanation: "How this was resolved", "Como isto foi resolvido";
}
