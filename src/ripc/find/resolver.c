/* SPDX-License-Identifier: BSD-2-Clause */
#include "ripc/find/resolver_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "ripc/wire/siphash.h"
#include "util/library_thread.h"

#define TAKEN_AT_ONCE 64 /* of one socket, before the others have their turn */

uint64_t resolver_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t resolver_draw(struct resolver *r)
{
	uint8_t hash[SIPHASH_BYTES];
	uint64_t number;

	do {
		uint64_t turn = atomic_fetch_add_explicit(&r->drawn, 1, memory_order_relaxed);

		siphash(r->random_key, (const uint8_t *)&turn, sizeof(turn), hash);
		memcpy(&number, hash, sizeof(number));
	} while (!number);
	return number;
}

void resolver_wake_thread(struct resolver *r)
{
	const uint64_t one = 1;

	/* Full is as good: it will wake. */
	if (write(r->wake, &one, sizeof(one)) < 0)
		return;
}

void resolver_wait(struct resolver *r, pthread_cond_t *cond, uint64_t until_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(until_ns / UINT64_C(1000000000)),
					.tv_nsec = (long)(until_ns % UINT64_C(1000000000)) };

	pthread_cond_clockwait(cond, &r->lock, CLOCK_MONOTONIC, &until);
}

bool resolver_begin(struct resolver *r)
{
	if (r->closing)
		return false;
	r->users++;
	return true;
}

void resolver_end(struct resolver *r)
{
	if (!--r->users && r->closing)
		pthread_cond_signal(&r->left);
}

static void receive(struct resolver *r, int fd)
{
	/* One byte more than fits says that it was too long. */
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX + 1];
	union address from;

	for (unsigned i = 0; i < TAKEN_AT_ONCE; i++) {
		socklen_t from_length = sizeof(from);
		ssize_t got = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT, &from.any,
				       &from_length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return;
		resolver_take(r, fd, &from, bytes, (size_t)got);
	}
}

/* An interface has come, gone or changed. */
static void changed(struct resolver *r, int fd)
{
	char bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0 || errno == ENOBUFS)
		;
	net_scan(&r->net, false, resolver_now_ns());
}

static int poll_timeout(uint64_t next_ns)
{
	const uint64_t now_ns = resolver_now_ns();
	uint64_t ms;

	if (next_ns == UINT64_MAX)
		return -1;
	ms = next_ns <= now_ns ? 0 : (next_ns - now_ns) / RESOLVER_MS + 1;
	return ms < 60000 ? (int)ms : 60000;
}

static bool is_closing(struct resolver *r)
{
	bool closing;

	pthread_mutex_lock(&r->lock);
	closing = r->closing;
	pthread_mutex_unlock(&r->lock);
	return closing;
}

static void *run(void *arg)
{
	struct resolver *r = arg;
	struct pollfd fds[NET_FDS_MAX + 1];

	pthread_setname_np(pthread_self(), "ripc-resolver");
	while (!is_closing(r)) {
		const int timeout = poll_timeout(own_tick(r, resolver_now_ns()));
		unsigned n = net_poll_fds(&r->net, fds);
		uint64_t woken;

		fds[n] = (struct pollfd){ .fd = r->wake, .events = POLLIN };
		if (poll(fds, n + 1, timeout) <= 0)
			continue;
		if (fds[n].revents && read(r->wake, &woken, sizeof(woken)) < 0)
			continue;
		if (fds[0].revents)
			changed(r, fds[0].fd);
		for (unsigned i = 1; i < n; i++)
			if (fds[i].revents)
				receive(r, fds[i].fd);
	}
	return NULL;
}

static int sockets_open(struct resolver *r, const char **why)
{
	static _Thread_local char sentence[160];
	const char *what;
	int ret = net_open(&r->net, r->config.port, methods_have(r, METHOD_MULTICAST),
			   methods_have(r, METHOD_BROADCAST), &what);

	if (!ret)
		return 0;
	snprintf(sentence, sizeof(sentence), "UDP port %u, %s: %s",
		 (unsigned)r->config.port, what, strerrordesc_np(-ret));
	*why = sentence;
	return ret;
}

static void init(struct resolver *r, const struct resolver_config *config)
{
	uint8_t key[16];

	r->config = *config;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->left, NULL);
	known_init(&r->known);
	list_init(&r->questions);
	list_init(&r->claims);
	list_init(&r->own);
	memcpy(key, r->random_key, sizeof(key));
	key[0] ^= 1;
	limit_init(&r->limit, key);
}

static void fini(struct resolver *r)
{
	known_free(&r->known);
	pthread_cond_destroy(&r->left);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

int resolver_open(struct resolver **out, const struct resolver_config *config,
		  const char **why)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int ret = -ENOMEM;

	*why = "no memory";
	if (!r)
		return ret;
	if (getrandom(r->random_key, sizeof(r->random_key), 0) != sizeof(r->random_key)) {
		*why = "no random numbers";
		free(r);
		return -EIO;
	}
	init(r, config);
	r->config.how = NULL; /* of the caller */
	ret = methods_parse(r, config->how, why);
	if (ret)
		goto err_init;
	ret = sockets_open(r, why);
	if (ret)
		goto err_methods;
	r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = r->wake < 0 ? -errno : 0;
	*why = "no descriptor to wake the resolver";
	if (ret)
		goto err_net;
	if (methods_have(r, METHOD_MULTICAST) || methods_have(r, METHOD_BROADCAST))
		net_scan(&r->net, false, resolver_now_ns());
	ret = library_thread_start(&r->thread, NULL, run, r);
	*why = "no thread for the resolver";
	if (ret)
		goto err_wake;
	*why = NULL;
	*out = r;
	return 0;
err_wake:
	close(r->wake);
err_net:
	net_close(&r->net);
err_methods:
	methods_free(r);
err_init:
	fini(r);
	return ret;
}

/* All that wait leave, the thread last. */
static void stop(struct resolver *r)
{
	pthread_mutex_lock(&r->lock);
	r->closing = true;
	list_for_each(q, &r->questions, struct question, link)
		pthread_cond_broadcast(&q->wake);
	list_for_each(c, &r->claims, struct claim, link)
		pthread_cond_broadcast(&c->wake);
	while (r->users)
		pthread_cond_wait(&r->left, &r->lock);
	claim_entered(r, 0);
	pthread_mutex_unlock(&r->lock);
	resolver_wake_thread(r);
	pthread_join(r->thread, NULL);
}

void resolver_close(struct resolver *r)
{
	if (!r)
		return;
	own_leave_all(r);
	stop(r);
	close(r->wake);
	net_close(&r->net);
	methods_free(r);
	fini(r);
}

void resolver_forget(struct resolver *r, uint64_t instance)
{
	pthread_mutex_lock(&r->lock);
	known_forget(&r->known, instance);
	pthread_mutex_unlock(&r->lock);
}

const struct resolver_counters *resolver_counters(const struct resolver *r)
{
	return &r->counters;
}
