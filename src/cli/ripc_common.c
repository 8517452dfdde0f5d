/* SPDX-License-Identifier: BSD-2-Clause */
/* See ripc_common.h. */
#include "cli/ripc_common.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"
#include "util/log.h"

atomic_bool ripc_interrupted;

bool ripc_number(const char *option, const char *text, uint64_t min, uint64_t max,
		 uint64_t *out)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (*text >= '0' && *text <= '9' && !*end && !errno && n >= min && n <= max) {
		*out = n;
		return true;
	}
	log_error("--%s '%s' is not usable, expected %" PRIu64 " to %" PRIu64, option, text, min,
		  max);
	return false;
}

bool ripc_seconds(const char *option, const char *text, double max, uint64_t *ns)
{
	char *end;
	double s = strtod(text, &end);

	if (end != text && !*end && isfinite(s) && s >= 0 && s <= max) {
		*ns = (uint64_t)(s * 1e9);
		return true;
	}
	log_error("--%s '%s' is not usable, expected seconds from 0 to %g", option, text, max);
	return false;
}

bool ripc_common_option(struct ripc_config *c, int option, const char *value)
{
	uint64_t n;

	switch (option) {
	case 'a': c->address = value; return true;
	case 'r': c->resolver = value; return true;
	case 0x101: c->secret_file = value; return true;
	case 0x102:
		c->short_by = !strcmp(value, "datagram") ? RIPC_SHORT_DATAGRAM :
			      !strcmp(value, "connection") ? RIPC_SHORT_CONNECTION :
							     RIPC_SHORT_DEFAULT;
		if (c->short_by != RIPC_SHORT_DEFAULT)
			return true;
		log_error("--short-by '%s' is neither connection nor datagram", value);
		return false;
	case 0x103:
		if (!ripc_number("poll", value, 1, UINT_MAX, &n))
			return false;
		c->poll_us = (unsigned)n;
		return true;
	case 0x104:
		if (!ripc_number("resolver-port", value, 1, 65535, &n))
			return false;
		c->resolver_port = (uint16_t)n;
		return true;
	default: return false;
	}
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

static void set_of_signals(sigset_t *s)
{
	sigemptyset(s);
	sigaddset(s, SIGINT);
	sigaddset(s, SIGTERM);
}

void ripc_common_block(void)
{
	sigset_t s;

	set_of_signals(&s);
	pthread_sigmask(SIG_BLOCK, &s, NULL);
}

void ripc_common_wait(void)
{
	sigset_t s;
	int number;

	set_of_signals(&s);
	while (sigwait(&s, &number))
		;
	/* The next one ends the process. */
	pthread_sigmask(SIG_UNBLOCK, &s, NULL);
}

void ripc_common_counters(struct ripc *r, struct json_out *j)
{
	struct ripc_counters n;

	ripc_counters(r, &n);
	const struct {
		const char *name;
		uint64_t value;
	} all[] = {
		{ "short_sent", n.short_sent }, { "short_received", n.short_received },
		{ "short_dropped", n.short_dropped }, { "long_sent", n.long_sent },
		{ "long_received", n.long_received }, { "long_failed", n.long_failed },
		{ "bytes_pushed", n.bytes_pushed }, { "bytes_pulled", n.bytes_pulled },
		{ "registrations", n.registrations },
		{ "registered_bytes", n.registered_bytes }, { "pool_bytes", n.pool_bytes },
		{ "copies", n.copies }, { "connects", n.connects },
		{ "connections", n.connections }, { "connect_failures", n.connect_failures },
		{ "refused", n.refused }, { "resolves", n.resolves },
		{ "resolve_failures", n.resolve_failures }, { "bad_packets", n.bad_packets },
		{ "unasked_replies", n.unasked_replies }, { "unauthentic", n.unauthentic },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		json_out_uint(j, all[i].name, all[i].value);
}
