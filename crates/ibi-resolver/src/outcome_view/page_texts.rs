//! The texts of the pages in two languages.

use ibi_http::accept::UiLanguage;

/// The texts in a language.
pub fn words(tongue: UiLanguage) -> &'static Words {
    match tongue {
        UiLanguage::English => &ENGLISH,
        UiLanguage::Portuguese => &PORTUGUESE,
    }
}

macro_rules! words {
    ($($name:ident: $english:literal, $portuguese:literal;)*) => {
        /// The texts of the pages.
        #[derive(Debug)]
        pub struct Words {
            pub(crate) lang: &'static str,
            $(pub(crate) $name: &'static str,)*
        }
        const ENGLISH: Words = Words { lang: "en", $($name: $english,)* };
        const PORTUGUESE: Words = Words { lang: "pt", $($name: $portuguese,)* };
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
    standing: "Standing", "Situação";
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
    bad: "Not an identifier, or not one that can be read", "Não é um identificador, ou não pode ser lido";
    bad_explain:
        "ibiurl.explain is `yes` or `no`, and there once.",
        "ibiurl.explain é `yes` ou `no`, e aparece uma vez.";
    alert: "Several originals", "Vários originais";
    alert_detail:
        "More than one Archive claims to have the original of this item. Nobody is sent anywhere until it is clear which one is right; the operator of this resolver has been alerted.",
        "Mais de um acervo afirma ter o original deste item. Ninguém é encaminhado até que se saiba qual está certo; o operador deste resolvedor foi alertado.";
    removed: "Removed", "Removido";
    removed_detail:
        "An Archive says that it removed this item, and no other that answered has it. Its identifier stays, and will never name anything else.",
        "Um acervo diz que removeu este item, e nenhum outro que respondeu o tem. O seu identificador permanece, e nunca nomeará outra coisa.";
    several: "Several items", "Vários itens";
    several_detail:
        "Several items were given this identifier long ago, in different spellings. Choose the one that is meant.",
        "Vários itens receberam este identificador há muito tempo, em grafias diferentes. Escolha o desejado.";
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
        "This address is the service of a resolver of persistent identifiers. Archives tell it when they go online and offline; persistent URLs begin with its base address.",
        "Este endereço é o serviço de um resolvedor de identificadores persistentes. Os acervos lhe informam quando entram no ar e saem do ar; os URLs persistentes começam com o seu endereço base.";
    base: "Base address", "Endereço base";
    software: "Software", "Programa";
    scheme: "Another identifier scheme", "Outro esquema de identificadores";
    scheme_detail:
        "This is not an IBI. The operator of this resolver has set no proxy for identifiers of this scheme:",
        "Isto não é um IBI. O operador deste resolvedor não definiu um proxy para identificadores deste esquema:";
    too_many: "Too many requests", "Muitos pedidos";
    too_many_detail:
        "You asked for many identifiers that no Archive has. Try again later; other identifiers that were found lately still lead on.",
        "Você pediu muitos identificadores que nenhum acervo tem. Tente mais tarde; outros, encontrados há pouco, continuam a levar ao item.";
    not_found: "Not found", "Não encontrado";
    no_item:
        "No Archive that this resolver knows has this item. Look whether the identifier is complete.",
        "Nenhum acervo que este resolvedor conhece tem este item. Verifique se o identificador está completo.";
    no_relation:
        "The item is known, but not in that edition, translation or format.",
        "O item é conhecido, mas não nessa edição, tradução ou formato.";
    no_file: "The item is known, but it has no such file.", "O item é conhecido, mas não tem esse arquivo.";
    no_original: "The original is not there; copies are.", "O original não está disponível; há cópias.";
    incomplete: "Not found just now", "Não encontrado neste momento";
    incomplete_detail:
        "Some Archives did not answer, and one of them may have it: try again in a moment.",
        "Alguns acervos não responderam, e um deles pode tê-lo: tente novamente em instantes.";
    cycle: "No end", "Sem fim";
    cycle_repeats:
        "The answers of the Archives lead in a circle.",
        "As respostas dos acervos levam a um círculo.";
    cycle_rounds:
        "The answers of the Archives lead on and on.",
        "As respostas dos acervos levam cada vez mais longe.";
    offered: "What there is", "O que há";
    copies: "Copies", "Cópias";
    silent: "Archives that did not answer", "Acervos que não responderam";
    claims: "Archives that claim the original", "Acervos que afirmam ter o original";
    evidence: "What they tell of it", "O que dizem dele";
    minted: "label minted", "rótulo gerado";
    minted_here: "under its own prefix", "com o seu próprio prefixo";
    minted_elsewhere: "under another prefix", "com outro prefixo";
    deposited: "deposited", "depositado";
    depositor: "by", "por";
    epoch: "epoch", "época";
    removed_by: "Removed, says the Archive", "Removido, diz o acervo";
    chain: "The questions", "As perguntas";
    explanation: "How this was resolved", "Como isto foi resolvido";
}
