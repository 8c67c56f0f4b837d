//! What a profile adds to the grant: paths of the host, the container's image, sandboxes inside.
//!
//! Only for the person's own profile; a project's never gets here.

use kapi_core::isolation::SandboxLevel;
use kapi_run::grant::Grant;

use crate::config::source::{Origins, SourcedValue};
use crate::error::Error;
use crate::profile::ProfileFile;
use crate::profile::include::Include;
use crate::profile::launch::ListAdditions;

/// Adds what a profile lends.
pub(super) fn lend(
    profile: &ProfileFile,
    grant: &mut Grant,
    added: &mut ListAdditions,
    notes: &mut Vec<String>,
) {
    for include in &profile.include {
        match &include.value {
            Include::ReadOnly(path) => grant.read_only.push(path.clone()),
            Include::Copied(relative) => grant.home_copies.push(relative.clone()),
            Include::Missing(path) => {
                notes.push(format!(
                    "{} does not exist, so it is not shared.",
                    path.display()
                ));
                continue;
            }
        }
        added.shared_in.push(include.clone());
    }
}

/// Sets what a profile says of containers and of sandboxes inside.
pub(super) fn contain(
    profile: &ProfileFile,
    level: SandboxLevel,
    grant: &mut Grant,
    origins: &mut Origins,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    let image = match (&profile.image_name, &profile.image_tag) {
        (None, None) => None,
        (Some(name), None) => Some(name.clone()),
        (Some(name), Some(tag)) => Some(SourcedValue::new(
            format!("{}:{}", name.value, tag.value),
            name.source.clone(),
        )),
        (None, Some(tag)) => {
            return Err(Error::usage(format!(
                "{}: `image.tag` needs `image.name`",
                tag.source
            )));
        }
    };
    let mut of_containers = Vec::new();
    if let Some(image) = image {
        grant.podman.image.clone_from(&image.value);
        origins.set("sandbox.image", image.source);
        of_containers.push("image");
    }
    if let Some(userns) = &profile.userns {
        grant.podman.userns = userns.value;
        origins.set("sandbox.userns", userns.source.clone());
        of_containers.push("security.userns");
    }
    if level != SandboxLevel::Podman && !of_containers.is_empty() {
        notes.push(format!(
            "`{}` in {} only applies with `--sandbox podman`.",
            of_containers.join("` and `"),
            profile.location()
        ));
    }
    if let Some(nested) = &profile.nested_namespaces {
        grant.nested_namespaces = nested.value;
        origins.set("sandbox.nested_namespaces", nested.source.clone());
    }
    if let Some(mirror) = &profile.mirror {
        grant.maven_mirror = Some(mirror.value.clone());
        origins.set("maven.mirror_url", mirror.source.clone());
    }
    Ok(())
}
