# SPDX-License-Identifier: BSD-2-Clause
"""Ring and all-to-all among all processes, data checked.

Usage: mpi_exchange.py openmpi|mpich [THREADS]. With THREADS each process has as many,
and all of them go round the ring at once (MPI_THREAD_MULTIPLE). By the library's own functions, so that
neither a compiler nor a development package is needed.
"""
import ctypes
import sys
import threading

THREAD_MULTIPLE = 3
ROUNDS = 20
SIZES = [1, 64, 5000, 200000, 3000000]


class OpenMpi:
    """Constants of Open MPI are addresses of objects."""

    library = "libmpi.so.40"

    def __init__(self, lib):
        self.world = self.address(lib, "ompi_mpi_comm_world")
        self.byte = self.address(lib, "ompi_mpi_byte")
        self.no_status = None

    @staticmethod
    def address(lib, name):
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(lib, name)))


class Mpich:
    """Those of MPICH are numbers, the same ones in all libraries of its ABI."""

    library = "libmpich.so.12"

    def __init__(self, lib):
        self.world = ctypes.c_int(0x44000000)
        self.byte = ctypes.c_int(0x4C00010D)
        self.no_status = ctypes.c_void_p(1)


def check(ret):
    if ret:
        sys.exit(f"an MPI call returned {ret}")


def pattern(rank, size):
    return bytes((rank * 7 + i * 13) & 255 for i in range(251)) * (size // 251 + 1)


def ring(lib, kind, rank, count):
    before, after = (rank - 1) % count, (rank + 1) % count
    for tag, size in enumerate(SIZES):
        out = ctypes.create_string_buffer(pattern(rank, size), size + 251)
        got = ctypes.create_string_buffer(size)
        for _ in range(3):
            check(lib.MPI_Sendrecv(out, size, kind.byte, after, tag, got, size,
                                   kind.byte, before, tag, kind.world,
                                   kind.no_status))
            if got.raw != pattern(before, size)[:size]:
                sys.exit(f"rank {rank}: {size} bytes arrived changed")


def all_to_all(lib, kind, rank, count):
    for size in SIZES[:4]:
        parts = [pattern(rank * count + to, size)[:size] for to in range(count)]
        out = ctypes.create_string_buffer(b"".join(parts), size * count)
        got = ctypes.create_string_buffer(size * count)
        check(lib.MPI_Alltoall(out, size, kind.byte, got, size, kind.byte,
                               kind.world))
        for by in range(count):
            if got.raw[by * size:(by + 1) * size] != \
                    pattern(by * count + rank, size)[:size]:
                sys.exit(f"rank {rank}: {size} bytes of rank {by} arrived changed")


def thread_ring(lib, kind, rank, count, thread):
    before, after = (rank - 1) % count, (rank + 1) % count
    size = 1000
    got = ctypes.create_string_buffer(size)
    for turn in range(ROUNDS):
        out = ctypes.create_string_buffer(pattern(rank + thread * 16 + turn, size)[:size])
        check(lib.MPI_Sendrecv(out, size, kind.byte, after, thread, got, size,
                               kind.byte, before, thread, kind.world,
                               kind.no_status))
        if got.raw != pattern(before + thread * 16 + turn, size)[:size]:
            sys.exit(f"rank {rank}, thread {thread}: bytes arrived changed")
    return True


def threads_ring(lib, kind, rank, count, threads):
    good = [False] * threads

    def run(thread):
        good[thread] = thread_ring(lib, kind, rank, count, thread)

    running = [threading.Thread(target=run, args=(t,)) for t in range(threads)]
    for t in running:
        t.start()
    for t in running:
        t.join()
    if not all(good):
        sys.exit(f"rank {rank}: a thread failed")


def init(lib, threads):
    provided = ctypes.c_int(THREAD_MULTIPLE)
    if threads:
        check(lib.MPI_Init_thread(None, None, THREAD_MULTIPLE,
                                  ctypes.byref(provided)))
    else:
        check(lib.MPI_Init(None, None))
    if provided.value != THREAD_MULTIPLE:
        sys.exit("MPI_THREAD_MULTIPLE is not provided")


def main():
    which = {"openmpi": OpenMpi, "mpich": Mpich}[sys.argv[1]]
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    lib = ctypes.CDLL(which.library, mode=ctypes.RTLD_GLOBAL)
    rank, count = ctypes.c_int(), ctypes.c_int()
    init(lib, threads)
    kind = which(lib)
    check(lib.MPI_Comm_rank(kind.world, ctypes.byref(rank)))
    check(lib.MPI_Comm_size(kind.world, ctypes.byref(count)))
    ring(lib, kind, rank.value, count.value)
    all_to_all(lib, kind, rank.value, count.value)
    threads_ring(lib, kind, rank.value, count.value, threads)
    check(lib.MPI_Finalize())
    if rank.value == 0:
        print(f"{count.value} processes exchanged their data")


main()
