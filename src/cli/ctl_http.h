/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to a gateway over HTTP, for `busbar ctl --url`. */
#ifndef CLI_CTL_HTTP_H
#define CLI_CTL_HTTP_H

#include <jansson.h>

struct ctl_http {
	const char *url;         /* "http://HOST[:PORT]" or "https://..." */
	const char *token_file;  /* NULL: none */
	const char *ca, *cert, *key; /* files for HTTPS; NULL: none */
};

/*
 * Sends one request and waits for its end, also where the gateway makes a job of it. The
 * answer in the form of the control socket, { "status", "body" }, a new reference; NULL after
 * a message.
 */
json_t *ctl_http_ask(const struct ctl_http *h, const char *method, const char *path,
		     const json_t *body, double timeout_s);

#endif
