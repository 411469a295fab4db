//! Parses `robots.txt` (RFC 9309).

/// Limit on the rules that are read.
const MAX_ROBOTS_RULES: usize = 10_000;

/// The rules of a server. Without any, everything is allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RobotsTxt {
    groups: Vec<RobotsGroup>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RobotsGroup {
    /// The user agents that it applies to, in lower case.
    agents: Vec<String>,
    rules: Vec<RobotsRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RobotsRule {
    allow: bool,
    pattern: String,
}

impl RobotsTxt {
    /// Parses a file. Unknown lines are ignored.
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut groups: Vec<RobotsGroup> = Vec::new();
        let mut rules = 0;
        for line in text.split(['\n', '\r']) {
            let line = line.split('#').next().unwrap_or_default();
            let Some((name, value)) = line.split_once(':') else { continue };
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            match name.as_str() {
                "user-agent" => {
                    let agent = value.to_ascii_lowercase();
                    rules += 1;
                    match groups.last_mut().filter(|group| group.rules.is_empty()) {
                        Some(group) => group.agents.push(agent),
                        None => groups.push(RobotsGroup { agents: vec![agent], rules: Vec::new() }),
                    }
                }
                "allow" | "disallow" => {
                    rules += 1;
                    if let Some(group) = groups.last_mut() {
                        group.rules.push(RobotsRule { allow: name == "allow", pattern: value.to_owned() });
                    }
                }
                _ => {}
            }
            if rules >= MAX_ROBOTS_RULES {
                break;
            }
        }
        Self { groups }
    }

    /// Whether a user agent may request a path: the longest matching rule decides; of two of the
    /// same length, the one that allows.
    pub fn allows(&self, agent: &str, path: &str) -> bool {
        let agent = agent.to_ascii_lowercase();
        let mut own = self.groups.iter().filter(|group| group.agents.contains(&agent)).peekable();
        let all = self.groups.iter().filter(|group| group.agents.iter().any(|agent| agent == "*"));
        let groups: Vec<&RobotsGroup> = if own.peek().is_some() { own.collect() } else { all.collect() };
        let rules = groups.into_iter().flat_map(|group| &group.rules);
        let fitting = rules.filter(|rule| !rule.pattern.is_empty() && pattern_matches(&rule.pattern, path));
        fitting.max_by_key(|rule| (rule.pattern.len(), rule.allow)).is_none_or(|rule| rule.allow)
    }
}

/// Whether a pattern matches the beginning of a path; `*` matches anything, a final `$` the end.
/// Takes time proportional to the product of both lengths at most.
fn pattern_matches(pattern: &str, path: &str) -> bool {
    let (pattern, whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if whole && parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    !whole || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_9309_the_own_group_and_the_longest_rule() {
        let robots = RobotsTxt::parse(
            b"\xef\xbb\xbf# all\nUser-Agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /*.cgi$\n\n\
              user-agent: other\r\nuser-agent: IBI-links-check\nDisallow: /wms?\nDisallow:\nnonsense\n",
        );
        for (agent, path, allowed) in [
            ("somebody", "/", true),
            ("somebody", "/private/x", false),
            ("somebody", "/private/open/x", true),
            ("somebody", "/a/b.cgi", false),
            ("somebody", "/a/b.cgi?x", true),
            ("ibi-links-check", "/private/x", true),
            ("ibi-links-check", "/wms?service=WMS", false),
            ("other", "/wms?", false),
        ] {
            assert_eq!(robots.allows(agent, path), allowed, "{agent} {path}");
        }
        assert!(RobotsTxt::parse(b"<html>").allows("x", "/"));
        assert!(RobotsTxt::parse(b"Disallow: /").allows("x", "/"), "rules of nobody");
        assert!(!RobotsTxt::parse(b"user-agent: *\ndisallow: /").allows("x", "/"));
        assert!(RobotsTxt::default().allows("x", "/"));
    }

    #[test]
    fn it_is_bounded() {
        let many = "user-agent: *\n".repeat(3 * MAX_ROBOTS_RULES);
        let groups = RobotsTxt::parse(many.as_bytes()).groups;
        assert!(groups.iter().map(|group| group.agents.len()).sum::<usize>() <= MAX_ROBOTS_RULES);
        // Neither stars nor repetitions make it slow.
        assert!(!pattern_matches(&format!("/{}b$", "*a".repeat(1000)), &format!("/{}", "a".repeat(10_000))));
    }
}
