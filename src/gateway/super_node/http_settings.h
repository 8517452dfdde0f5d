/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The group `http` of a configuration: where the HTTP server listens, who may do what, and
 * its limits. This room checks the settings; gateway/http/ acts on them.
 */
#ifndef GATEWAY_SUPER_NODE_HTTP_SETTINGS_H
#define GATEWAY_SUPER_NODE_HTTP_SETTINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct config;

/* What somebody may do; each role includes those before it. */
enum http_role {
	HTTP_NOBODY,
	HTTP_WATCH,     /* look at everything */
	HTTP_OPERATE,   /* start, stop, pause, reset */
	HTTP_CONFIGURE, /* give another configuration, which may start programs; end */
};

/* "watch", "operate", "configure", in this order; NULL terminated. */
extern const char *const http_role_names[];
/* Length-limited, for parts of lines; HTTP_NOBODY when there is no such role. */
enum http_role http_role_parse(const char *name, size_t len);

/* Settings that messages name. */
enum http_setting {
	HTTP_PORT, HTTP_ADDRESS, HTTP_SSL_CERT, HTTP_SSL_PRIVATE_KEY, HTTP_SSL_CA,
	HTTP_TOKEN_FILE, HTTP_MAX_CONNECTIONS,
	HTTP_SETTINGS,
};

/* Texts and JSON are borrowed from the configuration. */
struct http_settings {
	bool wanted;           /* the group is there and enabled */
	bool enabled;
	int64_t port;          /* 0: 8080, or 80 for root; -1: any free one */
	const char *address;   /* a numeric address, or "*" */
	const char *ssl_cert, *ssl_private_key, *ssl_ca;
	int client_role;       /* an enum http_role, of who has a certificate */
	const char *token_file;
	json_t *tokens;        /* list of { role, sha256 }, or NULL */
	json_t *origins;       /* list of texts, or NULL */
	int64_t max_connections, max_body_bytes;
	double header_timeout_s, idle_timeout_s, write_timeout_s, wait_s;
	/* Not in the configuration of a gateway: */
	bool everybody;        /* who has no token may join streams, whoever it is */
	int64_t stream_bytes;  /* that wait for one client; 0: 256 KiB */
	/* What messages call the settings; NULL: the keys of the group */
	const char *const *names;
};

/* "http.port", or what the settings say instead. */
static inline const char *http_setting_name(const struct http_settings *s,
					    enum http_setting which)
{
	static const char *const keys[HTTP_SETTINGS] = {
		[HTTP_PORT] = "http.port",
		[HTTP_ADDRESS] = "http.address",
		[HTTP_SSL_CERT] = "http.ssl_cert",
		[HTTP_SSL_PRIVATE_KEY] = "http.ssl_private_key",
		[HTTP_SSL_CA] = "http.ssl_ca",
		[HTTP_TOKEN_FILE] = "http.token_file",
		[HTTP_MAX_CONNECTIONS] = "http.max_connections",
	};

	return (s->names ? s->names : keys)[which];
}

/* Parses `cfg` (NULL: defaults, and not wanted); reports errors by config_fail(). */
void http_settings_parse(struct http_settings *s, struct config *c, json_t *cfg);
/* The port to bind to: 0 is any free one. */
int http_settings_port(const struct http_settings *s);
/* Whether it is numeric, or "*". */
bool http_address_is_valid(const char *address);
/* Whether only this host can reach `address`. */
bool http_address_is_loopback(const char *address);
/* Whether the settings name anybody who has to prove who he is. */
bool http_settings_has_access(const struct http_settings *s);

#endif
