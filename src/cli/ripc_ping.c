/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar ripc ping`: round trips to a service that sends back what it gets. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli/ripc_common.h"
#include "util/clock.h"
#include "util/hist.h"
#include "util/log.h"

#define SIZE_MIN 8          /* the number of the message */
#define SIZE_MAX_LONG (UINT64_C(1) << 30)
#define SLICE_MS 100

struct ping {
	struct ripc_config config;
	struct ripc *r;
	struct ripc_service *s;
	uint32_t to;
	const char *name;
	uint64_t size, count, interval_ns, timeout_ns;
	bool is_long, quiet, json;
	char *payload;
	uint64_t sent, received, corrupt, late, first_ns;
	struct hist times;
};

static const struct option_entry table[] = {
	{ "-s, --size BYTES: of a message, 8 or more (50)",
	  OPTION_WHOLE(struct ping, size, SIZE_MIN, SIZE_MAX_LONG) },
	{ "-c, --count N: messages; 0: until interrupted (10)", OPTION_WHOLE(struct ping, count, 0, UINT32_MAX) },
	{ "-i, --interval SECONDS: between two of them, 0: none (0.1)", RIPC_SECONDS(struct ping, interval_ns) },
	{ "-l, --long: long messages, by RDMA; else short ones", OPTION_FLAG(struct ping, is_long) },
	{ "-W, --timeout SECONDS: then a message is lost (2)", RIPC_SECONDS(struct ping, timeout_ns) },
	{ "-q, --quiet: only the result", OPTION_FLAG(struct ping, quiet) },
	{ "-j, --json: the result as a JSON object", OPTION_FLAG(struct ping, json) },
	RIPC_OPTIONS(struct ping),
};

static const struct options options = {
	.program = "busbar ripc ping",
	.synopsis = "[OPTIONS] SERVICE",
	.about = "Sends messages to a service that sends them back ('busbar ripc serve'), by name or\n"
		 "number, and shows how long that takes.\n",
	.table = table,
	.operands_min = 1,
	.operands_max = 1,
	.end = "The status is 0 when all came back, 3 when some did, 1 when none did.\n",
};

static int send_one(struct ping *p)
{
	const struct ripc_item item = { p->payload, p->size };

	return p->is_long ? ripc_send_long(p->s, p->to, &item, 1, NULL, 0, NULL) :
			    ripc_send_short(p->s, p->to, &item, 1, NULL, 0);
}

/* 0: it is what was sent; -ENOENT: another one, late. */
static int look(struct ping *p, const struct ripc_message *m)
{
	if (m->from != p->to || m->count != 1 || m->items[0].bytes < SIZE_MIN ||
	    memcmp(m->items[0].data, p->payload, SIZE_MIN)) {
		p->late++;
		return -ENOENT;
	}
	p->corrupt += m->items[0].bytes != p->size || m->is_long != p->is_long ||
		      memcmp(m->items[0].data, p->payload, p->size) != 0;
	return 0;
}

/* -EAGAIN: nothing came in time. */
static int wait_one(struct ping *p, uint64_t until_ns)
{
	struct ripc_message m;

	for (;;) {
		uint64_t now = clock_monotonic_ns_slow();
		uint64_t left_ms = now < until_ns ? (until_ns - now + 999999) / 1000000 : 0;
		int ret;

		if (atomic_load(&ripc_interrupted))
			return -EINTR;
		if (!left_ms)
			return -EAGAIN;
		ret = ripc_receive(p->s, &m, left_ms < SLICE_MS ? (int)left_ms : SLICE_MS);
		if (ret == -EAGAIN)
			continue;
		if (ret)
			return ret;
		ret = look(p, &m);
		ripc_release(&m);
		if (!ret)
			return 0;
	}
}

static void pause_until(uint64_t at_ns)
{
	uint64_t now;

	while (!atomic_load(&ripc_interrupted) && (now = clock_monotonic_ns_slow()) < at_ns) {
		uint64_t ns = at_ns - now < SLICE_MS * 1000000u ? at_ns - now :
								  SLICE_MS * 1000000u;
		const struct timespec t = { .tv_nsec = (long)ns };

		nanosleep(&t, NULL);
	}
}

/* One message. False: no more are to be sent. */
static bool once(struct ping *p)
{
	uint64_t number = ++p->sent, begin, end;
	int ret;

	memcpy(p->payload, &number, sizeof(number));
	begin = clock_monotonic_ns_slow();
	ret = send_one(p);
	if (ret) {
		ripc_failed(p->name, ret);
		return ret == -EHOSTUNREACH || ret == -EAGAIN || ret == -ETIMEDOUT ||
		       ret == -ECONNRESET || ret == -ECONNREFUSED;
	}
	ret = wait_one(p, begin + p->timeout_ns);
	end = clock_monotonic_ns_slow();
	if (ret == -EINTR) {
		p->sent--;
		return false;
	}
	if (ret && ret != -EAGAIN) {
		ripc_failed("receiving", ret);
		return false;
	}
	if (!ret) {
		p->received++;
		if (p->received == 1)
			p->first_ns = end - begin;
		else
			hist_record(&p->times, end - begin);
	}
	if (!p->quiet && !ret)
		printf("%" PRIu64 " bytes from %s: number %" PRIu64 ", %.1f us\n", p->size,
		       p->name, number, (double)(end - begin) / 1e3);
	else if (!p->quiet)
		printf("no answer from %s: number %" PRIu64 "\n", p->name, number);
	return true;
}

static void run(struct ping *p)
{
	uint64_t next = clock_monotonic_ns_slow();

	while ((!p->count || p->sent < p->count) && !atomic_load(&ripc_interrupted)) {
		if (!once(p))
			return;
		next += p->interval_ns;
		if (next < clock_monotonic_ns_slow())
			next = clock_monotonic_ns_slow();
		if (p->sent != p->count)
			pause_until(next);
	}
}

static double us(const struct hist *h, double percent)
{
	return (double)hist_percentile(h, percent) / 1e3;
}

static void print_json(struct ping *p)
{
	struct cli_json j = { .out = stdout };

	cli_json_open(&j, NULL, '{');
	cli_json_put(&j, j_text("service", p->name), j_uint("number", p->to),
			 j_text("kind", p->is_long ? "long" : "short"), j_uint("size", p->size),
			 j_uint("sent", p->sent), j_uint("received", p->received),
			 j_uint("corrupt", p->corrupt), j_uint("late", p->late));
	if (p->received)
		cli_json_put(&j, j_number("first_us", (double)p->first_ns / 1e3));
	if (p->received > 1) {
		cli_json_put(&j, j_number("min_us", us(&p->times, 0)),
				 j_number("median_us", us(&p->times, 50)),
				 j_number("p99_us", us(&p->times, 99)),
				 j_number("max_us", us(&p->times, 100)));
	}
	cli_json_open(&j, "counters", '{');
	ripc_common_counters(p->r, &j);
	cli_json_close(&j, '}');
	cli_json_close(&j, '}');
}

static int result(struct ping *p)
{
	if (p->json) {
		print_json(p);
	} else {
		printf("%" PRIu64 " sent, %" PRIu64 " came back", p->sent, p->received);
		if (p->corrupt)
			printf(", %" PRIu64 " CHANGED", p->corrupt);
		if (p->late)
			printf(", %" PRIu64 " late", p->late);
		if (p->received)
			printf("\nfirst %.1f us, with finding and connecting",
			       (double)p->first_ns / 1e3);
		if (p->received > 1)
			printf("\nothers min %.2f, median %.2f, p99 %.2f, max %.2f us",
			       us(&p->times, 0), us(&p->times, 50), us(&p->times, 99),
			       us(&p->times, 100));
		putchar('\n');
	}
	return !p->received || p->corrupt ? CLI_FAILED :
	       p->received < p->sent ? CLI_LOST : CLI_OK;
}

static int ping(struct ping *p)
{
	int ret;

	ripc_common_catch();
	if (ripc_common_open(&p->config, &p->r))
		return CLI_FAILED;
	ret = ripc_common_find(p->r, p->name, &p->to);
	if (!ret && !p->is_long && p->size > ripc_short_max(p->r, 1)) {
		log_error("--size %" PRIu64 ": a short message has at most %zu bytes, see --long",
			  p->size, ripc_short_max(p->r, 1));
		ret = CLI_USAGE;
	}
	if (!ret && ripc_service_open(p->r, 0, NULL, &p->s))
		ret = ripc_failed("no service", -ENOBUFS);
	if (!ret) {
		p->payload = ripc_alloc(p->r, p->size);
		if (p->payload) {
			for (uint64_t i = 0; i < p->size; i++)
				p->payload[i] = (char)(i * 2654435761u >> 13);
			run(p);
			ret = result(p);
			ripc_free(p->r, p->payload);
		} else {
			ret = ripc_failed("no memory for a message", -ENOBUFS);
		}
		ripc_service_close(p->s);
	}
	ripc_close(p->r);
	return ret;
}

int cli_ripc_ping(int argc, char **argv)
{
	static struct ping p = { .size = 50, .count = 10, .interval_ns = 100000000,
				 .timeout_ns = 2000000000 };
	int status = options_parse(&options, argc, argv, &p, NULL);

	if (status >= 0)
		return status;
	hist_init(&p.times);
	p.quiet |= p.json;
	p.name = argv[optind];
	return ping(&p);
}
