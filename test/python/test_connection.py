"""Two real processes that exchange arrays over UCX: what arrives, and what happens when something goes wrong.

The other process runs the function peer_NAME of this file; test_NAME is this side.
"""
import asyncio
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
import warnings
import weakref

import numpy as np
import ucx_layout as ul

COLUMNS = np.arange(8000.0).reshape(1000, 8)
LONG = 1 << 18  # numbers: the peer reads them from the sender's array when it receives
os.environ.setdefault("UCX_RNDV_THRESH", "64k")  # also where UCX cannot let the kernel copy

kept = []  # until the interpreter ends


def sealed(magic, content):
    """As the library does it (FNV-1a), whatever the content is."""
    value = 0xcbf29ce484222325
    for each in content:
        value = (value ^ each) * 0x100000001b3 % 2**64
    return struct.pack("<4sIQ", magic, len(content), value) + content


def free_port():
    """Below the ports that the kernel gives to clients."""
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("localhost", port))
                return port
            except OSError:
                pass


def peer_column(peer):
    peer.send(COLUMNS[:, 5])


def peer_both_ways(peer):
    there = np.zeros((300, 300, 3))
    peer.recv(there[::2, ::-1, 1])
    peer.send(there[::2, ::-1, 1])


def peer_tables(peer):
    cache = np.arange(1000 * 256, dtype="u4").reshape(1000, 256)
    peer.send(cache, layout=ul.blocks(np.arange(999, 0, -7), 1024, unit=1024))


def peer_put_and_get(peer):
    for shared in (False, True):
        memory = ul.memory(24000) if shared else None
        array = memory.array((1000, 3), "f8") if shared else np.zeros((1000, 3))
        with peer.expose(array[:, 1]) as exposed:
            peer.exchange(exposed.key)
            peer.exchange()
            assert (array[:, 1] == COLUMNS[:, 2]).all() and not array[:, ::2].any()
            array[:, 1] += 1
            peer.exchange()
            peer.exchange()


def peer_asyncio(peer):
    async def work():
        arrays = [np.full((50, 4), float(tag)) for tag in range(5)]
        await asyncio.gather(*(peer.isend(array[:, 1], tag=tag) for tag, array in reversed(list(enumerate(arrays)))))

    asyncio.run(work())


def peer_wrong_sizes(peer):
    for _ in range(2):
        peer.send(np.zeros(100))
    peer.exchange()


def peer_killed(peer):
    peer.exchange()
    os.kill(os.getpid(), signal.SIGKILL)


def peer_killed_after_a_long_send(peer):
    peer.exchange()
    select.select([peer._control], [], [])
    kept.append(peer.isend(np.ones(LONG)))
    peer.progress()
    os.kill(os.getpid(), signal.SIGKILL)


def peer_quiet(peer):
    peer.exchange()


peer_refused = peer_damaged = peer_child = peer_dropped = peer_quiet
peer_sealed_but_too_short = peer_connected_with_itself = peer_quiet


def peer_threads(peer):
    threads = [threading.Thread(target=lambda tag=tag: [peer.send(COLUMNS[:, tag], tag=tag) for _ in range(20)])
               for tag in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def peer_killed_with_text_that_nobody_has_read(peer):
    peer.exchange()
    peer.exchange(b"text")


def peer_close_beside_a_peer_that_does_not_go_on(peer):
    peer.exchange()
    time.sleep(2)


def peer_error_beside_a_peer_that_does_not_receive(peer):
    peer.exchange()
    for call in (peer.exchange, lambda: peer.recv(np.zeros(LONG))):
        try:
            call()
        except ConnectionResetError:
            pass
        else:
            raise AssertionError("not reset")


def peer_error_beside_a_peer_that_receives_late(peer):
    got = np.zeros(LONG)
    request = peer.irecv(got)
    peer.exchange()
    ended = select.poll()
    ended.register(peer._control, 0)
    ended.poll()  # UCX does nothing meanwhile, so the send is found after it was given up
    peer._worker.wait(request._operation, 1.0, -1)  # as a thread may do that has not noticed the end
    try:
        request.wait()
    except ConnectionResetError:
        pass
    else:
        raise AssertionError(f"not reset, received {np.unique(got)}")


def peer_first_long_message(peer):
    ended = []
    for _ in range(2):
        request = peer.irecv(np.zeros(LONG))
        peer._worker.wait(request._operation, 1.0, -1)
        ended.append(request.done)
        peer._control.send(b"x")
        request.wait()
    assert ended[0] or not ended[1], "more was needed of the sender than by the second message"


def peer_error_beside_a_peer_that_receives(peer):
    got = np.zeros(LONG)
    peer.exchange()
    try:
        peer.recv(got)
    except ConnectionResetError:
        return  # it was more than a second too late
    assert (got == 1).all(), np.unique(got)


def peer_exit_with_a_send_that_nobody_receives(peer):
    peer.exchange()
    kept.append(peer.isend(np.ones(LONG)))
    sys.exit()


def peer_dropped_with_a_send_that_nobody_receives(peer):
    peer_error_beside_a_peer_that_does_not_receive(peer)


def peer_end_of_the_interpreter_beside_daemon_threads(peer):
    for tag in range(4):
        threading.Thread(target=peer.recv, args=(np.zeros(8),), kwargs={"tag": tag}, daemon=True).start()
    peer.exchange()
    peer.close = lambda: None  # it is still open when the interpreter ends


def peer_message_before_the_end_of_the_interpreter(peer):
    def make_progress():
        while True:
            peer.progress()

    threading.Thread(target=make_progress, daemon=True).start()
    peer.exchange()
    peer.send(np.ones(8))
    peer.close = lambda: None  # it is still open when the interpreter ends


def peer_done_by_another_thread(peer):
    for _ in range(20):
        peer.exchange()
        peer.send(np.ones(8))
    peer.send(np.ones(8), tag=1)


def peer_long_texts(peer):
    assert peer.exchange(b"b" * (1 << 24)) == b"a" * (1 << 24)


def peer_text_without_answer(peer):
    time.sleep(0.5)


def peer_arrays_that_run_python_at_their_end(peer):
    for _ in range(20):
        time.sleep(0.01)  # it is waited for then
        peer.send(np.ones(8))


def peer_children_of_threads(peer):
    with peer.expose(np.zeros(8)) as exposed:
        peer.exchange(exposed.key)
        peer.exchange()
        peer.send(np.zeros(8))
        peer.exchange()


def peer_children_while_bytes_flow(peer):
    for _ in range(1500):
        peer.send(COLUMNS)


class Connections(unittest.TestCase):
    def setUp(self):
        self.name = self._testMethodName.removeprefix("test_")
        port = free_port()
        self.process = subprocess.Popen([sys.executable, __file__, self.name, str(port)], stderr=subprocess.PIPE,
                                        text=True)
        self.peer = ul.connect("localhost", port, 30)

    def tearDown(self):
        self.peer.close()
        try:
            errors = self.process.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.fail(f"the peer does not end: {self.process.communicate()[1]}")
        if not self.name.startswith("killed"):
            self.assertEqual(self.process.returncode, 0, errors)

    def test_column(self):
        b = np.zeros(2000)
        self.assertEqual(self.peer.recv(b[::2]), 8000)
        np.testing.assert_array_equal(b[::2], COLUMNS[:, 5])
        self.assertFalse(b[1::2].any())

    def test_both_ways(self):
        a = np.random.default_rng(5).random((150, 300, 2))
        back = np.zeros_like(a)
        self.peer.send(a[:, :, 0])
        self.peer.recv(back[:, :, 1])
        np.testing.assert_array_equal(back[:, :, 1], a[:, :, 0])
        self.assertFalse(back[:, :, 0].any())

    def test_tables(self):
        cache = np.arange(1000 * 256, dtype="u4").reshape(1000, 256)
        table = np.arange(999, 0, -7)
        got = np.zeros((len(table), 300), "u4")
        self.peer.recv(got[:, 10:266])
        np.testing.assert_array_equal(got[:, 10:266], cache[table])

    def test_put_and_get(self):
        for _ in range(2):
            remote = self.peer.remote(self.peer.exchange())
            self.assertEqual(self.peer.put(COLUMNS[:, 2], remote), 8000)
            self.peer.exchange()
            self.peer.exchange()
            b = np.zeros((1000, 2))
            self.peer.get(b[:, 1], remote)
            np.testing.assert_array_equal(b[:, 1], COLUMNS[:, 2] + 1)
            with self.assertRaisesRegex(ValueError, "^array: 800 bytes, the remote memory has 8000"):
                self.peer.put(np.zeros(100), remote)
            remote.close()
            with self.assertRaisesRegex(ValueError, "^Remote: it is closed"):
                self.peer.get(b[:, 1], remote)
            self.peer.exchange()

    def test_asyncio(self):
        async def work():
            arrays = [np.zeros((50, 2)) for _ in range(5)]
            requests = [self.peer.irecv(array[:, 0], tag=tag) for tag, array in enumerate(arrays)]
            lengths = await asyncio.gather(*requests)
            return arrays, lengths

        arrays, lengths = asyncio.run(work())
        self.assertEqual(lengths, [400] * 5)
        for tag, array in enumerate(arrays):
            self.assertTrue((array[:, 0] == tag).all() and not array[:, 1].any())

    def test_wrong_sizes(self):
        with self.assertRaisesRegex(ValueError, "^array: 1600 bytes, the message has 800"):
            self.peer.recv(np.zeros((200, 2))[:, 0])
        with self.assertRaisesRegex(ValueError, "^recv: the message is longer"):
            self.peer.recv(np.zeros((10, 2))[:, 0])
        self.peer.exchange()

    def test_killed(self):
        request = self.peer.irecv(np.zeros((10, 2))[:, 0])
        self.peer.exchange()
        begin = time.monotonic()
        with self.assertRaisesRegex(ConnectionResetError, "the peer has closed"):
            request.wait()
        with self.assertRaises(ConnectionResetError):
            asyncio.run(asyncio.wait_for(self.wait_for(self.peer.irecv(np.zeros(3))), 10))
        self.assertLess(time.monotonic() - begin, 10)

    def test_killed_with_text_that_nobody_has_read(self):
        self.peer.exchange()
        time.sleep(0.2)
        self.process.kill()
        self.process.wait()
        with self.assertRaisesRegex(ConnectionResetError, "the peer has closed"):
            self.peer.recv(np.zeros(3), timeout=10)

    def test_killed_after_a_long_send(self):
        """What UCX has of it leads to memory of a process that is not there any more."""
        posted = self.peer.irecv(np.zeros(LONG))
        self.peer.exchange()
        self.peer._control.send(b"x")
        self.process.wait()
        for call in (posted.wait, lambda: asyncio.run(self.wait_for(posted)), lambda: self.peer.recv(np.zeros(LONG)),
                     lambda: self.peer.send(np.zeros(LONG)), self.peer.flush, self.peer.exchange, self.peer.progress):
            with self.assertRaisesRegex(ConnectionResetError, "the peer has closed"):
                call()

    def test_close_beside_a_peer_that_does_not_go_on(self):
        self.peer.exchange()
        self.peer.isend(np.ones(1 << 20))
        with unittest.mock.patch("ucx_layout._connection._CLOSE", 0.1):
            self.peer.close()
        self.assertTrue(self.peer.closed)

    def test_first_long_message(self):
        """UCX has told the peer all that it needs before, and does nothing here meanwhile."""
        for _ in range(2):
            request = self.peer.isend(np.ones(LONG))
            select.select([self.peer._control], [], [])
            self.peer._control.recv(1)
            request.wait()

    def test_error_beside_a_peer_that_does_not_receive(self):
        self.peer.exchange()
        data = bytearray(8 * LONG)
        with self.assertRaises(KeyError), self.peer:
            request = self.peer.isend(data)
            raise KeyError
        self.assertTrue(request.done)
        with self.assertRaisesRegex(ConnectionError, "^send: cancelled"):
            request.wait()
        with self.assertRaises(BufferError):  # the peer may still read it
            data.append(1)

    def test_error_beside_a_peer_that_receives_late(self):
        self.end_by_an_error_and_write_the_array()

    def test_error_beside_a_peer_that_receives(self):
        self.end_by_an_error_and_write_the_array()

    def end_by_an_error_and_write_the_array(self):
        self.peer.exchange()
        data = np.ones(LONG)
        with self.assertRaises(KeyError), self.peer:
            self.peer.isend(data)
            raise KeyError
        data[:] = 7

    def test_exit_with_a_send_that_nobody_receives(self):
        self.peer.exchange()
        with self.assertRaises(ConnectionResetError):
            self.peer.exchange()

    def test_dropped_with_a_send_that_nobody_receives(self):
        self.peer.exchange()
        self.peer.isend(np.ones(LONG))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # of the socket
            self.peer = unittest.mock.Mock()

    def test_end_of_the_interpreter_beside_daemon_threads(self):
        self.peer.exchange()
        with self.assertRaises(ConnectionResetError):
            self.peer.exchange()

    def test_message_before_the_end_of_the_interpreter(self):
        self.peer.exchange()
        self.process.wait(30)
        got = np.zeros(8)
        self.peer.recv(got)
        np.testing.assert_array_equal(got, 1)

    def test_done_by_another_thread(self):
        """The array is free again when the operation is seen to be done."""
        thread = threading.Thread(target=lambda: self.peer.recv(np.zeros(8), tag=1))
        thread.start()
        for _ in range(20):
            data = bytearray(64)
            request = self.peer.irecv(data)
            self.peer.exchange()
            while not request.done:
                pass
            data.append(1)
        thread.join()

    def test_long_texts(self):
        self.assertEqual(self.peer.exchange(b"a" * (1 << 24)), b"b" * (1 << 24))

    def test_text_without_answer(self):
        with self.assertRaises(TimeoutError):
            self.peer.exchange(b"text", timeout=0.1)
        with self.assertRaisesRegex(ConnectionError, "an earlier exchange"):
            self.peer.exchange()

    def test_arrays_that_run_python_at_their_end(self):
        def work():
            for _ in range(20):
                array = np.zeros(8)
                weakref.finalize(array, time.sleep, 0.001)  # gives up the GIL
                request = self.peer.irecv(array)
                del array
                request.wait()

        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            self.peer.progress()

    def test_children_of_threads(self):
        """A thread of the parent may have any lock at the fork."""
        remote = self.peer.remote(self.peer.exchange())
        thread = threading.Thread(target=lambda: self.peer.recv(np.zeros(8)))
        thread.start()
        for _ in range(10):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                signal.alarm(5)
                remote.close()
                os._exit(0)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.peer.exchange()
        thread.join()
        self.peer.exchange()

    def test_children_while_bytes_flow(self):
        """What a child does at its end, as any program, waits for no lock of a thread of its parent."""
        def receive():
            there = np.zeros((1000, 8))
            for _ in range(1500):
                self.peer.recv(there)

        thread = threading.Thread(target=receive)
        thread.start()
        while thread.is_alive():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                signal.alarm(5)
                ul._connection._leave()
                os._exit(0)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        thread.join()

    async def wait_for(self, request):
        await request

    def test_refused(self):
        fixed = np.zeros(3)
        fixed.flags.writeable = False
        for kind, message, call in (
                (ValueError, "^array: the array is read-only", lambda: self.peer.recv(fixed)),
                (ValueError, "^array: .* more than once",
                 lambda: self.peer.recv(np.zeros(1), layout=ul.strided(4, 2, 2))),
                (TypeError, "^array: 'list' is no array", lambda: self.peer.send([1])),
                (IndexError, "^array: the layout reaches", lambda: self.peer.send(fixed, layout=ul.contiguous(25))),
                (ValueError, "^key: these 3 bytes are no key", lambda: self.peer.remote(b"abc")),
                (ValueError, "^array: it has no bytes", lambda: self.peer.expose(np.zeros(0))),
                (ValueError, "^array: the array is read-only", lambda: self.peer.expose(fixed)),
                (TimeoutError, "not done after 0.05 s", lambda: self.peer.recv(np.zeros(3), timeout=0.05))):
            with self.assertRaisesRegex(kind, message):
                call()
        self.peer.exchange()
        self.peer.close()
        with self.assertRaisesRegex(ValueError, "the connection is closed"):
            self.peer.send(np.zeros(3))

    def test_child(self):
        with warnings.catch_warnings():  # some releases of UCX have a thread, of which Python warns
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                self.peer.send(np.zeros(3))
            except RuntimeError as error:
                self.peer.close()
                os._exit(7 if "before fork()" in str(error) else 8)
            os._exit(9)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
        self.peer.exchange()

    def test_damaged(self):
        """UCX would follow the numbers in it."""
        with self.peer.expose(np.zeros(8)) as exposed:
            key, address = exposed.key, self.peer._worker.address()
            with self.assertRaisesRegex(ValueError, "there is a peer already"):
                self.peer._worker.connect(address)
            for name, text, other, take in (("key", key, address, self.peer.remote),
                                            ("address", address, key, ul._core.Worker().connect)):
                damaged = [text[:at] + bytes([text[at] ^ 16]) + text[at + 1:] for at in range(len(text))]
                for wrong in (*damaged, *(text[:length] for length in range(len(text))), text + b"x", other):
                    with self.assertRaisesRegex(ValueError, f"^{name}: these {len(wrong)} bytes are no {name}"):
                        take(wrong)
        self.peer.exchange()

    def test_sealed_but_too_short(self):
        """UCX is not told the length. AddressSanitizer sees a byte that is read behind it."""
        self.assertEqual(sealed(b"lad1", self.peer._worker.address()[16:]), self.peer._worker.address())
        with self.assertRaisesRegex(ValueError, "^address: ucp_ep_create"):
            ul._core.Worker().connect(sealed(b"lad1", bytes(1)))
        self.peer.exchange()

    def test_connected_with_itself(self):
        """As the system may connect a client while nobody listens (simultaneous open)."""
        def itself(*_):
            end = socket.socket()
            end.bind(("localhost", 0))
            end.connect(end.getsockname())
            return end

        with unittest.mock.patch("socket.create_connection", itself), self.assertRaises(ConnectionRefusedError):
            ul.connect("localhost", 1, timeout=0.1)
        self.peer.exchange()

    def test_dropped(self):
        """What an operation uses is kept until it ends, whatever Python drops, and then let go."""
        data = bytearray(800)
        self.peer.irecv(memoryview(data)[::2])
        with self.assertRaises(BufferError):
            data.append(1)
        self.peer.exchange()
        self.peer.close()
        data.append(1)

    def test_threads(self):
        def work(tag, wrong):
            for _ in range(20):
                b = np.zeros((1000, 2))
                self.peer.recv(b[:, 0], tag=tag)
                wrong += [1] * int((b[:, 0] != COLUMNS[:, tag]).any())

        wrong = []
        threads = [threading.Thread(target=work, args=(tag, wrong)) for tag in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        with ul.listen(int(sys.argv[2]), timeout=30) as other:
            globals()[f"peer_{sys.argv[1]}"](other)
    else:
        unittest.main()
