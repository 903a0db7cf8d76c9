//! Search: both legs, their index, fusion and admission.

mod damage;
mod dense;
mod follow;
mod room;
mod words;
mod world;
