/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What heads of HTTP/1.1 messages consist of (RFC 9112, RFC 9110): fields, words, lists, numbers,
 * versions, %XX. Pure. It reads no whole head: web/head.h and gateway/http/parse.h do,
 * each with the rules, limits and answers of its own server.
 */
#ifndef UTIL_HEAD_TEXT_H
#define UTIL_HEAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A part of the text that was parsed; valid as long as that. Not ended by a NUL. */
struct head_text {
	const char *at;
	size_t bytes;
};

struct head_field {
	struct head_text name, value; /* the value without blanks around it */
};

static inline struct head_text head_text_of(const char *s)
{
	return (struct head_text){ s, strlen(s) };
}

/* A control character other than the tab: no line has one. */
bool head_is_control(char c);
/* A name or a method (RFC 9110, 5.6.2). */
bool head_is_token(struct head_text t);
/* Is it this word, in any case? */
bool head_is(struct head_text t, const char *word);
/* Is it in a list with commas, in any case? */
bool head_lists(struct head_text list, struct head_text word);
/* Decimal digits only, below 2^63. */
bool head_number(struct head_text t, uint64_t *out);
/* The byte that "%XX" at the start of `t` means; -1: there is no such sequence. */
int head_escaped(struct head_text t);

/* A line without its end. -EBADMSG: no colon, a name that is no token (a blank before the
 * colon, a folded line), or a control character. */
int head_field_parse(struct head_text line, struct head_field *out);
/* Cuts the first line of a request at its first two spaces. -EBADMSG: it has fewer. */
int head_request_split(struct head_text line, struct head_text *method,
		       struct head_text *target, struct head_text *version);
/* "HTTP/1.x". -EBADMSG: no version; -EPROTONOSUPPORT: another than 1.x. */
int head_version_parse(struct head_text t, unsigned *minor);

/* "Not Found" */
const char *head_reason(unsigned status);

#endif
