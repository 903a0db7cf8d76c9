//! What people see in Tale.

use std::time::Duration;

use serde_json::json;
use tale_core::Clock;
use tale_notices::Kind;

use crate::world::World;

#[tokio::test]
async fn whoever_is_added_again_does_not_see_what_was_told_before() {
    let Some(world) = World::new().await else { return };
    let acme = world.org("Acme").await;
    let ada = world.person("ada@acme.test", None, acme, "admin").await;
    let join = async || {
        let now = world.clock.now();
        sqlx::query("INSERT INTO app.memberships (org_id, user_id, role, created_at) VALUES ($1, $2, 'member', $3)")
            .bind(acme)
            .bind(ada)
            .bind(now)
            .execute(&world.db.app)
            .await
            .unwrap();
    };
    let seen = async || {
        let (page, _) = world.notices().list(acme, ada, false, None, 100).await.unwrap();
        assert_eq!(world.notices().unread(acme, ada).await.unwrap() as usize, page.len());
        page.into_iter().map(|notice| notice.kind).collect::<Vec<_>>()
    };
    world.remove(acme, ada).await;
    join().await;
    world.tell(ada, Some(acme), Kind::MemberBlocked, json!({})).await;
    world.tell(ada, None, Kind::PasswordChanged, json!({})).await;
    assert_eq!(seen().await.len(), 2, "what happens at the moment of joining counts");
    world.remove(acme, ada).await;
    assert_eq!(seen().await, [Kind::PasswordChanged], "the account stays theirs");
    world.clock.advance(Duration::from_secs(1));
    join().await;
    assert_eq!(seen().await, [Kind::PasswordChanged]);
    world.tell(ada, Some(acme), Kind::RoleChanged, json!({ "role": "member" })).await;
    assert_eq!(seen().await, [Kind::RoleChanged, Kind::PasswordChanged]);
}
