//! Room of the Tale workspace.
