/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer of raw bytes; see raw.h. */
#include "raw.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stream.h"

void raw_open(struct raw *r, struct pair *p, const struct raw_how *how)
{
	const struct stream_how end = { .initiator = how->refused, .crc = how->crc,
					.markers = how->markers, .refused = how->refused };
	int fd[2];

	memset(r, 0, sizeof(*r));
	stream_sockets(fd);
	r->fd = fd[0];
	if (how->room)
		expect(!setsockopt(fd[0], SOL_SOCKET, SO_RCVBUF, &how->room, sizeof(how->room)) &&
		       !setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &how->room, sizeof(how->room)));
	r->framer.crc = how->crc;
	r->framer.markers = how->markers;
	iwarp_receiver_init(&r->receiver, how->markers, how->crc, r->segment);
	expect_eq(side_to_init(&p->a, 0, p->conn.access_a), 0);
	expect_eq(stream_attach(p->a.end, 0, fd[1], &end), 0);
}

void raw_frame(struct raw *r, const uint8_t *headers, size_t bytes, uint32_t payload)
{
	static uint8_t zeros[1024];
	const struct iovec pieces[2] = { { (void *)(uintptr_t)headers, bytes }, { zeros, payload } };

	expect(payload <= sizeof(zeros));
	expect(r->bytes + iwarp_framer_bytes(&r->framer, bytes + payload) <= sizeof(r->out));
	r->bytes += iwarp_framer_write(&r->framer, pieces, 2, r->out + r->bytes);
}

void raw_add(struct raw *r, const struct iwarp_segment *s)
{
	uint8_t headers[IWARP_HEADERS_MAX];

	raw_frame(r, headers, iwarp_segment_encode(s, headers), s->bytes);
}

void raw_begin(struct raw *r)
{
	raw_add(r, &(struct iwarp_segment){ .opcode = IWARP_WRITE, .last = true, .stag = 1 });
}

void raw_send(struct raw *r)
{
	expect_eq(send(r->fd, r->out, r->bytes, MSG_NOSIGNAL), r->bytes);
	r->bytes = 0;
}

const struct iwarp_segment *raw_receive(struct raw *r)
{
	static uint8_t byte;
	struct pollfd poll_fd = { .fd = r->fd, .events = POLLIN };

	for (;;) {
		const uint8_t *at = &byte;
		size_t bytes = 1;

		if (poll(&poll_fd, 1, WAIT_MS) != 1 || recv(r->fd, &byte, 1, 0) != 1)
			fail("no segment");
		switch (iwarp_receiver_take(&r->receiver, &at, &bytes)) {
		case IWARP_NOTHING:
			break;
		case IWARP_FPDU:
			return &r->receiver.segment;
		default:
			fail("not a good FPDU");
		}
	}
}

void raw_expect_end(struct raw *r)
{
	struct pollfd poll_fd = { .fd = r->fd, .events = POLLIN };
	uint8_t byte;

	if (poll(&poll_fd, 1, WAIT_MS) != 1 || recv(r->fd, &byte, 1, 0) != 0)
		fail("no end");
	close(r->fd);
}
