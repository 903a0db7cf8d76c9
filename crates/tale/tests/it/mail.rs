//! `tale mail`.

use std::process::Command;

use tale_testkit::mail::MailServer;

/// Exit code and everything that was said.
async fn tale(arguments: &[&str], pairs: &[(&str, &str)]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tale"));
    command.args(arguments).env_clear().envs(pairs.iter().copied());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = [output.stdout, output.stderr].map(|part| String::from_utf8_lossy(&part).into_owned());
    (output.status.code().unwrap(), said.concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mail_server_can_be_tried_without_anything_else() {
    let (code, said) = tale(&["mail", "test", "ada@acme.test"], &[]).await;
    assert_eq!(code, 78, "{said}");
    assert!(said.contains("SMTP_HOST is not set"), "{said}");
    assert_eq!(tale(&["mail", "test"], &[]).await.0, 2);
    let (code, help) = tale(&["mail", "--help"], &[]).await;
    assert!(code == 0 && help.contains("Exit codes: 0 the server took the mail"), "{help}");

    let Some(server) = MailServer::start("starttls", Some(("tale", "hidden-word"))).await else { return };
    let (port, roots) = (server.port.to_string(), server.roots());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "hidden-word\n").unwrap();
    let sound = [
        ("SMTP_HOST", MailServer::HOST),
        ("SMTP_PORT", port.as_str()),
        ("SMTP_FROM", "tale@tale.test"),
        ("SMTP_USERNAME", "tale"),
        ("SMTP_PASSWORD_FILE", file.to_str().unwrap()),
        ("SMTP_CA_FILE", roots.to_str().unwrap()),
    ];
    let with = |other: &[(&'static str, &'static str)]| {
        let mut pairs: Vec<(&str, String)> = sound.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        pairs.extend(other.iter().map(|(name, value)| (*name, (*value).to_owned())));
        pairs
    };
    let test = async |other: &[(&'static str, &'static str)], address: &str| {
        let pairs = with(other);
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (code, said) = tale(&["mail", "test", address], &pairs).await;
        assert!(!said.contains("hidden-word") && !said.contains("wrong-word"), "{said}");
        (code, said)
    };
    let (code, said) = test(&[], "ada@acme.test").await;
    assert!(code == 0 && said.contains("took the mail to ada@acme.test"), "{said}");
    let received = server.received();
    assert_eq!((received.len(), received[0].user.as_deref()), (1, Some("tale")));

    type Settings = &'static [(&'static str, &'static str)];
    let cases: &[(Settings, &str, i32, &str)] = &[
        (&[], "refused@acme.test", 1, "No such mailbox"),
        (&[], "nobody", 1, "the address of the reader"),
        (&[("SMTP_PORT", "1")], "ada@acme.test", 1, "cannot be reached"),
        (
            &[("SMTP_PASSWORD_FILE", ""), ("SMTP_PASSWORD", "wrong-word")],
            "ada@acme.test",
            1,
            "does not accept the account",
        ),
        (&[("SMTP_TLS", "none")], "ada@acme.test", 78, "would be sent in the clear"),
        (&[("SMTP_TLS", "maybe")], "ada@acme.test", 78, "starttls, implicit, none"),
        (&[("SMTP_FROM", "")], "ada@acme.test", 78, "SMTP_FROM"),
        (&[("SMTP_FROM", "a<b@tale.test")], "ada@acme.test", 78, "SMTP_FROM"),
        (&[("SMTP_CA_FILE", "/nowhere.pem")], "ada@acme.test", 78, "SMTP_CA_FILE"),
    ];
    for &(other, address, code, words) in cases {
        let (ended, said) = test(other, address).await;
        assert!(ended == code && said.contains(words), "{other:?} {address}: {ended} {said}");
    }
    assert_eq!(server.received().len(), 1);
}
