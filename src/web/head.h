/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Heads of HTTP/1.1 messages (RFC 9112): the first line and the fields, and what a file
 * server needs of them. Pure: no sockets, no files, no clock. Strict, so that nobody reads a
 * head in another way than we do: lines end with CR LF, names are followed by the colon, no
 * field goes over two lines, no other control characters.
 */
#ifndef WEB_HEAD_H
#define WEB_HEAD_H

#include <time.h>

#include "util/head_text.h"

#define HEAD_FIELDS_MAX 64

struct head {
	struct head_text first;
	unsigned count;
	struct head_field fields[HEAD_FIELDS_MAX];
	size_t bytes; /* of the whole head, the empty line too */
};

/* 0; -EAGAIN: its end is not there yet; -EBADMSG: not a head; -E2BIG: too many fields. */
int head_parse(struct head *h, const char *text, size_t bytes);
/* The first field of that name, any case. NULL: none. */
const struct head_field *head_find(const struct head *h, const char *name);
/* How many fields have that name. */
unsigned head_count(const struct head *h, const char *name);

enum head_method { HEAD_GET, HEAD_HEAD, HEAD_OTHER };

struct head_request {
	struct head head;
	struct head_text method_text, target;
	enum head_method method;
	unsigned minor; /* of HTTP/1.x */
};

/* As head_parse(); -EPROTONOSUPPORT: another version of HTTP than 1.x. A request of 1.1
 * with no or several Host fields is -EBADMSG. */
int head_request_parse(struct head_request *q, const char *text, size_t bytes);

struct head_answer {
	struct head head;
	unsigned status; /* 100 to 599 */
};

int head_answer_parse(struct head_answer *a, const char *text, size_t bytes);

/*
 * The path that a request's target means: decoded, without query, empty and "." segments,
 * and the slashes at its begin; a slash at its end is kept. -EBADMSG: not a target, or a
 * control character in it; -EACCES: it has a segment ".."; -ENAMETOOLONG.
 */
int head_path(struct head_text target, char *out, size_t room);

/* One range of a Range field, of a file of `size` bytes. -ENOENT: to be ignored (no range of
 * bytes, or several); -ERANGE: there are no such bytes. */
int head_range(struct head_text value, uint64_t size, uint64_t *first, uint64_t *count);

#define HEAD_DATE_BYTES 30
/* "Sun, 06 Nov 1994 08:49:37 GMT" */
void head_date_print(time_t when, char out[HEAD_DATE_BYTES]);
/* That or one of the two older forms. */
bool head_date_parse(struct head_text t, time_t *out);

/* By the end of the file's name. */
const char *head_content_type(const char *path);

#endif
