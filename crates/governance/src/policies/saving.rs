//! Reading and writing policies and their files.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use sqlx::PgConnection;
use tale_core::ids::OrgId;
use tale_core::problem::Issue;
use tale_core::{Actor, Code, Problem};
use tale_db::hints::{self, Hint, Topic};
use tale_orgfiles::Scope;

use super::mirror::{self, File};
use super::store::{self, Row};
use super::{Document, Key, Policies, problem_words, sandbox_workspaces};
use crate::audit::{self, AuditEntry};

/// The documents of an organization as they are stored.
pub(super) struct Documents(HashMap<Key, Document>);

impl Documents {
    /// The stored document; the defaults where none is.
    pub(super) fn of(&self, key: Key) -> Document {
        self.0.get(&key).cloned().unwrap_or_else(|| document(key, None, None))
    }
}

pub(super) fn document(key: Key, row: Option<&Row>, unreadable: Option<String>) -> Document {
    let Some(row) = row else { return Document { value: key.defaults(), version: 0, unreadable } };
    match key.normal(row.value.clone()) {
        Ok(value) => Document { value, version: row.version, unreadable },
        // Written by another release.
        Err(issues) => Document {
            value: key.defaults(),
            version: row.version,
            unreadable: Some(unreadable.unwrap_or_else(|| problem_words(&issues))),
        },
    }
}

/// Whether a file and the row beside it need to be brought together.
fn differ(key: Key, file: &File, row: Option<&Row>) -> bool {
    match (file, row) {
        (File::Absent | File::Written(Err(_)), _) => false,
        (File::Copy { version, .. }, Some(row)) => *version != row.version,
        // A row of an earlier release lacks the fields that this one fills in.
        (File::Written(Ok(value)), Some(row)) => key.normal(row.value.clone()).as_ref() != Ok(value),
        (File::Copy { .. } | File::Written(Ok(_)), None) => true,
    }
}

/// Puts what is there into `target` and takes away what is `null` (RFC 7396).
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(object) = target {
        for (name, value) in fields {
            if value.is_null() {
                object.remove(&name);
            } else {
                merge(object.entry(name).or_insert(Value::Null), value);
            }
        }
    }
}

fn absent() -> Problem {
    Problem::new(Code::NotFound, "This organization does not exist.")
}

impl Policies {
    /// A policy as it is stored at this moment.
    ///
    /// # Errors
    /// `DATABASE_UNAVAILABLE`, `NOT_FOUND` for an organization that is gone.
    pub async fn document(&self, org: OrgId, key: Key) -> Result<Document, Problem> {
        Ok(self.documents(org).await?.of(key))
    }

    /// Changes a policy: what `change` names is set, `null` goes back to the default, the rest stays
    /// (POL-4). With `version`, only if nobody has written since. It counts from the next request on, in
    /// every process.
    ///
    /// # Errors
    /// `INVALID_BODY` with paths below `value`, or a code of the policy's own, `CONFIG_VERSION_CONFLICT`,
    /// `CONFIG_NOT_WRITABLE` when the operator's own file would have to be replaced and cannot be.
    pub async fn set(
        &self,
        org: OrgId,
        actor: &Actor,
        key: Key,
        change: Value,
        version: Option<i64>,
    ) -> Result<Document, Problem> {
        self.set_if(org, actor, key, change, version, |_, _| Ok(())).await
    }

    /// [`Policies::set`] of what `fits`, which is asked with the stored document and the new one while nobody else
    /// can change either.
    ///
    /// # Errors
    /// As there, and those of `fits`.
    pub async fn set_if(
        &self,
        org: OrgId,
        actor: &Actor,
        key: Key,
        change: Value,
        version: Option<i64>,
        fits: impl FnOnce(&Value, &Value) -> Result<(), Problem> + Send,
    ) -> Result<Document, Problem> {
        if !change.is_object() {
            return Err(Problem::invalid_field("value", "must be an object"));
        }
        let mut tx = self.0.pool.begin().await?;
        let slug = store::lock(&mut tx, org).await?.ok_or_else(absent)?;
        let (before, file) = self.reconcile(&mut tx, org, &slug, key).await?;
        if version.is_some_and(|version| version != before.version) {
            // What was taken over from the file stays.
            tx.commit().await?;
            self.0.cache.forget(org);
            return Err(Problem::new(
                Code::ConfigVersionConflict,
                "Somebody has changed this policy since you opened it. Load it again, then make your change once more.",
            )
            .with_data(json!({ "version": before.version })));
        }
        let mut value = before.value.clone();
        merge(&mut value, change);
        if let Some(refused) = key.refusal(&value) {
            return Err(refused);
        }
        let value = key.normal(value).map_err(|issues| {
            let below = |issue: Issue| match issue.path.as_str() {
                "" => Issue::new("value", issue.message),
                path => Issue::new(format!("value.{path}"), issue.message),
            };
            Problem::invalid_body(issues.into_iter().map(below).collect())
        })?;
        if value == before.value && before.version > 0 && before.unreadable.is_none() {
            tx.commit().await?;
            return Ok(before);
        }
        fits(&before.value, &value)?;
        let after = self.write(&mut tx, org, actor, key, &before, value).await?;
        let mirrored = self.mirror(&slug, key, &after).await;
        if let (Err(error), File::Written(_)) = (mirrored, file) {
            return Err(Problem::new(
                Code::ConfigNotWritable,
                format!(
                    "The operator's file {} stands for this policy and cannot be replaced ({}). Change the policy there, or make the file writable for Tale.",
                    key.file().0,
                    error.reason()
                ),
            )
            .because(error));
        }
        tx.commit().await?;
        self.0.cache.forget(org);
        Ok(after)
    }

    /// Everything that is stored for `org`, after files that somebody wrote were taken over.
    pub(super) async fn documents(&self, org: OrgId) -> Result<Documents, Problem> {
        let slug = store::slug(&self.0.pool, org).await?.ok_or_else(absent)?;
        // The files first: a copy is then never newer than what is read from the database after it,
        // except where the database was set back.
        let files = self.files(&slug, Key::ALL).await;
        let rows = store::list(&mut *self.0.pool.acquire().await?, org).await?;
        let mut documents = HashMap::new();
        for (key, file) in files {
            let row = rows.iter().find(|row| row.key == key.text());
            let document = if differ(key, &file, row) {
                let mut tx = self.0.pool.begin().await?;
                let slug = store::lock(&mut tx, org).await?.ok_or_else(absent)?;
                let (document, _) = self.reconcile(&mut tx, org, &slug, key).await?;
                tx.commit().await?;
                self.0.cache.forget(org);
                document
            } else {
                let unreadable = match file {
                    File::Written(Err(reason)) => Some(reason),
                    _ => None,
                };
                document(key, row, unreadable)
            };
            if let Some(reason) = &document.unreadable {
                let path = self.0.files.path(Scope::Organization(&slug), key.file());
                tracing::warn!(event = "policy.unreadable", org.slug = slug, policy = key.text(), path = %path.display(), reason, "a policy cannot be read, so what depends on it is refused");
            }
            documents.insert(key, document);
        }
        Ok(Documents(documents))
    }

    /// Brings the file of `key` and its row together, with the organization's row held, and says what
    /// the policy is then and what the file was.
    async fn reconcile(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        slug: &str,
        key: Key,
    ) -> Result<(Document, File), Problem> {
        let mut files = self.files(slug, &[key]).await;
        let file = files.pop().map_or(File::Absent, |(_, file)| file);
        let row = store::get(conn, org, key.text()).await?;
        let unreadable = match &file {
            File::Written(Err(reason)) => Some(reason.clone()),
            _ => None,
        };
        let stored = document(key, row.as_ref(), unreadable);
        if !differ(key, &file, row.as_ref()) {
            return Ok((stored, file));
        }
        match (&file, row) {
            // An old copy. What cannot be written now is tried at the next look.
            (File::Copy { .. }, Some(_)) => {
                let _ = self.mirror(slug, key, &stored).await;
                Ok((stored, file))
            }
            (File::Copy { value: Ok(value), .. } | File::Written(Ok(value)), _) => {
                let taken = self.write(conn, org, &Actor::System, key, &stored, value.clone()).await?;
                tracing::info!(
                    event = "policy.taken_over",
                    org.slug = slug,
                    policy = key.text(),
                    version = taken.version,
                    "a policy was taken over from its file"
                );
                Ok((taken, file))
            }
            (File::Copy { value: Err(reason), .. }, None) => {
                let unreadable = Some(reason.clone());
                Ok((Document { unreadable, ..stored }, file))
            }
            (File::Absent | File::Written(Err(_)), _) => Ok((stored, file)),
        }
    }

    /// Row, audit entry and announcements of a new value.
    async fn write(
        &self,
        conn: &mut PgConnection,
        org: OrgId,
        actor: &Actor,
        key: Key,
        before: &Document,
        value: Value,
    ) -> Result<Document, Problem> {
        let now = self.0.clock.now();
        let version = store::put(conn, org, key.text(), &value, actor.user(), now).await?;
        if key == Key::SandboxWorkspaces {
            sandbox_workspaces::note(conn, org, before, &value).await?;
        }
        let changed: Vec<&String> = value
            .as_object()
            .into_iter()
            .flat_map(Map::iter)
            .filter(|(name, new)| before.value.get(name.as_str()) != Some(*new))
            .map(|(name, _)| name)
            .chain(
                before
                    .value
                    .as_object()
                    .into_iter()
                    .flat_map(Map::keys)
                    .filter(|name| value.get(name.as_str()).is_none()),
            )
            .collect();
        let entry = AuditEntry {
            org: Some(org),
            actor: actor.clone(),
            action: if version == 1 { "governance_policy.created" } else { "governance_policy.updated" },
            category: "admin",
            resource_type: "policy",
            resource_id: Some(key.text().to_owned()),
            details: json!({
                "previous": before.value, "new": value, "changedFields": changed, "version": version,
                "source": if *actor == Actor::System { "file" } else { "app" },
            }),
            at: now,
        };
        audit::record(conn, &entry).await?;
        store::announce(conn, org).await?;
        hints::notify(conn, &Hint::new(org, Topic::Policies)).await?;
        Ok(Document { value, version, unreadable: None })
    }

    /// Writes the copy of a policy.
    async fn mirror(&self, slug: &str, key: Key, document: &Document) -> Result<(), tale_orgfiles::ConfigError> {
        let text = mirror::text(key, &document.value, document.version);
        let done = self.0.files.write_text(Scope::Organization(slug), key.file(), text).await;
        if let Err(error) = &done {
            tracing::warn!(event = "policy.copy_fails", org.slug = slug, policy = key.text(), error = %error, "the copy of a policy could not be written");
        }
        done
    }

    async fn files(&self, slug: &str, keys: &[Key]) -> Vec<(Key, File)> {
        let paths = keys.iter().map(|key| key.file()).collect();
        let texts = self.0.files.read_texts(Scope::Organization(slug), paths).await;
        keys.iter()
            .copied()
            .zip(texts)
            .map(|(key, text)| (key, mirror::judge(key, text.map_err(|error| error.reason()))))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_does_not_undo_what_a_form_saved() {
        let mut value = json!({ "enabled": true, "rules": [1, 2], "modelApi": { "enabled": false } });
        merge(&mut value, json!({ "modelApi": { "enabled": true } }));
        assert_eq!(value, json!({ "enabled": true, "rules": [1, 2], "modelApi": { "enabled": true } }));
        merge(&mut value, json!({ "rules": [3], "enabled": null }));
        assert_eq!(value, json!({ "rules": [3], "modelApi": { "enabled": true } }));
    }
}
