//! The caches of an agent in a container: its own, writable, under configuration that it cannot
//! change.

use std::path::Path;

use kapi_sandbox::podman::caches;

use super::yard::as_each_user;

#[test]
fn caches_are_writable_and_their_configuration_is_not() {
    as_each_user(|yard| {
        let home = Path::new("/home/agent");
        let volumes = caches::volumes("3", home).unwrap();
        let locations: Vec<String> = volumes
            .iter()
            .map(|volume| volume.inside.display().to_string())
            .collect();
        let line = format!(
            "exec 2>&1; for d in {}; do echo mine > $d/own && cat $d/own; done; \
             for f in ~/.m2/settings.xml ~/.gradle/gradle.properties ~/.gradle/init.d/kapi.gradle; do \
             (echo x >> $f) 2>/dev/null && echo changed; rm $f 2>/dev/null && echo removed; wc -l < $f; done",
            locations.join(" ")
        );
        let mut ask = yard.shell(&line);
        let named = volumes.iter().map(|volume| volume.name.clone());
        ask.volumes = named.zip(locations).collect();
        let files = caches::files(home, None).unwrap();
        let lines: String = files
            .iter()
            .map(|(_, content)| format!("{}\n", String::from_utf8_lossy(content).lines().count()))
            .collect();
        let text = |(path, content): &(std::path::PathBuf, Vec<u8>)| {
            (
                path.display().to_string(),
                String::from_utf8(content.clone()).unwrap(),
            )
        };
        ask.files = files.iter().map(text).collect();
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let expected = "mine\n".repeat(5) + &lines;
        // Twice: the second run finds the volumes as the first left them.
        for _ in 0..2 {
            let reported = yard.run(&ask);
            assert_eq!(sorted(&reported.stdout), sorted(&expected), "{reported:?}");
        }
    });
}
