//! What cannot be done is an error that names it, the program does not run, and nothing is left.

use super::ask::Ask;
use super::yard::{Yard, as_each_user};

/// A change to a request that would be fine without it.
type Change = fn(&mut Ask);

const RAN: &str = "echo > /workspace/ran";

fn check(yard: &Yard, ask: &Ask, error: &str, hint: &str) {
    let reported = yard.run(ask);
    assert!(reported.end.contains(error), "{error}: {reported:?}");
    assert!(reported.hint.contains(hint), "{hint}: {reported:?}");
    assert!(!yard.path("work/ran").exists(), "{reported:?}");
    assert_eq!(yard.remains(), "", "{reported:?}");
}

#[test]
fn a_missing_image_program_directory_or_source_is_named() {
    as_each_user(|yard| {
        let change = |change: &dyn Fn(&mut Ask)| {
            let mut ask = yard.shell(RAN);
            change(&mut ask);
            ask
        };
        let ask = change(&|ask| ask.image = "localhost/no-such:1".to_owned());
        check(yard, &ask, "image not known", "kapi sandbox image");
        let ask = change(&|ask| ask.argv = vec!["/no/such/program".to_owned()]);
        check(
            yard,
            &ask,
            "execve on /no/such/program: No such file",
            "not visible",
        );
        let ask = change(&|ask| ask.cwd = "/no/such/directory".to_owned());
        check(
            yard,
            &ask,
            "chdir on /no/such/directory: No such file",
            "working directory",
        );
        let source = (
            "/no/such/place".to_owned(),
            "/x".to_owned(),
            "ro".to_owned(),
        );
        let ask = change(&|ask| ask.mounts.push(source.clone()));
        check(
            yard,
            &ask,
            "mount /no/such/place: No such file",
            "does not exist",
        );
        let ask = change(&|ask| ask.listeners = vec!["192.0.2.1:80".to_owned()]);
        check(yard, &ask, "bind on 192.0.2.1:80", "");
    });
}

#[test]
fn nothing_that_podman_could_take_for_an_option_reaches_it() {
    as_each_user(|yard| {
        let refusals: [(&str, Change); 9] = [
            ("image", |ask| ask.image = "--privileged".to_owned()),
            ("name", |ask| ask.name = "x --privileged".to_owned()),
            ("name", |ask| ask.name = "../x".to_owned()),
            ("host name", |ask| ask.hostname = "h\n".to_owned()),
            ("host name", |ask| ask.hostname = "n".repeat(65)),
            ("path inside", |ask| ask.mounts[0].1 = "/x\n/y".to_owned()),
            ("path inside", |ask| {
                ask.mounts[0].1 = "/a/../b".to_owned();
            }),
            ("volume", |ask| {
                ask.volumes = vec![("/etc".to_owned(), "/x".to_owned())];
            }),
            ("security option", |ask| {
                ask.security = vec!["unmask=ALL".to_owned()];
            }),
        ];
        for (what, change) in refusals {
            let mut ask = yard.shell(RAN);
            change(&mut ask);
            check(yard, &ask, &format!("as {what}"), "");
        }
        let mut ask = yard.shell(RAN);
        ask.nested_namespaces = true;
        check(yard, &ask, "nested namespaces", "");
    });
}

#[test]
fn a_place_with_the_signs_of_podmans_syntax_is_just_a_place() {
    as_each_user(|yard| {
        let host = yard.directory("a,b:c \"d\",ro=false");
        yard.file("a,b:c \"d\",ro=false/f", "odd\n");
        let location = "/x,y:z \"q\",dst=/etc";
        let mut ask = yard.shell(&format!(
            "cat '{location}/f'; echo x > '{location}/g'; test -e /etc/f || echo end"
        ));
        ask.mounts.push((
            host.display().to_string(),
            location.to_owned(),
            "ro".to_owned(),
        ));
        let reported = yard.run(&ask);
        assert_eq!(reported.stdout, "odd\nend\n", "{reported:?}");
        assert!(reported.stderr.contains("Read-only"), "{reported:?}");
    });
}

#[test]
fn a_mount_never_follows_a_link_that_an_earlier_run_left() {
    as_each_user(|yard| {
        yard.directory("secret");
        yard.check("ln -s /workspace ~/trap && echo set", "set");
        let mut ask = yard.shell(RAN);
        ask.mounts.push((
            yard.text("secret"),
            "/home/agent/trap/inner".to_owned(),
            "rw".to_owned(),
        ));
        check(
            yard,
            &ask,
            "resolve on /home/agent/trap/inner",
            "symbolic link",
        );
        let mut ask = yard.shell(RAN);
        ask.files
            .push(("/home/agent/trap/file".to_owned(), "x".to_owned()));
        check(
            yard,
            &ask,
            "resolve on /home/agent/trap/file",
            "symbolic link",
        );
        assert_eq!(std::fs::read_dir(yard.path("work")).unwrap().count(), 0);
    });
}

#[test]
fn a_name_that_is_in_use_is_an_error_and_its_owner_goes_on() {
    as_each_user(|yard| {
        let first = yard.shell("touch up; until test -e go; do sleep 0.01; done; echo finished");
        std::thread::scope(|scope| {
            let running = scope.spawn(|| yard.run(&first));
            let up = yard.path("work/up");
            crate::workplace::await_condition("the container is up", || up.exists());
            let reported = yard.run(&yard.shell(RAN));
            assert!(reported.end.contains("already in use"), "{reported:?}");
            assert!(reported.hint.contains("another container"), "{reported:?}");
            yard.file("work/go", "");
            assert_eq!(running.join().unwrap().stdout, "finished\n");
        });
        assert!(!yard.path("work/ran").exists());
        assert_eq!(yard.remains(), "");
    });
}
