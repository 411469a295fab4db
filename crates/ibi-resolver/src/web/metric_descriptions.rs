//! The help texts of the metrics of a resolver.

use metrics::{describe_counter, describe_gauge};

/// Registers the help texts. The recorder must be installed.
pub(super) fn describe_metrics() {
    describe_counter!("ibi_resolutions_total", "Persistent URLs resolved, by status of the response.");
    describe_gauge!("ibi_archives", "Registered Archives, by status.");
    describe_gauge!("ibi_index_labels", "Labels in the location index.");
    describe_gauge!("ibi_index_age_seconds", "Age of the location index, by Archive; NaN: it is queried.");
    describe_gauge!("ibi_index_feed_lag_seconds", "Time since a feed was complete, by Archive; NaN: never.");
    describe_counter!("ibi_index_feed_failures_total", "Location feeds that could not be read.");
    describe_counter!("ibi_usage_counts_lost_total", "Redirects from the index that could not be counted.");
    describe_gauge!("ibi_alerts_open", "Open alerts: items whose Original several Archives claim.");
    describe_counter!("ibi_alerts_raised_total", "Alerts raised.");
    describe_counter!("ibi_acknowledgments_total", "Acknowledgments to Archives, by result.");
    describe_counter!("ibi_late_answers_dropped_total", "Rounds whose late answers were dropped: too many.");
    describe_counter!("ibi_archive_questions_refused_total", "Questions not asked, by Archive and reason.");
    describe_counter!("ibi_questions_joined_total", "Questions not asked: an equal one was under way.");
    describe_gauge!("ibi_archive_breaker", "1 for the state of the breaker, by Archive; 0 for the others.");
    describe_counter!("ibi_archive_breaker_opened_total", "How often an Archive was no longer asked.");
    describe_counter!("ibi_archive_failures_total", "Queries that an Archive did not answer, by Archive.");
}
