//! Plain HTTP/1 as far as a proxy between distrustful ends needs it.
//!
//! Written by hand, because it must refuse what libraries forgive: a message that two readers could
//! divide differently is how requests are smuggled past a judgement.

pub(crate) mod body;
pub(crate) mod forward;
pub(crate) mod head;
pub(crate) mod refusal;
pub(crate) mod target;
