//! The check as an operator meets it.

use tale_env::check::{Part, agreement};
use tale_env::file::EnvFile;
use tale_env::{EnvProblem, Environment, MapEnv, Role, Scope, Severity, check};

fn of(pairs: &[(&str, &str)]) -> Vec<EnvProblem> {
    let key = "ab".repeat(32);
    let mut map = MapEnv::of([
        ("SITE_URL", "https://tale.example.org"),
        ("BETTER_AUTH_SECRET", "0123456789abcdef"),
        ("ENCRYPTION_SECRET_HEX", &key),
        ("INSTANCE_SECRET", &"cd".repeat(32)),
        ("DB_PASSWORD", "p"),
        ("OBJECT_STORE_ENDPOINT", "https://store.example.org"),
        ("OBJECT_STORE_ACCESS_KEY", "a"),
        ("OBJECT_STORE_SECRET_KEY", "k"),
    ]);
    for (name, value) in pairs {
        map.0.insert((*name).to_owned(), (*value).to_owned());
    }
    check(&Environment::of_map(&map), Role::All, Scope::Elsewhere)
}

fn words(found: &[EnvProblem]) -> Vec<String> {
    found.iter().map(|problem| format!("{}: {problem}", problem.severity.name())).collect()
}

#[test]
fn a_sound_environment_has_nothing_to_say() {
    assert_eq!(words(&of(&[])), Vec::<String>::new());
}

#[test]
fn the_example_file_is_sound_on_this_machine_and_refused_for_the_world() {
    let example = tale_env::example::example();
    let severe = |text: &str| {
        let file = EnvFile::parse(text, &|_| None);
        let found = check(&Environment::of_file(&file, ".env"), Role::All, Scope::Elsewhere);
        let mut names: Vec<String> = found
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
            .map(|problem| problem.variable.clone())
            .collect();
        names.sort();
        names
    };
    assert_eq!(severe(&example), Vec::<String>::new());
    let public = example.replace("SITE_URL=https://localhost", "SITE_URL=https://tale.example.org");
    let secrets =
        ["BETTER_AUTH_SECRET", "DB_PASSWORD", "ENCRYPTION_SECRET_HEX", "INSTANCE_SECRET", "OBJECT_STORE_SECRET_KEY"];
    assert_eq!(severe(&public), secrets);
}

#[test]
fn everything_is_said_at_once_with_its_place() {
    let text =
        "SITE_URL=http://tale.example.org\nWORKER_CONCURRENCY=99\nOBJECT_STORE_BUKCET=x\nPORT=tcp://10.0.0.1:80\nB='\n";
    let file = EnvFile::parse(text, &|_| None);
    let found = words(&check(&Environment::of_file(&file, "prod.env"), Role::All, Scope::Elsewhere));
    for line in [
        "error: prod.env:1: SITE_URL is \"http://tale.example.org\", which is plain http",
        "error: prod.env:2: WORKER_CONCURRENCY is \"99\", which is above 64",
        "error: prod.env:5: B has an opening '",
        "error: BETTER_AUTH_SECRET is not set",
        "error: DATABASE_URL is not set. Set it to postgresql://",
        "warning: prod.env:3: OBJECT_STORE_BUKCET is not a variable of Tale. Did you mean OBJECT_STORE_BUCKET?",
        "warning: prod.env:4: PORT is \"tcp://10.0.0.1:80\", which is a service link",
    ] {
        assert!(found.iter().any(|said| said.starts_with(line)), "{line} missing in {found:#?}");
    }
    let errors = found.iter().position(|said| said.starts_with("warning")).unwrap();
    assert!(found[errors..].iter().all(|said| !said.starts_with("error")), "errors come first");
}

#[test]
fn values_that_do_not_fit_together_are_named() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("WORKER_CONCURRENCY", "20")], "warning: KNOWLEDGE_DB_POOL_MAX gives 10 connections to 20 jobs"),
        (
            &[("ENCRYPTION_SECRET", "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=")],
            "warning: ENCRYPTION_SECRET is ignored",
        ),
        (&[("INSTANCE_SECRET", &"ab".repeat(32))], "warning: INSTANCE_SECRET is the same as ENCRYPTION_SECRET_HEX"),
        (
            &[("OBJECT_STORE_ENDPOINT", "http://store:9000")],
            "warning: OBJECT_STORE_ENDPOINT is where browsers fetch files",
        ),
        (&[("ADDITIONAL_SITE_URLS", "http://b.example")], "warning: ADDITIONAL_SITE_URLS holds http://b.example/"),
        (
            &[("POSTGRES_CA_FILE", "/ca.pem"), ("DATABASE_URL", "postgres://u@h/d?sslmode=disable")],
            "warning: DATABASE_URL asks for no verification",
        ),
        (
            &[("SESSION_IDLE_TIMEOUT_MINUTES", "4"), ("SESSION_COOKIE_CACHE_SECONDS", "300")],
            "note: SESSION_COOKIE_CACHE_SECONDS is more than a quarter of SESSION_IDLE_TIMEOUT_MINUTES, 60 s",
        ),
        (&[("CLOUD_IMPORT_GOOGLE_DRIVE_CLIENT_ID", "x")], "note: CLOUD_IMPORT_GOOGLE_DRIVE_CLIENT_ID is set without"),
        (
            &[("TALE_PROVIDER_KEY_A_NAME_THAT_IS_TOO_LONG_FOR_IT", "k")],
            "warning: TALE_PROVIDER_KEY_A_NAME_THAT_IS_TOO_LONG_FOR_IT has a name of",
        ),
    ];
    for (pairs, line) in cases {
        let found = words(&of(pairs));
        assert!(found.iter().any(|said| said.starts_with(line)), "{line} missing in {found:#?}");
    }
}

#[test]
fn the_base_path_leaves_the_path_of_files_alone() {
    let base = |pairs: &[(&str, &str)]| of(pairs).into_iter().filter(|problem| problem.variable == "BASE_PATH").count();
    for taken in ["/tale-blobs", "/tale-blobs/", "/tale-blobs/app"] {
        assert_eq!(base(&[("BASE_PATH", taken)]), 1, "{taken}");
    }
    assert_eq!(base(&[("BASE_PATH", "/files"), ("OBJECT_STORE_BUCKET", "files")]), 1);
    for free in ["/app", "/app/tale-blobs", "/tale-blobs-2", "/"] {
        assert_eq!(base(&[("BASE_PATH", free)]), 0, "{free}");
    }
}

#[test]
fn what_has_no_effect_is_said_and_stops_nothing() {
    let found = of(&[("TALE_ALLOW_PRIVATE_CRAWL_HOSTS", "1"), ("AUTH_DATABASE_POOL_MAX", "9")]);
    assert!(found.iter().all(|problem| problem.severity == Severity::Note), "{found:#?}");
    let found = words(&found).join("\n");
    assert!(found.contains("TALE_ALLOW_PRIVATE_CRAWL_HOSTS has no effect. This release crawls no websites"), "{found}");
    assert!(found.contains("AUTH_DATABASE_POOL_MAX has no effect. Sessions are read through"), "{found}");
    assert!(of(&[("CONTROLLER_URL", "x"), ("TALE_AUDIT_SIGNING_KEY", "x"), ("SANDBOX_PORT", "x")]).is_empty());
}

#[test]
fn labels_of_authenticators_stop_the_start_when_they_cannot_be_written() {
    for (name, bad) in [
        ("TOTP_CLIENT_NAME", "-Acme"),
        ("TOTP_CLIENT_NAME", "Acme: Zürich"),
        ("TOTP_CLIENT_NAME", "Acme/Zürich"),
        ("TOTP_CLIENT_NAME", &"a".repeat(41)),
        ("TOTP_ENVIRONMENT", "a b"),
        ("TOTP_ENVIRONMENT", "-te"),
        ("TOTP_ENVIRONMENT", "tê"),
    ] {
        let found = words(&of(&[(name, bad)])).join("\n");
        assert!(found.starts_with("error: ") && found.contains(name), "{bad}: {found}");
    }
    for good in [("TOTP_CLIENT_NAME", "Zürich & Weiß"), ("TOTP_CLIENT_NAME", "  "), ("TOTP_ENVIRONMENT", "preview-42")]
    {
        assert_eq!(of(&[good]), [], "{good:?}");
    }
}

#[test]
fn flags_need_their_exact_word_and_say_so() {
    let found = words(&of(&[("TALE_ALLOW_OPEN_SIGN_UP", "1")]));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("warning: TALE_ALLOW_OPEN_SIGN_UP is \"1\", which is not exactly true; it stays off"),
        "{found:?}"
    );
    assert!(of(&[("TALE_ALLOW_OPEN_SIGN_UP", "false")]).is_empty());
}

#[test]
fn a_proxy_with_its_own_certificate_needs_both_files() {
    let of = |pairs: &[(&str, &str)]| {
        let pairs = [("SITE_URL", "https://tale.example.org")].iter().chain(pairs);
        let map = MapEnv(pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
        (check(&Environment::of_map(&map), Role::Proxy, Scope::Elsewhere), tale_env::ProxySettings::from_env(&map))
    };
    let (found, settings) = of(&[("TLS_MODE", "file"), ("TLS_CERT_FILE", "/c.pem")]);
    assert!(
        found.iter().any(|problem| problem.severity == Severity::Error && problem.variable == "TLS_KEY_FILE"),
        "{found:#?}"
    );
    assert!(settings.unwrap_err().to_string().contains("TLS_KEY_FILE"));
    let (found, settings) = of(&[("TLS_MODE", "file"), ("TLS_CERT_FILE", "/c.pem"), ("TLS_KEY_FILE", "/k.pem")]);
    assert!(found.is_empty() && settings.is_ok(), "{found:#?}");
    assert!(of(&[]).0.is_empty() && of(&[]).1.unwrap().tls == tale_env::TlsMode::SelfSigned);
}

#[test]
fn another_role_has_other_needs() {
    let nothing = Environment::of_map(&MapEnv::default());
    let missing = |role| check(&nothing, role, Scope::Elsewhere).len();
    assert!(missing(Role::All) >= 6 && missing(Role::Cli) < missing(Role::All), "{}", missing(Role::Cli));
    assert_eq!(missing(Role::SandboxEgress), 0);
}

#[test]
fn no_finding_repeats_a_secret() {
    let word = "hidden-word-of-a-secret";
    for var in tale_env::registry::vars().filter(|var| var.secret && var.family().is_none()) {
        for value in [word.to_owned(), format!("postgres://u:{word}@h"), format!("https://u:{word}@h/\u{1}")] {
            let said = words(&of(&[(var.name, &value)])).join("\n");
            assert!(!said.contains(word), "{}: {said}", var.name);
        }
    }
}

#[test]
fn a_public_authority_certifies_public_names_only() {
    let of = |pairs: &[(&str, &str)]| {
        let pairs = [("TLS_MODE", "letsencrypt")].iter().chain(pairs);
        let map = MapEnv(pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
        words(&check(&Environment::of_map(&map), Role::Proxy, Scope::Elsewhere))
    };
    for host in ["203.0.113.7", "[2001:db8::1]:8443", "localhost", "tale"] {
        let found = of(&[("SITE_URL", &format!("https://{host}"))]);
        assert!(found.len() == 1 && found[0].contains("Let's Encrypt gives no certificate"), "{host}: {found:?}");
    }
    let further = of(&[("SITE_URL", "https://tale.example.org"), ("ADDITIONAL_SITE_URLS", "https://192.0.2.1")]);
    assert!(further.len() == 1 && further[0].starts_with("error: ADDITIONAL_SITE_URLS"), "{further:?}");
    assert!(of(&[("SITE_URL", "https://tale.example.org")]).is_empty());
}

#[test]
fn processes_that_do_not_agree_are_told_without_their_secrets() {
    let env = |pairs: &[(&str, &str)]| {
        Environment::of_map(&MapEnv(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()))
    };
    let api = env(&[
        ("INSTANCE_SECRET", "one-word"),
        ("OBJECT_STORE_SECRET_KEY", "a"),
        ("TALE_ALLOW_OPEN_SIGN_UP", "true"),
        ("PORT", "1"),
    ]);
    let worker = env(&[
        ("INSTANCE_SECRET", "other-word"),
        ("OBJECT_STORE_SECRET_KEY", "a"),
        ("OBJECT_STORE_BUCKET", "tale-blobs"),
    ]);
    let store = env(&[("OBJECT_STORE_SECRET_KEY", "a"), ("MINIO_ROOT_PASSWORD", "b"), ("OBJECT_STORE_BUCKET", "z")]);
    let proxy = env(&[("OBJECT_STORE_BUCKET", "y"), ("INSTANCE_SECRET", "not its business")]);
    let parts = [
        (Role::BackendApi, &api, "api.env"),
        (Role::BackendWorker, &worker, "worker.env"),
        (Role::ObjectStore, &store, "store.env"),
        (Role::Proxy, &proxy, "proxy.env"),
    ]
    .map(|(role, env, name)| Part { role, env, name });
    let found = words(&agreement(&parts));
    assert_eq!(
        found.iter().map(|said| said.split(" differs").next().unwrap()).collect::<Vec<_>>(),
        ["error: INSTANCE_SECRET", "error: OBJECT_STORE_SECRET_KEY", "error: OBJECT_STORE_BUCKET"],
        "{found:#?}"
    );
    assert!(found[0].contains("backend-api (api.env) and backend-worker (worker.env)") && !found[0].contains("word"));
    assert!(agreement(&parts[..1]).is_empty());

    // The same in other words, and what only serves to make an address that is given.
    let (hex, base64) = ("AB".repeat(32), "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=");
    let urls = [("DATABASE_URL", "postgres://a@h/x"), ("KNOWLEDGE_DATABASE_URL", "postgres://a@h/y")];
    let one = env(&[&urls[..], &[("ENCRYPTION_SECRET_HEX", hex.as_str()), ("APP_DB_NAME", "z")]].concat());
    let other = env(&[&urls[..], &[("ENCRYPTION_SECRET", base64), ("DB_PASSWORD", "p")]].concat());
    let parts = [(&one, "one"), (&other, "other")].map(|(env, name)| Part { role: Role::BackendApi, env, name });
    assert_eq!(words(&agreement(&parts)), Vec::<String>::new());
}
