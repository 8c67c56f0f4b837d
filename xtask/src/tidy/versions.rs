//! One version for everything that is published: the crates, the package for Pi, the plugins.

use serde::Deserialize;

use super::TidyFault;
use super::tree::SourceTree;

/// Packages with a version of their own, which has to be the workspace's.
const PACKAGES: &[&str] = &["extensions/pi-kapi/package.json"];
/// Plugins, which get the version of the program that installs them.
const PLUGINS: &[&str] = &[
    "extensions/claude-code/.claude-plugin/plugin.json",
    "extensions/gemini/gemini-extension.json",
];
/// What stands for that version.
const PLACEHOLDER: &str = "KAPI_VERSION";

#[derive(Deserialize)]
struct PackageManifest {
    version: String,
}

/// What is installed together has one version.
pub(super) fn versions_are_in_step(tree: &SourceTree) -> Vec<TidyFault> {
    let Some(version) = workspace_version(tree) else {
        return vec![fault(
            "Cargo.toml",
            "name a version in `[workspace.package]`",
        )];
    };
    let packages = PACKAGES.iter().map(|path| (*path, version.as_str()));
    let plugins = PLUGINS.iter().map(|path| (*path, PLACEHOLDER));
    let wrong = packages.chain(plugins).filter_map(|(path, wanted)| {
        let text = &tree.file(path)?.text;
        let found = serde_json::from_str::<PackageManifest>(text);
        let is_right = found.is_ok_and(|found| found.version == wanted);
        (!is_right).then(|| fault(path, &format!("set `version` to {wanted:?}")))
    });
    wrong.collect()
}

fn workspace_version(tree: &SourceTree) -> Option<String> {
    let manifest: toml::Table = toml::from_str(&tree.file("Cargo.toml")?.text).ok()?;
    let package = manifest.get("workspace")?.get("package")?;
    Some(package.get("version")?.as_str()?.to_owned())
}

fn fault(path: &str, message: &str) -> TidyFault {
    TidyFault {
        path: path.to_owned(),
        line: 0,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::versions_are_in_step;
    use crate::tidy::tree::SourceTree;

    const CARGO: (&str, &str) = ("Cargo.toml", "[workspace.package]\nversion = \"1.2.3\"\n");

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let found = versions_are_in_step(&SourceTree::of(files));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_package_of_another_version_is_found() {
        let package = |version| ("extensions/pi-kapi/package.json", version);
        assert!(faults(&[CARGO, package("{\"version\": \"1.2.3\"}")]).is_empty());
        assert_eq!(
            faults(&[CARGO, package("{\"version\": \"1.2.2\"}")]),
            ["extensions/pi-kapi/package.json: set `version` to \"1.2.3\""]
        );
        let plugin = "extensions/gemini/gemini-extension.json";
        let kept = "{\"version\": \"KAPI_VERSION\"}";
        assert!(faults(&[CARGO, (plugin, kept)]).is_empty());
        assert_eq!(
            faults(&[CARGO, (plugin, "{\"version\": \"1.2.3\"}")]).len(),
            1
        );
        assert_eq!(faults(&[("Cargo.toml", "[workspace]\n")]).len(), 1);
    }
}
