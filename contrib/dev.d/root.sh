# shellcheck shell=bash
# Where commands run: on the host if it has what the project needs, otherwise in a cached Debian 13 root.
: "${top:?set by contrib/dev}"

mirror=${UCXL_DEV_MIRROR:-http://deb.debian.org/debian}
suite=trixie
cache=${UCXL_DEV_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ucx-layout}
root=$cache/$suite
root_suite=$suite
# shellcheck disable=SC2034 # contrib/dev and verbs.sh use it
ucx_gtest=${UCXL_DEV_UCX_GTEST:-$cache/ucx-gtest} # UCX's own tests, built once for all checkouts
# shellcheck disable=SC2034 # the same
python_wheels=${UCXL_DEV_PYTHON_WHEELS:-$cache/python-wheels} # of PyPI
# shellcheck disable=SC2034 # the same
mpi_suites=${UCXL_DEV_MPI_SUITES:-$cache/mpi-suites} # sources of MPI test suites, and what is compiled from them
# shellcheck disable=SC2034 # the same
nixl=${UCXL_DEV_NIXL_FOLDER:-$cache/nixl} # NIXL's wheel in a virtual environment, and its headers for backends

# Chooses the root of another Debian suite.
use_suite() {
    root=$cache/$1
    root_suite=$1
}

# Checks what configure checks first. If the host lacks a test library, configure says so.
host_is_enough() {
    [ -z "${UCXL_DEV_FORCE_ROOT:-}" ] || return 1
    pkg-config --exists 'ucx >= 1.16' 'ucx < 1.24' 2> /dev/null || return 1
    command -v autoreconf > /dev/null || return 1
    echo '#include <expected>
          static_assert(__cpp_lib_expected >= 202202L);' |
        "${CXX:-g++}" -std=c++23 -fsyntax-only -x c++ - 2> /dev/null
}

# part NAME COMMAND...: runs the command, and for `check` notes how long it took. It has the command's status, and
# leaves errexit to it, which `"$@" || return` would switch off inside the command.
part() {
    local name=$1 begin=${EPOCHREALTIME/[.,]/} status
    shift
    "$@"
    status=$?
    [ -z "${UCXL_DEV_TIMES:-}" ] ||
        printf '%9.1f s  %s\n' "$(((${EPOCHREALTIME/[.,]/} - begin) / 100000))e-1" "$name" >> "$top/build/times"
    return "$status"
}

packages_of() {
    sed -n "s/^$1: //p" "$top/contrib/dev.d/packages"
}

# Prints the prefix of commands that need root: nothing, or sudo.
root_prefix() {
    if [ "$(id -u)" -eq 0 ]; then
        return 0
    elif command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
        echo "sudo -n -E"
    elif host_is_enough; then
        echo "contrib/dev: this runs in a Debian root ($root_suite), which needs root (or sudo without a password)" >&2
        return 1
    else
        echo "contrib/dev: this host has no UCX 1.16 to 1.23 with a C++23 compiler, and making a Debian 13 root needs" \
             "root (or sudo without a password). Install these instead: $(packages_of demo) $(packages_of base)" >&2
        return 1
    fi
}

as_root() {
    local prefix
    prefix=$(root_prefix) || return 1
    # shellcheck disable=SC2086 # split into words
    $prefix "$@"
}

# Makes the root if it is missing and installs the packages named. Several processes may call this at once.
root_prepare() {
    root_prefix > /dev/null || return 1
    mkdir -p "$cache"
    local lock
    exec {lock}> "$cache/lock"
    flock "$lock"
    [ -e "$root/.complete" ] || part "Debian root" root_bootstrap
    part "packages" root_install "$@"
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
    echo "contrib/dev: making a Debian root ($root_suite) in $root (once, about a minute)" >&2
    # A debootstrap that is older than the suite has no script of its name. That of sid fits all newer ones.
    local script=()
    [ -e "/usr/share/debootstrap/scripts/$root_suite" ] || script=(/usr/share/debootstrap/scripts/sid)
    # An interrupted attempt leaves the .new tree behind, never a half-made root under the final name. debootstrap runs
    # in a mount namespace of its own, so that no mount outlives an interruption.
    as_root rm -rf --one-file-system "$root.new" "$root"
    # The root is a cache that can be made again, so dpkg need not sync every file.
    DPKG_FORCE=unsafe-io as_root unshare --mount --propagation private debootstrap --variant=minbase "$root_suite" \
        "$root.new" "$mirror" "${script[@]}" \
        > "$cache/debootstrap.log" 2>&1 || {
        tail -n 20 "$cache/debootstrap.log" >&2
        echo "contrib/dev: debootstrap of $root_suite from $mirror failed; the whole log is $cache/debootstrap.log" >&2
        return 1
    }
    # The same for packages that come later. No service may start in the root.
    # shellcheck disable=SC2016 # expanded by the inner shell
    as_root sh -ec 'echo force-unsafe-io > "$1/etc/dpkg/dpkg.cfg.d/unsafe-io"
                    printf "#!/bin/sh\nexit 101\n" > "$1/usr/sbin/policy-rc.d"
                    chmod +x "$1/usr/sbin/policy-rc.d"
                    # The lists of a suite in development expire within days, also where a mirror is only slow.
                    echo "Acquire::Check-Valid-Until \"false\";" > "$1/etc/apt/apt.conf.d/90valid-until"
                    touch "$1/.complete"
                    mv "$1" "$2"' finish "$root.new" "$root"
}

root_has_package() {
    local list
    for list in "$root/var/lib/dpkg/info/$1.list" "$root/var/lib/dpkg/info/$1":*.list; do
        [ ! -e "$list" ] || return 0
    done
    return 1
}

root_install() {
    local package missing=() repair=
    for package in "$@"; do
        case $package in
        *=files) root_unpack "${package%=files}" || return 1 ;;
        *) root_has_package "$package" || missing+=("$package") ;;
        esac
    done
    # This file marks an interrupted installation. dpkg has to finish it before anything else.
    [ ! -e "$cache/installing" ] || repair='dpkg --configure -a && apt-get -qq install -y --fix-broken &&'
    [ ${#missing[@]} -gt 0 ] || [ -n "$repair" ] || return 0
    echo "contrib/dev: installing ${#missing[@]} packages into the root" >&2
    touch "$cache/installing"
    # Packages of another processor are named PACKAGE:ARCH.
    root_command "" sh -c "export DEBIAN_FRONTEND=noninteractive
        for arch in \$(printf '%s\\n' \"\$@\" | sed -n 's/.*://p' | sort -u); do dpkg --add-architecture \$arch; done
        $repair apt-get -qq update && apt-get -qq install -y --no-install-recommends \"\$@\"" install "${missing[@]}" \
        > "$cache/install.log" 2>&1 < /dev/null || {
        tail -n 20 "$cache/install.log" >&2
        echo "contrib/dev: installing ${missing[*]} failed; the whole log is $cache/install.log" >&2
        return 1
    }
    rm -f "$cache/installing"
}

# Only the files that are missing: a package of another processor that cannot be installed beside the machine's own.
root_unpack() {
    local stamp=$root/.unpacked-$1
    [ ! -e "$stamp" ] || return 0
    # shellcheck disable=SC2016 # expanded by the inner shell
    root_command "" sh -ec 'dpkg --add-architecture "${1#*:}"
        apt-get -qq update
        folder=$(mktemp -d)
        cd "$folder"
        apt-get -qq download "$1"
        dpkg-deb --fsys-tarfile ./*.deb | tar -x --skip-old-files -C /
        rm -r "$folder"' unpack "$1" > "$cache/install.log" 2>&1 < /dev/null || {
        tail -n 20 "$cache/install.log" >&2
        echo "contrib/dev: unpacking $1 failed; the whole log is $cache/install.log" >&2
        return 1
    }
    as_root touch "$stamp"
}

# Prints the path of the checkout inside the root. It is the path outside, so that compiler messages and debuggers agree
# with the editor, unless Autotools cannot work in a folder of that name.
path_in_root() {
    case $top in
    *[!A-Za-z0-9/._+-]*) echo /ucx-layout ;;
    *) echo "$top" ;;
    esac
}

# root_command USER COMMAND...: runs the command in the root, in a private mount namespace. USER is UID:GID, or "" for
# root.
root_command() {
    local user=$1 prefix
    shift
    prefix=$(root_prefix) || return 1
    # root_exec is `exec` if this is the last thing that contrib/dev does. Then signals reach the command itself.
    # shellcheck disable=SC2016,SC2086 # expanded by the inner shell; split into words
    ${root_exec:-} $prefix env UCXL_DEV_IN_ROOT=1 root="$root" top="$top" inside="$(path_in_root)" cwd="$PWD" \
        user="$user" shown="${shown_folder:-}" unshare --mount --propagation private bash -c '
        set -e
        for dir in proc sys dev tmp; do mount --rbind "/$dir" "$root/$dir"; done
        # Names resolve as on the host, even after its network has changed.
        for file in /etc/resolv.conf /etc/hosts; do
            [ ! -e "$file" ] || { touch "$root$file" && mount --bind "$(realpath "$file")" "$root$file"; }
        done
        mkdir -p "$root$inside"
        mount --bind "$top" "$root$inside"
        [ -z "$shown" ] || { mkdir -p "$root$shown" && mount --bind "$shown" "$root$shown"; }
        case $cwd/ in
        "$top"/*) cwd=$inside${cwd#"$top"} ;;
        /tmp/*) ;;
        *) cwd=$inside ;;
        esac
        export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
        change=()
        [ -z "$user" ] || { export HOME=/tmp; change=("--userspec=$user" --groups=); }
        unset LD_PRELOAD LD_LIBRARY_PATH TMPDIR
        inner=$root; dir=$cwd; unset root top inside cwd user shown
        exec chroot "${change[@]}" "$inner" /usr/bin/env -C "$dir" "$@"' enter "$@"
}

# Replaces this process by contrib/dev in the root, as the user who called it, so that this user owns what it builds.
root_enter() {
    local user=
    [ "$(id -u)" -eq 0 ] || user=$(id -u):$(id -g)
    root_exec="exec" root_command "$user" "$(path_in_root)/contrib/dev" "$@"
}
