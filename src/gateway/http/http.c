/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the server with settings that outlive reloads; see http.h. */
#define LOG_ROOM "gateway/http"
#include "gateway/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/http/service.h"
#include "gateway/super_node/super_node_private.h"
#include "util/log.h"

#define ADDRESS_SIZE 64

struct http {
	struct http_server *server;
	struct http_settings settings; /* texts are owned */
	char address[ADDRESS_SIZE];
};

static bool is_address(const char *text)
{
	unsigned char a[16];

	return !strcmp(text, "*") || inet_pton(AF_INET, text, a) == 1 ||
	       inet_pton(AF_INET6, text, a) == 1;
}

static int parse_port(struct http_settings *s, const char *text, bool *any)
{
	char *end;
	long port = strtol(text, &end, 10);

	if (!*text || *end || port < 0 || port > 65535 || strlen(text) > 5)
		return -EINVAL;
	s->port = port;
	*any = port == 0;
	return 0;
}

int http_listen_parse(struct http_settings *s, const char *listen, char *room,
		      unsigned size)
{
	const char *colon = strrchr(listen, ':');
	size_t len = strlen(listen);
	bool any = false;
	int ret = 0;

	if (!*listen)
		return 0;
	if (strspn(listen, "0123456789") == len) {
		ret = parse_port(s, listen, &any);
		if (any)
			s->port = -1;
		return ret;
	}
	/* "::1" is an address without a port. */
	if (is_address(listen))
		colon = NULL;
	if (colon) {
		ret = parse_port(s, colon + 1, &any);
		if (any)
			s->port = -1;
		len = (size_t)(colon - listen);
	}
	if (len >= 2 && listen[0] == '[' && listen[len - 1] == ']') {
		listen++;
		len -= 2;
	}
	if (ret || len >= size)
		return -EINVAL;
	memcpy(room, listen, len);
	room[len] = '\0';
	s->address = room;
	return is_address(room) ? 0 : -EINVAL;
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* The configuration may be gone before the server. */
static void take_settings(struct http *h, const struct http_settings *from)
{
	struct http_settings *s = &h->settings;

	*s = *from;
	s->address = copy(from->address ? from->address : "127.0.0.1");
	s->ssl_cert = copy(from->ssl_cert);
	s->ssl_private_key = copy(from->ssl_private_key);
	s->ssl_ca = copy(from->ssl_ca);
	s->token_file = copy(from->token_file);
	s->tokens = from->tokens ? json_deep_copy(from->tokens) : NULL;
	s->origins = from->origins ? json_deep_copy(from->origins) : NULL;
}

static void free_http(struct http *h)
{
	struct http_settings *s = &h->settings;

	free((char *)s->address);
	free((char *)s->ssl_cert);
	free((char *)s->ssl_private_key);
	free((char *)s->ssl_ca);
	free((char *)s->token_file);
	json_decref(s->tokens);
	json_decref(s->origins);
	free(h);
}

static int check(const struct http_settings *s)
{
	if (http_address_is_loopback(s->address) || http_settings_has_access(s))
		return 0;
	log_error("--http=%s: other hosts can reach this address, so the group `http` of the configuration has to say by token_file, tokens or ssl_ca who may do what",
		  s->address);
	return -EPERM;
}

/* What the command line says counts more than the configuration. */
static int take_listen(struct http *h, const char *listen)
{
	struct http_settings over = h->settings;

	if (http_listen_parse(&over, listen, h->address, sizeof(h->address))) {
		log_error("--http=%s: expected PORT, ADDRESS or ADDRESS:PORT, with a numeric address",
			  listen);
		return -EINVAL;
	}
	h->settings.port = over.port;
	if (over.address == h->settings.address)
		return 0;
	free((char *)h->settings.address);
	h->settings.address = strdup(h->address);
	return h->settings.address ? 0 : -ENOMEM;
}

int http_start(struct http **out, struct super_node *sn, const char *listen)
{
	struct http *h = NULL;
	bool wanted;
	int ret = 0;

	*out = NULL;
	pthread_mutex_lock(&sn->control);
	wanted = listen || sn->settings.http.wanted;
	if (wanted)
		h = calloc(1, sizeof(*h));
	if (h)
		take_settings(h, &sn->settings.http);
	pthread_mutex_unlock(&sn->control);
	if (!h)
		return wanted ? -ENOMEM : 0;
	if (listen)
		ret = take_listen(h, listen);
	ret = ret ?: check(&h->settings) ?:
	      http_server_start(&h->server, sn, &h->settings);
	if (ret)
		free_http(h);
	else
		*out = h;
	return ret;
}

void http_refresh(struct http *h)
{
	if (h)
		http_server_refresh(h->server);
}

void http_stop(struct http *h)
{
	if (h && http_server_stop(h->server))
		free_http(h);
}
