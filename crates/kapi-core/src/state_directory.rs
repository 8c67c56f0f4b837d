//! The one name of the directory where Kapi keeps its state, in a project and in a person's home.
//!
//! Only the name; what lies in it is laid out by the store.

/// The name of the state directory.
pub const STATE_DIRECTORY: &str = ".ilchul";

/// Where the specification keeps loops: the nearest one upward, within the project.
pub const PI_LOOPS: &str = ".pi/loops";

/// Where a project keeps loops for Kapi.
pub const OWN_LOOPS: &str = ".ilchul/loops";

/// The name of the file, in the project's state directory and in the person's configuration.
pub const POLICY_FILE: &str = "policy.yaml";
