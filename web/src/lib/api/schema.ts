/* Generated from the API contract (sha256 1f0df70a2bdf5daec940c992c36f4755722abb4382b7dd1eb71136a9e9ba0332) by `make openapi`. Do not edit. */

export interface paths {
    "/api/app/account": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The person's own account. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Account"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Changes the display name. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateAccountRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Account"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/app/account/backup-codes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes new backup codes in the place of all before. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ConfirmRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BackupCodes"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/factors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The person's second factors. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Factors"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/passkeys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Adds a passkey. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["AddPasskeyRequest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Passkey"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/passkeys/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The question for a new passkey. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NewPasskeyRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PasskeyCreationOptions"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/passkeys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Removes a passkey. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /** Gives a passkey another name. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RenamePasskeyRequest"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/app/account/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Changes the password, or sets the first one, and ends every session of the person. When another password had to be
         *     chosen before anything else, the session that asks goes on.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ChangePasswordRequest"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/proof": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Shows by password or code that it is the person. That counts for 15 minutes in this session. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ProofRequest"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/proof/passkey": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Shows by a passkey that it is the person. That counts for 15 minutes in this session. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PasskeyAssertion"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/proof/passkey/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The question for a passkey of the person. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PasskeyRequestOptions"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every browser in which the person is signed in. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AccountSessions"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/sessions/end-others": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Signs every other browser out. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Signs one browser out. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/totp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Begins the set-up of an authenticator app, which acts once a code of it was typed. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ConfirmRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TotpSetup"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/totp/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Switches the authenticator app on by a code of it, and tells its backup codes. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CodeRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BackupCodes"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/account/totp/disable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Switches the authenticator app off. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ConfirmRequest"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The person's own keys and those made for them here, newest first; for owners and admins also all that were made
         *     here for others.
         */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiKeys"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Makes a key: for oneself, or as owner or admin for a member below oneself, a team or the organization. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateApiKeyRequest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CreatedApiKey"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/api-keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revokes a key, for good: one's own, one made for oneself or, as owner or admin, any made here for others. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/api-keys/{id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes a successor of a key. The old one goes on working for a while. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RotateApiKeyRequest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CreatedApiKey"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Entries of the organization's audit log, the newest first. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /**
                     * @description Only those of this area: `auth`, `member`, `data`, `connector`, `automation`, `security`, `admin`, `ai`, `skill`,
                     *     `agent` or `provider`.
                     */
                    category?: string;
                    /** @description Only failed and denied ones. */
                    unsuccessful?: boolean;
                    /** @description Only those at this time and later, in milliseconds since 1970. */
                    from?: number;
                    /** @description Only those at this time and earlier, likewise. */
                    to?: number;
                    /** @description Continues a list. */
                    cursor?: string;
                    /** @description Rows per page, 1–200 (50). */
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditPage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/audit/activity": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How much was recorded lately. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description The last 7 (default), 30 or 90 days. */
                    days?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditActivity"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/audit/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The audit log as a file. Making one is an entry itself. */
        get: {
            parameters: {
                query: {
                    orgId?: string;
                    /** @description The form of the file. */
                    format: "csv" | "jsonl";
                    /** @description As for the list. */
                    category?: string;
                    /** @description As for the list. */
                    unsuccessful?: boolean;
                    /** @description As for the list. */
                    from?: number;
                    /** @description As for the list. */
                    to?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "text/csv": string;
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/audit/sign-in-blocks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Failed sign-ins to accounts of members, 200 counters at most, the latest first. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SignInBlocks"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/audit/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the last automatic check of the chain found. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditStatus"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Checks the chain of the audit log: 250,000 entries at most, further ones by going on after `to.sequence`. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Goes on after this place of the chain, as `to.sequence` of the answer before; absent: from the oldest entry on. */
                    after?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditVerification"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/branding": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The branding, for those who may change it. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Branding"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        /** Sets the accent colour, unless somebody else changed the branding since `version`. */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["BrandingForm"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Branding"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        /** Removes colour and images at once. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Branding"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/branding/images/{slot}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Uploads an image, at once: SVG, PNG, JPEG or WebP, favicons also ICO, of 1 MiB at most. What it is is read from its
         *     bytes.
         */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    slot: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/octet-stream": number[];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Branding"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        /** Removes an image, at once. One that is not there is fine. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    slot: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Branding"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/branding/published/{organization}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How an organization looks, for everybody; one that does not exist looks like one that set nothing. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    organization: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PublishedBranding"];
                    };
                };
                400: components["responses"]["BadRequest"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/branding/published/{organization}/{image}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An image of an organization, for everybody. Under the address that names its content it never changes. */
        get: {
            parameters: {
                query?: {
                    /** @description Names the content. */
                    v?: string;
                };
                header?: never;
                path: {
                    organization: string;
                    image: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "image/*": number[];
                    };
                };
                /** @description It is what `If-None-Match` names */
                304: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/catalogs/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reads every list of models that comes from a provider again. A failure keeps the list before it. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RefreshedCatalogs"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/attachments/{fileId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far an attachment is. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    fileId: components["schemas"]["FileId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AttachmentStatus"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/attachments/{fileId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Has an attachment read again that could not be read. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    fileId: components["schemas"]["FileId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AttachmentStatus"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/attachments/{fileId}/text": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The text of an attachment; of a recording, its transcript. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Where the stretch begins, in Unicode scalar values; 0 when absent. */
                    offset?: number;
                };
                header?: never;
                path: {
                    fileId: components["schemas"]["FileId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AttachmentText"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/composer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Models, the person's pick and the state of search. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Composer"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/pick": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Remembers the person's model for the next fresh chat. */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ChatPickRequest"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/shared/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The chat behind a share link, for every member of its organization. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    token: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SharedChat"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The person's chats, newest activity first. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description The archived ones instead. */
                    archived?: boolean;
                    /** @description Words of the title. */
                    search?: string;
                    /** @description Continues a list. */
                    cursor?: string;
                    /** @description Rows per page, 1–100 (50). */
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ThreadPage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Creates an empty chat. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateThreadRequest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Thread"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/archive-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Archives all open chats of the person. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BulkResult"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/delete-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Moves all chats of the person to the trash. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BulkResult"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/new/deferred-sends": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Parks the first message of a new chat until its attachments are ready. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SendRequest"];
                };
            };
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeferredSend"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/new/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends the first message of a new chat. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SendRequest"];
                };
            };
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Accepted"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One chat. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Thread"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        /** Moves a chat to the trash. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /** Renames, archives, pins or marks a chat. */
        patch: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ChangeThreadRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Thread"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/app/chat/threads/{id}/deferred-sends": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The messages that wait for their attachments, in the order in which they will go. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeferredSends"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /**
         * Parks a message until its attachments are ready and the messages parked before it are sent. At
         *     most 10 wait in a chat, each with at most 20 attachments.
         */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SendRequest"];
                };
            };
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeferredSend"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/deferred-sends/{sendId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Takes a parked message back. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                    sendId: components["schemas"]["DeferredSendId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AbandonedSend"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/deferred-sends/{sendId}/attachments/{fileId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Takes an attachment off a parked message. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                    sendId: components["schemas"]["DeferredSendId"];
                    fileId: components["schemas"]["FileId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/deferred-sends/{sendId}/attachments/{fileId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Has an attachment of a parked message read again. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                    sendId: components["schemas"]["DeferredSendId"];
                    fileId: components["schemas"]["FileId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The chat as a Markdown file. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description `markdown`. */
                    format?: string;
                    /** @description Only these messages, separated by commas. */
                    messages?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "text/markdown": string;
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Copies the chat up to a reply into a new one. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NamedMessage"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Thread"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The messages of the version on screen, oldest first. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MessageList"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Sends a message; the reply is written detached from this request. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SendRequest"];
                };
            };
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Accepted"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/messages/{mid}/edit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Asks with other words, as a new version of the turn. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                    mid: components["schemas"]["MessageId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SendRequest"];
                };
            };
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Accepted"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/messages/{mid}/feedback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Rates a reply. */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                    mid: components["schemas"]["MessageId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["FeedbackRequest"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/messages/{mid}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Asks the same again, as a new version of the turn. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                    mid: components["schemas"]["MessageId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RetryRequest"];
                };
            };
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Accepted"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Takes a chat out of the trash. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Thread"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/share": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Publishes the version on screen for the organization. A chat that is shared keeps its snapshot
         *     unless newer messages are asked for.
         */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ShareRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Share"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/share-status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the chat is shared, and its link. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ShareStatus"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stops the reply that is being written. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Stopping"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/unshare": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stops sharing the chat, also one in the trash. Its link stays dark for ever. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Unshared"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/chat/threads/{id}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Shows another version of a turn. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NamedMessage"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MessageList"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/code/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The files of one's own sandbox, while it is awake. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Below the directory in which programs start. */
                    path?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CodeFiles"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/code/files/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A file of one's own sandbox, of at most 20 MiB, while it is awake. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Below the directory in which programs start. */
                    path?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/octet-stream": number[];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/code/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One's own runs, the newest first, each with the first 400 characters of its program. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    cursor?: string;
                    /** @description 1 to 50; 20 when absent. */
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CodeRunPage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Runs a program in one's own sandbox: at once, or as soon as there is room. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RunCodeRequest"];
                };
            };
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CodeRun"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/code/runs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A run of one's own. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CodeRun"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/code/runs/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follows a run: events `state` (a run), `output` (`{seq, stream, b64}`) in the order of `seq`, which is also the
         *     event's id, and `end` (a run) after the last output. Read on with `since` where a connection was lost.
         */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Number of the last output event that is known; everything when absent. */
                    since?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": string;
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/code/runs/{id}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stops a run with everything it started; one that waits is taken out of the line. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CodeRun"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/credentials/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Deletes a credential. With `retireProvider` the last one of a custom provider takes the provider along, and the
         *     answer says whether it did; the credential is gone either way.
         */
        delete: {
            parameters: {
                query: {
                    orgId?: string;
                    version: number;
                    /** @description Also delete a custom provider that has no other credential. */
                    retireProvider?: boolean;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RetiredProvider"];
                    };
                };
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /** Changes a credential. */
        patch: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ChangeCredentialRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Credential"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/app/credentials/{id}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reads the list of models with this credential's key. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CheckedModels"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/documents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Documents, newest first unless another order is asked for. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Part of the title or the file's name. */
                    search?: string;
                    /** @description Only those in this state. */
                    status?: ("pending" | "queued" | "running" | "completed" | "failed" | "unsupported" | "skipped") | null;
                    /** @description What counts for the order (`added`). */
                    sort?: ("added" | "name" | "size") | null;
                    /** @description `desc`, but `asc` by name, when absent. */
                    order?: ("asc" | "desc") | null;
                    /** @description Continues a list. */
                    cursor?: string;
                    /** @description Rows per page, 1–100 (50). */
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DocumentPage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Registers an upload as a document. The same upload again answers 200 with the same document. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateDocumentRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Document"];
                    };
                };
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Document"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/documents/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One document. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Document"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        /** Moves a document to the trash: no search shows it from now on. It can be restored for 30 days. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /** Gives a document another title. */
        patch: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RenameRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Document"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/app/documents/{id}/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The bytes of a document; one byte range is honoured. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description `1`: as a download. */
                    download?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "*/*": unknown;
                    };
                };
                206: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                304: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                416: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/documents/{id}/passages/{chunkId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A passage, as a citation opens it. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                    chunkId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Passage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/documents/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Brings a document back from the trash. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Document"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/documents/{id}/retry-indexing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Queues a document for indexing again. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Retried"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/documents/{id}/text": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A stretch of a document's extracted text. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Where to begin, in Unicode scalar values (0). */
                    offset?: number;
                    /** @description How much, 1–200,000 (50,000). */
                    limit?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TextPart"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/files/{fileId}/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The bytes of one's own upload or of a document's file; one byte range is honoured. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description `1`: as a download. */
                    download?: number;
                };
                header?: never;
                path: {
                    fileId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "*/*": unknown;
                    };
                };
                206: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                304: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                416: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/files/{fileId}/passages/{chunkId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A passage of one's own upload or of a document's file, as a citation opens it. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    fileId: string;
                    chunkId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Passage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/files/{fileId}/text": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A stretch of the text extracted from one's own upload or from a document's file. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Where to begin, in Unicode scalar values (0). */
                    offset?: number;
                    /** @description How much, 1–200,000 (50,000). */
                    limit?: number;
                };
                header?: never;
                path: {
                    fileId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TextPart"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/governance/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The API keys that rules can name: those that work in the organization, 1,000 at most; and those that rules name
         *     although they do not.
         */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiKeyNames"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/governance/competences": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The register of competences. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Only those of this person. */
                    userId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Competences"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Grants a competence to a member; it counts from their next request on. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["GrantCompetenceRequest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["GrantedCompetence"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/governance/competences/{recordId}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Revokes a grant, from the person's next request on. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    recordId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/governance/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The chat models that rules can name: all of the organization, whoever may use them. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["GovernedModels"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/governance/my/budget-status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far the limits that bind the caller are used: their own and the organization's. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BudgetStatus"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/governance/policies/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A policy of the organization. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    key: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Policy"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        /** Changes a policy; it counts from the next request on. `If-Match` with the version in quotes is the same as `version`. */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    key: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PolicyChange"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Policy"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/governance/transcription": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What transcribes recordings now, and which models could be pinned. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TranscriptionSettings"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/knowledge/connection": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where the organization's passages are. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["KnowledgeDatabaseState"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        /**
         * Names a database as the organization's own, after a look at it. Passages are not moved: files must be
         *     indexed anew.
         */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["KnowledgeDatabaseForm"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["KnowledgeDatabaseState"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        /**
         * Lets the organization's passages belong into the deployment's database again. What is in its own stays there,
         *     out of reach.
         */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/knowledge/connection/reindex": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reads all files of the organization anew into its present database, in the background. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FilesQueued"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/knowledge/connection/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Looks whether a database can be used; changes nothing. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["KnowledgeDatabaseForm"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["KnowledgeDatabaseFound"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/knowledge/embedding": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The embedding model, what could be chosen, and how far the documents are. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["EmbeddingSettings"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        /** Chooses the embedding model; documents without its vectors are queued. */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["EmbeddingChoice"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["EmbeddingChosen"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        /** Removes the embedding model; search goes on by words alone. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every member, first come first. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Members"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Adds a member, with a new account when the address has none. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["AddMemberRequest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AddedMember"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/members/lookup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Says whether an address has an account on this Tale, so that nobody thinks of a password for one that is there. At
         *     most 30 an hour, each of them an entry of the audit log.
         */
        get: {
            parameters: {
                query: {
                    orgId?: string;
                    /** @description The address. */
                    email: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AccountLookUp"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/members/{userId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Removes a member. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    userId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /** Changes a member's role, name or password. */
        patch: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    userId: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateMemberRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Member"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/app/members/{userId}/factors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The factors of a member. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    userId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MemberFactors"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/members/{userId}/passkeys/{passkeyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Takes a passkey of a member away and ends all their sessions. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    userId: string;
                    passkeyId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/members/{userId}/sign-in-blocks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Forgets a member's failed sign-ins, so that a block of theirs ends now. Not one's own, and not those of somebody who
         *     belongs to another organization too.
         */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Absent: passwords. */
                    kind?: "password" | "secondFactor";
                };
                header?: never;
                path: {
                    userId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/members/{userId}/totp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Takes a member's authenticator app and backup codes away and ends all their sessions. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    userId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/members/{userId}/transfer-ownership": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes another member the owner. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    userId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/model-endpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The model endpoints: whether they are on, and what can be called. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ModelEndpoints"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the person is told about their account and the organization, the newest first. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Only unread ones. */
                    unread?: boolean;
                    /** @description The language of the words: `en` (default), `de` or `fr`. */
                    locale?: string;
                    /** @description Where the page before ended. */
                    cursor?: string;
                    /** @description 1 to 100, 25 when absent. */
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NotificationPage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/notifications/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Marks notifications as seen. Ids that are not the person's change nothing. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SeenNotifications"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/notifications/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the person is told of. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NotificationSettings"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        /** Replaces what the person is told of. */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NotificationWishes"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NotificationSettings"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/notifications/unread": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How many notifications the person has not seen. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UnreadNotifications"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/object-storage/connection": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where the organization's files are. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ObjectStorage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        /**
         * Names a bucket as the organization's own, after a real put, get and delete in it. New files go there
         *     from now on.
         */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ObjectStorageForm"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ObjectStorage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        /** Lets new files go to the deployment's store again. What is in the bucket stays there, out of reach. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/object-storage/connection/browser-test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Signs a request with which the browser stores one byte in the bucket: only a browser can tell whether
         *     the bucket admits the pages of this site.
         */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BrowserTest"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/object-storage/connection/browser-test/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Removes the byte that the browser stored. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/object-storage/connection/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tries a bucket out with a real put, get and delete; changes nothing. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ObjectStorageForm"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/object-storage/migration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The latest move of files, as far as it is. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ObjectStorageMigration"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Moves the files that are in the deployment's store to the organization's own bucket, in the background. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ObjectStorageMigration"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/object-storage/origins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The origins that pages of the signed-in person exchange files with. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StoreOriginList"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/organizations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes an organization with the person as owner. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["OrganizationRequest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Organization"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/organizations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Deletes an organization with everything in it. Nobody belongs to it from now on. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DeleteOrganizationRequest"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /** Renames an organization. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["OrganizationRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Organization"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/app/organizations/{id}/session-limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the deployment lays down about the sessions of members. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SessionLimits"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/permissions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the person may do in the organization. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Permissions"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/preferences": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The person's preferences. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Preferences"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        /** Replaces the person's preferences. */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Preferences"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Preferences"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every provider: the organization's own, then the shipped ones. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Providers"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Adds a custom provider together with its first credential. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["AddProviderRequest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Provider"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/providers/demo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Adds the demo model of this process, which quotes documents and is no language model. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Provider"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/providers/discover": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reads the models of an endpoint; nothing is saved. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DiscoverModelsRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DiscoveredModels"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/providers/{slug}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Deletes a custom provider or the demo, with its only credential. */
        delete: {
            parameters: {
                query: {
                    orgId?: string;
                    version: number;
                };
                header?: never;
                path: {
                    slug: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /** Changes a custom provider, and its key in the same step. */
        patch: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    slug: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ChangeProviderRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Provider"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/app/providers/{slug}/credentials": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Adds a credential. The first one of a provider is its default. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    slug: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["AddCredentialRequest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Credential"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/providers/{slug}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Earlier states of a custom provider's definition, also of a deleted one. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    slug: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProviderHistory"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/providers/{slug}/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reads the provider's list of models again. A failure keeps the list before it. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    slug: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RefreshedCatalog"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/providers/{slug}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Saves an earlier state of a definition anew. A deleted provider comes back without credentials. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    slug: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RestoreProviderRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Provider"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/providers/{slug}/subscriptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Adds a subscription: a pasted token, or a broker that hands them out. It acts in the provider's agent runtime alone; no chat and no other call uses it. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    slug: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["AddSubscriptionRequest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Subscription"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/providers/{slug}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes one tiny real call and shows what came back, or the vendor's own error. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    slug: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TestProviderRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProviderTest"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/provisioning": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether a directory provisions the organization, and where it speaks to. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Provisioning"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        /** Switches provisioning on or off. Off refuses the token and keeps it. */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SetProvisioningRequest"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/provisioning/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes a token. It takes the place of the one before, which is over at once. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProvisioningToken"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/sandboxes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The organization's sandboxes: limits and use, the host, who waits. Names only for those who manage them. The limits
         *     are the policy `sandbox_quota`.
         */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Sandboxes"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/sandboxes/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Deletes a sandbox with its files, whatever goes on in it. It is gone once its files are. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/sandboxes/{id}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ends everything that goes on or waits in a sandbox. Its files stay. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SandboxStopped"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Finds chats by their words and documents by their title. */
        get: {
            parameters: {
                query: {
                    orgId?: string;
                    /** @description What is looked for, at most 200 characters. */
                    q: string;
                    scope?: "all" | "chats";
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SearchResults"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who is signed in; also answers when nobody is. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Session"];
                    };
                };
                400: components["responses"]["BadRequest"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/setup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes the first owner with the first organization and signs the owner in. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SetupRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SetupDone"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/sso": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The connection and the redirect addresses to register at the provider. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SsoSettings"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        /** Saves the connection. Another provider or client needs its secret again. */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SsoForm"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        /** Removes the connection with its secret. Sessions that began with it go on. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/sso/saml/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reads a provider's metadata, without saving anything. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SamlMetadataSource"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SamlMetadata"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/sso/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Tries a connection without saving it: its discovery document, its keys and its credentials, or what stands in their
         *     place.
         */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SsoForm"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SsoTest"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/subscriptions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Deletes a subscription. */
        delete: {
            parameters: {
                query: {
                    orgId?: string;
                    version: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /** Changes a subscription. */
        patch: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ChangeSubscriptionRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Subscription"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/app/subscriptions/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Asks the broker for its accounts and says how many can be used now. No token is shown or kept. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BrokerTest"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/teams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every team of the organization, by name. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Teams"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Makes a team. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NewTeam"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Team"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/teams/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Deletes a team. Its people stay members of the organization. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["TeamId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /** Renames or describes a team. */
        patch: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["TeamId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TeamChange"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/app/teams/{id}/deletion": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the deletion of a team would touch now. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["TeamId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TeamDeletion"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/teams/{id}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who is in a team, for its members and for owners and admins. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["TeamId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TeamMembers"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Puts members of the organization into a team, all or none. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["TeamId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TeamAdditions"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/teams/{id}/members/{userId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Takes somebody out of a team, which keeps at least one member. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: components["schemas"]["TeamId"];
                    userId: components["schemas"]["UserId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/trusted-headers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The settings, the live keys and the names of the headers. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TrustedHeaders"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/trusted-headers/embedding": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Sets whose pages may show the organization in a frame. Pages follow within seconds. */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Embedding"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Embedding"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/trusted-headers/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes a key, shown once. An organization has at most ten. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateTrustedKey"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CreatedTrustedKey"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/trusted-headers/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revokes a key for good. Sessions that it began go on, unless they are to end. */
        delete: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description Whether the sessions that the key began end as well, except those that began before this was recorded. */
                    endSessions?: boolean;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /** Sets whether a key takes signed assertions only, and tells what they are signed with. */
        patch: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TrustedKeyChange"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SigningSecret"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/app/trusted-headers/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Switches the sign-in on or off and sets the highest role it gives. */
        put: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TrustedHeaderSettings"];
                };
            };
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/uploads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Opens an upload slot: put the bytes to `url`, then register the file. */
        post: {
            parameters: {
                query?: {
                    orgId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateUploadRequest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UploadSlot"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the organization used between two days. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description The first day (UTC), as `2026-11-30` or as a time in milliseconds; absent: 29 days before `to`. */
                    from?: string;
                    /** @description The last day, likewise; absent: today. */
                    to?: string;
                    /** @description What the answer is broken down by; absent: `day`. */
                    groupBy?: components["schemas"]["UsageGroupBy"];
                    /** @description Only this assistant or kind of work. */
                    agent?: string;
                    /** @description Only this model, as `provider/model`. */
                    model?: string;
                    /** @description Only this person. */
                    person?: string;
                    /** @description Only this API key. */
                    key?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UsageReport"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/app/usage/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The groups of a report as a table for spreadsheets. */
        get: {
            parameters: {
                query?: {
                    orgId?: string;
                    /** @description The first day (UTC), as `2026-11-30` or as a time in milliseconds; absent: 29 days before `to`. */
                    from?: string;
                    /** @description The last day, likewise; absent: today. */
                    to?: string;
                    /** @description What the answer is broken down by; absent: `day`. */
                    groupBy?: components["schemas"]["UsageGroupBy"];
                    /** @description Only this assistant or kind of work. */
                    agent?: string;
                    /** @description Only this model, as `provider/model`. */
                    model?: string;
                    /** @description Only this person. */
                    person?: string;
                    /** @description Only this API key. */
                    key?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "text/csv": string;
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/passkey": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Signs in whoever the passkey belongs to. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PasskeyAssertion"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SignInDone"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/passkey/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The question for a sign-in with a passkey alone. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PasskeyRequestOptions"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sign-in/email": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Signs a person in with a password, or asks for their second factor. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SignInRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SignInAnswer"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sign-out": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ends the session. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sign-up/email": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes an account without organization: the first one, or any while sign-up is open. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SignUpRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SignedUp"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/two-factor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How the sign-in that waits in this browser can be finished. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SecondFactorMethods"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/two-factor/backup-code": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Finishes a sign-in with a backup code, which is used up. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CodeRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SignInDone"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/two-factor/passkey": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Finishes a sign-in with a passkey. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PasskeyAssertion"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SignInDone"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/two-factor/passkey/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The question for a passkey that finishes a sign-in. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PasskeyRequestOptions"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/two-factor/totp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Finishes a sign-in with a code of an authenticator app. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CodeRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SignInDone"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The web process lives; names the release. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Health"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sso/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Where the provider sends the browser back. Leads on with a session, or to the sign-in page with what is
         *     wrong.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description To the page that was asked for with a session, or to the sign-in page */
                303: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sso/connections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The connections that the sign-in page offers: those of the domain of `email`, without one those for any
         *     address.
         */
        get: {
            parameters: {
                query?: {
                    email?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SsoOffer"];
                    };
                };
                400: components["responses"]["BadRequest"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sso/saml/{organization}/acs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Takes a response of a provider, which a browser posts from the provider's page. Such a request has no cookies of ours,
         *     so a page of ours posts the form once more. Leads on with a session, or to the sign-in page with what is wrong.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    organization: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/x-www-form-urlencoded": components["schemas"]["SamlAnswer"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description To the page that was asked for with a session, or to the sign-in page */
                303: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sso/saml/{organization}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The metadata of this Tale for an organization's provider. Its address is the entity ID too. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    organization: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/samlmetadata+xml": string;
                    };
                };
                400: components["responses"]["BadRequest"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sso/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sends the browser to the provider of a connection. For page loads, not for programs. */
        get: {
            parameters: {
                query: {
                    connection: string;
                    next?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description To the provider, or to the sign-in page with what is wrong */
                303: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sso/{organization}/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Where the provider of a connection with `ownCallback` sends the browser back: takes answers for this organization
         *     only. Leads on as the shared address does.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    organization: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description To the page that was asked for with a session, or to the sign-in page */
                303: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/trusted-headers/authenticate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Signs in whom the reverse proxy names in its headers and leads on to `redirect`, a path of this Tale.
         *     A refusal leads to the sign-in page. For page loads, not for programs.
         */
        get: {
            parameters: {
                query?: {
                    redirect?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description To `redirect` with a session, or to the sign-in page */
                303: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                /** @description Too many refused keys from this network */
                429: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/anthropic/v1/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Anthropic's messages, for every model of the list. `model` is `<provider>/<model>`; the rest is
         *     Anthropic's own request, and so is the answer, streamed or not.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": unknown;
                };
            };
            responses: {
                /** @description Anthropic's `message`, or its event stream. */
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": unknown;
                    };
                };
                /** @description The request must be corrected; `data.issues` names what is wrong. In the interface's own shape, with Tale's code in `error.code`. */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description No valid key or session. In the interface's own shape, with Tale's code in `error.code`. */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The caller may not do this. In the interface's own shape, with Tale's code in `error.code`. */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The body is larger than this route accepts. In the interface's own shape, with Tale's code in `error.code`. */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Too many requests. `Retry-After` says when to try again. In the interface's own shape, with Tale's code in `error.code`. */
                429: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Every other refusal or fault, such as 500 or 503. In the interface's own shape, with Tale's code in `error.code`. */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/documents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Documents, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Continues a list. */
                    cursor?: string;
                    /** @description Rows per page, 1–100 (50). */
                    limit?: number;
                };
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiDocumentPage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Creates a document from an upload or from inline text. */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ApiCreateDocumentRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiDocument"];
                    };
                };
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiDocument"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/documents/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One document. */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiDocument"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        /** Moves a document to the trash: no search shows it from now on. */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /**
         * Changes the title. `If-Match` and `expectedUpdatedAt` guard against changing what one has not
         *     seen; both are judged before anything else.
         */
        patch: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateDocumentRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiDocument"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/v1/documents/{id}/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The bytes of a document; one byte range is honoured. */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "*/*": unknown;
                    };
                };
                206: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                304: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                416: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/documents/{id}/retry-indexing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Queues a document for indexing again. */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiRetried"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/knowledge/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Searches the library by words and, with an embedding model, by meaning. */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SearchRequest"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SearchAnswer"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who the caller is: person, organizations, rights and the key itself. */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Me"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The chat models that the holder of the key can use now. */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CallableModels"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/openai/chat/completions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * OpenAI's chat completions, for every model of the list. `model` is `<provider>/<model>`; the rest
         *     is OpenAI's own request, and so is the answer, streamed or not.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": unknown;
                };
            };
            responses: {
                /** @description OpenAI's `chat.completion`, or its event stream. */
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": unknown;
                    };
                };
                /** @description The request must be corrected; `data.issues` names what is wrong. In the interface's own shape, with Tale's code in `error.code`. */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description No valid key or session. In the interface's own shape, with Tale's code in `error.code`. */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The caller may not do this. In the interface's own shape, with Tale's code in `error.code`. */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The body is larger than this route accepts. In the interface's own shape, with Tale's code in `error.code`. */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Too many requests. `Retry-After` says when to try again. In the interface's own shape, with Tale's code in `error.code`. */
                429: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Every other refusal or fault, such as 500 or 503. In the interface's own shape, with Tale's code in `error.code`. */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/openai/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The models that the key may call, as OpenAI lists them. */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OpenAiModels"];
                    };
                };
                /** @description The request must be corrected; `data.issues` names what is wrong. In the interface's own shape, with Tale's code in `error.code`. */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description No valid key or session. In the interface's own shape, with Tale's code in `error.code`. */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description The caller may not do this. In the interface's own shape, with Tale's code in `error.code`. */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Too many requests. `Retry-After` says when to try again. In the interface's own shape, with Tale's code in `error.code`. */
                429: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Every other refusal or fault, such as 500 or 503. In the interface's own shape, with Tale's code in `error.code`. */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The key holder's threads, newest activity first. */
        get: {
            parameters: {
                query?: {
                    /** @description The archived ones instead. */
                    archived?: boolean;
                    /** @description Continues a list. */
                    cursor?: string;
                    /** @description Rows per page, 1–100 (50). */
                    limit?: number;
                };
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ThreadsPage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Creates a thread. */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NewThread"];
                };
            };
            responses: {
                201: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ThreadCreated"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{threadId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One thread. */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    threadId: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Thread"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        /** Moves a thread to the trash. */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    threadId: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        /** Renames or archives a thread. */
        patch: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    threadId: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateThread"];
                };
            };
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Thread"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        trace?: never;
    };
    "/api/v1/threads/{threadId}/generation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What the thread is doing: `queued`, `streaming` with the text from `since` on, or `idle`. With
         *     `stream=1` the same objects follow as server-sent events until the turn is over.
         */
        get: {
            parameters: {
                query?: {
                    /** @description How much of the text the client holds, in UTF-16 code units. */
                    since?: number;
                    /** @description How much of the reasoning the client holds, in UTF-16 code units. */
                    reasoningSince?: number;
                    /** @description `1`: as server-sent events. */
                    stream?: string;
                };
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    threadId: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Generation"];
                        "text/event-stream": string;
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        /** Stops the reply that is being written. */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    threadId: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Stopping"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{threadId}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The messages of a thread, oldest first unless `order=desc`. */
        get: {
            parameters: {
                query?: {
                    order?: "asc" | "desc";
                    /** @description Continues a list. */
                    cursor?: string;
                    /** @description Rows per page, 1–200 (100). */
                    limit?: number;
                };
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    threadId: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MessagesPage"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        /** Sends a message; the reply is written detached from this request. */
        post: {
            parameters: {
                query?: never;
                header?: {
                    "Idempotency-Key"?: string;
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    threadId: components["schemas"]["ThreadId"];
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SendMessage"];
                };
            };
            responses: {
                202: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MessageAccepted"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                409: components["responses"]["Conflict"];
                413: components["responses"]["TooLarge"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/threads/{threadId}/messages/{messageId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One message. */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The organization to act in; needed when the key's person belongs to several. */
                    "X-Organization-Slug"?: string;
                };
                path: {
                    threadId: components["schemas"]["ThreadId"];
                    messageId: components["schemas"]["MessageId"];
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        "X-Tale-Api-Version": components["headers"]["ApiVersion"];
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Message"];
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                404: components["responses"]["NotFound"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The live stream of a tab: hints of the organization and the running turn of the open chat. */
        get: {
            parameters: {
                query: {
                    orgId: string;
                    threadId?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": string;
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/events/file": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Changes of the organization's configuration files, for whoever may open their settings: their names, not their
         *     content.
         */
        get: {
            parameters: {
                query: {
                    orgId: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        "X-Request-Id": components["headers"]["RequestId"];
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": string;
                    };
                };
                400: components["responses"]["BadRequest"];
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                429: components["responses"]["TooMany"];
                default: components["responses"]["Failed"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/ping": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Liveness: 200 as long as the process serves, while draining too. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Readiness for traffic: 503 from the moment the process drains. Outside stores do not count. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": string;
                    };
                };
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/status.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The state of the application, the knowledge database and the file store; always 200. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StatusReport"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description What the composer gets back. */
        AbandonedSend: {
            /** @description They can go with another message for an hour. */
            attachments: components["schemas"]["AttachmentStatus"][];
            content: string;
            /** @description Whether the chat is gone: it was made for this message and held nothing else. */
            threadDeleted: boolean;
        };
        /** @description A turn that was accepted. */
        Accepted: {
            messageId: components["schemas"]["MessageId"];
            model: string;
            providerSlug: string;
            threadId: components["schemas"]["ThreadId"];
            userMessageId: components["schemas"]["MessageId"];
        };
        /** @description The account. */
        Account: {
            /** @description Sign-in address. */
            email: string;
            /** @description Whether a password is set. */
            hasPassword: boolean;
            /**
             * Format: uuid
             * @description The person.
             */
            id: string;
            /** @description Display name. */
            name: string;
            passwordPolicy: components["schemas"]["PasswordPolicy"];
        };
        /** @description What there is of an address. */
        AccountLookUp: {
            /** @description Whether it has an account. */
            account: boolean;
            /** @description Whether that is a member already. */
            member: boolean;
        };
        /** @description A signed-in browser. */
        AccountSession: {
            /**
             * Format: int64
             * @description When it signed in, in epoch milliseconds.
             */
            createdAt: number;
            /** @description Whether it is this browser. */
            current: boolean;
            /**
             * Format: uuid
             * @description The session.
             */
            id: string;
            /**
             * Format: int64
             * @description When it was used last, to the minute, in epoch milliseconds.
             */
            lastUsedAt: number;
            /** @description The network it signed in from. */
            network: string;
            /** @description The browser's words about itself. */
            userAgent: string | null;
        };
        /** @description Every signed-in browser. */
        AccountSessions: {
            sessions: components["schemas"]["AccountSession"][];
        };
        /** @description A credential to add. */
        AddCredentialRequest: {
            apiKey?: string | null;
            authMethod: components["schemas"]["CredentialMethod"];
            enabled?: boolean | null;
            endpoint?: string | null;
            modelAllowlist?: string[];
            name: string;
            secretEnv?: string | null;
        };
        /** @description Someone to add. */
        AddMemberRequest: {
            /** @description The address; an account that exists is reused. */
            email: string;
            /** @description Whether a new account has to replace that password before anything else. */
            mustChangePassword?: boolean;
            /** @description Display name of a new account. */
            name?: string | null;
            /** @description Password of a new account; ignored when the account exists. */
            password?: string | null;
            /** @description Any role but owner. */
            role: components["schemas"]["Role"];
        };
        /** @description A passkey that an authenticator made; bytes in base64url. */
        AddPasskeyRequest: {
            /** @description `response.attestationObject`. */
            attestation: string;
            /** @description `response.clientDataJSON`. */
            clientData: string;
            /** @description What to call it, 1 to 64 characters. */
            name: string;
            /** @description `response.getTransports()`. */
            transports: string[];
        };
        /** @description A custom provider to add. */
        AddProviderRequest: {
            apiFormat: components["schemas"]["ApiFormat"];
            /** @description Without a key the endpoint is called without one. */
            apiKey?: string | null;
            baseUrl: string;
            displayName: string;
            /**
             * @description Fields added to the body of each request to the provider. A field of the request itself is
             *     refused with `EXTRA_BODY_KEY_FORBIDDEN`.
             */
            extraBody?: {
                [key: string]: unknown;
            };
            /** @description Empty = read from the endpoint. */
            models?: components["schemas"]["Model"][];
            /** @description Identifier: lower-case letters, digits and single hyphens. */
            name: string;
            /** @description A variable `TALE_PROVIDER_KEY_…` instead of a key. */
            secretEnv?: string | null;
            wireDialect?: components["schemas"]["Dialect"] | null;
        };
        /** @description A subscription to add. */
        AddSubscriptionRequest: {
            /** @description The vendor's id of the account of `token`. */
            accountId?: string | null;
            broker?: components["schemas"]["Broker"] | null;
            /** @description What signs in to the broker; kept encrypted, instead of a variable. */
            brokerSecret?: string | null;
            /** @description The models of the plan; empty = all. */
            modelAllowlist?: string[];
            name: string;
            /** @description The variable that the agent runtime reads `token` from; the usual one when left out. */
            targetEnvVar?: string | null;
            /** @description A token of the plan; kept encrypted, and never renewed. */
            token?: string | null;
        };
        /** @description Someone added. */
        AddedMember: {
            /** @description Whether the account is new. */
            created: boolean;
            /**
             * Format: uuid
             * @description The person.
             */
            id: string;
        };
        /** @description A new document: either `fileId` or `content`. */
        ApiCreateDocumentRequest: {
            /** @description Inline text, at most 32 MiB: readable, never indexed. */
            content?: string | null;
            /** @description Extension of inline text (`txt`). */
            extension?: string | null;
            /** @description The key holder's own unused upload. */
            fileId?: string | null;
            /** @description Media type of inline text (`text/plain`). */
            mimeType?: string | null;
            /** @description Required for inline text; else the file's name without its ending. */
            title?: string | null;
        };
        /** @description A document of the library. */
        ApiDocument: {
            /** @description Inline text; `null` for a stored file. */
            content: string | null;
            /** @description SHA-256 of the bytes in hexadecimal, once they were read. */
            contentHash: string | null;
            /** Format: int64 */
            createdAt: number;
            createdBy: components["schemas"]["Author"] | null;
            /** @description Lower-case, without the dot; may be empty. */
            extension: string;
            /** @description The file's own name. */
            fileName: string;
            /** Format: uuid */
            id: string;
            indexing: components["schemas"]["Indexing"];
            mimeType: string;
            /**
             * Format: int64
             * @description In bytes.
             */
            size: number;
            title: string;
            /** Format: int64 */
            updatedAt: number;
        };
        /** @description A page of documents, newest first. */
        ApiDocumentPage: {
            /** @description Empty on the last page. */
            continueCursor: string;
            isDone: boolean;
            page: components["schemas"]["ApiDocument"][];
        };
        /**
         * @description The wire format of an endpoint.
         * @enum {string}
         */
        ApiFormat: "openai" | "anthropic";
        /** @description A key, without its secret. */
        ApiKey: {
            /**
             * Format: int64
             * @description When it was made, in epoch milliseconds.
             */
            createdAt: number;
            /**
             * Format: int64
             * @description When it ends, in epoch milliseconds; `null` is never.
             */
            expiresAt: number | null;
            /** @description Its beginning and end. */
            fragment: string;
            /** @description The name of the member or the team; `null` for one's own keys and the organization's. */
            holder: string | null;
            /**
             * Format: uuid
             * @description The key.
             */
            id: string;
            /** @description To whom it belongs. */
            kind: components["schemas"]["ApiKeyKind"];
            /**
             * Format: int64
             * @description When it was used last, to the minute, in epoch milliseconds.
             */
            lastUsedAt: number | null;
            /** @description Who made it for others, while they have an account. */
            maker: string | null;
            /** @description Its name. */
            name: string;
            /** @description Whether the caller can replace it. */
            replaceable: boolean;
            /** @description The role that a key of a team or of the organization acts with. */
            role: string | null;
        };
        /**
         * Format: uuid
         * @description An API key.
         */
        ApiKeyId: string;
        /**
         * @description To whom a key belongs.
         * @enum {string}
         */
        ApiKeyKind: "personal" | "member" | "team" | "organization";
        /** @description A key that a rule can name. */
        ApiKeyName: {
            /** @description The member, the team or the organization that it belongs to. */
            holder: string;
            id: components["schemas"]["ApiKeyId"];
            name: string;
        };
        /** @description The keys that work in the organization, and those that its rules name beside them. */
        ApiKeyNames: {
            /** @description Named by rules, and without effect. */
            gone: components["schemas"]["GoneApiKey"][];
            keys: components["schemas"]["ApiKeyName"][];
        };
        /**
         * @description What became of a key: its time is over, its holder's seat is disabled, it was revoked, its holder left, nothing is
         *     stored of it any more, or it was never known here.
         * @enum {string}
         */
        ApiKeyStatus: "expired" | "disabled" | "revoked" | "formerMember" | "unavailable" | "unknown";
        /** @description The keys that the person sees. */
        ApiKeys: {
            keys: components["schemas"]["ApiKey"][];
        };
        /** @description What came of a retry. */
        ApiRetried: {
            /** @description Why nothing was done: `content-only`, `untracked-blob`, `unsupported` or `in-progress`. */
            reason?: string;
            /** @description `indexing` or `skipped`. */
            status: string;
        };
        /**
         * @description A role that a header can give.
         * @enum {string}
         */
        AssertableRole: "member" | "editor" | "developer" | "admin";
        /** @description A file on its way into a message. */
        AttachmentStatus: {
            /** @description Present when reading a failed file again may help. */
            canRetry?: boolean;
            error?: string;
            fileId: components["schemas"]["FileId"];
            mediaType: string;
            name: string;
            /** @description Whether it is a recording, whose text is a transcript. */
            recording: boolean;
            /** Format: int64 */
            sizeBytes: number;
            /** @enum {string} */
            state: "processing" | "ready" | "failed";
        };
        /** @description A stretch of an attachment's text. */
        AttachmentText: {
            /**
             * Format: int64
             * @description Where the next stretch begins; absent at the end.
             */
            nextOffset?: number;
            text: string;
            /**
             * Format: int64
             * @description In Unicode scalar values.
             */
            totalLength: number;
        };
        /** @description How many entries ended how. */
        AuditActivity: {
            /** Format: int64 */
            days: number;
            /** Format: int64 */
            denied: number;
            /** Format: int64 */
            failure: number;
            /** Format: int64 */
            success: number;
            /** Format: int64 */
            total: number;
        };
        /** @description A place at which the chain does not hold. */
        AuditBreak: {
            /** Format: uuid */
            entryId?: string;
            expectedHash?: string;
            /** @description `hash`, `link`, `missing`, `order`, `foreign`, `truncated` or `head`. */
            kind: string;
            /** @description What was seen, in English. */
            message: string;
            /** Format: int64 */
            sequence?: number;
            storedHash?: string;
            /**
             * Format: int64
             * @description In milliseconds since 1970.
             */
            timestamp?: number;
        };
        /** @description A place in the chain. */
        AuditHead: {
            /** @description In hexadecimal. */
            hash: string;
            /**
             * Format: int64
             * @description 0 is the place before the first entry.
             */
            sequence: number;
        };
        /** @description A break that the platform found by itself. */
        AuditIncident: {
            /** @description As the kind of a break. */
            kind: string;
            /** Format: int64 */
            sequence?: number;
        };
        /** @description An entry of the audit log. What it does not have is left out. */
        AuditLogEntry: {
            /** @description What was done: a stable name such as `document.delete`. */
            action: string;
            /** @description The address of the account as it was then, or the one that a failed sign-in named. */
            actorEmail?: string;
            /** @description The keyed hash of that address, in its place. */
            actorEmailHash?: string;
            /** Format: uuid */
            actorId?: string;
            /** @description The network of a failed sign-in. */
            actorIp?: string;
            /** @description The keyed hash of that network, in its place. */
            actorIpHash?: string;
            actorRole?: string;
            /** @description `user`, `api` or `system`. */
            actorType: string;
            /** Format: uuid */
            apiKeyId?: string;
            category: string;
            /** @description Everything that was recorded about it. */
            details: Record<string, never>;
            errorMessage?: string;
            /** Format: uuid */
            id: string;
            /** @description Its hash in the chain, in hexadecimal. */
            integrityHash?: string;
            resourceId?: string;
            resourceName?: string;
            resourceType: string;
            /**
             * Format: int64
             * @description Its place in the chain; absent until it is sealed.
             */
            sequence?: number;
            /** @description `success`, `failure` or `denied`. */
            status: string;
            /**
             * Format: int64
             * @description When, in milliseconds since 1970.
             */
            timestamp: number;
        };
        /** @description A page of the audit log, the newest entry first. */
        AuditPage: {
            /** @description Empty on the last page. */
            continueCursor: string;
            isDone: boolean;
            page: components["schemas"]["AuditLogEntry"][];
        };
        /** @description What the platform's own daily check of the chain found. */
        AuditStatus: {
            /**
             * Format: int64
             * @description When, in milliseconds since 1970; absent before the first check.
             */
            checkedAt?: number;
            /** @description The first place that did not. */
            incident?: components["schemas"]["AuditIncident"];
            /**
             * Format: int64
             * @description The last place that held.
             */
            sequence?: number;
        };
        /** @description What a check found. */
        AuditVerification: {
            /** @description The first place that does not hold. */
            break?: components["schemas"]["AuditBreak"];
            /**
             * Format: int64
             * @description Entries that were checked.
             */
            checked: number;
            /**
             * Format: int64
             * @description The place after which the check began.
             */
            fromSequence: number;
            /**
             * Format: int64
             * @description The end of the chain.
             */
            headSequence: number;
            /** @description Whether everything that was checked holds. */
            intact: boolean;
            /**
             * Format: int64
             * @description Those of them with personal data that was erased; they verify in full.
             */
            scrubbed: number;
            /** @description The last place that holds. Kept elsewhere, it proves later that the chain was not written anew. */
            to: components["schemas"]["AuditHead"];
            /** @description Whether there is more to check: go on after `to.sequence`. */
            truncated: boolean;
            /**
             * Format: int64
             * @description Entries that wait to be sealed, which takes about a second.
             */
            unsealed: number;
        };
        /** @description A person who made something. */
        Author: {
            /**
             * Format: uuid
             * @description The person.
             */
            id: string;
            /** @description Display name. */
            name: string;
        };
        /** @description Backup codes, told once. */
        BackupCodes: {
            /** @description The codes. */
            codes: string[];
            /** @description The name of a file for them. */
            fileName: string;
        };
        /** @description What the organization set. */
        Branding: {
            /** @description `#` and six lower-case hexadecimal digits; `null` is Tale's own. */
            accentColor: string | null;
            /** @description The images that were uploaded. */
            images: components["schemas"]["BrandingImage"][];
            /**
             * Format: int64
             * @description One more with every change; 0 when nothing was ever set.
             */
            version: number;
        };
        /** @description A change of the branding. */
        BrandingForm: {
            /** @description `#` and six hexadecimal digits; `null` is Tale's own. */
            accentColor: string | null;
            /**
             * Format: int64
             * @description The version that the change is based on.
             */
            version: number;
        };
        /** @description An image of the organization. */
        BrandingImage: {
            /**
             * Format: int32
             * @description Rows of pixels; `null` for SVG and ICO.
             */
            height: number | null;
            /** @description What it is, judged by its bytes. */
            mediaType: string;
            /**
             * Format: int32
             * @description Bytes.
             */
            size: number;
            /** @description Which one. */
            slot: components["schemas"]["ImageSlot"];
            /** @description Where it is, below the base path. Changes with its content. */
            url: string;
            /**
             * Format: int32
             * @description Pixels in a row; `null` for SVG and ICO.
             */
            width: number | null;
        };
        /** @description A service that hands out the tokens of a pool of accounts. */
        Broker: {
            auth?: components["schemas"]["BrokerAuth"];
            endpoint: string;
            /**
             * Format: int64
             * @description 0 to 3,600,000; 300,000 when left out.
             */
            expirySkewMs?: number;
            httpMethod?: components["schemas"]["BrokerMethod"];
            /** @description 1,024 to 4,194,304; 262,144 when left out. */
            maxResponseBytes?: number;
            responseMapping: components["schemas"]["BrokerMapping"];
            selection?: components["schemas"]["BrokerSelection"];
            /** @description The variable that the agent runtime reads the token from. */
            targetEnvVar: string;
            /**
             * Format: int64
             * @description 100 to 60,000; 10,000 when left out.
             */
            timeoutMs?: number;
        };
        /** @description How Tale signs in to a broker. The secret itself is never shown. */
        BrokerAuth: {
            /** @description For the method `header`. */
            headerName?: string;
            method?: components["schemas"]["BrokerAuthMethod"];
            /** @description A variable `TALE_TOKEN_SOURCE_…` that holds the secret. */
            secretEnv?: string;
        };
        /**
         * @description How Tale signs in to a broker.
         * @enum {string}
         */
        BrokerAuthMethod: "none" | "bearer" | "header";
        /** @description Where the accounts stand in a broker's answer. */
        BrokerMapping: {
            activeValue?: string;
            /** @description An ISO time, or seconds or milliseconds since 1970. */
            expiresField?: string;
            /** @description Together with `activeValue`: only accounts with that status are taken. */
            statusField?: string;
            tokenField: string;
            /** @description The list, such as `$.tokens`. */
            tokensPath: string;
        };
        /**
         * @description How a broker is asked.
         * @enum {string}
         */
        BrokerMethod: "GET" | "POST";
        /**
         * @description Which account of a pool is taken.
         * @enum {string}
         */
        BrokerSelection: "random" | "first" | "round-robin";
        /** @description What asking a broker gave. */
        BrokerTest: {
            /** @description The account that would be used now: `id:` and the broker's id, or `token:` and a digest. */
            account?: string;
            /**
             * @description Why the others cannot, with how many: `noToken`, `status`, `expired`, `otherProvider`, `noAccountId`,
             *     `unavailable`, `cooling`, `twice`.
             */
            excluded: {
                [key: string]: number;
            };
            /** @description Accounts in the answer. */
            items: number;
            /** @description Those that can be used now. */
            usable: number;
        };
        /** @description A request that the browser sends to the bucket by itself, with one byte of text. */
        BrowserTest: {
            /** @description Headers to send exactly as given. */
            headers: {
                [key: string]: string;
            };
            /**
             * Format: uuid
             * @description For the end of the test.
             */
            id: string;
            /** @description `PUT`. */
            method: string;
            url: string;
        };
        /** @description Whether something stops or nears its end. What describes the reached limit is absent while none is. */
        BudgetState: {
            /** @description What the reached limit counts: tokens before cost before requests, and of those the one that lasts longest. */
            code?: components["schemas"]["LimitKind"];
            /** @description Whether a limit is reached. */
            exceeded: boolean;
            /** Format: double */
            limit?: number;
            period?: components["schemas"]["LimitPeriod"];
            /** @description Why, as a sentence. */
            reason?: string;
            /** Format: int64 */
            resetsAt?: number;
            scope?: components["schemas"]["LimitScope"];
            /** Format: double */
            used?: number;
            /** @description Limits whose warning threshold is passed. */
            warnings: components["schemas"]["LimitView"][];
        };
        /** @description The caller's limits. */
        BudgetStatus: {
            limits: components["schemas"]["LimitView"][];
            status: components["schemas"]["BudgetState"];
        };
        /** @description What an act on all chats reached. */
        BulkResult: {
            /** Format: int64 */
            changed: number;
            /** Format: int64 */
            skipped: number;
        };
        /** @description What a model can do. */
        CallableCapabilities: {
            reasoning: boolean;
            tools: boolean;
            vision: boolean;
        };
        /** @description A model that can be called. */
        CallableModel: {
            capabilities: components["schemas"]["CallableCapabilities"];
            /**
             * Format: int32
             * @description In tokens.
             */
            contextWindow: number;
            displayName: string;
            id: string;
            /**
             * Format: int32
             * @description In tokens, when known.
             */
            maxOutputTokens?: number;
            /** @description US dollars per million tokens, where known. */
            pricing?: components["schemas"]["ModelPricing"];
            providerSlug: string;
            /** @description `demo`, `fast`, `balanced`, `capable`; more may come. */
            tags: string[];
        };
        /** @description The models that can be called. */
        CallableModels: {
            /** @description The agent runtimes that Tale knows. */
            harnesses: components["schemas"]["Harness"][];
            models: components["schemas"]["CallableModel"][];
        };
        /** @description What became of reading one provider's list. */
        CatalogResult: {
            /** @description How many models the list holds; absent when it could not be read. */
            count?: number;
            displayName: string;
            /** @description Why the list could not be read; the one before it stays. */
            error?: string;
            slug: string;
        };
        /** @description What changes; absent fields stay. */
        ChangeCredentialRequest: {
            apiKey?: string | null;
            enabled?: boolean | null;
            /** @description An empty text removes it. */
            endpoint?: string | null;
            isDefault?: boolean | null;
            modelAllowlist?: string[] | null;
            name?: string | null;
            /**
             * Format: int64
             * @description The version that the change started from.
             */
            version: number;
        };
        /** @description Another password. */
        ChangePasswordRequest: {
            /** @description The password so far; absent for an account that has none yet. */
            currentPassword?: string;
            /** @description The new one. */
            newPassword: string;
        };
        /** @description What changes; absent fields stay. */
        ChangeProviderRequest: {
            apiKey?: string | null;
            baseUrl?: string | null;
            displayName?: string | null;
            /** @description Takes the place of the present fields. */
            extraBody?: {
                [key: string]: unknown;
            } | null;
            models?: components["schemas"]["Model"][] | null;
            /**
             * Format: int64
             * @description The version that the change started from.
             */
            version: number;
        };
        /** @description What changes; absent fields stay. */
        ChangeSubscriptionRequest: {
            /** @description Of a pasted token, together with `targetEnvVar`. */
            accountId?: string | null;
            broker?: components["schemas"]["Broker"] | null;
            brokerSecret?: string | null;
            enabled?: boolean | null;
            modelAllowlist?: string[] | null;
            name?: string | null;
            /** @description Of a pasted token, together with `accountId`. */
            targetEnvVar?: string | null;
            /** @description Takes the place of the pasted token. */
            token?: string | null;
            /**
             * Format: int64
             * @description The version that the change started from.
             */
            version: number;
        };
        /** @description What changes; fields left out stay. */
        ChangeThreadRequest: {
            archived?: boolean | null;
            pinned?: boolean | null;
            title?: string | null;
            unread?: boolean | null;
        };
        /** @description A model that may be picked. */
        ChatModel: {
            capabilities: components["schemas"]["ChatModelCapabilities"];
            /** Format: int64 */
            contextWindow: number;
            /** @description Whether it is the demo, which quotes documents and is no language model. */
            demo: boolean;
            displayName: string;
            id: string;
            /** Format: int32 */
            maxOutputTokens: number | null;
            providerName: string;
            providerSlug: string;
        };
        /** @description What a model can do. */
        ChatModelCapabilities: {
            reasoning: boolean;
            tools: boolean;
            vision: boolean;
        };
        /** @description A picked model. */
        ChatPick: {
            model: string;
            providerSlug: string;
        };
        /** @description A pick; `auto` lets Tale choose per message. */
        ChatPickRequest: {
            model: string;
            providerSlug?: string | null;
        };
        /** @description A subscription that no chat uses: it acts in tasks and automations alone. */
        ChatSubscription: {
            name: string;
            providerName: string;
        };
        /** @description What a credential's endpoint lists. */
        CheckedModels: {
            count: number;
            /** @description Models of the definition that it does not list, the first twenty. */
            missing: string[];
        };
        /**
         * Format: uuid
         * @description A passage of an indexed file.
         */
        ChunkId: string;
        /** @description An entry of a directory. */
        CodeFile: {
            kind: components["schemas"]["CodeFileKind"];
            /**
             * Format: int64
             * @description Epoch milliseconds.
             */
            modifiedAt: number;
            name: string;
            /**
             * Format: int64
             * @description Bytes of a file, else 0.
             */
            size: number;
        };
        /**
         * @description What an entry of a directory is.
         * @enum {string}
         */
        CodeFileKind: "file" | "directory" | "symlink" | "other";
        /** @description A directory of one's sandbox. */
        CodeFiles: {
            entries: components["schemas"]["CodeFile"][];
            /** @description Whether there are more than are listed. */
            truncated: boolean;
        };
        /**
         * @description What a program is written in.
         * @enum {string}
         */
        CodeLanguage: "python" | "shell";
        /** @description What one program may use at most. */
        CodeLimits: {
            /** @description Bytes of the program. */
            codeBytes: number;
            /**
             * Format: int64
             * @description Ended runs that are kept.
             */
            kept: number;
            /**
             * Format: int64
             * @description Runs of one person that wait or go on at the same time.
             */
            open: number;
            /** @description Bytes that it may print; it is ended at that point. */
            outputBytes: number;
            /**
             * Format: int64
             * @description Seconds that it may run.
             */
            seconds: number;
        };
        /** @description A code. */
        CodeRequest: {
            /** @description As it was typed; blanks do not matter. */
            code: string;
        };
        /** @description A program that was run. */
        CodeRun: {
            code: string;
            /**
             * Format: int64
             * @description How long the program ran, in milliseconds.
             */
            durationMs?: number;
            /**
             * Format: int64
             * @description Epoch milliseconds.
             */
            endedAt?: number;
            /**
             * Format: int32
             * @description 128 + the signal where a signal ended it.
             */
            exitCode?: number;
            /**
             * Format: int32
             * @description Place in the host's line, while it waits for that.
             */
            hostPosition?: number;
            id: components["schemas"]["CodeRunId"];
            language: components["schemas"]["CodeLanguage"];
            /** @description What the sandbox said about it, in English. */
            message?: string;
            /**
             * Format: int64
             * @description How many bytes it printed.
             */
            outputBytes: number;
            /** @description Whether all that it printed is there, once it is over. */
            outputComplete?: boolean;
            /**
             * Format: int64
             * @description Place in the organization's line, from 1, while it waits.
             */
            position?: number;
            /**
             * Format: int64
             * @description Epoch milliseconds.
             */
            queuedAt: number;
            /**
             * @description Why it waits (`session_quota`, `host_memory`, `host_cpu`, `host_disk`, `runtime_image`, `unreachable`, …; without
             *     one it waits for a place of the organization) or ended (`TIME_LIMIT`, `OUTPUT_LIMIT`, `OOM_KILLED`,
             *     `SANDBOX_LOST`, …; without one by its own exit code).
             */
            reason?: string;
            /**
             * Format: int64
             * @description Epoch milliseconds.
             */
            startedAt?: number;
            state: components["schemas"]["CodeRunState"];
            /** @description Whether somebody asked for its end. */
            stopping: boolean;
        };
        /**
         * Format: uuid
         * @description A program that a person ran in a sandbox.
         */
        CodeRunId: string;
        /** @description One's own runs, the newest first. */
        CodeRunPage: {
            /** @description For the next page; `null` at the end. */
            cursor: string | null;
            limits: components["schemas"]["CodeLimits"];
            page: components["schemas"]["CodeRun"][];
        };
        /**
         * @description Where a run stands.
         * @enum {string}
         */
        CodeRunState: "waiting" | "starting" | "running" | "completed" | "failed" | "cancelled";
        /** @description A line of the register. */
        CompetenceGrant: {
            /** @description A capability of the platform (`tale:…`), or a qualification in the organization's own words. */
            competence: string;
            /** @description The person's address. */
            email: string;
            /** @description What shows it; may be empty. */
            evidence: string;
            /**
             * Format: int64
             * @description When it ends, in epoch milliseconds; `null` is never.
             */
            expiresAt: number | null;
            /**
             * Format: int64
             * @description In epoch milliseconds.
             */
            grantedAt: number;
            /** @description The name of who granted it; `null` once their account is gone. */
            grantedBy: string | null;
            /** @description Whether the person is a member now. */
            member: boolean;
            /** @description The person's name. */
            name: string;
            /**
             * Format: uuid
             * @description Names it when it is revoked.
             */
            recordId: string;
            /** @description Why: `revoked`, `replaced` (by a new grant after it had expired) or `memberRemoved`. */
            revokeReason?: string;
            /**
             * Format: int64
             * @description When it was revoked, in epoch milliseconds.
             */
            revokedAt?: number;
            /** @description The name of who revoked it, while there is one. */
            revokedBy?: string;
            status: components["schemas"]["CompetenceStatus"];
            /** Format: uuid */
            userId: string;
        };
        /**
         * @description What a grant is now.
         * @enum {string}
         */
        CompetenceStatus: "active" | "expired" | "revoked";
        /** @description The register. */
        Competences: {
            /** @description Every grant that was not revoked and the latest 1,000 that were, the newest first. */
            grants: components["schemas"]["CompetenceGrant"][];
        };
        /** @description One component of the report. */
        Component: {
            /** @description `application`, `knowledge` or `files`. */
            id: string;
            /** @description `operational` or `outage`. */
            status: string;
        };
        /** @description What the composer needs. */
        Composer: {
            canManageProviders: boolean;
            /** Format: int64 */
            documentsCount: number;
            models: components["schemas"]["ChatModel"][];
            /** @description Whether there are models and the policy `model_access` leaves the person none of them. */
            modelsDenied: boolean;
            pick: components["schemas"]["ChatPick"] | null;
            /** @enum {string} */
            searchMode: "keywords" | "hybrid";
            /** @description Subscriptions of the organization, which chats do not use. */
            subscriptions: components["schemas"]["ChatSubscription"][];
            /** @enum {string} */
            transcription: "ready" | "missing" | "pin-unavailable";
        };
        /** @description The password once more. */
        ConfirmRequest: {
            /** @description The person's own password. */
            password: string;
        };
        /** @description A key to make. */
        CreateApiKeyRequest: {
            /**
             * Format: int64
             * @description When the key ends, in epoch milliseconds: from now on, and at most a year ahead.
             */
            expiresAt?: number;
            /**
             * Format: int64
             * @description 1 to 366 days, or `null` for a key that never ends. Needed unless `expiresAt` is given.
             */
            expiresInDays?: number | null;
            /** @description To whom it belongs; absent = to whoever makes it. */
            kind?: components["schemas"]["ApiKeyKind"];
            /** @description 1 to 100 characters. */
            name: string;
            /** @description The role that a key of the kind `team` (up to `developer`) or `organization` (up to `admin`) acts with. */
            role?: string | null;
            /**
             * Format: uuid
             * @description The team of a key of the kind `team`.
             */
            teamId?: string | null;
            /**
             * Format: uuid
             * @description The member of a key of the kind `member`.
             */
            userId?: string | null;
        };
        /** @description An upload to register. */
        CreateDocumentRequest: {
            /** @description The caller's own upload. */
            fileId: string;
            /** @description The file's name without its ending when absent. */
            title?: string | null;
        };
        /** @description A chat to create. */
        CreateThreadRequest: {
            title?: string | null;
        };
        /** @description A key to make. */
        CreateTrustedKey: {
            /** @description 1 to 64 characters. */
            name: string;
            /** @description Whether it takes signed assertions only; `false` by default. */
            signedOnly?: boolean;
        };
        /** @description A file to upload. */
        CreateUploadRequest: {
            /** @description Its media type; may be empty. */
            contentType?: string;
            /** @description Its name. */
            fileName: string;
            purpose?: components["schemas"]["UploadPurpose"];
            /**
             * Format: int64
             * @description Its size in bytes, at most 104,857,600.
             */
            size: number;
        };
        /** @description A new key. The secret is shown only now. */
        CreatedApiKey: {
            /**
             * Format: int64
             * @description When it ends, in epoch milliseconds; `null` is never.
             */
            expiresAt: number | null;
            /**
             * Format: uuid
             * @description The key's id.
             */
            id: string;
            /** @description The secret. */
            key: string;
            /** @description Its name. */
            name: string;
        };
        /** @description A key just made. */
        CreatedTrustedKey: {
            /** Format: uuid */
            id: string;
            /** @description The whole key. Nothing shows it again. */
            key: string;
            /** @description What its assertions are signed with. */
            signingSecret: string;
            /** @description Its first characters. */
            tokenPrefix: string;
        };
        /** @description An access to a provider, without its secret. */
        Credential: {
            authMethod: components["schemas"]["CredentialMethod"];
            enabled: boolean;
            endpoint?: string;
            /** Format: uuid */
            id: string;
            /** @description Used when a caller names none. */
            isDefault: boolean;
            /** @description First four and last two characters of the key. */
            masked?: string;
            /** @description Empty = every model. */
            modelAllowlist: string[];
            /** @description Unique in the organization. */
            name: string;
            /** @description The variable of an `env` credential. */
            secretEnv?: string;
            /** @description That variable, while it is not set in the process that answers: calls fail until it is. */
            unsetVariable?: string;
            /**
             * Format: int64
             * @description In epoch milliseconds.
             */
            updatedAt: number;
            /** Format: int64 */
            version: number;
        };
        /** @description A passkey that a browser may use, or must not make again. */
        CredentialDescriptor: {
            /** @description Its id in base64url. */
            id: string;
            /** @description The ways to it. */
            transports: string[];
        };
        /**
         * @description Where a key comes from.
         * @enum {string}
         */
        CredentialMethod: "api-key" | "env";
        /** @description What the person wants the model to know or do in this organization. */
        CustomInstructions: {
            /** @description Whether they are used; `null` follows the organization. */
            enabled: boolean | null;
            /** @description At most 3,200 characters, kept while they are off. */
            text: string;
        };
        /** @description A message that waits for its attachments. Times are epoch milliseconds. */
        DeferredSend: {
            attachments: components["schemas"]["AttachmentStatus"][];
            content: string;
            /** Format: int64 */
            createdAt: number;
            id: components["schemas"]["DeferredSendId"];
            /** @description Place in the queue of the chat, from 1. */
            position: number;
            refusal?: components["schemas"]["Refusal"];
            /** @enum {string} */
            state: "waiting" | "held" | "refused";
            threadId: components["schemas"]["ThreadId"];
            /** @description The attachments that are not ready. */
            waitingFor: components["schemas"]["FileId"][];
        };
        /**
         * Format: uuid
         * @description A message that waits for its attachments.
         */
        DeferredSendId: string;
        /** @description The messages of a chat that wait. */
        DeferredSends: {
            sends: components["schemas"]["DeferredSend"][];
        };
        /** @description The name of an organization, to confirm what cannot be undone. */
        DeleteOrganizationRequest: {
            /** @description Exactly as it is written. */
            name: string;
        };
        /**
         * @description A dialect of the OpenAI format.
         * @enum {string}
         */
        Dialect: "openai-modern";
        /** @description An endpoint whose models are wanted. */
        DiscoverModelsRequest: {
            apiFormat: components["schemas"]["ApiFormat"];
            apiKey?: string | null;
            baseUrl: string;
        };
        /** @description Models found. */
        DiscoveredModels: {
            models: components["schemas"]["Model"][];
        };
        /** @description A document of the library. */
        Document: {
            /** @description SHA-256 of the bytes in hexadecimal, once they were read. */
            contentHash: string | null;
            /** Format: int64 */
            createdAt: number;
            createdBy: components["schemas"]["Author"] | null;
            /** @description Lower-case, without the dot; may be empty. */
            extension: string;
            /** @description The file's own name. */
            fileName: string;
            /** Format: uuid */
            id: string;
            indexing: components["schemas"]["Indexing"];
            mimeType: string;
            /**
             * Format: int64
             * @description In bytes.
             */
            size: number;
            title: string;
            /** Format: int64 */
            updatedAt: number;
        };
        /**
         * Format: uuid
         * @description A library document.
         */
        DocumentId: string;
        /** @description A page of documents, in the order that was asked for. */
        DocumentPage: {
            /** @description Empty on the last page. */
            continueCursor: string;
            isDone: boolean;
            page: components["schemas"]["Document"][];
            searchMode: components["schemas"]["SearchMode"];
            /**
             * Format: int64
             * @description How many match on all pages.
             */
            total: number;
        };
        /** @description Who may show the organization in a frame. */
        Embedding: {
            /** @description At most ten origins such as `https://portal.example.org`; none forbids it. */
            origins: string[];
        };
        /** @description An embedding model. */
        EmbeddingChoice: {
            /**
             * Format: int32
             * @description Width of its vectors.
             */
            dimensions: number;
            model: string;
            providerSlug: string;
        };
        /** @description How many documents are embedded anew. */
        EmbeddingChosen: {
            /** Format: int64 */
            requeued: number;
        };
        /** @description How far the organization's documents are embedded. */
        EmbeddingCorpus: {
            /** Format: int64 */
            documents: number;
            /** Format: int64 */
            embedded: number;
            /** Format: int64 */
            waiting: number;
        };
        /** @description A known embedding model. */
        EmbeddingModelView: {
            /** Format: int32 */
            dimensions?: number;
            id: string;
        };
        /** @description A provider that can make vectors. */
        EmbeddingProvider: {
            displayName: string;
            /** @description Its known embedding models; others may be typed where the provider allows it. */
            models: components["schemas"]["EmbeddingModelView"][];
            providerSlug: string;
        };
        /** @description The embedding model, what could be chosen, and the state of the documents. */
        EmbeddingSettings: {
            candidates: components["schemas"]["EmbeddingProvider"][];
            corpus: components["schemas"]["EmbeddingCorpus"];
            embedding: components["schemas"]["EmbeddingChoice"] | null;
        };
        /** @description Every refusal and fault. Branch on `code`; the sentence is for people. */
        Error: {
            /**
             * @description Stable; the list only grows.
             * @enum {string}
             */
            code: "INVALID_BODY" | "BODY_CHUNK_MALFORMED" | "INVALID_QUERY" | "INVALID_LIMIT" | "INVALID_CURSOR" | "INVALID_HEADER" | "INVALID_URL" | "ORG_SLUG_REQUIRED" | "ORG_NAME_RESERVED" | "PASSWORD_POLICY" | "CREDENTIAL_ENDPOINT_INVALID" | "CREDENTIAL_SECRET_INVALID" | "PRIVATE_HOST_BLOCKED" | "sso_sp_key_required" | "EXTRA_BODY_KEY_FORBIDDEN" | "FILE_SIZE_INVALID" | "FILE_TOO_LARGE" | "UNSUPPORTED_FILE_TYPE" | "IMAGE_SVG_ACTIVE_CONTENT" | "UPLOAD_POLICY_REJECTED" | "USER_NOT_ORG_MEMBER" | "EMBEDDING_PROVIDER_UNSUPPORTED" | "CHAT_MODEL_UNKNOWN" | "CHAT_MODEL_AMBIGUOUS" | "CHAT_PROVIDER_UNKNOWN" | "MODEL_API_VISION_UNSUPPORTED" | "MODEL_API_TOOLS_UNSUPPORTED" | "MODEL_API_VENDOR_TOOL_UNSUPPORTED" | "CHAT_MODEL_NOT_ON_PROVIDER" | "CHAT_MODEL_NO_VISION" | "TOO_MANY_ATTACHMENTS" | "TWO_FACTOR_CODE_INVALID" | "PASSKEY_INVALID" | "COMPETENCE_CAPABILITY_UNKNOWN" | "RETENTION_BELOW_FLOOR" | "RETENTION_EXCEEDS_CEILING" | "UNAUTHORIZED" | "INVALID_CREDENTIALS" | "TWO_FACTOR_NOT_PENDING" | "PASSKEY_REFUSED" | "FORBIDDEN" | "TWO_FACTOR_REQUIRED" | "PASSWORD_CHANGE_REQUIRED" | "SESSION_NOT_FRESH" | "ORG_FORBIDDEN" | "MODEL_API_DISABLED" | "MODEL_API_FORBIDDEN" | "MODEL_API_MODEL_FORBIDDEN" | "ROLE_FORBIDDEN" | "RBAC_FORBIDDEN" | "ORIGIN_FORBIDDEN" | "SIGN_UP_DISABLED" | "SETUP_TOKEN_REQUIRED" | "ORGANIZATION_CREATION_FORBIDDEN" | "API_KEY_CREATE_FORBIDDEN" | "CHAT_MODEL_FORBIDDEN" | "ATTACHMENT_NOT_OWNED" | "MEMBER_ROLE_UPDATE_FORBIDDEN" | "MEMBER_REMOVE_FORBIDDEN" | "MEMBER_OWNER_ROLE_ASSIGN_FORBIDDEN" | "MEMBER_ACCOUNT_SHARED" | "MEMBER_SELF_ROLE_FORBIDDEN" | "MEMBER_SELF_REMOVAL_FORBIDDEN" | "MEMBER_OWNER_REMOVAL_FORBIDDEN" | "TEAM_FORBIDDEN" | "API_KEY_SCOPE_FORBIDDEN" | "COMPETENCE_FORBIDDEN" | "NOT_FOUND" | "MODEL_API_MODEL_UNKNOWN" | "ORG_SLUG_INVALID" | "MEMBER_NOT_FOUND" | "TEAM_NOT_FOUND" | "API_KEY_NOT_FOUND" | "SESSION_NOT_FOUND" | "PASSKEY_NOT_FOUND" | "TRUSTED_KEY_NOT_FOUND" | "SSO_NOT_CONFIGURED" | "PROVIDER_UNKNOWN" | "CREDENTIAL_NOT_FOUND" | "DOCUMENT_NOT_FOUND" | "FILE_NOT_FOUND" | "BLOB_NOT_FOUND" | "POLICY_UNKNOWN" | "PASSAGE_NOT_FOUND" | "THREAD_NOT_FOUND" | "MESSAGE_NOT_FOUND" | "SHARE_NOT_FOUND" | "CHAT_TURN_NOT_RUNNING" | "DEFERRED_SEND_NOT_FOUND" | "SANDBOX_NOT_CONFIGURED" | "CODE_RUN_NOT_FOUND" | "COMPETENCE_NOT_FOUND" | "METHOD_NOT_ALLOWED" | "REQUEST_TIMEOUT" | "SETUP_ALREADY_DONE" | "EMAIL_TAKEN" | "ORG_NAME_TAKEN" | "ALREADY_MEMBER" | "TEAM_NAME_TAKEN" | "TEAM_LAST_MEMBER" | "TEAM_LIMIT" | "TEAM_MANAGED" | "PASSWORD_NOT_SET" | "PASSWORD_ALREADY_SET" | "SSO_LAST_WAY_IN" | "TOTP_ALREADY_ENABLED" | "TOTP_NOT_ENABLED" | "PASSKEY_ALREADY_REGISTERED" | "PASSKEY_LIMIT" | "PASSKEY_UNAVAILABLE" | "TRUSTED_KEY_LIMIT" | "API_KEY_LIMIT" | "API_KEY_REPLACED" | "COMPETENCE_ALREADY_GRANTED" | "sso_config_unreadable" | "FRAME_ORIGIN_LIMIT" | "MEMBER_OWNER_ROLE_IMMUTABLE" | "MEMBER_CREATOR_ROLE_IMMUTABLE" | "MEMBER_LAST_ADMIN" | "PROVIDER_NAME_TAKEN" | "PROVIDER_VERSION_CONFLICT" | "PROVIDER_IN_USE" | "CREDENTIAL_NAME_TAKEN" | "CREDENTIAL_VERSION_CONFLICT" | "CREDENTIAL_IN_USE" | "UPLOAD_SCOPE_CONFLICT" | "DOCUMENT_STALE" | "EMBEDDING_NOT_CONFIGURED" | "EMBEDDING_CREDIT_EXHAUSTED" | "EMBEDDING_CREDENTIAL_REJECTED" | "EMBEDDING_WIDTH_CONFLICT" | "NO_TRANSCRIPTION_MODEL" | "TRANSCRIPTION_MODEL_UNAVAILABLE" | "CHAT_TURN_IN_PROGRESS" | "ATTACHMENT_NOT_READY" | "QUEUE_FULL" | "CHAT_THREAD_ARCHIVED" | "CHAT_NOTHING_TO_SHARE" | "CHAT_THREAD_NOT_DIRECT" | "OBJECT_STORE_NOT_CONNECTED" | "OBJECT_STORE_SAME_BUCKET" | "OBJECT_STORE_CHECK_FAILED" | "OBJECT_STORE_MOVE_RUNNING" | "CONFIG_VERSION_CONFLICT" | "KNOWLEDGE_SAME_DATABASE" | "KNOWLEDGE_CHECK_FAILED" | "SANDBOX_ASLEEP" | "SANDBOX_CAPACITY_EXCEEDED" | "IDEMPOTENCY_KEY_REUSED" | "PRECONDITION_FAILED" | "BODY_TOO_LARGE" | "URI_TOO_LONG" | "RATE_LIMITED" | "BUDGET_EXCEEDED" | "MODEL_API_CONCURRENCY_EXCEEDED" | "SIGN_IN_LOCKED" | "INTERNAL_ERROR" | "PROVIDER_UPSTREAM_ERROR" | "MODEL_API_UPSTREAM_ERROR" | "MODEL_API_UNAVAILABLE" | "EMBEDDING_UPSTREAM_ERROR" | "KNOWLEDGE_UNAVAILABLE" | "KNOWLEDGE_MISCONFIGURED" | "DATABASE_UNAVAILABLE" | "OBJECT_STORE_UNAVAILABLE" | "OBJECT_STORE_MISCONFIGURED" | "POLICY_UNREADABLE" | "CONFIG_NOT_WRITABLE" | "OBJECT_STORE_UNCONFIGURED" | "CREDENTIAL_ENV_MISSING" | "SUBSCRIPTION_EXHAUSTED" | "SANDBOX_UNAVAILABLE" | "BUSY" | "DRAINING";
            /** @description Details for some codes, such as `issues`: a list of `{path, message}`. */
            data?: Record<string, never>;
            /** @description What is wrong and what to do, in English. */
            error: string;
            /** @description The request, for the people who read the log; with 413, 414, 429 and 5xx. */
            requestId?: string;
        };
        /** @description The second factors of the person. */
        Factors: {
            /**
             * Format: int32
             * @description How many backup codes are left.
             */
            backupCodesLeft: number;
            /** @description Whether the account has a password, which an authenticator app needs. */
            hasPassword: boolean;
            /** @description The passkeys, the oldest first. */
            passkeys: components["schemas"]["Passkey"][];
            /** @description Whether passkeys can be made on this page. */
            passkeysHere: boolean;
            /** @description Whether adding a passkey asks for the password. */
            passwordNeeded: boolean;
            /** @description Whether removing a passkey is refused until the person has shown once more that it is them. */
            proofNeeded: boolean;
            /** @description Whether an authenticator app is on. */
            totp: boolean;
        };
        /** @description A rating with its comment; `null` withdraws it. */
        FeedbackRequest: {
            comment?: string | null;
            rating?: components["schemas"]["Rating"] | null;
        };
        /**
         * Format: uuid
         * @description Uploaded bytes.
         */
        FileId: string;
        /** @description How many files are indexed anew. */
        FilesQueued: {
            /** Format: int64 */
            queued: number;
        };
        /** @description A document in the palette. */
        FoundDocument: {
            extension: string;
            id: components["schemas"]["DocumentId"];
            title: string;
        };
        /** @description A chat in the palette. */
        FoundThread: {
            archived: boolean;
            id: components["schemas"]["ThreadId"];
            messageId: components["schemas"]["MessageId"] | null;
            /** @description Words around the match, the match between « and ». */
            snippet: string | null;
            title: string | null;
            /** Format: int64 */
            updatedAt: number;
        };
        /** @description What a thread is doing. A client follows the text with `held = held[..textOffset] + text`. */
        Generation: {
            messageId: components["schemas"]["MessageId"];
            /** @enum {string} */
            status: "queued";
        } | {
            cancelRequested: boolean;
            messageId: components["schemas"]["MessageId"];
            reasoning: string;
            /** Format: int64 */
            reasoningLength: number;
            /** Format: int64 */
            reasoningOffset: number;
            /** @enum {string} */
            status: "streaming";
            /** @description The text from `textOffset` on. */
            text: string;
            /** Format: int64 */
            textLength: number;
            /** Format: int64 */
            textOffset: number;
            /** Format: int64 */
            updatedAt: number;
        } | {
            /** @description The reply that ended last. */
            lastMessageId?: components["schemas"]["MessageId"];
            /** @description How it ended: `complete`, `cancelled` or `failed`. */
            lastStatus?: string;
            /** @enum {string} */
            status: "idle";
        };
        /** @description A key that a rule names and that does not work. */
        GoneApiKey: {
            id: components["schemas"]["ApiKeyId"];
            /** @description Absent when it is not known any more. */
            name?: string;
            status: components["schemas"]["ApiKeyStatus"];
        };
        /** @description Every chat model of the organization. */
        GovernedModels: {
            models: components["schemas"]["ChatModel"][];
        };
        /** @description A competence to grant. */
        GrantCompetenceRequest: {
            /** @description `tale:models.api`, another capability of the platform, or a qualification of 1 to 120 characters. */
            competence: string;
            /** @description What shows it, at most 2,000 characters. */
            evidence?: string;
            /**
             * Format: int64
             * @description When it ends, in epoch milliseconds; absent is never.
             */
            expiresAt?: number | null;
            /**
             * Format: uuid
             * @description The member.
             */
            userId: string;
        };
        /** @description What was granted. */
        GrantedCompetence: {
            /**
             * Format: uuid
             * @description Names the grant when it is revoked.
             */
            recordId: string;
        };
        /** @description An agent runtime. */
        Harness: {
            /** @description Its identifier. */
            harness: string;
            /** @description Its readable name. */
            label: string;
        };
        /** @description The names of the headers, as the operator set them. */
        HeaderNames: {
            /** @description Carries a signed assertion; its name is fixed. */
            assertion: string;
            /** @description Carries the address of the person. */
            email: string;
            /** @description Carries the key. */
            key: string;
            /** @description Carries the display name. */
            name: string;
            /** @description Carries the role. */
            role: string;
            /** @description Reserved for team names; ignored. */
            teams: string;
        };
        /** @description The web process lives. */
        Health: {
            /** @description Always `ok`. */
            status: string;
            /** @description The release. */
            version: string;
        };
        /**
         * @description An image of an organization.
         * @enum {string}
         */
        ImageSlot: "logo" | "favicon-light" | "favicon-dark";
        /** @description The state of a document in the search index. Branch on `errorCode`, never on `error`. */
        Indexing: {
            /** @description Whether the passages carry vectors; without them the document is found by its words alone. */
            embedded: boolean;
            /** @description What went wrong or is waited for, as a sentence. */
            error?: string;
            /** @description What clients branch on. */
            errorCode?: string;
            /**
             * Format: int64
             * @description When it became searchable, in epoch milliseconds.
             */
            indexedAt?: number;
            progress?: components["schemas"]["Progress"];
            status: components["schemas"]["Status"];
        };
        /** @description A database of the organization's own, without its password. */
        KnowledgeConnection: {
            database: string;
            host: string;
            /** Format: int32 */
            port: number;
            sslmode: components["schemas"]["KnowledgeSslMode"];
            user: string;
        };
        /** @description A database to use. */
        KnowledgeDatabaseForm: {
            database: string;
            /** @description A name or an address. */
            host: string;
            /**
             * Format: password
             * @description The stored one when absent or empty, which is used only for the place that it was stored for.
             */
            password?: string;
            /** Format: int32 */
            port: number;
            /** @description `require` when absent. */
            sslmode?: components["schemas"]["KnowledgeSslMode"];
            user: string;
        };
        /** @description What a look at a database found. */
        KnowledgeDatabaseFound: {
            /** @description Version of the extension `pg_search`, which is not needed; `null` when it is not created there. */
            pgSearch: string | null;
            serverVersion: string;
            /** @description Version of the extension `vector`; `null` when it is not created there. */
            vector: string | null;
        };
        /** @description Where the organization's passages are. */
        KnowledgeDatabaseState: {
            connection: components["schemas"]["KnowledgeConnection"] | null;
            found: components["schemas"]["KnowledgeDatabaseFound"] | null;
            problem: components["schemas"]["KnowledgeDatabaseTrouble"] | null;
        };
        /** @description Why the database of its own cannot be used. */
        KnowledgeDatabaseTrouble: {
            /** @description What the files, the network or the server said. */
            detail: string | null;
            /**
             * @description `settings`: its files cannot be used; `opening`: it is not ready yet; `host_refused`, `unresolved`,
             *     `unreachable`, `not_encrypted`, `login_refused`, `database_missing`, `server_refused`,
             *     `transaction_pooler`, `vector_missing`, `vector_too_old`, `not_allowed`, `not_prepared`.
             */
            reason: string;
        };
        /**
         * @description How a connection is encrypted, in the words of Postgres.
         * @enum {string}
         */
        KnowledgeSslMode: "disable" | "require" | "verify-ca" | "verify-full";
        /**
         * @description What a limit counts.
         * @enum {string}
         */
        LimitKind: "TOKEN_LIMIT" | "COST_LIMIT" | "REQUEST_LIMIT";
        /**
         * @description How often a limit begins anew, by the calendar in UTC.
         * @enum {string}
         */
        LimitPeriod: "daily" | "weekly" | "monthly";
        /**
         * @description Whose limit it is.
         * @enum {string}
         */
        LimitScope: "user" | "role" | "team" | "default" | "org";
        /** @description A limit that binds the caller. */
        LimitView: {
            code: components["schemas"]["LimitKind"];
            /** @description Whether nothing is left. */
            exceeded: boolean;
            /** Format: double */
            limit: number;
            period: components["schemas"]["LimitPeriod"];
            /**
             * Format: int64
             * @description When it begins anew.
             */
            resetsAt: number;
            scope: components["schemas"]["LimitScope"];
            /** @description Whether the use of others counts toward it as well: all of the organization's, or of the team's members. */
            shared: boolean;
            /**
             * Format: double
             * @description Tokens, cents or requests.
             */
            used: number;
            /** @description Whether the warning's threshold is passed and something is left. */
            warning: boolean;
            /**
             * Format: int32
             * @description From which percentage on there is a warning.
             */
            warningThresholdPercent?: number;
        };
        /**
         * @description A language of the interface.
         * @enum {string}
         */
        Locale: "en" | "de" | "fr";
        /** @description The caller. */
        Me: {
            capabilities: components["schemas"]["MeCapabilities"];
            key: components["schemas"]["MeKey"];
            /** @description The organization the call acts in. */
            organization: components["schemas"]["MeOrganization"];
            /** @description Every organization the key can act in. */
            organizations: components["schemas"]["MeOrganization"][];
            user: components["schemas"]["MeUser"] | null;
        };
        /** @description What the caller may do here beyond reading. */
        MeCapabilities: {
            /** @description Whether the role is owner, admin or developer. */
            developer: boolean;
            /** @description Whether the key may call the model endpoints. */
            modelApi: boolean;
        };
        /** @description The key. */
        MeKey: {
            /**
             * Format: int64
             * @description When it ends, in epoch milliseconds; `null` is never.
             */
            expiresAt: number | null;
            /** @description Its name. */
            name: string;
        };
        /** @description An organization and the role that counts there. */
        MeOrganization: {
            /**
             * Format: uuid
             * @description The organization.
             */
            id: string;
            /** @description Its name. */
            name: string;
            /** @description `owner`, `admin`, `developer`, `editor` or `member`. */
            role: string;
            /** @description What `X-Organization-Slug` takes. */
            slug: string;
        };
        /** @description The person that a key acts as. */
        MeUser: {
            /** @description Sign-in address. */
            email: string;
            /**
             * Format: uuid
             * @description The person.
             */
            id: string;
            /** @description Display name. */
            name: string;
        };
        /** @description A member. */
        Member: {
            /** @description Sign-in address. */
            email: string;
            /** @description Whether the person made the organization. */
            isCreator: boolean;
            /**
             * Format: int64
             * @description Since when, in epoch milliseconds.
             */
            joinedAt: number;
            /** @description Display name. */
            name: string;
            role: components["schemas"]["Role"];
            /**
             * Format: uuid
             * @description The person.
             */
            userId: string;
        };
        /** @description The factors of a member. */
        MemberFactors: {
            /**
             * Format: int32
             * @description How many backup codes are left.
             */
            backupCodesLeft: number;
            /** @description The passkeys, the oldest first. */
            passkeys: components["schemas"]["Passkey"][];
            /** @description Whether an authenticator app is on. */
            totp: boolean;
        };
        /** @description Every member. */
        Members: {
            members: components["schemas"]["Member"][];
        };
        /** @description A message. Times are epoch milliseconds. */
        Message: {
            /** @description Present when the reader left a comment with their rating. */
            commented?: boolean;
            /**
             * Format: int32
             * @description Older messages that did not fit into the model's window; absent = none.
             */
            contextDroppedCount?: number;
            /** Format: int64 */
            createdAt: number;
            /**
             * Format: int64
             * @description When it was settled.
             */
            doneAt?: number;
            /** @description Why it failed, in readable English. */
            error?: string;
            /** @description Why it failed, for branching. */
            errorCode?: string;
            /** @enum {string} */
            feedback?: "up" | "down";
            /** @enum {string} */
            finishReason?: "stop" | "length" | "tool-calls" | "content-filter" | "cancelled" | "other";
            /** Format: int64 */
            firstTokenAt?: number;
            id: components["schemas"]["MessageId"];
            /**
             * @description Present when a restart of the server cut the reply. `errorCode` is `provider_error` then, although
             *     no provider failed; asking again helps.
             */
            interrupted?: boolean;
            /** @description The model that answers. */
            model?: string;
            /** @description Empty while the reply is being made. */
            parts: components["schemas"]["Part"][];
            providerSlug?: string;
            /** @enum {string} */
            role: "user" | "assistant";
            /**
             * Format: int64
             * @description When the model was called.
             */
            startedAt?: number;
            /** @enum {string} */
            status: "pending" | "complete" | "cancelled" | "failed";
            /** @description Present when the turn ended at its step limit without an answer. */
            stepLimitHit?: boolean;
            usage?: components["schemas"]["Usage"];
            /** @description On the user message of a turn with more than one version. */
            versions?: components["schemas"]["Versions"];
        };
        /** @description An accepted turn. */
        MessageAccepted: {
            /** @description Whether this is the remembered answer of an earlier equal request. */
            duplicate?: boolean;
            /** @description The reply, found in the message list once it is written. */
            messageId: components["schemas"]["MessageId"];
            model: string;
            /** @description Where to follow it. */
            poll: string;
            providerSlug: string;
            /** @description `accepted`. */
            status: string;
            threadId: components["schemas"]["ThreadId"];
        };
        /**
         * Format: uuid
         * @description A message of a chat.
         */
        MessageId: string;
        /** @description The messages of the version on screen. */
        MessageList: {
            messages: components["schemas"]["Message"][];
        };
        /** @description A page of messages. */
        MessagesPage: {
            continueCursor: string;
            isDone: boolean;
            page: components["schemas"]["Message"][];
        };
        /** @description A model of a provider. */
        Model: {
            capabilities?: components["schemas"]["ModelCapabilities"];
            /**
             * Format: int32
             * @description In tokens.
             */
            contextWindow: number;
            /**
             * Format: int32
             * @description Width of the vectors of an embedding model.
             */
            dimensions?: number;
            displayName?: string;
            /**
             * @description Fields added to the body of its requests, over those of the provider. A field of the request
             *     itself is refused with `EXTRA_BODY_KEY_FORBIDDEN`.
             */
            extraBody?: {
                [key: string]: unknown;
            };
            /** @description The provider's name of the model. */
            id: string;
            /**
             * Format: int32
             * @description In tokens.
             */
            maxOutputTokens?: number;
            pricing?: components["schemas"]["ModelPricing"];
            purposes: components["schemas"]["ModelPurpose"][];
            /** @description `responses` for a model that calls tools only through the Responses API (OpenAI format). */
            toolApi?: components["schemas"]["ToolApi"];
            /** @description It takes tools only with reasoning off; chats then offer no effort levels. */
            toolsRequireNoReasoning?: boolean;
        };
        /** @description What a chat model can do. */
        ModelCapabilities: {
            /**
             * @description It has a reasoning knob.
             * @default false
             */
            reasoning: boolean;
            /**
             * @description It calls tools.
             * @default false
             */
            tools: boolean;
            /**
             * @description It reads images.
             * @default false
             */
            vision: boolean;
        };
        /** @description The model endpoints as they answer the person's keys. */
        ModelEndpoints: {
            /** @description Whether the person's keys may call them. */
            allowed: boolean;
            /** @description Whether they are on in the organization. */
            enabled: boolean;
            /** @description What `model` takes; empty while they are off. */
            models: string[];
            /** @description What `X-Organization-Slug` takes. */
            organizationSlug: string;
        };
        /** @description US dollars per million tokens, and per minute of a recording. A missing price is unknown. */
        ModelPricing: {
            /**
             * Format: double
             * @description Input tokens read from the provider's cache.
             * @default null
             */
            cachedInput: number;
            /**
             * Format: double
             * @default null
             */
            input: number;
            /**
             * Format: double
             * @default null
             */
            output: number;
            /**
             * Format: double
             * @description A minute of a recording that is transcribed.
             * @default null
             */
            perMinute: number;
        };
        /**
         * @description What a model is for.
         * @enum {string}
         */
        ModelPurpose: "chat" | "embedding" | "transcription";
        /** @description The message whose version shall be shown. */
        NamedMessage: {
            messageId: components["schemas"]["MessageId"];
        };
        /** @description The password, where it is asked for. */
        NewPasskeyRequest: {
            /** @description The person's own password; needed when `passwordNeeded` says so. */
            password?: string | null;
        };
        /** @description A team to make. */
        NewTeam: {
            /** @description At most 500 characters. */
            description?: string;
            /** @description 1 to 100 characters. */
            name: string;
            /** @description Members of the organization; nobody = the person who makes the team. */
            userIds?: components["schemas"]["UserId"][];
        };
        /** @description A thread to create. */
        NewThread: {
            /** @description 1–120 characters. */
            title?: string | null;
        };
        /**
         * Format: uuid
         * @description Something that a person is told.
         */
        NoticeId: string;
        /** @description What a person is told. */
        Notification: {
            /** @description The rest, and what to do about it. */
            body: string;
            /**
             * Format: int64
             * @description When, in epoch milliseconds.
             */
            createdAt: number;
            id: components["schemas"]["NoticeId"];
            /** @description What happened, as a stable word. */
            kind: string;
            /** @description The page that shows more, below `/dashboard/{orgId}/`. */
            path: string;
            /** @description Whether the person has seen it. */
            read: boolean;
            /** @description What happened, in the language that was asked for. */
            title: string;
        };
        /** @description A kind of notification. */
        NotificationKind: {
            /** @description Whether it cannot be declined. */
            always: boolean;
            /** @description The word that stands in notifications and in `muted`. */
            kind: string;
            /** @description Whether mail is sent about it while it is not declined; absent where there is no mail. */
            mailed?: boolean | null;
            /** @description Whether the person declined it. */
            muted: boolean;
        };
        /** @description A page of notifications, the newest first. */
        NotificationPage: {
            /** @description Empty on the last page. */
            continueCursor: string;
            isDone: boolean;
            page: components["schemas"]["Notification"][];
        };
        /** @description What a person is told of. */
        NotificationSettings: {
            kinds: components["schemas"]["NotificationKind"][];
        };
        /** @description What a person wants to be told. */
        NotificationWishes: {
            /** @description Kinds that are declined. */
            muted: string[];
            /** @description Kinds that no mail is wanted about; absent = as before. */
            unmailed?: string[] | null;
        };
        /** @description Where the organization's files are. */
        ObjectStorage: {
            connection: components["schemas"]["ObjectStorageBucket"] | null;
            /** @description Whether the deployment has a store, which holds the files of organizations without a bucket. */
            deploymentStore: boolean;
            /** @description The origin that browsers exchange files with, when the bucket can be used. */
            origin: string | null;
            /** @description Why the bucket of its own cannot be used. */
            problem: string | null;
        };
        /** @description A bucket of the organization's own, without the secret of its key. */
        ObjectStorageBucket: {
            accessKeyId: string;
            bucket: string;
            /** @description The store's address; absent for AWS S3. */
            endpoint?: string;
            /** @description `endpoint/bucket/key` instead of `bucket.endpoint/key`. */
            forcePathStyle: boolean;
            /** @description Put before every key. */
            prefix?: string;
            region: string;
        };
        /** @description A bucket to use. */
        ObjectStorageForm: {
            accessKeyId: string;
            bucket: string;
            /** @description The store's address; empty or absent for AWS S3. */
            endpoint?: string;
            /** @description `endpoint/bucket/key` instead of `bucket.endpoint/key`. */
            forcePathStyle: boolean;
            /** @description Put before every key. */
            prefix?: string;
            region: string;
            /**
             * Format: password
             * @description The stored one when absent or empty.
             */
            secretAccessKey?: string;
        };
        /** @description The latest move, if there ever was one. */
        ObjectStorageMigration: {
            migration: components["schemas"]["ObjectStorageMove"] | null;
        };
        /** @description The latest move of the organization's files to its own bucket. */
        ObjectStorageMove: {
            /**
             * Format: int64
             * @description Bytes moved.
             */
            bytes: number;
            /**
             * Format: int64
             * @description Milliseconds since 1970; `null` while it goes on.
             */
            endedAt: number | null;
            /** @description The same as a sentence. */
            error: string | null;
            /** @description Why it ended early: a code. */
            errorCode: string | null;
            /**
             * Format: int64
             * @description Files not moved; they are where they were.
             */
            failed: number;
            /**
             * Format: int64
             * @description Files moved.
             */
            moved: number;
            /**
             * Format: int64
             * @description Files with nothing to do.
             */
            skipped: number;
            /**
             * Format: int64
             * @description Milliseconds since 1970.
             */
            startedAt: number;
            /** @description `running`, `completed` or `failed`. */
            state: string;
            /** @description The bucket it moves to. */
            target: string;
            /**
             * Format: int64
             * @description Files of the organization when it began.
             */
            total: number;
        };
        /** @description A model, in OpenAI's shape. */
        OpenAiModel: {
            /**
             * Format: int64
             * @description 0.
             */
            created: number;
            /** @description `<provider>/<model>`, on both interfaces. */
            id: string;
            /** @description `model`. */
            object: string;
            /** @description The provider. */
            owned_by: string;
        };
        /** @description The models of the list, in OpenAI's shape. */
        OpenAiModels: {
            data: components["schemas"]["OpenAiModel"][];
            /** @description `list`. */
            object: string;
        };
        /** @description A source the reader may open. */
        OpenSource: {
            chunkId: components["schemas"]["ChunkId"];
            documentId: components["schemas"]["DocumentId"];
            /** @description The cited passage, whole. */
            passage: string;
        };
        /** @description An organization. */
        Organization: {
            /**
             * Format: uuid
             * @description The organization.
             */
            id: string;
            /** @description Its name. */
            name: string;
            /** @description Its short name, which never changes. */
            slug: string;
        };
        /** @description A name for an organization. */
        OrganizationRequest: {
            /** @description 1 to 100 letters, digits, spaces, hyphens and underscores. */
            name: string;
        };
        /** @description An organization of the person. */
        OrganizationSummary: {
            branding: components["schemas"]["PublishedBranding"] | null;
            /**
             * Format: uuid
             * @description The organization.
             */
            id: string;
            /** @description Its name. */
            name: string;
            /** @description The person's role there. */
            role: components["schemas"]["Role"];
            /** @description Its short name, which never changes. */
            slug: string;
        };
        /** @description A piece of a message. More types may come; clients show unknown ones as opaque. */
        Part: {
            text: string;
            /** @enum {string} */
            type: "text";
        } | {
            text: string;
            /** @enum {string} */
            type: "reasoning";
        } | {
            fileId: components["schemas"]["FileId"];
            mediaType: string;
            name: string;
            /** Format: int64 */
            sizeBytes: number;
            /** @enum {string} */
            type: "attachment";
        } | {
            id: string;
            /** @description Parsed arguments, or the raw text when they were no JSON. */
            input: unknown;
            name: string;
            /** @enum {string} */
            type: "tool-call";
        } | {
            id: string;
            isError: boolean;
            name: string;
            output: unknown;
            /** @enum {string} */
            type: "tool-result";
        } | {
            chunkId: components["schemas"]["ChunkId"];
            /** @description The cited document; absent for a file that belongs to this chat only. */
            documentId?: components["schemas"]["DocumentId"];
            fileId: components["schemas"]["FileId"];
            /**
             * Format: int32
             * @description The number of the mark.
             */
            number: number;
            /**
             * Format: int32
             * @description The page it begins on, from 1, when the format has pages.
             */
            page?: number;
            /** @description The cited passage, whole. */
            passage: string;
            title: string;
            /** @enum {string} */
            type: "citation";
        };
        /** @description A passage in its document. */
        Passage: {
            /** Format: uuid */
            chunkId: string;
            /**
             * Format: int64
             * @description Where it ends, exclusive.
             */
            end: number;
            /** @description Title and enclosing headings. */
            header: string;
            /**
             * Format: int32
             * @description The page it begins on, from 1.
             */
            page: number | null;
            passage: string;
            /**
             * Format: int64
             * @description Where it begins in the extracted text, in Unicode scalar values.
             */
            start: number;
        };
        /** @description A passkey. */
        Passkey: {
            /**
             * Format: int64
             * @description When it was added, in epoch milliseconds.
             */
            createdAt: number;
            /**
             * Format: uuid
             * @description The passkey.
             */
            id: string;
            /**
             * Format: int64
             * @description When somebody signed in with it last, in epoch milliseconds.
             */
            lastUsedAt: number | null;
            /** @description What its owner calls it. */
            name: string;
        };
        /** @description What an authenticator answered; everything in base64url. */
        PasskeyAssertion: {
            /** @description `response.authenticatorData`. */
            authenticatorData: string;
            /** @description `response.clientDataJSON`. */
            clientData: string;
            /** @description The passkey's id. */
            id: string;
            /** @description `response.signature`. */
            signature: string;
            /** @description `response.userHandle`, where the passkey names its owner. */
            userHandle?: string | null;
        };
        /** @description A question to an authenticator, as `navigator.credentials.create` takes it with its texts as bytes. */
        PasskeyCreationOptions: {
            /** @description The algorithms that may be used, the preferred one first (COSE). */
            algorithms: number[];
            /** @description What is signed, in base64url. */
            challenge: string;
            /** @description The passkeys that are there. */
            excludeCredentials: components["schemas"]["CredentialDescriptor"][];
            /** @description The site. */
            rpId: string;
            /** @description The site's name. */
            rpName: string;
            /**
             * Format: int64
             * @description How long an answer counts, in milliseconds.
             */
            timeout: number;
            /** @description The person's name. */
            userDisplayName: string;
            /** @description The person's id, in base64url. */
            userId: string;
            /** @description The person's address. */
            userName: string;
        };
        /** @description A question to an authenticator, as `navigator.credentials.get` takes it with its texts as bytes. */
        PasskeyRequestOptions: {
            /** @description The passkeys that may answer; empty: any of the site. */
            allowCredentials: components["schemas"]["CredentialDescriptor"][];
            /** @description What is signed, in base64url. */
            challenge: string;
            /** @description The site. */
            rpId: string;
            /**
             * Format: int64
             * @description How long an answer counts, in milliseconds.
             */
            timeout: number;
            /** @description Always `required`. */
            userVerification: string;
        };
        /**
         * @description Why another password has to be chosen.
         * @enum {string}
         */
        PasswordChange: "temporary" | "expired";
        /** @description What a new password must be. */
        PasswordPolicy: {
            /** @description Fewest characters. */
            minLength: number;
            /** @description A digit. */
            requireDigit: boolean;
            /** @description A lower-case letter. */
            requireLower: boolean;
            /** @description A character that is neither letter, digit nor white space. */
            requireSpecial: boolean;
            /** @description An upper-case letter. */
            requireUpper: boolean;
        };
        /** @description The person's role and what it holds. */
        Permissions: {
            /**
             * @description The acts that the person may do without further conditions, such as `knowledge.write`;
             *     `sandboxes.read` besides, for those who see the sandboxes and run code, where there are any.
             */
            capabilities: string[];
            /**
             * @description The person's cell of each act of the whole matrix of roles: `allowed`, `refused`, or the condition under
             *     which it is allowed (`assigned`, `policy`, `namedReviewer`, `competence`, `policyOrCompetence`, `read`,
             *     `names`, `ownTeams`). What this release has no door for is among them.
             */
            cells: {
                [key: string]: string;
            };
            role: components["schemas"]["Role"];
        };
        /** @description A policy. */
        Policy: {
            /**
             * @description Why the present document cannot be read. `value` is then the last that could, and what depends on the
             *     policy is refused until it is saved again.
             */
            unreadable?: string;
            /** @description The document, every field filled in. */
            value: Record<string, never>;
            /**
             * Format: int64
             * @description Counts the writes; 0 = never written.
             */
            version: number;
        };
        /** @description A change of a policy. */
        PolicyChange: {
            /**
             * @description What is to be set (JSON merge patch): fields that are left out stay, `null` goes back to the default, and
             *     lists are replaced whole.
             */
            value: Record<string, never>;
            /**
             * Format: int64
             * @description The version that was changed; without it and without `If-Match`, the change is made whatever the version.
             */
            version?: number | null;
        };
        /** @description Language, theme and custom instructions. */
        Preferences: {
            customInstructions: components["schemas"]["CustomInstructions"];
            locale: components["schemas"]["Locale"] | null;
            theme: components["schemas"]["Theme"];
        };
        /** @description Passages done and expected. */
        Progress: {
            /** Format: int32 */
            done: number;
            /** Format: int32 */
            total: number;
        };
        /** @description What only the person knows or has: exactly one of the two. */
        ProofRequest: {
            /** @description A code of the person's authenticator app, which is used up. */
            code?: string;
            /** @description The person's own password. */
            password?: string;
        };
        /** @description A provider with the organization's credentials. */
        Provider: {
            apiFormat: components["schemas"]["ApiFormat"];
            /** @description `null` when each credential has its own address, and for the demo. */
            baseUrl: string | null;
            /** @description Why the list could not be read the last time. */
            catalogError?: string;
            /**
             * Format: int64
             * @description When the list of models was read from the provider, in epoch milliseconds.
             */
            catalogFetchedAt?: number;
            /** @enum {string} */
            catalogSource: "static" | "openrouter-api" | "models-endpoint" | "none";
            credentials: components["schemas"]["Credential"][];
            displayName: string;
            /** @enum {string} */
            embedding: "supported" | "unsupported" | "unknown";
            /** @description Fields added to the body of each request to the provider. */
            extraBody?: {
                [key: string]: unknown;
            };
            /** @description Why the definition's file cannot be used; until it is mended or saved over, no model of the provider is called. */
            fileError?: string;
            /** @enum {string} */
            kind: "shipped" | "custom" | "demo";
            models: components["schemas"]["Model"][];
            slug: string;
            /** @description The agent runtime that uses the provider's subscriptions; absent where there is none. */
            subscriptionRuntime?: components["schemas"]["SubscriptionRuntime"];
            /** @description Subscriptions of the organization, which act in `subscriptionRuntime` alone. */
            subscriptions: components["schemas"]["Subscription"][];
            /** Format: int64 */
            version: number;
        };
        /** @description Earlier states of a definition. */
        ProviderHistory: {
            /** @description The newest first, at most a hundred. */
            states: components["schemas"]["ProviderState"][];
        };
        /** @description A state of a definition. */
        ProviderState: {
            /**
             * Format: int64
             * @description In epoch milliseconds.
             */
            at: number;
            /** @enum {string} */
            change: "created" | "changed" | "deleted";
            /** @description The definition as its file held it; it contains no secret. */
            definition: unknown;
            /**
             * Format: uuid
             * @description Names the state when it is restored.
             */
            id: string;
            /** Format: int64 */
            version: number;
        };
        /** @description What a test gave. */
        ProviderTest: {
            error?: components["schemas"]["ProviderTestError"];
            /** Format: int64 */
            latencyMs: number;
            model: string;
            ok: boolean;
            reply?: string;
        };
        /** @description The vendor's own error. */
        ProviderTestError: {
            code: string;
            message: string;
            /** Format: int32 */
            status?: number;
        };
        /** @description Every provider. */
        Providers: {
            providers: components["schemas"]["Provider"][];
            /** @description Files beside the definitions that cannot be used and belong to no provider. */
            unusableFiles: components["schemas"]["UnusableFile"][];
        };
        /** @description What an organization lets a directory do. */
        Provisioning: {
            /** @description The address that the directory is given. */
            baseUrl: string;
            /** @description Whether the token works. */
            enabled: boolean;
            /**
             * Format: int64
             * @description When it was used last, to the minute, in epoch milliseconds.
             */
            lastUsedAt: number | null;
            /** @description The beginning of the token; `null` without one. */
            token: string | null;
            /**
             * Format: int64
             * @description When the token was made, in epoch milliseconds.
             */
            tokenMadeAt: number | null;
        };
        /** @description A new token. It is shown only now. */
        ProvisioningToken: {
            token: string;
        };
        /** @description How an organization looks, for everybody. Addresses are below the base path. */
        PublishedBranding: {
            /** @description `#` and six lower-case hexadecimal digits; `null` is Tale's own. */
            accentColor: string | null;
            /** @description The icon of tabs in dark browsers: the uploaded one, else the light one. */
            faviconDark: string | null;
            /** @description The icon of tabs in light browsers: the uploaded one, else one made of the logo. */
            faviconLight: string | null;
            /** @description The logo. */
            logo: string | null;
        };
        /**
         * @description A rating.
         * @enum {string}
         */
        Rating: "up" | "down";
        /**
         * @description How hard the model shall think.
         * @enum {string}
         */
        ReasoningEffort: "low" | "medium" | "high" | "extra" | "max";
        /** @description How many models a list holds. */
        RefreshedCatalog: {
            count: number;
        };
        /** @description What became of each list. */
        RefreshedCatalogs: {
            catalogs: components["schemas"]["CatalogResult"][];
        };
        /** @description Why a parked message was not accepted at its turn. */
        Refusal: {
            /** @description For branching; a code as of any other refused send. */
            code: string;
            /** @description In readable English. */
            message: string;
        };
        /** @description Another name. */
        RenamePasskeyRequest: {
            /** @description 1 to 64 characters. */
            name: string;
        };
        /** @description A new title. */
        RenameRequest: {
            title: string;
        };
        /** @description An earlier state to save anew. */
        RestoreProviderRequest: {
            /**
             * Format: uuid
             * @description The state.
             */
            state: string;
            /**
             * Format: int64
             * @description The version of the present definition; absent for a deleted one.
             */
            version?: number | null;
        };
        /** @description What became of the provider of a deleted credential. */
        RetiredProvider: {
            /** @description Whether it was deleted. Shipped providers and those with other credentials stay. */
            deleted: boolean;
            /** @description Why it stays although it should have gone. */
            reason?: string;
        };
        /** @description What came of a retry. */
        Retried: {
            /** @description Why nothing was done: `content-only`, `untracked-blob`, `unsupported` or `in-progress`. */
            reason?: string;
            /** @description `indexing` or `skipped`. */
            status: string;
        };
        /** @description Who shall answer again. */
        RetryRequest: {
            locale?: string | null;
            model?: string | null;
            providerSlug?: string | null;
            reasoningEffort?: components["schemas"]["ReasoningEffort"] | null;
        };
        /**
         * @description What a person may be in an organization.
         * @enum {string}
         */
        Role: "owner" | "admin" | "developer" | "editor" | "member" | "disabled";
        /** @description How a key is replaced. */
        RotateApiKeyRequest: {
            /**
             * Format: int64
             * @description How long the old key goes on working: 0 to 168 hours.
             */
            overlapHours?: number;
        };
        /** @description A program to run. */
        RunCodeRequest: {
            /** @description At most 65,536 bytes. */
            code: string;
            language: components["schemas"]["CodeLanguage"];
        };
        /** @description What a provider lets a browser post. It may say more, which is ignored. */
        SamlAnswer: {
            /** @description A page of this Tale to go on to, when the sign-in began at the provider. */
            RelayState?: string | null;
            /** @description The response, as base64. */
            SAMLResponse?: string | null;
            /** @description Set by our own page, which posts the form again. */
            again?: string | null;
        };
        /** @description What a provider says about itself. */
        SamlMetadata: {
            /** @description What it signs with, as PEM. */
            certificates: string[];
            /** @description Its entity ID. */
            entityId: string;
            /** @description Where browsers are sent. */
            signOnUrl: string;
        };
        /** @description Where to read a provider's metadata: at an address, or right here. */
        SamlMetadataSource: {
            /** @description The document itself, instead. */
            document?: string | null;
            /** @description Their address, which is called through the guard. */
            url?: string | null;
        };
        /** @description What to register at a provider that speaks SAML. */
        SamlRegistration: {
            /** @description The entity ID of this Tale for the organization, which is the address of its metadata too. */
            entityId: string;
            /** @description The addresses that take responses (ACS), one for each address of this Tale. */
            replies: string[];
        };
        /** @description A sandbox. Whether it runs and whether it holds a place are two things: one may be kept warm without a place. */
        Sandbox: {
            /** @description `creating` and `active` hold a place, `released` holds none, `destroying` is being deleted. */
            allocation: string;
            /**
             * Format: int64
             * @description When its files are deleted unless it is used again, in epoch milliseconds; `null` while nothing will delete them.
             */
            deletedAt: number | null;
            id: string;
            /** @description Whose it is; `null` when the account is gone. */
            person: string | null;
            /**
             * Format: int32
             * @description Programs that run in it.
             */
            running: number;
            runtime: components["schemas"]["SandboxRuntime"];
            /**
             * Format: int64
             * @description Epoch milliseconds.
             */
            usedAt: number;
            /**
             * Format: int64
             * @description Milliseconds that its programs ran within 30 days.
             */
            usedMs: number;
            /** @description `project`, `workflow` or `render`. */
            workload: string;
        };
        /** @description Use of one class under its limit. */
        SandboxClass: {
            /**
             * Format: int32
             * @description Places that may be held at the same time.
             */
            limit: number;
            /**
             * Format: int32
             * @description Places that are held.
             */
            used: number;
        };
        /** @description Limits and use by class. */
        SandboxClasses: {
            /** @description Standing workspaces, those of people who run code among them. */
            project: components["schemas"]["SandboxClass"];
            /** @description Renderings. */
            render: components["schemas"]["SandboxClass"];
            /** @description Runs of automations. */
            workflow: components["schemas"]["SandboxClass"];
        };
        /** @description A disk of the host. */
        SandboxDisk: {
            /**
             * Format: int64
             * @description Below so much no sandbox starts; 0 = no such floor.
             */
            floorBytes: number;
            /** Format: int64 */
            freeBytes: number;
            /** Format: int64 */
            totalBytes: number;
        };
        /** @description What the host said. What it does not know is `null`, never 0. */
        SandboxHost: {
            /**
             * Format: int32
             * @description How many it holds.
             */
            capacity: number;
            engineDisk: components["schemas"]["SandboxDisk"] | null;
            /**
             * Format: int64
             * @description Epoch milliseconds.
             */
            observedAt: number;
            /**
             * Format: int32
             * @description Sandboxes of the organization that run or start.
             */
            ownSessions: number;
            /**
             * Format: double
             * @description Share of the last ten seconds in which something waited for a processor, 0 to 100.
             */
            pressurePercent: number | null;
            /**
             * Format: int32
             * @description Sandboxes of the deployment that run or start.
             */
            sessions: number;
            /** Format: int32 */
            totalCores: number | null;
            /** Format: int64 */
            totalMemoryBytes: number | null;
            /** Format: double */
            usedCores: number | null;
            /** Format: int64 */
            usedMemoryBytes: number | null;
            workspaceDisk: components["schemas"]["SandboxDisk"] | null;
        };
        /**
         * @description Whether a sandbox runs on the host.
         * @enum {string}
         */
        SandboxRuntime: "running" | "starting" | "stopped" | "unknown";
        /** @description How many runs were ended. */
        SandboxStopped: {
            /** Format: int32 */
            cancelled: number;
        };
        /** @description Somebody who waits for a place. */
        SandboxWaiter: {
            /** @description `null` when the account is gone. */
            person: string | null;
            /** @description As of a run. */
            reason: string | null;
            /**
             * Format: int64
             * @description Epoch milliseconds.
             */
            since: number;
        };
        /** @description The organization's sandboxes. */
        Sandboxes: {
            classes: components["schemas"]["SandboxClasses"] | null;
            host: components["schemas"]["SandboxHost"] | null;
            /** @description Who waits, for those who manage sandboxes. */
            line?: components["schemas"]["SandboxWaiter"][];
            /**
             * Format: int64
             * @description Programs that ended within 30 days.
             */
            runs: number;
            /** @description The latest 100 sandboxes, for those who manage them. */
            sessions?: components["schemas"]["Sandbox"][];
            /**
             * Format: int64
             * @description Milliseconds that they ran.
             */
            usedMs: number;
            /**
             * Format: int64
             * @description Version of the policy `sandbox_quota`.
             */
            version: number;
            /**
             * Format: int32
             * @description Runs that wait.
             */
            waiting: number;
        };
        /** @description The answer to a search. */
        SearchAnswer: {
            diagnostics: components["schemas"]["SearchDiagnostics"];
            /** @description Best first. */
            hits: components["schemas"]["SearchHit"][];
        };
        /**
         * @description What a search reads.
         * @enum {string}
         */
        SearchCorpus: "documents" | "web" | "all";
        /** @description How an answer came about. */
        SearchDiagnostics: {
            /** @description Candidates that passed the check against live rows. */
            admitted: number;
            /** @description False while the keyword index cannot serve. */
            bm25: boolean;
            cached: boolean;
            /** @description False without an embedding model. */
            dense: boolean;
            /** @description Admitted candidates per corpus and leg. */
            legs: {
                [key: string]: number;
            };
            /** @description Present when a usage limit kept the dense leg from serving: which, and when it resets. */
            limited?: string;
            reranked: boolean;
        };
        /** @description A passage that answers. */
        SearchHit: {
            corpus: components["schemas"]["SearchCorpus"];
            /**
             * Format: float
             * @description Reciprocal-rank score, 1 for the first of every leg.
             */
            fusedScore: number;
            id: components["schemas"]["ChunkId"];
            /**
             * Format: float
             * @description BM25 score when it was found by words; comparable within one answer only.
             */
            keywordScore: number | null;
            /** @description How many legs found it. */
            legs: number;
            matchedLegs: components["schemas"]["SearchLeg"][];
            /** @description The whole passage. */
            passage: string;
            /**
             * Format: float
             * @description What the hits are ordered by.
             */
            score: number;
            /**
             * Format: float
             * @description Cosine similarity when it was found by meaning.
             */
            similarity: number | null;
            source: components["schemas"]["SearchSource"];
        };
        /**
         * @description A way a passage was found.
         * @enum {string}
         */
        SearchLeg: "keyword" | "dense";
        /**
         * @description What the organization's search goes by.
         * @enum {string}
         */
        SearchMode: "keywords" | "hybrid";
        /** @description A search. */
        SearchRequest: {
            corpus?: components["schemas"]["SearchCorpus"] | null;
            /**
             * Format: int64
             * @description 1–50, default 10.
             */
            limit?: number | null;
            /**
             * Format: double
             * @description 0–1: floor on the cosine similarity of what is found by meaning. What is found by words stays.
             */
            minSimilarity?: number | null;
            /** @description What is looked for: 1–2,000 characters after trimming. */
            query: string;
            /** @description Refuse with `EMBEDDING_NOT_CONFIGURED` instead of answering by words alone. */
            requireDense?: boolean | null;
        };
        /** @description What the palette shows. */
        SearchResults: {
            documents: components["schemas"]["FoundDocument"][];
            threads: components["schemas"]["FoundThread"][];
        };
        /** @description Where a passage stands. */
        SearchSource: {
            documentId: components["schemas"]["DocumentId"] | null;
            /** @description Title and headings above the passage. */
            header: string;
            /**
             * Format: int32
             * @description From 1, when the format has pages.
             */
            page: number | null;
            /** @description Reference of the text, stable while the document keeps its file. */
            ref: components["schemas"]["FileId"];
            title: string;
        };
        /** @description The password was right, and a second factor is asked for. */
        SecondFactorAsked: {
            /** @description Always true. */
            twoFactorRedirect: boolean;
        };
        /** @description How a sign-in that waits can be finished. */
        SecondFactorMethods: {
            /** @description A backup code. */
            backupCode: boolean;
            /** @description A passkey, on this page. */
            passkey: boolean;
            /** @description A code of an authenticator app. */
            totp: boolean;
        };
        /** @description An organization that wants a second factor of somebody who has none. */
        SecondFactorWanted: {
            /**
             * Format: uuid
             * @description The organization.
             */
            organizationId: string;
            /** @description Whether that is over: nothing of the organization is answered. */
            over: boolean;
            /**
             * Format: int64
             * @description Until when the person may go without, in epoch milliseconds.
             */
            until: number;
        };
        /** @description Notifications that were seen. */
        SeenNotifications: {
            /** @description At most 100; absent = all. */
            ids?: components["schemas"]["NoticeId"][] | null;
        };
        /** @description A message to send. The model is never chosen for you: `auto`, which the web app offers, is no model here. */
        SendMessage: {
            /** @description 1–100,000 characters. */
            content: string;
            /** @description Language of the answer (BCP 47). */
            locale?: string | null;
            /**
             * Format: int32
             * @description For the whole turn; at most the model's own ceiling.
             */
            maxOutputTokens?: number | null;
            /** @description An id of `GET /api/v1/models`. */
            model: string;
            /** @description Needed when two providers serve the model. */
            providerSlug?: string | null;
            /** @enum {string} */
            reasoningEffort?: "low" | "medium" | "high" | "extra" | "max";
        };
        /** @description A message to send. */
        SendRequest: {
            attachments?: components["schemas"]["FileId"][];
            content: string;
            locale?: string | null;
            /** @description A model id, or `auto`. */
            model: string;
            providerSlug?: string | null;
            reasoningEffort?: components["schemas"]["ReasoningEffort"] | null;
        };
        /** @description Who is signed in, and what there is to show. */
        Session: {
            /**
             * Format: uuid
             * @description The organization to show.
             */
            activeOrganizationId: string | null;
            /** @description Whether the person may create organizations. */
            canCreateOrganization: boolean;
            /** @description Whether this server runs the demo model. */
            demoAvailable: boolean;
            /** @description Whether `/events/file` tells changes of configuration files. */
            fileEvents: boolean;
            /** @description The person's organizations, also those where their access is disabled. */
            organizations: components["schemas"]["OrganizationSummary"][];
            /** @description Whether passkeys can be used on this page. */
            passkeys: boolean;
            passwordChange: components["schemas"]["PasswordChange"] | null;
            /** @description Organizations that want a second factor, which the person does not have. */
            secondFactorWanted: components["schemas"]["SecondFactorWanted"][];
            /** @description Whether no account exists yet. */
            setupRequired: boolean;
            /** @description Whether setup from this client needs the token from the server's log. */
            setupTokenRequired: boolean;
            /** @description Whether the visitor, who is signed out, can choose an identity provider. */
            sso: boolean;
            /** @description Whether a reverse proxy names the visitor, who is signed out, and may sign people in. */
            trustedHeaders: boolean;
            user: components["schemas"]["SessionUser"] | null;
            /** @description The release. */
            version: string;
        };
        /** @description What the deployment lays down about sessions. */
        SessionLimits: {
            /**
             * Format: int64
             * @description How long a session may be idle at most, in minutes; `null` when the operator set nothing. The policy
             *     `session_idle_timeout` can only shorten it.
             */
            deploymentMinutes: number | null;
        };
        /** @description A person, as far as their own browser needs it. */
        SessionUser: {
            /** @description Sign-in address. */
            email: string;
            /**
             * Format: uuid
             * @description The person.
             */
            id: string;
            /** @description Display name. */
            name: string;
        };
        /** @description Whether a directory provisions the organization. */
        SetProvisioningRequest: {
            enabled: boolean;
        };
        /** @description The first owner, signed in. */
        SetupDone: {
            organization: components["schemas"]["OrganizationSummary"];
            user: components["schemas"]["SessionUser"];
        };
        /** @description The first owner and the first organization. */
        SetupRequest: {
            /** @description The owner's address. */
            email: string;
            /** @description The owner's name. */
            name: string;
            /** @description The organization's name. */
            organizationName: string;
            /** @description The owner's password. */
            password: string;
            /** @description The token from the server's log; needed from another machine. */
            setupToken?: string | null;
        };
        /** @description The live link of a chat. Times are epoch milliseconds. */
        Share: {
            /** @description Whether the version on screen has other messages than the snapshot. */
            newer: boolean;
            /**
             * Format: int64
             * @description When the link was made.
             */
            sharedAt: number;
            /**
             * Format: int64
             * @description When its snapshot was taken, last.
             */
            takenAt: number;
            /** @description The last segment of `/dashboard/{org}/chat/shared/{shareToken}`. */
            token: string;
        };
        /** @description How to share. */
        ShareRequest: {
            /** @description Takes the snapshot of a chat that is shared already anew; its link stays. */
            includeNewer?: boolean;
        };
        /** @description Whether a chat is shared. */
        ShareStatus: {
            share: components["schemas"]["Share"] | null;
        };
        /** @description A shared chat, read-only. Times are epoch milliseconds. */
        SharedChat: {
            messages: components["schemas"]["SharedMessage"][];
            /** @description The name of the person who shares it. */
            sharedBy: string;
            /**
             * Format: int64
             * @description When the snapshot was taken.
             */
            takenAt: number;
            /** @description Its title when the snapshot was taken; `null` when it had none. */
            title: string | null;
        };
        /** @description A message of a snapshot. */
        SharedMessage: {
            /** Format: int64 */
            createdAt: number;
            parts: components["schemas"]["SharedPart"][];
            /** @enum {string} */
            role: "user" | "assistant";
            /** @enum {string} */
            status: "complete" | "cancelled" | "failed";
        };
        /** @description A piece of a shared message. */
        SharedPart: {
            text: string;
            /** @enum {string} */
            type: "text";
        } | {
            name: string;
            /** @enum {string} */
            type: "attachment";
        } | {
            /**
             * Format: int32
             * @description The number of the mark.
             */
            number: number;
            /**
             * Format: int32
             * @description The page the passage begins on, from 1, when the format has pages.
             */
            page?: number;
            /** @description Absent when the reader may not open the source. */
            source?: components["schemas"]["OpenSource"];
            title: string;
            /** @enum {string} */
            type: "citation";
        };
        /** @description What a right password leads to. */
        SignInAnswer: components["schemas"]["SignInDone"] | components["schemas"]["SecondFactorAsked"];
        /** @description A counter of failed sign-ins. */
        SignInBlock: {
            /**
             * Format: int64
             * @description Until when attempts are refused, in milliseconds since 1970; absent when they are not.
             */
            blockedUntil?: number;
            /** @description The member's address. */
            email: string;
            /**
             * Format: int32
             * @description Failures since the last success.
             */
            failures: number;
            kind: components["schemas"]["SignInBlockKind"];
            /** @description Whether the attempts came from a device that the member signed in on before. */
            knownDevice: boolean;
            /**
             * Format: int64
             * @description The last attempt, in milliseconds since 1970.
             */
            lastAt: number;
            /** @description The network the attempts came from, or its keyed hash; absent: all networks together, or a known device. */
            network?: string;
            /**
             * Format: uuid
             * @description The member.
             */
            userId: string;
        };
        /**
         * @description What was wrong: passwords, or codes of a second factor.
         * @enum {string}
         */
        SignInBlockKind: "password" | "secondFactor";
        /** @description Counters of failed sign-ins. */
        SignInBlocks: {
            blocks: components["schemas"]["SignInBlock"][];
        };
        /** @description A person, signed in. */
        SignInDone: {
            /** @description The page to show next. */
            redirect: string;
            user: components["schemas"]["SessionUser"];
        };
        /** @description The sign-in form. */
        SignInRequest: {
            /** @description Sign-in address. */
            email: string;
            /** @description Password. */
            password: string;
            /** @description Whether the sign-in outlives the browser; absent = yes. */
            rememberMe?: boolean | null;
        };
        /** @description An account without organization. */
        SignUpRequest: {
            /** @description Sign-in address. */
            email: string;
            /** @description Display name. */
            name: string;
            /** @description Password. */
            password: string;
            /** @description The token from the server's log; needed from another machine for the first account. */
            setupToken?: string | null;
        };
        /** @description A new account, signed in. */
        SignedUp: {
            user: components["schemas"]["SessionUser"];
        };
        /** @description What assertions are signed with. */
        SigningSecret: {
            /** @description The secret of HMAC-SHA256, as this text. */
            signingSecret: string;
        };
        /** @description A connection in the sign-in page. */
        SsoChoice: {
            displayName: string;
            /** Format: uuid */
            id: string;
        };
        /** @description Where the provider says what: paths of claims, with dots into nested ones; with SAML names of attributes. */
        SsoClaims: {
            email: string;
            groups: string;
            name: string;
            roles: string;
        };
        /** @description What the provider is, and what is made of its answers. */
        SsoConfig: {
            /** @description Whether the rules decide about roles, at each sign-in. */
            autoAssign: boolean;
            claims: components["schemas"]["SsoClaims"];
            /** @description Empty with SAML. */
            clientId: string;
            /** @description Groups that have nothing to do with teams, at most 200. */
            excludedGroups: string[];
            /**
             * @description The issuer, below which the discovery document is; with SAML the entity ID of the provider. With OAuth 2.0 it
             *     follows from the userinfo URL and the subject, whatever is sent.
             */
            issuer: string;
            oauth2?: components["schemas"]["SsoOAuth2"] | null;
            /**
             * @description Whether the provider sends browsers back to an address of the organization (`ownCallbacks`), and not to the one
             *     that all connections share (`callbacks`). Always off with SAML.
             */
            ownCallback?: boolean;
            protocol: components["schemas"]["SsoProtocol"];
            /** @description At most 100; the first that matches counts. */
            rules: components["schemas"]["SsoRule"][];
            saml?: components["schemas"]["SsoSaml"] | null;
            /** @description At most 30; `openid` is added, but not with OAuth 2.0. None with SAML. */
            scopes: string[];
            /** @description Whether people are put into the teams that their groups are called. */
            teamSync: boolean;
        };
        /** @description An organization's connection with its identity provider. */
        SsoConnection: {
            config: components["schemas"]["SsoConfig"] | null;
            defaultRole: components["schemas"]["AssertableRole"];
            displayName: string;
            domains: string[];
            enabled: boolean;
            /** @description Whether a client secret is stored, or with SAML a private key. */
            hasSecret: boolean;
            /** Format: uuid */
            id: string;
            /**
             * Format: int64
             * @description How many people log in with it and in no other way.
             */
            onlyWayOf: number;
        };
        /** @description A connection to save or to test. */
        SsoForm: {
            /** @description Absent: the one that is stored; empty: there is none. */
            clientSecret?: string | null;
            config: components["schemas"]["SsoConfig"];
            /** @description What people are whom no rule matches. */
            defaultRole: components["schemas"]["AssertableRole"];
            /** @description Shown in the sign-in page, to everybody. */
            displayName: string;
            /** @description Whose addresses sign in with it, at most 50; none = all. */
            domains: string[];
            /** @description Whether people sign in with it. */
            enabled: boolean;
            /**
             * @description With SAML: the private RSA key that assertions are encrypted for, as PEM. Absent: the one that is stored; empty:
             *     there is none.
             */
            spPrivateKey?: string | null;
        };
        /** @description What OAuth 2.0 needs beside what every provider has. */
        SsoOAuth2: {
            /** @description Where browsers are sent. It may have a query, without what every question says itself. */
            authorizationUrl: string;
            /** @description The path of whether the email address is known to be the person's. */
            emailVerified: string;
            /** @description Whether the client secret goes into the body of a request, and not into its header. */
            secretInBody: boolean;
            /**
             * @description The path of what the provider knows somebody by and gives to nobody else, a text or a whole number; empty: `sub`,
             *     else `id`.
             */
            subject: string;
            /** @description Where a code is exchanged. */
            tokenUrl: string;
            /** @description What says who the holder of a token is. */
            userInfoUrl: string;
        };
        /** @description The connections to choose from. */
        SsoOffer: {
            /** @description Whether there are others, which are found by an address. */
            byAddress: boolean;
            /** @description By name. */
            connections: components["schemas"]["SsoChoice"][];
        };
        /**
         * @description How the provider speaks: OpenID Connect, in general or as Microsoft Entra ID does, SAML 2.0, or OAuth 2.0 alone.
         * @enum {string}
         */
        SsoProtocol: "oidc" | "entra" | "saml" | "oauth2";
        /** @description People in whose claim the value stands have the role. */
        SsoRule: {
            /** @description `groups`, `roles`, or the path of any claim. */
            claim: string;
            role: components["schemas"]["AssertableRole"];
            value: string;
        };
        /** @description What SAML needs beside what every provider has. */
        SsoSaml: {
            /** @description What the provider signs with, as PEM, at most 10. */
            certificates: string[];
            /** @description Whether they must be encrypted, which needs a private key. */
            requireEncryptedAssertions: boolean;
            /** @description Whether assertions must be signed themselves, and not only the responses around them. */
            requireSignedAssertions: boolean;
            /** @description Where browsers are sent. */
            signOnUrl: string;
            /** @description What they are encrypted for, as PEM. It stands in the metadata of this Tale. */
            spCertificate: string | null;
        };
        /** @description The connection, and what to register at the provider. */
        SsoSettings: {
            /** @description The redirect addresses that all connections share, one for each address of this Tale. */
            callbacks: string[];
            connection: components["schemas"]["SsoConnection"] | null;
            /** @description Those of the organization alone, for a connection with `ownCallback`. */
            ownCallbacks: string[];
            /** @description The same for SAML. */
            saml: components["schemas"]["SamlRegistration"];
        };
        /** @description A step of a test. */
        SsoStep: {
            /** @description What is wrong, in English; `null` when nothing is. */
            detail: string | null;
            ok: boolean;
        };
        /** @description How far a test came. */
        SsoTest: {
            credentials: components["schemas"]["SsoStep"] | null;
            /** @description The discovery document; with SAML the sign-on address, with OAuth 2.0 the authorization URL. */
            discovery: components["schemas"]["SsoStep"];
            keys: components["schemas"]["SsoStep"] | null;
        };
        /**
         * @description How far a document is indexed.
         * @enum {string}
         */
        Status: "pending" | "queued" | "running" | "completed" | "failed" | "unsupported" | "skipped";
        /** @description The status report. */
        StatusReport: {
            /** @description When it was looked at (ISO 8601). */
            checkedAt: string;
            /** @description The components, always in this order. */
            components: components["schemas"]["Component"][];
            /** @description `operational`, `degraded` or `outage`. */
            status: string;
        };
        /** @description The reply that is being stopped. */
        Stopping: {
            messageId: components["schemas"]["MessageId"];
            status: string;
        };
        /** @description Where pages exchange files. */
        StoreOriginList: {
            origins: string[];
        };
        /** @description A subscription, without its secret. It acts in its agent runtime alone. */
        Subscription: {
            /** @description The vendor's id of the account of a pasted token. */
            accountId?: string;
            authMethod: components["schemas"]["SubscriptionMethod"];
            /** @description For `subscription-broker`. */
            broker?: components["schemas"]["Broker"];
            enabled: boolean;
            /** Format: uuid */
            id: string;
            /** @description First four and last two characters of the pasted token, or of the broker's stored secret. */
            masked?: string;
            /** @description The models of the plan; empty = all. */
            modelAllowlist: string[];
            /** @description Unique in the organization, among credentials too. */
            name: string;
            /** @description The variable that the agent runtime reads the token from. */
            targetEnvVar: string;
            /**
             * @description The variable that holds the broker's secret, while it is not set in the process that answers: the broker cannot be
             *     asked until it is.
             */
            unsetVariable?: string;
            /**
             * Format: int64
             * @description In epoch milliseconds.
             */
            updatedAt: number;
            /** Format: int64 */
            version: number;
        };
        /**
         * @description How the tokens of a plan are held.
         * @enum {string}
         */
        SubscriptionMethod: "subscription-key" | "subscription-broker";
        /** @description The agent runtime that uses a provider's subscriptions. */
        SubscriptionRuntime: {
            /** @description Its identifier. */
            harness: string;
            /** @description Its name. */
            label: string;
            /** @description How tokens may be held. */
            methods: components["schemas"]["SubscriptionMethod"][];
            /** @description The vendor's id of the account is needed beside a pasted token. */
            needsAccountId: boolean;
            /** @description Plans serve only a part of the models, which must be listed. */
            needsModels: boolean;
            /** @description The variables that it reads a token from, the usual one first. */
            targetEnvVars: string[];
        };
        /** @description A team. */
        Team: {
            /**
             * Format: int64
             * @description Since when, in epoch milliseconds.
             */
            createdAt: number;
            /** @description What it is for; may be empty. */
            description: string;
            id: components["schemas"]["TeamId"];
            /** @description Whether its name and its people are a directory's to change. */
            managed: boolean;
            /**
             * Format: int64
             * @description How many people are in it.
             */
            memberCount: number;
            /** @description Whether the caller is one of them. */
            mine: boolean;
            /** @description Unique in the organization, whatever its case and spaces. */
            name: string;
        };
        /** @description Members of the organization. */
        TeamAdditions: {
            /** @description At most 500. */
            userIds: components["schemas"]["UserId"][];
        };
        /** @description What changes; absent fields stay. */
        TeamChange: {
            /** @description Another description. */
            description?: string | null;
            /** @description Another name. */
            name?: string | null;
        };
        /** @description What the deletion of a team touches. */
        TeamDeletion: {
            /**
             * Format: int64
             * @description Live API keys of the team, which end with it.
             */
            apiKeys: number;
            /**
             * Format: int64
             * @description Usage limits of the team or of each of its members, which no longer apply.
             */
            limits: number;
            /**
             * Format: int64
             * @description People who lose the team and stay in the organization.
             */
            members: number;
            /**
             * Format: int64
             * @description Rules about models for the team, which no longer apply.
             */
            modelRules: number;
        };
        /**
         * Format: uuid
         * @description A team of an organization.
         */
        TeamId: string;
        /** @description Somebody in a team. */
        TeamMember: {
            /** @description Sign-in address. */
            email: string;
            /** @description Display name. */
            name: string;
            userId: components["schemas"]["UserId"];
        };
        /** @description Who is in a team. */
        TeamMembers: {
            members: components["schemas"]["TeamMember"][];
        };
        /** @description Every team. */
        Teams: {
            teams: components["schemas"]["Team"][];
        };
        /** @description What to test; the provider's first model and default credential when absent. */
        TestProviderRequest: {
            /** Format: uuid */
            credentialId?: string | null;
            model?: string | null;
        };
        /** @description A stretch of extracted text. */
        TextPart: {
            /**
             * Format: int64
             * @description Where the next stretch begins.
             */
            nextOffset: number | null;
            text: string;
            /**
             * Format: int64
             * @description Length of the whole text in Unicode scalar values.
             */
            totalLength: number;
        };
        /**
         * @description A theme of the interface.
         * @enum {string}
         */
        Theme: "light" | "dark" | "system";
        /** @description A chat. Times are epoch milliseconds. */
        Thread: {
            archived: boolean;
            /** Format: int64 */
            archivedAt: number | null;
            /** Format: int64 */
            createdAt: number;
            id: components["schemas"]["ThreadId"];
            /** Format: int64 */
            pinnedAt: number | null;
            /** @enum {string|null} */
            reasoningEffort: "low" | "medium" | "high" | "extra" | "max" | null;
            /** @description Whether a reply is being written. */
            running: boolean;
            /** @description Whether a link publishes a snapshot of it for the organization. */
            shared: boolean;
            /** @description `null` until it has one. */
            title: string | null;
            /** @description Whether a reply landed that its owner has not looked at. */
            unread: boolean;
            /**
             * Format: int64
             * @description Last message activity.
             */
            updatedAt: number;
        };
        /** @description The id of a new thread. */
        ThreadCreated: {
            id: components["schemas"]["ThreadId"];
        };
        /**
         * Format: uuid
         * @description A chat.
         */
        ThreadId: string;
        /** @description A page of chats. */
        ThreadPage: {
            continueCursor: string;
            isDone: boolean;
            page: components["schemas"]["Thread"][];
        };
        /** @description A page of threads. */
        ThreadsPage: {
            continueCursor: string;
            isDone: boolean;
            page: components["schemas"]["Thread"][];
        };
        /**
         * @description An interface of the OpenAI format other than chat completions.
         * @enum {string}
         */
        ToolApi: "responses";
        /** @description What an authenticator app needs to know. */
        TotpSetup: {
            /** @description The dark modules as the path of an SVG image that is `qrSize` wide and high, without a margin. */
            qrPath: string;
            /**
             * Format: int32
             * @description Modules on each side of the QR code of `uri`.
             */
            qrSize: number;
            /** @description The secret to type, in Base32. */
            secret: string;
            /** @description The same with its names, as apps read it. */
            uri: string;
        };
        /** @description A transcription model. */
        TranscriptionChoice: {
            model: string;
            providerSlug: string;
        };
        /** @description A transcription model that can be used. */
        TranscriptionModel: {
            displayName: string;
            model: string;
            providerName: string;
            providerSlug: string;
        };
        /** @description What transcribes, and what could. */
        TranscriptionSettings: {
            current: components["schemas"]["TranscriptionModel"] | null;
            models: components["schemas"]["TranscriptionModel"][];
            unavailable: components["schemas"]["TranscriptionChoice"] | null;
        };
        /** @description The switch and the ceiling. */
        TrustedHeaderSettings: {
            /** @description Off refuses every key and revokes none. */
            enabled: boolean;
            /** @description The highest role that a header can give. */
            maxAssertedRole: components["schemas"]["AssertableRole"];
        };
        /** @description What an organization allows a reverse proxy. */
        TrustedHeaders: {
            /** @description Whether its keys work. */
            enabled: boolean;
            /** @description The origins whose pages may show this organization in a frame. */
            frameOrigins: string[];
            headers: components["schemas"]["HeaderNames"];
            /** @description The live keys, newest first. */
            keys: components["schemas"]["TrustedKey"][];
            /** @description The highest role that a header can give. */
            maxAssertedRole: components["schemas"]["AssertableRole"];
        };
        /** @description A key of a reverse proxy. */
        TrustedKey: {
            /**
             * Format: int64
             * @description Milliseconds since 1970.
             */
            createdAt: number;
            /**
             * Format: uuid
             * @description The person who made it; `null` when their account is gone.
             */
            createdBy: string | null;
            /** Format: uuid */
            id: string;
            /**
             * Format: int64
             * @description Milliseconds since 1970; `null` when it never signed anybody in.
             */
            lastUsedAt: number | null;
            name: string;
            /** @description Whether it takes signed assertions only. */
            signedOnly: boolean;
            /** @description The first characters of the key. */
            tokenPrefix: string;
        };
        /** @description What a key takes. */
        TrustedKeyChange: {
            /** @description Whether it takes signed assertions only. */
            signedOnly: boolean;
        };
        /** @description How many notifications are unread. */
        UnreadNotifications: {
            /**
             * Format: int32
             * @description 100 stands for 100 and more.
             */
            unread: number;
        };
        /** @description Whether a link was ended. */
        Unshared: {
            /** @description `false` when the chat was private already. */
            ok: boolean;
        };
        /** @description A file in the folder of definitions that cannot be used. */
        UnusableFile: {
            /** @description Its name. */
            file: string;
            /** @description What is wrong with it. */
            reason: string;
        };
        /** @description Another display name. */
        UpdateAccountRequest: {
            /** @description 1 to 200 characters. */
            name: string;
        };
        /** @description What changes. */
        UpdateDocumentRequest: {
            /**
             * Format: int64
             * @description The `updatedAt` the change was made from.
             */
            expectedUpdatedAt?: number | null;
            /** @description Another title. */
            title?: string | null;
        };
        /** @description What changes; absent fields stay. */
        UpdateMemberRequest: {
            /** @description Whether the member has to replace that password before anything else. */
            mustChangePassword?: boolean;
            /** @description Another display name. */
            name?: string | null;
            /** @description Another password; ends the member's sessions. */
            password?: string | null;
            role?: components["schemas"]["Role"] | null;
        };
        /** @description What changes; at least one field. */
        UpdateThread: {
            archived?: boolean | null;
            /** @description 1–120 characters. */
            title?: string | null;
        };
        /**
         * @description What an upload is for.
         * @enum {string}
         */
        UploadPurpose: "document" | "chat";
        /** @description Where to put the bytes. */
        UploadSlot: {
            /**
             * Format: uuid
             * @description Names the upload when it is registered.
             */
            fileId: string;
            /** @description Headers to send exactly as given. */
            headers: {
                [key: string]: string;
            };
            /** @description `PUT`. */
            method: string;
            /** @description Send the bytes here, within an hour. */
            url: string;
        };
        /** @description Tokens of a whole turn. */
        Usage: {
            /**
             * Format: int64
             * @description The part of the input read from the provider's cache, when told.
             */
            cachedInputTokens?: number;
            /** @description Present when the figures are our estimate because the provider told none. */
            estimated?: boolean;
            /**
             * Format: int64
             * @description Tokens of all requests, cached ones included.
             */
            inputTokens: number;
            /**
             * Format: int64
             * @description Tokens of all answers, reasoning included.
             */
            outputTokens: number;
            /**
             * Format: int64
             * @description The part of the output spent on reasoning, when told.
             */
            reasoningTokens?: number;
            /** Format: int64 */
            totalTokens: number;
        };
        /** @description Amounts of use. */
        UsageAmounts: {
            /**
             * Format: int64
             * @description People who used something.
             */
            activeUsers: number;
            /**
             * Format: int64
             * @description The part of `inputTokens` that came from caches of the providers.
             */
            cachedTokens: number;
            /**
             * Format: double
             * @description In cents, exact to a ten-thousandth. The application's own record, not an invoice.
             */
            costCents: number;
            /** Format: int64 */
            inputTokens: number;
            /** Format: int64 */
            outputTokens: number;
            /** Format: int64 */
            requests: number;
            /**
             * Format: int64
             * @description Those of requests and answers together.
             */
            tokens: number;
            /**
             * Format: int64
             * @description Seconds of recordings.
             */
            units: number;
        };
        /** @description One group of a report. */
        UsageGroup: components["schemas"]["UsageAmounts"] & {
            /** @description The day, the model, the assistant, or the id of the person or key; `null`: what belongs to none. */
            key: string | null;
            /** @description The name of the person or key, while there is one. */
            name?: string;
        };
        /**
         * @description What a report is broken down by.
         * @enum {string}
         */
        UsageGroupBy: "day" | "week" | "month" | "model" | "agent" | "person" | "key";
        /** @description What the organization used. */
        UsageReport: {
            /**
             * Format: date
             * @description The first day.
             */
            from: string;
            groupBy: components["schemas"]["UsageGroupBy"];
            /** @description A course of time in its order, other groups the dearest first. What is empty is left out. */
            groups: components["schemas"]["UsageGroup"][];
            /**
             * Format: date
             * @description The last day.
             */
            to: string;
            totals: components["schemas"]["UsageAmounts"];
            /** @description Whether there are more groups than these 500. */
            truncated: boolean;
        };
        /**
         * Format: uuid
         * @description A person's account on this deployment.
         */
        UserId: string;
        /** @description The versions of a turn. */
        Versions: {
            count: number;
            /** @description The first message of each version. */
            ids: components["schemas"]["MessageId"][];
            /** @description Position of the version on screen, from 0. */
            index: number;
        };
    };
    responses: {
        /** @description The request must be corrected; `data.issues` names what is wrong. */
        BadRequest: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The state of the thing does not allow it. */
        Conflict: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Every other refusal or fault, such as 500 or 503. */
        Failed: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The caller may not do this. */
        Forbidden: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description There is no such thing, or it is not the caller's to see. */
        NotFound: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body is larger than this route accepts. */
        TooLarge: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Too many requests. `Retry-After` says when to try again. */
        TooMany: {
            headers: {
                /** @description Seconds to wait. */
                "Retry-After"?: number;
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description No valid key or session. */
        Unauthorized: {
            headers: {
                /** @description `Bearer`, for keys. */
                "WWW-Authenticate"?: string;
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description The version of this contract. */
        ApiVersion: string;
        /** @description Names this request in the server's log. A well-formed one that the client sent is kept. */
        RequestId: string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
