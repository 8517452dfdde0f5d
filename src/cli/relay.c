/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar relay`: its options, and its end; the relay itself is gateway/relay/. */
#define LOG_ROOM tool_room
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"
#include "gateway/relay/relay.h"
#include "util/log.h"

#define NO_LETTER 256

static const char usage[] =
	"[OPTIONS]\n\n"
	"Connections by WebSocket to the same path are a session: what one of them sends\n"
	"goes to all others. GET / lists the sessions, GET /metrics is for Prometheus.\n\n"
	"  -p, --port N          TCP port; 0: any, which the log tells (8088)\n"
	"  -a, --address ADDR    numeric, or * for all (127.0.0.1)\n"
	"  -P, --protocol NAME   of clients that name one (live)\n"
	"  -l, --loopback        who sends gets it back, too\n"
	"  -u, --uuid UUID       of the relay, which / shows\n"
	"      --cert FILE, --key FILE\n"
	"                        certificate and its key: HTTPS\n"
	"      --ca FILE         authority whose certificate every client has to have\n"
	"      --token-file FILE who may look (watch) and join (operate), see busbar-http(7)\n"
	"      --open            everybody who can reach the relay may join\n"
	"      --origin ORIGIN   whose pages may use it, besides its own; more than once\n"
	"      --sessions N      at a time (1000)\n"
	"      --connections N   at a time (1000)\n"
	"      --message KIB     longest message (1024)\n"
	"      --backlog KIB     of messages that wait for one connection (1024)\n"
	"      --memory MIB      of all that wait or have come in part (256)\n"
	"      --ping SECONDS    until a silent connection is asked (20)\n"
	"      --timeout SECONDS for its answer, and for taking what is sent (20)\n"
	"      --counters        at the end, as JSON\n";

static struct {
	struct relay_settings relay;
	const char *uuid;
	double port, sessions, connections, message_kib, backlog_kib, memory_mib;
	bool counters;
} o = {
	.relay = {
		.http = { .address = "127.0.0.1" },
		.protocol = "live",
		.ping_s = 20,
		.timeout_s = 20,
	},
	.port = 8088, .sessions = 1000, .connections = 1000, .message_kib = 1024,
	.backlog_kib = 1024, .memory_mib = 256,
};

/* With one place for what it means; a number is whole unless `min` is not. */
static const struct relay_option {
	const char *name;
	int letter;
	bool *flag;
	const char **text;
	double *number, min, max;
	json_t **list;
} options[] = {
	{ "port", 'p', .number = &o.port, .min = 0, .max = 65535 },
	{ "address", 'a', .text = &o.relay.http.address },
	{ "protocol", 'P', .text = &o.relay.protocol },
	{ "loopback", 'l', .flag = &o.relay.loopback },
	{ "uuid", 'u', .text = &o.uuid },
	{ "cert", .text = &o.relay.http.ssl_cert },
	{ "key", .text = &o.relay.http.ssl_private_key },
	{ "ca", .text = &o.relay.http.ssl_ca },
	{ "token-file", .text = &o.relay.http.token_file },
	{ "open", .flag = &o.relay.http.everybody },
	{ "origin", .list = &o.relay.http.origins },
	{ "sessions", .number = &o.sessions, .min = 1, .max = 100000 },
	{ "connections", .number = &o.connections, .min = 1, .max = 100000 },
	{ "message", .number = &o.message_kib, .min = 1, .max = 16000 },
	{ "backlog", .number = &o.backlog_kib, .min = 1, .max = 1 << 20 },
	{ "memory", .number = &o.memory_mib, .min = 1, .max = 1 << 20 },
	{ "ping", .number = &o.relay.ping_s, .min = 0.1, .max = 3600 },
	{ "timeout", .number = &o.relay.timeout_s, .min = 0.1, .max = 3600 },
	{ "counters", .flag = &o.counters },
};

#define OPTIONS ARRAY_SIZE(options)

static bool take_number(char **argv, const struct relay_option *opt, const char *text)
{
	bool whole = opt->min == rint(opt->min);
	char *end;

	*opt->number = strtod(text, &end);
	if (end != text && !*end && *opt->number >= opt->min && *opt->number <= opt->max &&
	    (!whole || *opt->number == rint(*opt->number)))
		return true;
	fprintf(stderr, "%s: --%s %s: expected a %snumber from %g to %.0f\n", argv[0], opt->name,
		text, whole ? "whole " : "", opt->min, opt->max);
	return false;
}

static bool is_origin(const char *text)
{
	const char *host = !strncmp(text, "http://", 7)	 ? text + 7 :
			   !strncmp(text, "https://", 8) ? text + 8 :
							   "";

	return *host && !strpbrk(host, "/?# ");
}

static bool take(char **argv, const struct relay_option *opt, const char *text)
{
	if (opt->number)
		return take_number(argv, opt, text);
	if (opt->flag) {
		*opt->flag = true;
		return true;
	}
	if (opt->text) {
		*opt->text = text;
		return true;
	}
	if (!is_origin(text)) {
		fprintf(stderr, "%s: --%s %s: expected an origin such as https://lab.example:8443, without a path\n",
			argv[0], opt->name, text);
		return false;
	}
	if (!*opt->list)
		*opt->list = json_array();
	return !json_array_append_new(*opt->list, json_string(text));
}

/* A status to end with, or -1. */
static int parse(int argc, char **argv)
{
	struct option longs[OPTIONS + 3] = { { "help", no_argument, NULL, 'h' },
					     { "version", no_argument, NULL, 'V' } };
	char letters[2 * OPTIONS + sizeof(TOOL_OPTIONS)] = TOOL_OPTIONS;
	int opt, status;
	size_t i;

	for (i = 0; i < OPTIONS; i++) {
		const struct relay_option *d = &options[i];

		longs[2 + i] = (struct option){ d->name, d->flag ? no_argument : required_argument,
						NULL, d->letter ? d->letter : NO_LETTER + (int)i };
		if (d->letter)
			sprintf(letters + strlen(letters), d->flag ? "%c" : "%c:", d->letter);
	}
	while ((opt = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		for (i = 0; i < OPTIONS && longs[2 + i].val != opt; i++)
			;
		if (i < OPTIONS) {
			if (!take(argv, &options[i], optarg))
				return CLI_USAGE;
			continue;
		}
		status = tool_option(argv, opt, usage);
		if (status >= 0)
			return status;
	}
	if (optind == argc)
		return -1;
	fprintf(stderr, "%s: %s: expected nothing but options\n", argv[0], argv[optind]);
	return CLI_USAGE;
}

/* What is wrong with the options together; NULL: nothing. */
static const char *check_access(void)
{
	const struct http_settings *h = &o.relay.http;

	if (!http_address_is_valid(h->address))
		return "--address: expected a numeric address such as 127.0.0.1 or ::1, or *";
	if (!h->ssl_cert != !h->ssl_private_key)
		return "--cert and --key belong together";
	if (h->ssl_ca && !h->ssl_cert)
		return "--ca asks clients for a certificate, which needs --cert and --key";
	if (h->everybody && http_settings_has_access(h))
		return "--open lets everybody in, so --token-file and --ca say nothing: give one of them";
	if (!h->everybody && !http_address_is_loopback(h->address) &&
	    !http_settings_has_access(h))
		return "other hosts can reach this address: say by --token-file, --ca or --open who may join";
	return NULL;
}

/* A token of RFC 9110, 5.6.2, as in Sec-WebSocket-Protocol. */
static bool is_protocol(const char *text)
{
	return *text && strlen(text) <= 64 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") ==
		       strlen(text);
}

static bool check(char **argv)
{
	const char *why = check_access();

	if (!is_protocol(o.relay.protocol))
		why = "--protocol: expected a word of at most 64 letters, digits and such as - _ .";
	if (o.uuid && !uuid_is_valid(o.uuid))
		why = "--uuid: expected 32 hexadecimal digits in the form 01234567-89ab-cdef-0123-456789abcdef";
	if (why)
		fprintf(stderr, "%s: %s\n", argv[0], why);
	return !why;
}

/* The same in every run at this place. */
static void make_uuid(char uuid[UUID_SIZE])
{
	char host[256] = "", place[300];

	gethostname(host, sizeof(host) - 1);
	snprintf(place, sizeof(place), "%s:%.0f", host, o.port);
	if (o.uuid)
		memcpy(uuid, o.uuid, UUID_SIZE);
	else
		uuid_from_text(uuid, "relay", place);
}

static void fill_settings(void)
{
	static const char *const names[HTTP_SETTINGS] = {
		[HTTP_PORT] = "--port",
		[HTTP_ADDRESS] = "--address",
		[HTTP_SSL_CERT] = "--cert",
		[HTTP_SSL_PRIVATE_KEY] = "--key",
		[HTTP_SSL_CA] = "--ca",
		[HTTP_TOKEN_FILE] = "--token-file",
		[HTTP_MAX_CONNECTIONS] = "--connections",
	};
	struct relay_settings *s = &o.relay;
	struct http_settings *h = &s->http;

	s->sessions_max = (unsigned)o.sessions;
	s->connections_max = (unsigned)o.connections;
	s->message_bytes_max = (size_t)o.message_kib << 10;
	s->backlog_bytes_max = (size_t)o.backlog_kib << 10;
	s->memory_bytes_max = (size_t)o.memory_mib << 20;
	make_uuid(s->uuid);
	h->names = names;
	h->port = o.port > 0 ? (int64_t)o.port : -1;
	h->client_role = HTTP_OPERATE;
	h->max_connections = (int64_t)o.connections + RELAY_ASKING_MAX;
	h->max_body_bytes = 1024;
	h->header_timeout_s = 10;
	h->idle_timeout_s = 60;
	h->write_timeout_s = s->timeout_s;
}

static volatile sig_atomic_t refresh_wanted;

static void on_hangup(int number)
{
	refresh_wanted = 1;
}

/* SIGHUP comes while it waits, and at no other time. */
static void wait_for_end(struct relay *r, const sigset_t *without_hangup)
{
	struct pollfd p = { .fd = tool_stop_fd(), .events = POLLIN };

	while (!tool_stopping()) {
		if (refresh_wanted) {
			refresh_wanted = 0;
			relay_refresh(r);
		}
		ppoll(&p, 1, NULL, without_hangup);
	}
}

static int run(char **argv)
{
	struct sigaction act = { .sa_handler = on_hangup };
	sigset_t hangup, before;
	json_t *counters = NULL;
	struct relay *r;
	int status = CLI_OK;

	/* Threads inherit the mask: the handler runs in this one only. */
	sigemptyset(&hangup);
	sigaddset(&hangup, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &hangup, &before);
	sigaction(SIGHUP, &act, NULL);
	sigdelset(&before, SIGHUP);
	if (tool_catch_signals() || relay_start(&r, &o.relay))
		return CLI_FAILED;
	wait_for_end(r, &before);
	relay_stop(r, &counters);
	if (o.counters)
		status = tool_print_json(argv, counters);
	json_decref(counters);
	return status;
}

int cli_relay(int argc, char **argv)
{
	int status;

	tool_begin(argv);
	status = parse(argc, argv);
	if (status < 0 && !check(argv))
		status = CLI_USAGE;
	if (status < 0) {
		fill_settings();
		status = run(argv);
	}
	json_decref(o.relay.http.origins);
	return status;
}
