/* SPDX-License-Identifier: BSD-2-Clause */
/* See socket_client.h. */
#include "gateway/control/socket_client.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_to(const char *path, char *why, size_t size)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd;

	if (!len || len >= sizeof(a.sun_path)) {
		snprintf(why, size, "%s: expected a path of 1 to %zu characters", path,
			 sizeof(a.sun_path) - 1);
		return -EINVAL;
	}
	memcpy(a.sun_path, path, len);
	if (path[0] == '@')
		a.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 &&
	    !connect(fd, (const struct sockaddr *)&a,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len +
				 (path[0] != '@'))))
		return fd;
	snprintf(why, size, "%s: %s; is the gateway running with this control socket?", path,
		 strerror(errno));
	if (fd >= 0)
		close(fd);
	return -EIO;
}

static json_t *read_answer(FILE *f, double timeout_s, char *why, size_t size)
{
	const struct timeval t = { .tv_sec = (time_t)timeout_s,
				   .tv_usec = (suseconds_t)(fmod(timeout_s, 1) * 1e6) };
	json_t *answer;

	setsockopt(fileno(f), SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	answer = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL);
	if (answer)
		return answer;
	if (ferror(f) && errno == EAGAIN)
		snprintf(why, size, "no answer within %g s", timeout_s);
	else
		snprintf(why, size, ferror(f) || feof(f) ? "the gateway closed the connection" :
							   "the answer is no JSON");
	return NULL;
}

json_t *control_client_ask(const char *path, const char *method, const char *target,
			   json_t *body, double timeout_s, char *why, size_t size)
{
	json_t *o = json_pack("{ss ss sO*}", "method", method, "path", target, "body", body);
	json_t *answer = NULL;
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	int fd = connect_to(path, why, size);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	json_decref(o);
	if (f && (!text || send(fd, text, strlen(text), MSG_NOSIGNAL) < 0 ||
		  send(fd, "\n", 1, MSG_NOSIGNAL) < 0))
		snprintf(why, size, "%s", text ? strerror(errno) : "no memory");
	else if (f)
		answer = read_answer(f, timeout_s, why, size);
	else if (fd >= 0)
		snprintf(why, size, "%s", strerror(errno));
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	free(text);
	return answer;
}
