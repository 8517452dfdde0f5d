/* SPDX-License-Identifier: BSD-2-Clause */
/* One connection to a Redis server: TCP, TLS or a Unix socket, commands and replies. */
#define LOG_ROOM "gateway/redis"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gateway/node/redis/redis.h"
#include "util/clock.h"
#include "util/num.h"

#define READ_SIZE 65536
/* Seconds without a word before the kernel asks, and between its questions. */
#define KEEPALIVE_IDLE_S 15
#define KEEPALIVE_STEP_S 5

/* ---- connecting ---- */

static void keep_alive(const struct redis_link *l)
{
	int on = 1, idle = KEEPALIVE_IDLE_S, step = KEEPALIVE_STEP_S;

	setsockopt(l->stream.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(l->stream.fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(l->stream.fd, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof(step));
}

static int connect_tcp(struct redis_link *l)
{
	struct redis_node *m = l->node;

	int ret = outside_stream_open(&m->outside, &l->stream, m->address.host,
				      atoi(m->address.port), m->until_ns);

	if (!ret && m->keepalive)
		keep_alive(l);
	return ret;
}

static int connect_unix(struct redis_link *l)
{
	const struct dial_limit limit = outside_limit(&l->node->outside, l->node->until_ns);
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const struct addrinfo to = { .ai_family = AF_UNIX, .ai_addrlen = sizeof(a),
				     .ai_addr = (struct sockaddr *)(void *)&a };
	int fd;

	/* A path of 108 bytes needs no zero behind it. */
	memcpy(a.sun_path, l->node->address.path, sizeof(a.sun_path));
	fd = dial_address(&to, &limit);
	stream_init(&l->stream, MAX(fd, -1));
	return MIN(fd, 0);
}

int redis_link_open(struct redis_link *l, struct redis_node *m)
{
	int ret;

	*l = (struct redis_link){ .node = m, .stream.fd = -1, .heard_ns = clock_now_ns() };
	ret = redis_reader_init(&l->reader, (size_t)m->max_reply);
	if (!ret)
		ret = *m->address.path ? connect_unix(l) : connect_tcp(l);
	if (ret && !*m->outside.why)
		outside_fail(&m->outside, ret, "%s", strerror(-ret));
	return ret ?: outside_stream_start_tls(&m->outside, &l->stream, &m->tls, m->address.host,
					       m->until_ns);
}

void redis_link_close(struct redis_link *l)
{
	if (l->stream.fd >= 0)
		redis_link_flush(l);
	if (l->stream.tls)
		l->stream.tls_ops->shut(l->stream.tls);
	stream_close(&l->stream);
	redis_reader_destroy(&l->reader);
}

/* ---- commands ---- */

char *redis_print_count(char *at, const char *end, char sign, size_t count)
{
	if (!at || end - at < NUM_INT_MAX + 3)
		return NULL;
	*at++ = sign;
	at = num_print_u64(at, count);
	*at++ = '\r';
	*at++ = '\n';
	return at;
}

char *redis_print_word(char *at, const char *end, struct redis_word w)
{
	at = redis_print_count(at, end, '$', w.len);
	if (!at || (size_t)(end - at) < w.len + 2)
		return NULL;
	memcpy(at, w.at, w.len);
	at += w.len;
	*at++ = '\r';
	*at++ = '\n';
	return at;
}

bool redis_link_has_room(const struct redis_link *l, unsigned count)
{
	return stream_buffer_filled(&l->stream.out) < REDIS_OUT_MAX &&
	       REDIS_OWED_MAX - l->owed_count >= count;
}

static void owe(struct redis_link *l, enum redis_owed_kind kind, uint64_t tag)
{
	unsigned at = (l->first_owed + l->owed_count) % REDIS_OWED_MAX;

	if (!l->owed_count++)
		l->heard_ns = clock_now_ns();
	l->owed[at] = (struct redis_owed){ kind, tag };
}

int redis_link_put(struct redis_link *l, enum redis_owed_kind kind, uint64_t tag, unsigned count,
		   const struct redis_word words[])
{
	struct stream_buffer *out = &l->stream.out;
	size_t len = NUM_INT_MAX + 3;
	char *at, *end;

	for (unsigned i = 0; i < count; i++)
		len += words[i].len + NUM_INT_MAX + 5;
	if (stream_buffer_reserve(out, len))
		return -ENOMEM;
	at = out->at + out->end;
	end = at + len;
	at = redis_print_count(at, end, '*', count);
	for (unsigned i = 0; i < count; i++)
		at = redis_print_word(at, end, words[i]);
	out->end = (size_t)(at - out->at);
	/* A subscribed connection pairs no replies with commands. */
	if (!l->subscribed)
		owe(l, kind, tag);
	return 0;
}

int redis_link_put_raw(struct redis_link *l, enum redis_owed_kind kind, uint64_t tag,
		       const char *data, size_t len)
{
	if (stream_buffer_put(&l->stream.out, data, len))
		return -ENOMEM;
	owe(l, kind, tag);
	return 0;
}

int redis_link_flush(struct redis_link *l)
{
	return outside_stream_flush(&l->node->outside, &l->stream);
}

/* ---- replies ---- */

int redis_link_next(struct redis_link *l, const struct redis_value **out)
{
	char buf[READ_SIZE];
	int ret;

	for (;;) {
		ssize_t n;

		ret = redis_reader_next(&l->reader, out);
		if (ret < 0)
			return outside_fail(&l->node->outside, ret, "it answers with %s",
					    l->reader.why);
		if (ret)
			return ret;
		n = outside_stream_recv(&l->node->outside, &l->stream, buf, sizeof(buf));
		if (n <= 0)
			return (int)n;
		l->heard_ns = clock_now_ns();
		if (redis_reader_feed(&l->reader, buf, (size_t)n))
			return -ENOMEM;
	}
}

bool redis_link_take_owed(struct redis_link *l, struct redis_owed *out)
{
	if (!l->owed_count)
		return false;
	*out = l->owed[l->first_owed];
	l->first_owed = (l->first_owed + 1) % REDIS_OWED_MAX;
	l->owed_count--;
	return true;
}

uint64_t redis_link_due_ns(const struct redis_link *l)
{
	uint64_t limit_ns = (uint64_t)(l->node->socket_timeout_s * 1e9);

	if (!limit_ns)
		return UINT64_MAX;
	return l->heard_ns + (l->owed_count || l->pings ? limit_ns : limit_ns / 2);
}

int redis_link_keep(struct redis_link *l)
{
	const struct redis_word ping = redis_word("PING");
	uint64_t now = clock_now_ns();

	if (now < redis_link_due_ns(l))
		return 0;
	if (l->owed_count || l->pings)
		return outside_fail(&l->node->outside, -ETIMEDOUT,
				    "it does not answer within %g s (timeout.socket)",
				    l->node->socket_timeout_s);
	if (redis_link_put(l, REDIS_OWED_PING, 0, 1, &ping))
		return -ENOMEM;
	if (l->subscribed)
		l->pings++;
	l->heard_ns = now;
	return redis_link_flush(l);
}
