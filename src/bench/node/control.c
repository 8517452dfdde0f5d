/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the control socket of a gateway; see gateway.h and busbar-ctl(1). */
#define LOG_ROOM "bench/node"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/node/gateway.h"
#include "util/clock.h"
#include "util/log.h"

static int open_socket(const struct bench_node_gateway *g)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd;

	if (snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s.sock", g->dir,
		     g->name) >= (int)sizeof(a.sun_path))
		return log_fail(-ENAMETOOLONG,
				"'%s' is too long for a socket; choose another TMPDIR", g->dir);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	log_error("cannot connect to '%s': %s", a.sun_path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -ECONNREFUSED;
}

/* One line, malloc()ed without its end; NULL: it did not come in time. */
static char *read_line(int fd, double seconds)
{
	uint64_t until = clock_monotonic_ns_slow() + (uint64_t)(seconds * 1e9);
	size_t used = 0, size = 0;
	char *line = NULL;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = clock_monotonic_ns_slow();
		ssize_t n;

		if (used + 1 >= size) {
			char *more = realloc(line, size + 65536);

			if (!more)
				break;
			line = more;
			size += 65536;
		}
		if (now >= until || poll(&p, 1, (int)((until - now) / 1000000) + 1) < 0)
			break;
		n = p.revents ? read(fd, line + used, size - used - 1) : 0;
		if (n <= 0 && p.revents)
			break;
		used += (size_t)n;
		line[used] = '\0';
		if (used && line[used - 1] == '\n')
			return line;
	}
	free(line);
	return NULL;
}

static json_t *body_of(const struct bench_node_gateway *g, const char *path,
		       const char *line)
{
	json_error_t err;
	json_t *answer = line ? json_loads(line, 0, &err) : NULL, *body;
	json_int_t status = json_integer_value(json_object_get(answer, "status"));

	body = json_incref(json_object_get(answer, "body"));
	json_decref(answer);
	if (status == 200 && body)
		return body;
	log_error("the gateway of the %s %s %s%s%s", g->name,
		  line ? "refuses" : "does not answer", path,
		  body ? ": " : "",
		  body ? json_string_value(json_object_get(body, "error")) : "");
	json_decref(body);
	return NULL;
}

json_t *bench_node_gateway_ask(const struct bench_node_gateway *g, const char *method,
			       const char *path, double seconds)
{
	char request[256], *line = NULL;
	json_t *body;
	int fd = open_socket(g), n;

	if (fd < 0)
		return NULL;
	n = snprintf(request, sizeof(request), "{\"method\": \"%s\", \"path\": \"%s\"}\n",
		     method, path);
	if (n < (int)sizeof(request) && send(fd, request, (size_t)n, MSG_NOSIGNAL) == n)
		line = read_line(fd, seconds);
	close(fd);
	body = body_of(g, path, line);
	free(line);
	return body;
}

int64_t bench_node_gateway_counter(const struct bench_node_gateway *g, const char *node,
				   const char *counter)
{
	char path[128];
	json_t *body, *value;
	int64_t number = -1;

	snprintf(path, sizeof(path), "/node/%s", node);
	body = bench_node_gateway_ask(g, "GET", path, 5);
	value = json_object_get(json_object_get(body, "stats"), counter);
	if (value)
		number = json_integer_value(value);
	else if (body)
		log_error("the gateway of the %s does not tell '%s' of node %s", g->name,
			  counter, node);
	json_decref(body);
	return number;
}
