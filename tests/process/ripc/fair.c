/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fair [datagrams]: a service that does not receive does not keep the others of its instance from
 * their messages, and loses none that were sent over a connection; a program that keeps messages
 * does not hold up who sends them. Two instances of one process.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "instance.h"

enum { SENDER = 1, DEAF, LIVE, QUEUE = 100, MANY = 3000, WAIT_MS = 200, CONNECT_MS = 2000,
       LONG_BYTES = 1 << 20, LONG_MAX = 4 << 20 };

static struct ripc *here, *there;
static struct ripc_service *from, *deaf, *live;

static int send(uint32_t to, uint32_t number)
{
	const struct ripc_item items[2] = { { &number, sizeof(number) }, { "after", 5 } };

	return ripc_send_short(from, to, items, 2, NULL, 0);
}

static uint32_t number_of(const struct ripc_message *m)
{
	uint32_t number;

	CHECK(m->count == 2 && m->items[0].bytes == sizeof(number) &&
	      m->items[1].bytes == 5 && !memcmp(m->items[1].data, "after", 5));
	memcpy(&number, m->items[0].data, sizeof(number));
	return number;
}

static void is_served(uint32_t number)
{
	static uint8_t bytes[100000];
	const struct ripc_item item = { bytes, sizeof(bytes) };
	struct ripc_message m;

	CHECK(!send(LIVE, number));
	CHECK(!ripc_receive(live, &m, LIMIT_MS));
	CHECK(number_of(&m) == number);
	ripc_release(&m);
	CHECK(!ripc_send_long(from, LIVE, &item, 1, NULL, 0, NULL));
	CHECK(!ripc_receive(live, &m, LIMIT_MS));
	CHECK(m.is_long && m.items[0].bytes == sizeof(bytes));
	ripc_release(&m);
}

/* Until the sender is held up: how many were sent. */
static uint32_t fill(void)
{
	uint32_t n = 0;
	int ret = 0;

	while (n < MANY && !(ret = send(DEAF, n)))
		n++;
	CHECK(ret == -EAGAIN);
	return n;
}

static void *receive_all(void *arg)
{
	const uint32_t *end = arg;
	struct ripc_message m;

	for (uint32_t i = 0; i < *end; i++) {
		CHECK(!ripc_receive(deaf, &m, LIMIT_MS));
		CHECK(number_of(&m) == i);
		ripc_release(&m);
	}
	return NULL;
}

static void over_a_connection(void)
{
	uint32_t n = fill(), all = MANY;
	pthread_t thread;

	CHECK(n >= QUEUE);
	for (uint32_t i = 0; i < 100; i++)
		is_served(i);
	/* It receives again: nothing is lost, and more is sent. */
	CHECK(!pthread_create(&thread, NULL, receive_all, &all));
	while (n < MANY)
		CHECK(!send(DEAF, n++));
	pthread_join(thread, NULL);
	/* A sender that is held up learns that the service is gone. */
	fill();
	ripc_service_close(deaf);
	CHECK(send(DEAF, 0) != -EAGAIN);
	is_served(0);
	CHECK(!ripc_service_open(there, DEAF, NULL, &deaf));
}

/* The other way, so that packets with credits come between the messages. */
static void stir(unsigned count)
{
	const struct ripc_item item = { "back", 4 };
	struct ripc_message m;

	for (unsigned i = 0; i < count; i++) {
		CHECK(!ripc_send_short(live, SENDER, &item, 1, NULL, 0));
		CHECK(!ripc_receive(from, &m, LIMIT_MS));
		ripc_release(&m);
	}
}

/* However many messages a program keeps, the sender goes on. */
static void with_kept_ones(void)
{
	enum { KEPT = 80, MORE = 120 };
	static struct ripc_message kept[KEPT];

	for (uint32_t n = 0; n < 300; n++) {
		const uint32_t keep = n % 20 < 19 ? n % 20 : KEPT;
		uint32_t number = 0;

		stir(16 * (keep % 4) + keep % 5);
		for (uint32_t i = 0; i < keep; i++) {
			CHECK(!send(LIVE, number++));
			CHECK(!ripc_receive(live, &kept[i], LIMIT_MS));
		}
		for (uint32_t i = 0; i < MORE; i++) {
			struct ripc_message m;

			CHECK(!send(LIVE, number));
			CHECK(!ripc_receive(live, &m, LIMIT_MS));
			CHECK(number_of(&m) == number++);
			ripc_release(&m);
		}
		for (uint32_t i = 0; i < keep; i++) {
			CHECK(number_of(&kept[i]) == i);
			ripc_release(&kept[i]);
		}
	}
}

static void by_datagram(void)
{
	struct ripc_counters before, after;
	struct ripc_message m;
	uint32_t newest = 0, came = 0;

	ripc_counters(there, &before);
	for (uint32_t i = 1; i <= MANY; i++)
		CHECK(!send(DEAF, i));
	/* One datagram alone may be lost, where the receives are all used for a moment. */
	for (uint32_t i = 1; i <= 100; i++) {
		CHECK(!send(LIVE, i));
		if (ripc_receive(live, &m, WAIT_MS))
			continue;
		CHECK(number_of(&m) > newest);
		newest = number_of(&m);
		came++;
		ripc_release(&m);
	}
	CHECK(came > 90);
	ripc_counters(there, &after);
	CHECK(after.short_dropped > before.short_dropped);
	for (came = 0; !ripc_receive(deaf, &m, 0); came++)
		ripc_release(&m);
	CHECK(came == QUEUE);
}

/* Of the bytes that wait for it, too. */
static void long_messages(void)
{
	struct ripc_item item = { ripc_alloc(here, LONG_BYTES), LONG_BYTES };
	struct ripc_message m;
	struct ripc_token token;
	unsigned n = 0;
	int ret;

	CHECK(item.data);
	while (!(ret = ripc_send_long(from, DEAF, &item, 1, NULL, 0, NULL)))
		CHECK(++n < QUEUE);
	CHECK(ret == -EAGAIN && n == LONG_MAX / LONG_BYTES);
	/* Which is not "not yet". */
	CHECK(!ripc_send_long(from, DEAF, &item, 1, NULL, 0, &token));
	CHECK(ripc_sent(from, token, LIMIT_MS) == -ENOBUFS);
	is_served(0);
	CHECK(!ripc_receive(deaf, &m, LIMIT_MS));
	ripc_release(&m);
	CHECK(!ripc_send_long(from, DEAF, &item, 1, NULL, 0, NULL));
	while (!ripc_receive(deaf, &m, 0))
		ripc_release(&m);
	CHECK(!ripc_free(here, item.data));
}

int main(int argc, char **argv)
{
	const bool datagrams = argc > 1 && !strcmp(argv[1], "datagrams");
	const struct ripc_config c = {
		.connect_timeout_ms = CONNECT_MS, .queue_max = QUEUE,
		.message_bytes_max = LONG_MAX,
		.short_by = datagrams ? RIPC_SHORT_DATAGRAM : RIPC_SHORT_CONNECTION,
	};

	here = open_instance(c);
	there = open_instance(c);
	CHECK(!ripc_service_open(here, SENDER, NULL, &from));
	CHECK(!ripc_service_open(there, DEAF, NULL, &deaf));
	CHECK(!ripc_service_open(there, LIVE, NULL, &live));
	is_served(0);
	with_kept_ones();
	if (datagrams)
		by_datagram();
	else
		over_a_connection();
	long_messages();
	ripc_close(here);
	ripc_close(there);
	return 0;
}
