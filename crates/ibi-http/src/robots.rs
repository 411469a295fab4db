//! Distinguishes robots from people by their `User-Agent`.

/// Words in the names of automated clients: those from the COUNTER list that cover whole families.
const ROBOT_AGENT_WORDS: [&str; 34] = [
    "bot",
    "crawl",
    "spider",
    "slurp",
    "archiver",
    "harvest",
    "fetch",
    "scan",
    "monitor",
    "checker",
    "validator",
    "curl",
    "wget",
    "libwww",
    "lwp",
    "python",
    "java/",
    "okhttp",
    "go-http-client",
    "axios",
    "node-fetch",
    "ruby",
    "perl",
    "httpclient",
    "http_request",
    "aria2",
    "headless",
    "phantom",
    "feed",
    "preview",
    "facebookexternalhit",
    "mediapartners",
    "zotero",
    "oai",
];

/// Whether a `User-Agent` is that of a robot or a program. A missing or empty one counts as a
/// robot.
pub fn is_robot(agent: Option<&str>) -> bool {
    let Some(agent) = agent.filter(|agent| !agent.trim().is_empty()) else { return true };
    let agent = agent.to_ascii_lowercase();
    ROBOT_AGENT_WORDS.iter().any(|word| agent.contains(word))
}

#[cfg(test)]
mod tests {
    #[test]
    fn robots_are_told_from_people() {
        let people = [
            "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0 Safari/537.36",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile Safari/604.1",
        ];
        let robots = [
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "curl/8.5.0",
            "python-requests/2.31",
            "Wget/1.21",
            "",
        ];
        assert!(people.iter().all(|agent| !super::is_robot(Some(agent))));
        assert!(robots.iter().all(|agent| super::is_robot(Some(agent))));
        assert!(super::is_robot(None));
    }
}
