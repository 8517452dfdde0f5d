/* SPDX-License-Identifier: BSD-2-Clause */
/* See outside_stream.h. */
#include "gateway/outside/outside_stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "util/clock.h"
#include "util/container_of.h"

/* A long message does not keep its memory. */
#define KEPT_BYTES 262144
/* Reads, before others have their turn: what takes some 10 ms, such as an INFO of NATS. */
#define READS_MAX 4
#define READ_SIZE 65536
/* Bytes of answers that wait for a server that does not take them, before nothing more is read. */
#define ANSWERS_MAX 1048576
/* For the last words. */
#define GENTLY_NS (200 * UINT64_C(1000000))

int outside_stream_open(struct outside *o, struct stream *s, const char *host, int port,
			uint64_t until_ns)
{
	int fd = outside_dial(o, host, port, until_ns);

	stream_init(s, MAX(fd, -1));
	return MIN(fd, 0);
}

/* Why a connection broke. */
static int broken(struct outside *o, const struct stream *s, ssize_t n)
{
	if (!n)
		return outside_fail(o, -ECONNRESET, "the server has closed it");
	if (s->tls)
		return outside_fail(o, (int)n, "TLS: %s",
				    outside_tls_reason(s->tls_ops->reason(s->tls)));
	return outside_fail(o, (int)n, "%s", strerror((int)-n));
}

static int greet(struct outside *o, struct stream *s, uint64_t until_ns)
{
	const struct dial_limit limit = outside_limit(o, until_ns);
	bool want_write;
	int ret;

	while ((ret = s->tls_ops->greet(s->tls, &want_write)) == -EAGAIN) {
		ret = dial_wait(s->fd, want_write ? POLLOUT : POLLIN, &limit);
		if (ret)
			return ret == -ETIMEDOUT ? outside_fail_silent(o) : ret;
	}
	return ret ? broken(o, s, ret) : 0;
}

int outside_stream_start_tls(struct outside *o, struct stream *s, const struct outside_tls *t,
			     const char *host, uint64_t until_ns)
{
	const struct tls_settings settings = {
		.cert = t->cert, .key = t->key, .ca = t->ca, .ca_path = t->ca_path,
		.ciphers = t->ciphers, .only_1_3 = t->version && !strcmp(t->version, "1.3"),
		.any_authority = !t->verify, .any_host = !t->verify_host,
	};
	struct tls_context *ctx;
	char error[200];
	int ret;

	if (!t->enabled)
		return 0;
	/* Anew each time: certificates are replaced while the gateway runs. */
	ret = t->ops->context_new(&ctx, TLS_CLIENT, &settings, error, sizeof(error));
	if (ret)
		return outside_fail(o, ret, "ssl: %s", error);
	ret = stream_start_tls(s, t->ops, ctx, t->server_name ? t->server_name : host);
	t->ops->context_free(ctx);
	return ret ?: greet(o, s, until_ns);
}

int outside_stream_flush(struct outside *o, struct stream *s)
{
	int ret = stream_flush(s, NULL);

	if (ret)
		return broken(o, s, ret);
	if (s->out.size > KEPT_BYTES && s->out.start == s->out.end)
		stream_buffer_free(&s->out);
	return 0;
}

ssize_t outside_stream_recv(struct outside *o, struct stream *s, void *to, size_t size)
{
	ssize_t n = stream_recv(s, to, size);

	return n == -EAGAIN ? 0 : n > 0 ? n : broken(o, s, n);
}

/* Adds what has come. 1, 0 or a negative errno, as outside_stream_recv(). */
static int fill(struct outside *o, struct stream *s, struct outside_input *in)
{
	struct stream_buffer *b = &in->b;
	ssize_t n;

	if (b->start == b->end) {
		b->start = b->end = 0;
		if (b->size > KEPT_BYTES)
			stream_buffer_free(b);
	}
	if (stream_buffer_reserve(b, READ_SIZE))
		return outside_fail(o, -ENOMEM, "%s", strerror(ENOMEM));
	n = outside_stream_recv(o, s, b->at + b->end, READ_SIZE);
	if (n <= 0)
		return (int)n;
	b->end += (size_t)n;
	in->heard_ns = clock_now_ns();
	return 1;
}

static bool is_stuck(const struct stream *s)
{
	return stream_buffer_filled(&s->out) > ANSWERS_MAX;
}

int outside_stream_await(struct outside *o, struct stream *s, struct outside_input *in,
			 uint64_t until_ns)
{
	const struct dial_limit limit = outside_limit(o, until_ns);

	for (;;) {
		int ret;

		/* Before the look: a server may send without end what nobody waits for. */
		if (outside_is_ending(o))
			return -ECANCELED;
		if (clock_now_ns() >= until_ns)
			return outside_fail_silent(o);
		if (is_stuck(s))
			return outside_fail(o, -EPROTO, "it takes no answers");
		ret = outside_stream_flush(o, s) ?: fill(o, s, in);
		if (ret)
			return MIN(ret, 0);
		dial_wait(s->fd, stream_events(s, true, false), &limit);
	}
}

int outside_stream_read(struct outside *o, struct stream *s, struct outside_input *in,
			int (*take)(struct outside *o))
{
	in->more = false;
	for (unsigned i = 0; i < READS_MAX; i++) {
		int ret = 1;

		while (ret > 0 && !outside_is_enough(o) && !is_stuck(s))
			ret = take(o);
		in->more = ret > 0;
		if (ret)
			return MIN(ret, 0);
		ret = fill(o, s, in);
		if (ret <= 0)
			return ret;
	}
	in->more = true;
	return 0;
}

unsigned outside_stream_wait(const struct stream *s, const struct outside_input *in,
			     struct pollfd fds[], uint64_t *until_ns)
{
	if (in->more && !is_stuck(s))
		*until_ns = 0;
	fds[0] = (struct pollfd){ .fd = s->fd, .events = stream_events(s, !is_stuck(s), false) };
	return 1;
}

void outside_stream_end_gently(struct stream *s)
{
	uint64_t now, end_ns = clock_now_ns() + GENTLY_NS;
	char buf[16384];
	ssize_t n = 1;

	stream_shut(s);
	while (n > 0 && (now = clock_now_ns()) < end_ns) {
		struct pollfd p = { .fd = s->fd, .events = POLLIN };
		struct timespec left = timespec_from_ns(end_ns - now);

		if (ppoll(&p, 1, &left, NULL) == 1)
			n = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT);
	}
	stream_close(s);
}
