-- Organizations that were deleted and whose data is still being removed.

ALTER TABLE app.organizations
    ADD COLUMN deleted_at timestamptz;
COMMENT ON COLUMN app.organizations.deleted_at IS
    'When its owner deleted it. It has no members from then on; the row goes last, when passages and bytes are gone (ORG-6).';
CREATE INDEX organizations_deleted ON app.organizations (deleted_at) WHERE deleted_at IS NOT NULL;
