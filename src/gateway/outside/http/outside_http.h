/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to a server of HTTP by libcurl, for node-types of gateway/outside. Nothing here
 * waits: outside_http_turn() does what is due, and outside_http_wait() says what to wait for.
 * So the lock of the connection is held for moments only, however slow the server is.
 *
 * Each module that needs this compiles it into itself, because the executable has no libcurl.
 * Connections are kept alive from request to request. Redirects are not followed, proxies not
 * used, and answers bounded in size and time.
 */
#ifndef GATEWAY_OUTSIDE_HTTP_OUTSIDE_HTTP_H
#define GATEWAY_OUTSIDE_HTTP_OUTSIDE_HTTP_H

#include <curl/curl.h>

#include "gateway/outside/outside.h"
#include "gateway/outside/settings.h"

/* A URL with what a node-type appends. */
#define OUTSIDE_HTTP_URL 4096

struct outside_http {
	/* Set before outside_http_open(). */
	struct outside *o;
	const struct outside_tls *tls;
	const char *username, *password; /* for outside_http_call_open(); NULL: none */
	double timeout_s;           /* of a request with its answer */
	size_t answer_max;          /* bytes of an answer; a longer one is an error */
	size_t keep_max;            /* of these, bytes that are kept */

	/* From open to close */
	CURLM *multi;
	struct pollfd fds[OUTSIDE_FDS];
	unsigned count;
	uint64_t due_ns;            /* of clock_now_ns(): when libcurl wants to be called */
};

/* One request at a time, with its answer. */
struct outside_http_call {
	struct outside_http *http;
	CURL *easy;
	struct curl_slist *headers;
	/*
	 * The answer is there (`ret` 0), or will not come: a negative errno, with the reason in
	 * o->why. May begin the next request. Returns 0, or an errno of a broken connection.
	 */
	int (*done)(struct outside_http_call *call, int ret);
	bool busy;
	unsigned attempts;          /* libcurl sends it again on another connection, if a kept one
				     * turns out to be closed */
	unsigned long head_bytes;

	long status;
	double retry_after_s;       /* 0: the answer does not say */
	char *answer;               /* terminated; NULL: none */
	size_t answer_len, answer_size;
	char error[CURL_ERROR_SIZE];
};

/* Of type_start() and type_stop(). */
int outside_http_type_start(struct services *services);
int outside_http_type_stop(void);

/*
 * Checks the address `url` of key `key`, http:// or https://, against the group `ssl`, which
 * it parses. Warns where one of the keys `secrets`, up to a NULL, would go in plain text. 0, or
 * -EINVAL after config_fail().
 */
int outside_http_parse(struct outside_tls *tls, struct config *c, const json_t *cfg,
		       const char *key, const char *url, const char *const secrets[]);
/* Appends a name in the spelling of URLs. False: there is no room. */
bool outside_http_append(char url[OUTSIDE_HTTP_URL], const char *before, const char *name);

/* 0, or a negative errno with the reason in o->why. */
int outside_http_open(struct outside_http *h);
/* Ends all, also calls that are busy, without telling them; their memory is freed by
 * outside_http_call_close(), which comes first. */
void outside_http_close(struct outside_http *h);

int outside_http_call_open(struct outside_http_call *call, struct outside_http *h,
			   int (*done)(struct outside_http_call *call, int ret));
/* A header of all requests, "Name: value". 0 or -ENOMEM. */
int outside_http_call_header(struct outside_http_call *call, const char *header);
void outside_http_call_close(struct outside_http_call *call);

/* Begins a request; `body` stays until `done`. 0 or a negative errno with o->why. */
int outside_http_begin(struct outside_http_call *call, const char *method, const char *url,
		       const char *body, size_t len);

/* As outside_ops.turn() and wait(). */
int outside_http_turn(struct outside_http *h);
unsigned outside_http_wait(struct outside_http *h, struct pollfd fds[OUTSIDE_FDS],
			   uint64_t *until_ns);

/* What an answer of an error says, for messages: "400, partial write: ...". Returns buf. */
const char *outside_http_reason(const struct outside_http_call *call, char *buf, size_t size);
/* Until when to wait with the next request, after an answer 429 or 503. */
uint64_t outside_http_later_ns(const struct outside_http_call *call);

static inline bool outside_http_is_good(const struct outside_http_call *call)
{
	return call->status >= 200 && call->status < 300;
}

static inline bool outside_http_is_later(const struct outside_http_call *call)
{
	return call->status == 429 || call->status == 503;
}

#endif
