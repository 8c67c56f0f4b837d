//! The TypeScript types of what hosts read and write, made from the JSON Schemas of this crate's types
//! and compared with what the Pi package has.
//!
//! What no host reads is left out of a schema (`#[schemars(skip)]`), and so of its type.

use std::fmt::Write as _;

use kapi_core::id::EffectId;
use kapi_core::usage::Usage;
use kapi_goal::rules::event::GoalEvent;
use kapi_goal::rules::slash::subcommand::SUBCOMMANDS;
use kapi_workflow::rules::event::WorkflowEvent;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::result::{ApprovalNeededView, ResultView};
use crate::rpc::{
    CompactionReply, DialogAnswer, GoalName, HostGreeting, HostHello, HostModelList, ModelAnswer,
    PersonReply, PersonWords, RPC_VERSION, RpcNotice, RunEnd, RunPrompt, SlashLine, ToolPermission,
    ToolReply, ToolUse,
};
use crate::session::{CandidatesView, SESSION_VERSION, SessionView, ShownView};
use crate::workflow::WorkflowView;
use crate::workflow::inbox::InboxView;
use crate::workflow::modes::ModeParts;
use crate::workflow::row::WorkflowStatusView;

const RENEWAL: &str = "// Made from the types of crates/kapi-wire by its tests, which say how to renew it. Do not \
     edit.\n";

/// What is read of a line while a workflow or a goal is driven.
#[derive(Debug, PartialEq, Eq, Deserialize, JsonSchema)]
struct StreamLine {
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<StreamLineContent>,
}

/// What is read of the event that a line tells.
#[derive(Debug, PartialEq, Eq, Deserialize, JsonSchema)]
struct StreamLineContent {
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<String>,
}

/// The schemas of types by their names, and of those that they name.
#[derive(Debug, Default)]
struct Definitions(Map<String, Value>);

impl Definitions {
    /// Adds a type and returns its name.
    fn add<T: JsonSchema>(&mut self) -> String {
        let mut settings = SchemaSettings::draft2020_12().for_serialize();
        settings.meta_schema = None;
        let schema: Schema = settings.into_generator().into_root_schema_for::<T>();
        let Value::Object(mut root) = schema.to_value() else {
            panic!("a type is described by an object")
        };
        if let Some(Value::Object(inner)) = root.remove("$defs") {
            self.0.extend(inner);
        }
        let name = T::schema_name().into_owned();
        self.0.insert(name.clone(), Value::Object(root));
        name
    }

    /// Adds what the fields of a type hold, and returns their names.
    fn add_fields<T: JsonSchema>(&mut self) -> Vec<String> {
        let whole = self.add::<T>();
        let whole = self.0.remove(&whole).unwrap_or_default();
        let fields = whole["properties"].as_object().into_iter().flatten();
        let names = fields.map(|(_, field)| type_of(field).replace(" | null", ""));
        names.collect()
    }

    /// Writes each as a type, with what it is.
    fn write(&self, out: &mut String) {
        for (name, schema) in &self.0 {
            let about = schema["description"].as_str().unwrap_or_default();
            let (about, it) = (about.replace('\n', " "), type_of(schema));
            write!(out, "\n/** {about} */\nexport type {name} = {it};\n").unwrap();
        }
    }
}

/// Returns a schema as a type.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(text) = schema["const"].as_str() {
        return format!("\"{text}\"");
    }
    let any = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    if let Some(any) = any {
        return any.iter().map(type_of).collect::<Vec<_>>().join(" | ");
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().map(Value::to_string);
        return words.collect::<Vec<_>>().join(" | ");
    }
    match &schema["type"] {
        Value::Array(several) => {
            let each = several.iter();
            let each = each.map(|one| type_of(&serde_json::json!({ "type": one })));
            each.collect::<Vec<_>>().join(" | ")
        }
        Value::String(one) => match one.as_str() {
            "integer" | "number" => "number".to_owned(),
            "array" => format!("{}[]", type_of(&schema["items"])),
            "object" => object(schema),
            other => other.to_owned(),
        },
        _ => "unknown".to_owned(),
    }
}

fn object(schema: &Value) -> String {
    let Some(fields) = schema["properties"].as_object() else {
        return "Record<string, never>".to_owned();
    };
    let required = schema["required"].as_array();
    let is_required = |name: &String| required.is_some_and(|all| all.iter().any(|it| it == name));
    let fields = fields.iter().map(|(name, field)| {
        let mark = if is_required(name) { "" } else { "?" };
        format!("{name}{mark}: {}", type_of(field))
    });
    format!("{{ {} }}", fields.collect::<Vec<_>>().join("; "))
}

/// Returns the file of what `kapi rpc` and a host say to each other.
fn messages() -> String {
    let mut types = Definitions::default();
    types.add::<HostHello>();
    types.add::<HostGreeting>();
    types.add::<GoalName>();
    types.add::<SlashLine>();
    types.add::<DialogAnswer>();
    types.add::<PersonWords>();
    types.add::<ToolUse>();
    types.add::<RunEnd>();
    types.add::<PersonReply>();
    types.add::<RunPrompt>();
    types.add::<ToolPermission>();
    types.add::<ToolReply>();
    types.add::<CompactionReply>();
    types.add::<HostModelList>();
    types.add::<ModelAnswer>();
    types.add::<RpcNotice>();
    let mut out = format!("// What `kapi rpc` and this package say to each other.\n//\n{RENEWAL}");
    write!(
        out,
        "\n/** The layout of these messages. */\nexport const RPC_VERSION = {RPC_VERSION};\n"
    )
    .unwrap();
    let offered = SUBCOMMANDS
        .iter()
        .filter_map(|row| row.name.map(|name| (name, row.purpose)));
    out.push_str("\n/** What can follow `/until-done`, and what it does. */\n");
    out.push_str("export const SUBCOMMANDS: [string, string][] = [\n");
    for (name, purpose) in offered {
        writeln!(out, "\t[\"{name}\", \"{purpose}\"],").unwrap();
    }
    out.push_str("];\n");
    types.write(&mut out);
    out
}

/// Returns the file of what commands print as JSON.
fn documents() -> String {
    let mut types = Definitions::default();
    types.add::<SessionView>();
    types.add::<ShownView>();
    types.add::<CandidatesView>();
    types.add::<WorkflowView>();
    types.add::<WorkflowStatusView>();
    types.add::<InboxView>();
    types.add::<ApprovalNeededView<'_>>();
    types.add::<ResultView>();
    types.add::<StreamLine>();
    // Those whose parts the package shows; a mode that it does not know needs none.
    let parts = types.add_fields::<ModeParts>();
    let mut out = format!(
        "// What `kapi --json` and `kapi __session` print, as far as this package reads it.\n//\n{RENEWAL}"
    );
    write!(
        out,
        "\n/** The layout of what `kapi __session` prints. */\nexport const SESSION_VERSION = \
         {SESSION_VERSION};\n"
    )
    .unwrap();
    write!(
        out,
        "\n/** A mode's own part of a workflow; a mode has what it has. */\nexport type ModePart = \
         Partial<{}>;\n",
        parts.join(" & ")
    )
    .unwrap();
    types.write(&mut out);
    out
}

fn check(name: &str, expected: &str) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../extensions/pi-kapi/kapi/"
    );
    let path = format!("{path}{name}");
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    if expected != found {
        let made = std::env::temp_dir().join(name);
        let mut file = std::fs::File::create(&made).unwrap();
        std::io::Write::write_all(&mut file, expected.as_bytes()).unwrap();
        panic!("copy {} to {path}: the types have changed", made.display());
    }
}

#[test]
fn the_pi_package_has_the_types_of_the_messages() {
    check("rpc_types.ts", &messages());
}

#[test]
fn the_pi_package_has_the_types_of_the_documents() {
    check("json_types.ts", &documents());
}

/// Lines of streams are events of several logs, so their type says what the package looks for; this
/// says that it is there.
#[test]
fn an_event_of_an_effect_names_it() {
    let effect = EffectId::new(2, "agent", 1);
    let read = |event: Value| serde_json::from_value::<StreamLine>(event).unwrap();
    let goal = read(
        serde_json::to_value(GoalEvent::EffectIntended {
            effect: effect.clone(),
            at_ms: 1,
        })
        .unwrap(),
    );
    let workflow = read(
        serde_json::to_value(WorkflowEvent::EffectEnded {
            effect: effect.clone(),
            usage: Usage::default(),
            failed: None,
        })
        .unwrap(),
    );
    for (line, kind) in [(goal, "effect_intended"), (workflow, "effect_ended")] {
        assert_eq!(line.kind, kind);
        let named = line.data.and_then(|data| data.effect);
        assert_eq!(named.as_deref(), Some(effect.as_str()));
    }
}
