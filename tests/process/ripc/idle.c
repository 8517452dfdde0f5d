/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idle: calls that wait while connections are closed as idle, between two instances of one
 * process, one of which closes its own after a millisecond.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "instance.h"

enum { HASTY = 1, PATIENT = 2, ROUNDS = 20, LATE_MS = 20, CREDITS = 32 };

static struct ripc *hasty, *patient;
static struct ripc_service *from, *to;
static atomic_bool stop;

static void nap(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

static void wait_closed(void)
{
	struct ripc_counters a, b;

	for (unsigned ms = 0; ms < LIMIT_MS; ms++) {
		ripc_counters(hasty, &a);
		ripc_counters(patient, &b);
		if (!a.connections && !b.connections)
			return;
		nap(1);
	}
	CHECK(!"the connection is closed");
}

static int send(void)
{
	uint8_t byte = 1;
	struct ripc_item item = { &byte, 1 };

	return ripc_send_short(from, PATIENT, &item, 1, NULL, 0);
}

/* ---- a thread that comes to see its connection only after a while ---- */

static void handler(int signal)
{
	(void)signal;
	nap(LATE_MS);
}

static void *delay(void *arg)
{
	pthread_t *who = arg;

	while (!atomic_load(&stop)) {
		pthread_kill(*who, SIGUSR1);
		nap(LATE_MS + 2); /* it runs for 2 ms, then it does not */
	}
	return NULL;
}

static void sends_though_it_sees_its_connection_late(void)
{
	struct sigaction act = { .sa_handler = handler };
	pthread_t me = pthread_self(), other;

	CHECK(!sigaction(SIGUSR1, &act, NULL));
	CHECK(!pthread_create(&other, NULL, delay, &me));
	for (unsigned i = 0; i < ROUNDS; i++) {
		CHECK(!send());
		wait_closed();
	}
	atomic_store(&stop, true);
	pthread_join(other, NULL);
}

/* ---- a receiver that takes nothing for a while ---- */

static void *receive_late(void *arg)
{
	struct ripc_message m;

	nap(300);
	while (!ripc_receive(to, &m, 1000))
		ripc_release(&m);
	return arg;
}

static void waits_for_room_on_a_connection_without_messages(void)
{
	pthread_t other;

	CHECK(!pthread_create(&other, NULL, receive_late, NULL));
	for (unsigned i = 0; i < CREDITS + 1; i++)
		CHECK(!send());
	pthread_join(other, NULL);
}

int main(void)
{
	hasty = open_instance((struct ripc_config){ .idle_close_ms = 1 });
	patient = open_instance((struct ripc_config){ 0 });
	CHECK(!ripc_service_open(hasty, HASTY, NULL, &from));
	CHECK(!ripc_service_open(patient, PATIENT, NULL, &to));
	sends_though_it_sees_its_connection_late();
	waits_for_room_on_a_connection_without_messages();
	ripc_close(hasty);
	ripc_close(patient);
	return 0;
}
