#!/bin/sh
# Installs kapi from a release: a directory of files on a server, as `cargo xtask dist --package` makes it.
#
#   KAPI_RELEASE_BASE   the address of that directory (required)
#   KAPI_INSTALL_DIR    where the program goes [default: ~/.local/bin]
#
# Everything is in one function that is called in the last line: a script whose end did not arrive
# does nothing.

set -eu

fail() {
    printf 'error: %s\n' "$1" >&2
    [ -z "${2:-}" ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

has() {
    command -v "$1" > /dev/null 2>&1
}

# fetch ADDRESS FILE: writes a file whole, or fails.
fetch() {
    if has curl; then
        curl --fail --silent --show-error --location --output "$2" "$1"
    elif has wget; then
        wget --quiet --output-document="$2" "$1"
    else
        fail "neither curl nor wget is installed" "install one of them."
    fi
}

main() {
    base=${KAPI_RELEASE_BASE:-}
    [ -n "$base" ] || fail "KAPI_RELEASE_BASE is not set" \
        "set it to the address of a release, the directory that holds SHA256SUMS."
    base=${base%/}
    dir=${KAPI_INSTALL_DIR:-${HOME:?}/.local/bin}

    [ "$(uname -s)" = Linux ] || fail "kapi runs on Linux only, this is $(uname -s)"
    case $(uname -m) in
        x86_64 | amd64) arch=x86_64 ;;
        aarch64 | arm64) arch=aarch64 ;;
        *) fail "there is no release for $(uname -m)" "build it: cargo install --path crates/kapi-cli." ;;
    esac
    has sha256sum || fail "sha256sum is not installed" "install coreutils."
    has tar || fail "tar is not installed" "install tar."

    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM HUP

    fetch "$base/SHA256SUMS" "$work/SHA256SUMS" || fail "failed to download $base/SHA256SUMS"
    sums=$(grep -E "^[0-9a-f]{64}  kapi-[0-9A-Za-z.+-]+-$arch-linux\.tar\.gz$" "$work/SHA256SUMS" || true)
    [ -n "$sums" ] || fail "SHA256SUMS of $base names no program for $arch"
    [ "$(printf '%s\n' "$sums" | wc -l)" -eq 1 ] || fail "SHA256SUMS of $base names several programs for $arch"
    archive=${sums#*  }

    fetch "$base/$archive" "$work/$archive" || fail "failed to download $base/$archive" "try again."
    (cd "$work" && printf '%s\n' "$sums" | sha256sum --check --status) ||
        fail "the checksum of $archive is wrong" "it did not arrive whole, or it is not the file that was released; try again."
    tar -xzf "$work/$archive" -C "$work"
    program=$work/${archive%.tar.gz}/kapi
    [ -x "$program" ] || fail "$archive holds no program"
    version=$("$program" --version) || fail "the program of $archive does not start here"

    mkdir -p "$dir"
    # In one step, so that a program that is running stays whole.
    new=$dir/.kapi.$$
    cp "$program" "$new"
    chmod 755 "$new"
    mv -f "$new" "$dir/kapi"
    printf 'Installed %s as %s/kapi.\n' "$version" "$dir"

    man=${XDG_DATA_HOME:-$HOME/.local/share}/man/man1
    if [ -d "$work/${archive%.tar.gz}/man" ]; then
        mkdir -p "$man"
        cp "$work/${archive%.tar.gz}"/man/*.1.gz "$man/"
    fi
    case :$PATH: in
        *":$dir:"*) ;;
        *) printf 'note: %s is not on PATH; add it there.\n' "$dir" ;;
    esac
    printf 'Next: run `kapi doctor`, then `kapi init` in a repository.\n'
}

main "$@"
