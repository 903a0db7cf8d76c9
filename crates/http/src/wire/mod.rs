//! Wire types that both doors share.

pub mod chat;
pub mod providers;
pub(crate) mod subscriptions;

use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

/// The schema of a text that is one of a few words.
pub(crate) fn one_of(words: &[&str]) -> Object {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).enum_values(Some(words.to_vec())).build()
}
