//! Pi with the package and without a mode: its requests are the same, byte for byte.

use std::fs;

use kapi_testkit::model_server::ModelServer;

use crate::pi_host::{Host, Options, PiVersion};
use crate::pi_package::{PiRig, noted_binary, scenario};
use crate::wire_tap::WireTap;

/// Checks that requests are the same, and shows the first place where they are not.
fn assert_same(expected: &[Vec<u8>], requests: &[Vec<u8>], what: &str) {
    let count = |requests: &[Vec<u8>]| requests.iter().map(Vec::len).collect::<Vec<_>>();
    for (expected, request) in expected.iter().zip(requests) {
        let same = expected
            .iter()
            .zip(request)
            .take_while(|(a, b)| a == b)
            .count();
        let around = |bytes: &[u8]| {
            let end = bytes.len().min(same + 80);
            String::from_utf8_lossy(&bytes[same.saturating_sub(80)..end]).into_owned()
        };
        assert!(
            expected == request,
            "{what}:\n{}\n{}",
            around(expected),
            around(request)
        );
    }
    assert_eq!(count(expected), count(requests), "{what}");
}

/// Has a Pi of its own asked all of this, and returns the requests that it sent to a model of its own.
fn requests_of(rig: &PiRig, options: &Options<'_>, typed: &[&str]) -> Vec<Vec<u8>> {
    let server = ModelServer::start(scenario()).unwrap();
    let tap = WireTap::before(&server.base_url());
    let options = Options {
        base_url: tap.base_url(),
        args: &["--no-session"],
        ..options.clone()
    };
    let mut host = Host::start(&rig.machine.env, &options);
    for text in typed {
        if *text == "/kapi-status" {
            host.command(text);
            host.reported("There are no goals and no workflows here.");
        } else {
            host.prompt(text);
        }
    }
    host.end();
    tap.take()
}

#[test]
fn without_a_mode_every_request_is_the_same_byte_for_byte() {
    same_requests(PiVersion::Pinned);
}

pub(crate) fn same_requests(version: PiVersion) {
    const TYPED: [&str; 4] = ["hello", "read it", "and once more: read it", "good bye"];
    let rig = PiRig::in_pi(version);
    let (script, starts) = noted_binary(&rig);
    let vars = [("KAPI_BIN", script.to_str().unwrap())];
    let loaded = Options {
        vars: &vars,
        ..rig.options()
    };
    let bare = Options {
        is_bare: true,
        ..loaded.clone()
    };
    let first = requests_of(&rig, &bare, &TYPED);
    assert_eq!(first.len(), 6, "four answers and two tool calls");
    // Nothing has to be made alike: two runs of Pi itself send the same bytes.
    let second = requests_of(&rig, &bare, &TYPED);
    assert_same(&first, &second, "Pi itself differs between two runs");
    let with = requests_of(&rig, &loaded, &TYPED);
    assert_same(&first, &with, "the package changed a request");
    assert!(!starts.exists(), "{:?}", fs::read_to_string(&starts));
    // Looking is no mode: what is sent afterwards is the same, too.
    let looked = [
        "hello",
        "/kapi-status",
        "read it",
        "and once more: read it",
        "good bye",
    ];
    let looked = requests_of(&rig, &loaded, &looked);
    assert_same(&first, &looked, "looking changed a request");
    assert_eq!(fs::read_to_string(&starts).unwrap(), "status\n");
}
