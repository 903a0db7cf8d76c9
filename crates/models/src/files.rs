//! The files of custom definitions: `TALE_CONFIG_DIR/<organization>/providers/<name>.yml` (spec 40, 2.1).
//!
//! A save is one transaction with its credential, audit entry and history row; the file is written inside of it,
//! while nobody else can save, so the two agree:
//!
//! - A file that somebody wrote or changed becomes the definition ([`Models::follow_files`], within five seconds; a
//!   save looks first, so that it never writes over an edit). It is an ordinary change: version, history and audit.
//! - One that cannot be used takes its own provider out of service, with the reason in the log and on the page,
//!   until it is mended or the definition is saved over it (MOD-2). Others are not affected.
//! - A copy that is missing or stale (a process died between the file and the commit, or the database was set back)
//!   is written anew: the database decides what Tale itself wrote. Removing a file therefore deletes nothing.
//!
//! Every save and delete also leaves its definition under `.history/<name>/`, the newest [`MOST_KEPT`] of each.
//! Growth: a look reads directory entries alone, of at most [`tale_orgfiles::folder::MOST_FILES`] files of an
//! organization, and content only of files whose entries changed.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use tale_core::ids::OrgId;
use tale_core::net::HostPolicy;
use tale_core::problem::{Code, Issue, Problem};
use tale_core::{Actor, strict};
use tale_orgfiles::{ConfigError, Folder, Listing, Scope, copy};
use uuid::Uuid;

use crate::credentials::AuthMethod;
use crate::definition::{
    CatalogSource, EmbeddingSupport, EndpointMode, ModelSpec, Provider, ProviderKind, base_url, check_models,
    direct_methods, is_slug, readable_name,
};
use crate::extra_body::ExtraBody;
use crate::providers::{check_extra_bodies, is_reserved};
use crate::wire::{ApiFormat, WireDialect};
use crate::{Models, catalog, changed, recent, store};

const FOLDER: Folder = Folder("providers");
const SUFFIX: &str = ".yml";
const HISTORY: &str = ".history";
/// Files that the history of one definition keeps. The database keeps every state.
const MOST_KEPT: usize = 100;
/// Time between two looks at the files.
const EVERY: Duration = Duration::from_secs(2);
/// Whoever wrote a file this recently may not be through.
const SETTLED: Duration = Duration::from_secs(1);
/// Names of fields of a model that a file may hold; `serde` would pass over what is none.
const MODEL_FIELDS: [&str; 15] = [
    "id",
    "displayName",
    "contextWindow",
    "maxOutputTokens",
    "purposes",
    "capabilities",
    "dimensions",
    "pricing",
    "tier",
    "thinking",
    "xhigh",
    "shortens",
    "toolApi",
    "toolsRequireNoReasoning",
    "extraBody",
];

/// A definition as a file holds it (spec 40, 2.2).
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Definition {
    name: String,
    display_name: String,
    api_format: ApiFormat,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wire_dialect: Option<WireDialect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    endpoint_mode: Option<EndpointMode>,
    catalog: Catalog,
    #[serde(default = "unknown_support")]
    embedding: EmbeddingSupport,
    auth: Vec<Auth>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    models: Vec<ModelSpec>,
    #[serde(default, skip_serializing_if = "ExtraBody::is_empty")]
    extra_body: ExtraBody,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalog {
    source: CatalogSource,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Auth {
    method: AuthMethod,
}

fn unknown_support() -> EmbeddingSupport {
    EmbeddingSupport::Unknown
}

/// What a file is.
enum File {
    Absent,
    /// Written by Tale and untouched: its version and what it says.
    Copy(i64, Result<Box<Provider>, String>),
    /// Written or changed by somebody.
    Written(Result<Box<Provider>, String>),
}

/// What the loop knows of the files of one organization.
#[derive(Debug, Default)]
struct Seen {
    files: Listing,
    /// Missing at the last look; an editor may be between two steps.
    missing: BTreeSet<String>,
}

/// What the loop knows of all files.
#[derive(Debug, Default)]
pub struct SeenFiles {
    orgs: HashMap<OrgId, Seen>,
    begun: bool,
}

/// A file that cannot be used and has no provider whose page would say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableFile {
    /// Its name.
    pub file: String,
    /// What is wrong with it, without its content.
    pub reason: String,
}

/// A definition as its file holds it.
pub(crate) fn document(provider: &Provider) -> Value {
    let definition = Definition {
        name: provider.slug.clone(),
        display_name: provider.display_name.clone(),
        api_format: provider.api_format,
        wire_dialect: (provider.wire_dialect == WireDialect::OpenAiModern).then_some(WireDialect::OpenAiModern),
        base_url: provider.base_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned()),
        endpoint_mode: provider.endpoint_mode,
        catalog: Catalog { source: provider.catalog_source },
        embedding: provider.embedding,
        auth: provider.auth.iter().map(|method| Auth { method: *method }).collect(),
        models: provider.models.clone(),
        extra_body: provider.extra_body.clone(),
    };
    serde_json::to_value(definition).unwrap_or_default()
}

/// JSON, which is YAML as well.
fn body(provider: &Provider) -> String {
    format!("{:#}\n", document(provider))
}

/// An earlier state of a definition, judged by today's rules.
///
/// # Errors
/// `INVALID_BODY`, naming the field.
pub(crate) fn reread(past: &Provider, version: i64, policy: HostPolicy) -> Result<Provider, Problem> {
    parse(&past.slug, &body(past), version, policy).map_err(|reason| Problem::new(Code::InvalidBody, reason))
}

fn text(provider: &Provider) -> String {
    let what = format!("the provider {}", provider.slug);
    let hint = "What you change below counts within five seconds; to delete it use Settings > AI providers.";
    copy::write(&what, hint, provider.version, &body(provider))
}

fn judge(slug: &str, text: Result<Option<String>, ConfigError>, policy: HostPolicy) -> File {
    match text {
        Ok(None) => File::Absent,
        Err(error) => File::Written(Err(error.reason())),
        Ok(Some(text)) => match copy::read(&text) {
            Some((version, body)) => File::Copy(version, parse(slug, body, version, policy).map(Box::new)),
            None => File::Written(parse(slug, &text, 1, policy).map(Box::new)),
        },
    }
}

/// Reads a definition; `Err` says what is wrong without repeating a value (MOD-5).
fn parse(slug: &str, text: &str, version: i64, policy: HostPolicy) -> Result<Provider, String> {
    // YAML 1.2: `n` and `on` are words.
    let options = serde_saphyr::options! { strict_booleans: true };
    let value: Value = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location().map(|at| format!(" (line {}, column {})", at.line(), at.column()));
        format!("it is not YAML{}", place.unwrap_or_default())
    })?;
    if let Some((at, field)) = unknown_model_field(&value) {
        return Err(format!("`models.{at}.{field}` is not a known field"));
    }
    let read: Definition = strict::read(value).map_err(|issue| words(&issue))?;
    provider_of(slug, read, version, policy).map_err(|problem| problem.message.into_owned())
}

fn words(issue: &Issue) -> String {
    if issue.path.is_empty() { format!("it {}", issue.message) } else { format!("`{}` {}", issue.path, issue.message) }
}

fn unknown_model_field(value: &Value) -> Option<(usize, &str)> {
    let models = value.get("models")?.as_array()?.iter().enumerate();
    models
        .flat_map(|(at, model)| {
            model.as_object().into_iter().flat_map(serde_json::Map::keys).map(move |key| (at, key.as_str()))
        })
        .find(|(_, key)| !MODEL_FIELDS.contains(key))
}

fn provider_of(slug: &str, read: Definition, version: i64, policy: HostPolicy) -> Result<Provider, Problem> {
    let refused = |path: &str, why: &str| Err(Problem::new(Code::InvalidBody, format!("`{path}` {why}")));
    if read.name != slug {
        return refused("name", "must be the name of the file without .yml");
    }
    if !is_slug(slug) {
        return refused("name", "must be 1 to 64 lower-case letters, digits and single hyphens between them");
    }
    if is_reserved(slug) || catalog::shipped_provider(slug).is_some() {
        return refused("name", "is the name of a provider that Tale ships; choose another");
    }
    let display_name = readable_name("displayName", &read.display_name).map_err(said)?;
    match read.catalog.source {
        CatalogSource::Static => {
            return refused("catalog.source", "must not be static, which shipped providers alone use");
        }
        source if source.is_live() && !read.models.is_empty() => {
            return refused("models", "must be absent while catalog.source reads them from the endpoint");
        }
        _ => {}
    }
    if read.auth.is_empty() || read.auth.iter().any(|auth| auth.method == AuthMethod::None) {
        return refused("auth", "must name one or both of the methods api-key and env");
    }
    let mut issues = Vec::new();
    check_models("models", &read.models, &mut issues);
    if let Some(issue) = issues.into_iter().next() {
        return Err(said(issue));
    }
    check_extra_bodies(&read.extra_body, &read.models)?;
    let base = match (read.base_url, read.endpoint_mode) {
        (Some(text), None) => Some(base_url("baseUrl", &text, policy)?),
        (None, Some(EndpointMode::PerCredential)) => None,
        (None, None) => return refused("baseUrl", "is required"),
        (Some(_), Some(_)) => return refused("baseUrl", "must be absent when each credential has its own endpoint"),
    };
    Ok(Provider {
        slug: read.name,
        display_name,
        kind: ProviderKind::Custom,
        api_format: read.api_format,
        wire_dialect: read.wire_dialect.unwrap_or_default(),
        base_url: base,
        endpoint_mode: read.endpoint_mode,
        subscription: None,
        catalog_source: read.catalog.source,
        embedding: read.embedding,
        models: read.models,
        extra_body: read.extra_body,
        auth: direct_methods().into_iter().filter(|one| read.auth.iter().any(|auth| auth.method == *one)).collect(),
        unreadable: None,
        version,
    })
}

fn said(issue: Issue) -> Problem {
    Problem::new(Code::InvalidBody, words(&issue))
}

/// Whether both say the same, whatever their versions.
fn same(a: &Provider, b: &Provider) -> bool {
    document(a) == document(b)
}

pub(crate) fn changed_fields(before: &Provider, after: &Provider) -> Vec<String> {
    let (before, after) = (document(before), document(after));
    let names: BTreeSet<&String> =
        [&before, &after].into_iter().filter_map(Value::as_object).flat_map(serde_json::Map::keys).collect();
    names.into_iter().filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}

fn file_name(slug: &str) -> String {
    format!("{slug}{SUFFIX}")
}

impl Models {
    /// Takes over what is written into files and mends their copies, for as long as it is polled.
    pub async fn follow_files(&self) {
        let mut seen = SeenFiles::default();
        let mut failing = false;
        loop {
            let began = Instant::now();
            match self.look_at_files(&mut seen).await {
                Ok(()) => failing = false,
                Err(problem) if !std::mem::replace(&mut failing, true) => {
                    tracing::warn!(event = "provider.files_unseen", %problem, "the files of providers could not be looked at");
                }
                Err(_) => {}
            }
            // Many files must not keep a processor busy.
            tokio::time::sleep(EVERY.max(began.elapsed() * 20)).await;
        }
    }

    /// One look. The first also writes copies that are missing.
    ///
    /// # Errors
    /// When the database or the configuration directory cannot be read.
    pub async fn look_at_files(&self, seen: &mut SeenFiles) -> Result<(), Problem> {
        let folders = self.inner.files.organizations_with(FOLDER).await.map_err(unreadable_folder)?;
        let first = !std::mem::replace(&mut seen.begun, true);
        if !first && folders.is_empty() && seen.orgs.is_empty() {
            return Ok(());
        }
        let orgs = store::providers::organizations(&mut *self.inner.pool.acquire().await?, &folders).await?;
        seen.orgs.retain(|org, _| orgs.iter().any(|(known, _)| known == org));
        for (org, folder) in orgs {
            self.look_at(org, &folder, seen.orgs.entry(org).or_default(), first).await?;
        }
        Ok(())
    }

    async fn look_at(&self, org: OrgId, folder: &str, seen: &mut Seen, first: bool) -> Result<(), Problem> {
        let scope = Scope::Organization(folder);
        let mut files = self.inner.files.list(scope, FOLDER, SUFFIX).await.map_err(unreadable_folder)?;
        let mut names: BTreeSet<String> = files
            .iter()
            .filter(|(name, stamp)| seen.files.get(*name) != Some(stamp))
            .map(|(name, _)| name.clone())
            .collect();
        if first {
            let own = store::providers::list(&mut *self.inner.pool.acquire().await?, org).await?;
            let custom = own.into_iter().filter(|provider| provider.kind == ProviderKind::Custom);
            names.extend(custom.map(|provider| file_name(&provider.slug)));
        }
        // Gone twice in a row is gone.
        let missing: BTreeSet<String> = seen.files.keys().filter(|name| !files.contains_key(*name)).cloned().collect();
        names.extend(seen.missing.iter().filter(|name| !files.contains_key(*name)).cloned());
        for name in names {
            let Some(slug) = name.strip_suffix(SUFFIX) else { continue };
            let young = files.get(&name).is_some_and(|stamp| stamp.is_younger_than(SETTLED));
            if !self.reconcile(org, folder, slug, young).await? {
                files.remove(&name);
            }
        }
        *seen = Seen { files, missing };
        Ok(())
    }

    /// Brings one file and its row together. `false` = somebody may still be writing it.
    async fn reconcile(&self, org: OrgId, folder: &str, slug: &str, young: bool) -> Result<bool, Problem> {
        let file = self.file(folder, slug).await;
        if young && matches!(file, File::Written(_)) {
            return Ok(false);
        }
        let held = store::providers::get(&mut *self.inner.pool.acquire().await?, org, slug).await?;
        if agrees(&file, held.as_ref()) {
            return Ok(true);
        }
        let mut tx = self.inner.pool.begin().await?;
        store::lock_org(&mut tx, org).await?;
        self.reconcile_in(&mut tx, org, folder, slug).await?;
        self.commit(tx, org).await?;
        Ok(true)
    }

    /// The same with the organization's row held.
    async fn reconcile_in(&self, conn: &mut PgConnection, org: OrgId, folder: &str, slug: &str) -> Result<(), Problem> {
        let file = self.file(folder, slug).await;
        let held = store::providers::get(conn, org, slug).await?;
        if agrees(&file, held.as_ref()) {
            return Ok(());
        }
        match (file, held) {
            (_, Some(held)) if held.kind == ProviderKind::Demo => {}
            (File::Absent | File::Copy(..), Some(held)) => {
                if held.unreadable.is_some() && store::providers::note_unreadable(conn, org, slug, None).await? {
                    recent::announce(conn, org).await?;
                }
                if let Err(error) = self.write_file(folder, &held).await {
                    tracing::warn!(event = "provider.copy_fails", org.slug = folder, provider = slug, %error, "the file of a provider could not be written");
                }
            }
            (File::Written(Ok(read)), Some(held)) if same(&read, &held) => {
                if store::providers::note_unreadable(conn, org, slug, None).await? {
                    recent::announce(conn, org).await?;
                }
            }
            (File::Written(Ok(read)), Some(held)) => {
                let after = Provider { version: held.version + 1, ..*read };
                store::providers::update(conn, org, &after, held.version, self.inner.clock.now()).await?;
                self.remember(conn, org, folder, &after, "changed", &Actor::System).await?;
                let fields = changed_fields(&held, &after);
                let details = json!({ "fields": fields, "version": after.version, "source": "file" });
                self.taken_over(conn, org, folder, slug, "provider.update", details).await?;
            }
            (File::Written(Err(reason)), Some(_)) => {
                if store::providers::note_unreadable(conn, org, slug, Some(&reason)).await? {
                    recent::announce(conn, org).await?;
                    self.say_unusable(folder, slug, &reason);
                }
            }
            (File::Written(Err(reason)) | File::Copy(_, Err(reason)), None) => self.say_unusable(folder, slug, &reason),
            (File::Copy(_, Ok(_)), None) if was_deleted(conn, org, slug).await? => {
                if let Err(error) =
                    self.inner.files.remove_in(Scope::Organization(folder), FOLDER, &file_name(slug)).await
                {
                    tracing::warn!(event = "provider.copy_fails", org.slug = folder, provider = slug, %error, "the file of a deleted provider could not be removed");
                }
            }
            (File::Written(Ok(read)) | File::Copy(_, Ok(read)), None) => {
                let before = store::providers::history(conn, org, slug, 1).await?;
                let provider =
                    Provider { version: before.first().map_or(1, |last| last.version + 1).max(read.version), ..*read };
                let now = self.inner.clock.now();
                store::providers::insert(conn, org, Uuid::now_v7(), &provider, now).await?;
                self.remember(conn, org, folder, &provider, "created", &Actor::System).await?;
                let details = json!({ "kind": "custom", "version": provider.version, "source": "file" });
                self.taken_over(conn, org, folder, slug, "provider.create", details).await?;
            }
            (File::Absent, None) => {}
        }
        Ok(())
    }

    async fn taken_over(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        folder: &str,
        slug: &str,
        action: &'static str,
        details: Value,
    ) -> Result<(), Problem> {
        tracing::info!(
            event = "provider.taken_over",
            org.slug = folder,
            provider = slug,
            "a provider was taken over from its file"
        );
        changed(conn, &self.inner.clock, org, &Actor::System, action, ("provider", slug.to_owned()), details).await
    }

    fn say_unusable(&self, folder: &str, slug: &str, reason: &str) {
        let path = self.inner.files.path_in(Scope::Organization(folder), FOLDER, &file_name(slug));
        let path = path.map(|path| path.display().to_string()).unwrap_or_default();
        tracing::warn!(
            event = "provider.file_unusable",
            org.slug = folder,
            provider = slug,
            path,
            reason,
            "the file of a provider cannot be used and is skipped"
        );
    }

    async fn file(&self, folder: &str, slug: &str) -> File {
        let text = self.inner.files.read_in(Scope::Organization(folder), FOLDER, &file_name(slug)).await;
        judge(slug, text, self.inner.wire.policy())
    }

    async fn write_file(&self, folder: &str, provider: &Provider) -> Result<(), ConfigError> {
        self.inner.files.write_in(Scope::Organization(folder), FOLDER, &file_name(&provider.slug), text(provider)).await
    }

    /// Looks whether somebody wrote the file of `slug`, before a change of it, so that the change meets what is
    /// there. Returns the organization's folder.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(crate) async fn meet_file(&self, org: OrgId, slug: &str) -> Result<String, Problem> {
        let folder = store::org_slug(&mut *self.inner.pool.acquire().await?, org).await?.unwrap_or_default();
        if !is_slug(slug) || folder.is_empty() {
            return Ok(folder);
        }
        self.reconcile(org, &folder, slug, false).await?;
        Ok(folder)
    }

    /// Refuses a new provider whose file stands there and cannot be used: somebody is at it.
    ///
    /// # Errors
    /// `PROVIDER_NAME_TAKEN`.
    pub(crate) async fn free_of_files(&self, folder: &str, slug: &str) -> Result<(), Problem> {
        match self.file(folder, slug).await {
            File::Written(Err(reason)) | File::Copy(_, Err(reason)) => Err(Problem::new(
                Code::ProviderNameTaken,
                format!(
                    "A file of this name stands in the configuration directory and cannot be used: {reason}. Mend or remove providers/{slug}{SUFFIX}, or choose another name."
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Keeps a state of a definition, in the database and beside its file (MOD-9).
    pub(crate) async fn remember(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        folder: &str,
        provider: &Provider,
        change: &str,
        actor: &Actor,
    ) -> Result<(), Problem> {
        let now = self.inner.clock.now();
        store::providers::remember(conn, org, Uuid::now_v7(), provider, change, actor, now).await?;
        if provider.kind == ProviderKind::Custom {
            let gone = if change == "deleted" { "-deleted" } else { "" };
            let stamp = now.format("%Y%m%dT%H%M%S%.3fZ");
            let name = format!("{HISTORY}/{}/{stamp}-v{}{gone}{SUFFIX}", provider.slug, provider.version);
            let kept = self.inner.files.write_in(Scope::Organization(folder), FOLDER, &name, body(provider)).await;
            if let Err(error) = kept {
                tracing::warn!(event = "provider.history_fails", org.slug = folder, provider = provider.slug, %error, "the history of a provider could not be written beside its file; the database has it");
            } else {
                self.prune_history(folder, &provider.slug).await;
            }
        }
        Ok(())
    }

    /// Removes the oldest files of a history that has too many.
    async fn prune_history(&self, folder: &str, slug: &str) {
        let scope = Scope::Organization(folder);
        let Ok(kept) = self.inner.files.list_below(scope, FOLDER, &format!("{HISTORY}/{slug}"), SUFFIX).await else {
            return;
        };
        for name in kept.keys().take(kept.len().saturating_sub(MOST_KEPT)) {
            let _ = self.inner.files.remove_in(scope, FOLDER, &format!("{HISTORY}/{slug}/{name}")).await;
        }
    }

    /// Writes the file of a saved definition, in its transaction.
    ///
    /// # Errors
    /// `CONFIG_NOT_WRITABLE` when a file that somebody wrote stands there and cannot be replaced.
    pub(crate) async fn file_away(&self, folder: &str, provider: &Provider) -> Result<(), Problem> {
        match self.write_file(folder, provider).await {
            Ok(()) => Ok(()),
            Err(error) if matches!(self.file(folder, &provider.slug).await, File::Written(_)) => Err(stands(error)),
            Err(error) => {
                tracing::warn!(event = "provider.copy_fails", org.slug = folder, provider = provider.slug, %error, "the file of a provider could not be written; the database has it");
                Ok(())
            }
        }
    }

    /// Removes the file of a deleted definition, in its transaction.
    ///
    /// # Errors
    /// `CONFIG_NOT_WRITABLE` when it stays.
    pub(crate) async fn take_away(&self, folder: &str, slug: &str) -> Result<(), Problem> {
        let removed = self.inner.files.remove_in(Scope::Organization(folder), FOLDER, &file_name(slug)).await;
        removed.map_err(stands)
    }

    /// The files that cannot be used and belong to no provider.
    ///
    /// # Errors
    /// When the database or the folder cannot be read.
    pub async fn unusable_files(&self, org: OrgId) -> Result<Vec<UnusableFile>, Problem> {
        let mut conn = self.inner.pool.acquire().await?;
        let Some(folder) = store::org_slug(&mut conn, org).await? else { return Ok(Vec::new()) };
        let listing = self.inner.files.list(Scope::Organization(&folder), FOLDER, SUFFIX).await.unwrap_or_default();
        if listing.is_empty() {
            return Ok(Vec::new());
        }
        let own: BTreeSet<String> = store::providers::list(&mut conn, org)
            .await?
            .into_iter()
            .map(|provider| file_name(&provider.slug))
            .collect();
        drop(conn);
        let mut unusable = Vec::new();
        for name in listing.into_keys().filter(|name| !own.contains(name)).take(MOST_NAMED) {
            let slug = name.strip_suffix(SUFFIX).unwrap_or(&name);
            if let File::Written(Err(reason)) | File::Copy(_, Err(reason)) = self.file(&folder, slug).await {
                unusable.push(UnusableFile { file: name, reason });
            }
        }
        Ok(unusable)
    }
}

/// Unusable files that are named.
const MOST_NAMED: usize = 20;

/// Whether a file and a row say the same already.
fn agrees(file: &File, held: Option<&Provider>) -> bool {
    match (file, held) {
        (_, Some(held)) if held.kind == ProviderKind::Demo => true,
        (File::Absent, None) => true,
        (File::Copy(version, Ok(read)), Some(held)) => {
            *version == held.version && held.unreadable.is_none() && same(read, held)
        }
        (File::Written(Ok(read)), Some(held)) => held.unreadable.is_none() && same(read, held),
        (File::Written(Err(reason)), Some(held)) => held.unreadable.as_ref() == Some(reason),
        _ => false,
    }
}

async fn was_deleted(conn: &mut PgConnection, org: OrgId, slug: &str) -> Result<bool, sqlx::Error> {
    let last = store::providers::history(conn, org, slug, 1).await?;
    Ok(last.first().is_some_and(|last| last.change == "deleted"))
}

fn unreadable_folder(error: ConfigError) -> Problem {
    Problem::internal(error)
}

fn stands(error: ConfigError) -> Problem {
    Problem::new(
        Code::ConfigNotWritable,
        format!(
            "The file of this provider cannot be replaced ({}). Change the provider there, or make the file writable for Tale.",
            error.reason()
        ),
    )
    .because(error)
}
