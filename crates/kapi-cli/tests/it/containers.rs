//! A podman of a test's own: its storage and one small image, gone with the test.
//!
//! Real containers, started by root or whoever runs the tests.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::environment::{Environment, write};
use crate::program::finish;

/// The image.
pub(crate) const IMAGE: &str = "localhost/kapi-cli-it:1";

/// Storage for containers; dropping it leaves nothing mounted.
pub(crate) struct Containers {
    root: TempDir,
}

impl Containers {
    /// How the configuration names it, below `[sandbox]`, which is open at the end.
    pub(crate) const CONFIG: &str =
        "[sandbox]\nimage = \"localhost/kapi-cli-it:1\"\nruntime = \"runc\"\n";

    /// Gives a machine containers of its own, with an image made of the static busybox of this host.
    pub(crate) fn new(env: &mut Environment) -> Self {
        let root = tempfile::Builder::new()
            .prefix("kapi-cli-podman-")
            .tempdir_in("/tmp")
            .unwrap();
        let containers = Self { root };
        let at = |name: &str| containers.path(name).display().to_string();
        let storage = at("storage");
        let conf = format!(
            "[storage]\ndriver = \"overlay\"\ngraphroot = {storage:?}\nrunroot = {:?}\n\
             rootless_storage_path = {storage:?}\n",
            at("storage-run")
        );
        write(&containers.path("storage.conf"), conf);
        let runtime = containers.path("run");
        fs::create_dir(&runtime).unwrap();
        fs::set_permissions(
            &runtime,
            std::os::unix::fs::PermissionsExt::from_mode(0o700),
        )
        .unwrap();
        env.set("CONTAINERS_STORAGE_CONF", &at("storage.conf"));
        let engine = "[engine]\ncgroup_manager = \"cgroupfs\"\n";
        write(&containers.path("containers.conf"), engine);
        env.set("CONTAINERS_CONF", &at("containers.conf"));
        env.set("XDG_RUNTIME_DIR", &at("run"));
        env.configure(Self::CONFIG);
        containers.import(env);
        containers
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(name)
    }

    fn import(&self, env: &Environment) {
        let files = self.path("image");
        for dir in ["bin", "etc"] {
            fs::create_dir_all(files.join(dir)).unwrap();
        }
        fs::copy("/bin/busybox", files.join("bin/busybox")).unwrap();
        write(&files.join("etc/passwd"), "root:x:0:0::/:/bin/sh\n");
        let line = "cd \"$0/image\" && for name in $(bin/busybox --list); do \
                    [ $name = busybox ] || ln -sf busybox bin/$name; done; tar -cf ../image.tar . && \
                    podman import --quiet ../image.tar \"$1\"";
        let mut command = env.command("sh", Path::new("/"));
        command.args(["-c", line]).arg(self.root.path()).arg(IMAGE);
        let output = finish(command);
        assert_eq!(output.code, 0, "import the image: {output:?}");
    }

    /// Runs podman on this storage and returns what it printed.
    pub(crate) fn podman(&self, env: &Environment, args: &[&str]) -> String {
        let mut command = env.command("podman", self.root.path());
        command.args(args);
        let output = finish(command);
        assert_eq!(output.code, 0, "podman {args:?}: {output:?}");
        output.stdout
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        let overlay = self.path("storage/overlay").display().to_string();
        // Podman leaves its storage mounted on itself; where it is not, there is nothing to undo.
        #[expect(clippy::disallowed_methods, reason = "a test clears up after podman")]
        std::process::Command::new("umount")
            .args(["--lazy", &overlay])
            .stderr(std::process::Stdio::null())
            .status()
            .ok();
    }
}
