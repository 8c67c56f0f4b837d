//! Exit codes, signals, standard input and output, and many sandboxes at once.

use std::thread;

use kapi_sandbox::callbacks::RunCallbacks;
use kapi_sandbox::launch::run;
use kapi_sandbox::spec::IsolationLevel;
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{OutputLine, ProcessEnd, Program};
use rustix::pipe::{PipeFlags, pipe_with};
use tempfile::TempDir;

use crate::request::Request;
use crate::workplace::{Workplace, as_each_user, shell, spec};

/// Makes the request for both levels.
fn both(location: &Workplace, line: &str) -> [Request; 2] {
    [location.shell(line), location.bare(line)]
}

#[test]
fn the_end_of_the_program_is_told_as_it_was() {
    as_each_user(|location| {
        for (line, expected) in [
            ("exit 0", "Exited(0)"),
            ("exit 7", "Exited(7)"),
            ("exit 137", "Exited(137)"),
            ("kill -9 $$", "Signaled(9)"),
            ("kill -15 $$", "Signaled(15)"),
            ("kill -SEGV $$", "Signaled(11)"),
        ] {
            for request in both(location, line) {
                let reply = location.run(&request);
                assert_eq!(reply.end, expected, "{line} {}: {reply:?}", request.level);
            }
        }
    });
}

#[test]
fn input_and_output_pass_through_whole() {
    as_each_user(|location| {
        for mut request in both(location, "tr a-z A-Z; echo error >&2") {
            request.stdin = "words\n".repeat(50_000);
            let reply = location.run(&request);
            assert_eq!(reply.stdout, "WORDS\n".repeat(50_000), "{}", request.level);
            assert_eq!(reply.stderr, "error\n");
        }
        for request in both(location, "head -c 50000000 /dev/zero | tr '\\0' '\\n'") {
            let reply = location.run(&request);
            assert_eq!(
                (reply.end.as_str(), reply.stdout_bytes),
                ("Exited(0)", 50_000_000),
                "{}",
                request.level
            );
        }
    });
}

#[test]
fn a_closed_pipe_ends_a_writer_as_usual() {
    as_each_user(|location| {
        for request in both(location, "yes | head -1; echo ${PIPESTATUS[0]}; umask") {
            let reply = location.run(&request);
            assert_eq!(reply.stdout, "y\n141\n0022\n", "{}", request.level);
        }
    });
}

#[test]
fn no_descriptor_but_the_standard_ones_is_passed_on() {
    as_each_user(|location| {
        let reply = location.run(&location.shell("exec /helper try fds"));
        let numbers: Vec<&str> = reply
            .stdout
            .split_whitespace()
            .filter_map(|pair| pair.split('=').next())
            .collect();
        // 3 is the directory that the helper itself lists.
        assert_eq!(numbers, ["0", "1", "2", "3"], "{reply:?}");
        assert!(reply.stdout.contains("3=/proc/"), "{reply:?}");
    });
}

#[test]
fn given_descriptors_are_there_in_order_from_three_on() {
    let home = TempDir::new().unwrap();
    for level in [IsolationLevel::Native, IsolationLevel::None] {
        let (first_read, first_write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (second_read, second_write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        for (write, text) in [(first_write, "one "), (second_write, "two")] {
            rustix::io::write(&write, text.as_bytes()).unwrap();
        }
        let spec = spec(level, home.path());
        let program = Program {
            pass_fds: vec![first_read, second_read],
            ..shell("cat <&3; cat <&4; test ! -e /proc/self/fd/5")
        };
        let mut lines = Vec::new();
        let mut on_line = |line: OutputLine<'_>| match line {
            OutputLine::Stdout(text) | OutputLine::Stderr(text) => {
                lines.push(String::from_utf8_lossy(text).into_owned());
            }
        };
        let callbacks = RunCallbacks {
            on_line: &mut on_line,
            on_listeners: &mut drop,
        };
        let finished = run(&spec, program, &Cancel::new(), callbacks)
            .unwrap()
            .finished;
        assert_eq!(
            (finished.end, finished.stdout.text().as_str()),
            (ProcessEnd::Exited(0), "one two"),
            "{level:?}"
        );
        assert_eq!(lines, ["one two"], "{level:?}");
    }
}

#[test]
fn twenty_at_once_do_not_mix() {
    as_each_user(|location| {
        let run_one = |number| {
            location.run(&location.shell(&format!("echo {number} > /tmp/mine; cat /tmp/*")))
        };
        thread::scope(|scope| {
            let runs: Vec<_> = (0..20)
                .map(|number| scope.spawn(move || run_one(number)))
                .collect();
            for (number, run) in runs.into_iter().enumerate() {
                let reply = run.join().unwrap();
                assert_eq!(
                    (reply.end.as_str(), reply.stdout),
                    ("Exited(0)", format!("{number}\n"))
                );
            }
        });
    });
}
