"""Two processes of mpi4py send each other derived datatypes by many calls, and look at every byte of what arrives. They
also look where the MPI and the UCX of the process are from: all of them have to be of this virtual environment.
"""
import sys

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
ROUNDS = 3  # the library takes a datatype when it has moved some bytes


def blocks_of_vector(count, length, stride):
    return [(each * stride, length) for each in range(count)]


def datatypes():
    """Each with its blocks: offset and length in packed order."""
    for count, length, stride in ((3, 8, 24), (4096, 8, 32), (4096, 64, 128), (256, 4096, 8192)):
        yield MPI.BYTE.Create_hvector(count, length, stride), blocks_of_vector(count, length, stride)
    offsets = [(each * 7919) % 4096 * 64 for each in range(4096)]
    yield MPI.BYTE.Create_hindexed_block(48, offsets), [(offset, 48) for offset in offsets]
    record = MPI.Datatype.Create_struct([5, 2, 1], [0, 8, 28], [MPI.BYTE, MPI.INT, MPI.SHORT]).Create_resized(0, 32)
    fields = ((0, 5), (8, 8), (28, 2))
    yield record.Create_contiguous(6000), [(32 * each + at, size) for each in range(6000) for at, size in fields]
    yield (MPI.DOUBLE.Create_subarray([64, 96, 80], [60, 3, 70], [2, 40, 4]),
           [(8 * ((x * 96 + y) * 80 + 4), 8 * 70) for x in range(2, 62) for y in range(40, 43)])


def filled(length, salt):
    period = bytes((each * 31 + salt) & 0xff for each in range(251))  # no stride is a multiple of it
    return bytearray((period * (length // 251 + 1))[:length])


def scattered(source, blocks, length):
    """What memory of zeros is when these blocks have arrived."""
    made = bytearray(length)
    for at, size in blocks:
        made[at:at + size] = source[at:at + size]
    return made


def sendrecv(mine, theirs, datatype, other):
    WORLD.Sendrecv([mine, 1, datatype], other, recvbuf=[theirs, 1, datatype], source=other)


def isend(mine, theirs, datatype, other):
    MPI.Request.Waitall([WORLD.Irecv([theirs, 1, datatype], other), WORLD.Isend([mine, 1, datatype], other)])


def persistent(mine, theirs, datatype, other):
    both = [WORLD.Recv_init([theirs, 1, datatype], other), WORLD.Send_init([mine, 1, datatype], other)]
    MPI.Prequest.Startall(both)
    MPI.Request.Waitall(both)
    for each in both:
        each.Free()


def alltoallw(mine, theirs, datatype, other):
    counts = [int(each == other) for each in range(2)]
    WORLD.Alltoallw([mine, (counts, [0, 0]), [datatype, datatype]], [theirs, (counts, [0, 0]), [datatype, datatype]])


def bcast(mine, theirs, datatype, other):
    for root in range(2):
        WORLD.Bcast([mine if root == WORLD.rank else theirs, 1, datatype], root)


def put(mine, theirs, datatype, other):
    window = MPI.Win.Create(theirs, 1, comm=WORLD)
    window.Fence()
    window.Put([mine, 1, datatype], other, (0, 1, datatype))
    window.Fence()
    window.Free()


def get(mine, theirs, datatype, other):
    window = MPI.Win.Create(mine, 1, comm=WORLD)
    window.Fence()
    window.Get([theirs, 1, datatype], other, (0, 1, datatype))
    window.Fence()
    window.Free()


def foreign_libraries():
    with open("/proc/self/maps", encoding="ascii") as file:
        loaded = {line.split(None, 5)[5].rstrip() for line in file if len(line.split(None, 5)) == 6}
    kinds = ("/libmpi.so", "/libmpich.so", "/libucp.so", "/libucs.so", "/libuct.so")
    return sorted(path for path in loaded if any(kind in path for kind in kinds) and not path.startswith(sys.prefix))


def main():
    other, compared, wrong = 1 - WORLD.rank, 0, 0
    for datatype, blocks in datatypes():
        datatype.Commit()
        length = max(at + size for at, size in blocks)
        for call in (sendrecv, isend, persistent, alltoallw, bcast, put, get):
            for turn in range(ROUNDS):
                mine, theirs = filled(length, WORLD.rank + 5 * turn), bytearray(length)
                call(mine, theirs, datatype, other)
                compared += 1
                wrong += theirs != scattered(filled(length, other + 5 * turn), blocks, length)
        datatype.Free()
    for path in foreign_libraries():
        wrong += 1
        print(f"of another MPI: {path}")
    print(f"{compared} comparisons, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
