//! Going on from what exists: existing labels, plain trees, settings.

mod brought;
mod plain_tree;
mod settings;

/// The item and the script of 001 §5.
const UTILITIES: &str = "dpi.inpe.br/banon/1998/08.02.08.56";
const OAI: &str = "iconet.com.br/banon/2003/11.21.21.08";
