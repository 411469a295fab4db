//! Untrusted text in error messages.

/// The beginning of an untrusted text for an error message, with terminal controls escaped.
pub fn quote_untrusted(text: &str) -> String {
    truncate_untrusted(text, 60)
}

/// At most `most` characters of an untrusted text, with terminal controls escaped.
pub fn truncate_untrusted(text: &str, most: usize) -> String {
    let mut quoted = String::new();
    for (count, c) in text.chars().enumerate() {
        match c {
            _ if count == most => {
                quoted.push('…');
                break;
            }
            _ if is_terminal_control(c) => quoted.extend(c.escape_default()),
            _ => quoted.push(c),
        }
    }
    quoted
}

/// Control characters, and characters that change the writing direction or have no width.
pub fn is_terminal_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_truncated_and_terminal_controls_are_escaped() {
        assert_eq!(quote_untrusted("São José"), "São José");
        assert_eq!(quote_untrusted("a\r\n\u{1b}[2J\u{202e}"), "a\\r\\n\\u{1b}[2J\\u{202e}");
        assert_eq!(quote_untrusted(&"é".repeat(60)), "é".repeat(60));
        assert_eq!(quote_untrusted(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
    }
}
