//! The names of one project's streams and subjects.
//!
//! A project's name is one token of a subject, so it can neither be a wildcard nor reach into
//! another project.

use crate::error::FleetError;

/// The longest name of a project in bytes.
const PROJECT_BYTES_MAX: usize = 80;

/// The names that one project uses.
#[derive(Debug, Clone)]
pub(crate) struct SubjectNames {
    project: String,
}

impl SubjectNames {
    pub(crate) fn of(project: &str) -> Result<Self, FleetError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if project.is_empty() || project.len() > PROJECT_BYTES_MAX || !project.bytes().all(is_plain)
        {
            return Err(FleetError::Project {
                name: project.to_owned(),
            });
        }
        Ok(Self {
            project: project.to_owned(),
        })
    }

    /// The stream of accepted batches.
    pub(crate) fn log_stream(&self) -> String {
        format!("KAPI_{}", self.project)
    }

    /// The stream that says where the fold is.
    pub(crate) fn fold_stream(&self) -> String {
        format!("KAPI_{}_FOLD", self.project)
    }

    /// The stream of everything else: parts of folds, history, objects.
    pub(crate) fn file_stream(&self) -> String {
        format!("KAPI_{}_FILES", self.project)
    }

    /// What a batch is published to.
    pub(crate) fn log(&self) -> String {
        format!("kapi.{}.kernel", self.project)
    }

    /// What says where the fold is.
    pub(crate) fn fold(&self) -> String {
        format!("kapi.{}.fold", self.project)
    }

    /// Where the cluster says that a batch was accepted.
    pub(crate) fn news(&self) -> String {
        format!("kapi.{}.news", self.project)
    }

    /// Everything in the stream of files.
    pub(crate) fn files(&self) -> String {
        format!("kapi.{}.files.>", self.project)
    }

    /// One file of it.
    pub(crate) fn file(&self, name: &str) -> String {
        format!("kapi.{}.files.{name}", self.project)
    }
}

#[cfg(test)]
mod tests {
    use super::SubjectNames;

    #[test]
    fn a_project_cannot_name_anothers_subjects() {
        assert_eq!(
            SubjectNames::of("shop-1a2b3c4d").unwrap().log(),
            "kapi.shop-1a2b3c4d.kernel"
        );
        for name in ["", "*", ">", "a.b", "a b", "ä", &"a".repeat(81)] {
            assert!(SubjectNames::of(name).is_err(), "{name}");
        }
    }
}
