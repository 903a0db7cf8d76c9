-- Passwords that somebody else chose, which their people replace before anything else (PWD-6…8).
ALTER TABLE app.users
    ADD COLUMN must_change_password boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN app.users.must_change_password IS
    'Whether the password was chosen by an admin and has to be replaced by its owner; gone with every password that the owner chooses.';
