//! Exit codes, signals, standard input and output, descriptors, and containers at once.

use std::thread;

use super::yard::as_each_user;

#[test]
fn the_end_of_the_program_is_told_as_it_was() {
    as_each_user(|yard| {
        for (line, expected) in [
            ("exit 0", "Exited(0)"),
            ("exit 125", "Exited(125)"),
            ("exit 137", "Exited(137)"),
            ("kill -9 $$", "Signaled(9)"),
            ("kill -SEGV $$", "Signaled(11)"),
        ] {
            let reported = yard.run(&yard.shell(line));
            assert_eq!(reported.end, expected, "{line}: {reported:?}");
        }
        assert_eq!(yard.remains(), "");
    });
}

#[test]
fn input_and_output_pass_through_whole() {
    as_each_user(|yard| {
        let mut ask = yard.shell("tr a-z A-Z; echo error >&2");
        ask.stdin = "words\n".repeat(50_000);
        let reported = yard.run(&ask);
        assert_eq!(reported.stdout, "WORDS\n".repeat(50_000));
        assert_eq!(reported.stderr, "error\n");
        let reported = yard.run(&yard.shell("head -c 50000000 /dev/zero | tr '\\0' '\\n'"));
        assert_eq!(
            (reported.end.as_str(), reported.stdout_bytes),
            ("Exited(0)", 50_000_000)
        );
        let reported = yard.run(&yard.shell("yes | head -1; umask"));
        assert_eq!(reported.stdout, "y\n0022\n");
    });
}

#[test]
fn given_descriptors_are_there_in_order_and_no_others() {
    as_each_user(|yard| {
        let list = "for n in 0 1 2 3 4 5 6 7 8 9 10 11 12; do test -e /proc/self/fd/$n && echo -n \"$n \"; done";
        let mut ask = yard.shell(&format!("{list}; cat <&3; cat <&4"));
        ask.passed = vec!["one ".to_owned(), "two".to_owned()];
        assert_eq!(yard.run(&ask).stdout, "0 1 2 3 4 one two");
        assert_eq!(yard.run(&yard.shell(list)).stdout, "0 1 2 ");
    });
}

#[test]
fn containers_at_once_do_not_mix() {
    as_each_user(|yard| {
        let run_one = |number: u32| {
            let mut ask = yard.shell(&format!("echo {number} > /tmp/mine; cat /tmp/*"));
            ask.name = format!("{}-{number}", ask.name);
            yard.run(&ask)
        };
        thread::scope(|scope| {
            let runs: Vec<_> = (0..4)
                .map(|number| scope.spawn(move || run_one(number)))
                .collect();
            for (number, run) in runs.into_iter().enumerate() {
                let reported = run.join().unwrap();
                let expected = ("Exited(0)", format!("{number}\n"));
                assert_eq!(
                    (reported.end.as_str(), reported.stdout.clone()),
                    expected,
                    "{reported:?}"
                );
            }
        });
        assert_eq!(yard.remains(), "");
    });
}
