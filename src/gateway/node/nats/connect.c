/* SPDX-License-Identifier: BSD-2-Clause */
/* How a connection to a server is made: its options and its subscriptions. */
#define LOG_ROOM "gateway/nats"
#include "gateway/node/nats/nats.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"

/* Messages and bytes of a subscription that wait in the library. They are taken after each
 * read, so that this is reached only while the node connects. */
#define PENDING_MESSAGES 65536
#define PENDING_BYTES (16 << 20)
/* For a helper that was left behind. */
#define LEFT_MS 20
/* Questions of the server that may stay without an answer. */
#define PINGS_OUT 2

/* ---- options ---- */

static int fail(struct nats_node *m, natsStatus s, const char *what)
{
	const char *text = nats_GetLastError(NULL);

	return outside_fail(&m->outside, -EINVAL, "%s: %s%s%s", what, natsStatus_GetText(s),
			    text && *text ? ": " : "", text && *text ? text : "");
}

static int set_tls(struct nats_node *m, natsOptions *o)
{
	const struct outside_tls *t = &m->tls;
	natsStatus s;

	if (!t->enabled)
		return 0;
	s = natsOptions_SetSecure(o, true);
	if (!s && t->ca)
		s = natsOptions_LoadCATrustedCertificates(o, t->ca);
	if (!s && t->cert)
		s = natsOptions_LoadCertificatesChain(o, t->cert, t->key ? t->key : t->cert);
	if (!s && t->ciphers)
		s = natsOptions_SetCiphers(o, t->ciphers);
	if (!s && !t->verify)
		s = natsOptions_SkipServerVerification(o, true);
	if (!s && t->verify && t->server_name)
		s = natsOptions_SetExpectedHostname(o, t->server_name);
	return s ? fail(m, s, "ssl") : 0;
}

static int set_secrets(struct nats_node *m, natsOptions *o)
{
	char buf[OUTSIDE_SECRET_MAX];
	bool has_token = m->token || m->token_file;
	const char *secret = outside_secret(has_token ? m->token : m->password,
					    has_token ? m->token_file : m->password_file, buf,
					    m->outside.why, sizeof(m->outside.why));
	natsStatus s = NATS_OK;

	if (!secret)
		return -EACCES;
	if (has_token)
		s = natsOptions_SetToken(o, secret);
	else if (m->username)
		s = natsOptions_SetUserInfo(o, m->username, secret);
	explicit_bzero(buf, sizeof(buf));
	if (!s && m->credentials)
		s = natsOptions_SetUserCredentialsFromFiles(o, m->credentials, NULL);
	return s ? fail(m, s, "the options") : 0;
}

static natsStatus set_behaviour(struct nats_node *m, natsOptions *o)
{
	/* One after the other, and all so early that the helper can tell why it failed. */
	int64_t timeout_ms = (int64_t)(m->outside.connect_timeout_s * 8e2) / m->url_count;

	return natsOptions_SetServers(o, m->urls, (int)m->url_count) ?:
	       natsOptions_SetTimeout(o, MAX(timeout_ms, INT64_C(1))) ?:
	       natsOptions_SetName(o, m->outside.node->name) ?:
	       natsOptions_SetAllowReconnect(o, false) ?:
	       natsOptions_SetIgnoreDiscoveredServers(o, true) ?:
	       natsOptions_SetPingInterval(o, (int64_t)(m->keepalive_s * 1e3)) ?:
	       natsOptions_SetMaxPingsOut(o, PINGS_OUT) ?:
	       natsOptions_SetNoEcho(o, m->no_echo) ?:
	       /* No thread of the library that writes, and none that waits for answers. */
	       natsOptions_SetSendAsap(o, true) ?:
	       natsOptions_UseOldRequestStyle(o, true);
}

/* The library's own handler writes to standard error. */
static void ignore_error(natsConnection *connection, natsSubscription *sub, natsStatus error,
			 void *arg)
{
}

/* ---- subscriptions ---- */

static natsStatus subscribe(struct nats_link *l, const char *subject)
{
	struct nats_node *m = l->node;
	natsSubscription **sub = &l->subs[l->sub_count];
	natsStatus s = m->queue_group ?
			natsConnection_QueueSubscribeSync(sub, l->connection, subject,
							  m->queue_group) :
			natsConnection_SubscribeSync(sub, l->connection, subject);

	if (s)
		return s;
	l->sub_count++;
	return natsSubscription_SetPendingLimits(*sub, PENDING_MESSAGES, PENDING_BYTES);
}

static int nats_setup(struct nats_link *l)
{
	struct nats_node *m = l->node;
	const char *text = NULL;
	natsStatus s = NATS_OK;

	if (m->js.enabled)
		return nats_jetstream_setup(l);
	for (unsigned i = 0; i < m->sub_count && m->outside.node->is_source && !s; i++) {
		s = subscribe(l, m->sub[i]);
		if (s)
			return nats_link_fail(l, s, m->sub[i]);
	}
	s = natsConnection_FlushTimeout(l->connection, (int64_t)(m->outside.connect_timeout_s * 1e3));
	/* A subscription that the server refuses. */
	if (!s && natsConnection_GetLastError(l->connection, &text) == NATS_NOT_PERMITTED) {
		snprintf(l->why, sizeof(l->why), "%.250s", text ? text : "not permitted");
		return -EACCES;
	}
	return s ? nats_link_fail(l, s, NULL) : 0;
}

/* ---- the attempt ---- */

int nats_open(struct outside *o)
{
	struct nats_node *m = nats_of(o);
	natsOptions *options = NULL;
	natsStatus s;
	int ret;

	if (!nats_link_forget(m))
		return outside_fail(o, -EBUSY, "the last attempt has not come to an end");
	s = natsOptions_Create(&options) ?: set_behaviour(m, options) ?:
	    natsOptions_SetErrorHandler(options, ignore_error, NULL);
	ret = s ? fail(m, s, "the options") : set_tls(m, options) ?: set_secrets(m, options);
	if (ret) {
		natsOptions_Destroy(options);
		return ret;
	}
	m->confirmed = o->next_tag;
	memset(m->dropped, 0, sizeof(m->dropped));
	m->js.awaited = 0;
	m->js.away_ns = m->js.pause_ns = 0;
	return nats_link_start(m, options, nats_setup) ?: 1;
}
