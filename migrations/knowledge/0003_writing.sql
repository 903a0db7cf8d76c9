-- What storing a passage costs. Its text is compressed when it is stored, which lz4 does in a
-- fraction of the time; a server that was built without it keeps what it has.
DO $$
BEGIN
    ALTER TABLE private_knowledge.chunks ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported OR invalid_parameter_value THEN
    NULL;
END
$$;

-- No statement could use it: passages wait for the vectors of one model, whatever vectors they have.
DROP INDEX private_knowledge.chunks_unembedded;

-- Checked per passage. Whoever stores passages holds the row of their document instead, and whoever
-- removes a document removes its passages in the same transaction.
ALTER TABLE private_knowledge.chunks DROP CONSTRAINT chunks_org_id_file_id_fkey;
