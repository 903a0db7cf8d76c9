//! PDF.
use std::fs::File;

use crate::outcome::Halt;
use crate::sink::Out;

pub(crate) fn extract(_file: File, _out: &mut Out<'_>) -> Result<(), Halt> {
    crate::outcome::malformed("PDF files cannot be read yet.")
}
