/* SPDX-License-Identifier: BSD-2-Clause */
/* The carrier in memory: order, room, waking; then with many threads. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "check.h"
#include "transport/carrier/queue.h"

struct seen {
	struct carrier *c;
	unsigned units, writable, wakes;
	struct carrier_unit last;
	uint8_t bytes[65536];
	size_t length;
	bool emit_from_deliver;
};

static void on_deliver(void *arg, const struct carrier_unit *unit)
{
	struct seen *s = arg;

	s->units++;
	s->last = *unit;
	s->length = carrier_unit_bytes(unit);
	check(s->length && s->length <= sizeof(s->bytes));
	carrier_unit_gather(unit, 0, s->length, s->bytes);
	if (s->emit_from_deliver) {
		s->emit_from_deliver = false;
		check(carrier_emit(s->c, unit, 1) == 1);
		/* As another thread would; it is woken again if we leave something. */
		check(carrier_poll(s->c, 1) == 0);
	}
}

static void on_writable(void *arg)
{
	((struct seen *)arg)->writable++;
}

static void on_wake(void *arg)
{
	((struct seen *)arg)->wakes++;
}

static struct carrier *open_queue(struct seen *s, size_t bytes, enum carrier_when_full full)
{
	struct carrier_queue_params p = {
		.bytes = bytes, .when_full = full, .wake = on_wake, .wake_arg = s,
	};
	struct carrier_upper upper = { on_deliver, on_writable, s };
	struct carrier *c;

	memset(s, 0, sizeof(*s));
	check(carrier_queue_open(&p, &c) == 0);
	carrier_set_upper(c, &upper);
	s->c = c;
	return c;
}

static int emit(struct carrier *c, const void *bytes, size_t length)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, length };
	struct carrier_unit u = { .iov = &iov, .count = 1 };

	return carrier_emit(c, &u, 1);
}

static void a_unit_arrives_as_it_was_emitted(void)
{
	uint8_t a[3] = "abc", b[5] = "defgh";
	struct iovec iov[3] = { { a, 3 }, { NULL, 0 }, { b, 5 } };
	struct carrier_unit u = {
		.iov = iov, .count = 3, .segment = 6,
		.to = carrier_addr_of(7), .from = carrier_addr_of(9),
		.known = CARRIER_TOS | CARRIER_TTL | CARRIER_IP_ID,
		.tos = 3, .ttl = 64, .ip_id = 4711, .interface = 2,
	};
	struct seen s;
	struct carrier *c = open_queue(&s, 0, CARRIER_FULL_AGAIN);

	check(carrier_emit(c, &u, 1) == 1);
	check(s.units == 0); /* emit does not deliver */
	memset(a, 'x', 3);   /* it was copied */
	check(carrier_poll(c, 8) == 1 && s.units == 1);
	check(s.length == 8 && !memcmp(s.bytes, "abcdefgh", 8));
	check(s.last.segment == 6 && s.last.tos == 3 && s.last.ttl == 64 &&
	      s.last.ip_id == 4711 && s.last.known == u.known && s.last.interface == 2);
	check(carrier_addr_equal(&s.last.to, &u.to) &&
	      carrier_addr_equal(&s.last.from, &u.from));
	check(carrier_unit_packets(&s.last, 8) == 2);
	check(carrier_packet_bytes(&s.last, 8, 0) == 6 &&
	      carrier_packet_bytes(&s.last, 8, 1) == 2);
	check(carrier_poll(c, 8) == 0);
	carrier_close(c);
}

static void what_is_no_unit_is_refused(void)
{
	struct iovec iov[CARRIER_IOV_MAX + 1] = { { "a", 1 } };
	struct carrier_unit u = { .iov = iov, .count = CARRIER_IOV_MAX + 1 };
	struct carrier_queue_params p = { .bytes = 100 };
	struct seen s;
	struct carrier *c = open_queue(&s, 4096, CARRIER_FULL_AGAIN);
	static uint8_t big[4096];

	check(carrier_emit(c, &u, 1) == -EINVAL);
	u.count = 0;
	check(carrier_emit(c, &u, 1) == -EINVAL);
	check(emit(c, "", 0) == -EINVAL);
	check(emit(c, big, 1024 - 128) == 1);
	check(emit(c, big, 1024 - 127) == -EMSGSIZE);
	check(carrier_poll(c, 8) == 1);
	carrier_close(c);
	check(carrier_queue_open(&p, &c) == -EINVAL);
}

static void units_of_all_sizes_wrap_in_order(void)
{
	static uint8_t bytes[896];
	struct seen s;
	struct carrier *c = open_queue(&s, 4096, CARRIER_FULL_AGAIN);
	unsigned in = 0, out = 0;

	while (out < 20000) {
		size_t length = 1 + in * 37 % sizeof(bytes);
		int n;

		memset(bytes, (int)in, length);
		n = emit(c, bytes, length);
		check(n == 1 || n == -EAGAIN);
		if (n == 1 && ++in)
			continue;
		check(in > out);
		for (unsigned k = 1 + in % 5; k && out < in; k--, out++) {
			check(carrier_poll(c, 1) == 1);
			check(s.length == 1 + out * 37 % sizeof(bytes));
			check(s.bytes[0] == (uint8_t)out &&
			      s.bytes[s.length - 1] == (uint8_t)out);
		}
	}
	carrier_close(c);
}

static void a_full_queue_says_when_there_is_room(void)
{
	struct iovec iov = { "0123456789", 10 };
	struct carrier_unit u[64] = { 0 };
	struct carrier_queue_counters n;
	struct seen s;
	struct carrier *c = open_queue(&s, 4096, CARRIER_FULL_AGAIN);

	for (unsigned i = 0; i < 64; i++)
		u[i] = (struct carrier_unit){ .iov = &iov, .count = 1 };
	check(carrier_emit(c, u, 64) == 32);
	check(carrier_emit(c, u, 1) == -EAGAIN);
	check(s.writable == 0);
	check(carrier_poll(c, 1) == 1 && s.writable == 0);
	check(carrier_poll(c, 100) == 31 && s.writable == 1);
	check(carrier_emit(c, u, 1) == 1 && carrier_poll(c, 2) == 1 && s.writable == 1);
	carrier_queue_count(c, &n);
	check(n.units == 33 && n.bytes == 330 && n.dropped == 0 && n.refused == 2);
	carrier_close(c);
}

static void or_drops_and_counts(void)
{
	struct carrier_queue_counters n;
	struct seen s;
	struct carrier *c = open_queue(&s, 4096, CARRIER_FULL_DROP);

	for (unsigned i = 0; i < 40; i++)
		check(emit(c, "0123456789", 10) == 1);
	check(carrier_poll(c, 100) == 32 && s.writable == 0);
	carrier_queue_count(c, &n);
	check(n.units == 32 && n.dropped == 8);
	carrier_close(c);
}

static void the_owner_is_woken_once_for_each_time_it_found_nothing(void)
{
	struct seen s;
	struct carrier *c = open_queue(&s, 0, CARRIER_FULL_AGAIN);

	check(emit(c, "a", 1) == 1 && s.wakes == 1);
	check(emit(c, "b", 1) == 1 && s.wakes == 1);
	check(carrier_poll(c, 1) == 1); /* it knows that there may be more */
	check(emit(c, "c", 1) == 1 && s.wakes == 1);
	check(carrier_poll(c, 8) == 2);
	check(carrier_next_ns(c) == UINT64_MAX);
	check(emit(c, "d", 1) == 1 && s.wakes == 2);
	check(carrier_next_ns(c) == 0);
	check(emit(c, "e", 1) == 1 && carrier_poll(c, 1) == 1);
	check(carrier_next_ns(c) == 0); /* one was left */
	check(carrier_poll(c, 2) == 1 && carrier_next_ns(c) == UINT64_MAX);
	carrier_close(c);
}

static void who_polls_in_vain_is_woken_for_what_is_left(void)
{
	struct seen s;
	struct carrier *c = open_queue(&s, 0, CARRIER_FULL_AGAIN);

	s.emit_from_deliver = true;
	check(emit(c, "ping", 4) == 1 && s.wakes == 1);
	check(carrier_poll(c, 1) == 1 && s.units == 1);
	check(s.wakes == 2); /* on_deliver() has polled, and emitted one */
	check(carrier_poll(c, 2) == 1 && s.wakes == 2);
	carrier_close(c);
}

static void deliver_may_emit(void)
{
	struct seen s;
	struct carrier *c = open_queue(&s, 0, CARRIER_FULL_AGAIN);

	s.emit_from_deliver = true;
	check(emit(c, "ping", 4) == 1);
	check(carrier_poll(c, 8) == 2 && s.units == 2);
	carrier_close(c);
}

/* ---- threads ---- */

enum { EMITTERS = 4, DRAINERS = 2, EACH = 30000 };

static struct {
	struct carrier *c;
	sem_t work, room;
	uint32_t next[EMITTERS];
	atomic_uint delivered, inside;
} shared;

static void shared_wake(void *arg)
{
	sem_post(&shared.work);
}

static void shared_writable(void *arg)
{
	for (unsigned i = 0; i < EMITTERS; i++)
		sem_post(&shared.room);
}

static void shared_deliver(void *arg, const struct carrier_unit *unit)
{
	uint32_t words[128];
	size_t bytes = carrier_unit_bytes(unit);

	check(atomic_fetch_add(&shared.inside, 1) == 0);
	check(bytes <= sizeof(words) && bytes >= 8);
	carrier_unit_gather(unit, 0, bytes, words);
	check(words[0] < EMITTERS && words[1] == shared.next[words[0]]);
	for (size_t i = 2; i < bytes / 4; i++)
		check(words[i] == words[1] + i);
	shared.next[words[0]]++;
	atomic_fetch_sub(&shared.inside, 1);
	if (atomic_fetch_add(&shared.delivered, 1) + 1 == EMITTERS * EACH)
		for (unsigned i = 0; i < DRAINERS; i++)
			sem_post(&shared.work);
}

static void *emitter(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg, words[128];

	for (uint32_t k = 0; k < EACH; k++) {
		size_t n = 2 + (k * 7 + me) % 126;
		int err;

		words[0] = me;
		words[1] = k;
		for (size_t i = 2; i < n; i++)
			words[i] = k + (uint32_t)i;
		while ((err = emit(shared.c, words, n * 4)) == -EAGAIN)
			sem_wait(&shared.room);
		check(err == 1);
	}
	return NULL;
}

static void *drainer(void *arg)
{
	while (atomic_load(&shared.delivered) < EMITTERS * EACH) {
		sem_wait(&shared.work);
		while (carrier_poll(shared.c, 16) == 16)
			;
	}
	return NULL;
}

/* A wake-up or a word of room that got lost would leave this hanging. */
static void threads_lose_nothing_and_keep_their_order(void)
{
	struct carrier_queue_params p = { .bytes = 8192, .wake = shared_wake };
	struct carrier_upper upper = { shared_deliver, shared_writable, NULL };
	pthread_t threads[EMITTERS + DRAINERS];

	check(carrier_queue_open(&p, &shared.c) == 0);
	carrier_set_upper(shared.c, &upper);
	sem_init(&shared.work, 0, 0);
	sem_init(&shared.room, 0, 0);
	for (uintptr_t i = 0; i < EMITTERS + DRAINERS; i++)
		check(!pthread_create(&threads[i], NULL,
				      i < EMITTERS ? emitter : drainer, (void *)i));
	for (unsigned i = 0; i < EMITTERS + DRAINERS; i++)
		pthread_join(threads[i], NULL);
	check(atomic_load(&shared.delivered) == EMITTERS * EACH);
	carrier_close(shared.c);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	run_test(a_unit_arrives_as_it_was_emitted);
	run_test(what_is_no_unit_is_refused);
	run_test(units_of_all_sizes_wrap_in_order);
	run_test(a_full_queue_says_when_there_is_room);
	run_test(or_drops_and_counts);
	run_test(the_owner_is_woken_once_for_each_time_it_found_nothing);
	run_test(who_polls_in_vain_is_woken_for_what_is_left);
	run_test(deliver_may_emit);
	run_test(threads_lose_nothing_and_keep_their_order);
	return 0;
}
