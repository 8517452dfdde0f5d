/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of the group `http`; see http_settings.h. */
#include "gateway/super_node/http_settings.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "gateway/config/config.h"
#include "gateway/config/keys.h"
#include "util/container_of.h"

#define PORT 8080
#define PORT_OF_ROOT 80
#define SHA256_DIGITS 64

#define HTTP(field) offsetof(struct http_settings, field)

const char *const http_role_names[] = { "watch", "operate", "configure", NULL };

static const struct config_key http_keys[] = {
	{ "enabled", CONFIG_BOOL, HTTP(enabled), "true",
	  .help = "Offer the HTTP server" },
	{ "port", CONFIG_INT, HTTP(port), NULL, .min = 1, .max = 65535,
	  .help = "TCP port; default 8080, for root 80" },
	{ "address", CONFIG_STRING, HTTP(address), "127.0.0.1",
	  .help = "Numeric address to listen at, '*' for all; one that other hosts can reach needs token_file, tokens or ssl_ca" },
	{ "ssl_cert", CONFIG_STRING, HTTP(ssl_cert),
	  .help = "File with the certificate (PEM), which makes it HTTPS" },
	{ "ssl_private_key", CONFIG_STRING, HTTP(ssl_private_key),
	  .help = "File with its key (PEM)" },
	{ "ssl_ca", CONFIG_STRING, HTTP(ssl_ca),
	  .help = "File with the authority (PEM) whose certificate every client has to have" },
	{ "client_role", CONFIG_ENUM, HTTP(client_role), "configure",
	  .names = http_role_names,
	  .help = "What clients with a certificate may do" },
	{ "token_file", CONFIG_STRING, HTTP(token_file),
	  .help = "File of lines 'ROLE TOKEN' or 'ROLE sha256:DIGITS', readable by its owner only" },
	{ "tokens", CONFIG_JSON, HTTP(tokens),
	  .help = "List of { role, sha256 }: hashes of tokens" },
	{ "origins", CONFIG_JSON, HTTP(origins),
	  .help = "List of origins such as \"https://lab.example\" whose pages may use the API, besides its own" },
	{ "max_connections", CONFIG_INT, HTTP(max_connections), "1000",
	  .min = 1, .max = 100000,
	  .help = "Connections at a time; one more ends the one that is idle for longest" },
	{ "max_body", CONFIG_INT, HTTP(max_body_bytes), "1048576", .min = 1024,
	  .max = 1 << 28, .help = "Largest body of a request, bytes" },
	{ "header_timeout", CONFIG_REAL, HTTP(header_timeout_s), "10",
	  .min = 1, .max = 3600,
	  .help = "Time for the headers of a request, and for its body, s" },
	{ "idle_timeout", CONFIG_REAL, HTTP(idle_timeout_s), "60", .min = 1,
	  .max = 86400, .help = "How long a connection may be idle, s" },
	{ "write_timeout", CONFIG_REAL, HTTP(write_timeout_s), "20", .min = 1,
	  .max = 3600,
	  .help = "How long a client may take nothing of an answer, s" },
	{ "wait", CONFIG_REAL, HTTP(wait_s), "2", .min = 0, .max = 60,
	  .help = "A command that takes longer becomes a job, s" },
};

const struct key_table keys_http = { http_keys, ARRAY_SIZE(http_keys) };

struct token {
	int role;
	const char *sha256;
};

static const struct config_key token_keys[] = {
	{ "role", CONFIG_ENUM, offsetof(struct token, role), .required = true,
	  .names = http_role_names, .help = "What its bearer may do" },
	{ "sha256", CONFIG_STRING, offsetof(struct token, sha256),
	  .required = true,
	  .help = "SHA-256 of the token, 64 hexadecimal digits" },
};

const struct key_table keys_token = { token_keys, ARRAY_SIZE(token_keys) };

enum http_role http_role_parse(const char *name, size_t len)
{
	for (int i = 0; http_role_names[i]; i++)
		if (strlen(http_role_names[i]) == len &&
		    !strncmp(name, http_role_names[i], len))
			return (enum http_role)(HTTP_WATCH + i);
	return HTTP_NOBODY;
}

bool http_address_is_valid(const char *address)
{
	unsigned char a[16];

	return !strcmp(address, "*") || inet_pton(AF_INET, address, a) == 1 ||
	       inet_pton(AF_INET6, address, a) == 1;
}

bool http_address_is_loopback(const char *address)
{
	unsigned char a[16];
	static const unsigned char one[16] = { [15] = 1 };

	if (inet_pton(AF_INET, address, a) == 1)
		return a[0] == 127;
	return inet_pton(AF_INET6, address, a) == 1 &&
	       !memcmp(a, one, sizeof(one));
}

int http_settings_port(const struct http_settings *s)
{
	if (s->port)
		return s->port < 0 ? 0 : (int)s->port;
	return geteuid() == 0 ? PORT_OF_ROOT : PORT;
}

bool http_settings_has_access(const struct http_settings *s)
{
	return s->token_file || s->ssl_ca || json_array_size(s->tokens);
}

static void check_address(const struct http_settings *s, struct config *c,
			  json_t *cfg)
{
	if (!http_address_is_valid(s->address))
		config_fail(c, cfg, "address",
			    "'%.60s' is no numeric address such as \"127.0.0.1\" or \"::1\", and not \"*\"",
			    s->address);
	else if (!http_address_is_loopback(s->address) &&
		 !http_settings_has_access(s))
		config_fail(c, cfg, "address",
			    "other hosts can reach %s: say by token_file, tokens or ssl_ca who may do what, or leave address out",
			    s->address);
}

static void check_certificates(const struct http_settings *s, struct config *c,
			       json_t *cfg)
{
	if (!s->ssl_cert != !s->ssl_private_key)
		config_fail(c, cfg, s->ssl_cert ? "ssl_private_key" : "ssl_cert",
			    "is missing: a certificate and its key belong together");
	else if (s->ssl_ca && !s->ssl_cert)
		config_fail(c, cfg, "ssl_cert",
			    "is missing: ssl_ca asks clients for a certificate, which needs HTTPS");
}

static void check_tokens(const struct http_settings *s, struct config *c,
			 json_t *cfg)
{
	struct token t;
	json_t *e;
	size_t i;

	if (s->tokens && !json_is_array(s->tokens)) {
		config_fail(c, cfg, "tokens",
			    "expected a list such as ( { role = \"watch\"; sha256 = \"...\" } )");
		return;
	}
	json_array_foreach(s->tokens, i, e) {
		if (config_unpack(c, e, token_keys, ARRAY_SIZE(token_keys), &t,
				  NULL, 0))
			continue;
		if (strlen(t.sha256) != SHA256_DIGITS ||
		    strspn(t.sha256, "0123456789abcdefABCDEF") != SHA256_DIGITS)
			config_fail(c, e, "sha256",
				    "expected 64 hexadecimal digits, as of `printf %%s TOKEN | sha256sum`");
	}
}

static bool is_origin(const char *text)
{
	const char *host = NULL;

	if (!strncmp(text, "http://", 7))
		host = text + 7;
	else if (!strncmp(text, "https://", 8))
		host = text + 8;
	return host && *host && !strpbrk(host, "/?# ");
}

static void check_origins(const struct http_settings *s, struct config *c,
			  json_t *cfg)
{
	json_t *e;
	size_t i;

	if (s->origins && !json_is_array(s->origins)) {
		config_fail(c, cfg, "origins",
			    "expected a list such as [ \"https://lab.example\" ]");
		return;
	}
	json_array_foreach(s->origins, i, e)
		if (!json_is_string(e) || !is_origin(json_string_value(e)))
			config_fail(c, cfg, "origins",
				    "expected origins such as \"https://lab.example:8443\", without a path");
}

void http_settings_parse(struct http_settings *s, struct config *c, json_t *cfg)
{
	memset(s, 0, sizeof(*s));
	if (config_unpack(c, cfg, http_keys, ARRAY_SIZE(http_keys), s, NULL, 0))
		return;
	s->client_role += HTTP_WATCH;
	check_certificates(s, c, cfg);
	check_tokens(s, c, cfg);
	check_origins(s, c, cfg);
	if (!cfg || !s->enabled)
		return;
	check_address(s, c, cfg);
	s->wanted = true;
#ifndef GATEWAY_HAVE_TLS
	if (s->ssl_cert)
		config_fail(c, cfg, "ssl_cert",
			    "this build has no TLS, because libssl was not found when it was made");
#endif
}
