//! Mounts, layers, files and aliases.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use crate::place::Place;
use crate::request::Request;
use crate::{Behaviour, await_condition, notify, run, say};

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    (
        "what is written belongs to the user",
        written,
        "text\n true 644 755",
    ),
    ("a mount to read", read_only, "kept 3 refused, 1 file"),
    (
        "a layer",
        layer,
        "lower=as it was, changed, whiteout, moved=true",
    ),
    ("a layer goes on", layer_again, "changed\nnew"),
    (
        "a layer is one run's at a time",
        layer_twice,
        "refused, then last",
    ),
    (
        "files given to read",
        files,
        "given 2 refused, on the host: nothing",
    ),
    ("a file on a layer", file_on_layer, "sealed, lower has none"),
    ("an alias", alias, "one two /real/place"),
    ("a later mount covers an earlier one", cover, "second"),
    ("mounts on mounts", nested, "inner outer"),
];

fn written(location: &Place) -> String {
    say(location, "echo text > made; mkdir sub");
    let found = fs::metadata(location.path("work/made")).unwrap();
    let sub = fs::metadata(location.path("work/sub")).unwrap();
    let is_own = found.uid() == location.user() && sub.uid() == location.user();
    let text = fs::read_to_string(location.path("work/made")).unwrap();
    format!(
        "{text} {is_own} {:o} {:o}",
        found.mode() & 0o7777,
        sub.mode() & 0o7777
    )
}

fn read_only(location: &Place) -> String {
    location.directory("input");
    location.file("input/data", "kept");
    let line = "cat /input/data; echo x > /input/new; echo x > /input/data; chmod 777 /input/data";
    let mut request = location.shell(line);
    request
        .mounts
        .push((location.text("input"), "/input".to_owned(), "ro".to_owned()));
    let reply = run(location, &request);
    let n_refused = reply.stderr.matches("Read-only file system").count();
    let n_files = fs::read_dir(location.path("input")).unwrap().count();
    format!("{} {n_refused} refused, {n_files} file", reply.stdout)
}

/// Makes a project and a layer over it.
fn over(location: &Place, number: u32, line: &str) -> Request {
    let name = |what: &str| format!("layer{number}/{what}");
    if !location.path(&name("lower")).exists() {
        for directory in ["", "lower", "lower/deep", "upper", "scratch"] {
            location.directory(&name(directory));
        }
        for file in ["lower/readme", "lower/gone", "lower/deep/leaf"] {
            location.file(&name(file), "as it was");
        }
    }
    let layer = format!(
        "cow:{}:{}",
        location.text(&name("upper")),
        location.text(&name("scratch"))
    );
    let mut request = location.shell(line);
    request.mounts[0] = (
        location.text(&name("lower")),
        "/workspace".to_owned(),
        layer,
    );
    request
}

fn layer(location: &Place) -> String {
    let line = "echo -n changed > readme; rm gone; mv deep elsewhere && cat elsewhere/leaf > copy";
    let reply = run(location, &over(location, 1, line));
    assert_eq!(reply.end, "Exited(0)", "{reply:?}");
    let lower = fs::read_to_string(location.path("layer1/lower/readme")).unwrap();
    let upper = fs::read_to_string(location.path("layer1/upper/readme")).unwrap();
    let gone = fs::symlink_metadata(location.path("layer1/upper/gone")).unwrap();
    let is_whiteout = gone.file_type().is_char_device() && gone.rdev() == 0;
    let is_moved = location.path("layer1/upper/elsewhere/leaf").exists()
        && location.path("layer1/lower/deep/leaf").exists();
    let gone = if is_whiteout { "whiteout" } else { "no mark" };
    format!("lower={lower}, {upper}, {gone}, moved={is_moved}")
}

fn layer_again(location: &Place) -> String {
    run(
        location,
        &over(location, 2, "echo changed > readme; echo new > made"),
    );
    let again = run(location, &over(location, 2, "cat readme made"));
    if again.end.contains("mounting volume") {
        // What podman says of it names the container.
        return "not mounted again".to_owned();
    }
    notify(&again)
}

fn layer_twice(location: &Place) -> String {
    let mut first = over(
        location,
        3,
        "touch /signs/up; until test -e /signs/go; do sleep 0.01; done; echo last",
    );
    location.directory("signs");
    first
        .mounts
        .push((location.text("signs"), "/signs".to_owned(), "rw".to_owned()));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| notify(&run(location, &first)));
        await_condition("the first is up", || location.path("signs/up").exists());
        let mut second = over(location, 3, "echo both");
        second.name = format!("{}-second", second.name);
        let reply = run(location, &second);
        location.file("signs/go", "");
        let seen = if reply.end.contains("busy") {
            "refused"
        } else if reply.end.contains("mounting volume") {
            "refused by the mount"
        } else {
            &*reply.end
        };
        format!("{seen}, then {}", running.join().unwrap())
    })
}

fn files(location: &Place) -> String {
    let mut request =
        location.shell("cat ~/.tool/given; echo x > ~/.tool/given; rm -f ~/.tool/given; true");
    request.files = vec![("/home/agent/.tool/given".to_owned(), "given".to_owned())];
    let reply = run(location, &request);
    let n_refused = reply.stderr.matches("Read-only file system").count()
        + reply.stderr.matches("busy").count();
    let left = fs::read_to_string(location.path("home/.tool/given")).unwrap_or_default();
    let left = if left.is_empty() { "nothing" } else { &left };
    format!("{} {n_refused} refused, on the host: {left}", reply.stdout)
}

fn file_on_layer(location: &Place) -> String {
    let mut request = over(location, 4, "cat sealed; echo x > sealed");
    request.files = vec![("/workspace/sealed".to_owned(), "sealed".to_owned())];
    let reply = run(location, &request);
    let has = location.path("layer4/lower/sealed").exists();
    format!(
        "{}, lower has {}",
        reply.stdout,
        if has { "it" } else { "none" }
    )
}

fn alias(location: &Place) -> String {
    let line = "echo -n 'one ' > /real/place/first; cat /workspace/first; echo -n 'two ' > /workspace/second; cat /real/place/second; pwd";
    let mut request = location.shell(line);
    request.aliases = vec![("/workspace".to_owned(), "/real/place".to_owned())];
    request.cwd = "/real/place".to_owned();
    notify(&run(location, &request))
}

fn cover(location: &Place) -> String {
    let mut request = location.shell("cat /m/who");
    for name in ["first", "second"] {
        location.directory(name);
        location.file(&format!("{name}/who"), name);
        request
            .mounts
            .push((location.text(name), "/m".to_owned(), "ro".to_owned()));
    }
    notify(&run(location, &request))
}

fn nested(location: &Place) -> String {
    for name in ["outer", "outer/in", "inner"] {
        location.directory(name);
    }
    location.file("outer/name", "outer");
    location.file("inner/name", "inner ");
    let mut request = location.shell("cat /o/in/name /o/name");
    for (name, inside) in [("outer", "/o"), ("inner", "/o/in")] {
        request
            .mounts
            .push((location.text(name), inside.to_owned(), "ro".to_owned()));
    }
    notify(&run(location, &request))
}
