/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the packets of RDMA in captures of `busbar exec --capture` by what they do. */
#ifndef BENCH_MPI_PACKETS_H
#define BENCH_MPI_PACKETS_H

#include <stddef.h>
#include <stdint.h>

struct mpi_packets {
	uint64_t sends, writes, read_requests, read_responses, acks, others;
	uint64_t bytes;    /* on the wire, from the Ethernet header on */
	uint64_t dropped;  /* that the capture lacks */
};

/* Adds the packets that were sent from `from_ns` to `to_ns` (of CLOCK_REALTIME) to *out. 0, or
 * -EBADMSG: it is no such file; what stands before the fault was added. */
int mpi_packets_parse(const void *file, size_t size, uint64_t from_ns, uint64_t to_ns,
		      struct mpi_packets *out);
/* All files "packets-*.pcapng" of a folder, which are removed. 0 or a negative errno, logged;
 * -ENOENT: there is none. */
int mpi_packets_read(const char *dir, uint64_t from_ns, uint64_t to_ns,
		     struct mpi_packets *out);

#endif
