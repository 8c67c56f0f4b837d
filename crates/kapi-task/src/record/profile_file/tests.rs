//! Tests of agent profiles and of how programs are told what an agent may use.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use super::tool::{AgentTool, ToolFlags, tool_flags};
use super::{Access, AgentProfile, AgentProfiles, discover};

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::File::create(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

fn profile(name: &str, keys: &str) -> String {
    format!("---\nname: {name}\ndescription: d\n{keys}---\nYou are {name}.\n")
}

/// Reads one file of a project that has no other.
fn read(dir: &str, text: &str) -> AgentProfiles {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), &format!("{dir}/file.md"), text);
    discover(root.path(), root.path(), Path::new("/nonexistent"))
}

fn one(dir: &str, text: &str) -> AgentProfile {
    let mut found = read(dir, text);
    assert_eq!(found.faults, []);
    found
        .list
        .retain(|profile| !profile.source.starts_with("shipped:"));
    assert_eq!(found.list.len(), 1);
    found.list.remove(0)
}

fn fault(dir: &str, text: &str) -> String {
    let found = read(dir, text);
    assert_eq!(found.list.len(), 3, "only the shipped ones are left");
    found.faults.first().unwrap().to_string()
}

#[test]
fn three_profiles_ship_as_the_specification_has_them() {
    let nowhere = Path::new("/nonexistent");
    let found = discover(nowhere, nowhere, nowhere);
    assert_eq!(found.faults, []);
    let shown: Vec<(&str, &str, Access, Vec<&str>)> = found
        .list
        .iter()
        .map(|profile| {
            let tools = profile
                .tools
                .as_ref()
                .unwrap()
                .iter()
                .map(AgentTool::name)
                .collect();
            let description = profile.description.as_str();
            (profile.name.as_str(), description, profile.access, tools)
        })
        .collect();
    let (all, look, plan) = (
        vec!["Read", "Write", "Edit", "Bash", "Grep", "Glob", "Task"],
        vec!["Read", "Grep", "Glob", "Bash"],
        vec!["Read", "Grep", "Glob"],
    );
    assert_eq!(
        shown,
        [
            (
                "oracle",
                "Analysis and research agent",
                Access::ReadOnly,
                look
            ),
            (
                "prometheus",
                "Planning and decomposition agent",
                Access::ReadOnly,
                plan
            ),
            (
                "sisyphus",
                "General-purpose coding agent",
                Access::Write,
                all
            ),
        ]
    );
    for profile in &found.list {
        // Whatever is there works.
        assert_eq!(profile.backend, None);
        assert!(profile.system_prompt.len() > 200);
    }
}

#[test]
fn a_name_that_is_no_profiles_is_never_replaced_by_another() {
    let nowhere = Path::new("/nonexistent");
    let found = discover(nowhere, nowhere, nowhere);
    for (asked, expected) in [
        ("oracle", "oracle"),
        ("@oracle", "oracle"),
        (" Oracle ", "oracle"),
        ("default", "sisyphus"),
        ("pi", "sisyphus"),
        ("@pi", "sisyphus"),
    ] {
        assert_eq!(found.find(asked).unwrap().name, expected, "{asked}");
    }
    let error = found.find("@orcale").unwrap_err();
    assert_eq!(error.meant.as_deref(), Some("oracle"));
    assert_eq!(
        error.to_string(),
        "find the agent profile \"@orcale\"; available: oracle, prometheus, sisyphus"
    );
    for name in ["", "somebody"] {
        assert!(found.find(name).is_err(), "{name:?}");
    }
}

#[test]
fn a_nearer_profile_counts_and_a_persons_counts_over_the_shipped() {
    let above = tempfile::tempdir().unwrap();
    let (root, own) = (above.path().join("project"), above.path().join("config"));
    put(
        above.path(),
        ".pi/agents/oracle.md",
        &profile("oracle", "model: foreign\n"),
    );
    for name in ["a", "b", "c", "oracle"] {
        put(
            &own,
            &format!("agents/{name}.md"),
            &profile(name, "model: person\n"),
        );
    }
    for name in ["a", "b"] {
        put(
            &root,
            &format!(".claude/agents/{name}.md"),
            &profile(name, "model: claude\n"),
        );
    }
    put(&root, ".pi/agents/a.md", &profile("A", "model: project\n"));
    put(&root, ".pi/agents/z.md", &profile("a", "model: twice\n"));
    put(&root, "in/file", "");
    let found = discover(&root, &root.join("in"), &own);
    let models: Vec<(&str, Option<&str>)> = found
        .list
        .iter()
        .map(|profile| (profile.name.as_str(), profile.model.as_deref()))
        .collect();
    assert_eq!(
        models,
        [
            ("a", Some("project")),
            ("b", Some("claude")),
            ("c", Some("person")),
            ("oracle", Some("person")),
            ("prometheus", None),
            ("sisyphus", None),
        ]
    );
    let [fault] = found.faults.as_slice() else {
        panic!("one fault: {:?}", found.faults)
    };
    assert_eq!(
        fault.to_string(),
        ".pi/agents/z.md: `name`: duplicate agent name: a is also the agent of .pi/agents/a.md; \
         rename one of them; until then, Kapi uses the other file"
    );
    assert_eq!(found.find("a").unwrap().source, ".pi/agents/a.md");
    let theirs = own.join("agents/c.md").display().to_string();
    assert_eq!(found.find("c").unwrap().source, theirs);
}

#[test]
fn who_can_only_look_cannot_write_whatever_its_shell_says() {
    let access = |keys: &str| one(".pi/agents", &profile("x", keys)).access;
    for (keys, expected) in [
        ("", Access::Write),
        ("tools: [Read, Edit]\n", Access::Write),
        ("tools: [NotebookEdit]\n", Access::Write),
        ("tools: [Read, Bash, Task]\n", Access::ReadOnly),
        ("tools: []\n", Access::ReadOnly),
        ("tools: mcp__files__write\n", Access::ReadOnly),
        ("tools: read, write\n", Access::Write),
    ] {
        assert_eq!(access(keys), expected, "{keys}");
    }
}

#[test]
fn what_claude_code_takes_away_is_taken_away_and_the_rest_is_named() {
    let keys = "tools: Read, Grep, Bash(git log:*), mcp__x__y\nmodel: inherit\ncolor: red\nhooks: {a: 1}\n";
    let read = one(".claude/agents", &profile("x", keys));
    assert_eq!(
        (read.backend.as_deref(), read.model),
        (Some("claude"), None)
    );
    let named = AgentTool::Named("mcp__x__y".to_owned());
    assert_eq!(
        read.tools,
        Some(vec![
            AgentTool::Read,
            AgentTool::Grep,
            AgentTool::Bash,
            named
        ])
    );
    assert_eq!(read.access, Access::ReadOnly);
    assert_eq!(read.ignored, ["color", "hooks"]);

    let all = one(".claude/agents", &profile("x", "model: opus\n"));
    assert_eq!((all.tools, all.access), (None, Access::Write));
    let plan = one(".claude/agents", &profile("x", "permissionMode: plan\n"));
    assert_eq!(plan.access, Access::ReadOnly);
    let denied = "disallowedTools: [Write, Edit, NotebookEdit]\n";
    let denied = one(".claude/agents", &profile("x", denied));
    assert_eq!(denied.access, Access::ReadOnly);
    assert!(!denied.tools.unwrap().contains(&AgentTool::Write));
    let unknown = one(".claude/agents", &profile("x", "tools: [Read, Teleport]\n"));
    let teleport = AgentTool::Named("Teleport".to_owned());
    assert_eq!(unknown.tools, Some(vec![AgentTool::Read, teleport]));
}

#[test]
fn what_is_wrong_with_a_profile_is_named_with_its_line() {
    for (text, expected) in [
        (
            profile("x", "tools: [Read, Wirte]\n"),
            ".pi/agents/file.md:4: `tools[1]`: unknown tool \"Wirte\"; did you mean `Write`?",
        ),
        (
            profile("x", "tool: [Read]\n"),
            ".pi/agents/file.md:4: `tool`: unknown key; did you mean `tools`?",
        ),
        (
            profile("x", "backend: cursor\n"),
            ".pi/agents/file.md:4: `backend`: unknown value \"cursor\"; use pi, claude, codex, gemini",
        ),
        (
            profile("x y", ""),
            ".pi/agents/file.md:2: `name`: \"x y\" is not an agent name; use 1 to 64 letters, \
             digits, '.', '-' and '_'",
        ),
        (
            profile("x", "tools: --yolo\n"),
            ".pi/agents/file.md:4: `tools`: \"--yolo\" is not a tool name; use Read, Write, \
             Edit, Bash, Grep, Glob, Task, WebFetch, WebSearch, TodoWrite, NotebookEdit",
        ),
        (
            "---\nname: x\n---\nbody\n".to_owned(),
            ".pi/agents/file.md:1: agent requires name + description: it has no description; add `description`",
        ),
        (
            "---\ndescription: x\n---\nbody\n".to_owned(),
            ".pi/agents/file.md:1: agent requires name + description: it has no name; add `name`",
        ),
        (
            "---\nname: x\ndescription: d\n---\n".to_owned(),
            ".pi/agents/file.md:5: it has no system prompt; describe the agent below the front matter",
        ),
        (
            "name: x\n".to_owned(),
            ".pi/agents/file.md:1: missing front matter; start the file with a line of three \
             dashes, the settings, and another line of three dashes",
        ),
    ] {
        assert_eq!(fault(".pi/agents", &text), expected, "{text}");
    }
}

#[test]
fn a_name_whose_file_is_broken_says_so() {
    let root = tempfile::tempdir().unwrap();
    put(
        root.path(),
        ".pi/agents/mine.md",
        &profile("mine", "tool: x\n"),
    );
    let found = discover(root.path(), root.path(), Path::new("/nonexistent"));
    let error = found.find("mine").unwrap_err();
    assert_eq!(error.fault.unwrap().file, ".pi/agents/mine.md");
}

#[test]
fn a_profile_outside_of_its_directory_is_not_read() {
    let above = tempfile::tempdir().unwrap();
    let (root, own) = (above.path().join("project"), above.path().join("config"));
    put(above.path(), "x.md", &profile("x", ""));
    for dir in [
        root.join(".pi/agents"),
        root.join(".claude/agents"),
        own.join("agents"),
    ] {
        fs::create_dir_all(&dir).unwrap();
        symlink(above.path().join("x.md"), dir.join("x.md")).unwrap();
    }
    let found = discover(&root, &root, &own);
    assert_eq!(found.list.len(), 3);
    assert_eq!(found.faults.len(), 3);
    let is_escape = |what: &str| what.starts_with("a symbolic link points outside");
    assert!(found.faults.iter().all(|fault| is_escape(&fault.what)));
}

#[test]
fn each_program_is_told_in_its_own_way_what_an_agent_may_use() {
    let named = AgentTool::Named("mcp__x__y".to_owned());
    let tools = [AgentTool::Read, AgentTool::Bash, AgentTool::Task, named];
    let flags = |backend: &str| tool_flags(backend, &tools, &["until_done_plan"]);
    let arguments = |list: [&str; 2]| list.map(str::to_owned).to_vec();
    let claude = ToolFlags {
        arguments: arguments(["--tools", "Read,Bash,Task,Agent"]),
        ..ToolFlags::default()
    };
    assert_eq!(flags("claude"), claude);
    let pi = ToolFlags {
        arguments: arguments(["--tools", "bash,ls,read,until_done_plan"]),
        not_there: vec![AgentTool::Task],
        ..ToolFlags::default()
    };
    assert_eq!(flags("pi"), pi);
    let core = [
        "read_file",
        "read_many_files",
        "list_directory",
        "run_shell_command",
        "invoke_agent",
    ];
    let gemini = ToolFlags {
        settings: Some(json!({"tools": {"core": core}})),
        ..ToolFlags::default()
    };
    assert_eq!(flags("gemini"), gemini);
    let missing = |flags: &ToolFlags| flags.sandbox_only.contains(&AgentTool::Write);
    for backend in ["codex", "command:true", "script:a.yaml"] {
        let flags = flags(backend);
        assert!(flags.arguments.is_empty() && missing(&flags), "{backend}");
        assert!(!flags.sandbox_only.contains(&AgentTool::Read), "{backend}");
    }
}

#[test]
fn an_agent_without_tools_is_told_so() {
    let arguments = |backend: &str| tool_flags(backend, &[], &["own"]).arguments;
    assert_eq!(arguments("claude"), ["--tools", ""]);
    assert_eq!(arguments("pi"), ["--no-builtin-tools"]);
    let gemini = tool_flags("gemini", &[], &[]);
    assert_eq!(gemini.settings, Some(json!({"tools": {"core": []}})));
}

#[test]
fn tools_read_back_by_their_names() {
    for tool in AgentTool::ALL {
        assert_eq!(AgentTool::parse(tool.name()), Some(tool.clone()));
        assert_eq!(AgentTool::parse(&tool.name().to_lowercase()), Some(tool));
    }
    assert_eq!(AgentTool::parse("Agent"), Some(AgentTool::Task));
    assert_eq!(AgentTool::parse("MultiEdit"), Some(AgentTool::Edit));
    for text in ["", "-x", "a b", "a,b", "(x)", "a=b", &"a".repeat(129)] {
        assert_eq!(AgentTool::parse(text), None, "{text}");
    }
}
