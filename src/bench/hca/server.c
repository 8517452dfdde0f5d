/* SPDX-License-Identifier: BSD-2-Clause */
/* The side that is asked; see remote.h. One case after the other. */
#define LOG_ROOM "bench/hca"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/hca/case.h"
#include "bench/kind/kind.h"
#include "bench/hca/remote.h"
#include "bench/kind/command.h"
#include "bench/kind/parameters.h"
#include "util/log.h"
#include "util/options.h"

#define ANY_CPU UINT_MAX

struct server {
	const char *listen, *device, *address;
	unsigned cpu; /* ANY_CPU: the one that the case would take */
	bool serve, once;
	const atomic_bool *stop;
};

/* Takes nothing for granted: who asks may be anybody. */
static int check_parameters(const json_t *asked, json_t *out, char *why)
{
	const char *key;
	json_t *value, *checked;

	json_object_foreach((json_t *)asked, key, value) {
		const struct bench_parameter *p = parameter_find(&bench_kind_hca, key, why);

		if (!p || parameter_value(p, value, &checked, why) ||
		    json_object_set_new(out, p->name, checked))
			return -EINVAL;
	}
	return parameters_complete(&bench_kind_hca, out, why);
}

/* Places are this host's own affair. */
static int set_places(const struct server *sv, json_t *p)
{
	return json_object_set_new(p, "device", json_string(sv->device)) ||
	       json_object_set_new(p, "address", json_string(sv->address)) ||
	       json_object_set_new(p, "cpus", json_string("")) ||
	       json_object_set_new(p, "peer", json_string("asked")) ? -ENOMEM : 0;
}

/* The case that `text` asks for; -EINVAL with why[]. */
static int read_case(const struct server *sv, const char *text, struct hca_case *c, char *why)
{
	json_error_t error;
	json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	json_t *p = json_object();
	double scale = json_number_value(json_object_get(all, "scale"));
	int ret;

	snprintf(why, PARAMETER_WHY_SIZE, "the case cannot be read");
	ret = (json_is_object(json_object_get(all, "parameters")) ? 0 : -EINVAL) ?:
	      check_parameters(json_object_get(all, "parameters"), p, why) ?: set_places(sv, p);
	if (!ret) {
		snprintf(why, PARAMETER_WHY_SIZE, "the parameters do not go together");
		ret = hca_case_read(p, scale, c);
	}
	json_decref(p);
	json_decref(all);
	return ret;
}

static void no_progress(const struct bench_context *context, double share)
{
}

static int measure(const struct server *sv, const struct hca_case *c, int fd)
{
	const struct bench_context context = { .stop = sv->stop, .progress = no_progress };
	struct hca_shared *s;
	int ret = hca_shared_create(c, &s);

	if (ret)
		return ret;
	ret = hca_measure_end(c, s, HCA_RECEIVER, fd, &context);
	if (!ret)
		log_info("%llu messages received",
			 (unsigned long long)s->end[HCA_RECEIVER].received);
	hca_shared_destroy(s);
	return ret;
}

static int serve(const struct server *sv, int fd)
{
	char why[PARAMETER_WHY_SIZE], *text;
	struct hca_case c;
	int ret;

	hca_socket_tune(fd);
	ret = hca_text_receive(fd, &text);
	if (ret)
		return log_fail(ret, "a client said nothing that can be understood: %s",
				strerror(-ret));
	ret = read_case(sv, text, &c, why);
	free(text);
	if (ret) {
		log_error("a client's case is refused: %s", why);
		hca_text_send(fd, why);
		return ret;
	}
	if (sv->cpu != ANY_CPU)
		c.cpu[HCA_RECEIVER] = (int)sv->cpu;
	ret = hca_text_send(fd, "");
	return ret ?: measure(sv, &c, fd);
}

static int accept_clients(const struct server *sv, int listener)
{
	struct pollfd pfd = { .fd = listener, .events = POLLIN };
	int ret = 0;

	while (!atomic_load(sv->stop)) {
		int fd;

		if (poll(&pfd, 1, 200) <= 0)
			continue;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		ret = serve(sv, fd);
		close(fd);
		if (sv->once)
			return ret;
	}
	return 0;
}

static const struct option_entry table[] = {
	{ "--server: receive and answer", OPTION_FLAG(struct server, serve) },
	{ "--listen ADDRESS: [HOST][:PORT], address and TCP port of the control connection (all, "
	  HCA_PORT ")", OPTION_TEXT(struct server, listen) },
	{ "--device NAME: the adapter (soft0)", OPTION_TEXT(struct server, device) },
	{ "--address IP: of connection management (that of the control connection)",
	  OPTION_TEXT(struct server, address) },
	{ "--cpu N: on which to run", OPTION_WHOLE(struct server, cpu, 0, CPU_SETSIZE - 1) },
	{ "--once: end after one case", OPTION_FLAG(struct server, once) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar bench hca",
	.synopsis = "--server [OPTIONS]",
	.about = "Receives and answers the messages of 'busbar bench hca --peer HOST' on another\n"
		 "host, case after case until Ctrl-C. Whoever reaches the port may have cases measured.\n",
	.table = table,
};

int bench_hca_server_main(int argc, char **argv)
{
	struct server sv = { .listen = "", .device = "soft0", .address = "", .cpu = ANY_CPU };
	int listener, ret = options_parse(&options, argc, argv, &sv, NULL);

	if (ret != OPTIONS_GO_ON)
		return ret;
	sv.stop = bench_catch_signals();
	listener = hca_socket_open(sv.listen, true);
	if (listener < 0)
		return BENCH_FAILED;
	log_info("waiting for clients%s%s", *sv.listen ? " on " : "", sv.listen);
	ret = accept_clients(&sv, listener);
	close(listener);
	return ret ? BENCH_FAILED : BENCH_OK;
}
