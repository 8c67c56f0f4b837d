//! The workflows of a project: the handle that every request about them goes through.

use std::ops::Deref;

use kapi_goal::record::project::Project;

/// The workflows of a project.
#[derive(Clone, Copy)]
pub struct Workflows<'a> {
    project: &'a Project<'a>,
}

impl<'a> Workflows<'a> {
    /// Returns the workflows of a project.
    #[must_use]
    pub const fn of(project: &'a Project<'a>) -> Self {
        Self { project }
    }
}

impl<'a> Deref for Workflows<'a> {
    type Target = Project<'a>;

    fn deref(&self) -> &Project<'a> {
        self.project
    }
}
