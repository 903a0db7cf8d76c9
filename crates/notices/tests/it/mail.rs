//! Who gets mail, and what it says.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tale_jobs::Worker;
use tale_notices::mail::MailNotices;
use tale_notices::{Kind, News, Wishes};
use tokio_util::sync::CancellationToken;

use crate::world::{SITE, World};

#[tokio::test]
async fn mail_is_due_where_the_deployment_delivers_it_and_the_person_wants_it() {
    let Some(world) = World::new().await else { return };
    let acme = world.org("Acme").await;
    let ada = world.person("ada@acme.test", None, acme, "member").await;
    assert!(world.notices().delivers_mail().await.unwrap());
    let wishes = Wishes { muted: vec![Kind::BackupCodeUsed], unmailed: vec![Kind::KeyMade] };
    world.notices().set_wishes(ada, &wishes).await.unwrap();
    assert_eq!(world.notices().wishes(ada).await.unwrap(), wishes);
    for kind in [Kind::KeyMade, Kind::BackupCodeUsed] {
        world.tell(ada, None, kind, json!({})).await;
    }
    assert_eq!((world.due().await, world.jobs().await.len()), (0, 0));
    // What protects an account is mailed whatever anybody wishes.
    let hushed = Wishes { unmailed: vec![Kind::PasswordChanged], ..Wishes::default() };
    assert!(world.notices().set_wishes(ada, &hushed).await.is_err());
    // Job and notification are there together or not at all.
    let mut tx = world.db.app.begin().await.unwrap();
    let news = News { org: None, kind: Kind::PasswordChanged, details: json!({}), at: chrono::Utc::now() };
    tale_notices::tell(&mut tx, ada, &news).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!((world.due().await, world.jobs().await.len()), (0, 0));
    for kind in [Kind::PasswordChanged, Kind::FactorAdded, Kind::NewDevice] {
        world.tell(ada, None, kind, json!({})).await;
    }
    assert_eq!((world.due().await, world.jobs().await.len()), (3, 1), "one job for all of them");
    // Whoever changes their mind gets none of what still waits.
    let none = Wishes { unmailed: vec![Kind::NewDevice], ..Wishes::default() };
    world.notices().set_wishes(ada, &none).await.unwrap();
    world.deliver(None, ada).await.unwrap();
    let [got] = &world.received()[..] else { panic!("one mail") };
    assert!(
        got.text.contains("Password changed")
            && got.text.contains("Second factor added")
            && !got.text.contains("New sign-in")
    );

    world.process(None).announce().await.unwrap();
    assert!(!world.notices().delivers_mail().await.unwrap());
    world.tell(ada, None, Kind::PasswordChanged, json!({})).await;
    assert_eq!((world.due().await, world.jobs().await.len()), (0, 1), "no mail server, no mail");
}

#[tokio::test]
async fn a_mail_is_in_the_language_of_its_reader_and_nothing_in_it_is_markup_or_a_header() {
    let Some(world) = World::new().await else { return };
    let acme = world.org("Acme <b>& Sons</b>\r\nBcc: eve@other.test").await;
    let ada = world.person("ada@acme.test", Some("de"), acme, "admin").await;
    let name = "<script>alert(1)</script>\"'\r\nBcc: eve@other.test\u{202e}";
    world.tell(ada, Some(acme), Kind::KeyMade, json!({ "name": name })).await;
    world.deliver(Some(acme), ada).await.unwrap();
    world.tell(ada, Some(acme), Kind::RoleChanged, json!({ "role": "admin" })).await;
    world.tell(ada, Some(acme), Kind::MemberBlocked, json!({ "email": name, "network": "1.2.3.0/24" })).await;
    world.deliver(Some(acme), ada).await.unwrap();
    let [one, two] = &world.received()[..] else { panic!("two mails") };
    assert!(one.encrypted);
    assert_eq!((one.to.as_slice(), one.header("To")), (["ada@acme.test".to_owned()].as_slice(), "ada@acme.test"));
    assert_eq!(one.header("Subject"), "API-Schlüssel erzeugt");
    assert_eq!(two.header("Subject"), "2 Benachrichtigungen von Tale");
    let link = format!("{SITE}/dashboard/{acme}/settings/api/rest");
    assert!(one.text.contains("Schlüssel „<script>alert(1)</script>\"'Bcc: eve@other.test“"), "{}", one.text);
    assert!(one.text.contains(&link) && one.text.contains("2023-11-14 22:13 UTC"), "{}", one.text);
    assert!(one.html.contains(&format!("href=\"{link}\"")) && one.html.contains("lang=\"de\""), "{}", one.html);
    assert!(one.html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;Bcc"), "{}", one.html);
    let settings = format!("{SITE}/dashboard/{acme}/settings/notifications");
    for got in [one, two] {
        assert!(
            got.headers("Bcc").is_empty() && !got.html.contains("<script>") && !got.html.contains("<b>"),
            "{got:?}"
        );
        assert!(got.text.contains(&settings) && got.text.contains("Organisation: Acme <b>& Sons</b>Bcc: eve"));
        assert!(!got.text.contains('\u{202e}') && !got.html.contains('\u{202e}'));
    }
    let (role, block) = (two.text.find("Ihre Rolle ist jetzt Admin"), two.text.find("Mitglieds gesperrt"));
    assert!(role.unwrap() < block.unwrap(), "what strangers cause stands last: {}", two.text);
}

#[tokio::test]
async fn whoever_may_not_read_it_any_more_gets_no_mail() {
    let Some(world) = World::new().await else { return };
    let (acme, other) = (world.org("Acme").await, world.org("Other").await);
    let gone = world.person("gone@acme.test", None, acme, "member").await;
    let disabled = world.person("disabled@acme.test", None, acme, "member").await;
    let demoted = world.person("demoted@acme.test", None, acme, "admin").await;
    let deleted = world.person("deleted@acme.test", None, acme, "member").await;
    let bob = world.person("bob@other.test", None, other, "admin").await;
    for person in [gone, disabled, deleted] {
        world.tell(person, Some(acme), Kind::RoleChanged, json!({ "role": "editor" })).await;
    }
    world.tell(demoted, Some(acme), Kind::MemberBlocked, json!({})).await;
    world.remove(acme, gone).await;
    world.role(acme, disabled, "disabled").await;
    world.role(acme, demoted, "member").await;
    sqlx::query("DELETE FROM app.users WHERE id = $1").bind(deleted).execute(&world.db.app).await.unwrap();
    for person in [gone, disabled, demoted, deleted] {
        world.deliver(Some(acme), person).await.unwrap();
    }
    // Nobody gets what belongs to another organization, or to another person.
    world.tell(bob, Some(other), Kind::RoleChanged, json!({ "role": "admin" })).await;
    world.deliver(Some(acme), bob).await.unwrap();
    world.deliver(None, bob).await.unwrap();
    assert_eq!((world.received().len(), world.due().await), (0, 1));
    world.deliver(Some(other), bob).await.unwrap();
    // Of their account people are told whatever becomes of their membership.
    world.tell(gone, None, Kind::PasswordChanged, json!({})).await;
    world.deliver(None, gone).await.unwrap();
    let got: Vec<String> = world.received().into_iter().flat_map(|got| got.to).collect();
    assert_eq!(got, ["bob@other.test", "gone@acme.test"]);
    let text = &world.received()[1].text;
    let link = format!("Show in Tale: {SITE}/");
    assert!(text.lines().any(|line| line == link), "a link that opens: {text}");
}

#[tokio::test]
async fn a_worker_delivers_what_was_told() {
    let Some(world) = World::new().await else { return };
    let acme = world.org("Acme").await;
    let ada = world.person("ada@acme.test", Some("fr"), acme, "member").await;
    let worker = Worker::builder().register::<MailNotices>(Arc::new(world.process(Some(world.server.port))));
    let stop = CancellationToken::new();
    let running = tokio::spawn(worker.build(world.db.app.clone()).run(stop.clone()));
    world.tell(ada, None, Kind::PasswordChanged, json!({})).await;
    let delivered = async {
        while !world.jobs().await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), delivered).await.unwrap();
    stop.cancel();
    running.await.unwrap();
    let [got] = &world.received()[..] else { panic!("one mail") };
    assert!(got.header("Subject").starts_with("Mot de passe"), "{got:?}");
    assert_eq!(world.mails().await, [("sent".to_owned(), None)]);
}
