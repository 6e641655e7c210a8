"""Runs commands that may never end, because they use a device that may fail."""
import subprocess

TIME_TO_VANISH_S = 10  # for a process that was killed: the kernel may keep one that waits for the device


def end(process):
    """Kills it. Returns what else it has printed, as communicate(), if it vanishes."""
    process.kill()
    try:
        return process.communicate(timeout=TIME_TO_VANISH_S)
    except subprocess.TimeoutExpired:
        return "", ""


def run(command, seconds, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=None):
    """As subprocess.run(). TimeoutExpired comes even if the command does not vanish when it is killed."""
    # pylint: disable-next=consider-using-with # which would wait
    process = subprocess.Popen(command, env=env, stdout=stdout, stderr=stderr, text=True, errors="replace")
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException:
        end(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)
