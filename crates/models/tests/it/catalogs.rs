//! Lists of models that are read from providers (MOD-13 to MOD-16).

use std::time::Duration;

use secrecy::SecretString;
use serde_json::json;
use tale_core::problem::Code;
use tale_governance::policies::ModelRules;
use tale_models::{AuthMethod, NewCredential, ProviderChange};
use tale_testkit::upstream::FakeUpstream;

use crate::support::{Room, chat_model, new_provider};

fn listed(upstream: &FakeUpstream) -> usize {
    upstream.requests().iter().filter(|request| request.path == "/v1/models").count()
}

#[tokio::test]
async fn every_list_is_read_again_and_each_result_is_told() {
    let room = Room::new().await;
    let (good, bad) = (FakeUpstream::start().await, FakeUpstream::start().await);
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    for (slug, upstream) in [("good", &good), ("bad", &bad)] {
        models.create_provider(org, actor, new_provider(slug, &upstream.openai_base(), Vec::new())).await.unwrap();
    }
    models
        .create_provider(org, actor, new_provider("typed", &good.openai_base(), vec![chat_model("m")]))
        .await
        .unwrap();
    let view = models.provider(org, "bad").await.unwrap();
    drop(bad);
    good.set_models(vec![json!({ "id": "only" })]);

    let results = models.refresh_catalogs(org).await.unwrap();
    let told: Vec<_> = results.iter().map(|one| (one.provider_slug.as_str(), one.result.is_ok())).collect();
    assert_eq!(told, [("bad", false), ("good", true)], "typed models are read from nowhere");
    assert_eq!(results[1].result, Ok(1));
    let kept = models.provider(org, "bad").await.unwrap();
    assert_eq!(kept.provider.models, view.provider.models, "a failure keeps the list before it");
    let state = kept.catalog.unwrap();
    assert_eq!(state.fetched_at, view.catalog.unwrap().fetched_at);
    assert_eq!(state.error.as_ref(), results[0].result.as_ref().err());
}

#[tokio::test]
async fn a_list_in_use_is_renewed_after_a_day_and_at_most_once_an_hour_when_that_fails() {
    let room = Room::new().await;
    let upstream = FakeUpstream::start().await;
    let (models, org) = (&room.models, room.org);
    models.create_provider(org, &room.actor, new_provider("live", &upstream.openai_base(), Vec::new())).await.unwrap();
    room.clock.advance(Duration::from_secs(23 * 3_600));
    models.chat_models(org, &ModelRules::none()).await.unwrap();
    assert_eq!(listed(&upstream), 1, "a list younger than a day is not read again");

    room.clock.advance(Duration::from_secs(3_600));
    upstream.set_models(vec![json!({ "id": "newer" })]);
    let now = models.chat_models(org, &ModelRules::none()).await.unwrap();
    assert_eq!(now[0].id, "fake-chat", "the old list is served meanwhile");
    models.chat_models(org, &ModelRules::none()).await.unwrap();
    let renewed = async {
        while models.chat_models(org, &ModelRules::none()).await.unwrap()[0].id != "newer" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), renewed).await.expect("the list is renewed");
    assert_eq!(listed(&upstream), 2);

    let away = ProviderChange {
        version: 1,
        base_url: Some("http://127.0.0.1:9/v1".into()),
        api_key: Some("sk-another-key-1234".into()),
        ..ProviderChange::default()
    };
    models.change_provider(org, &room.actor, "live", away).await.unwrap();
    room.clock.advance(Duration::from_secs(25 * 3_600));
    models.chat_models(org, &ModelRules::none()).await.unwrap();
    let failed = async {
        while models.provider(org, "live").await.unwrap().catalog.unwrap().error.is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), failed).await.expect("the failure is kept");
    assert_eq!(models.chat_models(org, &ModelRules::none()).await.unwrap()[0].id, "newer");
}

#[tokio::test]
async fn a_check_reads_with_the_named_key_and_names_what_is_not_listed() {
    let room = Room::new().await;
    let upstream = FakeUpstream::start().await;
    let (models, org, actor) = (&room.models, room.org, &room.actor);
    let typed = vec![chat_model("fake-chat"), chat_model("retired")];
    models.create_provider(org, actor, new_provider("typed", &upstream.openai_base(), typed)).await.unwrap();
    let second = NewCredential {
        name: "Second".into(),
        auth_method: AuthMethod::ApiKey,
        api_key: Some(SecretString::from("sk-second-0123456789")),
        secret_env: None,
        endpoint: None,
        model_allowlist: Vec::new(),
        enabled: true,
    };
    let second = models.create_credential(org, actor, "typed", second).await.unwrap();
    let checked = models.check_models(org, second.id).await.unwrap();
    assert_eq!((checked.count, checked.missing), (2, vec!["retired".to_owned()]));
    assert_eq!(upstream.requests().last().unwrap().key.as_deref(), Some("Bearer sk-second-0123456789"));
    assert_eq!(models.provider(org, "typed").await.unwrap().provider.models.len(), 2);
    let other = crate::support::organization(&room.db.app, "other").await;
    assert_eq!(models.check_models(other, second.id).await.unwrap_err().code, Code::CredentialNotFound);
}
