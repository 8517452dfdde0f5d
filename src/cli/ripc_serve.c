/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar ripc serve`: an echo service, or a file server. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ripc_common.h"
#include "util/log.h"
#include "web/server.h"

#define THREADS_MAX 64
/* Long messages that go back and have not arrived; then the oldest is waited for. */
#define ECHOES_MAX 64
#define REAP_MS 20
#define ECHO_WAIT_MS 1000

struct serve {
	struct ripc_config config;
	const char *name, *directory;
	uint64_t cache_mib, content_mib, threads;
	bool counters;
	struct server server;  /* of echo: service, r and stop only */
	atomic_uint_fast64_t failed;
	pthread_t ids[THREADS_MAX];
};

static const struct option_entry table[] = {
	{ "-d, --directory DIR: serves the files of this folder", OPTION_TEXT(struct serve, directory) },
	{ "--cache MIB: of recent files in registered memory (256)",
	  OPTION_WHOLE(struct serve, cache_mib, 0, 1 << 20) },
	{ "--answer MIB: longest content of one answer; longer files only in ranges (1024)",
	  OPTION_WHOLE(struct serve, content_mib, 1, 4096) },
	{ "-t, --threads N: that answer (2)", OPTION_WHOLE(struct serve, threads, 1, THREADS_MAX) },
	{ "--counters: at the end, as a JSON object", OPTION_FLAG(struct serve, counters) },
	RIPC_OPTIONS(struct serve),
};

static const struct options options = {
	.program = "busbar ripc serve",
	.synopsis = "[OPTIONS] SERVICE",
	.about = "Opens a service, by name or number, that sends back what it gets ('busbar ripc\n"
		 "ping'), or with --directory answers HTTP requests for files ('busbar ripc get',\n"
		 "'busbar ripc bridge'). Ends with Ctrl-C.\n",
	.table = table,
	.operands_min = 1,
	.operands_max = 1,
};

/* ---- echo ---- */

struct echo {
	struct ripc_token token;
	struct ripc_message m;
};

struct echoes {
	struct serve *v;
	unsigned count;
	struct echo all[ECHOES_MAX];
};

static void reap(struct echoes *e, int first_wait_ms)
{
	for (unsigned i = 0; i < e->count;) {
		int ret = ripc_sent(e->v->server.service, e->all[i].token,
				    i ? 0 : first_wait_ms);

		if (ret == -EAGAIN && !(first_wait_ms && !i)) {
			i++;
			continue;
		}
		if (ret == -EAGAIN) /* it keeps its memory until the instance ends */
			atomic_fetch_add(&e->v->failed, 1);
		else
			ripc_release(&e->all[i].m);
		e->all[i] = e->all[--e->count];
	}
}

static void send_back(struct echoes *e, const struct ripc_message *m)
{
	struct ripc_service *s = e->v->server.service;
	struct echo *one = &e->all[e->count];
	int ret;

	one->m = *m;
	ret = m->is_long ? ripc_send_long(s, m->from, m->items, m->count, NULL, 0, &one->token) :
			   ripc_send_short(s, m->from, m->items, m->count, NULL, 0);
	if (ret)
		atomic_fetch_add(&e->v->failed, 1);
	if (!ret && m->is_long)
		e->count++;
	else
		ripc_release(&one->m);
}

static void *echo(void *arg)
{
	struct echoes *e = calloc(1, sizeof(*e));
	struct ripc_message m;

	if (!e)
		return NULL;
	e->v = arg;
	while (!atomic_load(&e->v->server.stop)) {
		int ret = ripc_receive(e->v->server.service, &m, e->count ? REAP_MS : -1);

		if (!ret)
			send_back(e, &m);
		else if (ret != -EAGAIN)
			break;
		reap(e, e->count == ECHOES_MAX ? ECHO_WAIT_MS : 0);
	}
	free(e);
	return NULL;
}

/* ---- both ---- */

static void *files(void *arg)
{
	struct serve *v = arg;

	server_work(&v->server);
	return NULL;
}

/* Each thread that waits for a message gets one from the service itself. */
static void stop_threads(struct serve *v, unsigned count)
{
	struct ripc_service *s = v->server.service;
	const struct ripc_item none = { (char[1]){ 0 }, 0 };

	atomic_store(&v->server.stop, true);
	for (unsigned i = 0; i < count; i++)
		if (ripc_send_short(s, ripc_service_id(s), &none, 1, NULL, 0))
			log_warn("a thread is not told to end: %s", ripc_error());
	for (unsigned i = 0; i < count; i++)
		pthread_join(v->ids[i], NULL);
}

static void print_counters(struct serve *v)
{
	struct cli_json j = { .out = stdout };
	struct store_counters n;

	cli_json_open(&j, NULL, '{');
	cli_json_put(&j, j_uint("requests", atomic_load(&v->server.requests)),
			 j_uint("answered", atomic_load(&v->server.answered)),
			 j_uint("refused", atomic_load(&v->server.refused)),
			 j_uint("failed", atomic_load(&v->server.failed) + atomic_load(&v->failed)));
	if (v->server.store) {
		store_counters(v->server.store, &n);
		cli_json_put(&j, j_uint("cache_hits", n.hits), j_uint("cache_misses", n.misses),
				 j_uint("cache_bytes", n.kept_bytes),
				 j_uint("cache_files", n.kept_files));
	}
	ripc_common_counters(v->server.r, &j);
	cli_json_close(&j, '}');
}

static int serve_until_signal(struct serve *v)
{
	unsigned count = 0;
	int err = 0;

	while (count < v->threads && !err) {
		err = pthread_create(&v->ids[count], NULL, v->directory ? files : echo, v);
		count += !err;
	}
	if (err)
		log_error("no thread: %s", strerror(err));
	/* What a script waits for. */
	printf("service %s 0x%" PRIx32 " %s\n", v->name, ripc_service_id(v->server.service),
	       v->directory ? v->directory : "echo");
	fflush(stdout);
	if (!err)
		ripc_common_wait();
	stop_threads(v, count);
	if (v->counters)
		print_counters(v);
	return err ? CLI_FAILED : CLI_OK;
}

static int serve(struct serve *v)
{
	struct server *s = &v->server;
	int ret;

	ripc_common_block();
	if (ripc_common_open(&v->config, &s->r))
		return CLI_FAILED;
	s->content_max = v->content_mib << 20;
	ret = v->directory ? store_open(&s->store, s->r, v->directory, v->cache_mib << 20) : 0;
	if (ret)
		log_error("--directory %s: %s", v->directory, strerror(-ret));
	if (!ret)
		ret = ripc_common_serve(s->r, v->name, &s->service);
	if (!ret) {
		ret = serve_until_signal(v);
		ripc_service_close(s->service);
	}
	store_close(s->store);
	ripc_close(s->r);
	return ret < 0 ? CLI_FAILED : ret;
}

int cli_ripc_serve(int argc, char **argv)
{
	static struct serve v = { .cache_mib = 256, .content_mib = 1024, .threads = 2 };
	int status = options_parse(&options, argc, argv, &v, NULL);

	if (status >= 0)
		return status;
	v.name = argv[optind];
	return serve(&v);
}
