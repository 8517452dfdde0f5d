/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to the process of a running fabric. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/fabric.h"
#include "plug/plug.h"
#include "util/log.h"

#define ANSWER_MAX (256u << 20)
#define ANSWER_MS 10000

struct answer {
	char *text;
	size_t bytes, size;
};

static bool append(struct answer *a, const void *bytes, size_t count)
{
	if (a->bytes + count + 1 > a->size) {
		size_t size = a->size ? a->size * 2 : 65536;
		char *more = size <= ANSWER_MAX ? realloc(a->text, size) : NULL;

		if (!more)
			return false;
		a->text = more;
		a->size = size;
	}
	memcpy(a->text + a->bytes, bytes, count);
	a->bytes += count;
	a->text[a->bytes] = '\0';
	return true;
}

/* The next message; its length, or a negative errno. */
static ssize_t receive(int fd, void *buf, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	for (;;) {
		n = recv(fd, buf, size, MSG_DONTWAIT);
		if (n > 0)
			return n;
		if (!n)
			return -ECONNRESET;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (!poll(&p, 1, ANSWER_MS))
			return -ETIMEDOUT;
	}
}

/* 0, the errno of the answer, or a negative errno: there is none. */
static int collect(int fd, struct answer *a)
{
	union {
		struct plug_head head;
		char bytes[PLUG_MESSAGE_BYTES];
	} m;

	for (;;) {
		ssize_t n = receive(fd, &m, sizeof(m));

		if (n < 0)
			return (int)n;
		if (!plug_check(&m.head, (size_t)n))
			return -EPROTO;
		if (m.head.type == PLUG_DONE)
			return (int)m.head.a;
		if (m.head.type == PLUG_TEXT && !append(a, m.bytes + sizeof(m.head), m.head.bytes))
			return -ENOMEM;
	}
}

char *fabric_ask(const char *name, const char *question, size_t *bytes)
{
	struct plug_place place = { .host = "" };
	struct plug_welcome welcome;
	struct answer a = { 0 };
	struct plug_port port;
	int fd, ret;

	if (strlen(name) >= sizeof(place.fabric)) {
		log_error("'%s' is longer than the name of a fabric may be, %zu", name,
			  sizeof(place.fabric) - 1);
		return NULL;
	}
	strcpy(place.fabric, name);
	fd = plug_connect(&place, PLUG_CONTROL, &welcome, &port);
	if (fd < 0)
		return NULL;
	ret = plug_send(fd, PLUG_ASK, 0, 1, question, strlen(question));
	if (!ret)
		ret = collect(fd, &a);
	close(fd);
	if (ret > 0)
		log_error("%s", a.bytes ? a.text : strerror(ret));
	else if (ret < 0)
		log_error("the fabric '%s' does not answer: %s", name, strerror(-ret));
	if (ret || !append(&a, "", 0)) {
		free(a.text);
		return NULL;
	}
	*bytes = a.bytes;
	return a.text;
}
