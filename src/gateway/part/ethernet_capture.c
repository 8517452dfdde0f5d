/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of Ethernet from a capture file; see ethernet.h. */
#define LOG_ROOM "gateway"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/part/ethernet.h"
#include "util/clock.h"
#include "util/log.h"
#include "wire/bytes.h"
#include "wire/capture/link.h"
#include "wire/capture/reader.h"

#define BUFFER_BYTES (2 * (size_t)CAPTURE_RECORD_MAX)
#define TAG_BYTES 4
#define TAG_CUSTOMER 0x8100
#define TAG_SERVICE 0x88a8

struct ethernet_capture {
	struct capture_reader reader;
	char *file;
	uint8_t *buffer;
	size_t start, end;
	bool at_end;      /* of the file */
	bool ended;
	uint64_t strange; /* packets that are no frames of Ethernet */
};

void ethernet_capture_close(struct ethernet_capture *c)
{
	if (!c)
		return;
	free(c->buffer);
	free(c->file);
	free(c);
}

static int fail(struct ethernet *e, int err, char why[ETHERNET_WHY_MAX], const char *file)
{
	snprintf(why, ETHERNET_WHY_MAX, "%.120s: %s", file, strerror(err));
	if (e->fd >= 0)
		close(e->fd);
	ethernet_capture_close(e->capture);
	*e = (struct ethernet){ .fd = -1 };
	return -err;
}

int ethernet_open_capture(struct ethernet *e, const char *file, uint16_t type,
			  char why[ETHERNET_WHY_MAX])
{
	struct ethernet_capture *c = calloc(1, sizeof(*c));
	struct stat st;

	*e = (struct ethernet){ .fd = -1, .type = type, .capture = c };
	if (!c)
		return fail(e, ENOMEM, why, file);
	c->file = strdup(file);
	c->buffer = malloc(BUFFER_BYTES);
	if (!c->file || !c->buffer)
		return fail(e, ENOMEM, why, file);
	e->fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (e->fd < 0 || fstat(e->fd, &st))
		return fail(e, errno, why, file);
	if (!S_ISREG(st.st_mode))
		return fail(e, S_ISDIR(st.st_mode) ? EISDIR : ESPIPE, why, file);
	capture_begin(&c->reader);
	return 0;
}

/* The end, or the place from which on the file cannot be read. */
static int end(struct ethernet_capture *c)
{
	const struct capture_error *error = &c->reader.error;
	uint64_t dropped = capture_dropped(&c->reader);

	c->ended = true;
	if (c->strange)
		log_warn("%s: %ju packets are no frames of Ethernet, and were passed over", c->file,
			 (uintmax_t)c->strange);
	if (dropped)
		log_warn("%s: whoever captured it has lost %ju packets", c->file,
			 (uintmax_t)dropped);
	if (!error->field)
		return -ENODATA;
	log_error("%s: byte %ju, %s: %s", c->file, (uintmax_t)error->offset, error->field,
		  error->why);
	return -EBADMSG;
}

/* More bytes of the file. 0, or a negative errno: there will be no packet. */
static int fill(const struct ethernet *e, struct ethernet_capture *c)
{
	ssize_t n;

	if (c->at_end) {
		capture_end(&c->reader, c->end - c->start);
		return end(c);
	}
	memmove(c->buffer, c->buffer + c->start, c->end - c->start);
	c->end -= c->start;
	c->start = 0;
	do
		n = read(e->fd, c->buffer + c->end, BUFFER_BYTES - c->end);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		n = -errno;
		log_error("%s: %s", c->file, strerror((int)-n));
		c->ended = true;
		return (int)n;
	}
	c->at_end = !n;
	c->end += (size_t)n;
	return 0;
}

/* 0 with *p, or a negative errno. */
static int next_packet(const struct ethernet *e, struct capture_packet *p)
{
	struct ethernet_capture *c = e->capture;

	for (;;) {
		size_t used;
		enum capture_status s = capture_next(&c->reader, c->buffer + c->start,
						     c->end - c->start, &used, p);
		int ret;

		c->start += used;
		if (s == CAPTURE_PACKET)
			return 0;
		if (s == CAPTURE_CORRUPT)
			return end(c);
		ret = s == CAPTURE_MORE ? fill(e, c) : 0;
		if (ret)
			return ret;
	}
}

/* Reads the header with its tags. False: the frame is too short or has another Ethertype. */
static bool read_header(const struct ethernet *e, const struct capture_packet *p,
			struct ethernet_frame *f)
{
	size_t at = 2 * ETHERNET_MAC;
	uint16_t type = 0, tci;

	*f = (struct ethernet_frame){ .truncated = p->captured < p->length };
	while (at + 2 <= p->captured) {
		type = get_16(p->data + at);
		if ((type != TAG_CUSTOMER && type != TAG_SERVICE) || at + TAG_BYTES > p->captured)
			break;
		tci = get_16(p->data + at + 2);
		f->vlan = (struct ethernet_vlan){ true, tci & 0x0fff, (uint8_t)(tci >> 13) };
		at += TAG_BYTES;
	}
	if (at + 2 > p->captured || type != e->type)
		return false;
	memcpy(f->destination, p->data, ETHERNET_MAC);
	memcpy(f->source, p->data + ETHERNET_MAC, ETHERNET_MAC);
	f->payload = p->data + at + 2;
	f->len = p->captured - at - 2;
	f->received = timespec_from_ns(p->when_ns);
	return true;
}

int ethernet_capture_receive(const struct ethernet *e, struct ethernet_frame *f)
{
	struct ethernet_capture *c = e->capture;
	struct capture_packet p;

	if (c->ended)
		return -ENODATA;
	for (;;) {
		int ret = next_packet(e, &p);

		if (ret)
			return ret;
		if (p.link != CAPTURE_ETHERNET)
			c->strange++;
		else if (read_header(e, &p, f))
			return 0;
	}
}
