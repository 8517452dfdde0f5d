/* SPDX-License-Identifier: BSD-2-Clause */
/* The way to a connection: address, TCP, TLS, handshake, each within one time limit. */
#define LOG_ROOM "gateway/websocket"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/base/dial.h"
#include "gateway/node/websocket/websocket.h"
#include "gateway/ws/handshake.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/wakeup.h"

#define ATTEMPT_NS (5 * NSEC_PER_SEC)
#define ANSWER_MAX 8192
#define TOKEN_MAX 512

void ws_link_wait(struct ws_link *l, short events, uint64_t until_ns)
{
	struct pollfd fds[] = { { .fd = l->wake_fd, .events = POLLIN },
				{ .fd = l->socket.fd, .events = events } };

	wakeup_poll(fds, ARRAY_SIZE(fds), until_ns);
}

void ws_link_close(struct ws_link *l)
{
	if (l->socket.tls)
		stream_shut(&l->socket);
	stream_close(&l->socket);
	free(l->early);
	l->early = NULL;
	l->early_len = 0;
}

static struct dial_limit limit_of(const struct ws_link *l, uint64_t until_ns)
{
	return (struct dial_limit){ until_ns, &l->owner->ending, l->wake_fd };
}

/* 0 or -ECANCELED or -ETIMEDOUT. */
static int wait_until(struct ws_link *l, short events, uint64_t until_ns)
{
	const struct dial_limit limit = limit_of(l, until_ns);

	return dial_wait(l->socket.fd, events, &limit);
}

static int dial(struct ws_link *l, uint64_t until_ns, char *why, size_t size)
{
	const struct dial_limit limit = limit_of(l, until_ns);
	int fd = dial_host(l->url.host, l->url.port, &limit, why, size);

	if (fd < 0)
		return fd;
	stream_init(&l->socket, fd);
	return 0;
}

static int greet(struct ws_link *l, uint64_t until_ns, char *why, size_t size)
{
	const struct tls_ops *ops = l->owner->tls_ops;
	bool want_write;
	int ret;

	if (!l->url.tls)
		return 0;
	if (stream_start_tls(&l->socket, ops, l->owner->tls, l->url.host))
		return -ENOMEM;
	while ((ret = ops->greet(l->socket.tls, &want_write)) == -EAGAIN) {
		ret = wait_until(l, want_write ? POLLOUT : POLLIN, until_ns);
		if (ret)
			break;
	}
	if (ret)
		snprintf(why, size, "TLS: %s", ret == -ETIMEDOUT ? strerror(ETIMEDOUT) :
							    ops->reason(l->socket.tls));
	return ret;
}

/* The line with the token; 0 or a negative errno. */
static int read_token(const struct ws_node *s, char *line, size_t size, char *why,
		      size_t why_size)
{
	char token[TOKEN_MAX];
	FILE *f;
	bool good;

	*line = '\0';
	if (!s->token_file)
		return 0;
	f = fopen(s->token_file, "re");
	good = f && fgets(token, sizeof(token), f);
	if (f)
		fclose(f);
	if (good)
		token[strcspn(token, " \t\r\n")] = '\0';
	if (!good || !*token) {
		snprintf(why, why_size, "token_file %s: %s", s->token_file,
			 f ? "there is no token in its first line" : strerror(errno));
		return -EINVAL;
	}
	snprintf(line, size, "Authorization: Bearer %s\r\n", token);
	return 0;
}

static int send_request(struct ws_link *l, const char *key, uint64_t until_ns, char *why,
			size_t size)
{
	char lines[TOKEN_MAX + 32], text[4096];
	size_t len;
	int ret = read_token(l->owner, lines, sizeof(lines), why, size);

	if (ret)
		return ret;
	len = ws_request_write(text, sizeof(text), l->url.authority, l->url.target, key, "live",
			       lines);
	ret = stream_buffer_put(&l->socket.out, text, len) ?: stream_flush(&l->socket, NULL);
	while (!ret && stream_buffer_filled(&l->socket.out))
		ret = wait_until(l, stream_events(&l->socket, false, true), until_ns) ?:
		      stream_flush(&l->socket, NULL);
	return ret;
}

/* The head of the answer; what came behind it is kept. */
static int take_answer(struct ws_link *l, const char *key, uint64_t until_ns, char *why,
		       size_t size)
{
	char *text = malloc(ANSWER_MAX);
	size_t len = 0, used = 0;
	int ret = -EAGAIN;

	while (text && ret == -EAGAIN) {
		ssize_t n = stream_recv(&l->socket, text + len, ANSWER_MAX - len);

		if (n == -EAGAIN) {
			ret = wait_until(l, stream_events(&l->socket, true, false), until_ns);
			ret = ret ? ret : -EAGAIN;
			continue;
		}
		if (n <= 0) {
			snprintf(why, size, "the server has closed the connection");
			ret = -ECONNRESET;
			break;
		}
		len += (size_t)n;
		ret = ws_answer_check(text, len, key, "live", &used, why, size);
	}
	if (!text || ret) {
		free(text);
		return text ? ret : -ENOMEM;
	}
	l->early_len = len - used;
	memmove(text, text + used, l->early_len);
	l->early = text;
	return 0;
}

int ws_link_connect(struct ws_link *l, char *why, size_t size)
{
	uint64_t until_ns = clock_now_ns() + ATTEMPT_NS;
	char key[WS_KEY_SIZE];
	uint8_t bytes[24];
	int ret;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		memset(bytes, 0, sizeof(bytes));
	memcpy(&l->random.state, bytes + 16, sizeof(l->random.state));
	ws_key_write(key, bytes);
	ret = dial(l, until_ns, why, size) ?: greet(l, until_ns, why, size) ?:
	      send_request(l, key, until_ns, why, size) ?:
	      take_answer(l, key, until_ns, why, size);
	if (ret == -ETIMEDOUT)
		snprintf(why, size, "no answer in %d seconds", (int)(ATTEMPT_NS / NSEC_PER_SEC));
	if (ret)
		ws_link_close(l);
	return ret;
}
