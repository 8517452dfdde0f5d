/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that a peer must not make, and credits that it must not spend. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "hostile.h"

/* ---- credits ---- */

static void revocations_without_end(void)
{
	struct packet_message m = { .type = PACKET_REVOKE, .from = 900, .to = VICTIM_ECHO };
	const struct packet_message hello = { .type = PACKET_HELLO, .number = 1 };
	unsigned n = 0;
	struct evil e;

	CHECK(evil_join(&e, &target, draw(), 1));
	CHECK(evil_say(&e, &hello));
	while (n < 20000) {
		m.number = ++n;
		e.owed = 0; /* no room for the answers */
		if (!evil_say(&e, &m))
			break;
	}
	CHECK(n < 20000 && evil_is_ended(&e, SOON_MS));
	evil_close(&e);
}

/* The victim sends and has no room; then the connection ends. */
static void no_credits(uint16_t credits)
{
	struct packet_message hello = { .type = PACKET_HELLO, .number = 1 };
	uint32_t service = next_service++;
	struct victim_answer a;
	struct evil e;

	CHECK(evil_join(&e, &target, draw(), credits));
	atomic_store(&our_instance, e.instance);
	e.mute = true;
	/* More than there can be are not believed, at any time. */
	hello.credits = credits == UINT16_MAX ? credits : 0;
	CHECK(evil_say(&e, &hello));
	a = order(ORDER_SHORTS, service);
	CHECK(a.result == -EAGAIN);
	evil_close(&e);
	order(ORDER_REVOKE, service);
}

static void *leave_soon(void *arg)
{
	evil_nap(VICTIM_TIMEOUT_MS / 2);
	rdma_disconnect(((struct evil *)arg)->id);
	return NULL;
}

static void gone_while_waited_for(void)
{
	const struct packet_message hello = { .type = PACKET_HELLO, .number = 1 };
	uint32_t service = next_service++;
	pthread_t thread;
	struct evil e;

	CHECK(evil_join(&e, &target, draw(), 1));
	atomic_store(&our_instance, e.instance);
	e.mute = true;
	CHECK(evil_say(&e, &hello));
	CHECK(!pthread_create(&thread, NULL, leave_soon, &e));
	CHECK(order(ORDER_SHORTS, service).result < 0);
	pthread_join(thread, NULL);
	evil_close(&e);
	order(ORDER_REVOKE, service);
}

void credits(void)
{
	revocations_without_end();
	no_credits(1);
	no_credits(65535);
	gone_while_waited_for();
}

void more_than_allowed(void)
{
	struct packet_message m = { .type = PACKET_SHORT, .from = 900, .to = VICTIM_DEAF };
	const struct ripc_counters before = order(ORDER_TELL, 0).counters;
	struct ripc_counters after;
	struct ibv_send_wr wr = { .wr_id = EVIL_SENT, .opcode = IBV_WR_SEND, .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t until = evil_now_ms() + SOON_MS;
	struct ibv_sge sge;
	struct evil e;

	join(&e);
	sge = (struct ibv_sge){ (uintptr_t)e.out,
				(uint32_t)packet_message_encode(&m, false, e.out),
				e.mr->lkey };
	wr.sg_list = &sge;
	/* It neither counts credits nor holds when it is asked to. */
	while (!evil_is_ended(&e, 1) && evil_now_ms() < until)
		for (unsigned i = 0; i < 48; i++)
			if (ibv_post_send(e.id->qp, &wr, &bad))
				break;
	CHECK(e.ended);
	evil_close(&e);
	is_served(true);
	after = order(ORDER_TELL, 0).counters;
	CHECK(after.bad_packets == before.bad_packets + 1);
	CHECK(after.short_received - before.short_received <= 64 + 256 + 50);
}

/* It keeps to what one connection allows, and takes another one when it is asked to hold. */
void more_than_allowed_in_parts(void)
{
	const struct packet_message m = { .type = PACKET_SHORT, .from = 900, .to = VICTIM_DEAF };
	const struct ripc_counters before = order(ORDER_TELL, 0).counters;
	const uint64_t instance = draw();

	for (unsigned i = 0; i < 24; i++) {
		struct evil e;

		evil_hello(&e, &target, instance);
		for (unsigned k = 0; k < 30 && evil_say(&e, &m); k++)
			;
		evil_close(&e);
	}
	is_served(true);
	CHECK(order(ORDER_TELL, 0).counters.bad_packets > before.bad_packets);
}

/* ---- connections ---- */

void requests(void)
{
	static const struct {
		const char *what;
		bool self, other, stranger;
		uint16_t credits;
		unsigned bytes;
	} cases[] = {
		{ "its own number", true, false, false, 32, PACKET_CONNECT_BYTES },
		{ "for another instance", false, true, false, 32, PACKET_CONNECT_BYTES },
		{ "without credits", false, false, false, 0, PACKET_CONNECT_BYTES },
		{ "with a secret", false, false, true, 32, PACKET_CONNECT_BYTES },
		{ "too short", false, false, false, 32, 12 },
		{ "of nothing", false, false, false, 32, 0 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct packet_connect p = { .instance = cases[i].self ? target.instance : draw(),
					    .to = target.instance + cases[i].other,
					    .credits = cases[i].credits,
					    .message_bytes = 2048 };
		struct ripc_counters before = order(ORDER_TELL, 0).counters, after;
		struct packet_key key = { .set = false };
		uint8_t data[PACKET_CONNECT_BYTES];
		struct evil e;

		if (cases[i].stranger)
			packet_key_make(&key, "sixteen bytes or more", 20);
		packet_connect_encode(&p, &key, 0, data);
		if (evil_connect(&e, &target, data, cases[i].bytes) || e.reason < 2)
			printf("a request %s\n", cases[i].what);
		CHECK(!e.up && e.reason >= 2);
		evil_close(&e);
		after = order(ORDER_TELL, 0).counters;
		CHECK(after.refused == before.refused + 1);
		CHECK(after.unauthentic + after.bad_packets + (i < 2) ==
		      before.unauthentic + before.bad_packets + 1);
	}
}

void without_the_secret(void)
{
	struct ripc_counters before = victim_tell(&secretive, ORDER_TELL, 0).counters, after;

	for (unsigned i = 0; i < 2; i++) {
		struct packet_connect p = { .instance = draw(), .to = secret_target.instance,
					    .credits = 32, .message_bytes = 2048 };
		struct packet_key key = { .set = false };
		uint8_t data[PACKET_CONNECT_BYTES];
		struct evil e;

		if (i)
			packet_key_make(&key, "another secret of 24 byte", 24);
		packet_connect_encode(&p, &key, 0, data);
		CHECK(!evil_connect(&e, &secret_target, data, sizeof(data)));
		evil_close(&e);
	}
	after = victim_tell(&secretive, ORDER_TELL, 0).counters;
	CHECK(after.unauthentic == before.unauthentic + 2);
	CHECK(after.refused == before.refused + 2);
}

/* A request that somebody has seen is sent once more, by who does not have the secret. */
void recorded_requests(void)
{
	const struct packet_connect p = { .instance = draw(), .to = secret_target.instance,
					  .credits = 32, .message_bytes = 2048,
					  .nonce = draw() };
	uint64_t before = victim_tell(&secretive, ORDER_TELL, 0).counters.unauthentic;
	struct packet_message hello = { .type = PACKET_HELLO };
	struct packet_connect answer;
	struct packet_key key, other;
	uint8_t data[PACKET_CONNECT_BYTES];
	uint64_t recorded = 0;

	packet_key_make(&key, VICTIM_SECRET, strlen(VICTIM_SECRET));
	packet_key_make(&other, "another secret of 24 byte", 24);
	packet_connect_encode(&p, &key, 0, data);
	for (unsigned i = 0; i < 4; i++) {
		struct evil e;

		CHECK(evil_connect(&e, &secret_target, data, sizeof(data)));
		CHECK(!packet_connect_decode(&answer, &key, p.nonce, e.accepted,
					     sizeof(e.accepted)));
		/* Answers to other requests are not taken for one. */
		CHECK(packet_connect_decode(&answer, &key, p.nonce + 1, e.accepted,
					    sizeof(e.accepted)) == -EKEYREJECTED);
		hello.number = i == 0 ? packet_connect_proof(&p, &answer, &key) :
			       i == 1 ? recorded :
			       i == 2 ? packet_connect_proof(&p, &answer, &other) : 1;
		if (!i)
			recorded = hello.number;
		evil_say(&e, &hello);
		CHECK(evil_is_ended(&e, i ? SOON_MS : 50) == (i > 0));
		evil_close(&e);
	}
	CHECK(victim_tell(&secretive, ORDER_TELL, 0).counters.unauthentic == before + 3);
}

/* Those that never say a word are counted as connections, and end. */
void silent_connections(void)
{
	static struct evil e[VICTIM_CONNECTIONS + 8];
	unsigned n = sizeof(e) / sizeof(e[0]);
	uint64_t until;

	/* The first may have ended when the last come. */
	for (unsigned i = 0; i < n; i++) {
		evil_join(&e[i], &target, draw(), 32);
		CHECK(order(ORDER_TELL, 0).counters.connections <= VICTIM_CONNECTIONS);
	}
	is_served(true);
	for (unsigned i = 0; i < n; i++)
		evil_close(&e[i]);
	/* There is room again. */
	until = evil_now_ms() + SOON_MS;
	while (evil_now_ms() < until) {
		bool joined = evil_join(&e[0], &target, draw(), 32);

		evil_close(&e[0]);
		if (joined)
			return;
		evil_nap(20);
	}
	CHECK(!"room for connections");
}

/* The same instance connects again, while its old connection is there: what was on its way is
 * announced on the new one. */
void replaced_connection(void)
{
	uint32_t service = next_service++;
	struct packet_message m;
	struct evil old, new;
	uint64_t number;

	join(&old);
	CHECK(!order(ORDER_LONG, service).result);
	CHECK(evil_hear(&old, &m, SOON_MS) && m.type == PACKET_LONG);
	number = m.number;
	evil_hello(&new, &target, old.instance);
	CHECK(evil_hear(&new, &m, SOON_MS) && m.type == PACKET_LONG && m.number == number);
	m = (struct packet_message){ .type = PACKET_DONE, .from = service, .to = VICTIM_OFFERS,
				     .number = number };
	CHECK(evil_say(&new, &m));
	CHECK(order(ORDER_SENT, SOON_MS).result == 0);
	evil_close(&old);
	evil_close(&new);
}
