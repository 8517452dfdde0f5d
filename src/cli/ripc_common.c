/* SPDX-License-Identifier: BSD-2-Clause */
/* See ripc_common.h. */
#include "cli/ripc_common.h"

#include <stdlib.h>
#include <string.h>

#include "util/log.h"

atomic_bool ripc_interrupted;

int ripc_take_short_by(const struct option_given *g)
{
	enum ripc_short *by = option_member(g);

	*by = !strcmp(g->value, "datagram") ? RIPC_SHORT_DATAGRAM : RIPC_SHORT_CONNECTION;
	return *by == RIPC_SHORT_DATAGRAM || !strcmp(g->value, "connection") ?
		       OPTIONS_GO_ON : options_refuse(g, "expected connection or datagram");
}

bool ripc_is_id(const char *service, uint32_t *id)
{
	char *end;
	unsigned long long n = strtoull(service, &end, 0);

	if (*service < '0' || *service > '9' || *end || !n || n > UINT32_MAX)
		return false;
	*id = (uint32_t)n;
	return true;
}

int ripc_failed(const char *what, int err)
{
	const char *why = ripc_error();

	log_error("%s: %s%s%s", what, *why ? why : strerror(-err), *why ? ": " : "",
		  *why ? strerror(-err) : "");
	return CLI_FAILED;
}

int ripc_common_open(const struct ripc_config *c, struct ripc **out)
{
	int ret = ripc_open(c, out);

	return ret ? ripc_failed("no instance of ripc", ret) : 0;
}

int ripc_common_find(struct ripc *r, const char *service, uint32_t *id)
{
	int ret;

	if (ripc_is_id(service, id))
		return 0;
	ret = ripc_find(r, service, -1, id);
	return ret ? ripc_failed(service, ret) : 0;
}

int ripc_common_serve(struct ripc *r, const char *service, struct ripc_service **out)
{
	uint32_t id = 0;
	bool by_id = ripc_is_id(service, &id);
	int ret = ripc_service_open(r, id, by_id ? NULL : service, out);

	return ret ? ripc_failed(service, ret) : 0;
}

/* ---- signals ---- */

static void interrupt(int number)
{
	(void)number;
	atomic_store(&ripc_interrupted, true);
}

void ripc_common_catch(void)
{
	struct sigaction a = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

void ripc_common_signals(sigset_t *s)
{
	sigemptyset(s);
	sigaddset(s, SIGINT);
	sigaddset(s, SIGTERM);
}

void ripc_common_block(void)
{
	sigset_t s;

	ripc_common_signals(&s);
	pthread_sigmask(SIG_BLOCK, &s, NULL);
}

void ripc_common_wait(void)
{
	sigset_t s;
	int number;

	ripc_common_signals(&s);
	while (sigwait(&s, &number))
		;
	/* The next one ends the process. */
	pthread_sigmask(SIG_UNBLOCK, &s, NULL);
}

void ripc_counters_json(const struct ripc_counters *n, struct cli_json *j)
{
	cli_json_put(j, j_uint("short_sent", n->short_sent),
			j_uint("short_received", n->short_received),
			j_uint("short_dropped", n->short_dropped),
			j_uint("long_sent", n->long_sent),
			j_uint("long_received", n->long_received),
			j_uint("long_failed", n->long_failed),
			j_uint("bytes_pushed", n->bytes_pushed),
			j_uint("bytes_pulled", n->bytes_pulled),
			j_uint("registrations", n->registrations),
			j_uint("registered_bytes", n->registered_bytes),
			j_uint("pool_bytes", n->pool_bytes), j_uint("copies", n->copies),
			j_uint("connects", n->connects), j_uint("connections", n->connections),
			j_uint("connect_failures", n->connect_failures),
			j_uint("refused", n->refused), j_uint("resolves", n->resolves),
			j_uint("resolve_failures", n->resolve_failures),
			j_uint("bad_packets", n->bad_packets),
			j_uint("unasked_replies", n->unasked_replies),
			j_uint("unauthentic", n->unauthentic));
}

void ripc_common_counters(struct ripc *r, struct cli_json *j)
{
	struct ripc_counters n;

	ripc_counters(r, &n);
	ripc_counters_json(&n, j);
}
