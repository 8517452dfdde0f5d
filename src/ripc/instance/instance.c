/* SPDX-License-Identifier: BSD-2-Clause */
/* An instance: settings, beginning, end, and its thread. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ripc/instance/instance.h"
#include "util/library_thread.h"
#include "util/wakeup.h"

/* While threads of the program look after messages, the instance's looks so often whether
 * they still do. */
#define TICK_NS UINT64_C(1000000)
#define TICK_MAX_NS UINT64_C(8000000)

/* ---- settings ---- */

static int set_text(char **out, const char *given, const char *variable)
{
	const char *text = given ? given : getenv(variable);

	if (!text || !*text)
		return 0;
	*out = strdup(text);
	return *out ? 0 : ripc_fail(-ENOBUFS, "no memory for settings");
}

static int short_of_environment(enum ripc_short *out)
{
	const char *text = getenv("RIPC_SHORT");

	if (!text || !*text || !strcmp(text, "connection"))
		*out = RIPC_SHORT_CONNECTION;
	else if (!strcmp(text, "datagram"))
		*out = RIPC_SHORT_DATAGRAM;
	else
		return ripc_fail(-EINVAL, "RIPC_SHORT is \"%s\", neither \"connection\" nor "
				 "\"datagram\"", text);
	return 0;
}

static int port_of_environment(uint16_t *out)
{
	const char *text = getenv("RIPC_PORT");
	char *rest;
	long port = text && *text ? strtol(text, &rest, 10) : 15511;

	if (text && *text && (*rest || port < 1 || port > 65535))
		return ripc_fail(-EINVAL, "RIPC_PORT is \"%s\", not 1 to 65535", text);
	*out = (uint16_t)port;
	return 0;
}

static void set_number(unsigned *n, unsigned otherwise)
{
	if (!*n)
		*n = otherwise;
}

static int configure(struct ripc *r, const struct ripc_config *given)
{
	struct ripc_config *c = &r->config.c;
	int ret = 0;

	if (given)
		*c = *given;
	if (set_text(&r->config.address, c->address, "RIPC_ADDRESS") ||
	    set_text(&r->config.resolver, c->resolver, "RIPC_RESOLVER") ||
	    set_text(&r->config.secret_file, c->secret_file, "RIPC_SECRET_FILE"))
		return -ENOBUFS;
	if (!r->config.resolver)
		r->config.resolver = strdup("multicast");
	if (!r->config.resolver)
		return ripc_fail(-ENOBUFS, "no memory for settings");
	if (c->short_by == RIPC_SHORT_DEFAULT)
		ret = short_of_environment(&c->short_by);
	else if (c->short_by > RIPC_SHORT_DATAGRAM)
		ret = ripc_fail(-EINVAL, "short_by is none of its values");
	if (!ret && !c->resolver_port)
		ret = port_of_environment(&c->resolver_port);
	set_number(&c->resolve_timeout_ms, 2000);
	set_number(&c->connect_timeout_ms, 3000);
	set_number(&c->idle_close_ms, 60000);
	set_number(&c->claim_ms, 100);
	set_number(&c->poll_us, 50);
	set_number(&c->connections_max, 1024);
	set_number(&c->queue_max, 1024);
	if (!c->pool_bytes_max)
		c->pool_bytes_max = (size_t)1 << 30;
	if (!c->message_bytes_max)
		c->message_bytes_max = (size_t)4 << 30;
	return ret;
}

static int read_secret(struct ripc *r)
{
	const char *path = r->config.secret_file;
	char why[100];
	int ret = path ? resolver_key_read(&r->key, path, why, sizeof(why)) : 0;

	return ret ? ripc_fail(ret, "secret_file %s: %s", path, why) : 0;
}

/* ---- the thread ---- */

static void completion_event(struct ripc *r)
{
	struct ibv_cq *cq;
	void *context;

	if (!ibv_get_cq_event(r->device.channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}

/* Looks after the messages when nobody else has since the last time. True: it did. */
static bool look(struct ripc *r)
{
	if (atomic_exchange(&r->hot, false))
		return false;
	pump_cool(r);
	return true;
}

static int timeout_of(uint64_t next_ns, uint64_t now)
{
	uint64_t ms = next_ns > now ? (next_ns - now + 999999) / 1000000 : 0;

	return ms > 1000 ? 1000 : (int)ms;
}

static void *run(void *arg)
{
	struct ripc *r = arg;
	uint64_t swept = now_ns(), tick_ns = TICK_NS;

	for (;;) {
		struct pollfd fds[] = {
			{ .fd = r->cm->fd, .events = POLLIN },
			{ .fd = r->device.channel->fd, .events = POLLIN },
			{ .fd = r->wake_fd, .events = POLLIN },
			{ .fd = r->show_fd, .events = POLLIN }, /* -1: left out */
		};
		uint64_t now = now_ns(), next;
		bool closing = atomic_load(&r->closing), cold;

		if (closing)
			connect_close_all(r);
		next = connect_timers(r, now);
		if (closing && list_empty(&r->conns))
			return NULL;
		cold = look(r);
		/* The longer a thread has looked, the longer it probably will. Each tick takes
		 * the processor from somebody. */
		if (cold)
			tick_ns = TICK_NS;
		else if (next > now + tick_ns)
			next = now + tick_ns;
		poll(fds, 4, timeout_of(next, now));
		/* A message for somebody who sleeps, perhaps: nobody may look after it. */
		if (fds[1].revents)
			tick_ns = TICK_NS;
		else if (!cold && tick_ns < TICK_MAX_NS)
			tick_ns *= 2;
		if (fds[1].revents)
			completion_event(r);
		if (fds[2].revents)
			wakeup_drain(r->wake_fd);
		if (fds[0].revents)
			connect_events(r);
		if (fds[3].revents)
			show_answer(r);
		connect_wishes(r);
		if (now - swept > UINT64_C(10000000000)) {
			peers_sweep(r, false);
			swept = now;
		}
	}
}

static int thread_start(struct ripc *r)
{
	int ret = library_thread_start(&r->thread, NULL, run, r);

	if (ret)
		return ripc_fail(ret, "the thread: %s", strerror(-ret));
	pthread_setname_np(r->thread, "ripc");
	r->running = true;
	return 0;
}

/* ---- beginning and end ---- */

static void moved(void *arg, uint32_t id, uint64_t old_instance)
{
	(void)old_instance;
	routes_forget(arg, id, NULL);
}

static int find_others(struct ripc *r)
{
	const union sockaddr_any *a = (const void *)rdma_get_local_addr(r->listener);
	struct resolver_config c = {
		.how = r->config.resolver, .port = r->config.c.resolver_port, .key = r->key,
		.self = { .instance = r->number,
			  .port = ntohs(rdma_get_src_port(r->listener)),
			  .ud_qpn = r->device.ud ? r->device.ud->qp_num : 0,
			  .ud_qkey = r->device.ud_qkey },
		.has = service_has, .moved = moved, .arg = r,
	};
	const char *why = NULL;
	int ret;

	memcpy(c.self.ud_gid, r->device.gid.raw, sizeof(c.self.ud_gid));
	if (a->any.sa_family == AF_INET) {
		c.self.address[10] = c.self.address[11] = 0xff;
		memcpy(c.self.address + 12, &a->v4.sin_addr, 4);
	} else {
		memcpy(c.self.address, &a->v6.sin6_addr, 16);
	}
	ret = resolver_open(&r->resolver, &c, &why);
	return ret ? ripc_fail(ret, "resolver: %s", why ? why : strerror(-ret)) : 0;
}

static void tables_init(struct ripc *r)
{
	for (unsigned i = 0; i < TABLE_SIZE; i++) {
		list_init(&r->services[i]);
		list_init(&r->routes[i]);
		list_init(&r->peers[i]);
	}
	list_init(&r->conns);
	list_init(&r->wishes);
}

static void release(struct ripc *r)
{
	if (r->running) {
		atomic_store(&r->closing, true);
		thread_wake(r);
		pthread_join(r->thread, NULL);
	}
	if (r->resolver)
		resolver_close(r->resolver);
	show_close(r);
	peers_sweep(r, true);
	device_close(r);
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	free(r->config.address);
	free(r->config.resolver);
	free(r->config.secret_file);
	explicit_bzero(&r->key, sizeof(r->key));
	free(r);
}

int ripc_open(const struct ripc_config *config, struct ripc **out)
{
	struct ripc *r = out ? calloc(1, sizeof(*r)) : NULL;
	int ret;

	if (!r)
		return ripc_fail(out ? -ENOBUFS : -EINVAL, "no memory, or no place for the result");
	tables_init(r);
	r->show_fd = -1;
	r->pid = getpid();
	r->wake_fd = wakeup_open_signal();
	while (!r->number)
		if (getrandom(&r->number, sizeof(r->number), 0) != sizeof(r->number))
			r->number = now_ns();
	ret = r->wake_fd < 0 ? ripc_fail(r->wake_fd, "eventfd: %s", strerror(-r->wake_fd)) :
			       configure(r, config);
	if (!ret)
		ret = read_secret(r);
	if (!ret)
		ret = device_open(r);
	if (!ret)
		ret = find_others(r);
	if (!ret)
		show_open(r);
	if (!ret)
		ret = thread_start(r);
	if (ret) {
		release(r);
		return ret;
	}
	*out = r;
	return 0;
}

void ripc_close(struct ripc *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < TABLE_SIZE; i++) {
		struct ripc_service *s;

		while ((s = service_next(r, i, 0))) {
			service_put(s);
			/* The connections end soon, and before that the memory is ours. */
			service_end(s, false);
		}
	}
	routes_forget_all(r);
	release(r);
}

/* ---- the default one ---- */

static struct {
	pthread_mutex_t lock;
	struct ripc *r;
	bool registered;
} standard = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void close_standard(void)
{
	/* A child that only ends has none. */
	if (standard.r && standard.r->pid == getpid())
		ripc_close(standard.r);
	standard.r = NULL;
}

int ripc_default(struct ripc **out)
{
	int ret = 0;

	if (!out)
		return ripc_fail(-EINVAL, "no place for the result");
	pthread_mutex_lock(&standard.lock);
	/* A child of fork() leaves the parent's alone. */
	if (standard.r && standard.r->pid != getpid())
		standard.r = NULL;
	if (!standard.r)
		ret = ripc_open(NULL, &standard.r);
	if (!ret && !standard.registered) {
		standard.registered = true;
		atexit(close_standard);
	}
	*out = standard.r;
	pthread_mutex_unlock(&standard.lock);
	return ret;
}

/* ---- buffers ---- */

void *ripc_alloc(struct ripc *r, size_t bytes)
{
	void *p;

	if (!r && ripc_default(&r)) {
		errno = ENOMEM;
		return NULL;
	}
	p = pool_alloc(r->pool, bytes);
	if (!p)
		ripc_fail(-ENOBUFS, "no registered memory of %zu bytes", bytes);
	return p;
}

int ripc_free(struct ripc *r, void *p)
{
	int ret = r ? 0 : ripc_default(&r);

	if (ret || !p)
		return ret;
	ret = pool_free(r->pool, p);
	return ret ? ripc_fail(ret, "%p is not a buffer of ripc_alloc(), or was freed before", p) : 0;
}

int ripc_memory_register(struct ripc *r, void *p, size_t bytes)
{
	int ret = r ? 0 : ripc_default(&r);

	if (ret)
		return ret;
	ret = pool_register(r->pool, p, bytes);
	return ret ? ripc_fail(ret, "%zu bytes at %p cannot be registered: %s", bytes, p,
			       strerror(-ret)) : 0;
}

int ripc_memory_unregister(struct ripc *r, void *p)
{
	int ret = r ? 0 : ripc_default(&r);

	if (ret)
		return ret;
	ret = pool_unregister(r->pool, p);
	return ret ? ripc_fail(ret, ret == -EBUSY ? "a message uses the memory at %p" :
						    "no memory is registered at %p", p) : 0;
}

void ripc_trim(struct ripc *r, size_t keep_bytes)
{
	if (r || !ripc_default(&r))
		pool_trim(r->pool, keep_bytes);
}

void ripc_counters(struct ripc *r, struct ripc_counters *out)
{
	struct pool_counters pool;
	const struct resolver_counters *res;

	memset(out, 0, sizeof(*out));
	if (!r && ripc_default(&r))
		return;
	pool_counters(r->pool, &pool);
	res = resolver_counters(r->resolver);
#define TAKE(name) out->name = atomic_load_explicit(&r->counters.name, memory_order_relaxed)
	TAKE(short_received);
	out->short_received += atomic_load_explicit(&r->counters.short_pumped,
						    memory_order_relaxed);
	out->short_sent = peers_short_sent(r);
	TAKE(short_dropped);
	TAKE(long_sent);
	TAKE(long_received);
	TAKE(long_failed);
	TAKE(bytes_pushed);
	TAKE(bytes_pulled);
	TAKE(copies);
	TAKE(connects);
	TAKE(connect_failures);
	TAKE(refused);
	TAKE(bad_packets);
	TAKE(unauthentic);
#undef TAKE
	out->connections = atomic_load(&r->live_conns);
	out->registrations = pool.registrations;
	out->registered_bytes = pool.registered_bytes;
	out->pool_bytes = pool.kept_bytes;
	out->resolves = atomic_load(&res->asked);
	out->resolve_failures = atomic_load(&res->failed);
	out->bad_packets += atomic_load(&res->bad_packets);
	out->unasked_replies = atomic_load(&res->unasked_replies);
	out->unauthentic += atomic_load(&res->unauthentic);
}
