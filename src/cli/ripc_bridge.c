/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar ripc bridge`: a TCP port that leads to a file server of ripc. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/ripc_common.h"
#include "util/log.h"
#include "web/bridge.h"

struct settings {
	const char *listen, *name;
	uint64_t clients, held_mib, timeout_ns, idle_ns;
	bool counters;
};

static void print_help(FILE *out)
{
	fputs("usage: busbar ripc bridge [OPTIONS] --service SERVICE\n\n"
	      "Listens on a TCP port and passes HTTP requests (without content) to a file server of\n"
	      "ripc, by name or number, so that browsers and curl fetch through it.\n\n"
	      "  -s, --service SERVICE    whom it asks\n"
	      "  -l, --listen ADDR:PORT   port 0: any, which is printed (127.0.0.1:8080)\n"
	      "      --clients N          at a time, others wait (256)\n"
	      "      --held MIB           of answers that clients have not taken; then requests\n"
	      "                           wait (512)\n"
	      "  -W, --timeout SECONDS    for an answer (30)\n"
	      "      --idle SECONDS       until a client that does nothing is closed (60)\n"
	      "      --counters           at the end, as a JSON object\n"
	      RIPC_COMMON_HELP, out);
}

/* "127.0.0.1:80", "[::1]:80", "host:80". */
static int split(const char *text, char *host, size_t room, const char **port)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (n > 1 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (!n || n >= room || !colon[1])
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	*port = colon + 1;
	return 0;
}

static int listen_at(const char *text)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
					.ai_flags = AI_PASSIVE };
	const char *port, *why = NULL;
	struct addrinfo *list;
	const int one = 1;
	char host[256];
	int fd, err;

	if (split(text, host, sizeof(host), &port)) {
		log_error("--listen '%s' is not usable, expected ADDRESS:PORT", text);
		return -EINVAL;
	}
	err = getaddrinfo(host, port, &hints, &list);
	if (err) {
		log_error("--listen %s: %s", text, gai_strerror(err));
		return -EINVAL;
	}
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) || listen(fd, 128))
		why = strerror(errno);
	freeaddrinfo(list);
	if (!why)
		return fd;
	log_error("--listen %s: %s", text, why);
	if (fd >= 0)
		close(fd);
	return -EIO;
}

/* The port may have been 0. */
static void print_address(int fd)
{
	struct sockaddr_storage a;
	socklen_t bytes = sizeof(a);
	char host[INET6_ADDRSTRLEN + 1], port[8];

	if (getsockname(fd, (struct sockaddr *)&a, &bytes) ||
	    getnameinfo((struct sockaddr *)&a, bytes, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	printf(strchr(host, ':') ? "listening on http://[%s]:%s/\n" :
				   "listening on http://%s:%s/\n", host, port);
	fflush(stdout);
}

static void print_counters(struct ripc *r, const struct bridge_counters *n)
{
	struct json_out j = { .out = stdout };

	json_out_open(&j, NULL, '{');
	json_out_uint(&j, "clients", n->clients);
	json_out_uint(&j, "requests", n->requests);
	json_out_uint(&j, "answered", n->answered);
	json_out_uint(&j, "bad_requests", n->bad_requests);
	json_out_uint(&j, "failed", n->failed);
	json_out_uint(&j, "late", n->late);
	json_out_uint(&j, "cut", n->cut);
	ripc_common_counters(r, &j);
	json_out_close(&j, '}');
	putchar('\n');
}

/* SIGINT and SIGTERM are blocked; readable when one has come. */
static int signal_descriptor(void)
{
	sigset_t s;

	sigemptyset(&s);
	sigaddset(&s, SIGINT);
	sigaddset(&s, SIGTERM);
	return signalfd(-1, &s, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run(const struct settings *t, struct ripc *r, int listen_fd)
{
	struct bridge_counters n;
	struct bridge_options o = {
		.r = r, .name = t->name, .listen_fd = listen_fd,
		.clients_max = (unsigned)t->clients, .held_bytes_max = t->held_mib << 20,
		.timeout_ms = (unsigned)(t->timeout_ns / 1000000),
		.idle_ms = (unsigned)(t->idle_ns / 1000000), .stop_fd = signal_descriptor(),
	};
	int ret;

	ripc_is_id(t->name, &o.server);
	ret = ripc_service_open(r, 0, NULL, &o.service);
	if (ret) {
		close(listen_fd);
		close(o.stop_fd);
		return ripc_failed("no service", ret);
	}
	print_address(listen_fd);
	ret = bridge_run(&o, &n);
	if (ret)
		log_error("the bridge does not work: %s", strerror(-ret));
	close(o.stop_fd);
	ripc_service_close(o.service);
	if (t->counters)
		print_counters(r, &n);
	return ret ? CLI_FAILED : CLI_OK;
}

static int bridge(const struct settings *t, const struct ripc_config *config)
{
	struct ripc *r;
	int fd, ret;

	ripc_common_block();
	fd = listen_at(t->listen);
	if (fd < 0)
		return fd == -EINVAL ? CLI_USAGE : CLI_FAILED;
	if (ripc_common_open(config, &r)) {
		close(fd);
		return CLI_FAILED;
	}
	ret = run(t, r, fd);
	ripc_close(r);
	return ret;
}

int cli_ripc_bridge(int argc, char **argv);

int cli_ripc_bridge(int argc, char **argv)
{
	static const struct option options[] = {
		{ "service", required_argument, NULL, 's' },
		{ "listen", required_argument, NULL, 'l' },
		{ "clients", required_argument, NULL, 1 }, { "held", required_argument, NULL, 2 },
		{ "timeout", required_argument, NULL, 'W' },
		{ "idle", required_argument, NULL, 3 }, { "counters", no_argument, NULL, 4 },
		RIPC_COMMON_LONG, { NULL, 0, NULL, 0 },
	};
	struct settings t = { .listen = "127.0.0.1:8080", .clients = 256, .held_mib = 512,
			      .timeout_ns = 30000000000u, .idle_ns = 60000000000u };
	struct ripc_config config = { 0 };
	bool good = true;
	int opt;

	while (good && (opt = getopt_long(argc, argv, "s:l:W:" RIPC_COMMON_SHORT, options, NULL)) != -1) {
		switch (opt) {
		case 's': t.name = optarg; break;
		case 'l': t.listen = optarg; break;
		case 'W': good = ripc_seconds("timeout", optarg, 3600, &t.timeout_ns); break;
		case 1: good = ripc_number("clients", optarg, 1, 100000, &t.clients); break;
		case 2: good = ripc_number("held", optarg, 1, 1 << 20, &t.held_mib); break;
		case 3: good = ripc_seconds("idle", optarg, 3600, &t.idle_ns); break;
		case 4: t.counters = true; break;
		case 'h':
			print_help(stdout);
			return CLI_OK;
		default: good = ripc_common_option(&config, opt, optarg);
		}
	}
	if (!good)
		return CLI_USAGE;
	if (!t.name || optind != argc) {
		log_error("--service SERVICE is to be given, and nothing but options");
		return CLI_USAGE;
	}
	return bridge(&t, &config);
}
