/* SPDX-License-Identifier: BSD-2-Clause */
/* How a connection to a server is made: addresses, TLS, who the node is, subscriptions. */
#define LOG_ROOM "gateway/nats"
#include "gateway/node/nats/nats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/node/nats/credentials.h"
#include "gateway/plugin/plugin.h"
#include "util/clock.h"
#include "util/num.h"

#define PORT 4222

/* ---- addresses ---- */

static bool copy(char *to, size_t size, const char *from, size_t len)
{
	if (len >= size)
		return false;
	memcpy(to, from, len);
	to[len] = 0;
	return true;
}

static bool copy_user(struct nats_url *u, const char *at, const char *end)
{
	const char *colon = memchr(at, ':', (size_t)(end - at));

	return colon && copy(u->user, sizeof(u->user), at, (size_t)(colon - at)) &&
	       copy(u->password, sizeof(u->password), colon + 1, (size_t)(end - colon - 1));
}

bool nats_url_parse(struct nats_url *u, const char *url)
{
	const char *at = strstr(url, "://"), *end, *user, *host;
	int64_t port = PORT;

	*u = (struct nats_url){ 0 };
	if (!at || (strncmp(url, "nats:", 5) && strncmp(url, "tls:", 4)))
		return false;
	at += 3;
	end = at + strcspn(at, "/?#");
	user = memrchr(at, '@', (size_t)(end - at));
	if (user && !copy_user(u, at, user))
		return false;
	host = user ? user + 1 : at;
	at = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : host + strcspn(host, ":/?#");
	if (!at || at == host ||
	    !copy(u->host, sizeof(u->host), host + (*host == '['), (size_t)(at - host) - (*host == '[')))
		return false;
	at += *host == '[';
	if (*at == ':')
		at = num_parse_i64(at + 1, end, &port);
	u->port = (int)port;
	return at == end && port > 0 && port <= UINT16_MAX && *u->host;
}

/* ---- who the node is ---- */

/* Adds the JWT, and the signature of what the server asks to sign. */
static int add_credentials(struct nats_node *m, json_t *o)
{
	const struct tls_key_ops *ops = plugin_symbol("http_tls", "http_tls_key");
	char text[NATS_CREDENTIALS_MAX], printed[NATS_SIGNATURE_SIZE];
	int fd = open(m->credentials, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	uint8_t signature[TLS_KEY_SIGNATURE_BYTES];
	struct nats_credentials c;
	const char *why = len < 0 ? strerror(errno) : NULL;

	if (fd >= 0)
		close(fd);
	text[MAX(len, 0)] = 0;
	why = why ?: nats_credentials_read(&c, text);
	if (!why && (!ops || ops->sign(c.seed, m->nonce, strlen(m->nonce), signature)))
		why = "the module http_tls does not sign";
	if (!why) {
		nats_signature_print(signature, printed);
		json_object_set_new(o, "jwt", json_string(c.jwt));
		json_object_set_new(o, "sig", json_string(printed));
	}
	explicit_bzero(&c, sizeof(c));
	explicit_bzero(text, sizeof(text));
	return why ? outside_fail(&m->outside, -EACCES, "%s: %s", m->credentials, why) : 0;
}

static int add_access(struct nats_node *m, json_t *o, const struct nats_url *u)
{
	bool has_token = m->token || m->token_file;
	char buf[OUTSIDE_SECRET_MAX];

	if (*u->user || *u->password) {
		json_object_set_new(o, "user", json_string(u->user));
		json_object_set_new(o, "pass", json_string(u->password));
		return 0;
	}
	if (m->credentials)
		return add_credentials(m, o);
	if (!has_token && !m->username)
		return 0;
	if (!outside_secret(has_token ? m->token : m->password,
			    has_token ? m->token_file : m->password_file, buf, m->outside.why,
			    sizeof(m->outside.why)))
		return -EACCES;
	if (!has_token)
		json_object_set_new(o, "user", json_string(m->username));
	json_object_set_new(o, has_token ? "auth_token" : "pass", json_string(buf));
	explicit_bzero(buf, sizeof(buf));
	return 0;
}

static int put_connect(struct nats_node *m, const struct nats_url *u)
{
	json_t *o = json_pack("{sb sb sb ss ss ss si sb sb sb}", "verbose", 0, "pedantic", 0,
			      "tls_required", m->tls.enabled, "name", m->outside.node->name, "lang",
			      "c", "version", "1", "protocol", 1, "echo", !m->no_echo, "headers",
			      m->has_heads, "no_responders", m->has_heads);
	struct stream_buffer *out = &m->stream.out;
	int ret = o ? add_access(m, o, u) : -ENOMEM;
	char *text = ret ? NULL : json_dumps(o, JSON_COMPACT);

	json_decref(o);
	if (!text)
		return ret ?: -ENOMEM;
	ret = stream_buffer_put(out, "CONNECT ", 8) ?: stream_buffer_put(out, text, strlen(text)) ?:
	      stream_buffer_put(out, "\r\n", 2);
	explicit_bzero(text, strlen(text));
	free(text);
	return ret;
}

/* ---- the attempt ---- */

static int subscribe(struct nats_node *m)
{
	int ret = 0;

	for (unsigned i = 0; i < m->sub_count && m->outside.node->is_source && !ret; i++)
		ret = nats_put_line(m, "SUB %s %s %u", m->sub[i], m->queue_group ? m->queue_group : "",
				    i + 1);
	return ret;
}

/* What was written before is good, or the server has refused it. Messages may come in between. */
static int await_pong(struct nats_node *m)
{
	struct nats_frame f;
	int ret = nats_put_line(m, "PING");

	while (!ret) {
		ret = nats_await(m, &f);
		if (!ret && f.op == NATS_PONG)
			return 0;
		/* Of a stream, nobody has asked for messages yet. */
		ret = ret ?: m->js.enabled ? nats_take(m, &f) : nats_message(m, &f);
	}
	return ret;
}

static int greet(struct nats_node *m, const struct nats_url *u)
{
	struct outside *o = &m->outside;
	struct nats_frame f;
	int ret = nats_await(m, &f);

	if (ret)
		return ret;
	if (f.op != NATS_INFO)
		return outside_fail(o, -EPROTO, "it does not speak the protocol of NATS");
	ret = nats_take(m, &f);
	if (ret)
		return ret;
	if (m->wants_tls != m->tls.enabled)
		return outside_fail(o, -EPROTO, m->tls.enabled ? "the server has no TLS" :
								 "the server wants TLS (ssl)");
	/* Bytes that came without TLS must not count as those behind it. */
	if (m->tls.enabled && stream_buffer_filled(&m->in.b))
		return outside_fail(o, -EPROTO, "it goes on without TLS");
	return outside_stream_start_tls(o, &m->stream, &m->tls, u->host, m->until_ns);
}

static int try_server(struct nats_node *m, const char *url)
{
	struct nats_url u;
	int ret;

	nats_url_parse(&u, url);
	m->ping_count = 0;
	m->refused = false;
	ret = outside_stream_open(&m->outside, &m->stream, u.host, u.port, m->until_ns) ?:
	      greet(m, &u) ?: put_connect(m, &u) ?: m->js.enabled ? 0 : subscribe(m);
	explicit_bzero(u.password, sizeof(u.password));
	ret = ret ?: await_pong(m) ?: m->js.enabled ? nats_jetstream_setup(m) : 0;
	if (ret)
		nats_drop(m);
	return ret;
}

void nats_drop(struct nats_node *m)
{
	stream_close(&m->stream);
	stream_buffer_free(&m->in.b);
}

int nats_open(struct outside *o)
{
	struct nats_node *m = nats_of(o);
	uint64_t share_ns = (uint64_t)(o->connect_timeout_s * 1e9) / m->url_count;
	int ret = -ECANCELED;

	m->until_ns = clock_now_ns();
	for (unsigned i = 0; i < m->url_count && ret && !outside_is_ending(o); i++) {
		m->until_ns = MAX(m->until_ns, clock_now_ns()) + share_ns;
		ret = try_server(m, m->urls[i]);
	}
	m->asked_ns = clock_now_ns();
	/* Messages may have come behind the last answer. */
	m->in.more = !ret;
	return ret;
}
