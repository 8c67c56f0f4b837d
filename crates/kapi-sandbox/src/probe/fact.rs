//! What explains a refusal: kernel, user, what is around us, where layers will lie.
//!
//! Only reads.

use std::fs;
use std::path::Path;

use rustix::process::geteuid;
use rustix::system::uname;

use super::HostFact;
use crate::hint::{HostRestrictions, file_system};
use crate::init::landlock::usable_version;

/// Reads the facts.
pub(super) fn observe(sandboxes: &Path, host: &HostRestrictions) -> Vec<HostFact> {
    let mut facts = Vec::new();
    let mut add = |name: &'static str, value: String| facts.push(HostFact { name, value });
    add("kernel", uname().release().to_string_lossy().into_owned());
    add("user", geteuid().as_raw().to_string());
    let most = fs::read_to_string("/proc/sys/user/max_user_namespaces");
    add(
        "user namespaces allowed",
        most.map_or_else(|error| error.to_string(), |text| text.trim().to_owned()),
    );
    if host.apparmor_restricts {
        add(
            "AppArmor",
            "restricts user namespaces to profiled programs".to_owned(),
        );
    }
    if host.in_container {
        add("around us", "a container".to_owned());
    }
    add(
        "Landlock",
        usable_version().map_or_else(
            |errno| format!("cannot be used: {errno}"),
            |version| format!("version {version}"),
        ),
    );
    add("sandboxes are on", file_system(sandboxes));
    add(
        "way out",
        "needs no program: kapi listens inside the sandbox's network".to_owned(),
    );
    facts
}
