//! What the podman level needs before anything can start in it: an image, and podman itself.
//!
//! Asks podman nothing and starts nothing, so that it costs nothing before an approval.

use std::ffi::OsStr;

use kapi_core::isolation::SandboxLevel;
use kapi_run::host_grants::HostGrants;
use kapi_sandbox::podman::error::PodmanError;
use kapi_sys::process;

use crate::error::Error;
use crate::exit_code::Exit;

/// The image that `kapi sandbox image` makes when no other name was given.
pub(crate) const IMAGE_DEFAULT: &str = "localhost/kapi:latest";
/// What is missing when nobody named an image.
pub(crate) const NO_IMAGE: &str = "no image is configured";

/// Returns how a person gets an image.
pub(crate) fn image_hint() -> String {
    format!(
        "build one with `kapi sandbox image`, then set `image = \"{IMAGE_DEFAULT}\"` under [sandbox] \
         in your configuration."
    )
}

/// Refuses what could not even begin at a level.
pub(crate) fn check(grants: &HostGrants, level: SandboxLevel) -> Result<(), Error> {
    match level {
        SandboxLevel::Native | SandboxLevel::None => return Ok(()),
        SandboxLevel::Podman => {}
    }
    let options = &grants.grant.podman;
    if options.image.is_empty() {
        let text = format!("failed to use the podman level: {NO_IMAGE}");
        return Err(Error::new(Exit::Failed, text).with_hint(image_hint()));
    }
    options.check().map_err(|error| refused(&error))?;
    let path = grants.env.get(OsStr::new("PATH"));
    match path.and_then(|path| process::find_in_path(OsStr::new("podman"), path)) {
        Some(_) => Ok(()),
        None => Err(refused(&PodmanError::NotFound)),
    }
}

/// Words what podman's part of the sandbox refuses: a value is the person's, the rest the world's.
pub(crate) fn refused(error: &PodmanError) -> Error {
    let mut wrapped = Error::failed(error);
    if matches!(error, PodmanError::Refused { .. }) {
        wrapped.exit = Exit::Usage;
    }
    wrapped.hint = error.hint().map(|hint| format!("{hint}."));
    wrapped
}
