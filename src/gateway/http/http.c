/* SPDX-License-Identifier: BSD-2-Clause */
/* The server of a gateway, with settings that outlive reloads; see http.h. */
#define LOG_ROOM "gateway/http"
#include "gateway/http/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/http/service.h"
#include "gateway/observe/taps.h"
#include "gateway/page/page.h"
#include "gateway/super_node/super_node_private.h"
#include "util/log.h"

#define ADDRESS_SIZE 64

struct http {
	struct http_server *server;
	struct http_settings settings; /* texts are owned */
	char address[ADDRESS_SIZE];
};

/* Any free port is -1 in settings, where 0 means the default. */
static int parse_port(struct http_settings *s, const char *text)
{
	char *end;
	long port = strtol(text, &end, 10);

	if (!*text || *end || port < 0 || port > 65535 || strlen(text) > 5)
		return -EINVAL;
	s->port = port ? port : -1;
	return 0;
}

int http_listen_parse(struct http_settings *s, const char *listen, char *room,
		      unsigned size)
{
	const char *colon = strrchr(listen, ':');
	size_t len = strlen(listen);
	int ret = 0;

	if (!*listen)
		return 0;
	if (strspn(listen, "0123456789") == len)
		return parse_port(s, listen);
	/* "::1" is an address without a port. */
	if (http_address_is_valid(listen))
		colon = NULL;
	if (colon) {
		ret = parse_port(s, colon + 1);
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
	return http_address_is_valid(room) ? 0 : -EINVAL;
}

static bool copy(const char **to, const char *text)
{
	*to = text ? strdup(text) : NULL;
	return *to || !text;
}

static bool copy_list(json_t **to, json_t *list)
{
	*to = list ? json_deep_copy(list) : NULL;
	return *to || !list;
}

/* The configuration may be gone before the server. False: no memory; then a setting is
 * missing that says who may do what. */
static bool take_settings(struct http *h, const struct http_settings *from)
{
	struct http_settings *s = &h->settings;
	bool whole;

	*s = *from;
	whole = copy(&s->address, from->address ? from->address : "127.0.0.1");
	whole &= copy(&s->ssl_cert, from->ssl_cert);
	whole &= copy(&s->ssl_private_key, from->ssl_private_key);
	whole &= copy(&s->ssl_ca, from->ssl_ca);
	whole &= copy(&s->token_file, from->token_file);
	whole &= copy_list(&s->tokens, from->tokens);
	whole &= copy_list(&s->origins, from->origins);
	return whole;
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

/* Requests of the table begin with CONTROL_PREFIX, so that pages may have the other paths. */
static int find_request(const char *method, const char *path, struct http_found *f)
{
	size_t len = strlen(CONTROL_PREFIX);
	bool ours = (!strncmp(path, CONTROL_PREFIX, len) && path[len] == '/') ||
		    !strcmp(path, "/metrics");

	f->why = ours ? "no such request; " CONTROL_PREFIX "/openapi.json lists them" :
			"there is nothing here; requests begin with " CONTROL_PREFIX;
	return ours ? control_find(method, path, &f->rule, &f->allow) : 404;
}

static void ask_gateway(void *arg, const struct control_question *q, struct control_answer *a)
{
	control_ask(arg, q, a);
}

static const struct http_requests gateway_requests = {
	.server = "gateway",
	.find = find_request,
	.ask = ask_gateway,
};

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
	if (h && !take_settings(h, &sn->settings.http))
		ret = -ENOMEM;
	pthread_mutex_unlock(&sn->control);
	if (!h)
		return wanted ? -ENOMEM : 0;
	if (listen && !ret)
		ret = take_listen(h, listen);
	/* Before the first connection. */
	page_offer();
	taps_offer();
	ret = ret ?: check(&h->settings) ?:
	      http_server_start(&h->server, &gateway_requests, sn, &h->settings);
	if (ret) {
		taps_withdraw();
		free_http(h);
		return ret;
	}
	*out = h;
	return 0;
}

void http_refresh(struct http *h)
{
	if (h)
		http_server_refresh(h->server);
}

void http_stop(struct http *h)
{
	if (!h || !http_server_stop(h->server))
		return;
	taps_withdraw();
	free_http(h);
}
