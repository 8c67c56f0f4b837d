//! What an agent without hooks is asked to do so that its progress can be seen.
//!
//! A request in words, for the end of its prompt; an agent that ignores it is shown with the
//! phase the host knows. Knows nothing of how the file is read.

/// The file, in the workspace. It is the harness's: no commit should hold it.
pub const PROGRESS_FILE: &str = ".kapsis/progress.json";

/// Asks an agent to keep its progress file.
pub const PROGRESS_INSTRUCTION: &str = "\
While you work, keep the file `.kapsis/progress.json` up to date so that others can follow. Write it \
whole each time, as in `{\"version\": \"1.0\", \"current_step\": 2, \"total_steps\": 5, \
\"description\": \"Writing the parser\"}`: once when you have a plan, and again when you begin each \
step. Do not commit it.";

#[cfg(test)]
mod tests {
    use super::{PROGRESS_FILE, PROGRESS_INSTRUCTION};

    #[test]
    fn the_example_is_json_with_the_numbers_that_are_read() {
        let mut quoted = PROGRESS_INSTRUCTION.split('`').skip(1).step_by(2);
        assert_eq!(quoted.next(), Some(PROGRESS_FILE));
        let example: serde_json::Value = serde_json::from_str(quoted.next().unwrap()).unwrap();
        for key in ["current_step", "total_steps"] {
            assert!(
                example.get(key).is_some_and(serde_json::Value::is_u64),
                "{key}"
            );
        }
    }
}
