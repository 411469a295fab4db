//! What an explanation looks like, in a terminal and as JSON.

use std::sync::Arc;
use std::time::Duration;

use ibi_http::accept::UiLanguage;
use ibi_protocol::PersistentUrl;
use ibi_protocol::analysis::AcceptedLanguages;
use ibi_resolver::{RegistrationStatus, ResolutionExplanation, ResolutionRequest, Resolver};
use serde_json::json;

use crate::script::{Reaction, Said};
use crate::world::{Rule, World};

async fn explained() -> ResolutionExplanation {
    let world = Arc::new(World::default());
    for (name, standing) in [
        ("inpe", RegistrationStatus::OnLine),
        ("usp", RegistrationStatus::OnLine),
        ("unb", RegistrationStatus::Unconfirmed),
    ] {
        world.archive(name, standing, &format!("{name}.br"), &[]);
    }
    let says = Reaction::Says(vec![Said::NextEdition("a.br/b/2010/02.16.17.46".to_owned())]);
    for (question, reaction) in [
        ("a.br/b/2009/02.16.17.46!", says),
        ("a.br/b/2010/02.16.17.46!", Reaction::Says(vec![Said::Removed("2021-03-04T05:06:07Z".to_owned())])),
    ] {
        world.state().rules.push(Rule {
            place: String::new(),
            name: "inpe".to_owned(),
            question: question.to_owned(),
            after: Duration::from_millis(7),
            reaction,
            used: 0,
        });
    }
    let resolver = Resolver::new(Arc::clone(&world), world, Arc::new(|| 1_700_000_000));
    let asked = ResolutionRequest {
        robot: false,
        fresh: false,
        url: PersistentUrl::parse("/a.br/b/2009/02.16.17.46!", None).unwrap(),
        persistent: "http://r.br/a.br/b/2009/02.16.17.46!".to_owned(),
        languages: AcceptedLanguages::default(),
        client: vec!["192.0.2.1".parse().unwrap()],
        explain: true,
        goes: true,
    };
    resolver.resolve(asked).await.explanation.unwrap()
}

#[tokio::test(start_paused = true)]
async fn in_a_terminal() {
    let text = explained().await.to_string();
    assert_eq!(
        text,
        "http://r.br/a.br/b/2009/02.16.17.46!

1. a.br/b/2009/02.16.17.46!: requested by the client; 10.000 ms
       7.000 ms  inpe.br/archive/2001/01.01.01.01 at inpe.br: knows rep a.br/b/2009/02.16.17.46; next edition rep a.br/b/2010/02.16.17.46
      10.000 ms  usp.br/archive/2001/01.01.01.01 at usp.br: does not hold it
              -  unb.br/archive/2001/01.01.01.01 at unb.br: failed: online since 2020-09-13T12:26:40Z, but not confirmed

2. a.br/b/2010/02.16.17.46!: an Archive knows a next edition (4.2 step 5); 10.000 ms
       7.000 ms  inpe.br/archive/2001/01.01.01.01 at inpe.br: reports that rep a.br/b/2010/02.16.17.46 was removed, 2021-03-04T05:06:07Z
      10.000 ms  usp.br/archive/2001/01.01.01.01 at usp.br: does not hold it
              -  unb.br/archive/2001/01.01.01.01 at unb.br: failed: online since 2020-09-13T12:26:40Z, but not confirmed

410: an Archive reports Deleted, and no Archive that answered has it live (4.3); 20.000 ms
"
    );
}

#[tokio::test(start_paused = true)]
async fn in_portuguese() {
    let text = explained().await.to_text(UiLanguage::Portuguese);
    for part in [
        "1. a.br/b/2009/02.16.17.46!: pedido pelo cliente; 10.000 ms\n",
        "inpe.br/archive/2001/01.01.01.01 em inpe.br: conhece rep a.br/b/2009/02.16.17.46; próxima edição rep",
        "usp.br/archive/2001/01.01.01.01 em usp.br: não o tem\n",
        "2. a.br/b/2010/02.16.17.46!: um acervo conhece uma próxima edição (4.2, passo 5); 10.000 ms\n",
        "informa que rep a.br/b/2010/02.16.17.46 foi removido, 2021-03-04T05:06:07Z\n",
        "\n410: um acervo informa Deleted, e nenhum acervo que respondeu tem o item (4.3); 20.000 ms\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn as_json() {
    let json = serde_json::to_value(explained().await).unwrap();
    assert_eq!((&json["status"], &json["microseconds"]), (&json!(410), &json!(20_000)));
    assert_eq!(
        json["rounds"][0]["query"],
        "clientinformation.ipaddress=192.0.2.1&parsedibiurl.ibi=a.br/b/2009/02.16.17.46&\
         parsedibiurl.verblist=GetLastEdition&servicesubject=urlRequest"
    );
    assert_eq!(
        json["rounds"][1]["archives"][0],
        json!({
            "archive": "inpe.br/archive/2001/01.01.01.01",
            "address": "inpe.br",
            "said": "deleted",
            "item": "rep a.br/b/2010/02.16.17.46",
            "timestamp": "2021-03-04T05:06:07Z",
            "microseconds": 7000,
        })
    );
    assert_eq!(json["rounds"][1]["archives"][1]["said"], "nothing");
    assert_eq!(json["rounds"][1]["archives"][2]["said"], "failed");
}
