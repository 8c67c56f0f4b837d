//! Addresses, placeholders and heads, each rule by itself.
//!
//! Pure: nothing here opens a connection.

use super::{AuthStyle, BaseUrl, KeyError, ProviderRoute, outgoing, take_keys, take_private};
use crate::http::head::{Headers, HttpVersion, RequestHead};
use crate::model::dialect::ModelDialect;
use crate::model::secret::ProviderKey;

fn headers(lines: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::default();
    for (name, value) in lines {
        headers.add(name, value.as_bytes());
    }
    headers
}

fn names(headers: &Headers) -> Vec<&str> {
    headers.0.iter().map(|line| line.name.as_str()).collect()
}

#[test]
fn a_request_arrives_where_the_clients_of_each_provider_would_send_it() {
    let check = |dialect: ModelDialect, table: &str| {
        for line in table.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [base, path, host, target] = words.as_slice() else {
                panic!("four words: {line}");
            };
            let base_url = BaseUrl::parse(base).expect(base);
            let request = dialect.request("POST", path).expect(path);
            let found = base_url.target(dialect, &request, "a=b");
            assert_eq!(found, format!("{target}?a=b"), "{line}");
            assert_eq!(base_url.authority(), *host, "{line}");
        }
    };
    check(
        ModelDialect::Anthropic,
        "https://api.anthropic.com     /v1/messages api.anthropic.com /v1/messages
         https://api.anthropic.com/v1/ /v1/messages api.anthropic.com /v1/messages
         https://a.test/anthropic      /v1/messages a.test            /anthropic/v1/messages
         http://[::1]:8080             /messages    [::1]:8080        /v1/messages",
    );
    check(
        ModelDialect::Chat,
        "https://api.openai.com/v1 /v1/chat/completions api.openai.com  /v1/chat/completions
         http://127.0.0.1:11434    /v1/chat/completions 127.0.0.1:11434 /v1/chat/completions
         https://g.test/openai/v1  /v1/chat/completions g.test   /openai/v1/chat/completions
         https://z.test/v4         /v1/chat/completions z.test          /v4/chat/completions
         https://a.test/openai     /chat/completions    a.test      /openai/chat/completions",
    );
    check(
        ModelDialect::Responses,
        "https://api.openai.com /v1/responses api.openai.com /v1/responses",
    );
    check(
        ModelDialect::Gemini,
        "https://g.test            /v1beta/models/g-2:countTokens g.test /v1beta/models/g-2:countTokens
         https://g.test:443/v1beta /v1beta/models/g-2:countTokens g.test /v1beta/models/g-2:countTokens
         https://g.test            /v1/models/g-2:countTokens     g.test /v1/models/g-2:countTokens",
    );
}

#[test]
fn texts_that_are_no_base_url() {
    for text in [
        "",
        "api.openai.com",
        "ftp://a.test",
        "https://",
        "https:///v1",
        "https://key@a.test",
        "https://a.test?x=y",
        "https://a.test/#x",
        "https://a.test:port",
        "https://a.test:0",
        "https://a.test:99999",
        "https://a.test:+80",
        "https://a.test/../x",
        "https://a.test//x",
        "https://[::1",
        "https://[::g]:80",
        "https://a b.test",
        "https://ä.test",
        "https://a.test\\@b.test",
    ] {
        assert!(BaseUrl::parse(text).is_err(), "{text}");
    }
    let error = BaseUrl::parse("https://sk-secret@a.test").expect_err("a key in it");
    assert!(!error.to_string().contains("sk-secret"), "{error}");
}

#[test]
fn only_the_placeholder_opens_the_gateway() {
    let check = |lines: &[(&str, &str)], query: &str, expected: Result<&str, KeyError>| {
        let mut headers = headers(lines);
        let taken = take_keys(&mut headers, query, "kapi-run-1");
        assert_eq!(taken, expected.map(str::to_owned), "{lines:?} {query}");
        if taken.is_ok() {
            assert_eq!(names(&headers), ["accept"], "{lines:?}");
        }
    };
    let accept = ("accept", "*/*");
    check(&[accept, ("x-api-key", "kapi-run-1")], "", Ok(""));
    check(
        &[accept, ("X-API-KEY", "kapi-run-1")],
        "beta=true",
        Ok("beta=true"),
    );
    check(
        &[accept, ("authorization", "Bearer kapi-run-1")],
        "",
        Ok(""),
    );
    check(
        &[accept, ("Authorization", "bearer  kapi-run-1")],
        "",
        Ok(""),
    );
    check(
        &[accept, ("x-goog-api-key", "kapi-run-1")],
        "alt=sse",
        Ok("alt=sse"),
    );
    check(&[accept], "alt=sse&key=kapi-run-1", Ok("alt=sse"));
    let both = [
        accept,
        ("x-api-key", "kapi-run-1"),
        ("authorization", "Bearer kapi-run-1"),
    ];
    check(&both, "key=kapi-run-1", Ok(""));
    check(&[accept], "", Err(KeyError::Missing));
    check(&[accept], "beta=true", Err(KeyError::Missing));
    let foreign = Err(KeyError::Foreign);
    check(&[accept, ("x-api-key", "sk-other")], "", foreign);
    check(&[accept, ("x-api-key", "")], "", foreign);
    check(
        &[accept, ("authorization", "Basic kapi-run-1")],
        "",
        foreign,
    );
    check(
        &[accept, ("x-api-key", "kapi-run-1"), ("x-api-key", "sk-o")],
        "",
        foreign,
    );
    check(
        &[
            accept,
            ("x-api-key", "kapi-run-1"),
            ("authorization", "Bearer sk-o"),
        ],
        "",
        foreign,
    );
    check(
        &[accept, ("x-api-key", "kapi-run-1"), ("api-key", "sk-o")],
        "",
        foreign,
    );
    check(
        &[accept, ("x-api-key", "kapi-run-1")],
        "key=sk-other",
        foreign,
    );
    check(
        &[accept, ("x-api-key", "kapi-run-1")],
        "k%65y=sk-other",
        foreign,
    );
    check(
        &[accept, ("x-api-key", "kapi-run-1")],
        "key=kapi-run-1&key=x",
        foreign,
    );
}

#[test]
fn the_provider_gets_its_key_and_nothing_private() {
    let mut lines = headers(&[
        ("Host", "127.0.0.1:1"),
        ("Connection", "keep-alive, x-hop"),
        ("x-hop", "1"),
        ("Cookie", "a=b"),
        ("Proxy-Authorization", "Basic x"),
        ("Accept-Encoding", "gzip"),
        ("X-Forwarded-For", "10.0.0.1"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("X-Goog-FieldMask", "candidates"),
        ("anthropic-beta", "one"),
        ("Content-Type", "application/json"),
        ("Content-Length", "3"),
    ]);
    take_private(&mut lines);
    assert_eq!(names(&lines), ["anthropic-beta", "Content-Type"]);
    let check = |auth: AuthStyle, expected: Option<(&str, &str)>| {
        let upstream = ProviderRoute {
            base_url: BaseUrl::parse("https://a.test").expect("a URL"),
            dialect: ModelDialect::Anthropic,
            auth,
            key: Some(ProviderKey::parse("sk-real").expect("a key")),
        };
        assert!(!format!("{upstream:?}").contains("sk-real"));
        let head = RequestHead {
            method: "POST".to_owned(),
            target: "/v1/messages".to_owned(),
            version: HttpVersion::Http10,
            headers: lines.clone(),
        };
        let sent = outgoing(&upstream, &head, "/v1/messages".to_owned(), 7);
        let mut wanted = headers(&[
            ("host", "a.test"),
            ("anthropic-beta", "one"),
            ("Content-Type", "application/json"),
            ("accept-encoding", "identity"),
        ]);
        if let Some((name, value)) = expected {
            wanted.add(name, value.as_bytes());
        }
        wanted.add("content-length", b"7");
        assert_eq!((sent.version, sent.headers), (HttpVersion::Http11, wanted));
    };
    check(AuthStyle::XApiKey, Some(("x-api-key", "sk-real")));
    check(AuthStyle::Bearer, Some(("authorization", "Bearer sk-real")));
    check(AuthStyle::XGoogApiKey, Some(("x-goog-api-key", "sk-real")));
    check(AuthStyle::None, None);
}
