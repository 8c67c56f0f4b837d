//! The TypeScript types of the messages, made from their JSON Schemas and compared with what the Pi
//! package has.

use std::fmt::Write as _;

use kapi_goal::rules::slash::subcommand::SUBCOMMANDS;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use super::{
    CompactionReply, DialogAnswer, GoalName, HostGreeting, HostHello, HostModelList, ModelAnswer,
    PersonReply, PersonWords, RPC_VERSION, RpcNotice, RunEnd, RunPrompt, SlashLine, ToolPermission,
    ToolReply, ToolUse,
};

const HEADER: &str = "// What `kapi rpc` and this package say to each other.\n//\n// Made from the types of \
     crates/kapi-wire by its tests, which say how to renew it. Do not edit.\n";

/// Collects the definitions that a type needs, its own included.
fn define<T: JsonSchema>(definitions: &mut Map<String, Value>) {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    let schema: Schema = settings.into_generator().into_root_schema_for::<T>();
    let Value::Object(mut root) = schema.to_value() else {
        panic!("a type is described by an object")
    };
    if let Some(Value::Object(inner)) = root.remove("$defs") {
        definitions.extend(inner);
    }
    definitions.insert(T::schema_name().into_owned(), Value::Object(root));
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
    let fields = fields.iter();
    let fields = fields.map(|(name, field)| format!("{name}: {}", type_of(field)));
    format!("{{ {} }}", fields.collect::<Vec<_>>().join("; "))
}

fn text() -> String {
    let mut definitions = Map::new();
    define::<HostHello>(&mut definitions);
    define::<HostGreeting>(&mut definitions);
    define::<GoalName>(&mut definitions);
    define::<SlashLine>(&mut definitions);
    define::<DialogAnswer>(&mut definitions);
    define::<PersonWords>(&mut definitions);
    define::<ToolUse>(&mut definitions);
    define::<RunEnd>(&mut definitions);
    define::<PersonReply>(&mut definitions);
    define::<RunPrompt>(&mut definitions);
    define::<ToolPermission>(&mut definitions);
    define::<ToolReply>(&mut definitions);
    define::<CompactionReply>(&mut definitions);
    define::<HostModelList>(&mut definitions);
    define::<ModelAnswer>(&mut definitions);
    define::<RpcNotice>(&mut definitions);
    let mut out = String::from(HEADER);
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
    for (name, schema) in &definitions {
        let about = schema["description"].as_str().unwrap_or_default();
        let (about, it) = (about.replace('\n', " "), type_of(schema));
        write!(out, "\n/** {about} */\nexport type {name} = {it};\n").unwrap();
    }
    out
}

#[test]
fn the_pi_package_has_the_types_of_these_messages() {
    const TYPES: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../extensions/pi-kapi/kapi/rpc_types.ts"
    );
    let (expected, found) = (text(), std::fs::read_to_string(TYPES).unwrap_or_default());
    if expected != found {
        let made = std::env::temp_dir().join("rpc_types.ts");
        let mut file = std::fs::File::create(&made).unwrap();
        std::io::Write::write_all(&mut file, expected.as_bytes()).unwrap();
        panic!("copy {} to {TYPES}: the types have changed", made.display());
    }
}
