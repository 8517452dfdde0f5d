/* SPDX-License-Identifier: BSD-2-Clause */
/* See answer.h. Conditions and ranges as RFC 9110, 13 and 14 have them. */
#include "web/answer.h"

#include <busbar/ripc.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "web/head.h"

#define HEAD_ROOM 8192
#define TAG_ROOM 64
#define TRIES 3

struct job {
	struct server *s;
	struct head_request q;
	char path[PATH_MAX];
	struct store_file file;
	char tag[TAG_ROOM], modified[HEAD_DATE_BYTES];
	struct answer *out;
};

static void add(struct answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What does not fit is cut; nothing but the path in a Location is long. */
static void add(struct answer *a, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(a->head + a->head_bytes, HEAD_ROOM - a->head_bytes, format, args);
	va_end(args);
	if (n > 0)
		a->head_bytes += (size_t)n < HEAD_ROOM - a->head_bytes ?
				 (size_t)n : HEAD_ROOM - a->head_bytes - 1;
}

/* The first lines of all answers. */
static void begin(struct job *j, unsigned status)
{
	const struct head_field *number = head_find(&j->q.head, "Ripc-Request");
	char date[HEAD_DATE_BYTES];
	uint64_t n;

	head_date_print(time(NULL), date);
	add(j->out, "HTTP/1.1 %u %s\r\nDate: %s\r\nServer: busbar\r\n", status,
	    head_reason(status), date);
	if (number && head_number(number->value, &n))
		add(j->out, "Ripc-Request: %" PRIu64 "\r\n", n);
}

/* An answer without a file. `field`: one more, with its end of line. */
static void answer_status(struct job *j, unsigned status, const char *field, const char *why)
{
	char text[400];
	int n = snprintf(text, sizeof(text), "%u %s: %s\n", status, head_reason(status), why);

	begin(j, status);
	add(j->out, "Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n%s\r\n",
	    n, field);
	/* Behind the head: both are in registered memory. */
	if (j->q.method == HEAD_HEAD || j->out->head_bytes + (size_t)n >= HEAD_ROOM)
		return;
	memcpy(j->out->head + j->out->head_bytes, text, (size_t)n);
	j->out->content = j->out->head + j->out->head_bytes;
	j->out->content_bytes = (size_t)n;
}

static bool same_text(struct head_text t, const char *text)
{
	return t.bytes == strlen(text) && !memcmp(t.at, text, t.bytes);
}

/* Has the client what the file is? */
static bool is_unchanged(const struct job *j)
{
	const struct head_field *tag = head_find(&j->q.head, "If-None-Match");
	const struct head_field *since = head_find(&j->q.head, "If-Modified-Since");
	const struct head_text mine = { j->tag, strlen(j->tag) };
	time_t when;

	if (tag)
		return same_text(tag->value, "*") || head_lists(tag->value, mine);
	return since && head_date_parse(since->value, &when) &&
	       j->file.stat.st_mtim.tv_sec <= when;
}

/* The part that is asked for; the status, 416 with *why. */
static unsigned choose(const struct job *j, uint64_t *first, uint64_t *count)
{
	const struct head_field *range = head_find(&j->q.head, "Range");
	const struct head_field *of = head_find(&j->q.head, "If-Range");
	uint64_t size = (uint64_t)j->file.stat.st_size;
	int ret;

	*first = 0;
	*count = size;
	if (!range || j->q.method != HEAD_GET ||
	    (of && !same_text(of->value, j->tag) && !same_text(of->value, j->modified)))
		return 200;
	ret = head_range(range->value, size, first, count);
	return ret == -ERANGE ? 416 : ret ? 200 : 206;
}

static void answer_head(struct job *j, unsigned status, uint64_t first, uint64_t count)
{
	begin(j, status);
	add(j->out, "Last-Modified: %s\r\nETag: %s\r\nAccept-Ranges: bytes\r\n", j->modified,
	    j->tag);
	if (status == 206)
		add(j->out, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n",
		    first, first + count - 1, (uint64_t)j->file.stat.st_size);
	if (status != 304)
		add(j->out, "Content-Type: %s\r\nX-Content-Type-Options: nosniff\r\n"
		    "Content-Length: %" PRIu64 "\r\n", head_content_type(j->path), count);
	add(j->out, "\r\n");
}

/* -EBUSY: the file has changed meanwhile, nothing was answered. */
static int answer_file(struct job *j)
{
	uint64_t first, count;
	unsigned status = choose(j, &first, &count);
	char field[80], why[120];
	int ret;

	if (status == 416) {
		snprintf(field, sizeof(field), "Content-Range: bytes */%" PRIu64 "\r\n",
			 (uint64_t)j->file.stat.st_size);
		answer_status(j, status, field, "the file has no such bytes");
		return 0;
	}
	if (j->q.method == HEAD_GET && count > j->s->content_max) {
		snprintf(why, sizeof(why), "one answer has at most %zu bytes, ask for ranges",
			 j->s->content_max);
		answer_status(j, 503, "Accept-Ranges: bytes\r\n", why);
		return 0;
	}
	if (j->q.method == HEAD_GET && count) {
		ret = store_get(j->s->store, j->path, &j->file, first, count, &j->out->piece);
		if (ret)
			return ret;
		j->out->has_piece = true;
		j->out->content = j->out->piece.data;
		j->out->content_bytes = (size_t)count;
	}
	answer_head(j, status, first, count);
	return 0;
}

/* A folder without its slash: links in its page would be relative to the folder above. */
static void answer_moved(struct job *j)
{
	struct head_text t = j->q.target;
	const char *query = memchr(t.at, '?', t.bytes);
	char field[HEAD_ROOM / 2];
	int n = (int)(query ? (size_t)(query - t.at) : t.bytes);

	/* "//host" would be another host. */
	while (n > 1 && t.at[0] == '/' && t.at[1] == '/')
		t.at++, n--;
	if (n > (int)sizeof(field) - 40) {
		answer_status(j, 404, "", "a folder; its name ends with /");
		return;
	}
	snprintf(field, sizeof(field), "Location: %.*s/\r\n", n, t.at);
	answer_status(j, 301, field, "a folder");
}

static void answer_error(struct job *j, int err)
{
	if (err == -ENOENT)
		answer_status(j, 404, "", "there is no such file");
	else if (err == -EACCES || err == -ELOOP)
		answer_status(j, 403, "", err == -ELOOP ? "symbolic links are not followed" :
			      "not to be read");
	else if (err == -EBUSY)
		answer_status(j, 503, "Retry-After: 1\r\n", "the file is being changed");
	else
		answer_status(j, err == -ENOBUFS ? 503 : 500, "", strerror(-err));
}

/* `path` is open. True: answered. */
static bool answer_found(struct job *j, int *err)
{
	struct stat *is = &j->file.stat;

	if (S_ISDIR(is->st_mode)) {
		size_t n = strlen(j->path);

		if (n && j->path[n - 1] != '/') {
			answer_moved(j);
			return true;
		}
		if (n + sizeof("index.html") > sizeof(j->path))
			*err = -ENOENT;
		else
			strcpy(j->path + n, "index.html");
		return *err != 0;
	}
	snprintf(j->tag, sizeof(j->tag), "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 ".%lx\"",
		 (uint64_t)is->st_ino, (uint64_t)is->st_size, (uint64_t)is->st_mtim.tv_sec,
		 (unsigned long)is->st_mtim.tv_nsec);
	head_date_print(is->st_mtim.tv_sec, j->modified);
	if (is_unchanged(j))
		answer_head(j, 304, 0, 0);
	else
		*err = answer_file(j);
	return true;
}

static void answer_path(struct job *j)
{
	int ret = -EBUSY;

	/* A folder is looked up again as its page. */
	for (unsigned i = 0; i < TRIES + 1 && ret == -EBUSY; i++) {
		bool done;

		ret = store_look(j->s->store, j->path, &j->file);
		if (ret)
			break;
		done = answer_found(j, &ret);
		store_leave(&j->file);
		if (done && !ret)
			return;
		if (!done)
			ret = -EBUSY;
	}
	answer_error(j, ret);
}

static void answer(struct job *j, const char *text, size_t bytes)
{
	int ret = head_request_parse(&j->q, text, bytes);

	if (ret) {
		/* Nothing of it is known, not even the number. */
		j->q.head.count = 0;
		j->q.method = HEAD_OTHER;
		answer_status(j, ret == -EPROTONOSUPPORT ? 505 : ret == -E2BIG ? 431 : 400, "",
			      "not a request of HTTP/1.1");
		return;
	}
	if (j->q.method == HEAD_OTHER) {
		answer_status(j, 405, "Allow: GET, HEAD\r\n", "files are only read");
		return;
	}
	ret = head_path(j->q.target, j->path, sizeof(j->path));
	if (!ret)
		answer_path(j);
	else if (ret == -EACCES)
		answer_status(j, 403, "", "the path leads out of the folder");
	else
		answer_status(j, ret == -ENAMETOOLONG ? 414 : 400, "", "not a path");
}

int answer_make(struct server *s, const char *text, size_t bytes, struct answer *out)
{
	struct job j = { .s = s, .out = out };

	*out = (struct answer){ .head = ripc_alloc(s->r, HEAD_ROOM) };
	if (!out->head)
		return -ENOBUFS;
	answer(&j, text, bytes);
	return 0;
}

void answer_free(struct server *s, struct answer *a)
{
	if (a->has_piece)
		store_put(s->store, &a->piece);
	ripc_free(s->r, a->head);
}
