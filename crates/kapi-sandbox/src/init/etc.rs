//! The part of `/etc` that programs need, and nothing with a secret in it.
//!
//! Files are opened and copied, or bound if they are long, so that a link into a hidden place still has
//! its content; directories are bound.
//! Does not know how entries are put in place.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use super::entry::{RootContent, RootEntry, shown_directory};
use super::mount::{DetachedMount, NewRoot};
use crate::order::{Enclosure, OrderedNetwork};
use crate::status::StepFailure;

/// Directories that are bound as they are.
const DIRECTORIES: &[&str] = &[
    "alternatives",
    "crypto-policies",
    "fonts",
    "java",
    "ld.so.conf.d",
    "maven",
    "perl",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "ssl/certs",
    "terminfo",
];

/// Files that are copied. Not here on purpose: npmrc, pip.conf, gitconfig, environment, fstab,
/// machine-id, everything about accounts, and what only programs of the administrator read. Each file
/// costs every start of a sandbox a two-hundredth of all it takes.
const FILES: &[&str] = &[
    "bash.bashrc",
    "debian_version",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "locale.alias",
    "locale.conf",
    "lsb-release",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "profile",
    "protocols",
    "resolv.conf",
    "services",
    "shells",
    "ssl/openssl.cnf",
    "timezone",
];

/// Files that are copied besides where the network is the host's: they tell how it is used.
const NETWORK_FILES: &[&str] = &["gai.conf", "host.conf", "networks"];

/// Where a Java, whose configuration has a name of its own, is installed.
const JAVA: &str = "/usr/lib/jvm";
/// The largest file that is copied.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// From here on a mount is cheaper than a copy, to make and to take away.
const BOUND_FROM_BYTES: usize = 16 * 1024;
/// The mode bit that lets everybody read.
const READABLE_BY_ALL: u32 = 0o004;

/// Gathers the entries of `/etc`, with accounts made up for the one user that exists inside.
pub(super) fn gather(enclosure: &Enclosure) -> Result<Vec<RootEntry>, StepFailure> {
    let etc = Path::new("/etc");
    let mut entries = Vec::new();
    for name in DIRECTORIES {
        entries.extend(shown_directory(etc.join(name))?);
    }
    for name in java_directories() {
        entries.extend(shown_directory(etc.join(name))?);
    }
    let network_files = match enclosure.network {
        OrderedNetwork::Host => NETWORK_FILES,
        OrderedNetwork::Loopback => &[],
    };
    for name in FILES.iter().chain(network_files) {
        entries.push(public_entry(etc.join(name)));
    }
    entries.push(local_time());
    entries.extend(made_up(&enclosure.hostname, &enclosure.home.path())?);
    Ok(entries)
}

/// Names what the configuration of each installed Java may be called: like the installation, or like it
/// without the processor at its end.
fn java_directories() -> BTreeSet<String> {
    let installed = fs::read_dir(JAVA).into_iter().flatten().flatten();
    let mut names = BTreeSet::new();
    for entry in installed {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name.starts_with("java-") {
            names.extend(name.rsplit_once('-').map(|(family, _)| family.to_owned()));
            names.insert(name);
        }
    }
    names
}

/// Puts a file of the host that any user may read in its place; the host's root, too, gets no more than
/// that. Nothing is there where there is none.
pub(super) fn show(root: &NewRoot, path: &Path) -> Result<(), StepFailure> {
    let Some((file, n_bytes)) = public_file(path)? else {
        return Ok(());
    };
    let file = OwnedFd::from(file);
    if n_bytes < BOUND_FROM_BYTES {
        // On the stack, where all of them use the same pages: each new page costs more than a copy.
        let mut capacity = [MaybeUninit::uninit(); BOUND_FROM_BYTES];
        let (content, rest) = rustix::io::read(&file, &mut capacity)
            .map_err(|errno| read_failure(path, &errno.into()))?;
        // Without room behind it, it has become longer meanwhile.
        if !rest.is_empty() {
            return root.file(path, content);
        }
    }
    root.attach(&DetachedMount::clone_of_file(&file, path)?, path)
}

fn public_entry(path: PathBuf) -> RootEntry {
    RootEntry {
        inside: path,
        content: RootContent::Public,
    }
}

fn public_content(path: &Path) -> Result<Option<Vec<u8>>, StepFailure> {
    let found = public_file(path)?;
    found
        .map(|(file, n_bytes)| content_of(file, n_bytes, path))
        .transpose()
}

fn content_of(file: fs::File, n_bytes: usize, path: &Path) -> Result<Vec<u8>, StepFailure> {
    let mut content = Vec::with_capacity(n_bytes + 1);
    let mut rest = file.take(FILE_BYTES_MAX);
    rest.read_to_end(&mut content)
        .map_err(|error| read_failure(path, &error))?;
    Ok(content)
}

/// Opens a file that everybody may read and tells how long it is.
fn public_file(path: &Path) -> Result<Option<(fs::File, usize)>, StepFailure> {
    // Opening a pipe without a writer would wait for one.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let Ok(file) = fs::File::options()
        .read(true)
        .custom_flags(flags)
        .open(path)
    else {
        return Ok(None);
    };
    let found = file
        .metadata()
        .map_err(|error| read_failure(path, &error))?;
    if !found.is_file() || found.mode() & READABLE_BY_ALL == 0 {
        return Ok(None);
    }
    let too_large = || read_failure(path, &Errno::FBIG.into());
    if found.len() > FILE_BYTES_MAX {
        return Err(too_large());
    }
    let n_bytes = usize::try_from(found.len()).map_err(|_| too_large())?;
    Ok(Some((file, n_bytes)))
}

fn read_failure(path: &Path, error: &io::Error) -> StepFailure {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    StepFailure::new("read", &path.display().to_string(), errno)
}

/// Keeps `/etc/localtime` a link where it is one, because programs read the zone's name from it.
fn local_time() -> RootEntry {
    let path = PathBuf::from("/etc/localtime");
    match fs::read_link(&path) {
        Ok(target) if target.starts_with("/usr") => RootEntry {
            inside: path,
            content: RootContent::Link(target),
        },
        Ok(_) | Err(_) => public_entry(path),
    }
}

fn made_up(hostname: &str, home: &Path) -> Result<Vec<RootEntry>, StepFailure> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let shell = if Path::new("/bin/bash").exists() {
        "/bin/bash"
    } else {
        "/bin/sh"
    };
    let mut hosts = public_content(Path::new("/etc/hosts"))?
        .unwrap_or_else(|| b"127.0.0.1 localhost\n".to_vec());
    hosts.extend_from_slice(format!("\n127.0.1.1 {hostname}\n").as_bytes());
    let files = [
        ("/etc/hosts", hosts),
        ("/etc/hostname", format!("{hostname}\n").into_bytes()),
        (
            "/etc/passwd",
            passwd(user, group, &home.display().to_string(), shell).into_bytes(),
        ),
        ("/etc/group", group_file(group).into_bytes()),
    ];
    Ok(files
        .into_iter()
        .map(|(path, content)| RootEntry {
            inside: path.into(),
            content: RootContent::File(content),
        })
        .collect())
}

fn passwd(user: u32, group: u32, home: &str, shell: &str) -> String {
    let nobody = if user == 65534 {
        ""
    } else {
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    };
    format!(
        "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nagent:x:{user}:{group}:agent:{home}:{shell}\n{nobody}"
    )
}

fn group_file(group: u32) -> String {
    let nobody = if group == 65534 {
        ""
    } else {
        "nogroup:x:65534:\n"
    };
    format!("root:x:0:\nagent:x:{group}:\n{nobody}")
}

#[cfg(test)]
mod tests {
    use super::{group_file, passwd};

    #[test]
    fn every_number_has_one_name() {
        let usual = passwd(1000, 1000, "/home/agent", "/bin/sh");
        assert!(usual.contains("agent:x:1000:1000:agent:/home/agent:/bin/sh\n"));
        assert_eq!(usual.matches(":65534:65534:").count(), 1);
        assert_eq!(
            passwd(65534, 65534, "/h", "/bin/sh")
                .matches(":65534:65534:")
                .count(),
            1
        );
        assert_eq!(group_file(65534).matches("65534").count(), 1);
    }
}
