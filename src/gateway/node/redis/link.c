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

	setsockopt(l->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(l->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(l->fd, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof(step));
}

static int connect_tcp(struct redis_link *l)
{
	struct redis_node *m = l->node;

	l->fd = outside_dial(&m->outside, m->address.host, atoi(m->address.port), m->until_ns);
	if (l->fd >= 0 && m->keepalive)
		keep_alive(l);
	return MIN(l->fd, 0);
}

static int connect_unix(struct redis_link *l)
{
	const struct dial_limit limit = outside_limit(&l->node->outside, l->node->until_ns);
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const struct addrinfo to = { .ai_family = AF_UNIX, .ai_addrlen = sizeof(a),
				     .ai_addr = (struct sockaddr *)(void *)&a };

	/* A path of 108 bytes needs no zero behind it. */
	memcpy(a.sun_path, l->node->address.path, sizeof(a.sun_path));
	l->fd = dial_address(&to, &limit);
	return MIN(l->fd, 0);
}

static int start_tls(struct redis_link *l)
{
	struct redis_node *m = l->node;
	const struct outside_tls *t = &m->tls;
	const struct tls_settings s = {
		.cert = t->cert, .key = t->key, .ca = t->ca, .ca_path = t->ca_path,
		.ciphers = t->ciphers, .only_1_3 = t->version && !strcmp(t->version, "1.3"),
		.any_authority = !t->verify, .any_host = !t->verify_host,
	};
	const struct dial_limit limit = outside_limit(&m->outside, m->until_ns);
	struct tls_context *ctx;
	char error[200];
	bool want_write;
	int ret;

	if (!t->enabled)
		return 0;
	/* Anew each time: certificates are replaced while the gateway runs. */
	ret = m->tls_ops->context_new(&ctx, TLS_CLIENT, &s, error, sizeof(error));
	if (ret)
		return outside_fail(&m->outside, ret, "ssl: %s", error);
	l->tls = m->tls_ops->conn_new(ctx, l->fd, t->server_name ? t->server_name : m->address.host);
	m->tls_ops->context_free(ctx);
	if (!l->tls)
		return -ENOMEM;
	while ((ret = m->tls_ops->greet(l->tls, &want_write)) == -EAGAIN) {
		ret = dial_wait(l->fd, want_write ? POLLOUT : POLLIN, &limit);
		if (ret)
			return ret == -ETIMEDOUT ? outside_fail_silent(&m->outside) : ret;
	}
	return ret ? outside_fail(&m->outside, ret, "TLS: %s", m->tls_ops->reason(l->tls)) : 0;
}

int redis_link_open(struct redis_link *l, struct redis_node *m)
{
	int ret;

	*l = (struct redis_link){ .node = m, .fd = -1, .heard_ns = clock_now_ns() };
	ret = redis_reader_init(&l->reader, (size_t)m->max_reply);
	if (!ret)
		ret = *m->address.path ? connect_unix(l) : connect_tcp(l);
	if (ret && !*m->outside.why)
		outside_fail(&m->outside, ret, "%s", strerror(-ret));
	return ret ?: start_tls(l);
}

void redis_link_close(struct redis_link *l)
{
	if (l->fd >= 0)
		redis_link_flush(l);
	if (l->tls) {
		l->node->tls_ops->shut(l->tls);
		l->node->tls_ops->conn_free(l->tls);
	}
	if (l->fd >= 0)
		close(l->fd);
	redis_reader_destroy(&l->reader);
	free(l->out);
	l->out = NULL;
	l->tls = NULL;
	l->fd = -1;
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
	return l->out_end - l->out_at < REDIS_OUT_MAX &&
	       REDIS_OWED_MAX - l->owed_count >= count;
}

/* Room for `len` more bytes. */
static char *reserve(struct redis_link *l, size_t len)
{
	size_t left = l->out_end - l->out_at;
	char *out;

	if (l->out_at && l->out_size - l->out_end < len) {
		memmove(l->out, l->out + l->out_at, left);
		l->out_at = 0;
		l->out_end = left;
	}
	if (l->out_size - l->out_end < len) {
		out = realloc(l->out, l->out_end + len + REDIS_OUT_MAX);
		if (!out)
			return NULL;
		l->out = out;
		l->out_size = l->out_end + len + REDIS_OUT_MAX;
	}
	return l->out + l->out_end;
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
	size_t len = NUM_INT_MAX + 3;
	char *at, *end;

	for (unsigned i = 0; i < count; i++)
		len += words[i].len + NUM_INT_MAX + 5;
	at = reserve(l, len);
	if (!at)
		return -ENOMEM;
	end = at + len;
	at = redis_print_count(at, end, '*', count);
	for (unsigned i = 0; i < count; i++)
		at = redis_print_word(at, end, words[i]);
	l->out_end = (size_t)(at - l->out);
	/* A subscribed connection pairs no replies with commands. */
	if (!l->subscribed)
		owe(l, kind, tag);
	return 0;
}

int redis_link_put_raw(struct redis_link *l, enum redis_owed_kind kind, uint64_t tag,
		       const char *data, size_t len)
{
	char *at = reserve(l, len);

	if (!at)
		return -ENOMEM;
	memcpy(at, data, len);
	l->out_end += len;
	owe(l, kind, tag);
	return 0;
}

static ssize_t write_some(struct redis_link *l)
{
	const char *at = l->out + l->out_at;
	size_t len = l->out_end - l->out_at;
	ssize_t n;

	if (l->tls)
		return l->node->tls_ops->write(l->tls, at, len, &l->write_wants_read);
	n = send(l->fd, at, len, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

/* Why a connection broke. */
static int broken(struct redis_link *l, ssize_t n)
{
	struct outside *o = &l->node->outside;

	if (!n)
		return outside_fail(o, -ECONNRESET, "the server has closed it");
	if (l->tls)
		return outside_fail(o, (int)n, "TLS: %s", l->node->tls_ops->reason(l->tls));
	return outside_fail(o, (int)n, "%s", strerror((int)-n));
}

int redis_link_flush(struct redis_link *l)
{
	while (l->out_at < l->out_end) {
		ssize_t n = write_some(l);

		if (n == -EAGAIN)
			return 0;
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return broken(l, n);
		l->out_at += (size_t)n;
	}
	l->out_at = l->out_end = 0;
	/* A long message does not keep its memory. */
	if (l->out_size > 4 * REDIS_OUT_MAX) {
		free(l->out);
		l->out = NULL;
		l->out_size = 0;
	}
	return 0;
}

/* ---- replies ---- */

static ssize_t read_some(struct redis_link *l, char *to, size_t size)
{
	ssize_t n;

	if (l->tls)
		return l->node->tls_ops->read(l->tls, to, size, &l->read_wants_write);
	n = recv(l->fd, to, size, 0);
	return n < 0 ? -errno : n;
}

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
		n = read_some(l, buf, sizeof(buf));
		if (n == -EAGAIN)
			return 0;
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return broken(l, n);
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

short redis_link_events(const struct redis_link *l)
{
	bool out = l->out_at < l->out_end && !l->write_wants_read;

	return (short)(POLLIN | (out || l->read_wants_write ? POLLOUT : 0));
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
