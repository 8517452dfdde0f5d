/* SPDX-License-Identifier: BSD-2-Clause */
/* See ripc_common.h. */
#include "cli/ripc_common.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"
#include "util/log.h"

#define OPTIONS_MAX 16      /* of a verb, with those of an instance */
#define NO_LETTER 0x100     /* what getopt returns for options that are names only */
#define SECONDS_MAX 3600

atomic_bool ripc_interrupted;

static struct {
	struct ripc_config config;
	const char *short_by;
	uint64_t poll_us, port;
} common;

static const struct ripc_option common_options[] = {
	{ "address", 'a', .text = &common.config.address },
	{ "resolver", 'r', .text = &common.config.resolver },
	{ "secret-file", .text = &common.config.secret_file },
	{ "short-by", .text = &common.short_by },
	{ "poll", .number = &common.poll_us, .min = 1, .max = UINT_MAX },
	{ "resolver-port", .number = &common.port, .min = 1, .max = UINT16_MAX },
};

static bool take_number(const struct ripc_option *o, const char *value)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(value, &end, 0);
	if (*value >= '0' && *value <= '9' && !*end && !errno && n >= o->min && n <= o->max) {
		*o->number = n;
		return true;
	}
	log_error("--%s '%s' is not usable, expected %" PRIu64 " to %" PRIu64, o->name, value,
		  o->min, o->max);
	return false;
}

static bool take_seconds(const struct ripc_option *o, const char *value)
{
	char *end;
	double s = strtod(value, &end);

	if (end != value && !*end && isfinite(s) && s >= 0 && s <= SECONDS_MAX) {
		*o->ns = (uint64_t)(s * 1e9);
		return true;
	}
	log_error("--%s '%s' is not usable, expected seconds from 0 to %d", o->name, value,
		  SECONDS_MAX);
	return false;
}

static bool take(const struct ripc_option *o, const char *value)
{
	if (o->number)
		return take_number(o, value);
	if (o->ns)
		return take_seconds(o, value);
	if (o->text)
		*o->text = value;
	else
		*o->flag = true;
	return true;
}

static bool take_common(struct ripc_config *config)
{
	const char *by = common.short_by;

	*config = common.config;
	config->poll_us = (unsigned)common.poll_us;
	config->resolver_port = (uint16_t)common.port;
	if (!by)
		return true;
	config->short_by = !strcmp(by, "datagram") ? RIPC_SHORT_DATAGRAM :
			   !strcmp(by, "connection") ? RIPC_SHORT_CONNECTION :
						       RIPC_SHORT_DEFAULT;
	if (config->short_by != RIPC_SHORT_DEFAULT)
		return true;
	log_error("--short-by '%s' is neither connection nor datagram", by);
	return false;
}

int ripc_common_options(int argc, char **argv, const struct ripc_option *own,
			struct ripc_config *config, const char *help)
{
	const struct ripc_option *table[OPTIONS_MAX];
	struct option names[OPTIONS_MAX + 2] = { { "help", no_argument, NULL, 'h' } };
	char letters[2 * OPTIONS_MAX + 2] = "h", *l = letters + 1;
	int count = 0, opt, i;

	while (own->name)
		table[count++] = own++;
	for (size_t k = 0; config && k < ARRAY_SIZE(common_options); k++)
		table[count++] = &common_options[k];
	for (i = 0; i < count; i++) {
		const struct ripc_option *o = table[i];

		names[1 + i] = (struct option){ o->name, o->flag ? no_argument : required_argument,
						NULL, o->letter ? o->letter : NO_LETTER + i };
		if (o->letter)
			l += sprintf(l, o->flag ? "%c" : "%c:", o->letter);
	}
	while ((opt = getopt_long(argc, argv, letters, names, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return CLI_OK;
		}
		for (i = 0; i < count && names[1 + i].val != opt; i++)
			;
		/* Of an unknown one getopt has told. */
		if (i == count || !take(table[i], optarg))
			return CLI_USAGE;
	}
	return config && !take_common(config) ? CLI_USAGE : -1;
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
	const struct {
		const char *name;
		uint64_t value;
	} all[] = {
		{ "short_sent", n->short_sent }, { "short_received", n->short_received },
		{ "short_dropped", n->short_dropped }, { "long_sent", n->long_sent },
		{ "long_received", n->long_received }, { "long_failed", n->long_failed },
		{ "bytes_pushed", n->bytes_pushed }, { "bytes_pulled", n->bytes_pulled },
		{ "registrations", n->registrations },
		{ "registered_bytes", n->registered_bytes }, { "pool_bytes", n->pool_bytes },
		{ "copies", n->copies }, { "connects", n->connects },
		{ "connections", n->connections }, { "connect_failures", n->connect_failures },
		{ "refused", n->refused }, { "resolves", n->resolves },
		{ "resolve_failures", n->resolve_failures }, { "bad_packets", n->bad_packets },
		{ "unasked_replies", n->unasked_replies }, { "unauthentic", n->unauthentic },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		cli_json_uint(j, all[i].name, all[i].value);
}

void ripc_common_counters(struct ripc *r, struct cli_json *j)
{
	struct ripc_counters n;

	ripc_counters(r, &n);
	ripc_counters_json(&n, j);
}
