"""Two processes that exchange arrays over UCX: listen() in one of them, connect() in the other one."""
import atexit
import errno
import os
import select
import socket
import struct
import time
import weakref
from collections.abc import Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional

from . import _core
from ._core import Exposed, Layout, Remote

if TYPE_CHECKING:
    from ._types import Array

_HELLO = b"ucx_layout 2\n"
_MAX_TEXT = 1 << 24  # bytes of one exchange()
_MEETING = (1 << 64) - 1  # tag of the first message; afterwards it is one as others
_LAST_LOOK = 0.2  # seconds after the peer has gone, for what it sent before
_PAUSE = 0.0005  # seconds between two looks of asyncio when nothing happens
_BEGIN = 30.0  # seconds for each step of the peer until there is a connection
_RESET = select.POLLHUP | select.POLLERR
_CLOSE = 5.0  # seconds for the peer to close, too


_connections: "weakref.WeakSet[Connection]" = weakref.WeakSet()


@atexit.register
def _leave() -> None:
    for each in list(_connections):
        each._worker.leave()


class Request:
    """An operation that has begun. Wait for it by wait(), or by `await` in asyncio.

    Its array must not be written (send, put) or read (recv, get) before it is done. The array is kept until then.
    """

    def __init__(self, connection: "Connection", operation: _core.Operation, is_receive: bool = False) -> None:
        self._connection, self._operation = connection, operation
        self._is_in_doubt = is_receive  # until it was seen to be done before a reset

    @property
    def done(self) -> bool:
        """Whether it has ended. Looking does not make it go on; progress() does."""
        return self._operation.done

    def wait(self, timeout: Optional[float] = None) -> int:
        """Waits and returns the bytes moved. Raises TimeoutError after `timeout` seconds (default: none); it then goes
        on. Raises ConnectionResetError if the peer has gone."""
        self._connection._wait(self._operation, timeout)
        return self._result()

    def __await__(self) -> Generator[Any, None, int]:
        yield from self._connection._await(self._operation).__await__()
        return self._result()

    def _result(self) -> int:
        if self._is_in_doubt:
            self._connection._check_reset()
            self._is_in_doubt = False
        return self._operation.result()


class Connection:
    """A connection to one peer. Made by listen() and connect(); a context manager that closes it.

    Messages between send() and recv() arrive in order; those of different tags independently of each other. Threads may
    use one connection. UCX works only while a call of this class runs, or an event loop waits for a Request: a process
    whose arrays the peer puts to or gets from should wait in exchange() or call progress() now and then. It belongs to
    the process that made it, not to its children.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._worker = _core.Worker(control.fileno())
        _connections.add(self)
        self._is_out_of_step = False  # an exchange() ended half-way
        control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        control.settimeout(_BEGIN)
        control.sendall(_HELLO)
        control.setblocking(False)  # a socket with a timeout would wait in send(), and UCX would not work meanwhile
        if self._read_hello() != _HELLO:
            raise ConnectionError("the other side is no ucx_layout of this version")
        self._worker.connect(self._exchange(self._worker.address(), _BEGIN))
        self._meet_peer()

    def _meet_peer(self) -> None:
        """Each side sends the other one a byte, and waits until it was received. Before that UCX has not told the peer
        all that it needs for long messages; it does so with the first one. A process in which that arrives when its
        sender has ended cannot go on: UCX ends it."""
        got = self._worker.recv(bytearray(1), None, _MEETING)
        self._wait(self._worker.send(bytes(1), None, _MEETING, synchronous=True), _BEGIN)
        self._wait(got, _BEGIN)
        got.result()

    # Operations

    def isend(self, array: "Array", *, layout: Optional[Layout] = None, tag: int = 0) -> Request:
        """Begins to send the elements of an array of any strides in C order, or what `layout` describes of it."""
        self._check_reset()
        return Request(self, self._worker.send(array, layout, tag))

    def irecv(self, array: "Array", *, layout: Optional[Layout] = None, tag: int = 0) -> Request:
        """Begins to receive into the elements of an array of any strides. The message needs as many bytes, otherwise
        it ends with ValueError."""
        self._check_reset()
        return Request(self, self._worker.recv(array, layout, tag), is_receive=True)

    def send(self, array: "Array", *, layout: Optional[Layout] = None, tag: int = 0,
             timeout: Optional[float] = None) -> int:
        """isend() and wait()."""
        return self.isend(array, layout=layout, tag=tag).wait(timeout)

    def recv(self, array: "Array", *, layout: Optional[Layout] = None, tag: int = 0,
             timeout: Optional[float] = None) -> int:
        """irecv() and wait()."""
        return self.irecv(array, layout=layout, tag=tag).wait(timeout)

    def expose(self, array: "Array", *, layout: Optional[Layout] = None) -> Exposed:
        """Lets the peer put to and get from an array. The peer needs its `key`, for remote(). Close it when the peer is
        done; until then the array is kept. Raises ValueError if it is read-only, or shows a byte twice."""
        return self._worker.expose(array, layout)

    def remote(self, key: bytes) -> Remote:
        """The array that the peer has exposed. Only keys of the peer itself may be used: a key is trusted."""
        return self._worker.remote(key)

    def iput(self, array: "Array", remote: Remote, *, layout: Optional[Layout] = None) -> Request:
        """Begins to write an array into that of the peer, of the same number of bytes. It is there after flush()."""
        self._check_reset()
        return Request(self, remote.put(array, layout))

    def iget(self, array: "Array", remote: Remote, *, layout: Optional[Layout] = None) -> Request:
        """Begins to read an array of the peer into one of the same number of bytes."""
        self._check_reset()
        return Request(self, remote.get(array, layout))

    def put(self, array: "Array", remote: Remote, *, layout: Optional[Layout] = None,
            timeout: Optional[float] = None) -> int:
        """iput(), wait() and flush(): the bytes are there when it returns."""
        length = self.iput(array, remote, layout=layout).wait(timeout)
        self.flush(timeout)
        return length

    def get(self, array: "Array", remote: Remote, *, layout: Optional[Layout] = None,
            timeout: Optional[float] = None) -> int:
        """iget() and wait()."""
        return self.iget(array, remote, layout=layout).wait(timeout)

    def flush(self, timeout: Optional[float] = None) -> None:
        """Waits until all puts are at the peer."""
        self._check_reset()
        Request(self, self._worker.flush()).wait(timeout)

    def exchange(self, text: bytes = b"", timeout: Optional[float] = None) -> bytes:
        """Gives the peer some bytes and returns those that it gives by its exchange(): keys, shapes, "done".

        Works for the peer's operations meanwhile. At most 16 MB, by TCP. After a TimeoutError the peer may have a part
        of it: only close() is possible then, and other calls that need no exchange()."""
        return self._exchange(text, timeout)

    def progress(self) -> bool:
        """Lets UCX work for a moment; whether anything happened. Raises ConnectionResetError if the peer was killed or
        has closed before its sends ended."""
        self._check_reset()
        return self._worker.progress()

    # The end

    @property
    def closed(self) -> bool:
        return not self._worker.open

    def close(self) -> None:
        """Waits up to 5 s for the peer to close, too, and ends the connection. What still runs is cancelled.

        A send that the peer has begun to receive, or may still receive, cannot be cancelled. After one more second the
        connection is dropped then: receives of the peer raise ConnectionResetError, and the arrays are kept until this
        process ends."""
        if self.closed:
            return
        try:
            self._check_reset()
            self._wait(self._worker.disconnect(), _CLOSE)
            self._control.shutdown(socket.SHUT_WR)
            until = time.monotonic() + _CLOSE
            while time.monotonic() < until and not self._is_readable():
                self._worker.wait(None, 0.1, self._control.fileno())
        except (OSError, RuntimeError, ValueError):
            pass  # the peer has gone, another thread closed it, or this is a child of the process that has it
        finally:
            self._worker.close()
            self._control.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, kind: Optional[type], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if error is not None:
            self._worker.close()
            self._control.close()
        self.close()

    # Waiting

    def _is_readable(self) -> bool:
        look = select.poll()
        look.register(self._control, select.POLLIN)
        return bool(look.poll(0))

    def _end_of_peer(self) -> int:
        """What poll() tells of it: 0 if there is none, _RESET if it was not orderly."""
        look = select.poll()
        look.register(self._control, select.POLLRDHUP)  # bytes that nobody has read do not hide it
        found = look.poll(0)
        return found[0][1] if found else 0

    def _check_reset(self) -> int:
        """Raises if the peer has not ended the connection in order. It may have been killed, and UCX ends this process
        when it reads memory of a process that is not there. Or it has closed before its sends ended (worker.cc), and
        what is received may be what it has written into their arrays since. Returns _end_of_peer(), or 0 if it is
        closed here."""
        end = 0 if self.closed else self._end_of_peer()
        if end & _RESET:
            raise ConnectionResetError("the peer has closed the connection or ended before all was received")
        return end

    def _check_peer(self, gone: Optional[float]) -> Optional[float]:
        """When the peer was first seen to have gone, given what an earlier call returned. Raises some time after, for
        what the peer sent before, and at once if its end was not orderly."""
        if self._check_reset() and gone is None:
            gone = time.monotonic()
        if gone is not None and time.monotonic() - gone > _LAST_LOOK:
            raise ConnectionResetError("the peer has closed the connection or ended")
        return gone

    def _wait(self, operation: _core.Operation, timeout: Optional[float]) -> None:
        until = None if timeout is None else time.monotonic() + timeout
        gone = None
        while not operation.done:
            left = 1.0 if until is None else until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"not done after {timeout} s")
            gone = self._check_peer(gone)
            self._worker.wait(operation, min(left, 1.0 if gone is None else _LAST_LOOK),
                              self._control.fileno() if gone is None else -1)

    async def _await(self, operation: _core.Operation) -> None:
        import asyncio  # who awaits has it; importing it takes longer than all of this package

        gone = None
        while not operation.done:
            gone = self._check_peer(gone)
            if not self._worker.progress():
                await asyncio.sleep(_PAUSE)
            else:
                await asyncio.sleep(0)

    # The control socket

    def _read_hello(self) -> bytes:
        until = time.monotonic() + _BEGIN
        found = b""
        while len(found) < len(_HELLO):
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no answer of the peer after {_BEGIN} s")
            self._worker.wait(None, min(left, 1.0), self._control.fileno())
            if self._is_readable():
                part = self._control.recv(len(_HELLO) - len(found))
                if not part:
                    raise ConnectionResetError("the peer has closed the connection or ended")
                found += part
        return found

    def _exchange(self, text: bytes, timeout: Optional[float]) -> bytes:
        """Writes and reads in turns: neither side may wait for the other one to read."""
        if len(text) > _MAX_TEXT:
            raise ValueError(f"text: {len(text)} bytes, {_MAX_TEXT} at most")
        if self._is_out_of_step:
            raise ConnectionError("an earlier exchange() did not end; close the connection")
        self._check_reset()
        self._is_out_of_step = True
        until = None if timeout is None else time.monotonic() + timeout
        left_out = memoryview(struct.pack("!I", len(text)) + text)
        found, wanted = bytearray(), 4
        while left_out or len(found) < wanted:
            left = 1.0 if until is None else until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no answer of the peer after {timeout} s")
            sent = self._send_some(left_out)
            left_out = left_out[sent:]
            if len(found) < wanted and self._is_readable():
                part = self._control.recv(wanted - len(found))
                if not part:
                    raise ConnectionResetError("the peer has closed the connection or ended")
                found += part
                if wanted == 4 == len(found):
                    wanted += struct.unpack("!I", found)[0]
                    if wanted - 4 > _MAX_TEXT:
                        raise ConnectionError(f"the peer announces {wanted - 4} bytes, {_MAX_TEXT} at most")
            elif sent == 0:
                self._worker.wait(None, min(left, _PAUSE if left_out else 1.0), self._control.fileno())
        self._is_out_of_step = False
        return bytes(found[4:])

    def _send_some(self, text: memoryview) -> int:
        if not text:
            return 0
        try:
            return self._control.send(text)
        except BlockingIOError:
            return 0


def listen(port: int, host: str = "localhost", timeout: Optional[float] = None) -> Connection:
    """Waits for one process that calls connect(), and returns the connection to it.

    The port is of TCP and carries addresses and exchange() only; arrays go by UCX. `host` names the address to listen
    on, "" all of them: whoever reaches the port is served, so choose it as for any service without a password. Raises
    TimeoutError after `timeout` seconds (default: none)."""
    with socket.create_server((host, port)) as server:
        server.settimeout(timeout)
        control, _ = server.accept()
    return Connection(control)


def connect(host: str, port: int, timeout: float = 30.0) -> Connection:
    """Connects to the process that calls listen(), and tries for `timeout` seconds until it does."""
    until = time.monotonic() + timeout
    while True:
        try:
            control = socket.create_connection((host, port), max(0.1, until - time.monotonic()))
            # A client is given a port by the system. While nobody listens, that may be the one it connects to: it is
            # connected with itself then (RFC 9293, simultaneous open).
            if control.getsockname() == control.getpeername():
                control.close()
                raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
            return Connection(control)
        except ConnectionRefusedError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.02)
