/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * revoke: nobody writes into return buffers that were asked back, where the service that had
 * them has moved meanwhile, where they had not been told of yet, and where another thread
 * offers meanwhile. Three instances of one process.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "instance.h"

enum { OFFERS = 1, WRITES = 2, CREDITS = 32, BYTES = 50000, FILL = 0xa5 };

static struct ripc *ours, *its, *another;
static struct ripc_service *from;
static uint8_t *buffer, bytes[BYTES];

static struct ripc_service *open_service(struct ripc *r, uint32_t id)
{
	struct ripc_service *s;

	CHECK(!ripc_service_open(r, id, NULL, &s));
	return s;
}

static void take_one(struct ripc_service *s)
{
	struct ripc_message m;

	CHECK(!ripc_receive(s, &m, LIMIT_MS));
	ripc_release(&m);
}

/* A long message comes, and not in the buffer. */
static void send_back(struct ripc_service *s)
{
	const struct ripc_item item = { bytes, sizeof(bytes) };
	struct ripc_message m;
	struct ripc_token token;

	CHECK(!ripc_send_long(s, OFFERS, &item, 1, NULL, 0, &token));
	CHECK(!ripc_receive(from, &m, LIMIT_MS));
	CHECK(m.is_long && !m.returned && m.items[0].bytes == BYTES);
	ripc_release(&m);
	CHECK(!ripc_sent(s, token, LIMIT_MS));
	for (unsigned i = 0; i < BYTES; i++)
		CHECK(buffer[i] == FILL);
}

static void take_back(void)
{
	struct ripc_item back[2];

	CHECK(ripc_returns_revoke(from, WRITES, back, 2) == 1);
	CHECK(back[0].data == buffer && back[0].bytes == BYTES);
}

static void of_a_service_that_has_moved_and_comes_back(void)
{
	const struct ripc_item back = { buffer, BYTES };
	struct ripc_service *to = open_service(its, WRITES);
	struct ripc_message m;
	int ret = -1;

	CHECK(!ripc_send_short(from, WRITES, NULL, 0, &back, 1));
	take_one(to);
	ripc_service_close(to);
	to = open_service(another, WRITES);
	/* Until it is known where the service is now. */
	for (unsigned i = 0; i < LIMIT_MS / 10 && ret; i++) {
		CHECK(!ripc_send_short(from, WRITES, NULL, 0, NULL, 0));
		ret = ripc_receive(to, &m, 10);
	}
	CHECK(!ret);
	ripc_release(&m);
	take_back();
	ripc_service_close(to);
	to = open_service(its, WRITES);
	send_back(to);
	ripc_service_close(to);
}

static void *receive_late(void *arg)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	for (unsigned i = 0; i < CREDITS + 1; i++)
		take_one(arg);
	return NULL;
}

static void of_a_message_that_waits(void)
{
	const struct ripc_item back = { buffer, BYTES };
	struct ripc_service *to = open_service(its, WRITES);
	struct ripc_token token;
	pthread_t other;

	for (unsigned i = 0; i < CREDITS; i++)
		CHECK(!ripc_send_short(from, WRITES, NULL, 0, NULL, 0));
	CHECK(!ripc_send_long(from, WRITES, NULL, 0, &back, 1, &token));
	CHECK(!pthread_create(&other, NULL, receive_late, to));
	take_back();
	CHECK(!ripc_sent(from, token, LIMIT_MS));
	pthread_join(other, NULL);
	send_back(to);
	ripc_service_close(to);
}

/* ---- one thread offers, one asks back, one answers into what it has been offered ---- */

enum { SLOTS = 8, SLOT_BYTES = 512, ROUNDS = 400 };

static struct {
	uint8_t *memory;
	pthread_mutex_t lock;
	bool offered[SLOTS];
	bool stop;
	unsigned asked_back, came;
} many = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool stopped(void)
{
	bool stop;

	pthread_mutex_lock(&many.lock);
	stop = many.stop;
	pthread_mutex_unlock(&many.lock);
	return stop;
}

static bool is_all(const uint8_t *at, uint8_t value)
{
	for (unsigned i = 0; i < SLOT_BYTES; i++)
		if (at[i] != value)
			return false;
	return true;
}

/* It is ours again, has this in it, and keeps what is put there now. */
static void is_ours(void *data, uint8_t value, unsigned *count)
{
	size_t slot = (size_t)((uint8_t *)data - many.memory) / SLOT_BYTES;

	CHECK(slot < SLOTS && is_all(data, value));
	memset(data, FILL, SLOT_BYTES);
	pthread_mutex_lock(&many.lock);
	CHECK(many.offered[slot]);
	many.offered[slot] = false;
	++*count;
	pthread_mutex_unlock(&many.lock);
}

static void *answer_all(void *arg)
{
	const struct ripc_item item = { bytes, SLOT_BYTES };
	struct ripc_message m;
	int ret;

	while ((ret = ripc_receive(arg, &m, 20)) == 0 || !stopped()) {
		if (ret)
			continue;
		ripc_release(&m);
		CHECK(!ripc_send_long(arg, OFFERS, &item, 1, NULL, 0, NULL));
	}
	return NULL;
}

static void *receive_all(void *arg)
{
	struct ripc_message m;
	int ret;

	while ((ret = ripc_receive(arg, &m, 20)) == 0 || !stopped()) {
		if (ret)
			continue;
		if (m.returned)
			is_ours(m.items[0].data, bytes[0], &many.came);
		ripc_release(&m);
	}
	return NULL;
}

static void *ask_back(void *arg)
{
	struct ripc_item back[SLOTS];

	while (!stopped()) {
		int n = ripc_returns_revoke(arg, WRITES, back, SLOTS);

		CHECK(n >= 0);
		for (int i = 0; i < n; i++)
			is_ours(back[i].data, FILL, &many.asked_back);
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	}
	return NULL;
}

static void offer_next(unsigned slot)
{
	const struct ripc_item item = { many.memory + slot * SLOT_BYTES, SLOT_BYTES };
	bool free;

	pthread_mutex_lock(&many.lock);
	free = !many.offered[slot];
	if (free) {
		CHECK(is_all(item.data, FILL));
		many.offered[slot] = true;
	}
	pthread_mutex_unlock(&many.lock);
	if (free)
		CHECK(!ripc_send_short(from, WRITES, NULL, 0, &item, 1));
}

static void that_are_offered_by_another_thread(void)
{
	struct ripc_service *to = open_service(its, WRITES);
	pthread_t threads[3];
	bool both = false;

	many.memory = ripc_alloc(ours, SLOTS * SLOT_BYTES);
	CHECK(many.memory);
	memset(many.memory, FILL, SLOTS * SLOT_BYTES);
	memset(bytes, 0x11, sizeof(bytes));
	CHECK(!pthread_create(&threads[0], NULL, answer_all, to));
	CHECK(!pthread_create(&threads[1], NULL, receive_all, from));
	CHECK(!pthread_create(&threads[2], NULL, ask_back, from));
	for (unsigned i = 0; i < ROUNDS || !both; i++) {
		offer_next(i % SLOTS);
		pthread_mutex_lock(&many.lock);
		both = many.came && many.asked_back;
		pthread_mutex_unlock(&many.lock);
	}
	pthread_mutex_lock(&many.lock);
	many.stop = true;
	pthread_mutex_unlock(&many.lock);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(ripc_returns_revoke(from, WRITES, (struct ripc_item[SLOTS]){ 0 }, SLOTS) >= 0);
	CHECK(!ripc_free(ours, many.memory));
	ripc_service_close(to);
}

int main(void)
{
	ours = open_instance((struct ripc_config){ 0 });
	its = open_instance((struct ripc_config){ 0 });
	another = open_instance((struct ripc_config){ 0 });
	from = open_service(ours, OFFERS);
	buffer = ripc_alloc(ours, BYTES);
	CHECK(buffer);
	memset(buffer, FILL, BYTES);
	of_a_message_that_waits(); /* on a connection that has all its credits */
	of_a_service_that_has_moved_and_comes_back();
	that_are_offered_by_another_thread();
	ripc_close(ours);
	ripc_close(its);
	ripc_close(another);
	return 0;
}
