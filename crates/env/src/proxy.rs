//! The settings of the proxy in front of everything.

use std::path::PathBuf;

use crate::kind::Value;
use crate::reader::{EnvProblems, EnvReader, EnvSource};
use crate::registry as var;
use crate::settings::read_site;
use crate::site::SiteSettings;

/// Which certificate the proxy serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsMode {
    /// One of the proxy's own authority.
    SelfSigned,
    /// One of Let's Encrypt, for the contact address.
    LetsEncrypt {
        /// Contact for the authority.
        email: Option<String>,
    },
    /// None: another proxy ends TLS and speaks plain HTTP to this one.
    External,
    /// This one.
    File {
        /// The chain (PEM).
        certificate: PathBuf,
        /// Its key (PEM).
        key: PathBuf,
    },
}

/// What the proxy is configured from.
#[derive(Debug, Clone)]
pub struct ProxySettings {
    /// Origins and base path.
    pub site: SiteSettings,
    /// The certificate.
    pub tls: TlsMode,
    /// Peers whose forwarded headers are believed, as CIDR or `private_ranges`; none unless TLS ends
    /// elsewhere.
    pub trusted: Vec<String>,
    /// The doors.
    pub backend: String,
    /// The web tier.
    pub platform: String,
    /// The object store.
    pub store: String,
    /// The bucket, whose path at the root of the host goes to the store.
    pub bucket: String,
}

impl ProxySettings {
    /// Reads everything at once.
    ///
    /// # Errors
    /// Every variable that cannot be used, together.
    pub fn from_env(source: &dyn EnvSource) -> Result<Self, EnvProblems> {
        let mut env = EnvReader::new(source);
        let site = read_site(&mut env);
        let email = env.text(&var::TLS_EMAIL);
        let mode = env.text(&var::TLS_MODE);
        let tls = match mode.as_deref() {
            Some("letsencrypt") => Some(TlsMode::LetsEncrypt { email }),
            Some("external") => Some(TlsMode::External),
            Some("file") => {
                env.require(&var::TLS_CERT_FILE, &[]);
                env.require(&var::TLS_KEY_FILE, &[]);
                let (certificate, key) = (env.text(&var::TLS_CERT_FILE), env.text(&var::TLS_KEY_FILE));
                certificate.zip(key).map(|(certificate, key)| TlsMode::File {
                    certificate: PathBuf::from(certificate),
                    key: PathBuf::from(key),
                })
            }
            _ => Some(TlsMode::SelfSigned),
        };
        let ranges = match env.value(&var::TRUSTED_PROXIES) {
            Some(Value::List(ranges)) => ranges,
            _ => Vec::new(),
        };
        let trusted = if tls == Some(TlsMode::External) { ranges } else { Vec::new() };
        let backend = env.text(&var::BACKEND_UPSTREAM);
        let platform = env.text(&var::PLATFORM_UPSTREAM);
        let store = env.text(&var::OBJECT_STORE_UPSTREAM);
        let bucket = env.text(&var::OBJECT_STORE_BUCKET);
        let settings = (|| {
            Some(Self {
                site: site?,
                tls: tls?,
                trusted,
                backend: backend?,
                platform: platform?,
                store: store?,
                bucket: bucket?,
            })
        })();
        env.finish(settings)
    }
}
