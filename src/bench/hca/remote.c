/* SPDX-License-Identifier: BSD-2-Clause */
/* The side that asks; see remote.h. */
#define LOG_ROOM "bench/hca"
#include "bench/hca/remote.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/base/lookup.h"
#include "util/log.h"

/* "HOST", "HOST:PORT", "[IPV6]:PORT"; an empty HOST is any address. *port points into the
 * text, or is HCA_PORT. 0 or -EINVAL. */
static int split_address(const char *text, char host[HCA_HOST_MAX], const char **port)
{
	const char *end = text + strlen(text), *start = text, *colon = strrchr(text, ':');

	*port = HCA_PORT;
	if (*text == '[') {
		start = text + 1;
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return -EINVAL;
		if (end[1])
			*port = end + 2;
	} else if (colon && colon == strchr(text, ':')) {
		end = colon;
		*port = colon + 1;
	}
	if (end - start >= HCA_HOST_MAX || !**port)
		return -EINVAL;
	memcpy(host, start, (size_t)(end - start));
	host[end - start] = '\0';
	return 0;
}

int hca_socket_open(const char *text, bool serve)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = serve ? AI_PASSIVE : 0 };
	struct addrinfo *found;
	char host[HCA_HOST_MAX];
	const char *port;
	const int one = 1;
	int fd = -1, err;

	if (split_address(text, host, &port))
		return log_fail(-EINVAL,
				"'%.80s' is no address, expected HOST, HOST:PORT or [IPV6]:PORT",
				text);
	err = lookup_address(*host ? host : NULL, port, &hints, &found);
	if (err)
		return log_fail(-EADDRNOTAVAIL, "cannot resolve '%.80s': %s", text,
				err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	err = ENOENT;
	for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (serve ? bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 4) :
			    connect(fd, a->ai_addr, a->ai_addrlen)) {
			err = errno;
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(found);
	if (fd >= 0)
		return fd;
	return log_fail(-err, "cannot %s '%.80s': %s", serve ? "listen on" : "reach", text,
			strerror(err));
}

void hca_socket_tune(int fd)
{
	const struct timeval patience = { .tv_sec = 10 };
	const int one = 1, idle_s = 10, every_s = 5, probes = 4;
	const unsigned gone_ms = 30000; /* idle, and the probes */

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	/* A host that was cut off says nothing; its case would be measured for ever. */
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &gone_ms, sizeof(gone_ms));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

static int send_all(int fd, const void *data, size_t len)
{
	for (const char *p = data; len;) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -errno;
		p += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int hca_text_send(int fd, const char *text)
{
	uint32_t len = htole32((uint32_t)strlen(text));
	int ret = send_all(fd, &len, sizeof(len));

	return ret ?: send_all(fd, text, strlen(text));
}

static int receive_all(int fd, void *data, size_t len)
{
	ssize_t n = recv(fd, data, len, MSG_WAITALL);

	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return (size_t)n == len ? 0 : -ECONNRESET;
}

int hca_text_receive(int fd, char **text)
{
	uint32_t len;
	int ret = receive_all(fd, &len, sizeof(len));

	*text = NULL;
	if (ret)
		return ret;
	len = le32toh(len);
	if (len > HCA_TEXT_MAX)
		return -EMSGSIZE;
	*text = calloc(1, len + 1);
	if (!*text)
		return -ENOMEM;
	ret = receive_all(fd, *text, len);
	if (ret) {
		free(*text);
		*text = NULL;
	}
	return ret;
}

static int hand_over(int fd, const json_t *parameters, double scale)
{
	json_t *all = json_pack("{s:O, s:f}", "parameters", (json_t *)parameters, "scale", scale);
	char *text = all ? json_dumps(all, JSON_COMPACT) : NULL, *answer = NULL;
	int ret = text ? hca_text_send(fd, text) : -ENOMEM;

	json_decref(all);
	free(text);
	if (!ret)
		ret = hca_text_receive(fd, &answer);
	if (ret)
		log_error("the server does not answer: %s", strerror(-ret));
	else if (*answer)
		log_error("the server refuses: %.200s", answer);
	if (!ret && *answer)
		ret = -ECONNREFUSED;
	free(answer);
	return ret;
}

int hca_remote_connect(const char *peer, const json_t *parameters, double scale)
{
	int fd = hca_socket_open(peer, false), ret;

	if (fd < 0)
		return fd;
	hca_socket_tune(fd);
	ret = hand_over(fd, parameters, scale);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}
