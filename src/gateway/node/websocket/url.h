/* SPDX-License-Identifier: BSD-2-Clause */
/* URLs of WebSocket (RFC 6455, section 3). Pure functions. */
#ifndef GATEWAY_NODE_WEBSOCKET_URL_H
#define GATEWAY_NODE_WEBSOCKET_URL_H

#include <stdbool.h>

struct ws_url {
	bool tls;             /* wss:// */
	char host[256];       /* without brackets */
	char port[6];
	char authority[272];  /* "HOST:PORT", IPv6 in brackets */
	char target[1024];    /* path and query */
	char format[64];      /* the extension of the last part of the path; "" none */
};

/* 0, or -EINVAL with the reason in *why. */
int ws_url_parse(struct ws_url *u, const char *text, const char **why);

#endif
