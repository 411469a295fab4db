//! Going on from what exists: existing labels, plain trees, settings.

mod brought;
mod settings;

/// An item of 001 §5.
const UTILITIES: &str = "dpi.inpe.br/banon/1998/08.02.08.56";
