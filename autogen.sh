#!/bin/sh
# Makes ./configure from configure.ac; needs autoconf, automake and libtool.
set -e
cd "$(dirname "$0")"
mkdir -p config/aux config/m4
exec autoreconf --install --force --warnings=all "$@"
