#!/bin/sh
# The main job: real application layouts between two processes, over shared memory, over TCP and by hardware keys. Runs
# the installed ucx_layout_demo (contrib/dev demo builds it and puts it first in PATH); arguments go to it, see --help.
set -eu

command -v ucx_layout_demo > /dev/null || {
    echo "demo.sh: ucx_layout_demo is not in PATH: run 'contrib/dev demo', or 'make install' and add its bin folder" >&2
    exit 1
}
exec ucx_layout_demo "$@"
