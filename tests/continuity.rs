//! Migrating existing collections: existing labels, plain trees, settings.

mod brought;
mod declared;
mod import;
mod plain_tree;
mod settings;

use std::fs;
use std::path::Path;

/// The item and the script of 001 §5.
const UTILITIES: &str = "dpi.inpe.br/banon/1998/08.02.08.56";
const OAI: &str = "iconet.com.br/banon/2003/11.21.21.08";

/// Writes a file of a tree, with the folders above it.
fn write(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// An `oai_dc` record that names an item.
fn record(title: &str, identifier: &str) -> String {
    format!(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>{title}</dc:title><dc:language>pt</dc:language>\
         <dc:identifier>{identifier}</dc:identifier></oai_dc:dc>"
    )
}
