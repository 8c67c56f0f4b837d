//! Running programs: what they get, how they fail to start, how their end is told.
//!
//! All with real processes. Knows nothing of limits (`process_end`) or of output in bulk.

use std::collections::BTreeMap;
use std::fs::{Permissions, set_permissions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use kapi_sys::process::{ProcessEnd, ProcessError, Program, find_in_path, run_quiet};

use crate::support::{PEER, finish, finish_with_lines, program, put, script};

#[test]
fn a_program_runs_to_its_end() {
    let (finished, mut lines) =
        finish_with_lines(script("echo one; echo two >&2; printf three; exit 7"));
    lines.sort();
    assert_eq!(finished.end, ProcessEnd::Exited(7));
    assert_eq!(lines, ["err: two", "out: one", "out: three"]);
    assert_eq!(finished.stdout.text(), "one\nthree");
    assert_eq!(finished.stderr.text(), "two\n");
}

#[test]
fn a_signal_from_elsewhere_is_told() {
    assert_eq!(
        finish(script("kill -TERM $$")).end,
        ProcessEnd::Signaled(15)
    );
}

#[test]
fn the_environment_is_exactly_what_was_given() {
    let mut env = program("/usr/bin/env", &[]);
    env.env = BTreeMap::from([
        ("EMPTY".into(), "".into()),
        ("TWO_LINES".into(), "a\nb".into()),
        ("WITH=".trim_end_matches('=').into(), "x=y z".into()),
    ]);
    assert_eq!(
        finish(env).stdout.text(),
        "EMPTY=\nTWO_LINES=a\nb\nWITH=x=y z\n"
    );
    let mut nothing = program("/usr/bin/env", &[]);
    nothing.env.clear();
    assert_eq!(finish(nothing).stdout.text(), "");
}

#[test]
fn arguments_and_directory_arrive_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let mut shown = program(
        "/bin/sh",
        &[
            "-c",
            "pwd; printf '<%s>' \"$@\"",
            "x",
            "",
            "a b",
            "$HOME",
            "*",
        ],
    );
    shown.cwd = directory.path().canonicalize().unwrap();
    let expected = format!("{}\n<><a b><$HOME><*>", shown.cwd.display());
    assert_eq!(finish(shown).stdout.text(), expected);
}

#[test]
fn it_leads_a_session_and_a_group_of_its_own() {
    let shown = finish(script("ps -o pid=,pgid=,sid= -p $$"));
    let text = shown.stdout.text();
    let numbers: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(numbers.len(), 3, "{text}");
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{text}");
}

#[test]
fn input_arrives_whole() {
    let mut cat = program("/bin/cat", &[]);
    let bytes: Vec<u8> = (0..1_000_003_u32)
        .map(|n| n.to_le_bytes()[0] ^ 0x5a)
        .collect();
    cat.limits.tail_bytes_max = 2_000_000;
    cat.stdin.clone_from(&bytes);
    let finished = finish(cat);
    assert_eq!(finished.end, ProcessEnd::Exited(0));
    assert!(
        finished.stdout.tail == bytes,
        "{} bytes came back",
        finished.stdout.bytes_total
    );
}

#[test]
fn without_input_it_reads_the_empty_device() {
    let shown = finish(program("/bin/readlink", &["/proc/self/fd/0"]));
    assert_eq!(shown.stdout.text(), "/dev/null\n");
}

#[test]
fn a_program_that_does_not_read_its_input_ends_all_the_same() {
    let mut deaf = program("/bin/true", &[]);
    deaf.stdin = vec![b'x'; 8 * 1024 * 1024];
    assert_eq!(finish(deaf).end, ProcessEnd::Exited(0));
}

#[test]
fn a_broken_pipe_does_not_end_us_even_where_it_would_by_default() {
    let (finished, lines) = finish_with_lines(program(PEER, &["feed-deaf-program"]));
    assert_eq!(
        (finished.end, lines),
        (ProcessEnd::Exited(0), vec!["out: Exited(0)".to_owned()])
    );
}

#[test]
fn passed_descriptors_are_three_and_up_in_order_and_no_other_is_open() {
    let file_with = |text: &str| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        OwnedFd::from(file)
    };
    let mut files: Vec<OwnedFd> = ["e", "d", "c", "b", "a"].map(file_with).into();
    // Reversed, so that each has to move to a number another one may have.
    files.reverse();
    let mut shown = script("cat <&3; cat <&4; cat <&5; cat <&6; cat <&7; ls /proc/self/fd");
    shown.pass_fds = files;
    // The last one is the directory that `ls` itself reads.
    assert_eq!(
        finish(shown).stdout.text(),
        "abcde0\n1\n2\n3\n4\n5\n6\n7\n8\n"
    );
}

#[test]
fn a_passed_descriptor_is_the_programs_alone_from_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let answer = directory.path().join("answer");
    let (mut reader, writer) = std::io::pipe().unwrap();
    // It goes on only when the other end has seen the pipe's end, so nobody else may hold it.
    let text = format!(
        "echo hello >&3; exec 3>&-; while [ ! -e {} ]; do sleep 0.01; done",
        answer.display()
    );
    let mut talker = script(&text);
    talker.pass_fds = vec![writer.into()];
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut heard = String::new();
            reader.read_to_string(&mut heard).unwrap();
            put(&answer, heard.as_bytes());
        });
        assert_eq!(finish(talker).end, ProcessEnd::Exited(0));
    });
    assert_eq!(std::fs::read_to_string(&answer).unwrap(), "hello\n");
}

#[test]
fn what_we_inherited_ourselves_is_not_passed_on() {
    let text =
        format!("exec 7</etc/passwd 9</etc/group; exec {PEER} run-script 'ls /proc/self/fd'");
    assert_eq!(
        finish(script(&text)).stdout.text(),
        "Exited(0) 0\n1\n2\n3\n\n"
    );
}

#[test]
fn signals_we_ignore_are_not_ignored_by_the_program() {
    let text = format!(
        "trap '' HUP INT QUIT USR1; exec {PEER} run-script 'grep -E \"SigIgn|SigBlk\" /proc/self/status'"
    );
    let shown = finish(script(&text)).stdout.text();
    assert_eq!(
        shown,
        "Exited(0) SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n\n"
    );
}

#[test]
fn what_cannot_start_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let no_exec = directory.path().join("no-exec");
    put(&no_exec, b"#!/bin/sh\n");
    let no_interpreter = directory.path().join("no-interpreter");
    put(&no_interpreter, b"#!/no/such/interpreter\n");
    set_permissions(&no_interpreter, Permissions::from_mode(0o755)).unwrap();

    let refused = |program: Program| run_quiet(program).unwrap_err();
    let error = refused(program("/no/such/program", &[]));
    assert!(
        matches!(&error, ProcessError::NotFound { path } if path == Path::new("/no/such/program"))
    );
    assert_eq!(error.to_string(), "find program /no/such/program");
    let error = refused(program(no_exec.to_str().unwrap(), &[]));
    assert!(
        matches!(&error, ProcessError::Start { source, .. } if source.raw_os_error() == Some(libc::EACCES))
    );
    let error = refused(program(no_interpreter.to_str().unwrap(), &[]));
    assert!(
        matches!(&error, ProcessError::Start { source, .. } if source.raw_os_error() == Some(libc::ENOENT))
    );
    let error = refused(program("true", &[]));
    assert!(matches!(&error, ProcessError::Start { .. }), "{error:?}");
    let error = refused(program("/bin/echo", &["a\0b"]));
    assert!(matches!(&error, ProcessError::Start { .. }), "{error:?}");

    let mut lost = program("/bin/true", &[]);
    lost.cwd = PathBuf::from("/no/such/directory");
    let error = refused(lost);
    assert_eq!(
        error.to_string(),
        "enter working directory /no/such/directory"
    );
    for name in ["", "A=B"] {
        let mut odd = program("/bin/true", &[]);
        odd.env.insert(name.into(), "x".into());
        assert!(matches!(refused(odd), ProcessError::Start { .. }));
    }
}

#[test]
fn nothing_is_left_open_or_unreaped_or_masked() {
    // In a process of its own, where no other test opens anything.
    let (finished, lines) = finish_with_lines(program(PEER, &["run-many"]));
    assert_eq!(finished.end, ProcessEnd::Exited(0), "{lines:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0], lines[1]);
}

#[test]
fn many_at_once_do_not_mix_up() {
    thread::scope(|scope| {
        for number in 0..20 {
            scope.spawn(move || {
                let mut echo = script("cat; cat <&3; echo");
                echo.stdin = vec![b'a'; 100 + number];
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(number.to_string().as_bytes()).unwrap();
                file.rewind().unwrap();
                echo.pass_fds = vec![file.into()];
                let expected = format!("{}{number}\n", "a".repeat(100 + number));
                assert_eq!(finish(echo).stdout.text(), expected);
            });
        }
    });
}

#[test]
fn a_name_is_found_only_as_an_executable_file_in_an_absolute_directory() {
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
    std::fs::create_dir_all(first.join("tool")).unwrap();
    std::fs::create_dir_all(&second).unwrap();
    put(&first.join("data"), b"");
    for name in ["tool", "data"] {
        put(&second.join(name), b"#!/bin/sh\n");
        set_permissions(second.join(name), Permissions::from_mode(0o755)).unwrap();
    }
    set_permissions(first.join("data"), Permissions::from_mode(0o644)).unwrap();
    let path_var = std::env::join_paths([Path::new("."), Path::new(""), &first, &second]).unwrap();
    let find = |name: &str| find_in_path(name.as_ref(), &path_var);
    // A directory of that name and a file without the right are passed over.
    assert_eq!(find("tool"), Some(second.join("tool")));
    assert_eq!(find("data"), Some(second.join("data")));
    for odd in ["", "none", "./tool", "..", ".", "second/tool", "/bin/sh"] {
        assert_eq!(find(odd), None, "{odd}");
    }
}
