-- Keys of a team have no person: what they use counts toward the team's limit beside what its members use (KEY-14). A
-- gate that names a team sums over both; the rest of the function is as it was.

CREATE OR REPLACE FUNCTION app.usage_hold(p_owner uuid, p_stripe smallint, p_now timestamptz, p_gates jsonb, p_charges jsonb)
RETURNS TABLE (granted bigint[], taken bigint[])
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    v_lock  bigint;
    v_one   record;
    v_grant bigint[];
    v_taken bigint[];
    v_value bigint;
    v_all   uuid[] := ARRAY(SELECT (x ->> 'id')::uuid FROM jsonb_array_elements(p_charges) AS x);
    v_ids   uuid[] := '{}';
    v_t     bigint[] := '{}';
    v_c     bigint[] := '{}';
    v_r     bigint[] := '{}';
    v_tok   bigint[] := '{}';
    v_cost  bigint[] := '{}';
    v_req   bigint[] := '{}';
    g       integer;
BEGIN
    IF jsonb_array_length(p_gates) > 0 THEN
        FOR v_lock IN
            SELECT DISTINCT hashtextextended(org::text || '/' || holder, 1797) AS key
            FROM jsonb_to_recordset(p_gates) AS x(org uuid, holder text) ORDER BY key
        LOOP
            PERFORM pg_advisory_xact_lock(v_lock);
        END LOOP;
        SELECT array_agg(t ORDER BY gate), array_agg(c ORDER BY gate), array_agg(r ORDER BY gate)
        INTO v_tok, v_cost, v_req
        FROM (
            SELECT x.gate, coalesce(sum(n.used_tokens + n.held_tokens), 0)::bigint AS t,
                   coalesce(sum(n.used_cost_micro_usd + n.held_cost_micro_usd), 0)::bigint AS c,
                   coalesce(sum(n.used_requests + n.held_requests), 0)::bigint AS r
            FROM jsonb_to_recordset(p_gates) AS x(gate integer, org uuid, holder text, first date, last date, source text, team uuid)
            LEFT JOIN app.usage_counters n
              ON n.org_id = x.org AND n.holder = x.holder AND n.day BETWEEN x.first AND x.last
            WHERE x.source IS NULL AND x.team IS NULL
            GROUP BY x.gate
            UNION ALL
            SELECT x.gate, coalesce(sum(n.used_tokens + n.held_tokens), 0)::bigint,
                   coalesce(sum(n.used_cost_micro_usd + n.held_cost_micro_usd), 0)::bigint,
                   coalesce(sum(n.used_requests + n.held_requests), 0)::bigint
            FROM jsonb_to_recordset(p_gates) AS x(gate integer, org uuid, first date, last date, team uuid)
            LEFT JOIN LATERAL (
                SELECT 'user:' || m.user_id AS holder FROM app.team_members m WHERE m.org_id = x.org AND m.team_id = x.team
                UNION ALL
                SELECT 'key:' || k.id FROM app.api_keys k WHERE k.org_id = x.org AND k.team_id = x.team
            ) h ON true
            LEFT JOIN app.usage_counters n
              ON n.org_id = x.org AND n.holder = h.holder AND n.day BETWEEN x.first AND x.last
            WHERE x.team IS NOT NULL
            GROUP BY x.gate
            UNION ALL
            SELECT x.gate, 0, 0, coalesce(sum(h.requests), 0)::bigint
            FROM jsonb_to_recordset(p_gates) AS x(gate integer, org uuid, source text, "user" uuid, key uuid, over uuid[])
            LEFT JOIN LATERAL (
                SELECT u.id, u.source, u.kept_at, u.requests FROM app.usage_holds u
                WHERE u.org_id = x.org AND u.user_id = x."user"
                UNION ALL
                SELECT k.id, k.source, k.kept_at, k.requests FROM app.usage_holds k
                WHERE k.org_id = x.org AND k.api_key_id = x.key
            ) h ON h.source = x.source AND h.kept_at > p_now - interval '150 seconds' AND h.id <> ALL (x.over)
            WHERE x.source IS NOT NULL
            GROUP BY x.gate
        ) sums;
    END IF;

    FOR v_one IN
        SELECT x.*, coalesce(h.tokens, 0) AS old_t, coalesce(h.cost_micro_usd, 0) AS old_c, coalesce(h.requests, 0) AS old_r
        FROM jsonb_to_recordset(p_charges) AS x(n integer, id uuid, org uuid, gates integer[], cap_gates integer[],
            cap_kinds integer[], cap_limits bigint[], need bigint[], want bigint[])
        LEFT JOIN app.usage_holds h ON h.org_id = x.org AND h.id = x.id AND h.id = ANY (v_all)
        ORDER BY x.n
    LOOP
        v_grant := v_one.want;
        v_taken := '{}';
        FOR i IN 1 .. coalesce(array_length(v_one.cap_gates, 1), 0) LOOP
            g := v_one.cap_gates[i];
            v_value := CASE v_one.cap_kinds[i]
                WHEN 1 THEN v_tok[g] - v_one.old_t
                WHEN 2 THEN v_cost[g] - v_one.old_c
                ELSE v_req[g] - v_one.old_r END;
            v_taken := v_taken || v_value;
            IF v_value + v_one.need[v_one.cap_kinds[i]] > v_one.cap_limits[i] THEN
                v_grant := NULL;
            ELSIF v_grant IS NOT NULL THEN
                v_grant[v_one.cap_kinds[i]] := least(v_grant[v_one.cap_kinds[i]], v_one.cap_limits[i] - v_value);
            END IF;
        END LOOP;
        IF v_grant IS NOT NULL THEN
            FOREACH g IN ARRAY v_one.gates LOOP
                v_tok[g] := v_tok[g] + v_grant[1] - v_one.old_t;
                v_cost[g] := v_cost[g] + v_grant[2] - v_one.old_c;
                v_req[g] := v_req[g] + v_grant[3] - v_one.old_r;
            END LOOP;
            v_ids := v_ids || v_one.id;
            v_t := v_t || v_grant[1];
            v_c := v_c || v_grant[2];
            v_r := v_r || v_grant[3];
        END IF;
        granted := v_grant;
        taken := v_taken;
        RETURN NEXT;
    END LOOP;

    WITH admitted AS (
        SELECT x.*, a.t, a.c, a.r, coalesce(h.stripe, p_stripe) AS place,
               a.t - coalesce(h.tokens, 0) AS more_t, a.c - coalesce(h.cost_micro_usd, 0) AS more_c,
               a.r - coalesce(h.requests, 0) AS more_r
        FROM jsonb_to_recordset(p_charges) AS x(id uuid, org uuid, "user" uuid, key uuid, source text, provider text,
            model text, at timestamptz, day date, holders text[], floor bigint[])
        JOIN unnest(v_ids, v_t, v_c, v_r) AS a(id, t, c, r) ON a.id = x.id
        LEFT JOIN app.usage_holds h ON h.org_id = x.org AND h.id = x.id AND h.id = ANY (v_all)
    ),
    held AS (
        INSERT INTO app.usage_holds (id, org_id, owner, user_id, api_key_id, source, provider_slug, model, admitted_at, day,
            kept_at, stripe, tokens, cost_micro_usd, requests, floor_input, floor_output, floor_cached, floor_units, floor_cost)
        SELECT id, org, p_owner, "user", key, source, provider, model, at, day, p_now, place, t, c, r,
               floor[1], floor[2], floor[3], floor[4], floor[5]
        FROM admitted ORDER BY id
        ON CONFLICT (id) DO UPDATE SET tokens = excluded.tokens, cost_micro_usd = excluded.cost_micro_usd,
            requests = excluded.requests, kept_at = excluded.kept_at, floor_input = excluded.floor_input,
            floor_output = excluded.floor_output, floor_cached = excluded.floor_cached,
            floor_units = excluded.floor_units, floor_cost = excluded.floor_cost
    )
    INSERT INTO app.usage_counters AS n (org_id, holder, day, stripe, used_tokens, used_cost_micro_usd, used_requests,
        held_tokens, held_cost_micro_usd, held_requests)
    SELECT org, holder, day, place, 0, 0, 0, sum(more_t), sum(more_c), sum(more_r)
    FROM admitted CROSS JOIN LATERAL unnest(holders) AS holder
    GROUP BY org, holder, day, place ORDER BY org, holder, day, place
    ON CONFLICT (org_id, holder, day, stripe) DO UPDATE SET
        held_tokens = n.held_tokens + excluded.held_tokens,
        held_cost_micro_usd = n.held_cost_micro_usd + excluded.held_cost_micro_usd,
        held_requests = n.held_requests + excluded.held_requests;
END;
$$;
