# shellcheck shell=bash
# The verbs of contrib/dev. They run where the toolchain is: on the host or inside the root.
: "${top:?set by contrib/dev}" "${ucx_gtest:?set by root.sh}" "${mpi_suites:?set by root.sh}" "${nixl:?set by root.sh}"

jobs=$(nproc)

verb_help() {
    cat << 'END'
usage: contrib/dev VERB [ARGS]

  demo [ARGS]     build the demo, then move layouts of real applications between two processes and check every byte
  check           build and run all checks and tests; ends with "N passed, N failed"
                  (--times: print what took long; --all: everything else that checks, too, for some hours;
                  --ucx PREFIX: run what depends on UCX with the UCX that is installed in PREFIX;
                  --suite NAME: build and run the tests in a root of another Debian suite, forky has UCX 1.23;
                  --arch arm64: build for that processor, and run what an emulator can run)
  build [VARIANT] configure and build (VARIANT: release, bench, debug, clang, g++-13, asan, tsan;
                  default release)
  conformance [FILTER]
                  build, then run test suites of other projects for network cards on the software device
                  (--suite NAME: in a root of another Debian suite, forky has rdma-core 65)
                  (--ucx-gtest [FILTER]: instead build UCX's own tests, once, and run those for network cards;
                  takes hours; ends with "N passed, N failed")
                  (mpi [--mpi NAME] [--pairs N] [FILTER]: instead run MPI programs of other projects without
                  libmpi_layout and with it, compare what they print, and time both; ends with "N passed, N failed")
                  (python [FILTER]: instead make a wheel of the Python package, and run its tests and programs with
                  wheels of other projects, such as ucxx; ends with "N passed, N failed")
                  (nixl [FILTER]: instead drive the backend for NIXL by the Python API of NIXL's wheel, which is
                  fetched once; ends with "N passed, N failed")
  adversarial [SEEDS] [FILTER]
                  build, then run the tests that use the software device in its adversarial order, once for each of
                  SEEDS seeds (default 200); ends with "N passed, N failed"
  models [FILTER] check the models of protocols between threads and processes (SPIN) in all their states, and that
                  each is found wrong when one check, order or barrier is taken out
  schedules [N]   build, then run protocols between threads and processes, the real code, in N orders of their atomic
                  operations (default 1000000)
  soak MINUTES [OPTIONS]
                  build, then let random processes talk for so long, over all transports, with kills, stops and forks,
                  and look at every byte (--seed N: of the first round; --round N: one round again; --plan N: what
                  that round does); ends with
                  "soak: N operations, N kills, N wrong, N hung, N left behind"
  test FILTER     build, then run the tests whose program or gtest name matches FILTER
                  (--suite NAME FILTER: in a root of another Debian suite, forky has MPIs with the ABI of MPI 5)
  run CMD...      build, then run a command that finds the built tools, examples and libraries first
  bench [NAME]    run a benchmark (no NAME: list them; nixl fetches NIXL's wheel once, nixlbench builds NIXL's own
                  benchmark once)
  model [OPTIONS] model what a pool of keys gains for an alltoall that DPUs move (--help lists the options)
  asan [FILTER]   tests under AddressSanitizer and UndefinedBehaviorSanitizer
  tsan [--whole] [FILTER]
                  thread tests under ThreadSanitizer; --whole: all tests of the programs, which takes more than an hour
  fuzz [SECONDS|--keep|--coverage] [NAME...]
                  run every fuzz target, or those with these NAMEs, for SECONDS (default 60); --keep: copy the inputs
                  found that reach new code to test/fuzz/corpus; --coverage: print how much of the code all inputs reach
  fmt             format the sources in place
  lint [FILE...]  run clang-format, clang-tidy (with FILEs only on those), shellcheck and a check of the man pages
  docs            run doxygen; a warning is an error
  dist            make distcheck: the release tarball builds, tests and installs by itself; then deb
  deb             build the Debian packages from the release tarball, check them, try them in a fresh Debian root
  shell           start a shell where the toolchain is
END
}

# suite_of VERB [--suite NAME ...]: prints NAME if that is not the suite of the root.
suite_of() {
    case "$1 ${2:-}" in
    "check --suite" | "conformance --suite" | "test --suite")
        [ "${3:-}" = "$suite" ] || echo "${3:?the name of a Debian suite is missing}"
        ;;
    esac
}

# other_arch [--arch ARCH ...]: prints ARCH if that is not this machine's processor.
other_arch() {
    [ "${1:-}" = --arch ] || return 0
    case ${2:-}:$(uname -m) in
    amd64:x86_64 | arm64:aarch64) ;;
    *) echo "${2:-none}" ;;
    esac
}

# require_known_arch [--arch ARCH ...]: fails unless there is a check for that processor.
require_known_arch() {
    local arch
    arch=$(other_arch "$@")
    case $arch in
    '' | arm64) ;;
    *)
        echo "contrib/dev: there is no check for processor '$arch' (arm64)" >&2
        return 2
        ;;
    esac
}

verb_packages() {
    packages_of demo
    [ "$1" = demo ] || packages_of base
    case $1:$(other_arch "${@:2}") in
    check:arm64) packages_of arm64 ;;
    esac
    case "$1 ${2:-}" in
    "conformance --ucx-gtest") packages_of ucx-gtest; packages_of conformance ;;
    "conformance mpi") packages_of conformance-mpi ;;
    "conformance python") packages_of conformance-python ;;
    "conformance nixl" | "bench nixl") packages_of nixl ;;
    "bench nixlbench") packages_of nixl; packages_of nixlbench ;;
    "conformance "* | "check "*) packages_of conformance ;;
    esac
    case $1 in
    fmt) packages_of lint ;;
    lint) packages_of lint; packages_of conformance ;;
    fuzz) packages_of fuzz ;;
    build) packages_of "build-${2:-release}" ;;
    bench) packages_of bench ;;
    model) packages_of model ;;
    docs) packages_of docs ;;
    deb) packages_of docs; packages_of deb ;;
    shell) packages_of debug ;;
    esac
}

# Full debug information costs a quarter of the compiler's time. Backtraces do without it; `debug` has it. With a larger
# heap g++ collects garbage less often, which takes 7 % of its time, and each needs 100 MB more.
variant_flags() {
    local collector=--param=ggc-min-heapsize=600000
    case $1 in
    clang) echo "-O2 -g1" ;;
    release | bench | nixl | arm64 | g++-13) echo "-O2 -g1 $collector" ;;
    demo) echo "-O2 $collector" ;;
    debug) echo "-Og -g $collector" ;;
    # With the sanitizers g++ gives this warning for <regex>, wrongly.
    asan)
        echo "-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer" \
            "-D_GLIBCXX_ASSERTIONS -Wno-maybe-uninitialized $collector"
        ;;
    # The warning is about fences. Ours order what other processes see, and the sanitizer sees one process only.
    tsan) echo "-O1 -g1 -fsanitize=thread -Wno-tsan $collector" ;;
    *)
        echo "contrib/dev: unknown build variant '$1' (release, bench, debug, clang, g++-13, asan, tsan)" >&2
        return 2
        ;;
    esac
}

link_flags() {
    case $1 in
    # Debian's g++-13 links with a libstdc++ of its own, older than the one that programs then run with, and than what
    # other libraries need of it; libgtest.a needs the newer one itself.
    g++-13) echo "-Wl,--allow-shlib-undefined -l:libstdc++.so.6" ;;
    *) variant_flags "$1" | grep -o -- '-fsanitize=[a-z,]*' || true ;;
    esac
}

# Whether no file of the checkout and no Debian package has changed since the variant was built and installed.
is_built() {
    local stamp=$top/build/$1/.built packages=/var/lib/dpkg/status
    [ -e "$packages" ] && [ -e "$stamp" ] && [ "$stamp" -nt "$packages" ] &&
        [ -z "$(find "$top" \( -path "$top/build" -o -path "$top/.git" \) -prune -o -newer "$stamp" -print -quit)" ]
}

# Installs into a prefix beside the build, so that `run` uses what a user would get.
verb_build() {
    local variant=${1:-release} dir lock
    dir=$top/build/$variant
    # make takes seconds to find that there is nothing to do.
    ! is_built "$variant" || return 0
    # shellcheck disable=SC2046 # options, to be split
    part "configure" configure_variant "$variant" --enable-tests $(warning_options) $(compiler_options "$variant")
    touch "$dir/.building"
    part "compiling libraries and tools" in_build "$variant"
    part "installing" in_build "$variant" install-new > "$dir/install.log" 2>&1 ||
        { cat "$dir/install.log" >&2; return 1; }
    case $variant in
    debug | clang | g++-13) in_build "$variant" check-programs bench-programs ;;
    esac
    mv "$dir/.building" "$dir/.built"
    exec {lock}>&-
}

# A warning is an error here as in CI, if the compiler is the one that CI has. A newer one may warn of more.
warning_options() {
    [ -z "${CI:-}" ] && [ "$(g++ -dumpversion)" != 14 ] || echo "--enable-werror"
}

# What configure needs for a variant that is for another processor, by another compiler or with more than users get.
compiler_options() {
    case $1 in
    arm64)
        echo "--build=$(uname -m)-linux-gnu --host=aarch64-linux-gnu" \
            "PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig"
        ;;
    clang) echo "CC=clang-19 CXX=clang++-19 --enable-werror" ;;
    g++-13) echo "CC=gcc-13 CXX=g++-13 --enable-werror" ;;
    asan) echo "--with-python" ;;
    esac
}

# configure_variant VARIANT OPTION...: configures out of tree, in one folder per variant. It takes the caller's `lock`
# and leaves it held, so a variant is built once at a time. A second build waits and then finds nothing to do.
configure_variant() {
    local variant=$1 flags dir
    shift
    flags=$(variant_flags "$variant")
    dir=$top/build/$variant
    case $top in
    *[!A-Za-z0-9/._+-]*)
        echo "contrib/dev: Autotools cannot build in a folder of this name, move the checkout: $top" >&2
        return 2
        ;;
    esac
    mkdir -p "$dir"
    exec {lock}> "$dir/.lock"
    flock "$lock"
    make_configure "$dir"
    if [ ! -e "$dir/Makefile" ]; then
        (cd "$dir" && "$top/configure" --quiet --disable-static "$@" --prefix="$dir/install" \
            CXXFLAGS="$flags" CFLAGS="$flags" LDFLAGS="$(link_flags "$variant")") >&2
    fi
}

# Makes ./configure if it is missing or older than its sources.
make_configure() {
    local newer lock
    exec {lock}> "$top/build/.lock"
    flock "$lock"
    newer=$(find "$top/configure.ac" "$top/config/m4" -newer "$top/configure" -name '*.[am][c4]' 2> /dev/null ||
        echo all)
    if [ -n "$newer" ]; then
        "$top/autogen.sh" > "$1/autogen.log" 2>&1 || { cat "$1/autogen.log" >&2; return 1; }
    fi
    exec {lock}>&-
}

# Several sources at once, see contrib/dev.d/unity. Where speed is measured, the libraries are compiled as users compile
# them. `|| return` is for callers with `||`, which switches errexit off.
in_build() {
    local variant=$1 dir=$top/build/$1 how=() makefiles=
    shift
    case $variant in
    bench | nixl) how=(--as-users) ;;
    demo) how=(--soon) ;;
    esac
    case $variant in
    # Each source alone, as users compile it.
    debug | clang | g++-13) ;;
    *)
        make -C "$dir" --no-print-directory -s Makefile >&2 || return
        "$top/contrib/dev.d/unity" "$dir" "$top" "${how[@]}" || return
        makefiles=$dir/unity.mk
        ;;
    esac
    MAKEFILES=$makefiles make -C "$dir" -j "$jobs" --no-print-directory -s V=0 "$@" >&2
}

# Tests, and only they, are compiled to be there soon and not to be fast. So the compiler looks less closely, and takes
# some values of std::optional for uninitialised.
in_build_tests() {
    local flags
    flags=$(variant_flags "$1")
    flags="${flags/-O2/-O1} -Wno-maybe-uninitialized"
    in_build "$1" check-programs CXXFLAGS="$flags" CFLAGS="$flags"
}

use_install() {
    local dir=$top/build/$1/install examples=$top/build/$1/examples
    export PATH=$dir/bin:$examples:$examples/halo3d:$examples/offload_alltoallv:$PATH
    export LD_LIBRARY_PATH=$dir/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export PKG_CONFIG_PATH=$dir/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
}

verb_run() {
    [ $# -gt 0 ] || { echo "usage: contrib/dev run CMD..." >&2; return 2; }
    verb_build release
    use_install release
    exec "$@"
}

# Newcomers wait for the demo. So it has a build and a set of packages of its own, without tests and other tools. It is
# not installed: libtool's ucx_layout_demo finds the libraries beside it, and softhca-run through PATH.
verb_demo() {
    local lock
    configure_variant demo --disable-tests --disable-mpi ${CI:+--enable-werror}
    in_build demo demo-programs
    exec {lock}>&-
    export PATH=$top/build/demo:$PATH
    exec "$top/examples/demo.sh" "$@"
}

verb_check() {
    local variant=release arch
    arch=$(other_arch "$@")
    [ -z "$arch" ] || variant=$arch
    [ "${1:-}" != --arch ] || shift 2
    [ "${1:-}" != --suite ] || [ -n "${UCXL_DEV_COPY:-}" ] || run_in_copy check "$@"
    verb_build "$variant"
    part "compiling tests" in_build_tests "$variant"
    [ -z "$arch" ] || in_build "$variant" bench-programs # to see that all builds
    if [ -z "$arch" ]; then
        echo "left out, and run by contrib/dev check --all:"
        left_out | sed 's/^/    /'
    fi
    exec "$top/test/run-tests" --build "$top/build/$variant" --source "$top" ${arch:+--arch "$arch"} "$@"
}

# What `check` leaves out, and why. The names of checks are verbs with their arguments.
left_out() {
    cat << 'END'
lint: style and static analysis, of all sources for half an hour
docs: needs doxygen
build debug: each source compiled alone, without optimisation
build clang: each source compiled alone by another compiler, warnings are errors
build g++-13: each source compiled alone by the oldest compiler, warnings are errors
asan: the tests again, several times as slow
tsan: the tests of threads again, several times as slow
dist: builds and tests the tarball, builds the Debian packages and tries them
check --arch arm64: another build, in an emulator
conformance: all cases; `check` runs those that take less than a minute together
conformance mpi: MPI programs of other projects, with the library and without it
conformance python: a wheel of the package, beside wheels of other projects
adversarial: 200 seeds; `check` runs five of the day, and one of windows, with half of them
models: larger state spaces, and all broken variants; `check` breaks one model of the day
schedules: a million orders of atomic operations of each protocol; `check` runs 1000 to 50000 of the day
soak 20: random processes that are killed, for so many minutes
test internal-headers: all of them; `check` compiles a quarter of the day alone
END
}

# Runs everything that checks and ends by itself within hours, one after the other, whatever fails. A verb that counts
# its tests adds their numbers; any other one is one test.
check_all() {
    local name output status counts passed=0 failed=0 begin
    output=$(mktemp)
    while IFS=: read -r name _; do
        begin=$SECONDS status=0
        # shellcheck disable=SC2086 # a verb and its arguments
        UCXL_CHECK_ALL=1 "$top/contrib/dev" $name < /dev/null 2>&1 | tee "$output" || status=1
        counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$output" | tail -n 1 || true)
        case $counts:$status in
        :0) counts="1 passed, 0 failed" ;;
        :1 | *" 0 failed:1") counts="0 passed, 1 failed" ;;
        esac
        passed=$((passed + ${counts%% *}))
        counts=${counts#*, }
        failed=$((failed + ${counts%% *}))
        echo "contrib/dev $name: $((SECONDS - begin)) s, so far $passed passed, $failed failed"
    done < <(echo "check: "; left_out)
    rm -f "$output"
    echo "left out: conformance --ucx-gtest and fuzz, which have no end within hours; other suites (--suite NAME);"
    echo "contrib/hw-check, which needs a card"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

# Prints the names of the sources, each with a zero byte.
sources_of_checkout() {
    git -C "$top" -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' name; do [ ! -e "$top/$name" ] || printf '%s\0' "$name"; done
}

# run_in_copy VERB --suite NAME ...: the tools of another suite make another configure script, so they work in a copy of
# the sources.
run_in_copy() {
    local copy=$top/build/${3:?}/source
    mkdir -p "$copy"
    sources_of_checkout > "$copy.new"
    # What is no source any more goes. The times of the others stay, so that make sees what has changed.
    if [ -e "$copy.list" ]; then
        comm -z -23 <(sort -z "$copy.list") <(sort -z "$copy.new") | (cd "$copy" && xargs -0 -r rm -f)
    fi
    mv "$copy.new" "$copy.list"
    tar -C "$top" --null -T "$copy.list" -cf - | tar -C "$copy" -xf -
    UCXL_DEV_COPY=1 exec "$copy/contrib/dev" "$@"
}

verb_conformance() {
    [ "${1:-}" != --suite ] || [ -n "${UCXL_DEV_COPY:-}" ] || run_in_copy conformance "$@"
    [ "${1:-}" != --suite ] || shift 2
    local program
    if [ "${1:-}" = mpi ]; then
        verb_build bench
        "$top/contrib/dev.d/fetch-mpi-suites" "$mpi_suites"
        exec "$top/test/conformance/mpi/run" --build "$top/build/bench" --sources "$mpi_suites" "${@:2}"
    fi
    if [ "${1:-}" = python ]; then
        mkdir -p "$top/build"
        exec "$top/test/conformance/python/run" --build "$top/build" --source "$top" --wheels "$python_wheels" "${@:2}"
    fi
    if [ "${1:-}" = nixl ]; then
        run_with_nixl "$top/test/conformance/nixl/run" "${@:2}"
    fi
    verb_build release
    if [ "${1:-}" = --ucx-gtest ]; then
        program=$("$top/contrib/dev.d/build-ucx-gtest" "$ucx_gtest")
        exec "$top/test/conformance/own-network" "$top/test/conformance/ucx_gtest" \
            --build "$top/build/release" --program "$program" "${@:2}"
    fi
    exec "$top/test/conformance/run" --build "$top/build/release" "$@"
}

# build_for_nixl ARGS...: fetches NIXL, and builds the backend for it, which is not installed: libtool's plug-in finds
# the library beside it. ARGS are those of fetch-nixl before the folder.
build_for_nixl() {
    local lock dir=$top/build/nixl
    "$top/contrib/dev.d/fetch-nixl" "$@" "$nixl"
    configure_variant nixl --disable-tests --disable-mpi --disable-heap --without-python --with-nixl="$nixl"
    in_build nixl libplugin_UCX_LAYOUT.la
    exec {lock}>&-
    export NIXL_PLUGIN_DIR=$dir/.libs NIXL_LOG_LEVEL=${NIXL_LOG_LEVEL:-FATAL}
}

# run_with_nixl SCRIPT ARGS...: by the Python that has NIXL's wheel. Does not return.
run_with_nixl() {
    build_for_nixl
    exec "$nixl/venv/bin/python" "$@"
}

verb_adversarial() {
    verb_build release
    in_build_tests release
    exec "$top/test/adversarial" --build "$top/build/release" "$@"
}

verb_schedules() {
    verb_build release
    in_build release gtest_schedules gtest_schedules_windows
    export UCXL_TEST_SCHEDULES=${1:-1000000}
    "$top/build/release/gtest_schedules"
    "$top/build/release/gtest_schedules_windows"
}

verb_soak() {
    verb_build release
    in_build release soak
    use_install release
    exec "$top/build/release/soak" "$@"
}

verb_test() {
    local of_suite=()
    if [ "${1:-}" = --suite ]; then
        [ -n "${UCXL_DEV_COPY:-}" ] || run_in_copy test "$@"
        of_suite=("${@:1:2}")
        shift 2
    fi
    verb_build release
    in_build_tests release
    exec "$top/test/run-tests" --build "$top/build/release" --source "$top" "${of_suite[@]}" --filter "${1:-}"
}

sanitized() {
    local variant=$1 suite=$2
    shift 2
    verb_build "$variant"
    in_build_tests "$variant"
    local whole=()
    if [ "${1:-}" = --whole ]; then
        whole=(--whole)
        shift
    fi
    exec "$top/test/run-tests" --build "$top/build/$variant" --source "$top" --variant "$suite" "${whole[@]}" \
        --filter "${1:-}"
}

verb_asan() { sanitized asan asan "$@"; }
verb_tsan() { sanitized tsan tsan "$@"; }

verb_bench() {
    if [ "${1:-}" = nixl ]; then
        run_with_nixl "$top/test/bench/nixl/nixl.py" "${@:2}"
    fi
    if [ "${1:-}" = nixlbench ]; then
        build_for_nixl --source
        "$top/contrib/dev.d/build-nixlbench" "$nixl"
        exec "$top/test/bench/nixl/nixlbench.py" "$nixl/nixlbench" "${@:2}"
    fi
    verb_build bench
    in_build bench bench-programs
    use_install bench
    exec "$top/test/bench/run" "$top/build/bench" "$@"
}

verb_model() { exec "$top/test/bench/alltoall_model/model.py" "$@"; }
verb_models() { exec "$top/test/models/run" "$@"; }
verb_fuzz() { exec "$top/test/fuzz/run" "$top" "${1:-60}" "${@:2}"; }
verb_fmt() {
    cd "$top" || return
    git -c safe.directory='*' ls-files -z '*.h' '*.hpp' '*.cc' '*.c' | xargs -0 contrib/dev.d/wrap-comments
    git -c safe.directory='*' ls-files -z '*.h' '*.hpp' '*.cc' '*.c' | xargs -0 clang-format-19 -i
}
verb_lint() {
    verb_build release
    exec "$top/contrib/lint" "$top" "$@"
}
verb_docs() {
    verb_build release
    exec make -C "$top/build/release" --no-print-directory api-docs
}
# --enable-tests makes a missing test library an error, so that no test is silently left out. The flags are those of the
# release build, so that a compiler cache has its objects.
verb_dist() {
    local flags
    flags=$(variant_flags release)
    verb_build release
    exec make -C "$top/build/release" -j "$jobs" --no-print-directory distcheck \
        DISTCHECK_CONFIGURE_FLAGS="--enable-tests CXXFLAGS='$flags' CFLAGS='$flags'"
}

# As a distribution would: from the tarball, and without the tests, which distcheck has run. lintian knows the rules of
# Debian, and anything that it says is an error. contrib/dev tries the packages afterwards.
verb_deb() {
    local dir=$top/build/deb lock
    configure_variant release --enable-tests
    rm -rf "$dir" "$top"/build/release/ucx-layout-*.tar.gz
    mkdir "$dir"
    in_build release dist > "$dir/dist.log" 2>&1 || { cat "$dir/dist.log" >&2; return 1; }
    exec {lock}>&-
    tar -xf "$top"/build/release/ucx-layout-*.tar.gz -C "$dir"
    cd "$dir"/ucx-layout-*/ || return
    DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-nocheck parallel=$jobs} dpkg-buildpackage -us -uc > ../build.log 2>&1 ||
        { tail -n 40 ../build.log >&2; return 1; }
    lintian --allow-root --no-cfg --display-info --pedantic --fail-on error,warning,info,pedantic ../*.changes
    echo "deb: $(find .. -maxdepth 1 -name '*.deb' ! -name '*-dbgsym_*' | wc -l) packages in $dir, and no findings"
}
verb_shell() {
    [ ! -e "$top/build/release/install" ] || use_install release
    exec bash -i
}
