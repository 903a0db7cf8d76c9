-- One plan for every batch: planning each anew cost more than a batch of ten calls, and none is ever better.
DO $$
BEGIN
    EXECUTE (
        SELECT format('ALTER FUNCTION %s SET plan_cache_mode = force_generic_plan', oid::regprocedure)
        FROM pg_proc WHERE pronamespace = 'app'::regnamespace AND proname = 'usage_journal'
    );
END;
$$;
