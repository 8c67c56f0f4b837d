//! What a run may reach, decided before anything is looked up or dialled.
//!
//! Pure: the same question has the same answer. Where a name leads is judged later, by
//! [`super::address`], as far as the rule found here reaches.

use super::address::{AddressClass, AddressReach, classify};
use super::host::{HostEndpoint, TargetHost};
use super::rule::{EgressRule, RuleMismatch};

/// How much network a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressMode {
    /// No connections.
    None,
    /// Connections that a rule allows.
    Filtered,
    /// Every public address; private ones still need their rule.
    Open,
}

/// A run's mode and the person's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressPolicy {
    /// How much network.
    pub mode: EgressMode,
    /// What is allowed, in any order.
    pub rules: Vec<EgressRule>,
}

/// What a sandbox asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressTarget {
    /// Host and port.
    pub endpoint: HostEndpoint,
    /// The request, where it can be seen; a tunnel has none.
    pub request: Option<PlainRequest>,
}

/// A plain HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainRequest {
    /// Its method.
    pub method: String,
    /// Its path without the query.
    pub path: String,
}

/// A policy's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EgressDecision {
    /// The connection may be made, to the addresses that the rule reaches.
    Allow(Permit),
    /// The connection is refused.
    Deny(Denial),
}

/// Why something is allowed, and how far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// The rule's text.
    pub rule: String,
    /// Which addresses it may lead to.
    pub reach: AddressReach,
}

/// Why something is denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The run has no network.
    #[error("this run has no network")]
    NoNetwork,
    /// No rule names the host.
    #[error("no rule allows {endpoint}")]
    Host {
        /// What was asked for.
        endpoint: HostEndpoint,
    },
    /// Rules name other ports of the host.
    #[error("no rule allows port {} of {}", .endpoint.port, .endpoint.host)]
    Port {
        /// What was asked for.
        endpoint: HostEndpoint,
    },
    /// Rules allow other requests to the host.
    #[error("the rules for {endpoint} allow only some plain HTTP requests, and not {asked}")]
    Request {
        /// What was asked for.
        endpoint: HostEndpoint,
        /// The request, or that it is a tunnel.
        asked: String,
    },
    /// A path rule cannot judge the path.
    #[error("the path of the request to {endpoint} is ambiguous")]
    UnclearPath {
        /// What was asked for.
        endpoint: HostEndpoint,
    },
}

impl Denial {
    /// Returns the rule that would allow it, if one would.
    #[must_use]
    pub fn missing_rule(&self) -> Option<String> {
        match self {
            Self::NoNetwork | Self::UnclearPath { .. } => None,
            Self::Host { endpoint } | Self::Port { endpoint } | Self::Request { endpoint, .. } => {
                rule_for(endpoint)
            }
        }
    }
}

/// Returns the rule for one endpoint, private where the endpoint itself says that it must be.
fn rule_for(endpoint: &HostEndpoint) -> Option<String> {
    let class = match &endpoint.host {
        TargetHost::Address(address) => classify(*address),
        TargetHost::Name(name) if name == "localhost" || name.ends_with(".localhost") => {
            AddressClass::Loopback
        }
        TargetHost::Name(_) => AddressClass::Public,
    };
    if class != AddressClass::Public {
        let reachable = AddressReach::PrivateByAddress.covers(class);
        return reachable.then(|| format!("private:{endpoint}"));
    }
    Some(if endpoint.port == 443 {
        endpoint.host.to_string()
    } else {
        endpoint.to_string()
    })
}

impl EgressPolicy {
    /// Decides about a target.
    #[must_use]
    pub fn decide(&self, target: &EgressTarget) -> EgressDecision {
        let HostEndpoint { host, port } = &target.endpoint;
        let request = target
            .request
            .as_ref()
            .map(|request| (request.method.as_str(), request.path.as_str()));
        if self.mode == EgressMode::None {
            return EgressDecision::Deny(Denial::NoNetwork);
        }
        let fits = || {
            self.rules
                .iter()
                .map(|rule| (rule.fit(host, *port, request), rule))
        };
        let best = fits()
            .filter(|(fit, _)| *fit == RuleMismatch::Whole)
            .map(|(_, rule)| Permit {
                rule: rule.text().to_owned(),
                reach: rule.reach(),
            })
            .reduce(|best, next| if next.reach > best.reach { next } else { best });
        match (best, self.mode) {
            (Some(permit), _) => EgressDecision::Allow(permit),
            (None, EgressMode::Open) => EgressDecision::Allow(Permit {
                rule: "open".to_owned(),
                reach: AddressReach::Public,
            }),
            (None, EgressMode::None | EgressMode::Filtered) => {
                let closest = fits()
                    .map(|(fit, _)| fit)
                    .max()
                    .unwrap_or(RuleMismatch::OtherHost);
                EgressDecision::Deny(denial(target, closest))
            }
        }
    }
}

fn denial(target: &EgressTarget, closest: RuleMismatch) -> Denial {
    let endpoint = target.endpoint.clone();
    match closest {
        RuleMismatch::OtherHost => Denial::Host { endpoint },
        RuleMismatch::OtherPort => Denial::Port { endpoint },
        RuleMismatch::UnclearPath => Denial::UnclearPath { endpoint },
        RuleMismatch::OtherRequest | RuleMismatch::Whole => Denial::Request {
            endpoint,
            asked: target.request.as_ref().map_or_else(
                || "a tunnel".to_owned(),
                |request| format!("{} {}", request.method, request.path),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{EgressDecision, EgressMode, EgressPolicy, EgressTarget, PlainRequest};
    use crate::egress::address::AddressReach;
    use crate::egress::host::HostEndpoint;
    use crate::egress::rule::{EgressRule, RuleProblem};

    fn decide(mode: EgressMode, rules: &[&str], wanted: &str) -> EgressDecision {
        let rules = rules
            .iter()
            .map(|text| EgressRule::parse(text).expect("a rule"))
            .collect();
        let (request, authority) = match wanted.split_once(' ') {
            None => (None, wanted),
            Some((method, rest)) => {
                let (authority, path) = rest.split_once('/').expect("a path");
                let request = PlainRequest {
                    method: method.to_owned(),
                    path: format!("/{path}"),
                };
                (Some(request), authority)
            }
        };
        let endpoint = HostEndpoint::parse(authority, None).expect("an endpoint");
        EgressPolicy { mode, rules }.decide(&EgressTarget { endpoint, request })
    }

    fn check(rules: &[&str], wanted: &str, expected: &str) {
        let found = match decide(EgressMode::Filtered, rules, wanted) {
            EgressDecision::Allow(permit) => format!("allowed by {}", permit.rule),
            EgressDecision::Deny(denial) => denial.to_string(),
        };
        assert_eq!(found, expected, "{wanted}");
    }

    #[test]
    fn a_host_rule_is_port_443_of_that_host_alone() {
        let rules = ["github.com"];
        check(&rules, "github.com:443", "allowed by github.com");
        check(&rules, "GITHUB.com.:443", "allowed by github.com");
        check(
            &rules,
            "evilgithub.com:443",
            "no rule allows evilgithub.com:443",
        );
        check(
            &rules,
            "api.github.com:443",
            "no rule allows api.github.com:443",
        );
        check(
            &rules,
            "github.com.evil.test:443",
            "no rule allows github.com.evil.test:443",
        );
        check(
            &rules,
            "github.com:80",
            "no rule allows port 80 of github.com",
        );
        check(
            &rules,
            "github.com:22",
            "no rule allows port 22 of github.com",
        );
        check(
            &rules,
            "140.82.121.4:443",
            "no rule allows 140.82.121.4:443",
        );
    }

    #[test]
    fn a_star_is_whole_labels_and_not_the_apex() {
        let rules = ["*.example.org"];
        check(&rules, "a.example.org:443", "allowed by *.example.org");
        check(&rules, "a.b.example.org:443", "allowed by *.example.org");
        check(&rules, "example.org:443", "no rule allows example.org:443");
        check(
            &rules,
            "evilexample.org:443",
            "no rule allows evilexample.org:443",
        );
    }

    #[test]
    fn ports_and_literals_are_allowed_as_written() {
        check(&["a.test:*"], "a.test:1", "allowed by a.test:*");
        check(&["a.test:8443"], "a.test:8443", "allowed by a.test:8443");
        check(
            &["a.test:8443"],
            "a.test:443",
            "no rule allows port 443 of a.test",
        );
        check(&["1.1.1.1"], "1.1.1.1:443", "allowed by 1.1.1.1");
        check(&["1.1.1.1"], "[::ffff:1.1.1.1]:443", "allowed by 1.1.1.1");
        check(
            &["[2606:4700::1]:53"],
            "[2606:4700:0::1]:53",
            "allowed by [2606:4700::1]:53",
        );
        check(&["*.1.1.test"], "1.1.1.1:443", "no rule allows 1.1.1.1:443");
    }

    #[test]
    fn a_request_rule_sees_method_and_whole_path_segments() {
        let rules = ["GET a.test/pkg", "b.test:8080/x/"];
        check(&rules, "GET a.test:80/pkg", "allowed by GET a.test/pkg");
        check(&rules, "GET a.test:80/pkg/one", "allowed by GET a.test/pkg");
        check(&rules, "PUT b.test:8080/x/y", "allowed by b.test:8080/x/");
        let denied = |asked: &str| {
            format!("the rules for a.test:80 allow only some plain HTTP requests, and not {asked}")
        };
        check(&rules, "GET a.test:80/pkgs", &denied("GET /pkgs"));
        check(&rules, "POST a.test:80/pkg", &denied("POST /pkg"));
        check(&rules, "get a.test:80/pkg", &denied("get /pkg"));
        check(&rules, "a.test:80", &denied("a tunnel"));
        for path in [
            "/pkg/../secret",
            "/pkg/%2e%2e/secret",
            "/pkg//x",
            "/pkg\\..\\x",
            "/pkg/%2Fx",
            "/pkg/%252e",
            "/pkg/;x",
            "/./pkg",
        ] {
            let unclear = "the path of the request to a.test:80 is ambiguous";
            check(&rules, &format!("GET a.test:80{path}"), unclear);
        }
        check(
            &rules,
            "GET a.test:443/pkg",
            "no rule allows port 443 of a.test",
        );
        check(
            &["a.test:80"],
            "POST a.test:80/a//b",
            "allowed by a.test:80",
        );
    }

    #[test]
    fn modes_bound_the_rules() {
        let allowed =
            |mode, wanted| matches!(decide(mode, &["a.test"], wanted), EgressDecision::Allow(_));
        assert!(!allowed(EgressMode::None, "a.test:443"));
        assert!(allowed(EgressMode::Open, "other.test:22"));
        assert!(!allowed(EgressMode::Filtered, "other.test:22"));
    }

    #[test]
    fn the_rule_that_reaches_furthest_is_taken() {
        let reach = |rules: &[&str], wanted| match decide(EgressMode::Open, rules, wanted) {
            EgressDecision::Allow(permit) => permit.reach,
            EgressDecision::Deny(denial) => panic!("{denial}"),
        };
        let rules = ["a.test:*", "private:a.test:443", "private:10.0.0.1:443"];
        assert_eq!(reach(&rules, "a.test:443"), AddressReach::PrivateByName);
        assert_eq!(reach(&rules, "a.test:80"), AddressReach::Public);
        assert_eq!(
            reach(&rules, "10.0.0.1:443"),
            AddressReach::PrivateByAddress
        );
        assert_eq!(reach(&rules, "10.0.0.2:443"), AddressReach::Public);
    }

    #[test]
    fn a_denial_names_the_rule_that_is_missing() {
        let missing = |wanted| match decide(EgressMode::Filtered, &["c.test/x"], wanted) {
            EgressDecision::Allow(permit) => panic!("{permit:?}"),
            EgressDecision::Deny(denial) => denial.missing_rule(),
        };
        assert_eq!(missing("a.test:443").as_deref(), Some("a.test"));
        assert_eq!(missing("a.test:8443").as_deref(), Some("a.test:8443"));
        assert_eq!(missing("[2606::1]:443").as_deref(), Some("[2606::1]"));
        assert_eq!(missing("c.test:443").as_deref(), Some("c.test"));
        assert_eq!(missing("GET c.test:80/x/../y"), None);
        assert_eq!(
            missing("localhost:11434").as_deref(),
            Some("private:localhost:11434")
        );
        assert_eq!(
            missing("10.0.0.1:443").as_deref(),
            Some("private:10.0.0.1:443")
        );
        assert_eq!(missing("[::1]:80").as_deref(), Some("private:[::1]:80"));
        assert_eq!(missing("0.0.0.0:443"), None);
    }

    #[test]
    fn a_line_that_is_no_rule_says_why() {
        let problem = |text| EgressRule::parse(text).expect_err(text).problem;
        for (text, expected) in [
            ("https://github.com", RuleProblem::Scheme),
            ("GET a.test/ b", RuleProblem::Words),
            ("get a.test/", RuleProblem::Method),
            ("*", RuleProblem::Star),
            ("*.com", RuleProblem::Star),
            ("*.*.test", RuleProblem::Star),
            ("a.*.test", RuleProblem::Star),
            ("*a.test", RuleProblem::Star),
            ("*.10.0.0.1", RuleProblem::Star),
            ("a.test/x?y", RuleProblem::Path),
            ("a.test/../x", RuleProblem::Path),
            ("private:a.test", RuleProblem::Private),
            ("private:a.test:*", RuleProblem::Private),
            ("private:*.a.test:80", RuleProblem::Private),
        ] {
            assert_eq!(problem(text), expected, "{text}");
        }
        for text in [
            "",
            "a.test:",
            "a.test:0",
            "a.test:http",
            "bücher.test",
            "0x7f.1",
            "::1",
            "u@a.test",
        ] {
            assert!(matches!(problem(text), RuleProblem::Host(_)), "{text}");
        }
        let error = EgressRule::parse("https://a.test").expect_err("a scheme");
        assert_eq!(
            error.to_string(),
            "read network rule `https://a.test`: it has a scheme"
        );
    }
}
