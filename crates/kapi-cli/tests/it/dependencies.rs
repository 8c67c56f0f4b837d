//! Dependencies where tests run: a project's own command is its proof, without any configuration.
//!
//! Packages are made by hand in the form that the real tools install them in, and the real tools use
//! them; nothing is downloaded.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::environment::{BRANCH, Environment, FIRST, write};

/// What the agent does that is right.
const RIGHT: &str = "command:echo 42 > answer.txt";
/// Where people keep credentials, below the home.
const CANARIES: &[&str] = &[
    ".npmrc",
    ".netrc",
    ".pypirc",
    ".git-credentials",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".cargo/registry/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".config/pip/pip.conf",
    ".local/share/uv/credentials/a.toml",
    ".nvm/versions/node/v20/etc/npmrc",
    ".npm/.npmrc",
    ".pyenv/versions/3/pip.conf",
    ".pyenv/.netrc",
    "go/pkg/mod/.netrc",
    ".composer/auth.json",
    ".composer/cache/auth.json",
    ".gem/credentials",
    ".rbenv/.netrc",
    ".config/gh/hosts.yml",
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".docker/config.json",
    ".local/share/pnpm/rc/.npmrc",
    ".conda/.condarc",
    ".sdkman/candidates/maven/3/conf/settings.xml",
];
/// What is lent beside them.
const LENT: &[&str] = &[
    ".npm",
    ".cargo/registry",
    ".cargo/bin",
    ".m2/repository",
    ".gradle/wrapper",
    ".cache/pip",
    ".local/share/uv",
    ".nvm",
    ".pyenv",
    "go/pkg/mod",
    ".composer/cache",
    ".gem",
    ".rbenv",
    ".local/bin",
    ".local/share/pnpm",
    ".rustup",
    ".conda",
    ".sdkman/candidates",
    "sdk",
];

fn script(path: &Path, text: &str) {
    write(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes a machine with a node project: one package installed, the test script uses it.
fn node_project() -> Environment {
    let env = Environment::new();
    env.write(
        "package.json",
        r#"{"name":"app","version":"1.0.0","scripts":{"test":"answers test.js"},"devDependencies":{"answers":"1.0.0"}}"#,
    );
    env.write(
        "package-lock.json",
        r#"{"name":"app","lockfileVersion":3,"packages":{}}"#,
    );
    env.write(".gitignore", "node_modules\n");
    env.write(
        "test.js",
        "if (require('fs').readFileSync('answer.txt', 'utf8').trim() !== require('answers')) process.exit(1);\n",
    );
    env.commit_all("node");
    let package = env.repository().join("node_modules/answers");
    write(
        &package.join("package.json"),
        r#"{"name":"answers","version":"1.0.0","main":"index.js","bin":"bin.js"}"#,
    );
    write(&package.join("index.js"), "module.exports = '42';\n");
    script(
        &package.join("bin.js"),
        "#!/usr/bin/env node\nrequire(process.cwd() + '/' + process.argv[2]);\n",
    );
    fs::create_dir(env.repository().join("node_modules/.bin")).unwrap();
    symlink(
        "../answers/bin.js",
        env.repository().join("node_modules/.bin/answers"),
    )
    .unwrap();
    env
}

#[test]
fn a_package_script_is_proved_with_the_packages_that_are_installed() {
    let env = node_project();
    let wrong = env.run(
        "command:echo 41 > answer.txt",
        &["--verify", "npm test", "--turns", "1"],
    );
    wrong.assert_status("paused", 5);
    let run = env.run(
        RIGHT,
        &["--verify", "npm test", "--verify", "npx answers test.js"],
    );
    run.assert_status("done", 0);
}

#[test]
fn nothing_flows_back_and_nothing_of_the_agent_reaches_a_check() {
    let env = node_project();
    let modules = env.repository().join("node_modules");
    let agent = "command:echo 41 > answer.txt; \
                 echo \"module.exports = '41';\" > node_modules/answers/index.js; \
                 echo x > node_modules/planted; npm test && echo yes > worked.txt; \
                 [ $KAPI_TURN = 1 ] || cp node_modules/planted kept.txt";
    let run = env.run(agent, &["--verify", "npm test", "--turns", "2"]);
    assert_ne!(run.result["status"], "done");
    assert!(!modules.join("planted").exists());
    let kept = fs::read_to_string(modules.join("answers/index.js")).unwrap();
    assert_eq!(kept, "module.exports = '42';\n");
    let verify = "npm test && echo y > node_modules/written && [ ! -e node_modules/planted ]";
    let run = env.run(
        RIGHT,
        &[
            "--verify",
            verify,
            "--verify",
            "[ ! -e node_modules/written ]",
        ],
    );
    run.assert_status("done", 0);
    assert!(!modules.join("written").exists());
}

#[test]
fn an_agent_finds_in_its_next_turn_what_it_installed() {
    let env = node_project();
    let agent = "command:if [ $KAPI_TURN = 1 ]; then echo x > node_modules/mine; echo 1 > answer.txt; \
                 else cp node_modules/mine found.txt; echo 42 > answer.txt; fi";
    let run = env.run(agent, &["--verify", "npm test"]);
    run.assert_status("done", 0);
    assert_eq!(env.show(BRANCH, "found.txt"), "x");
}

#[test]
fn a_virtual_environment_is_used_as_it_is_with_its_editable_install() {
    let env = Environment::new();
    let project = env.repository();
    env.write(
        "pyproject.toml",
        "[project]\nname = \"app\"\nversion = \"1\"\n",
    );
    env.write("src/app.py", "ANSWER = open('answer.txt').read().strip()\n");
    env.write(".gitignore", ".venv\n");
    env.write(
        "check.py",
        "import app, helper\nassert app.ANSWER == helper.RIGHT\n",
    );
    env.commit_all("python");
    let venv = project.join(".venv");
    let python = ["/usr/bin/python3", "/usr/local/bin/python3"];
    let python = python.iter().find(|path| Path::new(path).exists()).unwrap();
    let made = env
        .command(python, &project)
        .args(["-m", "venv", "--without-pip", ".venv"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let site = fs::read_dir(venv.join("lib"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let site = site.path().join("site-packages");
    write(&site.join("helper.py"), "RIGHT = '42'\n");
    write(
        &site.join("__editable__.app-1.pth"),
        format!("{}\n", project.join("src").display()),
    );
    script(
        &venv.join("bin/checks"),
        &format!(
            "#!{}\nimport runpy\nrunpy.run_path('check.py')\n",
            venv.join("bin/python").display()
        ),
    );
    let wrong = env.run(
        "command:echo 41 > answer.txt",
        &["--verify", "checks", "--turns", "1"],
    );
    wrong.assert_status("paused", 5);
    let options = [
        "--verify",
        ".venv/bin/python check.py",
        "--verify",
        "checks",
    ];
    env.run(RIGHT, &options).assert_status("done", 0);
    // The editable install shows the candidate's code, not the person's.
    let agent = "command:echo 7 > answer.txt; echo \"ANSWER = '42'\" > src/app.py";
    env.run(agent, &options).assert_status("done", 0);
}

#[test]
fn caches_and_tool_chains_are_lent_and_stay_as_they_are() {
    let env = Environment::new();
    env.write("go.mod", "module app\n");
    env.write("Cargo.toml", "[workspace]\n");
    env.commit_all("marks");
    let home = env.home();
    write(&home.join("go/pkg/mod/cache/a"), "cached");
    write(&home.join(".cargo/registry/cache/b"), "cached");
    script(&home.join("sdk/go9/bin/go9"), "#!/bin/sh\necho nine\n");
    let verify = "grep -q cached ~/go/pkg/mod/cache/a && grep -q cached ~/.cargo/registry/cache/b \
                  && [ \"$(~/sdk/go9/bin/go9)\" = nine ] && echo x > ~/go/pkg/mod/cache/new \
                  && echo x > ~/.cargo/registry/cache/b && [ \"$GOPROXY\" = off ] && sh test.sh";
    let again = "[ ! -e ~/go/pkg/mod/cache/new ] && grep -q cached ~/.cargo/registry/cache/b";
    let run = env.run(RIGHT, &["--verify", verify, "--verify", again]);
    run.assert_status("done", 0);
    assert!(!home.join("go/pkg/mod/cache/new").exists());
    assert_eq!(
        fs::read_to_string(home.join(".cargo/registry/cache/b")).unwrap(),
        "cached"
    );
}

#[test]
fn no_file_with_credentials_is_ever_seen() {
    let env = Environment::new();
    for (file, text) in [
        ("go.mod", "module app\n"),
        ("Cargo.toml", "[workspace]\n"),
        ("package.json", "{}"),
        ("pyproject.toml", ""),
        ("pom.xml", ""),
        ("composer.json", "{}"),
        ("Gemfile", ""),
        (".gitignore", "node_modules\n.venv\n"),
    ] {
        env.write(file, text);
    }
    env.commit_all("marks");
    let home = env.home();
    // Something is lent beside each of them.
    for directory in LENT {
        write(&home.join(directory).join("lent.txt"), "lent");
    }
    for canary in CANARIES {
        write(&home.join(canary), "the-canary");
    }
    let inside = [
        "node_modules/.npmrc",
        "node_modules/a/.npmrc",
        ".venv/pip.conf",
        ".venv/.netrc",
    ];
    for canary in inside {
        write(&env.repository().join(canary), "the-canary");
    }
    let look = "grep -rl the-canary ~ $PWD /workspace 2>/dev/null";
    let agent = format!("command:{look} > found.txt; ls ~/sdk > lent.txt; echo 42 > answer.txt");
    let verify =
        format!("! {look} && [ -e ~/.nvm/lent.txt ] && [ -e ~/.npm/lent.txt ] && sh test.sh");
    let run = env.run(&agent, &["--verify", &verify]);
    run.assert_status("done", 0);
    assert_eq!(env.show(BRANCH, "found.txt"), "");
    assert_eq!(env.show(BRANCH, "lent.txt"), "lent.txt");
    for canary in CANARIES {
        assert_eq!(
            fs::read_to_string(home.join(canary)).unwrap(),
            "the-canary",
            "{canary}"
        );
    }
}

#[test]
fn what_the_person_built_reaches_no_check() {
    let env = Environment::new();
    env.write("package.json", "{}");
    env.write(".gitignore", "dist\nbuild\ntarget\n");
    env.commit_all("marks");
    for directory in ["dist", "build", "target"] {
        env.write(&format!("{directory}/old"), "old");
    }
    let verify = "[ ! -e dist ] && [ ! -e build ] && [ ! -e target ] && sh test.sh";
    env.run(RIGHT, &["--verify", verify])
        .assert_status("done", 0);
}

#[test]
fn what_a_person_installs_meanwhile_changes_nothing_and_a_file_written_in_place_is_named() {
    let env = node_project();
    let package = env.repository().join("node_modules/answers");
    let agent = "command:[ $KAPI_TURN = 1 ] && echo 41 > answer.txt || echo 42 > answer.txt";
    let run = env.run(agent, &["--verify", "npm test", "--turns", "1"]);
    run.assert_status("paused", 5);
    // As a package manager does it: what was there goes, and is made anew.
    fs::remove_file(package.join("index.js")).unwrap();
    write(&package.join("index.js"), "module.exports = 'another';\n");
    write(&env.repository().join("node_modules/new/index.js"), "");
    assert_eq!(env.kapi(&["budget", FIRST, "--turns", "+1"]).code, 0);
    env.resume(FIRST).assert_status("done", 0);

    let agent = "command:echo 41 > answer.txt";
    let run = env.run(agent, &["--verify", "npm test", "--turns", "1"]);
    run.assert_status("paused", 5);
    // As nobody should: the very file that was approved is written.
    write(&package.join("index.js"), "module.exports = '41';\n");
    assert_eq!(env.kapi(&["budget", "2", "--turns", "+1"]).code, 0);
    let run = env.resume("2");
    assert_ne!(run.status(), "done");
    let reported = format!("{} {:?}", run.result, run.lines);
    assert!(
        reported.contains("node_modules/answers/index.js has changed since"),
        "{reported}"
    );

    // Nothing is kept for goals that are cleaned up.
    let store = env.home().join(".ilchul/sandboxes");
    let snapshots = || {
        let keys = fs::read_dir(&store).unwrap().flatten();
        let all = keys.flat_map(|key| fs::read_dir(key.path().join(".dependencies")));
        all.flatten().count()
    };
    assert_eq!(snapshots(), 2);
    env.kapi(&["cancel", "2"]);
    let output = env.kapi(&["cleanup", "--yes"]);
    assert_eq!((output.code, snapshots()), (0, 0), "{output:?}");
}

#[test]
fn a_note_of_dependencies_that_a_full_disk_left_empty_stops_nobody() {
    let env = node_project();
    let agent = "command:[ $KAPI_TURN = 1 ] && echo 41 > answer.txt || echo 42 > answer.txt";
    let run = env.run(agent, &["--verify", "npm test", "--turns", "1"]);
    run.assert_status("paused", 5);
    let projects = fs::read_dir(env.home().join(".ilchul/sandboxes")).unwrap();
    let notes = projects.map(|it| it.unwrap().path().join(FIRST).join("dependencies.json"));
    let notes: Vec<PathBuf> = notes.filter(|note| note.is_file()).collect();
    assert_eq!(notes.len(), 1);
    write(&notes[0], "");
    assert_eq!(env.kapi(&["budget", FIRST, "--turns", "+1"]).code, 0);
    env.resume(FIRST).assert_status("done", 0);
}

#[test]
fn a_submodule_has_its_content_in_checks_and_one_that_is_not_there_is_named() {
    let env = Environment::new();
    let library = env.root().join("library");
    fs::create_dir(&library).unwrap();
    let git = |dir: &Path, args: &[&str]| {
        let mut command = env.command("git", dir);
        command.args([
            "-c",
            "protocol.file.allow=always",
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
        ]);
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    write(&library.join("right.txt"), "42\n");
    git(&library, &["init", "--quiet"]);
    git(&library, &["add", "-A"]);
    git(&library, &["commit", "--quiet", "-m", "library"]);
    let from = library.display().to_string();
    git(
        &env.repository(),
        &["submodule", "--quiet", "add", &from, "libs/library"],
    );
    git(
        &env.repository(),
        &["submodule", "--quiet", "add", &from, "libs/other"],
    );
    env.commit_all("submodules");
    let verify = "cmp answer.txt libs/library/right.txt";
    env.run(
        "command:echo 41 > answer.txt",
        &["--verify", verify, "--turns", "1"],
    )
    .assert_status("paused", 5);
    git(
        &env.repository(),
        &["submodule", "--quiet", "deinit", "--force", "libs/other"],
    );
    let agent = "command:cp libs/library/right.txt answer.txt; echo 41 > libs/library/right.txt";
    let run = env.run(agent, &["--verify", verify]);
    run.assert_status("done", 0);
    let own = fs::read_to_string(env.repository().join("libs/library/right.txt"));
    assert_eq!(own.unwrap(), "42\n", "the person's checkout was written to");
    let changed = env.git(&["diff", "--name-only", "HEAD", run.commit()]);
    assert_eq!(changed.trim(), "answer.txt");
    let is_named = run
        .lines
        .iter()
        .any(|line| line.to_string().contains("submodule libs/other is empty"));
    assert!(is_named, "{:?}", run.lines);
}

#[test]
fn what_an_agent_leaves_in_its_home_is_in_nobodys_way() {
    let env = node_project();
    write(&env.home().join(".npm/lent.txt"), "lent");
    let agent = "command:if [ $KAPI_TURN = 1 ]; then echo 41 > answer.txt; mv ~/.cache ~/.moved; \
                 ln -s /etc ~/.cache; else echo 42 > answer.txt; ls ~/.cache > seen.txt; fi";
    write(&env.home().join(".cache/pnpm/lent.txt"), "lent");
    env.run(agent, &["--verify", "npm test"])
        .assert_status("done", 0);
    assert_eq!(env.show(BRANCH, "seen.txt"), "pnpm");
}

#[test]
fn files_that_installing_wrote_among_the_sources_are_there_as_they_were() {
    let env = Environment::new();
    env.write("pyproject.toml", "[project]\nname = \"app\"\n");
    env.write(".gitignore", "_version.py\n*.so\nsecret.py\n");
    env.write("src/app/__init__.py", "");
    env.write("src/app/fast.c", "int fast;\n");
    env.commit_all("sources");
    for (name, content) in [
        ("_version.py", "1"),
        ("fast.so", "old"),
        ("secret.py", "key"),
    ] {
        env.write(&format!("src/app/{name}"), content);
    }
    let version = "[ \"$(cat src/app/_version.py)\" = 1 ] && [ ! -e src/app/secret.py ]";
    let agent =
        format!("command:{version} || exit 0; echo 42 > answer.txt; echo 2 > src/app/_version.py");
    let check = format!(
        "{version} && [ -e src/app/fast.so ] && echo 3 > src/app/_version.py && sh test.sh"
    );
    // Where all of the sources are protected, what is ignored among them is no tampering.
    let run = env.run(&agent, &["--verify", &check, "--protect", "src/**"]);
    run.assert_status("done", 0);
    assert_eq!(env.read("src/app/_version.py"), "1");
    assert_eq!(
        env.git(&["show", "--name-only", "--format=", run.commit()]),
        "answer.txt"
    );

    // An extension module is out of date once its source has changed.
    let agent = "command:echo 'int faster;' > src/app/fast.c; echo 42 > answer.txt";
    let check = "[ ! -e src/app/fast.so ] && [ -e src/app/_version.py ] && sh test.sh";
    env.run(agent, &["--verify", check])
        .assert_status("done", 0);
}
