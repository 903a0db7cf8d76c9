//! Encrypted connections to a real server whose certificate comes from a private authority. The
//! bundled Postgres is built without TLS, so this is the system's; skipped, with a line that says
//! so, where there is none.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tale_core::net::HostPolicy;
use tale_db::embedded::candidates;
use tale_db::foreign::{Encryption, Foreign, ForeignConfig, ForeignError};
use tale_db::pools::{self, PoolConfig, PoolError};

/// A bound on waiting, not a measure of speed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Postgres refuses to run as root.
const NOBODY: u32 = 65534;

/// A private authority and the certificate of a server called `localhost`.
struct Authority {
    bundle: String,
    server_certificate: String,
    server_key: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let bundle = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let server_key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let server_certificate = server.signed_by(&server_key, &issuer).unwrap().pem();
        Self { bundle, server_certificate, server_key: server_key.serialize_pem() }
    }
}

/// A running server, ended with this value.
struct Server {
    process: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn unprivileged(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    command.stdout(Stdio::null()).stderr(Stdio::null()).env("LC_ALL", "C").current_dir("/");
    if rustix::process::getuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// `None` where the system has no Postgres of its own.
async fn encrypted_server(place: &Path, authority: Option<&Authority>) -> Option<Server> {
    let system = candidates(None).into_iter().find(|path| path.starts_with("/usr/lib/postgresql"));
    let Some(programs) = system.map(|path| path.join("bin")).filter(|path| path.join("initdb").exists()) else {
        eprintln!("skipped: the system has no Postgres with TLS (Debian: apt-get install postgresql)");
        return None;
    };
    let data = place.join("data");
    std::fs::create_dir(&data).unwrap();
    let give = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        if rustix::process::getuid().is_root() {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    };
    give(place, 0o755);
    give(&data, 0o700);
    let created = unprivileged(programs.join("initdb"))
        .args(["--auth=trust", "--username=tale", "--no-sync", "-D"])
        .arg(&data)
        .status();
    assert!(created.unwrap().success(), "initdb in {}", data.display());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = unprivileged(programs.join("postgres"));
    server.arg("-D").arg(&data).args([
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "unix_socket_directories=",
        "-c",
        "fsync=off",
    ]);
    server.args(["-c", &format!("port={port}")]);
    if let Some(authority) = authority {
        for (name, text) in [("server.crt", &authority.server_certificate), ("server.key", &authority.server_key)] {
            std::fs::write(data.join(name), text).unwrap();
            give(&data.join(name), 0o600);
        }
        server.args(["-c", "ssl=on"]);
    }
    let server = Server { process: server.spawn().unwrap(), port };
    let plain = config(&server, "127.0.0.1", "disable", None);
    pools::connect_when_up("operational", &plain, PATIENCE).await.unwrap();
    Some(server)
}

fn config(server: &Server, host: &str, sslmode: &str, ca_file: Option<PathBuf>) -> PoolConfig {
    let url = format!("postgres://tale:unused@{host}:{}/postgres?sslmode={sslmode}", server.port);
    PoolConfig { url, max_connections: 2, ca_file, application_name: "tale" }
}

fn foreign_config(server: &Server, host: &str, sslmode: &str, ca_file: Option<PathBuf>) -> ForeignConfig {
    ForeignConfig {
        host: host.to_owned(),
        port: server.port,
        database: "postgres".to_owned(),
        user: "tale".to_owned(),
        password: "unused".into(),
        encryption: match sslmode {
            "verify-full" => Encryption::VerifyFull,
            "verify-ca" => Encryption::VerifyCa,
            _ => Encryption::Require,
        },
        ca_file,
        policy: HostPolicy::PrivateAllowed,
        max_connections: 2,
    }
}

#[tokio::test]
async fn a_certificate_that_cannot_be_verified_ends_the_connection_and_is_never_done_without() {
    let (place, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let authority = Authority::new();
    let ours = files.path().join("ca.pem");
    // A bundle of several roots, ours the second.
    std::fs::write(&ours, Authority::new().bundle + &authority.bundle).unwrap();
    let foreign = files.path().join("foreign.pem");
    std::fs::write(&foreign, Authority::new().bundle).unwrap();
    let Some(server) = encrypted_server(place.path(), Some(&authority)).await else { return };

    for (host, sslmode, ca_file, accepted) in [
        ("localhost", "verify-full", Some(&ours), true),
        ("localhost", "verify-full", None, false),
        ("localhost", "verify-full", Some(&foreign), false),
        ("127.0.0.1", "verify-full", Some(&ours), false),
        ("127.0.0.1", "verify-ca", Some(&ours), true),
        ("127.0.0.1", "verify-ca", None, false),
        ("127.0.0.1", "require", None, true),
    ] {
        let case = format!("{host} {sslmode} {ca_file:?}");
        // Through the relay the certificate is judged by the name that was entered, as without it.
        let looked = Foreign::look(&foreign_config(&server, host, sslmode, ca_file.cloned())).await.unwrap_err();
        let reached = matches!(looked, ForeignError::VectorMissing(_));
        assert!(reached == accepted && (reached || matches!(looked, ForeignError::Tls(_))), "{case}: {looked:?}");
        let result = pools::connect("operational", &config(&server, host, sslmode, ca_file.cloned())).await;
        assert_eq!(result.is_ok(), accepted, "{case}: {result:?}");
        match result {
            Ok(pool) => {
                let encrypted: bool = sqlx::query_scalar("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
                    .fetch_one(&pool)
                    .await
                    .unwrap();
                assert!(encrypted, "{case}");
            }
            Err(error) => {
                assert!(matches!(error, PoolError::Tls { .. }), "{case}: {error:?}");
                assert!(error.to_string().contains("POSTGRES_CA_FILE"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_server_without_encryption_is_refused_when_encryption_was_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let Some(server) = encrypted_server(place.path(), None).await else { return };
    let error = pools::connect("operational", &config(&server, "127.0.0.1", "require", None)).await.unwrap_err();
    assert!(matches!(error, PoolError::Tls { .. }), "{error:?}");
    let looked = Foreign::look(&foreign_config(&server, "127.0.0.1", "require", None)).await;
    assert!(matches!(looked, Err(ForeignError::Tls(_))), "{looked:?}");
}

#[tokio::test]
async fn a_bundle_that_holds_no_certificate_is_named() {
    let files = tempfile::tempdir().unwrap();
    let empty = files.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    for path in [empty, files.path().join("missing.pem")] {
        let url = "postgres://tale:hunter2@localhost:1/tale_app".to_owned();
        let config = PoolConfig { url, max_connections: 1, ca_file: Some(path.clone()), application_name: "tale" };
        let error = pools::connect("operational", &config).await.unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}
