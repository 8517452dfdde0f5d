/* SPDX-License-Identifier: BSD-2-Clause */
#include "victim.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evil.h"
#include "ripc/instance/instance.h"

static struct {
	struct ripc *r;
	struct ripc_service *echo, *offers, *deaf, *passing;
	uint8_t *area;    /* guard, buffer, guard */
	struct ripc_token token;
	atomic_uint_fast64_t messages, returned;
} v;

enum { FILL = 0xa5 };

static uint64_t changed(const uint8_t *at, size_t bytes)
{
	uint64_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += at[i] != FILL;
	return n;
}

static void *echo(void *arg)
{
	struct ripc_message m;

	(void)arg;
	while (!ripc_receive(v.echo, &m, -1)) {
		if (m.is_long)
			ripc_send_long(v.echo, m.from, m.items, m.count, NULL, 0, NULL);
		else
			ripc_send_short(v.echo, m.from, m.items, m.count, NULL, 0);
		ripc_release(&m);
	}
	return NULL;
}

static void *collect(void *arg)
{
	struct ripc_message m;

	(void)arg;
	while (!ripc_receive(v.offers, &m, -1)) {
		if (m.returned)
			atomic_fetch_add(&v.returned, 1);
		/* Behind that: who sees the message finds it counted. */
		atomic_fetch_add(&v.messages, 1);
		ripc_release(&m);
	}
	return NULL;
}

static uint64_t descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static uint64_t rss_kb(void)
{
	unsigned long all, rss = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%lu %lu", &all, &rss) == 2);
	fclose(f);
	return (uint64_t)rss * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static int shorts(uint32_t to)
{
	struct ripc_item item = { v.area, 64 };
	int ret = 0;

	for (unsigned i = 0; i < 100 && !ret; i++) {
		struct ripc_item back = { ripc_alloc(v.r, 64), 64 };

		ret = ripc_send_short(v.offers, to, &item, 1, &back, 1);
		if (ret)
			ripc_free(v.r, back.data);
	}
	return ret;
}

static int obey(const struct victim_command *c)
{
	struct ripc_item item = { v.area, 64 };
	struct ripc_item back[200] = { { v.area + VICTIM_BUFFER_BYTES, VICTIM_BUFFER_BYTES } };

	switch ((enum victim_order)c->order) {
	case ORDER_OFFER:
		return ripc_send_short(v.offers, c->argument, &item, 1, back, 1);
	case ORDER_REVOKE:
		return ripc_returns_revoke(v.offers, c->argument, back, 200);
	case ORDER_SHORTS:
		return shorts(c->argument);
	case ORDER_LONG:
		item.bytes = VICTIM_BUFFER_BYTES;
		return ripc_send_long(v.offers, c->argument, &item, 1, NULL, 0, &v.token);
	case ORDER_SENT:
		return ripc_sent(v.offers, v.token, (int)c->argument);
	case ORDER_OPEN:
		return ripc_service_open(v.r, VICTIM_PASSING, NULL, &v.passing);
	case ORDER_CLOSE:
		ripc_service_close(v.passing);
		return 0;
	case ORDER_PASS:
		item.bytes = VICTIM_BUFFER_BYTES;
		return ripc_send_long(v.passing, c->argument, &item, 1, NULL, 0, NULL);
	default:
		return 0;
	}
}

static void answer(int fd, int result)
{
	struct victim_answer a = {
		.result = result, .instance = v.r->number,
		.port = ntohs(rdma_get_src_port(v.r->listener)),
		.buffer = (uintptr_t)v.area + VICTIM_BUFFER_BYTES,
		.descriptors = descriptors(), .rss_kb = rss_kb(),
	};

	a.messages = v.messages;
	a.returned = v.returned;
	a.guards_changed = changed(v.area, VICTIM_BUFFER_BYTES) +
			   changed(v.area + 2 * VICTIM_BUFFER_BYTES, VICTIM_BUFFER_BYTES);
	a.buffer_changed = changed(v.area + VICTIM_BUFFER_BYTES, VICTIM_BUFFER_BYTES);
	memset(v.area, FILL, 3 * VICTIM_BUFFER_BYTES);
	ripc_counters(v.r, &a.counters);
	CHECK(write(fd, &a, sizeof(a)) == sizeof(a));
}

_Noreturn static void live(int fd, const char *hosts, const char *secret_file, uint16_t port)
{
	struct ripc_config c = {
		.address = "127.0.0.1", .resolver = hosts, .secret_file = secret_file,
		.resolver_port = port, .connect_timeout_ms = VICTIM_TIMEOUT_MS,
		.resolve_timeout_ms = 1000, .connections_max = VICTIM_CONNECTIONS,
		.claim_ms = UINT32_MAX, .queue_max = 64, .message_bytes_max = VICTIM_MESSAGE_MAX,
		.pool_bytes_max = 8 << 20,
	};
	struct victim_command order = { ORDER_TELL, 0 };
	pthread_t threads[2];

	v.area = mmap(NULL, 3 * VICTIM_BUFFER_BYTES, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(v.area != MAP_FAILED);
	memset(v.area, FILL, 3 * VICTIM_BUFFER_BYTES);
	if (ripc_open(&c, &v.r)) {
		printf("the victim: %s\n", ripc_error());
		exit(1);
	}
	CHECK(!ripc_memory_register(v.r, v.area, 3 * VICTIM_BUFFER_BYTES));
	CHECK(!ripc_service_open(v.r, VICTIM_ECHO, NULL, &v.echo));
	CHECK(!ripc_service_open(v.r, VICTIM_OFFERS, NULL, &v.offers));
	CHECK(!ripc_service_open(v.r, VICTIM_DEAF, NULL, &v.deaf));
	CHECK(!pthread_create(&threads[0], NULL, echo, NULL));
	CHECK(!pthread_create(&threads[1], NULL, collect, NULL));
	while (read(fd, &order, sizeof(order)) == sizeof(order) && order.order != ORDER_END)
		answer(fd, obey(&order));
	CHECK(order.order == ORDER_END);
	ripc_close(v.r);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	exit(0);
}

struct victim victim_start(const char *hosts, const char *secret_file, uint16_t port)
{
	struct victim child;
	int pair[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	fflush(stdout);
	child.pid = fork();
	CHECK(child.pid >= 0);
	if (!child.pid) {
		close(pair[0]);
		live(pair[1], hosts, secret_file, port);
	}
	close(pair[1]);
	child.fd = pair[0];
	return child;
}

void victim_order(const struct victim *child, enum victim_order order, uint32_t argument)
{
	const struct victim_command c = { order, argument };

	CHECK(write(child->fd, &c, sizeof(c)) == sizeof(c));
}

struct victim_answer victim_wait(const struct victim *child)
{
	struct victim_answer a;

	CHECK(read(child->fd, &a, sizeof(a)) == sizeof(a)); /* else it has died */
	return a;
}

struct victim_answer victim_tell(const struct victim *child, enum victim_order order,
				 uint32_t argument)
{
	victim_order(child, order, argument);
	return victim_wait(child);
}

int victim_end(const struct victim *child)
{
	const struct victim_command c = { ORDER_END, 0 };
	int status = -1;

	CHECK(write(child->fd, &c, sizeof(c)) == sizeof(c));
	CHECK(waitpid(child->pid, &status, 0) == child->pid);
	close(child->fd);
	return status;
}
