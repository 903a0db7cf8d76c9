//! The one error vocabulary of every door: a stable code, the HTTP status it stands for and a
//! sentence a person can act on.
//!
//! Domain enums turn into a [`Problem`] beside their definition; only the HTTP room turns a
//! `Problem` into a response. Internal causes stay in [`Problem::source`] for the log and never
//! reach a client.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

macro_rules! codes {
    ($($variant:ident = $status:literal $text:literal),+ $(,)?) => {
        /// A stable error code. Codes are added, never removed or given another meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the code's text is its documentation")]
        pub enum Code { $($variant),+ }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code as clients see it.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The HTTP status that goes with it.
            #[must_use]
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }
        }
    };
}

codes! {
    InvalidBody = 400 "INVALID_BODY",
    BodyChunkMalformed = 400 "BODY_CHUNK_MALFORMED",
    InvalidQuery = 400 "INVALID_QUERY",
    InvalidLimit = 400 "INVALID_LIMIT",
    InvalidCursor = 400 "INVALID_CURSOR",
    InvalidHeader = 400 "INVALID_HEADER",
    InvalidUrl = 400 "INVALID_URL",
    OrgSlugRequired = 400 "ORG_SLUG_REQUIRED",
    OrgNameReserved = 400 "ORG_NAME_RESERVED",
    PasswordPolicy = 400 "PASSWORD_POLICY",
    CredentialEndpointInvalid = 400 "CREDENTIAL_ENDPOINT_INVALID",
    CredentialSecretInvalid = 400 "CREDENTIAL_SECRET_INVALID",
    PrivateHostBlocked = 400 "PRIVATE_HOST_BLOCKED",
    SsoSpKeyRequired = 400 "sso_sp_key_required",
    ExtraBodyKeyForbidden = 400 "EXTRA_BODY_KEY_FORBIDDEN",
    FileSizeInvalid = 400 "FILE_SIZE_INVALID",
    FileTooLarge = 400 "FILE_TOO_LARGE",
    UnsupportedFileType = 400 "UNSUPPORTED_FILE_TYPE",
    ImageSvgActiveContent = 400 "IMAGE_SVG_ACTIVE_CONTENT",
    UploadPolicyRejected = 400 "UPLOAD_POLICY_REJECTED",
    UserNotOrgMember = 400 "USER_NOT_ORG_MEMBER",
    EmbeddingProviderUnsupported = 400 "EMBEDDING_PROVIDER_UNSUPPORTED",
    ChatModelUnknown = 400 "CHAT_MODEL_UNKNOWN",
    ChatModelAmbiguous = 400 "CHAT_MODEL_AMBIGUOUS",
    ChatProviderUnknown = 400 "CHAT_PROVIDER_UNKNOWN",
    ModelApiVisionUnsupported = 400 "MODEL_API_VISION_UNSUPPORTED",
    ModelApiToolsUnsupported = 400 "MODEL_API_TOOLS_UNSUPPORTED",
    ModelApiVendorToolUnsupported = 400 "MODEL_API_VENDOR_TOOL_UNSUPPORTED",
    ChatModelNotOnProvider = 400 "CHAT_MODEL_NOT_ON_PROVIDER",
    ChatModelNoVision = 400 "CHAT_MODEL_NO_VISION",
    TooManyAttachments = 400 "TOO_MANY_ATTACHMENTS",
    TwoFactorCodeInvalid = 400 "TWO_FACTOR_CODE_INVALID",
    PasskeyInvalid = 400 "PASSKEY_INVALID",
    CompetenceCapabilityUnknown = 400 "COMPETENCE_CAPABILITY_UNKNOWN",
    RetentionBelowFloor = 400 "RETENTION_BELOW_FLOOR",
    RetentionExceedsCeiling = 400 "RETENTION_EXCEEDS_CEILING",
    Unauthorized = 401 "UNAUTHORIZED",
    InvalidCredentials = 401 "INVALID_CREDENTIALS",
    TwoFactorNotPending = 401 "TWO_FACTOR_NOT_PENDING",
    PasskeyRefused = 401 "PASSKEY_REFUSED",
    Forbidden = 403 "FORBIDDEN",
    TwoFactorRequired = 403 "TWO_FACTOR_REQUIRED",
    PasswordChangeRequired = 403 "PASSWORD_CHANGE_REQUIRED",
    SessionNotFresh = 403 "SESSION_NOT_FRESH",
    OrgForbidden = 403 "ORG_FORBIDDEN",
    ModelApiDisabled = 403 "MODEL_API_DISABLED",
    ModelApiForbidden = 403 "MODEL_API_FORBIDDEN",
    ModelApiModelForbidden = 403 "MODEL_API_MODEL_FORBIDDEN",
    RoleForbidden = 403 "ROLE_FORBIDDEN",
    RbacForbidden = 403 "RBAC_FORBIDDEN",
    OriginForbidden = 403 "ORIGIN_FORBIDDEN",
    SignUpDisabled = 403 "SIGN_UP_DISABLED",
    SetupTokenRequired = 403 "SETUP_TOKEN_REQUIRED",
    OrganizationCreationForbidden = 403 "ORGANIZATION_CREATION_FORBIDDEN",
    ApiKeyCreateForbidden = 403 "API_KEY_CREATE_FORBIDDEN",
    ChatModelForbidden = 403 "CHAT_MODEL_FORBIDDEN",
    AttachmentNotOwned = 403 "ATTACHMENT_NOT_OWNED",
    MemberRoleUpdateForbidden = 403 "MEMBER_ROLE_UPDATE_FORBIDDEN",
    MemberRemoveForbidden = 403 "MEMBER_REMOVE_FORBIDDEN",
    MemberOwnerRoleAssignForbidden = 403 "MEMBER_OWNER_ROLE_ASSIGN_FORBIDDEN",
    MemberAccountShared = 403 "MEMBER_ACCOUNT_SHARED",
    MemberSelfRoleForbidden = 403 "MEMBER_SELF_ROLE_FORBIDDEN",
    MemberSelfRemovalForbidden = 403 "MEMBER_SELF_REMOVAL_FORBIDDEN",
    MemberOwnerRemovalForbidden = 403 "MEMBER_OWNER_REMOVAL_FORBIDDEN",
    TeamForbidden = 403 "TEAM_FORBIDDEN",
    ApiKeyScopeForbidden = 403 "API_KEY_SCOPE_FORBIDDEN",
    CompetenceForbidden = 403 "COMPETENCE_FORBIDDEN",
    NotFound = 404 "NOT_FOUND",
    ModelApiModelUnknown = 404 "MODEL_API_MODEL_UNKNOWN",
    OrgSlugInvalid = 404 "ORG_SLUG_INVALID",
    MemberNotFound = 404 "MEMBER_NOT_FOUND",
    TeamNotFound = 404 "TEAM_NOT_FOUND",
    ApiKeyNotFound = 404 "API_KEY_NOT_FOUND",
    SessionNotFound = 404 "SESSION_NOT_FOUND",
    PasskeyNotFound = 404 "PASSKEY_NOT_FOUND",
    TrustedKeyNotFound = 404 "TRUSTED_KEY_NOT_FOUND",
    SsoNotConfigured = 404 "SSO_NOT_CONFIGURED",
    ProviderUnknown = 404 "PROVIDER_UNKNOWN",
    CredentialNotFound = 404 "CREDENTIAL_NOT_FOUND",
    DocumentNotFound = 404 "DOCUMENT_NOT_FOUND",
    FileNotFound = 404 "FILE_NOT_FOUND",
    BlobNotFound = 404 "BLOB_NOT_FOUND",
    PolicyUnknown = 404 "POLICY_UNKNOWN",
    PassageNotFound = 404 "PASSAGE_NOT_FOUND",
    ThreadNotFound = 404 "THREAD_NOT_FOUND",
    MessageNotFound = 404 "MESSAGE_NOT_FOUND",
    ShareNotFound = 404 "SHARE_NOT_FOUND",
    ChatTurnNotRunning = 404 "CHAT_TURN_NOT_RUNNING",
    DeferredSendNotFound = 404 "DEFERRED_SEND_NOT_FOUND",
    SandboxNotConfigured = 404 "SANDBOX_NOT_CONFIGURED",
    CodeRunNotFound = 404 "CODE_RUN_NOT_FOUND",
    CompetenceNotFound = 404 "COMPETENCE_NOT_FOUND",
    MethodNotAllowed = 405 "METHOD_NOT_ALLOWED",
    RequestTimeout = 408 "REQUEST_TIMEOUT",
    SetupAlreadyDone = 409 "SETUP_ALREADY_DONE",
    EmailTaken = 409 "EMAIL_TAKEN",
    OrgNameTaken = 409 "ORG_NAME_TAKEN",
    AlreadyMember = 409 "ALREADY_MEMBER",
    TeamNameTaken = 409 "TEAM_NAME_TAKEN",
    TeamLastMember = 409 "TEAM_LAST_MEMBER",
    TeamLimit = 409 "TEAM_LIMIT",
    TeamManaged = 409 "TEAM_MANAGED",
    PasswordNotSet = 409 "PASSWORD_NOT_SET",
    PasswordAlreadySet = 409 "PASSWORD_ALREADY_SET",
    SsoLastWayIn = 409 "SSO_LAST_WAY_IN",
    TotpAlreadyEnabled = 409 "TOTP_ALREADY_ENABLED",
    TotpNotEnabled = 409 "TOTP_NOT_ENABLED",
    PasskeyAlreadyRegistered = 409 "PASSKEY_ALREADY_REGISTERED",
    PasskeyLimit = 409 "PASSKEY_LIMIT",
    PasskeyUnavailable = 409 "PASSKEY_UNAVAILABLE",
    TrustedKeyLimit = 409 "TRUSTED_KEY_LIMIT",
    ApiKeyLimit = 409 "API_KEY_LIMIT",
    ApiKeyReplaced = 409 "API_KEY_REPLACED",
    CompetenceAlreadyGranted = 409 "COMPETENCE_ALREADY_GRANTED",
    SsoConfigUnreadable = 409 "sso_config_unreadable",
    FrameOriginLimit = 409 "FRAME_ORIGIN_LIMIT",
    MemberOwnerRoleImmutable = 409 "MEMBER_OWNER_ROLE_IMMUTABLE",
    MemberCreatorRoleImmutable = 409 "MEMBER_CREATOR_ROLE_IMMUTABLE",
    MemberLastAdmin = 409 "MEMBER_LAST_ADMIN",
    ProviderNameTaken = 409 "PROVIDER_NAME_TAKEN",
    ProviderVersionConflict = 409 "PROVIDER_VERSION_CONFLICT",
    ProviderInUse = 409 "PROVIDER_IN_USE",
    CredentialNameTaken = 409 "CREDENTIAL_NAME_TAKEN",
    CredentialVersionConflict = 409 "CREDENTIAL_VERSION_CONFLICT",
    CredentialInUse = 409 "CREDENTIAL_IN_USE",
    UploadScopeConflict = 409 "UPLOAD_SCOPE_CONFLICT",
    DocumentStale = 409 "DOCUMENT_STALE",
    EmbeddingNotConfigured = 409 "EMBEDDING_NOT_CONFIGURED",
    EmbeddingCreditExhausted = 409 "EMBEDDING_CREDIT_EXHAUSTED",
    EmbeddingCredentialRejected = 409 "EMBEDDING_CREDENTIAL_REJECTED",
    EmbeddingWidthConflict = 409 "EMBEDDING_WIDTH_CONFLICT",
    NoTranscriptionModel = 409 "NO_TRANSCRIPTION_MODEL",
    TranscriptionModelUnavailable = 409 "TRANSCRIPTION_MODEL_UNAVAILABLE",
    ChatTurnInProgress = 409 "CHAT_TURN_IN_PROGRESS",
    AttachmentNotReady = 409 "ATTACHMENT_NOT_READY",
    QueueFull = 409 "QUEUE_FULL",
    ChatThreadArchived = 409 "CHAT_THREAD_ARCHIVED",
    ChatNothingToShare = 409 "CHAT_NOTHING_TO_SHARE",
    ChatThreadNotDirect = 409 "CHAT_THREAD_NOT_DIRECT",
    ObjectStoreNotConnected = 409 "OBJECT_STORE_NOT_CONNECTED",
    ObjectStoreSameBucket = 409 "OBJECT_STORE_SAME_BUCKET",
    ObjectStoreCheckFailed = 409 "OBJECT_STORE_CHECK_FAILED",
    ObjectStoreMoveRunning = 409 "OBJECT_STORE_MOVE_RUNNING",
    ConfigVersionConflict = 409 "CONFIG_VERSION_CONFLICT",
    KnowledgeSameDatabase = 409 "KNOWLEDGE_SAME_DATABASE",
    KnowledgeCheckFailed = 409 "KNOWLEDGE_CHECK_FAILED",
    SandboxAsleep = 409 "SANDBOX_ASLEEP",
    SandboxCapacityExceeded = 409 "SANDBOX_CAPACITY_EXCEEDED",
    IdempotencyKeyReused = 409 "IDEMPOTENCY_KEY_REUSED",
    PreconditionFailed = 412 "PRECONDITION_FAILED",
    BodyTooLarge = 413 "BODY_TOO_LARGE",
    UriTooLong = 414 "URI_TOO_LONG",
    RateLimited = 429 "RATE_LIMITED",
    BudgetExceeded = 429 "BUDGET_EXCEEDED",
    ModelApiConcurrencyExceeded = 429 "MODEL_API_CONCURRENCY_EXCEEDED",
    SignInLocked = 429 "SIGN_IN_LOCKED",
    InternalError = 500 "INTERNAL_ERROR",
    ProviderUpstreamError = 502 "PROVIDER_UPSTREAM_ERROR",
    ModelApiUpstreamError = 502 "MODEL_API_UPSTREAM_ERROR",
    ModelApiUnavailable = 503 "MODEL_API_UNAVAILABLE",
    EmbeddingUpstreamError = 503 "EMBEDDING_UPSTREAM_ERROR",
    KnowledgeUnavailable = 503 "KNOWLEDGE_UNAVAILABLE",
    KnowledgeMisconfigured = 503 "KNOWLEDGE_MISCONFIGURED",
    DatabaseUnavailable = 503 "DATABASE_UNAVAILABLE",
    ObjectStoreUnavailable = 503 "OBJECT_STORE_UNAVAILABLE",
    ObjectStoreMisconfigured = 503 "OBJECT_STORE_MISCONFIGURED",
    PolicyUnreadable = 503 "POLICY_UNREADABLE",
    ConfigNotWritable = 503 "CONFIG_NOT_WRITABLE",
    ObjectStoreUnconfigured = 503 "OBJECT_STORE_UNCONFIGURED",
    CredentialEnvMissing = 503 "CREDENTIAL_ENV_MISSING",
    SubscriptionExhausted = 503 "SUBSCRIPTION_EXHAUSTED",
    SandboxUnavailable = 503 "SANDBOX_UNAVAILABLE",
    Busy = 503 "BUSY",
    Draining = 503 "DRAINING",
}

/// A refusal or fault on its way to a client.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", code.text())]
pub struct Problem {
    /// What clients branch on.
    pub code: Code,
    /// A displayable English sentence: the thing, the reason, the next step.
    pub message: Cow<'static, str>,
    /// Structured detail, part of the contract of the code.
    pub data: Option<Value>,
    /// When trying again makes sense.
    pub retry_after: Option<Duration>,
    /// The internal cause, for the log only.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Problem {
    /// A refusal with its sentence.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None, retry_after: None, source: None }
    }

    /// A server-side fault. The client reads a neutral sentence, the log gets `source`.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self {
            source: Some(source.into()),
            ..Self::new(
                Code::InternalError,
                "Something went wrong on our side. Try again; if it happens again, give your administrator the request id.",
            )
        }
    }

    /// A body refused for one field: `INVALID_BODY` with `data.issues[0]`.
    pub fn invalid_field(path: &str, message: &str) -> Self {
        Self::invalid_body(vec![Issue::new(path, message)])
    }

    /// A body refused for several fields (API-11).
    #[must_use]
    pub fn invalid_body(issues: Vec<Issue>) -> Self {
        Self::with_issues(Code::InvalidBody, issues)
    }

    /// A query string refused for one parameter (API-13).
    pub fn invalid_query(path: &str, message: &str) -> Self {
        Self::with_issues(Code::InvalidQuery, vec![Issue::new(path, message)])
    }

    fn with_issues(code: Code, issues: Vec<Issue>) -> Self {
        let sentence = issues.first().map_or_else(
            || "The request is not valid.".to_owned(),
            |first| {
                if first.path.is_empty() {
                    format!("The request {}.", first.message)
                } else {
                    format!("`{}` {}.", first.path, first.message)
                }
            },
        );
        let list: Vec<Value> =
            issues.iter().map(|issue| serde_json::json!({ "path": issue.path, "message": issue.message })).collect();
        Self::new(code, sentence).with_data(serde_json::json!({ "issues": list }))
    }

    /// Adds structured detail.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Says when trying again makes sense.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Keeps the cause for the log.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.code.status()
    }
}

impl From<sqlx::Error> for Problem {
    /// A database that cannot be reached is a 503 that passes; anything else is our fault.
    fn from(error: sqlx::Error) -> Self {
        let unreachable = match &error {
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Tls(_) => true,
            // 57P01…57P03: shutting down, crash, starting up; 08xxx: connection; 53300: too many connections.
            sqlx::Error::Database(db) => {
                db.code().is_some_and(|code| code.starts_with("57P") || code.starts_with("08") || code == "53300")
            }
            _ => false,
        };
        // 53100: the disk is full. The sentence is for whoever can free some.
        let full = error.as_database_error().is_some_and(|db| db.code().as_deref() == Some("53100"));
        if full {
            Self::new(
                Code::DatabaseUnavailable,
                "The disk of the database is full, so nothing can be stored. Free some space there, then try again.",
            )
            .retry_after(Duration::from_secs(60))
            .because(error)
        } else if unreachable {
            Self::new(
                Code::DatabaseUnavailable,
                "The database cannot be reached right now. Nothing was changed; try again in a moment.",
            )
            .retry_after(Duration::from_secs(5))
            .because(error)
        } else {
            Self::internal(error)
        }
    }
}

/// One thing wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Dotted path of the field, empty for the body as a whole.
    pub path: String,
    /// Displayable English without the subject, such as `must not be blank`.
    pub message: String,
}

impl Issue {
    /// An issue at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_carry_error_statuses() {
        let mut seen = std::collections::HashSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.text()), "{} stands twice in the table", code.text());
            assert!((400..600).contains(&code.status()), "{}", code.text());
        }
    }

    #[test]
    fn an_internal_cause_stays_out_of_the_sentence() {
        let problem = Problem::internal("relation app.secrets does not exist");
        assert!(!problem.message.contains("app.secrets"));
        assert!(problem.source.is_some());
    }
}
