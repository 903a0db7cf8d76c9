//! `tale env`, and what `tale serve` says about its environment.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

struct Answer {
    code: i32,
    out: String,
    err: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

fn tale(arguments: &[&str], pairs: &[(&str, &str)]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_tale"))
        .args(arguments)
        .env_clear()
        .envs(pairs.iter().copied())
        .output()
        .unwrap();
    Answer {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const HIDDEN: &str = "hidden-word-of-a-secret";

#[test]
fn the_example_is_a_file_that_the_check_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let example = tale(&["env", "example"], &[]);
    assert_eq!(example.code, 0);
    let path = file(folder.path(), ".env", &example.out);
    let answer = tale(&["env", "check", "--env-file", &path], &[]);
    assert_eq!(answer.code, 0, "{}", answer.out);
    assert!(answer.out.contains("the role all can start with"), "{}", answer.out);
}

#[test]
fn a_check_names_everything_and_ends_with_78() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "SITE_URL=http://tale.example.org\nBETTER_AUTH_SECRET=short\nDATABASE_URL=mysql://u:{HIDDEN}@h/d\nWORKER_CONCURENCY=5\n"
    );
    let path = file(folder.path(), "prod.env", &text);
    let answer = tale(&["env", "check", "--env-file", &path, "--json"], &[("INSTANCE_SECRET", HIDDEN)]);
    assert_eq!(answer.code, 78);
    let document = answer.json();
    assert_eq!((&document["ok"], &document["command"]), (&Value::Bool(false), &Value::from("env check")));
    let problems = document["data"]["problems"].as_array().unwrap();
    let of = |name: &str| problems.iter().find(|problem| problem["variable"] == name).unwrap_or(&Value::Null);
    assert_eq!(of("SITE_URL")["value"], "http://tale.example.org");
    assert_eq!(of("SITE_URL")["place"], format!("{path}:1"));
    assert_eq!(of("DATABASE_URL")["value"], Value::Null);
    assert!(of("INSTANCE_SECRET")["why"].as_str().unwrap().contains("is not set"), "the file alone counts");
    assert_eq!(of("WORKER_CONCURENCY")["fix"], "Did you mean WORKER_CONCURRENCY?");
    let text = tale(&["env", "check", "--env-file", &path], &[]);
    assert_eq!(text.code, 78);
    for all in [&answer.out, &text.out] {
        assert!(!all.contains(HIDDEN) && !all.contains("short\""), "{all}");
    }
}

#[test]
fn a_role_with_a_wrong_environment_does_not_start() {
    let answer = tale(
        &["serve"],
        &[
            ("SITE_URL", "https://tale.example.org"),
            ("WORKER_CONCURRENCY", "0"),
            ("BETTER_AUTH_SECRET", HIDDEN),
            // One of the two keys alone is a mistake; none of them is a deployment without a store.
            ("OBJECT_STORE_ACCESS_KEY", "tale"),
            ("ROLE", ""),
        ],
    );
    assert_eq!(answer.code, 78, "{}", answer.err);
    for name in [
        "WORKER_CONCURRENCY is \"0\"",
        "ENCRYPTION_SECRET_HEX",
        "INSTANCE_SECRET",
        "DATABASE_URL",
        "OBJECT_STORE_SECRET_KEY",
    ] {
        assert!(answer.err.contains(name), "{name} missing in {}", answer.err);
    }
    assert!(!answer.err.contains(HIDDEN));
    let role = tale(&["serve"], &[("ROLE", "web")]);
    assert!(role.code == 78 && role.err.contains("ROLE is \"web\""), "{}", role.err);
    let log = tale(&["serve"], &[("TALE_LOG", "tale=loud"), ("TALE_LOG_FORMAT", "xml")]);
    assert!(log.code == 78 && log.err.contains("TALE_LOG is") && log.err.contains("TALE_LOG_FORMAT is"), "{}", log.err);
}

#[test]
fn shipped_placeholders_do_not_serve_the_world() {
    let folder = tempfile::tempdir().unwrap();
    let example = tale(&["env", "example"], &[]).out.replace("https://localhost", "https://tale.example.org");
    let path = file(folder.path(), ".env", &example);
    let answer = tale(&["env", "check", "--env-file", &path, "--json"], &[]);
    assert_eq!(answer.code, 78);
    let document = answer.json();
    assert_eq!(document["data"]["errors"], 5, "{document:#}");
}

#[test]
fn effective_values_have_a_source() {
    let folder = tempfile::tempdir().unwrap();
    let secret = file(folder.path(), "instance", &"ab".repeat(32));
    let pairs =
        [("INSTANCE_SECRET_FILE", secret.as_str()), ("WORKER_CONCURRENCY", "7"), ("BETTER_AUTH_SECRET", HIDDEN)];
    let answer = tale(&["env", "effective", "--role", "backend-worker", "--json"], &pairs);
    assert_eq!(answer.code, 0);
    let document = answer.json();
    let settings = document["data"]["settings"].as_array().unwrap();
    let of = |name: &str| settings.iter().find(|setting| setting["name"] == name).unwrap();
    assert_eq!(of("INSTANCE_SECRET")["origin"]["kind"], "file");
    assert_eq!(of("WORKER_CONCURRENCY")["value"], "7");
    assert_eq!(of("DATABASE_POOL_MAX")["origin"]["kind"], "default");
    assert_eq!(of("BETTER_AUTH_SECRET")["state"], "set");
    assert!(
        settings.iter().all(|setting| setting["name"] != "SESSION_IDLE_TIMEOUT_MINUTES"),
        "a worker has no sessions"
    );
    let text = tale(&["env", "effective"], &pairs);
    assert!(!answer.out.contains(HIDDEN) && !text.out.contains(HIDDEN) && !text.out.contains("abab"));
}

#[test]
fn a_diff_compares_secrets_and_shows_none() {
    let folder = tempfile::tempdir().unwrap();
    let a = file(
        folder.path(),
        "a.env",
        &format!("PORT=3005\nINSTANCE_SECRET={HIDDEN}\nMY_OWN={HIDDEN}\nHOST=a.example\n"),
    );
    let b = file(folder.path(), "b.env", &format!("PORT=3006\nINSTANCE_SECRET={HIDDEN}2\nHOST=a.example\n"));
    let answer = tale(&["env", "diff", &a, &b, "--json"], &[]);
    assert_eq!(answer.code, 1);
    let document = answer.json();
    let names: Vec<_> =
        document["data"]["differences"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["INSTANCE_SECRET", "MY_OWN", "PORT"]);
    assert_eq!(document["data"]["differences"][2]["b"]["value"], "3006");
    let text = tale(&["env", "diff", &a, &b], &[]);
    assert!(!answer.out.contains(HIDDEN) && !text.out.contains(HIDDEN));
    assert_eq!(tale(&["env", "diff", &a, &a], &[]).code, 0);
    assert_eq!(tale(&["env", "diff", &a, "/nowhere/b.env"], &[]).code, 3);
}

#[test]
fn lists_and_explanations_answer_in_words_and_json() {
    let list = tale(&["env", "list", "--section", "sandbox-devices", "--all", "--json"], &[]);
    let document = list.json();
    let variables = document["data"]["variables"].as_array().unwrap();
    assert!(variables.iter().any(|var| var["name"] == "SANDBOX_HUB_PORT" && var["use"] == "not-yet"));
    let text = tale(&["env", "list"], &[]);
    assert!(text.out.contains("WORKER_CONCURRENCY") && !text.out.contains("SANDBOX_HUB_PORT"), "{}", text.out);
    assert!(text.out.lines().all(|line| line.chars().count() <= 120));

    let show = tale(&["env", "show", "SITE_URL", "--lang", "de"], &[("SITE_URL", "https://tale.example.org")]);
    assert!(show.out.contains("Kanonische öffentliche Origin") && show.out.contains("https://tale.example.org"));
    let secret = tale(&["env", "show", "INSTANCE_SECRET"], &[("INSTANCE_SECRET", HIDDEN)]);
    assert!(!secret.out.contains(HIDDEN) && secret.out.contains("INSTANCE_SECRET_FILE"));
    let unknown = tale(&["env", "show", "SITE_ULR"], &[]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("Did you mean SITE_URL?"), "{}", unknown.err);
    assert_eq!(tale(&["env", "list", "--role", "nobody"], &[]).code, 2);
}

#[test]
fn colours_follow_the_two_variables() {
    assert!(!tale(&["env", "list"], &[]).out.contains('\x1b'), "a pipe gets none");
    assert!(tale(&["env", "list"], &[("FORCE_COLOR", "1")]).out.contains('\x1b'));
    assert!(!tale(&["env", "list"], &[("FORCE_COLOR", "1"), ("NO_COLOR", "1")]).out.contains('\x1b'));
    assert!(!tale(&["env", "list", "--json"], &[("FORCE_COLOR", "1")]).out.contains('\x1b'));
}

#[test]
fn a_development_start_tells_a_wrong_setting_before_it_starts_anything() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let answer = tale(&["dev", "--port", "0", "--data-dir", data.to_str().unwrap()], &[("WORKER_CONCURRENCY", "99")]);
    assert_eq!(answer.code, 78, "{}", answer.err);
    assert!(answer.err.contains("WORKER_CONCURRENCY is \"99\""), "{}", answer.err);
    assert!(!data.join("postgres").exists(), "no database was made");
}

#[test]
fn a_deployment_is_checked_file_by_file_and_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let example = tale(&["env", "example"], &[]).out;
    let api = file(folder.path(), "api.env", &example);
    let worker = file(folder.path(), "worker.env", &example.replace("DB_PASSWORD=", &format!("DB_PASSWORD={HIDDEN}")));
    let process = |role: &str, file: &str| format!("--process={role}={file}");
    let same = tale(&["env", "check", &process("backend-api", &api), &process("proxy", &api)], &[]);
    assert_eq!(same.code, 0, "{}", same.out);
    assert!(same.out.contains("The processes agree"), "{}", same.out);
    let check = ["env", "check", &process("backend-api", &api), &process("backend-worker", &worker), "--json"];
    let other = tale(&check, &[]);
    assert_eq!(other.code, 78, "{}", other.out);
    assert_eq!(other.json()["data"]["disagreements"][0]["variable"], "DB_PASSWORD");
    assert!(!other.out.contains(HIDDEN));
    assert_eq!(tale(&["env", "check", "--process", "nobody=x"], &[]).code, 2);
    assert_eq!(tale(&["env", "check", "--process", "all=/nowhere"], &[]).code, 3);
}
