/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a Redis server is, and as whom it is spoken to: URIs of Redis. Pure functions. */
#ifndef GATEWAY_NODE_REDIS_URI_H
#define GATEWAY_NODE_REDIS_URI_H

#include <stdbool.h>
#include <stdint.h>

struct redis_address {
	bool tls;
	char host[256];
	char port[6];
	char path[108];      /* of a Unix socket; "": TCP */
	char user[256];      /* "": none */
	char password[1024]; /* "": none */
	int64_t db;
};

/*
 * redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], the same with rediss:// (TLS) or tcp://, and
 * unix://[[USER]:PASSWORD@]PATH[/DB]; with %XX in user and password. 0, or -EINVAL with the
 * reason in *why, which does not hold any part of the text.
 */
int redis_uri_parse(struct redis_address *a, const char *text, const char **why);

#endif
