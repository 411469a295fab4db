//! An explanation as text, in two languages.

use std::fmt;

use ibi_http::accept::UiLanguage;
use ibi_protocol::analysis::{
    CycleReason, ItemQuery, NotFoundReason, RequeryReason, RoundDecision, RoundPurpose, RoundQuery,
};
use ibi_protocol::{RelationPart, untrusted_text};

use super::{ExplainedAnswer, ExplainedOffer, ExplainedReason, ExplainedReply, ResolutionExplanation};

/// A query in the form of a persistent URL.
pub(crate) fn question_text(question: &ItemQuery) -> String {
    let ItemQuery { label, verbs, file } = question;
    let file = file.as_ref().map(|file| String::from_utf8_lossy(file.as_bytes()));
    let list = if verbs.file_list { " and its list of files" } else { "" };
    format!("{}{}{}{list}", label.spelling(), verbs.relation.modifiers(), file.unwrap_or_default())
}

/// Why a round ends with this decision.
pub(super) fn decision_reason(decision: &RoundDecision, wanted: &RoundQuery) -> ExplainedReason {
    let (english, portuguese) = decision_texts(decision, wanted);
    match wanted.purpose {
        RoundPurpose::Recount => ExplainedReason {
            english: format!("asked again: {english}"),
            portuguese: format!("nova consulta: {portuguese}"),
        },
        _ => ExplainedReason { english, portuguese },
    }
}

fn decision_texts(decision: &RoundDecision, wanted: &RoundQuery) -> (String, String) {
    let parts = wanted.verbs.relation.parts();
    let (english, portuguese) = match decision {
        RoundDecision::Found(_) if wanted.original => (
            "the original is required, and only this Archive claims it (4.2 step 3)",
            "o original é exigido, e só este acervo afirma tê-lo (4.2, passo 3)",
        ),
        RoundDecision::Found(found) if parts.contains(&RelationPart::Translation(None)) => {
            match found.relation.parts().iter().any(|part| matches!(part, RelationPart::Translation(Some(_))))
            {
                true => (
                    "of the translations offered in time it suits the client best (4.2 step 6)",
                    "das traduções oferecidas a tempo é a melhor para o cliente (4.2, passo 6)",
                ),
                false => (
                    "no translation suits the client better than one whose language is not stated (4.2 step 6)",
                    "nenhuma tradução serve melhor ao cliente do que uma sem idioma declarado (4.2, passo 6)",
                ),
            }
        }
        RoundDecision::Found(_) if parts.first() == Some(&RelationPart::LastEdition) => (
            "the first answer that satisfies the request, and no Archive named a later edition in time (4.2 step 4)",
            "a primeira resposta que atende ao pedido, e nenhum acervo indicou a tempo uma edição posterior (4.2, passo 4)",
        ),
        RoundDecision::Found(_) => (
            "the first answer that satisfies the request (4.2 step 4)",
            "a primeira resposta que atende ao pedido (4.2, passo 4)",
        ),
        RoundDecision::AskAgain(again) => match &again.why {
            RequeryReason::NextBest(why) => {
                let (english, portuguese) = requery_texts(why);
                return (
                    format!("the best candidate failed; {english}"),
                    format!("o melhor candidato falhou; {portuguese}"),
                );
            }
            why => return requery_texts(why),
        },
        RoundDecision::Alert(_) => (
            "several Archives claim the original, also when asked again (4.2 step 3)",
            "vários acervos afirmam ter o original, também na nova consulta (4.2, passo 3)",
        ),
        RoundDecision::Deleted { .. } => (
            "an Archive reports Deleted, and no Archive that answered has it live (4.3)",
            "um acervo informa Deleted, e nenhum acervo que respondeu tem o item (4.3)",
        ),
        RoundDecision::Ambiguous(_) => (
            "the spelling is canonical for several items (1.3)",
            "a grafia é canônica para vários itens (1.3)",
        ),
        RoundDecision::Reserved(_) => (
            "the label is reserved for a draft, and no Archive has it live (4.3)",
            "o rótulo está reservado para um rascunho, e nenhum acervo tem o item (4.3)",
        ),
        RoundDecision::NotFound(not_found) => match not_found {
            NotFoundReason::Item => (
                "every Archive answered, and none has it (4.3)",
                "todos os acervos responderam, e nenhum o tem (4.3)",
            ),
            NotFoundReason::Original { .. } => (
                "no Archive claims the original, also when asked again (4.2 step 3)",
                "nenhum acervo afirma ter o original, também na nova consulta (4.2, passo 3)",
            ),
            NotFoundReason::File { .. } => (
                "the item is known, but it has no such file (4.3)",
                "o item é conhecido, mas não tem esse arquivo (4.3)",
            ),
            NotFoundReason::Related { .. } => (
                "the item is known, but the relation is not available (4.3)",
                "o item é conhecido, mas a relação não está disponível (4.3)",
            ),
            NotFoundReason::Unheld { .. } => (
                "an Archive names the item, but no Archive has it (4.3)",
                "um acervo nomeia o item, mas nenhum acervo o tem (4.3)",
            ),
        },
        RoundDecision::Incomplete { .. } => (
            "not found, but some Archive did not answer and may have it (4.3)",
            "não encontrado, mas algum acervo não respondeu e pode tê-lo (4.3)",
        ),
        RoundDecision::Cycle { why: CycleReason::Repeats, .. } => {
            ("the replies form a loop (4.2 step 5)", "as respostas formam um ciclo (4.2, passo 5)")
        }
        RoundDecision::Cycle { why: CycleReason::TooManyRounds, .. } => {
            ("more than 32 rounds (4.2 step 5)", "mais de 32 rodadas (4.2, passo 5)")
        }
        RoundDecision::Wait => ("answers pending", "respostas pendentes"),
    };
    (english.to_owned(), portuguese.to_owned())
}

/// Why a query is sent.
fn requery_texts(why: &RequeryReason) -> (String, String) {
    let (english, portuguese) = match why {
        RequeryReason::Leading(part) => {
            let part = part.modifiers();
            return (
                format!("no Archive has a URL, but one knows the item that `{part}` names (4.2 step 5)"),
                format!("nenhum acervo tem um URL, mas um sabe que item `{part}` nomeia (4.2, passo 5)"),
            );
        }
        RequeryReason::NextBest(why) => return requery_texts(why),
        RequeryReason::NextEdition => (
            "an Archive knows a next edition (4.2 step 5)",
            "um acervo conhece uma próxima edição (4.2, passo 5)",
        ),
        RequeryReason::CopyOfLast => (
            "only copies of a later edition are known: querying the editions after it (4.2 step 4)",
            "só se conhecem cópias de uma edição posterior: consulta das edições seguintes (4.2, passo 4)",
        ),
        RequeryReason::WhoDecides => (
            "Archives name different editions or translations: the Archive of the Original decides (2.4)",
            "os acervos nomeiam edições ou traduções diferentes: decide o acervo do original (2.4)",
        ),
        RequeryReason::Decided => (
            "the Archive of the Original is known and decides (2.4)",
            "o acervo do original é conhecido e decide (2.4)",
        ),
        RequeryReason::LastLiving => (
            "the last edition was removed: searching for the last live one (4.3)",
            "a última edição foi removida: busca da última que existe (4.3)",
        ),
        RequeryReason::WithoutTranslation => (
            "no translation suits the client: the item itself is used (4.2 step 6)",
            "nenhuma tradução serve ao cliente: usa-se o próprio item (4.2, passo 6)",
        ),
        RequeryReason::Claims => (
            "not exactly one Archive claims the original: queried once more to confirm (4.2 step 3)",
            "não é exatamente um acervo que afirma ter o original: nova consulta para confirmar (4.2, passo 3)",
        ),
        RequeryReason::Offers => (
            "the item is known, but the relation is not available: querying what is (4.3)",
            "o item é conhecido, mas a relação não está disponível: consulta do que está (4.3)",
        ),
    };
    (english.to_owned(), portuguese.to_owned())
}

impl fmt::Display for ResolutionExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(UiLanguage::English))
    }
}

impl ResolutionExplanation {
    /// The explanation as text. What an Archive sent is quoted as it is.
    pub fn to_text(&self, language: UiLanguage) -> String {
        let Self { persistent, rounds, status, location, because, microseconds, .. } = self;
        let mut text = format!("{}\n", untrusted_text::truncate_untrusted(persistent, 2000));
        for (number, round) in (1..).zip(rounds) {
            let (question, took) =
                (untrusted_text::truncate_untrusted(&round.question, 500), DisplayMillis(round.microseconds));
            text.push_str(&format!("\n{number}. {question}: {}; {took}\n", round.why.text(language)));
            for heard in &round.archives {
                text.push_str(&format!("   {}\n", answer_text(heard, language)));
            }
        }
        let took = DisplayMillis(*microseconds);
        text.push_str(&format!("\n{status}: {}; {took}\n", because.text(language)));
        if let Some(location) = location {
            text.push_str(&format!("-> {location}\n"));
        }
        text
    }
}

fn answer_text(answer: &ExplainedAnswer, language: UiLanguage) -> String {
    let ExplainedAnswer { archive, address, secure, said, microseconds, index_age } = answer;
    let took = microseconds.map_or_else(|| "-".to_owned(), |micros| DisplayMillis(micros).to_string());
    let scheme = if *secure { "https://" } else { "" };
    let at = at(language);
    let address = address.as_ref().map(|address| format!(" {at} {scheme}{address}")).unwrap_or_default();
    let index = index_age.map(|age| match language {
        UiLanguage::English => format!(" (from the index, {age} ms old)"),
        UiLanguage::Portuguese => format!(" (do índice, de {age} ms atrás)"),
    });
    format!("{took:>12}  {archive}{address}: {}{}", reply_text(said, language), index.unwrap_or_default())
}

const fn at(language: UiLanguage) -> &'static str {
    match language {
        UiLanguage::English => "at",
        UiLanguage::Portuguese => "em",
    }
}

fn reply_text(reply: &ExplainedReply, language: UiLanguage) -> String {
    let is_english = language == UiLanguage::English;
    let pick =
        |english: &'static str, portuguese: &'static str| if is_english { english } else { portuguese };
    let next = pick("next edition", "próxima edição");
    let listed = |offers: &[ExplainedOffer], next_edition: &Option<String>| {
        let offers = offers.iter().map(|offer| format!("; {}", offer_text(offer, language)));
        let next = next_edition.iter().map(|edition| format!("; {next} {edition}"));
        offers.chain(next).collect::<String>()
    };
    match reply {
        ExplainedReply::Nothing => pick("does not hold it", "não o tem").to_owned(),
        ExplainedReply::Waiting => pick("was not waited for", "não foi esperado").to_owned(),
        ExplainedReply::Failed { why } => format!("{}: {why}", pick("failed", "falhou")),
        ExplainedReply::Deleted { item, timestamp, next_edition, offers } => {
            let removed = match is_english {
                true => format!("reports that {item} was removed"),
                false => format!("informa que {item} foi removido"),
            };
            let at = timestamp.as_ref().map(|at| format!(", {at}")).unwrap_or_default();
            format!("{removed}{at}{}", listed(offers, next_edition))
        }
        ExplainedReply::Several { items } => {
            let several = pick("has several items of this spelling", "tem vários itens com esta grafia");
            format!("{several}: {}", items.join(", "))
        }
        ExplainedReply::Reserved { item } => match is_english {
            true => format!("reports that {item} is reserved for a draft"),
            false => format!("informa que {item} está reservado para um rascunho"),
        },
        ExplainedReply::Offered { item, offers, next_edition, translated_next } => {
            let known = format!("{} {item}{}", pick("knows", "conhece"), listed(offers, next_edition));
            let of = pick("of", "de");
            let translated = translated_next
                .iter()
                .map(|(relation, edition)| format!("; {next} {of} {relation} {edition}"));
            known + &translated.collect::<String>()
        }
    }
}

fn offer_text(offer: &ExplainedOffer, language: UiLanguage) -> String {
    let ExplainedOffer { modifiers, ibi, url, state } = offer;
    let itself = if language == UiLanguage::English { "itself" } else { "o próprio" };
    let name = if modifiers.is_empty() { itself } else { modifiers };
    let state = state.map(|state| format!(" {state}")).unwrap_or_default();
    let place = match (url, ibi, language) {
        (Some(url), _, _) => format!(" {} {url}", at(language)),
        (None, Some(ibi), UiLanguage::English) => format!(" is {ibi}, which it does not hold"),
        (None, Some(ibi), UiLanguage::Portuguese) => format!(" é {ibi}, que ele não tem"),
        (None, None, _) => String::new(),
    };
    format!("{name}{state}{place}")
}

/// Milliseconds, with microsecond precision.
struct DisplayMillis(u64);

impl fmt::Display for DisplayMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ms", self.0 / 1000, self.0 % 1000)
    }
}
