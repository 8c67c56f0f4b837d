//! Runs attempts in sandboxes and judges what they and the canaries say.
//!
//! Knows no single attempt.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use kapi_sys::process::run_quiet;

use crate::attempt::{Attempt, Control};
use crate::canary::Canaries;
use crate::place::{Level, Place, read_reply};
use crate::request::{Reply, Request};

/// What came of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// What got out.
    pub escapes: Vec<String>,
    /// Why it cannot be said that it was tried.
    pub troubles: Vec<String>,
    /// The isolation there was.
    pub grade: String,
}

/// Runs some attempts in one sandbox; all of them want the same of it.
pub(crate) fn run(
    location: &Place,
    canaries: &mut Canaries<'_>,
    attempts: &[&Attempt],
) -> Vec<Judgement> {
    let first = attempts.first().unwrap();
    let reply = perform(
        location,
        canaries,
        &inside(location, canaries, attempts),
        &[],
    );
    let mut judgements: Vec<Judgement> = attempts
        .iter()
        .map(|attempt| judge(attempt, &reply, canaries.token()))
        .collect();
    let mut trips = canaries.trips();
    if !first.exceeded.is_empty() && reply.exceeded != first.exceeded {
        trips.push(format!("exceeded {:?}: {reply:?}", reply.exceeded));
    }
    if !first.ends.is_empty() && reply.end != first.ends {
        judgements[0].troubles.push(format!("ended: {reply:?}"));
    }
    judgements[0].escapes.extend(trips);
    clear(location);
    judgements
}

/// Runs one attempt where nothing should hold it.
pub(crate) fn run_free(
    location: &Place,
    canaries: &mut Canaries<'_>,
    attempt: &Attempt,
) -> Judgement {
    let mut request = inside(location, canaries, &[attempt]);
    let mut wrapper: &[&str] = &[];
    match &attempt.control {
        Control::None => let_out(location, &mut request),
        Control::Namespaces => {
            let_out(location, &mut request);
            wrapper = &[
                "unshare",
                "--user",
                "--map-root-user",
                "--mount",
                "--pid",
                "--fork",
                "--uts",
                "--ipc",
                "--net",
            ];
        }
        Control::Mounted => {
            let secret = location.text("secret");
            request
                .mounts
                .push((secret.clone(), secret, "rw".to_owned()));
        }
        Control::Open => request.is_on_host_network = true,
        Control::Direct => request.mounts[0].2 = "rw".to_owned(),
        Control::Unlimited => {
            request.resources.clear();
            request.env.push(("PATIENCE".to_owned(), "2".to_owned()));
        }
        Control::Writable(inside) => {
            let shared_in = location.text("lent");
            request
                .mounts
                .push((shared_in, inside.clone(), "rw".to_owned()));
        }
        Control::Passed => request.passed = location.text("secret/file"),
        Control::Injected => request.env.push(("INJECTED".to_owned(), "1".to_owned())),
        Control::Host => return run_bare(location, canaries, attempt),
        Control::ToFile => {
            let_out(location, &mut request);
            let line = "log=$(mktemp -p .) && \"$@\" >> $log 2>&1; cat $log";
            let before = ["/bin/bash", "-c", line, "to-file"].map(str::to_owned);
            request.argv = before.into_iter().chain(request.argv).collect();
        }
    }
    let reply = perform(location, canaries, &request, wrapper);
    let mut judgement = judge(attempt, &reply, canaries.token());
    if !attempt.exceeded.is_empty() && reply.exceeded != attempt.exceeded {
        judgement.escapes.push("no limit was met".to_owned());
    }
    if attempt.control == Control::ToFile && !reply.stdout.contains("tried before") {
        judgement
            .escapes
            .push("what it said at first is gone".to_owned());
    }
    judgement.escapes.extend(canaries.trips());
    judgement.troubles.push(format!("{reply:?}"));
    clear(location);
    judgement
}

/// Runs an attempt as a program of the host like any other.
fn run_bare(location: &Place, canaries: &mut Canaries<'_>, attempt: &Attempt) -> Judgement {
    let mut request = inside(location, canaries, &[attempt]);
    let_out(location, &mut request);
    let mut words: Vec<&str> = vec!["env", "-i"];
    let variables: Vec<String> = request
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    words.extend(variables.iter().map(String::as_str));
    words.extend(request.argv.iter().map(String::as_str));
    let finished = run_quiet(location.program(&words)).unwrap();
    let reply = Reply {
        end: format!("{:?}", finished.end),
        grade: String::new(),
        exceeded: String::new(),
        stdout: finished.stdout.text(),
        stderr: finished.stderr.text(),
        stdout_bytes: finished.stdout.bytes_total,
    };
    let mut judgement = judge(attempt, &reply, canaries.token());
    judgement.escapes.extend(canaries.trips());
    judgement.troubles.push(format!("{reply:?}"));
    clear(location);
    judgement
}

/// Makes the request for a batch at the place's level.
fn inside(location: &Place, canaries: &Canaries<'_>, attempts: &[&Attempt]) -> Request {
    let first = attempts.first().unwrap();
    let mut request = location.shell("");
    if first.is_over_layer {
        let layer = format!(
            "cow:{}:{}",
            location.text("upper"),
            location.text("scratch")
        );
        request.mounts[0] = (location.text("lower"), "/workspace".to_owned(), layer);
    }
    let attempts_inside = "/attempts".to_owned();
    request
        .mounts
        .push((location.text("attempts"), attempts_inside, "ro".to_owned()));
    request.env.extend(canaries.env());
    // The disk is looked at at least once a minute, whatever the rest of the machine does.
    let patience = "80";
    for (name, value) in [
        ("PATIENCE", patience),
        ("LEVEL", location.level.name()),
        ("WORKSPACE", "/workspace"),
        ("ATTEMPTS", "/attempts"),
        ("SEVERAL_LINES", "one\nINJECTED=1"),
    ] {
        request.env.push((name.to_owned(), value.to_owned()));
    }
    request.argv = ["/bin/bash", "/attempts/batch.sh"]
        .map(str::to_owned)
        .to_vec();
    request
        .argv
        .extend(attempts.iter().map(|attempt| attempt.name.clone()));
    request.resources.clone_from(&first.resources);
    request.deadline_ms = first.deadline_ms;
    request
}

/// Turns a request into one without isolation.
fn let_out(location: &Place, request: &mut Request) {
    "none".clone_into(&mut request.level);
    request.mounts.clear();
    request.cwd = location.text("work");
    for (name, value) in &mut request.env {
        match name.as_str() {
            "LEVEL" => "none".clone_into(value),
            "WORKSPACE" => *value = location.text("work"),
            "ATTEMPTS" => *value = location.text("attempts"),
            "HOME" => *value = location.text("home"),
            _ => {}
        }
    }
    request.argv[1] = location.text("attempts/batch.sh");
}

/// Performs a request; its driver holds the secret in its environment and in a descriptor.
fn perform(
    location: &Place,
    canaries: &Canaries<'_>,
    request: &Request,
    wrapper: &[&str],
) -> Reply {
    let mut driver = location.driver(wrapper, request);
    driver
        .env
        .insert("HOST_TOKEN".into(), canaries.token().into());
    let secret = fs::File::open(location.path("secret/file")).unwrap();
    driver.pass_fds = vec![secret.into()];
    read_reply(&run_quiet(driver).unwrap())
}

/// Takes away what attempts left, so that the next begin as the first did.
fn clear(location: &Place) {
    open_up(&location.path("scratch"));
    for name in ["work", "home", "upper", "scratch", "lent"] {
        fs::remove_dir_all(location.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        location.directory(name);
    }
}

/// Lets the owner enter every directory: overlayfs leaves some that nobody may enter.
fn open_up(directory: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let below = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    below.for_each(|entry| open_up(&entry.path()));
}

/// Reads what an attempt says of itself.
fn judge(attempt: &Attempt, reply: &Reply, token: &str) -> Judgement {
    let mut judgement = Judgement {
        grade: reply.grade.clone(),
        ..Judgement::default()
    };
    let begin = format!("=== begins {}\n", attempt.name);
    let Some((_, said)) = reply.stdout.split_once(&begin) else {
        judgement.troubles.push(format!("was not tried: {reply:?}"));
        return judgement;
    };
    let mut said = said.split("=== begins ").next().unwrap_or_default();
    if let Some((before, code)) = said.rsplit_once("=== ended ") {
        if code.trim() != "0" && !attempt.ends.is_empty() {
            judgement
                .troubles
                .push(format!("its script failed: {said}"));
        }
        said = before;
    } else if attempt.ends == "Exited(0)" {
        judgement.troubles.push(format!("did not end: {said}"));
    }
    let mut n_tried = 0;
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["escaped", ..] => judgement.escapes.push(line.to_owned()),
            ["refused", what, answer, ..] => {
                n_tried += 1;
                if !attempt.refused.iter().any(|one| one == answer) {
                    judgement
                        .escapes
                        .push(format!("{what} was answered {answer}: {line}"));
                }
            }
            ["tried", ..] => n_tried += 1,
            _ => {}
        }
    }
    if said.contains(token) || reply.stderr.contains(token) {
        judgement.escapes.push("read the secret".to_owned());
    }
    if n_tried == 0 && judgement.escapes.is_empty() {
        judgement.troubles.push(format!("tried nothing: {said}"));
    }
    judgement
}

/// Puts attempts together that can share a sandbox; natively each has its own, which costs nothing.
pub(crate) fn batches<'a>(location: &Place, attempts: &'a [Attempt]) -> Vec<Vec<&'a Attempt>> {
    let (mut direct, mut layered, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    let here = attempts
        .iter()
        .filter(|one| one.levels.contains(&location.level));
    for attempt in here {
        let is_plain = attempt.resources.is_empty() && attempt.ends == "Exited(0)";
        let shares = is_plain && !attempt.is_alone && attempt.hole_at(location).is_none();
        match (location.level, shares) {
            (Level::Native, _) | (Level::Podman, false) => apart.push(vec![attempt]),
            (Level::Podman, true) if attempt.is_over_layer => layered.push(attempt),
            (Level::Podman, true) => direct.push(attempt),
        }
    }
    apart.extend(
        [direct, layered]
            .into_iter()
            .filter(|batch| !batch.is_empty()),
    );
    apart
}
