/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of HTTP/1.1 messages: those of answers, and what is checked of requests before
 * anything else. Pure functions. */
#ifndef GATEWAY_HTTP_HEAD_H
#define GATEWAY_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct http_head {
	int status;
	const char *type;      /* NULL: no body */
	uint64_t length;
	bool keep;             /* the connection stays */
	bool challenge;        /* WWW-Authenticate */
	unsigned retry_s;      /* 0: none */
	const char *allow;     /* methods; NULL: none */
	const char *location;  /* NULL: none */
	const char *origin;    /* that may read the answer; NULL: none */
	const char *cache;     /* NULL: not to be kept */
	const char *encoding;  /* NULL: none */
	const char *more;      /* whole lines; NULL: none */
};

/* Writes the header with the empty line behind it. Its length; 0: no room. */
size_t http_head_write(char *to, size_t size, const struct http_head *h);

/*
 * Whether a page of `origin` may use a server that it calls `host` (the header Host, NULL:
 * none): its own page, or one of `allowed` (list of texts, or NULL). The origin "null" is
 * nobody's.
 */
bool http_origin_fits(const char *origin, const char *host, bool tls,
		      const json_t *allowed);
/* Whether `host` names this host by a number or as "localhost": another name may have
 * been chosen by a page that wants to reach us through a browser. */
bool http_host_is_local(const char *host);
/* Whether it is "localhost", an address of 127.0.0.0/8 or ::1. To these and by HTTPS browsers tell
 * which site a request comes from (Sec-Fetch-Site), to others such as 0.0.0.0 they do not. */
bool http_host_is_loopback(const char *host);

/* The value of Content-Length: at most 15 digits, and nothing else. -1: it is not. */
int64_t http_length_parse(const char *text);
/* "application/json; charset=utf-8" is `type` without parameters. */
bool http_type_is(const char *value, const char *type);

/*
 * What a client asked by the header Prefer (RFC 7240): wait=N seconds, at most `max`, or
 * respond-async, which is 0. `otherwise` without.
 */
double http_prefer_wait(const char *prefer, double otherwise, double max);

#endif
