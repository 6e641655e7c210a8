# shellcheck shell=bash
# Trying the packages in a Debian root that has only its base system. It is made once and copied for each try.
: "${top:?set by contrib/dev}" "${suite:?set by root.sh}"

# The packages that apt downloads are kept beside the root in which things are built.
share_downloads() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    as_root sh -c 'cp --link --force "$1/var/cache/apt/archives/"*.deb "$2/var/cache/apt/archives/"' share "$1" "$2"
}

try_packages() (
    building=$root
    cache=$cache/minimal
    root=$cache/$suite
    root_prepare
    fresh=$(mktemp -d "$cache/fresh.XXXXXX")
    trap 'as_root rm -rf --one-file-system "$fresh"' EXIT
    as_root cp -a --reflink=auto "$root/." "$fresh"
    share_downloads "$building" "$fresh"
    root=$fresh
    root_command "" "$(path_in_root)/contrib/dev.d/try-packages" "$(path_in_root)"
    share_downloads "$fresh" "$building"
)
