/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar ripc bridge`: a TCP port that leads to a file server of ripc. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/ripc_common.h"
#include "util/log.h"
#include "web/bridge.h"

struct settings {
	struct ripc_config config;
	const char *listen, *name;
	unsigned clients;
	uint64_t held_mib, timeout_ns, idle_ns;
	bool counters;
};

static const struct option_entry table[] = {
	{ "-s, --service SERVICE: whom it asks", OPTION_TEXT(struct settings, name) },
	{ "-l, --listen ADDR:PORT: port 0: any, which is printed (127.0.0.1:8080)",
	  OPTION_TEXT(struct settings, listen) },
	{ "--clients N: at a time, others wait (256)", OPTION_WHOLE(struct settings, clients, 1, 100000) },
	{ "--held MIB: of answers that clients have not taken; then requests wait (512)",
	  OPTION_WHOLE(struct settings, held_mib, 1, 1 << 20) },
	{ "-W, --timeout SECONDS: for an answer (30)", RIPC_SECONDS(struct settings, timeout_ns) },
	{ "--idle SECONDS: until a client that does nothing is closed (60)", RIPC_SECONDS(struct settings, idle_ns) },
	{ "--counters: at the end, as a JSON object", OPTION_FLAG(struct settings, counters) },
	RIPC_OPTIONS(struct settings),
};

static const struct options options = {
	.program = "busbar ripc bridge",
	.synopsis = "[OPTIONS] --service SERVICE",
	.about = "Listens on a TCP port and passes HTTP requests (without content) to a file server of\n"
		 "ripc, by name or number, so that browsers and curl fetch through it.\n",
	.table = table,
};

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
	struct cli_json j = { .out = stdout };

	cli_json_open(&j, NULL, '{');
	cli_json_put(&j, j_uint("clients", n->clients), j_uint("requests", n->requests),
			 j_uint("answered", n->answered), j_uint("bad_requests", n->bad_requests),
			 j_uint("failed", n->failed), j_uint("late", n->late), j_uint("cut", n->cut));
	ripc_common_counters(r, &j);
	cli_json_close(&j, '}');
}

/* SIGINT and SIGTERM are blocked; readable when one has come. */
static int signal_descriptor(void)
{
	sigset_t s;

	ripc_common_signals(&s);
	return signalfd(-1, &s, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run(const struct settings *t, struct ripc *r, int listen_fd)
{
	struct bridge_counters n;
	struct bridge_options o = {
		.r = r, .name = t->name, .listen_fd = listen_fd,
		.clients_max = t->clients, .held_bytes_max = t->held_mib << 20,
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

static int bridge(const struct settings *t)
{
	struct ripc *r;
	int fd, ret;

	ripc_common_block();
	fd = listen_at(t->listen);
	if (fd < 0)
		return fd == -EINVAL ? CLI_USAGE : CLI_FAILED;
	if (ripc_common_open(&t->config, &r)) {
		close(fd);
		return CLI_FAILED;
	}
	ret = run(t, r, fd);
	ripc_close(r);
	return ret;
}

int cli_ripc_bridge(int argc, char **argv)
{
	struct settings t = { .listen = "127.0.0.1:8080", .clients = 256, .held_mib = 512,
			      .timeout_ns = 30000000000u, .idle_ns = 60000000000u };
	int status = options_parse(&options, argc, argv, &t, NULL);

	if (status >= 0)
		return status;
	if (!t.name)
		return options_wrong(&options, argv, "--service SERVICE is to be given");
	return bridge(&t);
}
