# shellcheck shell=bash
# Where commands run: the host when it has what the project needs, a cached Debian 13 root otherwise.
: "${top:?set by contrib/dev}"

mirror=${UCX_LAYOUT_MIRROR:-http://deb.debian.org/debian}
suite=trixie
cache=${UCX_LAYOUT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ucx-layout}
root=$cache/$suite

# The same three things configure asks for first; a host that lacks one of the test libraries is told so by configure.
host_is_enough() {
    [ -z "${UCX_LAYOUT_FORCE_ROOT:-}" ] || return 1
    command -v pkg-config > /dev/null && pkg-config --atleast-version=1.18 ucx 2> /dev/null || return 1
    command -v autoreconf > /dev/null || return 1
    echo '#include <expected>
          static_assert(__cpp_lib_expected >= 202202L);' |
        "${CXX:-g++}" -std=c++23 -fsyntax-only -x c++ - 2> /dev/null
}

packages_of() {
    sed -n "s/^$1: //p" "$top/contrib/dev.d/packages"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
        sudo -n -E "$@"
    else
        echo "contrib/dev: this host has no UCX >= 1.18 with a C++23 compiler, and making a Debian 13 root needs root" \
             "(or sudo without a password). Install these instead: $(packages_of base)" >&2
        return 1
    fi
}

# Makes the root if it is not there and adds the packages asked for. Safe to call from several processes at once.
root_prepare() {
    mkdir -p "$cache"
    local lock
    exec {lock}> "$cache/lock"
    flock "$lock"
    [ -e "$root/.complete" ] || root_bootstrap
    root_install "$@"
    exec {lock}>&-
}

root_bootstrap() {
    if ! command -v debootstrap > /dev/null; then
        echo "contrib/dev: installing debootstrap" >&2
        as_root sh -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y debootstrap' \
            > "$cache/debootstrap.log" 2>&1 || {
            tail -n 20 "$cache/debootstrap.log" >&2
            echo "contrib/dev: debootstrap is not installed and could not be installed with apt-get" >&2
            return 1
        }
    fi
    echo "contrib/dev: making a Debian 13 root in $root (once, about a minute)" >&2
    # An interrupted attempt leaves the .new tree behind, never a half-made root under the final name.
    as_root rm -rf --one-file-system "$root.new" "$root"
    as_root debootstrap --variant=minbase "$suite" "$root.new" "$mirror" > "$cache/debootstrap.log" 2>&1 || {
        tail -n 20 "$cache/debootstrap.log" >&2
        echo "contrib/dev: debootstrap of $suite from $mirror failed; the whole log is $cache/debootstrap.log" >&2
        return 1
    }
    # The root is a cache that can be made again: dpkg need not sync every file, and no service may start in it.
    as_root sh -c "echo force-unsafe-io > '$root.new/etc/dpkg/dpkg.cfg.d/unsafe-io' &&
                   printf '#!/bin/sh\nexit 101\n' > '$root.new/usr/sbin/policy-rc.d' &&
                   chmod +x '$root.new/usr/sbin/policy-rc.d' && touch '$root.new/.complete' &&
                   mv '$root.new' '$root'"
}

root_install() {
    local package missing=()
    for package in "$@"; do
        [ -e "$root/var/lib/dpkg/info/$package.list" ] || [ -e "$root/var/lib/dpkg/info/$package:amd64.list" ] ||
            [ -e "$root/var/lib/dpkg/info/$package:arm64.list" ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "contrib/dev: installing ${#missing[@]} packages into the root" >&2
    root_enter sh -c 'export DEBIAN_FRONTEND=noninteractive
        apt-get -qq update && apt-get -qq install -y --no-install-recommends "$@"' install "${missing[@]}" \
        > "$cache/install.log" 2>&1 < /dev/null || {
        tail -n 20 "$cache/install.log" >&2
        echo "contrib/dev: installing ${missing[*]} failed; the whole log is $cache/install.log" >&2
        return 1
    }
}

# Runs a command in the root. The checkout keeps its path, so that compiler messages and debuggers agree with the editor.
root_enter() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    as_root env UCX_LAYOUT_IN_ROOT=1 root="$root" top="$top" cwd="$PWD" \
        unshare --mount --propagation private bash -c '
        set -e
        for dir in proc sys dev tmp; do mount --rbind "/$dir" "$root/$dir"; done
        mkdir -p "$root$top"
        mount --bind "$top" "$root$top"
        case $cwd/ in "$top"/* | /tmp/*) ;; *) cwd=$top ;; esac
        export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
        unset LD_PRELOAD LD_LIBRARY_PATH TMPDIR
        inner=$root; dir=$cwd; unset root top cwd
        exec chroot "$inner" /usr/bin/env -C "$dir" "$@"' enter "$@"
}
