# The Python package needs Python >= 3.10 with headers and nanobind >= 2.5, of Debian or of PyPI. With Python >= 3.12
# its module has the stable ABI: it works with that Python and all later ones. A debug build of Python, which counts
# references, gets a module of its own: it ends at a check where nanobind makes a type for the stable ABI.
AC_DEFUN([UCXL_CHECK_PYTHON], [
    AC_ARG_WITH([python],
                [AS_HELP_STRING([--with-python@<:@=PYTHON@:>@],
                                [build the Python package ucx_layout for this Python (default: for python3, if it has
                                 headers and nanobind)])],
                [], [with_python=auto])
    AC_ARG_VAR([PYTHON], [the Python for which the package ucx_layout is built])
    AC_ARG_VAR([PYTHON_DIR], [where the package is installed (default: PREFIX/lib/pythonX.Y/site-packages)])
    have_python=
    PYTHON_CPPFLAGS=
    AS_CASE([$with_python,$cross_compiling],
            [no,*], [have_python="no (--without-python)"],
            [*,yes], [have_python="no (cross-compiling)"],
            [auto,* | yes,*], [AS_IF([test -z "$PYTHON"], [PYTHON=python3])],
            [PYTHON=$with_python])
    AS_CASE([$have_python,$with_python,$CXXFLAGS],
            [,auto,*-fsanitize=*], [have_python="no (Python is not built with the sanitizer; --with-python builds it)"])
    AS_IF([test -z "$have_python"], [UCXL_FIND_PYTHON])
    AS_IF([test "$with_python" != no && test "$with_python" != auto && test "$have_python" != yes],
          [AC_MSG_ERROR([the Python package cannot be built: $have_python])])
    AS_IF([test "$have_python" = yes], [have_python="$PYTHON ($python_version)"; build_python=yes], [build_python=no])
    AM_CONDITIONAL([BUILD_PYTHON], [test "$build_python" = yes])
])

AC_DEFUN([UCXL_FIND_PYTHON], [
    AC_MSG_CHECKING([for nanobind of $PYTHON])
    cat > conftest.py << 'END'
import os, sys, sysconfig
sys.dont_write_bytecode = True
version, places = sys.version_info, ()
try:
    import nanobind
    include = nanobind.include_dir()
    places = (os.path.dirname(include), os.path.dirname(nanobind.source_dir()))
except ImportError:
    pass
places += ("/usr/share/nanobind", "/usr/local/share/nanobind")
found = next((place for place in places if os.path.exists(os.path.join(place, "src", "nb_func.cpp"))), "")
debug = sysconfig.get_config_var("Py_DEBUG")
stable = version >= (3, 12) and not sysconfig.get_config_var("Py_GIL_DISABLED") and not debug
source, others = os.path.join(found, "src"), ("nb_combined.cpp", "nb_backend.cpp")
names = sorted(os.listdir(source)) if found else ()
names = (name.removesuffix(".cpp") for name in names if name.endswith(".cpp") and name not in others)
print(f"python_version={version.major}.{version.minor}")
print(f"python_old={'yes' if version < (3, 10) else 'no'}")
print(f"python_include={sysconfig.get_path('include')}")
print(f"NANOBIND_DIR={found}")
print(f"PYTHON_SUFFIX={'.abi3.so' if stable else sysconfig.get_config_var('EXT_SUFFIX')}")
# Debian's headers of the debug build are links to those of the other one, which g++ follows for system headers.
print(f"PYTHON_API={'-DPy_LIMITED_API=0x030C0000' if stable else '-DPy_DEBUG' if debug else ''}")
print(f"NANOBIND_NAMES='{' '.join(names)}'")
END
    python_version= python_old= python_include= NANOBIND_DIR= NANOBIND_NAMES= PYTHON_SUFFIX= PYTHON_API=
    eval "`$PYTHON conftest.py 2> /dev/null`"
    rm -f conftest.py
    AC_MSG_RESULT([${NANOBIND_DIR:-no}])
    AS_IF([test -z "$python_version"], [have_python="no ($PYTHON does not run)"],
          [test "$python_old" = yes], [have_python="no ($PYTHON is $python_version, 3.10 is needed)"],
          [test ! -f "$python_include/Python.h"], [have_python="no (missing: libpython3-dev)"],
          [test -z "$NANOBIND_DIR"], [have_python="no (missing: nanobind-dev, or nanobind of PyPI)"],
          [have_python=yes])
    # Empty where no package is built: test/checks/internal-headers looks at it.
    AS_IF([test "$have_python" = yes],
          [PYTHON_CPPFLAGS="$PYTHON_API -isystem $python_include -isystem $NANOBIND_DIR/include"
           AS_IF([test -d "$NANOBIND_DIR/ext/robin_map/include"],
                 [PYTHON_CPPFLAGS="$PYTHON_CPPFLAGS -isystem $NANOBIND_DIR/ext/robin_map/include"])])
    AS_IF([test -z "$PYTHON_DIR"], [PYTHON_DIR='${prefix}'/lib/python$python_version/site-packages])
    AC_SUBST([NANOBIND_DIR])
    AC_SUBST([NANOBIND_NAMES])
    AC_SUBST([PYTHON_CPPFLAGS])
    AC_SUBST([PYTHON_SUFFIX])
])
