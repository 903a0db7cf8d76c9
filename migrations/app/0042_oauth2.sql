-- Identity providers that speak OAuth 2.0 without OpenID Connect (SSO-2).
ALTER TABLE app.sso_connections
    DROP CONSTRAINT sso_connections_protocol_check,
    ADD CONSTRAINT sso_connections_protocol_check CHECK (protocol IN ('oidc', 'entra', 'saml', 'oauth2'));
