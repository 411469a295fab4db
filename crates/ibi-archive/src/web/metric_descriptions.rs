//! The help texts of the metrics of an Archive.

use metrics::{describe_counter, describe_gauge};

/// Registers the help texts. The recorder must be installed.
pub(super) fn describe_metrics() {
    describe_counter!("ibi_labels_total", "Labels minted over the API.");
    describe_counter!("ibi_published_total", "Drafts published over the API.");
    describe_counter!("ibi_damaged_blocks_total", "Blocks of files that were damaged and not served.");
    describe_gauge!("ibi_journal_damaged", "1 if the journal is damaged and writes are disabled, else 0.");
    describe_gauge!("ibi_links_proposed", "Proposed links that await a decision.");
    describe_counter!("ibi_link_proposals_total", "Links received from other Archives, by status.");
    describe_gauge!("ibi_orphan_copies", "Copies whose Original no Archive claims.");
}
