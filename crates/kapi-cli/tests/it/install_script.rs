//! `dist/install.sh` against a server on this machine: what arrives whole and is what was released is
//! installed, and nothing else.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, thread};

use kapi_store::hash::sha256_hex;

use crate::environment::{Environment, write};
use crate::program::{Output, finish};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/install.sh");

/// A file of a release, and how much of it the server sends.
#[derive(Clone)]
struct ServedFile {
    bytes: Vec<u8>,
    n_sent: usize,
}

fn served(bytes: impl AsRef<[u8]>) -> ServedFile {
    let bytes = bytes.as_ref().to_vec();
    let n_sent = bytes.len();
    ServedFile { bytes, n_sent }
}

/// Serves files for as long as the test process lives, and returns the address.
fn serve(files: BTreeMap<String, ServedFile>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let files = Arc::new(files);
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), &files);
        }
    });
    format!("http://{address}/release")
}

fn answer(mut stream: TcpStream, files: &BTreeMap<String, ServedFile>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    for line in lines {
        if line.unwrap().is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap();
    let head = |status: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
    };
    match path
        .strip_prefix("/release/")
        .and_then(|name| files.get(name))
    {
        Some(file) => {
            let head = head("200 OK", file.bytes.len());
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&file.bytes[..file.n_sent]).unwrap();
        }
        None => stream
            .write_all(head("404 Not Found", 0).as_bytes())
            .unwrap(),
    }
}

/// Returns the files of a release whose program says its version.
fn release(env: &Environment, version: &str) -> BTreeMap<String, ServedFile> {
    let name = format!("kapi-{version}-{}-linux", std::env::consts::ARCH);
    let dir = env.root().join(&name);
    fs::create_dir_all(dir.join("man")).unwrap();
    write(&dir.join("man/kapi.1.gz"), "a page");
    let program = dir.join("kapi");
    write(&program, format!("#!/bin/sh\necho kapi {version}\n"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let archive = format!("{name}.tar.gz");
    let mut tar = env.command("tar", env.root());
    tar.args(["-czf", &archive, &name]);
    assert_eq!(finish(tar).code, 0);
    let bytes = fs::read(env.root().join(&archive)).unwrap();
    let sums = format!(
        "{}  {archive}\n{}  kapi_{version}_amd64.deb\n",
        sha256_hex(&bytes),
        "0".repeat(64)
    );
    BTreeMap::from([
        ("SHA256SUMS".to_owned(), served(sums)),
        (archive, served(bytes)),
    ])
}

fn archive_of(files: &mut BTreeMap<String, ServedFile>) -> &mut ServedFile {
    let found = files.iter_mut().find(|(name, _)| name.ends_with(".tar.gz"));
    found.unwrap().1
}

fn install(env: &Environment, script: &Path, base: &str) -> Output {
    let mut command = env.command("sh", env.root());
    command.arg(script).env("KAPI_RELEASE_BASE", base);
    finish(command)
}

fn installed(env: &Environment) -> PathBuf {
    env.home().join(".local/bin/kapi")
}

fn assert_refused(env: &Environment, output: &Output, word: &str) {
    assert_ne!(output.code, 0, "{output:?}");
    assert!(output.stderr.contains(word), "{word} in {output:?}");
    assert!(!installed(env).exists(), "{output:?}");
}

#[test]
fn a_release_is_installed_and_the_next_one_takes_its_place() {
    for version in ["1.2.3", "1.3.0-rc.1"] {
        let env = Environment::bare();
        fs::create_dir_all(installed(&env).parent().unwrap()).unwrap();
        write(&installed(&env), "the one before");
        let output = install(&env, Path::new(SCRIPT), &serve(release(&env, version)));
        assert_eq!(output.code, 0, "{output:?}");
        assert!(
            output.stdout.contains(&format!("Installed kapi {version}")),
            "{output:?}"
        );
        let ran = finish(env.command(installed(&env).to_str().unwrap(), env.root()));
        assert_eq!(ran.stdout, format!("kapi {version}\n"));
        let beside: Vec<_> = fs::read_dir(installed(&env).parent().unwrap())
            .unwrap()
            .collect();
        assert_eq!(beside.len(), 1, "nothing else is left there");
        assert!(env.home().join(".local/share/man/man1/kapi.1.gz").is_file());
    }
}

#[test]
fn what_did_not_arrive_whole_or_is_another_file_is_not_installed() {
    let env = Environment::bare();
    let script = Path::new(SCRIPT);
    let mut cut = release(&env, "1.2.3");
    archive_of(&mut cut).n_sent /= 2;
    assert_refused(
        &env,
        &install(&env, script, &serve(cut)),
        "failed to download",
    );
    // Shorter, and whole for all that the server says.
    let mut shorter = release(&env, "1.2.3");
    let file = archive_of(&mut shorter);
    file.bytes.truncate(file.n_sent / 2);
    file.n_sent = file.bytes.len();
    assert_refused(&env, &install(&env, script, &serve(shorter)), "checksum");
    let mut changed = release(&env, "1.2.3");
    if let Some(last) = archive_of(&mut changed).bytes.last_mut() {
        *last ^= 1;
    }
    assert_refused(&env, &install(&env, script, &serve(changed)), "checksum");
    let mut missing = release(&env, "1.2.3");
    missing.retain(|name, _| !name.ends_with(".tar.gz"));
    assert_refused(
        &env,
        &install(&env, script, &serve(missing)),
        "failed to download",
    );
    let mut none = release(&env, "1.2.3");
    none.insert("SHA256SUMS".to_owned(), served("0000  other.tar.gz\n"));
    assert_refused(
        &env,
        &install(&env, script, &serve(none)),
        "names no program",
    );
    let mut elsewhere = release(&env, "1.2.3");
    let arch = std::env::consts::ARCH;
    let sums = format!("{}  kapi-../../x-{arch}-linux.tar.gz\n", "0".repeat(64));
    elsewhere.insert("SHA256SUMS".to_owned(), served(sums));
    assert_refused(
        &env,
        &install(&env, script, &serve(elsewhere)),
        "names no program",
    );
    assert_refused(
        &env,
        &install(&env, script, ""),
        "KAPI_RELEASE_BASE is not set",
    );
}

#[test]
fn a_script_that_did_not_arrive_whole_does_nothing() {
    let env = Environment::bare();
    let base = serve(release(&env, "1.2.3"));
    let text = fs::read_to_string(SCRIPT).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let cut = env.root().join("cut.sh");
    for n_lines in (1..lines.len()).step_by(9).chain([lines.len() - 1]) {
        write(&cut, lines[..n_lines].join("\n"));
        install(&env, &cut, &base);
        assert!(!installed(&env).exists(), "{n_lines} lines");
    }
}
