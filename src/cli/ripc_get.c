/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar ripc get`: fetches a file from a file server. Long files come in ranges, each one
 * message, so that memory is bounded and there is something to tell of in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ripc_common.h"
#include "util/clock.h"
#include "util/log.h"
#include "web/client.h"

#define CHUNK_MIB 64

struct get {
	struct ripc_config config;
	const char *server, *path, *output;
	uint64_t chunk_mib, timeout_ns;
	bool quiet, head_only, progress;
	struct client c;
	int fd;
	uint64_t done, size;
	char tag[128];         /* of the first answer: the others are to be of the same file */
	uint64_t begin_ns, shown_ns;
};

static const struct option_entry table[] = {
	{ "-o, --output FILE: written; removed again when not all of it came", OPTION_TEXT(struct get, output) },
	{ "-I, --head: only the head of the answer, to standard output", OPTION_FLAG(struct get, head_only) },
	{ "--chunk MIB: longest content of one message (64)", OPTION_WHOLE(struct get, chunk_mib, 1, 1024) },
	{ "-W, --timeout SECONDS: for each answer (30)", RIPC_SECONDS(struct get, timeout_ns) },
	{ "-q, --quiet: no progress on a terminal", OPTION_FLAG(struct get, quiet) },
	RIPC_OPTIONS(struct get),
};

static const struct options options = {
	.program = "busbar ripc get",
	.synopsis = "[OPTIONS] SERVICE PATH",
	.about = "Fetches a file from a file server ('busbar ripc serve --directory'), by the server's\n"
		 "name or number, to standard output or a file.\n",
	.table = table,
	.operands_min = 2,
	.operands_max = 2,
};

static void show(struct get *g, bool last)
{
	uint64_t now = clock_monotonic_ns_slow();
	double s = (double)(now - g->begin_ns) / 1e9;

	if (!g->progress || (!last && now - g->shown_ns < 200000000))
		return;
	g->shown_ns = now;
	fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " MiB, %.0f MB/s   %s", g->done >> 20,
		g->size >> 20, s > 0 ? (double)g->done / s / 1e6 : 0, last ? "\n" : "");
}

static int write_all(struct get *g, const char *at, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(g->fd, at, bytes);

		if (n < 0 && errno == EINTR && !atomic_load(&ripc_interrupted))
			continue;
		if (n < 0) {
			log_error("%s: %s", g->output ? g->output : "standard output",
				  strerror(errno));
			return -EIO;
		}
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* "bytes 0-99/1234": the length of all. */
static bool whole_size(const struct client_answer *a, uint64_t first, uint64_t *size)
{
	const struct head_field *f = head_find(&a->head.head, "Content-Range");
	char text[100], end;
	uint64_t from, to;

	if (!f || f->value.bytes >= sizeof(text))
		return false;
	memcpy(text, f->value.at, f->value.bytes);
	text[f->value.bytes] = '\0';
	return sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64 "%c", &from, &to, size,
		      &end) == 3 && from == first && to >= from && to - from == a->bytes - 1 &&
	       to < *size;
}

static int take(struct get *g, const struct client_answer *a)
{
	const struct head_field *tag = head_find(&a->head.head, "ETag");
	unsigned status = a->head.status;

	/* A file without bytes has no range: 416, or 200 at once. */
	if (status == 416 && !g->done) {
		const struct head_field *f = head_find(&a->head.head, "Content-Range");

		if (f && head_is(f->value, "bytes */0"))
			return 0;
	}
	if (status == 200 && g->done) {
		log_error("%s: the file has changed meanwhile", g->path);
		return -EIO;
	}
	if (status == 200) {
		g->size = a->bytes;
	} else if (status != 206 || !whole_size(a, g->done, &g->size)) {
		log_error("%s: %.*s", g->path, (int)a->head.head.first.bytes - 9,
			  a->head.head.first.at + 9);
		return -EIO;
	}
	if (tag && tag->value.bytes < sizeof(g->tag)) {
		memcpy(g->tag, tag->value.at, tag->value.bytes);
		g->tag[tag->value.bytes] = '\0';
	}
	g->done += a->bytes;
	return write_all(g, a->content, a->bytes);
}

static int fetch(struct get *g)
{
	uint64_t chunk = g->chunk_mib << 20;

	g->begin_ns = clock_monotonic_ns_slow();
	do {
		struct client_answer a;
		char fields[300];
		int ret;

		snprintf(fields, sizeof(fields), "Range: bytes=%" PRIu64 "-%" PRIu64 "\r\n%s%s%s",
			 g->done, g->done + chunk - 1, *g->tag ? "If-Range: " : "", g->tag,
			 *g->tag ? "\r\n" : "");
		ret = client_ask(&g->c, "GET", g->path, fields, &a);
		if (ret) {
			if (ret != -EINTR)
				ripc_failed(g->server, ret);
			return ret;
		}
		ret = take(g, &a);
		client_release(&a);
		if (ret)
			return ret;
		show(g, false);
	} while (g->done < g->size);
	if (g->shown_ns)
		show(g, true);
	return 0;
}

static int fetch_head(struct get *g)
{
	struct client_answer a;
	int ret = client_ask(&g->c, "HEAD", g->path, "", &a);

	if (ret)
		return ret == -EINTR ? ret : (ripc_failed(g->server, ret), ret);
	ret = fwrite(a.message.items[0].data, a.message.items[0].bytes, 1, stdout) == 1 &&
	      !fflush(stdout) && a.head.status < 400 ? 0 : -EIO;
	client_release(&a);
	return ret;
}

static int fetch_to_file(struct get *g)
{
	int ret;

	if (!g->output) {
		g->fd = STDOUT_FILENO;
		return fetch(g);
	}
	g->fd = open(g->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (g->fd < 0) {
		log_error("%s: %s", g->output, strerror(errno));
		return -EIO;
	}
	ret = fetch(g);
	if (close(g->fd) && !ret) {
		log_error("%s: %s", g->output, strerror(errno));
		ret = -EIO;
	}
	if (ret)
		unlink(g->output);
	return ret;
}

static int get(struct get *g, const struct ripc_config *config)
{
	const char *by = getenv("RIPC_SHORT");
	int ret;

	ripc_common_catch();
	if (ripc_common_open(config, &g->c.r))
		return CLI_FAILED;
	g->c.resend = config->short_by == RIPC_SHORT_DATAGRAM ||
		      (config->short_by == RIPC_SHORT_DEFAULT && by && !strcmp(by, "datagram"));
	g->c.stop = &ripc_interrupted;
	g->c.timeout_ms = (int)(g->timeout_ns / 1000000);
	g->progress = !g->quiet && isatty(STDERR_FILENO) && (g->output || !isatty(STDOUT_FILENO));
	ret = ripc_common_find(g->c.r, g->server, &g->c.server) ?:
	      ripc_service_open(g->c.r, 0, NULL, &g->c.service);
	if (!ret) {
		ret = g->head_only ? fetch_head(g) : fetch_to_file(g);
		ripc_service_close(g->c.service);
	}
	ripc_close(g->c.r);
	return ret ? CLI_FAILED : CLI_OK;
}

int cli_ripc_get(int argc, char **argv)
{
	static struct get g = { .chunk_mib = CHUNK_MIB, .timeout_ns = 30000000000u };
	int status = options_parse(&options, argc, argv, &g, NULL);

	if (status >= 0)
		return status;
	g.server = argv[optind];
	g.path = argv[optind + 1];
	return get(&g, &g.config);
}
