//! Whose business state is: everything that Kapi keeps is closed to other users, whatever the umask
//! was and whatever an older Kapi left open; what people edit keeps ordinary modes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::environment::{Environment, FIRST};

/// What is meant for people or is a checkout, and the sockets and homes of agents.
const NOT_STATE: [&str; 6] = [
    "worktrees",
    "sandboxes",
    "loops",
    "policy.yaml",
    ".gitignore",
    "objects",
];

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// Returns everything below a state directory that others may look into.
fn open_to_others(dir: &Path) -> Vec<PathBuf> {
    let mut open = Vec::new();
    if mode(dir) & 0o077 != 0 {
        open.push(dir.to_path_buf());
    }
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if NOT_STATE.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            open.extend(open_to_others(&path));
        } else if mode(&path) & 0o077 != 0 {
            open.push(path);
        }
    }
    open
}

#[test]
fn state_is_closed_to_others_and_what_an_older_kapi_left_open_is_closed() {
    let env = Environment::new();
    env.run("command:echo 42 > answer.txt", &[])
        .assert_status("done", 0);
    let ran = env.kapi(&["task", "run", "x", "--agent", "command:true"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let state_dirs = [env.repository().join(".ilchul"), env.home().join(".ilchul")];
    for dir in &state_dirs {
        assert_eq!(open_to_others(dir), Vec::<PathBuf>::new());
    }
    let log = env.log(FIRST);
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(&log, 0o644);
    for dir in log.ancestors().skip(1).take(3) {
        open(dir, 0o755);
    }
    env.run("command:true", &["--turns", "1"]);
    assert_eq!(mode(&state_dirs[0]), 0o700);
    // The log itself is closed by whoever writes to it next.
    assert_eq!(
        env.kapi(&["goal", "reopen", "1", "not yet", "--no-run"])
            .code,
        0
    );
    assert_eq!((mode(&log), mode(log.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn what_people_edit_keeps_ordinary_modes() {
    let env = Environment::new();
    let made = env.kapi(&["loop", "init"]);
    assert_eq!(made.code, 0, "{made:?}");
    let loops = env.repository().join(".ilchul/loops");
    let file = fs::read_dir(&loops)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    assert_eq!((mode(&loops), mode(&file)), (0o755, 0o644));
}
