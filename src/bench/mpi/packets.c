/* SPDX-License-Identifier: BSD-2-Clause */
/* See packets.h. */
#define LOG_ROOM "bench/mpi"
#include "bench/mpi/packets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/log.h"

enum {
	BLOCK_PACKET = 6,
	BLOCK_SECTION = 0x0a0d0d0a,
	BYTE_ORDER_MARK = 0x1a2b3c4d,
	BLOCK_FRAME = 12,          /* type and length in front, length behind */
	PACKET_HEAD = 20,          /* interface, time, captured, length */
	OPTION_FLAGS = 2, OPTION_DROPPED = 4,
	DIRECTION_MASK = 3, OUTBOUND = 2,
};

enum { ETHERNET = 14, IP4 = 0x0800, IP6 = 0x86dd, IP6_HEAD = 40, UDP = 17, UDP_HEAD = 8,
       ROCE_PORT = 4791 };

/* The lower five bits of an opcode, by what the packet does (IBA volume 1, 9.2). */
enum { SEND_LAST = 0x05, WRITE_LAST = 0x0b, READ_REQUEST = 0x0c, RESPONSE_LAST = 0x10,
       ACK = 0x11, SEND_INVALIDATE = 0x16, SEND_INVALIDATE_ONLY = 0x17,
       CONGESTION = 0x80 /* the upper three bits */ };

struct packet {
	uint64_t when_ns, dropped;
	uint32_t captured, length, flags;
	const uint8_t *data;
};

static uint32_t u32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static uint16_t u16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static unsigned big16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static int read_options(const uint8_t *at, const uint8_t *end, struct packet *p)
{
	while (end - at >= 4) {
		uint16_t code = u16(at), length = u16(at + 2);
		size_t padded = (length + 3u) & ~(size_t)3;

		at += 4;
		if (!code)
			return 0;
		if (padded > (size_t)(end - at))
			return -EBADMSG;
		if (code == OPTION_FLAGS && length == sizeof(p->flags))
			p->flags = u32(at);
		if (code == OPTION_DROPPED && length == sizeof(p->dropped))
			memcpy(&p->dropped, at, sizeof(p->dropped));
		at += padded;
	}
	return at == end ? 0 : -EBADMSG;
}

static int read_packet(const uint8_t *at, const uint8_t *end, struct packet *p)
{
	size_t padded;

	*p = (struct packet){ 0 };
	if (end - at < PACKET_HEAD)
		return -EBADMSG;
	p->when_ns = (uint64_t)u32(at + 4) << 32 | u32(at + 8);
	p->captured = u32(at + 12);
	p->length = u32(at + 16);
	p->data = at + PACKET_HEAD;
	padded = ((size_t)p->captured + 3) & ~(size_t)3;
	if (padded > (size_t)(end - p->data))
		return -EBADMSG;
	return read_options(p->data + padded, end, p);
}

/* The opcode; -1: it is no packet of RoCE v2. */
static int opcode_of(const struct packet *p)
{
	size_t ip = ETHERNET, udp;
	unsigned type, protocol;

	if (p->captured < ETHERNET + IP6_HEAD)
		return -1;
	type = big16(p->data + ETHERNET - 2);
	if (type != IP4 && type != IP6)
		return -1;
	protocol = p->data[ip + (type == IP4 ? 9 : 6)];
	udp = ip + (type == IP4 ? 4u * (p->data[ip] & 15u) : IP6_HEAD);
	if (protocol != UDP || udp + UDP_HEAD >= p->captured ||
	    big16(p->data + udp + 2) != ROCE_PORT)
		return -1;
	return p->data[udp + UDP_HEAD];
}

static void count(int opcode, struct mpi_packets *out)
{
	int operation = opcode & 0x1f;

	if ((opcode & 0xe0) == CONGESTION)
		out->others++;
	else if (operation <= SEND_LAST || operation == SEND_INVALIDATE ||
	    operation == SEND_INVALIDATE_ONLY)
		out->sends++;
	else if (operation <= WRITE_LAST)
		out->writes++;
	else if (operation == READ_REQUEST)
		out->read_requests++;
	else if (operation <= RESPONSE_LAST)
		out->read_responses++;
	else if (operation == ACK)
		out->acks++;
	else
		out->others++;
}

static int take_packet(const uint8_t *at, const uint8_t *end, uint64_t from_ns, uint64_t to_ns,
		       struct mpi_packets *out)
{
	struct packet p;
	int ret = read_packet(at, end, &p), opcode;

	if (ret)
		return ret;
	out->dropped += p.dropped;
	opcode = opcode_of(&p);
	if ((p.flags & DIRECTION_MASK) != OUTBOUND || opcode < 0 || p.when_ns < from_ns ||
	    p.when_ns > to_ns)
		return 0;
	count(opcode, out);
	out->bytes += p.length;
	return 0;
}

int mpi_packets_parse(const void *file, size_t size, uint64_t from_ns, uint64_t to_ns,
		      struct mpi_packets *out)
{
	const uint8_t *at = file, *end = at + size;
	bool first = true;

	for (; at < end; first = false) {
		size_t left = (size_t)(end - at), length;
		uint32_t type;

		if (left < BLOCK_FRAME)
			return -EBADMSG;
		type = u32(at);
		length = u32(at + 4);
		if (length < BLOCK_FRAME || length % 4 || length > left ||
		    u32(at + length - 4) != length)
			return -EBADMSG;
		if (first && (type != BLOCK_SECTION || length < 16 ||
			      u32(at + 8) != BYTE_ORDER_MARK))
			return -EBADMSG;
		if (type == BLOCK_PACKET &&
		    take_packet(at + 8, at + length - 4, from_ns, to_ns, out))
			return -EBADMSG;
		at += length;
	}
	return first ? -EBADMSG : 0;
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
