//! Search: both legs, their index, fusion and admission.

mod dense;
mod follow;
mod room;
mod words;
mod world;
