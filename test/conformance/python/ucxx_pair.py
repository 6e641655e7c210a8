"""Two processes that talk by ucxx, whose buffers are windows of ucx_layout: arrays with strides go as they lie.

usage: ucxx_pair.py            (prints what was right, ends with "ucxx: N transfers, N right")
"""
import asyncio
import multiprocessing
import os
import sys

# Before ucxx makes its context, so that it has windows.
import ucx_layout

import numpy

import ucxx

SIZES = (1000, 100_000, 1_000_000)  # rows
ROUNDS = 3


def sent(rows, turn):
    """What the sender's array holds in this turn. Its columns differ, and so do turns."""
    return (numpy.arange(rows * 8, dtype=numpy.float64) + turn * 0.5).reshape(rows, 8)


def views(array):
    """The same number of elements on both sides, by different strides."""
    return {"column": array[:, 5], "reversed": array[::-1, 2], "two columns": array[:, 3:5]}


async def serve(ports):
    done = asyncio.Event()

    async def talk(endpoint):
        for rows in SIZES:
            array = numpy.zeros((rows, 8))
            for turn in range(ROUNDS):
                for name in views(array):
                    array[:] = sent(rows, turn)
                    with ucx_layout.window(views(array)[name]) as window:
                        await endpoint.send(window)
                    # The peer has looked at every byte.
                    await endpoint.recv(numpy.empty(1, dtype="u1"))
        await endpoint.close()
        done.set()

    listener = ucxx.create_listener(talk)
    ports.put(listener.port)
    await done.wait()
    listener.close()


async def ask(ports):
    endpoint = await ucxx.create_endpoint("127.0.0.1", ports.get(timeout=60))
    transfers = right = 0
    for rows in SIZES:
        for turn in range(ROUNDS):
            for name, view in views(sent(rows, turn)).items():
                around = numpy.full(2 * view.size + 1, -1.0)
                with ucx_layout.window(around[1::2]) as window:
                    await endpoint.recv(window)
                transfers += 1
                right += bool((around[1::2] == view.reshape(-1)).all() and (around[::2] == -1).all())
                await endpoint.send(numpy.zeros(1, dtype="u1"))
    await endpoint.close()
    return transfers, right


def server(ports):
    ucx_layout.attach()
    asyncio.run(serve(ports))


def main():
    os.environ.setdefault("UCX_LOG_LEVEL", "warn")
    context = multiprocessing.get_context("spawn")
    ports = context.Queue()
    other = context.Process(target=server, args=(ports,), daemon=True)  # ends with this one
    other.start()
    ucx_layout.attach()
    transfers, right = asyncio.run(asyncio.wait_for(ask(ports), 120))
    other.join(30)
    print(f"ucxx: {transfers} transfers, {right} right")
    sys.exit(transfers != right or other.exitcode != 0)


if __name__ == "__main__":
    main()
