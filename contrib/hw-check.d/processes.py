"""Parts of the test program that run as processes of their own: one whose device is made to fail, and two that share a
key, on a host and on the DPU of its card."""
import os
import socket
import subprocess
import tempfile
import time

import commands
from claims import About, DIFFERS, Evidence, OK, SKIPPED
from measurements import TIMES_OF_ALIASES
from messages import complaint, last_line, syndromes
from programs import KEY_TESTS
from transfers import FIRST_PATIENCE, installed, PATIENCE

READY, MISSING = b"ready\n", b"missing\n"
ANSWERS = {"ok": OK, "differs": DIFFERS, "skipped": SKIPPED}
STEPS = {44: "alias of a key that is bound anew", 45: "alias of a key that is invalidated",
         12: "alias of a key that is destroyed", 14: "keys over an alias"}
SHARED = "key of the host, used by the DPU"
FAILURE = "device that fails"


def text_of(file):
    """What a process has written so far. It writes where the file is open for both, so nothing may move there."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


class Processes:
    def __init__(self, options, report):
        self._options = options
        self._report = report
        self._program = os.path.join(options.build, KEY_TESTS)
        self._env = dict(installed(options), UCXL_TEST_DEVICE=options.device)

    @property
    def _is_built(self):
        return os.access(self._program, os.X_OK)

    def _add(self, name, claims, result, note, output=""):
        self._report.add(Evidence("run", name, About(claims), result, note, {}, syndromes(output)))

    def fail_device(self, command):
        """Starts a process that uses the device, makes the device fail, and hears what the process saw."""
        if not self._is_built:
            return self._add(FAILURE, "26", SKIPPED, f"{KEY_TESTS} is not built")
        env = dict(self._env, UCXL_CHILD="dead_device", UCXL_DEVICE_FAILS="outside")
        with tempfile.TemporaryFile() as file:
            # pylint: disable-next=consider-using-with # which would wait
            process = subprocess.Popen([self._program], env=env, stdout=file, stderr=subprocess.STDOUT)
            try:
                return self._fail_device_of(process, file, command)
            finally:
                if process.poll() is None:
                    commands.end(process)

    def _fail_device_of(self, process, file, command):
        deadline = time.monotonic() + 2 * PATIENCE
        while "ready" not in text_of(file).splitlines():
            if process.poll() is not None:
                return self._add(FAILURE, "26", SKIPPED, f"no keys on this device: {last_line(text_of(file))}")
            if time.monotonic() > deadline:
                return self._add(FAILURE, "26", DIFFERS, "the process did not begin", text_of(file))
            time.sleep(0.1)
        try:
            ended = commands.run(["sh", "-c", command], 4 * PATIENCE)
        except subprocess.TimeoutExpired:
            return self._add(FAILURE, "26", DIFFERS, "the command did not end", text_of(file))
        if ended.returncode != 0:
            return self._add(FAILURE, "26", SKIPPED, f"the command failed: {last_line(ended.stderr or ended.stdout)}")
        try:
            process.wait(2 * PATIENCE)
        except subprocess.TimeoutExpired:
            return self._add(FAILURE, "26", DIFFERS, "a call did not end", text_of(file))
        right, output = process.returncode == 0, text_of(file)
        return self._add(FAILURE, "26", OK if right else DIFFERS, "" if right else complaint(output), output)

    def _start(self, part, peer):
        return subprocess.Popen([self._program], env=dict(self._env, UCXL_CHILD=part, UCXL_CHANNEL=str(peer.fileno())),
                                pass_fds=(peer.fileno(),), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _agree(self, peer):
        """Whether both sides have the program."""
        peer.sendall(READY if self._is_built else MISSING)
        answer = b""
        while not answer.endswith(b"\n"):
            if not (more := peer.recv(1)):
                return False
            answer += more
        return answer == READY and self._is_built

    def _run(self, part, peer):
        process = self._start(part, peer)
        try:
            out, err = process.communicate(timeout=2 * PATIENCE)
        except subprocess.TimeoutExpired:
            out, err = commands.end(process)
            err += "did not end"
        return process.returncode, out, err

    def own_key(self, port):
        """On the host: waits for the DPU and does what it asks for."""
        with socket.create_server(("", port)) as listener:
            listener.settimeout(FIRST_PATIENCE)
            try:
                peer = listener.accept()[0]
            except TimeoutError:
                return self._add(SHARED, "", DIFFERS, "the DPU did not come")
        with peer:
            peer.settimeout(PATIENCE)
            if not self._agree(peer):
                return self._add(SHARED, "", SKIPPED, f"{KEY_TESTS} is not built on both sides")
            peer.settimeout(None)
            status, out, err = self._run("key_owner", peer)
        return self._add(SHARED, "", OK if status == 0 else DIFFERS, complaint(err) if status else "", out + err)

    def use_key(self, host, port):
        """On the DPU: a verdict for each step."""
        deadline = time.monotonic() + 4 * PATIENCE
        while True:
            try:
                peer = socket.create_connection((host, port), timeout=PATIENCE)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    return self._add(SHARED, "12 14 44 45", DIFFERS, str(error))
                time.sleep(0.2)
        with peer:
            if not self._agree(peer):
                return self._add(SHARED, "12 14 45 47", SKIPPED, f"{KEY_TESTS} is not built on both sides")
            peer.settimeout(None)
            status, out, err = self._run("key_user", peer)
        if status != 0:
            return self._add(SHARED, "12 14 44 45", DIFFERS, complaint(err), out + err)
        for line in out.splitlines():
            claim, answer, note = line.split(" ", 2)
            if answer == "times":
                figures = dict(each.split("=") for each in note.split())
                self._report.add(Evidence("run", TIMES_OF_ALIASES, About(f"~{claim}"), OK,
                                          ", ".join(f"{name[:-3]} {float(us):.1f} us" for name, us in figures.items()),
                                          figures))
            else:
                self._add(STEPS[int(claim)], claim, ANSWERS[answer], note)
        return None
