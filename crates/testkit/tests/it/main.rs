//! The test kit's own tests and the checks that hold for the whole workspace.

mod database;
