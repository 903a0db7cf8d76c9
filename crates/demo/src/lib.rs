//! The demo model: a local stand-in for a language model that quotes the person's own documents.
//!
//! It exists so that the whole path of Tale (upload, search, streamed and cited answer) can be
//! tried without a key or a network. It is **not** a language model and says so. It speaks the real
//! OpenAI wire over a real socket, so the product has no special case for it beyond its label and
//! its address: [`serve`] runs it on a loopback port, and the models room reaches it like any other
//! provider.
//!
//! How it answers ([`answer`]): when the tool `rag_search` is on offer and has not been called for
//! this question, it calls it with the question's key words; when results are there, it quotes the
//! sentences that share most with the question, each with the citation mark of its passage; when
//! there are none, it says that. Greetings and questions about itself get a plain statement of what
//! it is. It answers in German, French or English, as the question is written.

mod answer;
mod language;
mod quote;
mod server;

pub use answer::{Answer, answer};
pub use language::Language;
pub use server::{MODEL_ID, serve};
