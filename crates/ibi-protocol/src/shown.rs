//! Text of strangers in errors.

/// A word or two for an error: the beginning of it, with what would steer a terminal escaped.
pub fn shown(text: &str) -> String {
    cut(text, 60)
}

/// At most so many characters of a text, with what would steer a terminal escaped.
pub fn cut(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        match c {
            _ if count == most => {
                shown.push('…');
                break;
            }
            _ if steers(c) => shown.extend(c.escape_default()),
            _ => shown.push(c),
        }
    }
    shown
}

/// Control characters, and those that turn the direction of writing or have no width.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_and_what_steers_is_escaped() {
        assert_eq!(shown("São José"), "São José");
        assert_eq!(shown("a\r\n\u{1b}[2J\u{202e}"), "a\\r\\n\\u{1b}[2J\\u{202e}");
        assert_eq!(shown(&"é".repeat(60)), "é".repeat(60));
        assert_eq!(shown(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
    }
}
