//! The table of tool calls that is built in, and the names agents have for their tools.
//!
//! Data. Knows nothing of how it is matched.

use std::collections::BTreeMap;

use crate::rules::pattern::ToolPattern;
use crate::rules::phase::ToolCategory;

/// The tool that runs commands, as patterns name it.
pub(crate) const SHELL: &str = "bash";

/// What agents call their tools, and what patterns call them; lower case.
const ALIASES: &[(&str, &str)] = &[
    ("shell", SHELL),
    ("exec", SHELL),
    ("exec_command", SHELL),
    ("command_execution", SHELL),
    ("container.exec", SHELL),
    ("local_shell", SHELL),
    ("local_shell_call", SHELL),
    ("run_shell_command", SHELL),
    ("run_command", SHELL),
    ("execute_code", SHELL),
    ("execute_command", SHELL),
    ("terminal", SHELL),
    ("write_file", "write"),
    ("create_file", "write"),
    ("replace", "edit"),
    ("edit_file", "edit"),
    ("modify_file", "edit"),
    ("str_replace", "edit"),
    ("str_replace_editor", "edit"),
    ("multiedit", "edit"),
    ("apply_patch", "edit"),
    ("file_change", "edit"),
    ("notebook_edit", "notebookedit"),
    ("read_file", "read"),
    ("read_many_files", "read"),
    ("view_file", "read"),
    ("view_image", "read"),
    ("view", "read"),
    ("notebookread", "read"),
    ("search_files", "grep"),
    ("search_file_content", "grep"),
    ("grep_search", "grep"),
    ("ripgrep", "grep"),
    ("find_files", "glob"),
    ("list_files", "glob"),
    ("list_directory", "ls"),
    ("list_dir", "ls"),
    ("web_fetch", "webfetch"),
    ("web_search", "websearch"),
    ("google_web_search", "websearch"),
    ("write_todos", "todowrite"),
    ("update_plan", "todowrite"),
    ("todo_list", "todowrite"),
];

const EXPLORING: &[&str] = &[
    "Read",
    "Grep",
    "Glob",
    "LS",
    "Find",
    "Tree",
    "LSP",
    "WebFetch",
    "WebSearch",
    "Bash(cat *)",
    "Bash(head *)",
    "Bash(tail *)",
    "Bash(less *)",
    "Bash(more *)",
    "Bash(bat *)",
    "Bash(grep *)",
    "Bash(egrep *)",
    "Bash(rg *)",
    "Bash(ag *)",
    "Bash(fd *)",
    "Bash(find *)",
    "Bash(ls *)",
    "Bash(tree *)",
    "Bash(wc *)",
    "Bash(file *)",
    "Bash(stat *)",
    "Bash(du *)",
    "Bash(diff *)",
    "Bash(which *)",
    "Bash(jq *)",
    "Bash(git status*)",
    "Bash(git log*)",
    "Bash(git diff*)",
    "Bash(git show*)",
    "Bash(git branch*)",
    "Bash(git blame*)",
    "Bash(git describe*)",
    "Bash(git grep*)",
    "Bash(git ls-files*)",
    "Bash(git rev-parse*)",
];

const IMPLEMENTING: &[&str] = &[
    "Edit",
    "Write",
    "NotebookEdit",
    "Bash(mkdir*)",
    "Bash(cp *)",
    "Bash(mv *)",
    "Bash(rm *)",
    "Bash(touch *)",
    "Bash(ln *)",
    "Bash(chmod *)",
    "Bash(chown *)",
    "Bash(sed *)",
    "Bash(awk *)",
    "Bash(tee *)",
    "Bash(patch *)",
    "Bash(git add*)",
    "Bash(git mv*)",
    "Bash(git rm*)",
    "Bash(git apply*)",
    "Bash(eslint *)",
    "Bash(prettier *)",
    "Bash(black *)",
    "Bash(ruff *)",
    "Bash(gofmt *)",
    "Bash(rustfmt *)",
    "Bash(cargo fmt*)",
    "Bash(shellcheck *)",
    "Bash(yamllint *)",
];

const BUILDING: &[&str] = &[
    "Bash(mvn*)",
    "Bash(gradle *)",
    "Bash(npm build*)",
    "Bash(npm run build*)",
    "Bash(yarn build*)",
    "Bash(pnpm build*)",
    "Bash(pnpm run build*)",
    "Bash(bun run build*)",
    "Bash(bun build*)",
    "Bash(tsc *)",
    "Bash(vite build*)",
    "Bash(webpack *)",
    "Bash(cargo build*)",
    "Bash(cargo check*)",
    "Bash(cargo clippy*)",
    "Bash(cargo doc*)",
    "Bash(go build*)",
    "Bash(go vet*)",
    "Bash(go install*)",
    "Bash(make*)",
    "Bash(cmake *)",
    "Bash(ninja *)",
    "Bash(meson *)",
    "Bash(ant *)",
    "Bash(bazel *)",
    "Bash(javac *)",
    "Bash(gcc *)",
    "Bash(g++ *)",
    "Bash(clang *)",
    "Bash(rustc *)",
    "Bash(dotnet build*)",
    "Bash(swift build*)",
    "Bash(mix compile*)",
    "Bash(npm install*)",
    "Bash(npm i *)",
    "Bash(npm ci*)",
    "Bash(yarn install*)",
    "Bash(yarn)",
    "Bash(yarn add*)",
    "Bash(pnpm install*)",
    "Bash(pnpm i *)",
    "Bash(pnpm add*)",
    "Bash(bun install*)",
    "Bash(pip install*)",
    "Bash(uv sync*)",
    "Bash(uv pip install*)",
    "Bash(poetry install*)",
    "Bash(go mod *)",
    "Bash(go get*)",
    "Bash(cargo fetch*)",
    "Bash(cargo add*)",
    "Bash(bundle install*)",
    "Bash(composer install*)",
    "Bash(apt-get install*)",
    "Bash(apt install*)",
    "Bash(docker build*)",
    "Bash(docker push*)",
    "Bash(docker pull*)",
    "Bash(podman build*)",
    "Bash(podman push*)",
    "Bash(podman pull*)",
];

const TESTING: &[&str] = &[
    // Scripts and programs with the word in their name, if nothing names them better.
    "Bash(*test*)",
    "Bash(mvn test*)",
    "Bash(mvn *test*)",
    "Bash(mvn *verify*)",
    "Bash(gradle test*)",
    "Bash(gradle *test*)",
    "Bash(gradle check*)",
    "Bash(npm test*)",
    "Bash(npm t *)",
    "Bash(npm run test*)",
    "Bash(yarn test*)",
    "Bash(pnpm test*)",
    "Bash(pnpm run test*)",
    "Bash(bun test*)",
    "Bash(bun run test*)",
    "Bash(deno test*)",
    "Bash(pytest*)",
    "Bash(tox*)",
    "Bash(nox*)",
    "Bash(unittest*)",
    "Bash(jest*)",
    "Bash(vitest*)",
    "Bash(mocha*)",
    "Bash(ava *)",
    "Bash(playwright *)",
    "Bash(cypress *)",
    "Bash(cargo test*)",
    "Bash(cargo nextest*)",
    "Bash(cargo bench*)",
    "Bash(go test*)",
    "Bash(rspec*)",
    "Bash(phpunit*)",
    "Bash(ctest*)",
    "Bash(bats *)",
    "Bash(make test*)",
    "Bash(make *test*)",
    "Bash(make check*)",
    "Bash(bazel test*)",
    "Bash(dotnet test*)",
    "Bash(swift test*)",
    "Bash(mix test*)",
    "Bash(just test*)",
    "Bash(rake test*)",
    "Bash(rake spec*)",
];

const COMMITTING: &[&str] = &["Bash(git commit*)", "Bash(git push*)"];

const OTHER: &[&str] = &[
    "TodoWrite",
    "AskUserQuestion",
    "Task",
    "Agent",
    "mcp__*",
    // Their words say nothing about what is going on.
    "Bash(echo *)",
    "Bash(printf *)",
    "Bash(cd *)",
    "Bash(export *)",
    "Bash(sleep *)",
    "Bash(test *)",
    "Bash([ *)",
    "Bash(git *)",
    "Bash(kill *)",
    "Bash(pkill *)",
    "Bash(ps *)",
];

/// Returns the patterns of every category.
pub(crate) fn patterns() -> BTreeMap<ToolCategory, Vec<ToolPattern>> {
    let tables = [
        (ToolCategory::Exploring, EXPLORING),
        (ToolCategory::Implementing, IMPLEMENTING),
        (ToolCategory::Building, BUILDING),
        (ToolCategory::Testing, TESTING),
        (ToolCategory::Committing, COMMITTING),
        (ToolCategory::Other, OTHER),
    ];
    tables
        .into_iter()
        .map(|(category, texts)| {
            let patterns = texts
                .iter()
                .filter_map(|text| ToolPattern::parse(text).ok());
            (category, patterns.collect())
        })
        .collect()
}

/// Returns a tool's name as patterns have it.
pub(crate) fn canonical_tool(tool: &str) -> String {
    const NAME_CHARS_MAX: usize = 128;
    let name: String = tool.trim().chars().take(NAME_CHARS_MAX).collect();
    let name = name.to_lowercase();
    let alias = ALIASES.iter().find(|(theirs, _)| *theirs == name);
    if let Some((_, ours)) = alias {
        return (*ours).to_owned();
    }
    // Some agents write servers' tools with single lines.
    match name.strip_prefix("mcp_") {
        Some(rest) if !rest.starts_with('_') => format!("mcp__{rest}"),
        Some(_) | None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{BUILDING, COMMITTING, EXPLORING, IMPLEMENTING, OTHER, TESTING, patterns};

    #[test]
    fn every_pattern_of_the_table_is_one() {
        let written = [
            EXPLORING,
            IMPLEMENTING,
            BUILDING,
            TESTING,
            COMMITTING,
            OTHER,
        ];
        let n_written: usize = written.iter().map(|table| table.len()).sum();
        let n_read: usize = patterns().values().map(Vec::len).sum();
        assert_eq!(n_read, n_written);
    }
}
