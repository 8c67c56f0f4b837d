//! Layers, aliases and volumes: where writes go and what stays.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;

use super::ask::Ask;
use super::yard::{Yard, as_each_user, owner};

/// Asks for a line in a project under a layer, with names that podman's own syntax would trip over.
fn layered(yard: &Yard, line: &str) -> Ask {
    for name in [
        "pro,ject:a \"b\"",
        "pro,ject:a \"b\"/sub",
        "up,per:1",
        "wo,rk:1",
    ] {
        yard.directory(name);
    }
    yard.file("pro,ject:a \"b\"/kept", "lower\n");
    yard.file("pro,ject:a \"b\"/gone", "lower\n");
    yard.file("pro,ject:a \"b\"/sub/deep", "lower\n");
    // The layer's own description cannot hold a colon, so the test's request links to it.
    for (name, target) in [("upper", "up,per:1"), ("lwork", "wo,rk:1")] {
        let link = yard.path(name);
        if !link.exists() {
            std::os::unix::fs::symlink(yard.path(target), link).unwrap();
        }
    }
    let mut ask = yard.shell(line);
    let access = format!("cow:{}:{}", yard.text("upper"), yard.text("lwork"));
    ask.mounts = vec![(
        yard.text("pro,ject:a \"b\""),
        "/workspace".to_owned(),
        access,
    )];
    ask
}

#[test]
fn a_layer_takes_the_writes_and_the_project_stays() {
    as_each_user(|yard| {
        let ask = layered(
            yard,
            "cat kept; echo new > made; echo changed > kept; rm gone; rm -r sub; mkdir sub; ls -A . sub | tr '\\n' ' '",
        );
        let reported = yard.run(&ask);
        assert_eq!(
            reported.stdout, "lower\n.: kept made sub  sub: ",
            "{reported:?}"
        );
        let project = yard.path("pro,ject:a \"b\"");
        assert_eq!(fs::read_to_string(project.join("kept")).unwrap(), "lower\n");
        assert!(project.join("gone").exists() && project.join("sub/deep").exists());
        let upper = yard.path("up,per:1");
        assert_eq!(fs::read_to_string(upper.join("kept")).unwrap(), "changed\n");
        assert_eq!(fs::read_to_string(upper.join("made")).unwrap(), "new\n");
        assert!(
            fs::symlink_metadata(upper.join("gone"))
                .unwrap()
                .file_type()
                .is_char_device()
        );
        assert_eq!(owner(&upper.join("made")), yard.user());
        // A directory made over one that was there says so in the attributes of ordinary users.
        let mut value = [0_u8; 8];
        let opaque = rustix::fs::getxattr(upper.join("sub"), "user.overlay.opaque", &mut value);
        assert_eq!(opaque.map(|n| value[..n].to_vec()), Ok(b"y".to_vec()));
        assert_eq!(yard.remains(), "");
    });
}

#[test]
fn an_alias_of_a_layer_is_the_same_layer() {
    as_each_user(|yard| {
        let mut ask = layered(
            yard,
            "echo a > /workspace/one; cat /src/app/one; echo b > /src/app/two; cat /workspace/two /src/app/.cfg/x; pwd",
        );
        ask.aliases = vec![("/workspace".to_owned(), "/src/app".to_owned())];
        ask.files = vec![("/workspace/.cfg/x".to_owned(), "sealed\n".to_owned())];
        ask.cwd = "/src/app".to_owned();
        let reported = yard.run(&ask);
        assert_eq!(reported.stdout, "a\nb\nsealed\n/src/app\n", "{reported:?}");
    });
}

#[test]
fn a_later_mount_covers_an_earlier_one() {
    as_each_user(|yard| {
        for name in ["first", "second"] {
            yard.directory(name);
            yard.file(&format!("{name}/who"), name);
        }
        let mut ask = yard.shell("cat /m/who; test -e /m/inner || echo . covered");
        for (host, inside) in [("first", "/m"), ("first", "/m/inner"), ("second", "/m")] {
            ask.mounts
                .push((yard.text(host), inside.to_owned(), "ro".to_owned()));
        }
        assert_eq!(yard.run(&ask).stdout, "second. covered\n");
    });
}

#[test]
fn a_volume_is_kept_for_the_same_agent_and_writable() {
    as_each_user(|yard| {
        let mut ask = yard.shell("cat ~/.m2/repository/a; echo kept > ~/.m2/repository/a");
        ask.volumes = vec![(
            "kapi-7-m2".to_owned(),
            "/home/agent/.m2/repository".to_owned(),
        )];
        let first = yard.run(&ask);
        assert_eq!(
            (first.end.as_str(), first.stdout.as_str()),
            ("Exited(0)", ""),
            "{first:?}"
        );
        let second = yard.run(&ask);
        assert_eq!(second.stdout, "kept\n", "{second:?}");
        ask.volumes[0].0 = "kapi-8-m2".to_owned();
        let other = yard.run(&ask);
        assert_eq!(other.stdout, "", "{other:?}");
        assert_eq!(yard.remains(), "kapi-7-m2\nkapi-8-m2\n");
        assert_eq!(
            fs::read_dir(yard.path("home/.m2/repository"))
                .unwrap()
                .count(),
            0
        );
    });
}
