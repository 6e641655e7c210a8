"""Agents of NIXL in processes of their own, driven by NIXL's Python API, for the conformance suite and the benchmark.

Process("name", "UCX_LAYOUT") starts one; whatever method of Agent is called of it runs there. A method that fails there
raises Failed here with the name of the exception. A process that ends by itself is Gone.
"""
import mmap
import multiprocessing
import os
import signal
import sys
import time

import numpy as np

LIMIT_S = 60  # for one call


class Failed(Exception):
    """The name and the text of an exception in the other process."""


class Gone(Exception):
    """The other process ended: its exit status, negative for a signal."""


def new_memory(length, kind):
    """An array of bytes: private memory, or a mapping of a file in memory."""
    if kind != "mapped":
        return np.zeros(length, np.uint8)
    fd = os.memfd_create("memory")
    os.ftruncate(fd, length)
    # The descriptor stays open: the library finds the file by it.
    return np.frombuffer(mmap.mmap(fd, length), np.uint8)


def fill(array, seed):
    array[:] = np.random.default_rng(seed).integers(0, 256, array.nbytes, np.uint8)


class Agent:
    """What runs in its process. Lists of blocks are arrays with a row for each: number of the array, offset, length."""

    def __init__(self, name, backend, options, progress_thread):
        from nixl_cu12 import nixl_agent, nixl_agent_config

        self.agent = nixl_agent(name, nixl_agent_config(enable_prog_thread=progress_thread, backends=[]))
        for each in backend.split("+"):
            self.agent.create_backend(each, options if each == "UCX_LAYOUT" else {})
        self.backends = [backend.split("+")[-1]]
        self.arrays, self.registrations, self.transfers, self.notices = [], [], [], {}
        self.seen = None

    def add_memory(self, length, kind, seed=None):
        array = new_memory(length, kind)
        if seed is not None:
            fill(array, seed)
        self.arrays.append(array)
        self.registrations.append(
            self.agent.register_memory([(array.ctypes.data, length, 0, "")], "DRAM", self.backends))
        return array.ctypes.data

    def remove_memory(self, number):
        self.agent.deregister_memory(self.registrations[number])

    def addresses(self):
        return [array.ctypes.data for array in self.arrays]

    def fill(self, number, seed):
        fill(self.arrays[number], seed)

    def contents(self):
        return [array.tobytes() for array in self.arrays]

    def metadata(self):
        return self.agent.get_agent_metadata()

    def connect(self, metadata):
        self.peer = self.agent.add_remote_agent(metadata)
        return self.peer

    def end_in_a_child(self):
        """The status of a child that releases the agent which it got by fork."""
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            self.transfers.clear()
            del self.agent
            os._exit(0)
        return os.waitpid(child, 0)[1]

    def disconnect(self, name):
        self.agent.remove_remote_agent(name)

    def descriptors(self, blocks, addresses):
        rows = np.zeros((len(blocks), 3), np.uint64)
        rows[:, 0] = np.asarray(addresses, np.uint64)[blocks[:, 0]] + blocks[:, 1].astype(np.uint64)
        rows[:, 1] = blocks[:, 2]
        return self.agent.get_xfer_descs(rows, "DRAM")

    def prepare(self, operation, local, remote, addresses, peer, notice=b""):
        """The number of a transfer."""
        handle = self.agent.initialize_xfer(
            operation, self.descriptors(local, self.addresses()), self.descriptors(remote, addresses), peer, notice,
            self.backends)
        self.transfers.append(handle)
        return len(self.transfers) - 1

    def prepare_by_numbers(self, operation, local, remote, addresses, peer, chosen, notice=b""):
        """By prepared lists, of which a transfer takes some blocks."""
        sides = (self.agent.prep_xfer_dlist("NIXL_INIT_AGENT", self.descriptors(local, self.addresses()), "DRAM",
                                            self.backends),
                 self.agent.prep_xfer_dlist(peer, self.descriptors(remote, addresses), "DRAM", self.backends))
        handle = self.agent.make_prepped_xfer(operation, sides[0], chosen, sides[1], chosen, notice, self.backends)
        self.transfers.append(handle)
        return len(self.transfers) - 1

    def prepare_timed(self, *arguments):
        """The number of a transfer, and the seconds that it took."""
        operation, local, remote, addresses, peer = arguments
        sides = self.descriptors(local, self.addresses()), self.descriptors(remote, addresses)
        begin = time.perf_counter()
        handle = self.agent.initialize_xfer(operation, *sides, peer, b"", self.backends)
        taken = time.perf_counter() - begin
        self.transfers.append(handle)
        return len(self.transfers) - 1, taken

    def touch(self, number):
        """Changes a byte of each cache line."""
        self.arrays[number][::64] += 1

    def cpu_seconds(self):
        return time.process_time()

    def measure(self, number):
        """Seconds of one transfer: of the call that posts it, until it is done, and what CPUs of this process took."""
        cpu_before = time.process_time()
        thread_before, begin = time.thread_time(), time.perf_counter()
        state = self.post(number)
        posted, thread_after = time.perf_counter(), time.thread_time()
        while state == "PROC":
            state = self.state(number)
        end = time.perf_counter()
        if state != "DONE":
            raise RuntimeError(f"the transfer ended with {state}")
        return {"post": posted - begin, "post_cpu": thread_after - thread_before, "whole": end - begin,
                "cpu": time.process_time() - cpu_before}

    def post(self, number, notice=b""):
        return self.agent.transfer(self.transfers[number], notice)

    def state(self, number):
        return self.agent.check_xfer_state(self.transfers[number])

    def wait(self, number, limit=30):
        end = time.monotonic() + limit
        while (state := self.state(number)) == "PROC":
            if time.monotonic() > end:
                return "still running"
        return state

    def move(self, *arguments):
        """The state in which a transfer ended that was prepared so."""
        number = self.prepare(*arguments)
        state = self.post(number)
        state = self.wait(number) if state == "PROC" else state
        self.release(number)
        return state

    def release(self, number):
        self.agent.release_xfer_handle(self.transfers[number])

    def move_in_threads(self, transfers, times):
        """The states of transfers that as many threads post again and again."""
        import threading

        states = [set() for _ in transfers]

        def run(place):
            for _ in range(times):
                state = self.post(transfers[place])
                states[place].add(self.wait(transfers[place]) if state == "PROC" else state)

        threads = [threading.Thread(target=run, args=(place,)) for place in range(len(transfers))]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return sorted(set().union(*states))

    def notify(self, peer, text):
        self.agent.send_notif(peer, text)

    def await_notices(self, count, limit=30):
        """All notices as (agent, text), in their order for each agent; and at the last one what memory had then."""
        end = time.monotonic() + limit
        found = []
        while len(found) < count and time.monotonic() < end:
            for agent, texts in self.agent.get_new_notifs().items():
                found += [(agent, text) for text in texts]
        self.seen = self.contents() if found else None
        return found

    def seen_at_notice(self):
        return self.seen

    def poll(self, seconds):
        """Makes progress without a thread for it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.agent.update_notifs()


def words_of(failure):
    return f"{type(failure).__name__}: {failure}"[:300]


def serve(pipe, arguments):
    try:
        agent = Agent(*arguments)
    except Exception as failure:  # whatever it is, the other process has to know
        pipe.send((False, words_of(failure)))
        return
    pipe.send((True, None))
    while True:
        try:
            name, values = pipe.recv()
        except EOFError:
            return
        if name == "end":
            del agent
            pipe.send((True, None))
            return
        try:
            pipe.send((True, getattr(agent, name)(*values)))
        except Exception as failure:
            pipe.send((False, words_of(failure)))


class Process:
    """An agent in its process."""

    def __init__(self, name, backend="UCX_LAYOUT", options=None, progress_thread=True, environment=None):
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(
            target=serve, args=(there, (name, backend, options or {}, progress_thread)), daemon=True)
        own = dict(os.environ)
        for key, value in (environment or {}).items():  # the loader of the new process reads some
            os.environ.pop(key, None) if value is None else os.environ.__setitem__(key, value)
        try:
            self._process.start()
        finally:
            os.environ.clear()
            os.environ.update(own)
        there.close()
        self._answer("start")

    def _answer(self, what):
        if not self._pipe.poll(LIMIT_S):
            raise Failed(f"{what}: no answer within {LIMIT_S} s")
        try:
            is_good, value = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join(5)
            raise Gone(f"{self.name}: {what}: ended with {self._process.exitcode}") from None
        if not is_good:
            raise Failed(f"{what}: {value}")
        return value

    def begin(self, method, *arguments):
        self._pipe.send((method, arguments))

    def end_of(self, method):
        return self._answer(method)

    def __getattr__(self, method):
        def call(*arguments):
            self.begin(method, *arguments)
            return self.end_of(method)

        return call

    def signal(self, number):
        os.kill(self._process.pid, number)

    def kill(self):
        if self._process.is_alive():
            self.signal(signal.SIGKILL)
            self._process.join()

    def close(self):
        """Ends the agent; raises Gone if it did not end by itself with status 0."""
        try:
            self.begin("end")
            self._answer("end")
            self._process.join(20)
            if self._process.exitcode != 0:
                raise Gone(f"{self.name}: ended with {self._process.exitcode}")
        finally:
            self.kill()


def connect(one, two):
    one.connect(two.metadata())
    two.connect(one.metadata())


if __name__ == "__main__":
    sys.exit("this is a module of test/conformance/nixl/run")
