//! Published packages, fetched by the ordinary clients of their registries while a corpus is run.
//!
//! Names no registry: the clients know theirs. Nothing fetched becomes part of the repository.

use serde::Deserialize;

/// Whose client fetches a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PackageClient {
    /// `npm pack`.
    Npm,
    /// `pip download`, the source distribution.
    Pip,
    /// `cargo vendor`, the one crate.
    Cargo,
    /// `go mod download`.
    Go,
    /// `apt-get source`.
    Debian,
    /// `apt-get download` of a package that ships the sources of a Go module; its version is the
    /// module's path.
    DebianGo,
}

impl PackageClient {
    /// Returns its name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pip => "pip",
            Self::Cargo => "cargo",
            Self::Go => "go",
            Self::Debian => "debian",
            Self::DebianGo => "debian-go",
        }
    }

    /// Returns the program without which nothing can be fetched.
    pub(super) const fn program(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pip => "python3",
            Self::Cargo => "cargo",
            Self::Go => "go",
            Self::Debian | Self::DebianGo => "apt-get",
        }
    }

    /// Returns a shell script that puts one version of a package into a new directory.
    pub(super) fn script(self, package: &str, version: &str, into: &str) -> String {
        let body = match self {
            Self::Npm => {
                "npm pack --silent \"$package@$version\" > /dev/null\n\
                 mkdir unpacked && tar xzf ./*.tgz -C unpacked --strip-components=1"
            }
            Self::Pip => {
                "python3 -m venv venv\n\
                 venv/bin/pip --quiet --disable-pip-version-check download --no-deps \
                 --no-binary \"$package\" --dest . \"$package==$version\"\n\
                 mkdir unpacked && tar xzf ./*.tar.gz -C unpacked --strip-components=1"
            }
            Self::Cargo => {
                // Never `cargo init`: it would enter itself into a workspace that lies above.
                "mkdir src && touch src/lib.rs\n\
                 printf '[package]\\nname = \"probe\"\\nversion = \"0.0.0\"\\nedition = \"2021\"\\n\
                 [workspace]\\n[dependencies]\\n%s = \"=%s\"\\n' \"$package\" \"$version\" > Cargo.toml\n\
                 cargo vendor --quiet > /dev/null\n\
                 mv \"vendor/$package\" unpacked\n\
                 rm -f unpacked/.cargo-checksum.json\n\
                 printf '\\n[workspace]\\n' >> unpacked/Cargo.toml"
            }
            Self::Go => {
                "export GOPATH=\"$PWD/go\" GOFLAGS=-modcacherw\n\
                 directory=$(go mod download -json \"$package@$version\" | \
                 sed -n 's/.*\"Dir\": \"\\(.*\\)\".*/\\1/p')\n\
                 cp -r \"$directory\" unpacked && chmod -R u+w unpacked\n\
                 [ -f unpacked/go.mod ] || printf 'module %s\\n\\ngo 1.19\\n' \"$package\" > unpacked/go.mod"
            }
            Self::Debian => DEBIAN,
            Self::DebianGo => {
                "apt-get -q -q -o APT::Sandbox::User=root download \"$package\"\n\
                 dpkg -x ./*.deb files\n\
                 cp -r \"files/usr/share/gocode/src/$version\" unpacked\n\
                 [ -f unpacked/go.mod ] || printf 'module %s\\n\\ngo 1.19\\n' \"$version\" > unpacked/go.mod"
            }
        };
        format!(
            "set -e\npackage='{package}' version='{version}'\n\
             rm -rf fetching && mkdir fetching && cd fetching\n{body}\n\
             cd .. && mv fetching/unpacked '{into}' && rm -rf fetching\n"
        )
    }
}

/// Sources of the system's own distribution, by lists of our own: the system's stay as they are.
const DEBIAN: &str = "\
mkdir -p lists/partial parts
sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > parts/sources.sources
apt() {
    apt-get -q -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=\"$PWD/parts\" \
        -o Dir::State::lists=\"$PWD/lists\" -o APT::Sandbox::User=root \"$@\"
}
apt update
apt source --download-only --tar-only \"$package\"
mkdir unpacked && tar xf ./*.orig.tar.* -C unpacked --strip-components=1";
