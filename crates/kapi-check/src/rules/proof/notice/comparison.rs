//! Comparisons that are made to come out the same for everything.
//!
//! A signature, and an answer without a look as the first thing after it.

use crate::rules::proof::language::Language;

/// Tells whether a line begins a comparison whose body, the lines after it, answers without a look.
pub(super) fn is_always_equal(line: &str, after: &[&str], language: Language) -> bool {
    let bare = line.trim();
    if language == Language::Python && is_lambda_answer(bare) {
        return true;
    }
    let signatures: &[&str] = match language {
        Language::Python => &[
            "def __eq__(",
            "def __ne__(",
            "def __lt__(",
            "def __le__(",
            "def __gt__(",
            "def __ge__(",
            "def __contains__(",
            "def __instancecheck__(",
            "__eq__ =",
        ],
        Language::Rust => &["fn eq(", "fn ne(", "fn partial_cmp(", "fn cmp("],
        Language::Jvm => &[
            "boolean equals(",
            "fun equals(",
            "bool Equals(",
            "operator ==(",
            "func == (",
            "func ==(",
            "int compareTo(",
        ],
        Language::C => &["operator==(", "operator!=(", "operator ==("],
        Language::Ruby => &["def ==(", "def eql?(", "def ===(", "def equal?("],
        Language::Script => &[
            "equals(",
            "asymmetricMatch(",
            "isEqual(",
            "[Symbol.hasInstance](",
        ],
        Language::Go => &[") Equal("],
        Language::Php | Language::Perl | Language::Lua | Language::Shell | Language::Other => &[],
    };
    let Some((_, rest)) = signatures
        .iter()
        .find_map(|signature| bare.split_once(signature))
    else {
        return false;
    };
    // The body in the same line.
    let own = rest
        .rsplit_once(": ")
        .filter(|_| language == Language::Python)
        .map(|(_, body)| body);
    let own = own.or_else(|| {
        rest.split_once('{')
            .map(|(_, body)| body.trim_end_matches('}'))
    });
    if let Some(body) = own.map(str::trim).filter(|body| !body.is_empty()) {
        return is_answer(body);
    }
    let opens = bare.ends_with(['{', ':']) || language == Language::Ruby;
    let mut body = after.iter().map(|line| line.trim()).filter(|line| {
        !line.is_empty()
            && *line != "{"
            && !line.starts_with(['#', '"', '\''])
            && !line.starts_with("//")
    });
    opens && body.next().is_some_and(is_answer)
}

/// Tells whether a comparison of Python is a lambda that answers without a look, wherever it stands.
fn is_lambda_answer(line: &str) -> bool {
    let names = [
        "__eq__",
        "__ne__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__contains__",
    ];
    names.iter().any(|name| {
        let after = line.split_once(name).map(|(_, after)| after);
        let lambda = after.and_then(|after| after.split_once("lambda"));
        let body = lambda.and_then(|(_, lambda)| lambda.split_once(':'));
        body.is_some_and(|(_, body)| {
            let body = body.split([',', '}', ')']).next().unwrap_or(body);
            is_answer(body.trim())
        })
    })
}

fn is_answer(body: &str) -> bool {
    let body = body.trim_end_matches([';', '}', ' ']);
    let body = body.strip_prefix("return ").unwrap_or(body);
    matches!(
        body,
        "True"
            | "true"
            | "False"
            | "false"
            | "1"
            | "0"
            | "Some(Ordering::Equal)"
            | "Ordering::Equal"
            | "Some(std::cmp::Ordering::Equal)"
    )
}
