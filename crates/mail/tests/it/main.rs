//! Letters on their way to a real server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use chrono::{DateTime, Utc};
use tale_env::{MailSettings, MailTls};
use tale_mail::{Letter, Mailer, SendError, Unusable};
use tale_testkit::mail::MailServer;
use uuid::Uuid;

fn settings(server: &MailServer, tls: MailTls) -> MailSettings {
    MailSettings {
        host: MailServer::HOST.to_owned(),
        port: server.port,
        tls,
        login: None,
        from: "tale@tale.test".to_owned(),
        ca_file: Some(server.roots()),
    }
}

fn mailer(server: &MailServer, tls: MailTls) -> Mailer {
    Mailer::new(&settings(server, tls)).unwrap()
}

fn letter(to: &str) -> Letter {
    Letter {
        id: Uuid::now_v7(),
        to: to.to_owned(),
        subject: "Grüße".to_owned(),
        text: "It was – an API key.\n.\nEnd".to_owned(),
        html: "<p>It was – an API key.</p>".to_owned(),
        date: DateTime::<Utc>::from_timestamp(1_700_000_000, 0).unwrap(),
    }
}

#[tokio::test]
async fn a_letter_arrives_whole_in_each_way_of_encryption() {
    for (mode, tls) in [("starttls", MailTls::Starttls), ("implicit", MailTls::Implicit), ("none", MailTls::None)] {
        let Some(server) = MailServer::start(mode, None).await else { return };
        let sent = letter("ada@acme.test");
        mailer(&server, tls).send(&sent).await.unwrap();
        let [got] = &server.received()[..] else { panic!("one letter, {mode}") };
        assert_eq!((got.from.as_str(), got.to[0].as_str()), ("tale@tale.test", "ada@acme.test"));
        assert_eq!(got.encrypted, tls != MailTls::None, "{mode}");
        assert_eq!(got.header("Subject"), "Grüße");
        assert_eq!(got.header("From"), "Tale <tale@tale.test>");
        assert_eq!(got.header("Message-ID"), format!("<{}@tale.test>", sent.id));
        assert_eq!(got.header("Auto-Submitted"), "auto-generated");
        assert_eq!(got.header("Date"), "Tue, 14 Nov 2023 22:13:20 +0000");
        assert_eq!(got.text.replace("\r\n", "\n").trim_end(), sent.text, "{mode}");
        assert_eq!(got.html.trim_end(), sent.html);
    }
}

#[tokio::test]
async fn the_account_is_used_and_a_wrong_password_is_the_operators_matter() {
    let Some(server) = MailServer::start("starttls", Some(("tale", "right-word"))).await else { return };
    let with = |word: &str| MailSettings {
        login: Some(("tale".to_owned(), word.to_owned().into())),
        ..settings(&server, MailTls::Starttls)
    };
    Mailer::new(&with("right-word")).unwrap().send(&letter("ada@acme.test")).await.unwrap();
    assert_eq!(server.received()[0].user.as_deref(), Some("tale"));
    let wrong = Mailer::new(&with("hidden-word")).unwrap();
    let refused = wrong.send(&letter("ada@acme.test")).await.unwrap_err();
    assert!(matches!(&refused, SendError::Server(why) if why.contains("does not accept the account")), "{refused}");
    let none = mailer(&server, MailTls::Starttls).send(&letter("ada@acme.test")).await.unwrap_err();
    assert!(matches!(&none, SendError::Server(why) if why.contains("530")), "{none}");
    for said in [format!("{refused} {refused:?}"), format!("{wrong:?}"), format!("{:?}", with("hidden-word"))] {
        assert!(!said.contains("hidden-word"), "{said}");
    }
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn nothing_is_sent_where_encryption_is_not_what_was_asked_for() {
    // The server does not offer it: no downgrade.
    let Some(plain) = MailServer::start("none", None).await else { return };
    let refused = mailer(&plain, MailTls::Starttls).send(&letter("ada@acme.test")).await.unwrap_err();
    assert!(matches!(&refused, SendError::Server(why) if why.contains("STARTTLS")), "{refused}");
    assert!(plain.received().is_empty());

    for (mode, tls) in [("starttls", MailTls::Starttls), ("implicit", MailTls::Implicit)] {
        let server = MailServer::start(mode, None).await.unwrap();
        // Nobody that this machine trusts signed the certificate.
        let system = MailSettings { ca_file: None, ..settings(&server, tls) };
        // It is somebody else's.
        let other = MailSettings { host: "127.0.0.1".to_owned(), ..settings(&server, tls) };
        for wrong in [system, other] {
            let refused = Mailer::new(&wrong).unwrap().send(&letter("ada@acme.test")).await.unwrap_err();
            assert!(matches!(&refused, SendError::Server(why) if why.contains("certificate")), "{mode}: {refused}");
        }
        assert!(server.received().is_empty());
    }
}

#[tokio::test]
async fn an_answer_that_was_slipped_in_before_encryption_is_no_answer() {
    let Some(server) = MailServer::start("inject", None).await else { return };
    let refused = mailer(&server, MailTls::Starttls).send(&letter("ada@acme.test")).await.unwrap_err();
    assert!(matches!(refused, SendError::Server(_)), "{refused}");
}

#[tokio::test]
async fn what_the_server_says_of_a_letter_is_told_apart() {
    let Some(server) = MailServer::start("none", None).await else { return };
    let mailer = mailer(&server, MailTls::None);
    let said = async |to: &str| mailer.send(&letter(to)).await.unwrap_err();
    assert!(matches!(said("later@acme.test").await, SendError::Later(why) if why.contains("Try again later")));
    assert!(matches!(said("refused@acme.test").await, SendError::Refused(why) if why.contains("No such mailbox")));
    assert!(matches!(said("lost@acme.test").await, SendError::Server(_)), "nobody knows whether it arrived");
    assert!(matches!(said("nobody").await, SendError::Refused(_)));
    assert!(matches!(said("ada@acme.test\r\nRCPT TO:<eve@other.test>").await, SendError::Refused(_)));
    let away = MailSettings { port: 1, ..settings(&server, MailTls::Starttls) };
    let away = Mailer::new(&away).unwrap().send(&letter("ada@acme.test")).await.unwrap_err();
    assert!(matches!(&away, SendError::Server(why) if why.contains("cannot be reached")), "{away}");
    assert_eq!(away.code(), "MAIL_SERVER_UNAVAILABLE");
}

#[tokio::test]
async fn nothing_in_a_subject_becomes_a_header() {
    let Some(server) = MailServer::start("none", None).await else { return };
    let subject = format!("Key “a\r\nBcc: eve@other.test\r\n\r\n<script>” {}", "ü".repeat(300));
    let sent = Letter { subject, ..letter("ada@acme.test") };
    mailer(&server, MailTls::None).send(&sent).await.unwrap();
    let [got] = &server.received()[..] else { panic!("one letter") };
    assert!(got.headers("Bcc").is_empty() && got.to == ["ada@acme.test"], "{got:?}");
    assert!(got.header("Subject").starts_with("Key “aBcc: eve@other.test<script>” üü"), "{got:?}");
}

#[test]
fn a_sender_or_roots_that_cannot_be_used_are_found_before_anything_is_sent() {
    let settings = MailSettings {
        host: "mail.test".to_owned(),
        port: 587,
        tls: MailTls::Starttls,
        login: None,
        from: "tale@tale.test".to_owned(),
        ca_file: None,
    };
    let bad = MailSettings { from: "a<b@tale.test".to_owned(), ..settings.clone() };
    assert!(matches!(Mailer::new(&bad), Err(Unusable::From)));
    let missing = MailSettings { ca_file: Some("/nowhere/roots.pem".into()), ..settings.clone() };
    assert!(matches!(Mailer::new(&missing), Err(Unusable::Roots(_))));
    assert!(Mailer::new(&settings).is_ok());
}
