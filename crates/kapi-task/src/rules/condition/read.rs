//! From what a person wrote to a condition.
//!
//! A text is an expression; everything else is a table with one key that says what is asked.

use kapi_core::task_id::LoopNameForm;
use kapi_settings::scalar::{Millis, TrimmedText, word};
use kapi_settings::setting::OneOrMany;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::rules::condition::expression::{EXPRESSION_BYTES_MAX, Expression};
use crate::rules::condition::window::WindowForm;
use crate::rules::condition::{
    COMMAND_MS, COMMAND_MS_MAX, CONDITION_DEPTH_MAX, Condition, ConditionForm, FileIs, GitIs,
    LEAVES_MAX, RunResult,
};

/// The most patterns of one condition.
const GLOBS_MAX: usize = 32;
/// The longest pattern or name in bytes.
const NAME_BYTES_MAX: usize = 256;
/// The longest command in bytes.
const COMMAND_BYTES_MAX: usize = 4 * 1024;

#[derive(Deserialize)]
#[serde(rename = "text is expr", rename_all = "snake_case")]
enum ConditionSyntax {
    All(OneOrMany<Self, 1, LEAVES_MAX>),
    Any(OneOrMany<Self, 1, LEAVES_MAX>),
    Not(Box<Self>),
    Expr(#[serde(deserialize_with = "expression")] Expression),
    File(FileForm),
    Command(ConditionCommandForm),
    Git(GitForm),
    Time(WindowForm),
    LastResult(ResultForm),
    Changed(OneOrMany<PathGlob, 1, GLOBS_MAX>),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FileForm {
    Exists(PathGlob),
    Gone(PathGlob),
    Changed(PathGlob),
}

#[derive(Deserialize)]
#[serde(rename = "alone is run")]
struct ConditionCommandForm {
    run: TrimmedText<COMMAND_BYTES_MAX>,
    timeout: Option<Millis<1_000, COMMAND_MS_MAX>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum GitForm {
    Clean,
    Dirty,
    Branch(GitQuery),
    AheadOf(GitQuery),
    RefChanged(GitQuery),
}

#[derive(Deserialize)]
#[serde(rename = "alone is is")]
struct ResultForm {
    #[serde(rename = "loop")]
    loop_name: Option<LoopNameForm>,
    is: OneOrMany<RunResult, 1, 4>,
}

/// A pattern for paths of the project.
struct PathGlob(String);

/// What git is asked about.
struct GitQuery(String);

impl<'de> Deserialize<'de> for ConditionForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = ConditionSyntax::deserialize(deserializer)?;
        let mut leaves_left = LEAVES_MAX;
        let condition = condition(form, 1, &mut leaves_left);
        condition.map(Self).map_err(D::Error::custom)
    }
}

fn condition(
    form: ConditionSyntax,
    depth: usize,
    leaves_left: &mut usize,
) -> Result<Condition, String> {
    if depth > CONDITION_DEPTH_MAX {
        return Err(format!(
            "conditions lie more than {CONDITION_DEPTH_MAX} deep\n\
             write fewer levels of all, any and not"
        ));
    }
    if !matches!(
        form,
        ConditionSyntax::All(_) | ConditionSyntax::Any(_) | ConditionSyntax::Not(_)
    ) {
        *leaves_left = leaves_left.checked_sub(1).ok_or_else(|| {
            format!(
                "there are more than {LEAVES_MAX} conditions\n\
                 combine some, or put them into one command"
            )
        })?;
    }
    let mut each = |forms: Vec<ConditionSyntax>| -> Result<Vec<Condition>, String> {
        let forms = forms.into_iter();
        forms
            .map(|form| condition(form, depth + 1, leaves_left))
            .collect()
    };
    Ok(match form {
        ConditionSyntax::All(forms) => Condition::All { of: each(forms.0)? },
        ConditionSyntax::Any(forms) => Condition::Any { of: each(forms.0)? },
        ConditionSyntax::Not(form) => Condition::Not {
            of: Box::new(condition(*form, depth + 1, leaves_left)?),
        },
        ConditionSyntax::Expr(expr) => Condition::Expr { expr },
        ConditionSyntax::File(form) => {
            let (glob, is) = match form {
                FileForm::Exists(glob) => (glob, FileIs::Exists),
                FileForm::Gone(glob) => (glob, FileIs::Gone),
                FileForm::Changed(glob) => (glob, FileIs::Changed),
            };
            Condition::File { glob: glob.0, is }
        }
        ConditionSyntax::Command(form) => Condition::Command {
            run: form.run.0,
            timeout_ms: form.timeout.map_or(COMMAND_MS, |timeout| timeout.0),
        },
        ConditionSyntax::Git(form) => Condition::Git {
            is: match form {
                GitForm::Clean => GitIs::Clean,
                GitForm::Dirty => GitIs::Dirty,
                GitForm::Branch(GitQuery(name)) => GitIs::Branch { name },
                GitForm::AheadOf(GitQuery(reference)) => GitIs::AheadOf { reference },
                GitForm::RefChanged(GitQuery(reference)) => GitIs::RefChanged { reference },
            },
        },
        ConditionSyntax::Time(WindowForm(window)) => Condition::Time { window },
        ConditionSyntax::LastResult(form) => Condition::LastResult {
            loop_name: form.loop_name.map(|name| name.0),
            is: form.is.0,
        },
        ConditionSyntax::Changed(globs) => Condition::Changed {
            globs: globs.0.into_iter().map(|glob| glob.0).collect(),
        },
    })
}

fn expression<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Expression, D::Error> {
    word(deserializer, EXPRESSION_BYTES_MAX, |text| {
        let expr = Expression::parse(text).map_err(|error| {
            let (reason, column) = (&error.reason, error.column);
            format!(
                "{reason} (column {column} of the expression)\nwrite it like inputs.market == 'ETH' && !payload.dry"
            )
        })?;
        let is_known = |path: &&str| {
            let root = path.split('.').next().unwrap_or_default();
            ["inputs", "payload", "state"].contains(&root)
        };
        match expr.paths().into_iter().find(|path| !is_known(path)) {
            None => Ok(expr),
            Some(path) => Err(format!(
                "`{path}` never exists, so the condition would never hold\nstart paths with \
                 inputs., payload. or state."
            )),
        }
    })
}

impl<'de> Deserialize<'de> for PathGlob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, NAME_BYTES_MAX, |text| {
            if text.starts_with('/') || text.split('/').any(|part| part == "..") {
                return Err(format!(
                    "{text:?} points outside the project\nwrite it relative to the project, without `..`"
                ));
            }
            Ok(Self(text.to_owned()))
        })
    }
}

/// What git would take for an option or a range is refused.
impl<'de> Deserialize<'de> for GitQuery {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, NAME_BYTES_MAX, |text| {
            let is_odd = |c: char| c.is_whitespace() || c.is_control() || "~^:\\[".contains(c);
            if text.starts_with('-') || text.contains("..") || text.contains(is_odd) {
                return Err(format!(
                    "{text:?} is not a branch, tag or ref name\nwrite a name like main or refs/tags/v1"
                ));
            }
            Ok(Self(text.to_owned()))
        })
    }
}
