//! The file that lets a system run `kapi up`: a systemd user unit or a launchd property list.
//!
//! Pure text from a program, a directory and an environment; writes nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What stands in every file of ours.
const MARK: &str = "Written by `kapi up --install`";

/// Which system runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ServiceKind {
    /// A systemd user unit
    Systemd,
    /// A launchd user agent
    Launchd,
}

impl ServiceKind {
    /// Returns the one of this machine.
    pub(super) const fn usual() -> Self {
        if cfg!(target_os = "macos") {
            Self::Launchd
        } else {
            Self::Systemd
        }
    }
}

/// What the file says.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// Which system runs it.
    pub(super) kind: ServiceKind,
    /// The project's name, unlike every other's.
    pub(super) name: String,
    /// The program.
    pub(super) program: PathBuf,
    /// The project.
    pub(super) root: PathBuf,
    /// What it finds in its environment.
    pub(super) variables: BTreeMap<String, OsString>,
    /// Where launchd puts what it says; systemd has a journal.
    pub(super) logs: PathBuf,
}

impl Unit {
    /// Tells whether a file is one of ours.
    pub(super) fn is_ours(text: &str) -> bool {
        text.contains(MARK)
    }

    /// Returns the name of the file.
    pub(super) fn file_name(&self) -> String {
        match self.kind {
            ServiceKind::Systemd => format!("kapi-{}.service", self.name),
            ServiceKind::Launchd => format!("{}.plist", self.label()),
        }
    }

    /// Returns the file, or why it cannot be written.
    pub(super) fn text(&self) -> Result<String, String> {
        let program = plain(&self.program)?;
        let root = plain(&self.root)?;
        match self.kind {
            ServiceKind::Systemd => self.systemd(program, root),
            ServiceKind::Launchd => self.launchd(program, root),
        }
    }

    /// Returns the commands that let the system run it.
    pub(super) fn enabling(&self, path: &Path) -> Vec<Vec<String>> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let file = self.file_name();
        match self.kind {
            ServiceKind::Systemd => vec![
                words(&["systemctl", "--user", "daemon-reload"]),
                words(&["systemctl", "--user", "enable", "--now", &file]),
            ],
            ServiceKind::Launchd => {
                vec![words(&["launchctl", "load", "-w", &path.to_string_lossy()])]
            }
        }
    }

    /// Returns the commands that let the system run it no more.
    pub(super) fn disabling(&self, path: &Path) -> Vec<Vec<String>> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        match self.kind {
            ServiceKind::Systemd => vec![words(&[
                "systemctl",
                "--user",
                "disable",
                "--now",
                &self.file_name(),
            ])],
            ServiceKind::Launchd => vec![words(&[
                "launchctl",
                "unload",
                "-w",
                &path.to_string_lossy(),
            ])],
        }
    }

    fn label(&self) -> String {
        format!("kapi.{}", self.name)
    }

    /// What would take rights from the service is left out where it would take them from the
    /// sandboxes that it makes: those are far narrower.
    fn systemd(&self, program: &str, root: &str) -> Result<String, String> {
        let mut variables = String::new();
        for (name, value) in &self.variables {
            let value = value
                .to_str()
                .ok_or_else(|| format!("{name} is not UTF-8"))?;
            let said = systemd_word(&format!("{name}={value}"))?;
            // Writing to a text cannot fail.
            writeln!(variables, "Environment={said}").unwrap_or_default();
        }
        let word = systemd_word(program)?;
        // A directory is the rest of its line; only `%` means something there.
        let directory = systemd_line(root)?;
        let name = systemd_line(&self.name)?;
        Ok(format!(
            "# {MARK}; `kapi up --uninstall` removes it.
# Keys of models: files such as ~/.config/kapi/keys/ANTHROPIC_API_KEY (mode 600), or in a drop-in
# (`systemctl --user edit`) LoadCredential=ANTHROPIC_API_KEY:<file>.
[Unit]
Description=Kapi in {name}: goals, tasks and loops
StartLimitIntervalSec=600
StartLimitBurst=10

[Service]
Type=exec
ExecStart={word} up
WorkingDirectory={directory}
{variables}Restart=on-failure
RestartSec=15
# A configuration error, a denial or a missing project does not fix itself.
RestartPreventExitStatus=2 3 6
# Stop the supervisor first, so that it returns its tasks; then stop everything else.
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec=60
SuccessExitStatus=130
# One agent that eats all memory must not end the others.
OOMPolicy=continue
UMask=0077
LimitCORE=0
Nice=5
IOSchedulingClass=best-effort
IOSchedulingPriority=6

[Install]
WantedBy=default.target
"
        ))
    }

    fn launchd(&self, program: &str, root: &str) -> Result<String, String> {
        let mut variables = String::new();
        for (name, value) in &self.variables {
            let value = value
                .to_str()
                .ok_or_else(|| format!("{name} is not UTF-8"))?;
            let (name, value) = (xml(name)?, xml(value)?);
            writeln!(
                variables,
                "    <key>{name}</key>\n    <string>{value}</string>"
            )
            .unwrap_or_default();
        }
        let (program, root, label) = (xml(program)?, xml(root)?, xml(&self.label())?);
        let log = xml(plain(&self.logs.join(format!("{}.log", self.name)))?)?;
        Ok(format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<!-- {MARK}; `kapi up --uninstall` removes it. -->
<plist version=\"1.0\">
<dict>
  <key>Label</key>
  <string>{label}</string>
  <key>ProgramArguments</key>
  <array>
    <string>{program}</string>
    <string>up</string>
  </array>
  <key>WorkingDirectory</key>
  <string>{root}</string>
  <key>EnvironmentVariables</key>
  <dict>
{variables}  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>15</integer>
  <key>ExitTimeOut</key>
  <integer>60</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>ProcessType</key>
  <string>Background</string>
  <key>StandardOutPath</key>
  <string>{log}</string>
  <key>StandardErrorPath</key>
  <string>{log}</string>
</dict>
</plist>
"
        ))
    }
}

fn plain(path: &Path) -> Result<&str, String> {
    let text = path.to_str();
    text.ok_or_else(|| format!("the path {} is not UTF-8", path.display()))
}

/// Returns text as the rest of a systemd line.
fn systemd_line(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err(format!("{text:?} has a character that no unit can hold"));
    }
    Ok(text.replace('%', "%%"))
}

/// Returns text as one word of a systemd line.
fn systemd_word(text: &str) -> Result<String, String> {
    let text = systemd_line(text)?;
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('$', "$$");
    Ok(format!("\"{escaped}\""))
}

fn xml(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err(format!(
            "{text:?} has a character that no property list can hold"
        ));
    }
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    Ok(escaped.replace('>', "&gt;").replace('"', "&quot;"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::{ServiceKind, Unit};

    fn unit(kind: ServiceKind, root: &str) -> Unit {
        Unit {
            kind,
            name: "app-1a2b".to_owned(),
            program: PathBuf::from("/opt/my kapi/kapi"),
            root: PathBuf::from(root),
            variables: BTreeMap::from([("PATH".to_owned(), "/bin:/a \"b\"".into())]),
            logs: PathBuf::from("/logs"),
        }
    }

    #[test]
    fn names_that_mean_something_to_the_system_are_quoted() {
        let text = unit(ServiceKind::Systemd, "/srv/100% \"mine\"")
            .text()
            .unwrap();
        for line in [
            "ExecStart=\"/opt/my kapi/kapi\" up",
            "WorkingDirectory=/srv/100%% \"mine\"",
            "Environment=\"PATH=/bin:/a \\\"b\\\"\"",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert!(Unit::is_ours(&text));
        let text = unit(ServiceKind::Launchd, "/srv/<a>&\"b\"").text().unwrap();
        assert!(
            text.contains("<string>/srv/&lt;a&gt;&amp;&quot;b&quot;</string>"),
            "{text}"
        );
        assert!(Unit::is_ours(&text));
        for kind in [ServiceKind::Systemd, ServiceKind::Launchd] {
            assert!(unit(kind, "/srv/a\nExecStart=x").text().is_err());
        }
        assert!(!Unit::is_ours("[Service]\nExecStart=/bin/true\n"));
    }
}
