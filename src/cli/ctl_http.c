/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See ctl_http.h. One connection for each request: header and body are read to the end,
 * which has to be where Content-Length says.
 */
#include "cli/ctl_http.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "gateway/base/dial.h"
#include "gateway/control/query.h"
#include "gateway/node/websocket/url.h"
#include "gateway/plugin/plugin.h"
#include "gateway/tls/tls_client.h"
#include "util/clock.h"
#include "util/container_of.h"

#define PREFIX "/api/v2"
#define ANSWER_MAX (64 << 20)
#define WAIT_MAX_S 60
#define LOOK_NS 100000000

struct link {
	int fd;
	const struct tls_client_ops *ops; /* NULL: no TLS */
	struct tls_client *tls;
};

static void say(const struct ctl_http *h, const char *why)
{
	fprintf(stderr, "busbar ctl: %s: %s\n", h->url, why);
}

static int parse_url(const struct ctl_http *h, struct ws_url *u)
{
	const char *why;

	if (!strncasecmp(h->url, "http", 4) && !ws_url_parse(u, h->url, &why) &&
	    !strcmp(u->target, "/"))
		return 0;
	say(h, "expected http://HOST[:PORT] or https://HOST[:PORT]");
	return -EINVAL;
}

/* A descriptor whose calls wait for so long. */
static int connect_to(const struct ctl_http *h, const struct ws_url *u, double timeout_s)
{
	const struct dial_limit limit = {
		.until_ns = clock_now_ns() + (uint64_t)(timeout_s * 1e9), .wake_fd = -1,
	};
	const struct timeval t = { .tv_sec = (time_t)timeout_s,
				   .tv_usec = (suseconds_t)(fmod(timeout_s, 1) * 1e6) };
	char why[200];
	int fd = dial_host(u->host, u->port, &limit, why, sizeof(why));

	if (fd < 0) {
		say(h, why);
		return fd;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	return fd;
}

static int start_tls(const struct ctl_http *h, const struct ws_url *u, struct link *l)
{
	const struct tls_client_settings s = { u->host, h->ca, h->cert, h->key };
	char error[200] = "no memory";

	l->ops = plugin_symbol("http_tls", "http_tls_client");
	if (!l->ops)
		return -ENOTSUP;
	l->tls = l->ops->open(l->fd, &s, error, sizeof(error));
	if (l->tls)
		return 0;
	say(h, error);
	return -EPROTO;
}

static int link_open(const struct ctl_http *h, const struct ws_url *u, double timeout_s,
		     struct link *l)
{
	*l = (struct link){ .fd = connect_to(h, u, timeout_s) };
	if (l->fd < 0)
		return l->fd;
	if (!u->tls || !start_tls(h, u, l))
		return 0;
	close(l->fd);
	return -EPROTO;
}

static void link_close(struct link *l)
{
	if (l->tls)
		l->ops->close(l->tls);
	close(l->fd);
}

static int link_write(struct link *l, const char *text, size_t len)
{
	while (len) {
		ssize_t n = l->tls ? l->ops->write(l->tls, text, len) :
				     send(l->fd, text, len, MSG_NOSIGNAL);

		if (n <= 0)
			return -EIO;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/*
 * All that comes, ended by a zero byte. NULL: the time is over, or it is too long, or was cut. After
 * a whole answer an abrupt end does no harm, as its length is checked.
 */
static char *link_read(struct link *l, size_t *len)
{
	char piece[16384], *text = NULL;
	FILE *f = open_memstream(&text, len);
	bool whole = false;

	for (ssize_t n = 1; f && n > 0 && !whole && ftell(f) < ANSWER_MAX;) {
		n = l->tls ? l->ops->read(l->tls, piece, sizeof(piece)) :
			     recv(l->fd, piece, sizeof(piece), 0);
		whole = n == 0 || (n < 0 && errno != EAGAIN && ftell(f));
		if (n > 0)
			fwrite(piece, 1, (size_t)n, f);
	}
	if (f && !fclose(f) && whole)
		return text;
	free(text);
	return NULL;
}

/* The first token of the file: the last word of its first line that is not a comment, so
 * that the server's own file with one token serves, too. */
static int read_token(const char *path, char *token, size_t size)
{
	FILE *f = fopen(path, "re");
	char line[1024], *word, *save;
	struct stat st;

	*token = '\0';
	if (!f) {
		fprintf(stderr, "busbar ctl: --token-file %s: %s\n", path, strerror(errno));
		return -errno;
	}
	if (!fstat(fileno(f), &st) && S_ISREG(st.st_mode) && st.st_mode & 077)
		fprintf(stderr, "busbar ctl: warning: others can read --token-file %s\n", path);
	while (!*token && fgets(line, sizeof(line), f))
		for (word = strtok_r(line, " \t\r\n", &save); word && line[0] != '#';
		     word = strtok_r(NULL, " \t\r\n", &save))
			snprintf(token, size, "%s", word);
	fclose(f);
	if (*token)
		return 0;
	fprintf(stderr, "busbar ctl: --token-file %s: there is no token in it\n", path);
	return -EINVAL;
}

static char *make_request(const struct ctl_http *h, const struct ws_url *u, const char *method,
			  const char *path, const json_t *body, double timeout_s)
{
	char *text = NULL, *json = NULL, token[1000] = "", target[2048];
	bool own = !strncmp(path, PREFIX "/", sizeof(PREFIX));
	size_t len;
	FILE *f;

	if (h->token_file && read_token(h->token_file, token, sizeof(token)))
		return NULL;
	/* What is encoded stays so; a name on the command line may not be. */
	if (query_encode(path, strlen(path), "/?&=%:,;", target, sizeof(target))) {
		say(h, "the path is too long");
		return NULL;
	}
	f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	fprintf(f, "%s %s%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nPrefer: wait=%d\r\n",
		method, own ? "" : PREFIX, target, u->authority,
		(int)MIN(timeout_s, (double)WAIT_MAX_S));
	if (*token)
		fprintf(f, "Authorization: Bearer %s\r\n", token);
	if (body)
		json = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
	if (json)
		fprintf(f, "Content-Type: application/json\r\n");
	fprintf(f, "Content-Length: %zu\r\n\r\n%s", json ? strlen(json) : 0, json ? json : "");
	free(json);
	explicit_bzero(token, sizeof(token));
	return fclose(f) ? (free(text), NULL) : text;
}

/* The value of a header field, up to its line's end; NULL: there is none. */
static const char *field(const char *head, const char *name)
{
	size_t len = strlen(name);

	for (const char *s = strstr(head, "\r\n"); s; s = strstr(s + 2, "\r\n"))
		if (!strncasecmp(s + 2, name, len) && s[2 + len] == ':')
			return s + 3 + len + strspn(s + 3 + len, " \t");
	return NULL;
}

/* { "status", "body" } of an answer; NULL: it is none. *place: where a job is, to be freed. */
static json_t *parse_answer(char *text, size_t len, char **place)
{
	char *body = strstr(text, "\r\n\r\n"), type[128];
	const char *length, *location, *t;
	json_t *o = NULL;
	int status;

	if (!body || sscanf(text, "HTTP/1.%*1d %3d", &status) != 1)
		return NULL;
	body[2] = '\0';
	body += 4;
	len -= (size_t)(body - text);
	length = field(text, "content-length");
	if (length && strtoull(length, NULL, 10) != len)
		return NULL;
	t = field(text, "content-type");
	snprintf(type, sizeof(type), "%.*s", t ? (int)strcspn(t, "\r") : 0, t ? t : "");
	location = field(text, "location");
	if (status == 202 && location)
		*place = strndup(location, strcspn(location, "\r"));
	if (!strncmp(type, "application/json", 16))
		o = json_loadb(body, len, JSON_DECODE_ANY, NULL);
	else if (len)
		o = json_pack("{ss ss%}", "type", type, "text", body, len);
	return json_pack("{si so}", "status", status, "body", o ? o : json_object());
}

static json_t *ask_once(const struct ctl_http *h, const struct ws_url *u, const char *method,
			const char *path, const json_t *body, double timeout_s, char **place)
{
	char *request = make_request(h, u, method, path, body, timeout_s), *text = NULL;
	json_t *answer = NULL;
	struct link l;
	size_t len;

	*place = NULL;
	if (!request)
		return NULL;
	if (!link_open(h, u, timeout_s, &l)) {
		if (!link_write(&l, request, strlen(request)))
			text = link_read(&l, &len);
		link_close(&l);
		if (text)
			answer = parse_answer(text, len, place);
		if (!answer)
			say(h, text ? "the answer is not of a gateway" : "no answer in time");
	}
	explicit_bzero(request, strlen(request));
	free(request);
	free(text);
	return answer;
}

/* Asks for a job until it is done; its answer is that of the request. */
static json_t *wait_for_job(const struct ctl_http *h, const struct ws_url *u,
			    const char *place, uint64_t end_ns)
{
	for (;;) {
		uint64_t now = clock_now_ns();
		char *other = NULL;
		double left_s = now < end_ns ? MAX((double)(end_ns - now) / 1e9, 1) : 0;
		json_t *answer = left_s > 0 ? ask_once(h, u, "GET", place, NULL, left_s, &other) : NULL;
		json_t *job = json_object_get(answer, "body"), *done = NULL;
		const char *state = json_string_value(json_object_get(job, "state"));

		free(other);
		if (!answer) {
			say(h, "the command is not through yet");
			return NULL;
		}
		if (!state)
			return answer;
		if (!strcmp(state, "done"))
			done = json_pack("{sO sO}", "status",
					 json_object_get(job, "status"), "body",
					 json_object_get(job, "body"));
		json_decref(answer);
		if (done)
			return done;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
}

json_t *ctl_http_ask(const struct ctl_http *h, const char *method, const char *path,
		     const json_t *body, double timeout_s)
{
	uint64_t end_ns;
	json_t *answer, *job;
	struct ws_url u;
	char *place;

	if (parse_url(h, &u))
		return NULL;
	clock_init();
	end_ns = clock_now_ns() + (uint64_t)(timeout_s * 1e9);
	answer = ask_once(h, &u, method, path, body, timeout_s, &place);
	if (answer && place) {
		job = wait_for_job(h, &u, place, end_ns);
		json_decref(answer);
		answer = job;
	}
	free(place);
	return answer;
}
