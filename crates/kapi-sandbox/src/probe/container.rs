//! Whether this host supports the podman level: whether there is a podman, and whether this user can use it.
//!
//! Asks podman about itself; starts no container.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_sys::process::{ProcessEnd, ProcessLimits, Program, find_in_path, run_quiet};
use rustix::process::geteuid;
use serde_json::Value;

use super::{HostFact, LevelSupport, MissingFeature};
use crate::spec::IsolationLevel;

/// The longest podman may take to tell about itself; the first time it sets up its store.
const DEADLINE: Duration = Duration::from_secs(60);
/// The most it may say.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Characters of its complaint that are shown.
const COMPLAINT_CHARS_MAX: usize = 300;
/// The oldest podman whose options are known.
const MAJOR_MIN: u64 = 4;
/// Ids that a rootless container needs: its own user and the users of its image.
const SUBORDINATE_HINT: &str = "give this user subordinate ids: sudo usermod --add-subuids 100000-165535 \
     --add-subgids 100000-165535 $USER, then run: podman system migrate";

/// Asks podman.
pub(super) fn probe(env: &BTreeMap<OsString, OsString>) -> (LevelSupport, Vec<HostFact>) {
    let mut support = LevelSupport {
        level: IsolationLevel::Podman,
        works: false,
        gives: Vec::new(),
        missing: Vec::new(),
    };
    let path = env.get(OsStr::new("PATH"));
    let Some(podman) = path.and_then(|path| find_in_path(OsStr::new("podman"), path)) else {
        support.missing.push(missing(
            "podman",
            "find",
            "podman on PATH",
            Some("install podman 4 or newer"),
        ));
        return (support, Vec::new());
    };
    let info = match info(&podman, env) {
        Ok(info) => info,
        Err(missing) => {
            support.missing.push(*missing);
            return (support, Vec::new());
        }
    };
    judge(&mut support, &info, geteuid().is_root());
    let text = |pointer: &str| shown(&info, pointer);
    let facts = vec![HostFact {
        name: "podman",
        value: format!(
            "{} at {}, runtime {}, storage {}, cgroup {}, rootless {}",
            text("/version/Version"),
            podman.display(),
            text("/host/ociRuntime/name"),
            text("/store/graphDriverName"),
            text("/host/cgroupVersion"),
            text("/host/security/rootless"),
        ),
    }];
    (support, facts)
}

fn info(podman: &Path, env: &BTreeMap<OsString, OsString>) -> Result<Value, Box<MissingFeature>> {
    let target = podman.display().to_string();
    let refused = |why: &str| {
        let why: String = why.chars().take(COMPLAINT_CHARS_MAX).collect();
        let hint = if why.contains("subuid") || why.contains("newuidmap") {
            SUBORDINATE_HINT
        } else {
            "run `podman info` by hand: it must succeed for this user"
        };
        let target = format!("{target}: {}", why.trim());
        Box::new(missing("podman", "podman info", &target, Some(hint)))
    };
    let finished = run_quiet(Program {
        path: PathBuf::from(podman),
        args: ["info", "--format", "json"].map(OsString::from).to_vec(),
        env: env.clone(),
        cwd: PathBuf::from("/"),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: DEADLINE,
            idle: None,
            tail_bytes_max: OUTPUT_BYTES_MAX,
            line_bytes_max: 1024,
        },
    })
    .map_err(|error| refused(&error.to_string()))?;
    if finished.end != ProcessEnd::Exited(0) {
        return Err(refused(&format!(
            "{:?} {}",
            finished.end,
            finished.stderr.text()
        )));
    }
    serde_json::from_slice(&finished.stdout.tail).map_err(|error| refused(&error.to_string()))
}

/// Decides from what podman says of itself.
fn judge(support: &mut LevelSupport, info: &Value, is_root: bool) {
    let version = shown(info, "/version/Version");
    let major: Option<u64> = version.split('.').next().and_then(|text| text.parse().ok());
    let mut necessary = Vec::new();
    if major.is_none_or(|major| major < MAJOR_MIN) {
        necessary.push(missing(
            "podman 4",
            "podman info",
            &format!("version {version}"),
            Some("install podman 4 or newer"),
        ));
    }
    let is_rootless = info.pointer("/host/security/rootless") == Some(&Value::Bool(true));
    let maps = info.pointer("/host/idMappings/uidmap");
    let n_maps = maps.and_then(Value::as_array).map_or(0, Vec::len);
    if is_rootless && n_maps < 2 {
        let target = if fs::exists("/etc/subuid").unwrap_or(false) {
            "/etc/subuid, which has no line for this user"
        } else {
            "/etc/subuid, which does not exist"
        };
        necessary.push(missing(
            "subordinate ids",
            "podman info",
            target,
            Some(SUBORDINATE_HINT),
        ));
    }
    let controllers = info.pointer("/host/cgroupControllers");
    let controllers = controllers.and_then(Value::as_array);
    let has = |name: &str| controllers.is_some_and(|all| all.iter().any(|one| one == name));
    for (name, what) in [
        ("memory", "memory limit"),
        ("pids", "processes limit"),
        ("cpu", "cpu limit"),
    ] {
        if has(name) {
            support.gives.push(what.to_owned());
        } else {
            support.missing.push(missing(
                what,
                "podman info",
                &format!("its cgroup controllers do not include {name}"),
                Some(
                    "let systemd delegate the controllers to users: a drop-in for user@.service with \
                     Delegate=cpu cpuset io memory pids",
                ),
            ));
        }
    }
    support.works = necessary.is_empty();
    if support.works {
        let own = if is_rootless || !is_root {
            "a rootless container with the root of an image"
        } else {
            "a container with the root of an image, started by root"
        };
        support.gives.insert(0, own.to_owned());
    } else {
        support.gives.clear();
    }
    for one in necessary.into_iter().rev() {
        support.missing.insert(
            0,
            MissingFeature {
                is_necessary: true,
                ..one
            },
        );
    }
}

fn missing(what: &str, call: &str, target: &str, hint: Option<&str>) -> MissingFeature {
    MissingFeature {
        what: what.to_owned(),
        is_necessary: what == "podman",
        call: call.to_owned(),
        target: target.to_owned(),
        source: None,
        hint: hint.map(str::to_owned),
    }
}

fn shown(info: &Value, pointer: &str) -> String {
    match info.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::judge;
    use crate::probe::LevelSupport;
    use crate::spec::IsolationLevel;

    fn check(info: &Value, works: bool, missing: &[&str]) {
        let mut support = LevelSupport {
            level: IsolationLevel::Podman,
            works: false,
            gives: Vec::new(),
            missing: Vec::new(),
        };
        judge(&mut support, info, false);
        let found: Vec<&str> = support
            .missing
            .iter()
            .map(|one| one.what.as_str())
            .collect();
        assert_eq!(
            (support.works, found.as_slice()),
            (works, missing),
            "{info}"
        );
        assert_eq!(support.works, !support.gives.is_empty());
        assert!(support.missing.iter().all(|one| one.hint.is_some()));
    }

    #[test]
    fn podmans_own_words_decide() {
        let all = json!(["cpu", "memory", "pids"]);
        let info = |version: &str, maps: Value, controllers: Value| {
            json!({
                "host": {
                    "security": {"rootless": true},
                    "idMappings": {"uidmap": maps},
                    "cgroupControllers": controllers,
                },
                "version": {"Version": version},
            })
        };
        let two = json!([{"size": 1}, {"size": 65536}]);
        check(&info("4.3.1", two.clone(), all.clone()), true, &[]);
        check(
            &info("5.0.0", two.clone(), json!(["pids"])),
            true,
            &["memory limit", "cpu limit"],
        );
        check(
            &info("4.3.1", json!([{"size": 1}]), all.clone()),
            false,
            &["subordinate ids"],
        );
        check(&info("3.4.4", two, all), false, &["podman 4"]);
        check(
            &json!({}),
            false,
            &["podman 4", "memory limit", "processes limit", "cpu limit"],
        );
    }
}
