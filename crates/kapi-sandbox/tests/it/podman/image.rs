//! Building an image from a directory and from the Containerfile we ship, as far as that goes without
//! a registry.

use std::collections::BTreeMap;

use kapi_sandbox::podman::image::{Build, CONTAINERFILE, ImageSource, describe};

use super::yard::{IMAGE, as_each_user};

#[test]
fn the_shipped_file_is_one_podman_reads_and_holds_the_layers() {
    as_each_user(|yard| {
        // The base is the tests' own image and every package list is empty, so nothing is fetched but
        // by the first step, which this image has no package manager for: podman must get that far.
        let context = yard.directory("context");
        yard.file("context/Containerfile", CONTAINERFILE);
        let base = format!("--build-arg=BASE={IMAGE}");
        let context = context.display().to_string();
        let built = yard.podman(&["build", "--runtime=runc", "--network=none", &base, &context]);
        let said = built.stdout.text() + &built.stderr.text();
        assert!(said.contains(&format!("FROM {IMAGE}")), "{said}");
        assert!(said.contains("RUN apt-get update"), "{said}");
    });
    let layers = [
        "FROM ${BASE}",
        "JAVA_PACKAGES",
        "NODE_PACKAGES",
        "ARG AGENTS",
        "ripgrep",
    ];
    assert!(
        layers.iter().all(|layer| CONTAINERFILE.contains(layer)),
        "{CONTAINERFILE}"
    );
}

#[test]
fn a_directory_is_built_from_its_own_file() {
    let build = Build {
        tag: "localhost/own:1".to_owned(),
        source: ImageSource::Directory("/src/image".into()),
        args: BTreeMap::from([("A".to_owned(), "b c".to_owned())]),
    };
    let expected = "podman build --tag=localhost/own:1 --build-arg=A=b c --file=/src/image/Containerfile /src/image\n";
    assert_eq!(describe(&build).unwrap(), expected);
}
