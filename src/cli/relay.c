/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar relay`: its options, and its end; the relay itself is gateway/relay/. */
#define LOG_ROOM tool_room
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"
#include "gateway/relay/relay.h"
#include "util/options.h"

static struct relay_options {
	struct relay_settings relay;
	const char *uuid;
	uint16_t port;
	unsigned sessions, connections;
	uint64_t message_kib, backlog_kib, memory_mib;
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

static int take_origin(const struct option_given *g)
{
	const char *text = g->value;
	const char *host = !strncmp(text, "http://", 7)	 ? text + 7 :
			   !strncmp(text, "https://", 8) ? text + 8 :
							   "";

	if (!*host || strpbrk(host, "/?# "))
		return options_refuse(g, "expected an origin such as https://lab.example:8443, without a path");
	if (!o.relay.http.origins)
		o.relay.http.origins = json_array();
	return tool_take_text(g);
}

static const struct option_entry table[] = {
	{ "-p, --port N: TCP port; 0: any, which the log tells (8088)",
	  OPTION_WHOLE(struct relay_options, port, 0, UINT16_MAX) },
	{ "-a, --address ADDR: numeric, or * for all (127.0.0.1)",
	  OPTION_TEXT(struct relay_options, relay.http.address) },
	{ "-P, --protocol NAME: of clients that name one (live)", OPTION_TEXT(struct relay_options, relay.protocol) },
	{ "-l, --loopback: who sends gets it back, too", OPTION_FLAG(struct relay_options, relay.loopback) },
	{ "-u, --uuid UUID: of the relay, which / shows", OPTION_TEXT(struct relay_options, uuid) },
	{ "--cert FILE: certificate: HTTPS, with --key", OPTION_TEXT(struct relay_options, relay.http.ssl_cert) },
	{ "--key FILE: key of the certificate", OPTION_TEXT(struct relay_options, relay.http.ssl_private_key) },
	{ "--ca FILE: authority whose certificate every client has to have",
	  OPTION_TEXT(struct relay_options, relay.http.ssl_ca) },
	{ "--token-file FILE: who may look (watch) and join (operate), see busbar-http(7)",
	  OPTION_TEXT(struct relay_options, relay.http.token_file) },
	{ "--open: everybody who can reach the relay may join",
	  OPTION_FLAG(struct relay_options, relay.http.everybody) },
	{ "--origin ORIGIN...: whose pages may use it, besides its own",
	  OPTION_TAKE(struct relay_options, relay.http.origins, take_origin) },
	{ "--sessions N: at a time (1000)", OPTION_WHOLE(struct relay_options, sessions, 1, 100000) },
	{ "--connections N: at a time (1000)", OPTION_WHOLE(struct relay_options, connections, 1, 100000) },
	{ "--message KIB: longest message (1024)", OPTION_WHOLE(struct relay_options, message_kib, 1, 16000) },
	{ "--backlog KIB: of messages that wait for one connection (1024)",
	  OPTION_WHOLE(struct relay_options, backlog_kib, 1, 1 << 20) },
	{ "--memory MIB: of all that wait or have come in part (256)",
	  OPTION_WHOLE(struct relay_options, memory_mib, 1, 1 << 20) },
	{ "--ping SECONDS: until a silent connection is asked (20)",
	  OPTION_REAL(struct relay_options, relay.ping_s, 0.1, 3600) },
	{ "--timeout SECONDS: for its answer, and for taking what is sent (20)",
	  OPTION_REAL(struct relay_options, relay.timeout_s, 0.1, 3600) },
	{ "--counters: at the end, as JSON", OPTION_FLAG(struct relay_options, counters) },
	TOOL_OPTIONS,
};

static const struct options options = {
	.synopsis = "[OPTIONS]",
	.about = "Connections by WebSocket to the same path are a session: what one of them sends\n"
		 "goes to all others. GET / lists the sessions, GET /metrics is for Prometheus.\n",
	.table = table,
};

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
	snprintf(place, sizeof(place), "%s:%u", host, o.port);
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

	s->sessions_max = o.sessions;
	s->connections_max = o.connections;
	s->message_bytes_max = o.message_kib << 10;
	s->backlog_bytes_max = o.backlog_kib << 10;
	s->memory_bytes_max = o.memory_mib << 20;
	make_uuid(s->uuid);
	h->names = names;
	h->port = o.port ? o.port : -1;
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
	status = options_parse(&options, argc, argv, &o, NULL);
	if (status < 0 && !check(argv))
		status = CLI_USAGE;
	if (status < 0) {
		fill_settings();
		status = run(argv);
	}
	json_decref(o.relay.http.origins);
	return status;
}
