//! Autoresearch in the real Pi: the contract is read and approved in dialogs, the search is driven beside the
//! person's work, and its result stands on a branch.

use crate::environment::write;
use crate::pi_host::PiVersion;
use crate::pi_package::PiRig;

const ID: &str = "001-larger-number";
/// One gain, one loss, and nothing more to try.
const RESEARCHER: &str = "turns: []
roles:
  researcher:
    - steps:
        - write: {path: src/number, content: \"5\\n\"}
        - answer: {hypothesis: Five is more., description: five}
    - steps:
        - write: {path: src/number, content: \"4\\n\"}
        - answer: {hypothesis: Four is less., description: four}
    - steps: [{answer: {exhausted: true}}]
";

#[test]
fn a_search_is_approved_driven_and_finished() {
    search(PiVersion::Pinned);
}

pub(crate) fn search(version: PiVersion) {
    let rig = PiRig::in_pi(version);
    let env = &rig.machine.env;
    write(&env.repository().join("src/number"), "1\n");
    env.commit_all("a number");
    let agent = env.script("researcher.yaml", RESEARCHER);
    let mut host = rig.host();
    host.command(&format!(
        "/kapi-autoresearch larger number --unlinked --agent {agent} --metric n --direction higher \
         --benchmark 'read n < src/number; echo METRIC n=$n' --checks true --scope src --off-limits test.sh --runs 5"
    ));
    let reported = host.reported("/kapi-autoresearch approve 001");
    assert!(reported.contains("hash"), "{reported}");
    host.command("/kapi-autoresearch approve 1");
    let shown = host.type_text("");
    assert!(
        shown["prefill"].as_str().unwrap().contains("METRIC n"),
        "{shown:#}"
    );
    host.choose("Approve and continue");
    // The person works on meanwhile.
    host.prompt("hello");
    let reported = host.reported(&format!("{ID} (autoresearch): completed"));
    assert!(reported.contains("git merge"), "{reported}");
    let ledger = rig.machine.document("autoresearch", ID, "ledger.jsonl");
    let kept = ledger.matches("\"status\":\"keep\"").count();
    assert_eq!(kept, 2, "the baseline and the gain: {ledger}");
    let found = env.git(&["show", "perf/autoresearch-larger-number:src/number"]);
    assert_eq!(found, "5");
    assert_eq!(env.read("src/number"), "1\n");
    assert!(host.widget().is_empty(), "{:?}", host.widget());
    host.end();
    env.await_no_process();
}
