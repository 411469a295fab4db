//! The resolvers that follow this Archive. Each gets a token of its own when the Archive registers
//! there (3.3), new at every start; only its digest is kept, and only in memory.

use std::sync::{PoisonError, RwLock};

use axum::http::{HeaderMap, header};
use ibi_http::Problem;

/// The resolvers and their tokens.
#[derive(Debug, Default)]
pub struct ResolverFollowers(RwLock<Vec<(String, blake3::Hash)>>);

impl ResolverFollowers {
    /// Creates the token of a resolver, replacing its previous one.
    pub fn issue(&self, resolver: &str) -> Result<String, getrandom::Error> {
        let mut random = [0; 24];
        getrandom::fill(&mut random)?;
        let token = format!("follow-{}", ibi_store::digests::hex(&random));
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(other, _)| other != resolver);
        known.push((resolver.to_owned(), blake3::hash(token.as_bytes())));
        Ok(token)
    }

    /// The resolver whose token a request has.
    pub fn authorize(&self, headers: &HeaderMap) -> Result<String, Problem> {
        let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        let digest = blake3::hash(token.as_bytes());
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // Hashes are compared in constant time.
        known.iter().find(|(_, own)| *own == digest).map(|(resolver, _)| resolver.clone()).ok_or_else(|| {
            Problem::unauthorized("only a resolver that this Archive is registered with may follow it")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resolver_has_a_token_and_the_last_one_counts() {
        let followers = ResolverFollowers::default();
        let first = followers.issue("http://a/").unwrap();
        let second = followers.issue("http://a/").unwrap();
        let other = followers.issue("http://b/").unwrap();
        let ask = |token: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
            followers.authorize(&headers).ok()
        };
        assert_eq!(ask(&first), None, "replaced");
        assert_eq!(ask(&second).as_deref(), Some("http://a/"));
        assert_eq!(ask(&other).as_deref(), Some("http://b/"));
        assert_eq!(ask(""), None);
        assert!(followers.authorize(&HeaderMap::new()).is_err());
    }
}
