/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads capture files for tests, by the format's text and without our encoder. A file that
 * is not well formed ends the test. */
#ifndef TESTS_PCAPNG_READ_H
#define TESTS_PCAPNG_READ_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PCAPNG_STATS 4

struct read_packet {
	uint32_t interface, captured, length, flags;
	uint64_t when_ns, dropped;
	const uint8_t *data;
	char comment[256];
};

struct pcapng_file {
	uint8_t *bytes;
	size_t size, at;
	unsigned sections, interfaces, packets, statistics;
	char names[PCAPNG_STATS][64];
	uint64_t received[PCAPNG_STATS], dropped[PCAPNG_STATS];
	uint64_t untold; /* sum of the packets' drop counts */
	char comment[256]; /* of the last statistics that had one */
};

#define READ_CHECK(what)                                                        \
	do {                                                                    \
		if (!(what)) {                                                  \
			fprintf(stderr, "%s:%d: capture file: not so: %s\n",    \
				__FILE__, __LINE__, #what);                     \
			exit(1);                                                \
		}                                                               \
	} while (0)

static inline uint32_t pcapng_u32(const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return v;
}

static inline uint16_t pcapng_u16(const uint8_t *from)
{
	uint16_t v;

	memcpy(&v, from, sizeof(v));
	return v;
}

/* The option's value, or NULL. Checks all of them. */
static inline const uint8_t *pcapng_option(const uint8_t *at, const uint8_t *end,
					   uint16_t wanted, uint16_t *bytes)
{
	const uint8_t *found = NULL;

	while (at < end) {
		uint16_t code, length;

		READ_CHECK(end - at >= 4);
		code = pcapng_u16(at);
		length = pcapng_u16(at + 2);
		at += 4;
		READ_CHECK(length <= end - at);
		if (!code) {
			READ_CHECK(!length && at == end);
			return found;
		}
		if (code == wanted) {
			found = at;
			*bytes = length;
		}
		at += (length + 3u) & ~3u;
	}
	return found;
}

static inline void pcapng_text(const uint8_t *at, const uint8_t *end, uint16_t code,
			       char *to, size_t size)
{
	uint16_t bytes;
	const uint8_t *from = pcapng_option(at, end, code, &bytes);

	if (from) {
		READ_CHECK(bytes < size);
		memcpy(to, from, bytes);
		to[bytes] = '\0';
	}
}

static inline uint64_t pcapng_option64(const uint8_t *at, const uint8_t *end,
				       uint16_t code, uint64_t otherwise)
{
	uint64_t value = otherwise;
	uint16_t bytes;
	const uint8_t *from = pcapng_option(at, end, code, &bytes);

	if (from) {
		READ_CHECK(bytes == 8);
		memcpy(&value, from, 8);
	}
	return value;
}

static inline void pcapng_from_memory(uint8_t *bytes, size_t size, struct pcapng_file *f)
{
	memset(f, 0, sizeof(*f));
	f->bytes = bytes;
	f->size = size;
}

/* False: there is no such file. */
static inline bool pcapng_load(const char *name, struct pcapng_file *f)
{
	struct stat st;
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	uint8_t *bytes;

	if (fd < 0)
		return false;
	READ_CHECK(!fstat(fd, &st));
	bytes = malloc((size_t)st.st_size + 1);
	READ_CHECK(bytes && read(fd, bytes, (size_t)st.st_size) == st.st_size);
	close(fd);
	pcapng_from_memory(bytes, (size_t)st.st_size, f);
	return true;
}

static inline void pcapng_free(struct pcapng_file *f)
{
	free(f->bytes);
	f->bytes = NULL;
}

static inline void pcapng_read_statistics(struct pcapng_file *f, const uint8_t *b,
					  const uint8_t *end)
{
	uint32_t i = pcapng_u32(b + 8);

	READ_CHECK(i < f->interfaces && i < PCAPNG_STATS);
	f->statistics++;
	f->received[i] = pcapng_option64(b + 20, end, 4, 0);
	f->dropped[i] = pcapng_option64(b + 20, end, 5, 0);
	pcapng_text(b + 20, end, 1, f->comment, sizeof(f->comment));
}

static inline void pcapng_read_packet(struct pcapng_file *f, const uint8_t *b,
				      const uint8_t *end, struct read_packet *p)
{
	const uint8_t *options, *flags;
	uint16_t bytes;

	READ_CHECK(end - b >= 28);
	memset(p, 0, sizeof(*p));
	p->interface = pcapng_u32(b + 8);
	p->when_ns = (uint64_t)pcapng_u32(b + 12) << 32 | pcapng_u32(b + 16);
	p->captured = pcapng_u32(b + 20);
	p->length = pcapng_u32(b + 24);
	p->data = b + 28;
	READ_CHECK(p->interface < f->interfaces);
	READ_CHECK(p->captured <= p->length && p->captured <= end - p->data);
	options = p->data + ((p->captured + 3) & ~3u);
	flags = pcapng_option(options, end, 2, &bytes);
	p->flags = flags ? pcapng_u32(flags) : 0;
	p->dropped = pcapng_option64(options, end, 4, 0);
	pcapng_text(options, end, 1, p->comment, sizeof(p->comment));
	f->untold += p->dropped;
	f->packets++;
}

/* The next packet; false: there is none. */
static inline bool pcapng_next(struct pcapng_file *f, struct read_packet *p)
{
	while (f->at < f->size) {
		const uint8_t *b = f->bytes + f->at, *end;
		uint32_t type, length;
		uint16_t bytes;

		READ_CHECK(f->size - f->at >= 12);
		type = pcapng_u32(b);
		length = pcapng_u32(b + 4);
		READ_CHECK(length % 4 == 0 && length >= 12 && length <= f->size - f->at);
		READ_CHECK(pcapng_u32(b + length - 4) == length);
		end = b + length - 4;
		f->at += length;
		switch (type) {
		case 0x0a0d0d0a:
			READ_CHECK(pcapng_u32(b + 8) == 0x1a2b3c4d);
			READ_CHECK(pcapng_u16(b + 12) == 1 && pcapng_u16(b + 14) == 0);
			f->sections++;
			f->interfaces = 0;
			break;
		case 1:
			READ_CHECK(f->sections && f->interfaces < PCAPNG_STATS);
			READ_CHECK(*pcapng_option(b + 16, end, 9, &bytes) == 9);
			pcapng_text(b + 16, end, 2, f->names[f->interfaces], 64);
			f->interfaces++;
			break;
		case 5:
			pcapng_read_statistics(f, b, end);
			break;
		case 6:
			pcapng_read_packet(f, b, end, p);
			return true;
		default:
			READ_CHECK(!"a block that we do not write");
		}
	}
	return false;
}

#endif
