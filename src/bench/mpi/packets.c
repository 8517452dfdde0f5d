/* SPDX-License-Identifier: BSD-2-Clause */
/* See packets.h. */
#define LOG_ROOM "bench/mpi"
#include "bench/mpi/packets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/log.h"
#include "wire/capture/link.h"
#include "wire/capture/reader.h"
#include "wire/ib/header.h"

enum { OUTBOUND = 2, SERVICE = 0xe0, OPERATION = 0x1f /* of an opcode */ };

/* By what the packet does. */
static void count(uint8_t opcode, struct mpi_packets *out)
{
	int operation = opcode & OPERATION;

	if ((opcode & SERVICE) == IB_SERVICE_CNP)
		out->others++;
	else if (operation <= IB_SEND_ONLY_IMM || operation == IB_SEND_LAST_INVALIDATE ||
		 operation == IB_SEND_ONLY_INVALIDATE)
		out->sends++;
	else if (operation <= IB_WRITE_ONLY_IMM)
		out->writes++;
	else if (operation == IB_READ_REQUEST)
		out->read_requests++;
	else if (operation <= IB_READ_RESPONSE_ONLY)
		out->read_responses++;
	else if (operation == IB_ACKNOWLEDGE)
		out->acks++;
	else
		out->others++;
}

int mpi_packets_parse(const void *file, size_t size, uint64_t from_ns, uint64_t to_ns,
		      struct mpi_packets *out)
{
	struct capture_rdma_packet rdma;
	enum capture_status status;
	struct capture_packet p;
	struct capture_reader r;
	size_t at = 0, used;

	capture_begin(&r);
	while (at < size) {
		status = capture_next(&r, (const uint8_t *)file + at, size - at, &used, &p);
		if (status == CAPTURE_MORE || status == CAPTURE_CORRUPT)
			break;
		at += used;
		if (status != CAPTURE_PACKET || p.direction != OUTBOUND || p.when_ns < from_ns ||
		    p.when_ns > to_ns ||
		    capture_find_rdma(p.link, p.data, p.captured, &rdma) != CAPTURE_RDMA)
			continue;
		count(rdma.bth[0], out);
		out->bytes += p.length;
	}
	out->dropped += capture_dropped(&r);
	return at == size && capture_end(&r, 0) ? 0 : -EBADMSG;
}

static int read_file(const char *path, uint64_t from_ns, uint64_t to_ns,
		     struct mpi_packets *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = -EBADMSG;
	struct stat st;
	void *map;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_size > 0) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		ret = map == MAP_FAILED ? -errno : 0;
		if (!ret) {
			ret = mpi_packets_parse(map, (size_t)st.st_size, from_ns, to_ns, out);
			munmap(map, (size_t)st.st_size);
		}
	}
	close(fd);
	if (ret)
		log_error("%s cannot be read: %s", path, strerror(-ret));
	return ret;
}

int mpi_packets_read(const char *dir, uint64_t from_ns, uint64_t to_ns,
		     struct mpi_packets *out)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int ret = d ? -ENOENT : -errno;
	char *path;

	*out = (struct mpi_packets){ 0 };
	while (d && (entry = readdir(d))) {
		if (fnmatch("packets-*.pcapng", entry->d_name, 0))
			continue;
		if (asprintf(&path, "%s/%s", dir, entry->d_name) < 0) {
			ret = -ENOMEM;
			break;
		}
		if (!ret || ret == -ENOENT)
			ret = read_file(path, from_ns, to_ns, out);
		unlink(path);
		free(path);
	}
	if (d)
		closedir(d);
	if (ret == -ENOENT)
		log_error("%s: the program has left no capture", dir);
	return ret;
}
