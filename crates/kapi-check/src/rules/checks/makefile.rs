//! Which targets a makefile has, as far as they are written out.
//!
//! Patterns, variables and what is included are not looked into: a target that is only made up at
//! run time is not found.

/// Tells whether a makefile has a rule for a target.
pub(super) fn has_target(text: &str, target: &str) -> bool {
    text.lines().any(|line| is_rule(line, target))
}

fn is_rule(line: &str, target: &str) -> bool {
    if line.starts_with(['\t', ' ', '#']) {
        return false;
    }
    let Some((names, rest)) = line.split_once(':') else {
        return false;
    };
    // `name := value` and `name ::= value` give a variable its value.
    let is_variable = names.contains('=') || rest.trim_start_matches(':').starts_with('=');
    !is_variable && names.split_whitespace().any(|name| name == target)
}

#[cfg(test)]
mod tests {
    use super::has_target;

    #[test]
    fn rules_are_targets_and_nothing_else_is() {
        let text =
            "test := 1\nbuild ::= 2\n.PHONY: lint\n# check: x\n\tformat: y\na b:: c\nx=test: y\n";
        for target in ["test", "build", "lint", "check", "format", "c", "y"] {
            assert!(!has_target(text, target), "{target}");
        }
        assert!(has_target(text, "a") && has_target(text, "b"));
        assert!(has_target("test: build\n", "test"));
    }
}
