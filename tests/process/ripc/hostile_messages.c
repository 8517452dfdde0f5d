/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that a peer must not send. */
#include <errno.h>
#include <string.h>

#include "hostile.h"

/* ---- messages that are none ---- */

static size_t tamper(struct evil *e, unsigned how)
{
	struct packet_message m = { .type = PACKET_LONG, .from = 900, .to = VICTIM_OFFERS,
				    .number = 1, .count = 2, .items = { { .bytes = 1 } } };
	size_t bytes;

	if (how >= 8 && how < 12) {
		m.type = PACKET_SHORT;
		m.sizes[0] = m.sizes[1] = 4;
	}
	bytes = packet_message_encode(&m, false, e->out);
	switch (how) {
	case 0: e->out[0] ^= 1; break;              /* magic */
	case 1: e->out[4]++; break;                 /* version */
	case 2: e->out[5] = 0; break;               /* type */
	case 3: e->out[5] = 8; break;
	case 4: e->out[16] = 33; break;             /* items */
	case 5: e->out[17] = 17; break;             /* return buffers */
	case 6: e->out[19] = 1; break;              /* what is zero */
	case 7: memset(e->out + 24, 0, 8); break;   /* number 0 */
	case 8: return bytes;                       /* without the items */
	case 9: return bytes + 9;
	case 10: memset(e->out + 20, 0xff, 4); return bytes + 8; /* 4 GiB */
	case 11: return 21;
	case 12: e->out[20] = 0x80; break;          /* pushed, an item that is not there */
	case 13: memset(e->out + 40, 0xff, 8); e->out[67] = 1; break; /* the sum of lengths */
	case 14: memset(e->out + 32, 0xff, 16); break; /* beyond the address space */
	case 15: return bytes - 1;
	case 16: return bytes + 1;
	case 17: return 0;
	case 18: return 5;
	case 19: return 19;
	case 20: noise(e->out, 2048); return 2048;
	case 21: return 2049;                       /* longer than a receive */
	default: e->out[prng_below(&prng, 6)] ^= (uint8_t)(1 + prng_below(&prng, 255)); break;
	}
	return bytes;
}

void messages_that_are_none(void)
{
	for (unsigned how = 0; how < 26; how++) {
		uint64_t before = bad_packets();
		struct evil e;

		join(&e);
		evil_send(&e, tamper(&e, how));
		if (!evil_is_ended(&e, SOON_MS))
			printf("misdeed %u\n", how);
		CHECK(e.ended);
		/* The adapter sees one that is too long before the instance does; another
		 * type may be right by chance. */
		CHECK(how >= 21 || bad_packets() == before + 1);
		evil_close(&e);
	}
}

/* ---- return buffers ---- */

static struct packet_memory offered(struct evil *e, uint32_t service)
{
	struct packet_message m;

	CHECK(!order(ORDER_OFFER, service).result);
	CHECK(evil_hear(e, &m, SOON_MS) && m.type == PACKET_SHORT && m.returns_count == 1);
	CHECK(m.returns[0].bytes == VICTIM_BUFFER_BYTES);
	return m.returns[0];
}

static struct packet_message pushed(uint32_t from, uint32_t to, struct packet_memory at)
{
	struct packet_message m = { .type = PACKET_LONG, .from = from, .to = to, .number = 1,
				    .count = 1 };

	at.pushed = true;
	m.items[0] = at;
	return m;
}

/* In a buffer of another one, or in none: nothing comes of it. */
static void pushed_elsewhere(unsigned how)
{
	uint32_t service = next_service++;
	struct victim_answer before = order(ORDER_TELL, 0), after;
	struct evil owner, other, *by = &owner;
	struct packet_memory at;
	struct packet_message m;

	join(&owner);
	at = offered(&owner, service);
	evil_hello(&other, &target, draw());
	m = pushed(service, VICTIM_OFFERS, at);
	switch (how) {
	case 0: m.from = 899; break;                /* for another service of ours */
	case 1: m.to = VICTIM_ECHO; break;          /* of another service of theirs */
	case 2: by = &other; break;                 /* for another instance */
	case 3: m.items[0].bytes++; break;
	case 4: m.items[0].address++; break;
	case 5: m.items[0].address = before.buffer - 64; break;
	default: m.count = 2; m.items[1] = m.items[0]; break; /* twice */
	}
	evil_say(by, &m);
	CHECK(evil_is_ended(by, SOON_MS));
	after = order(ORDER_TELL, 0);
	CHECK(after.counters.bad_packets == before.counters.bad_packets + 1);
	CHECK(after.messages == before.messages);
	/* It can be had back. */
	CHECK(order(ORDER_REVOKE, service).result == 1 || how == 2);
	evil_close(&owner);
	evil_close(&other);
	if (how == 2)
		order(ORDER_REVOKE, service);
}

/* A message comes in it as it should; then it is used up, and no key of anything. */
static void written_once_more(bool by_write)
{
	uint32_t service = next_service++;
	struct victim_answer before, after;
	struct packet_memory at;
	struct packet_message m;
	struct evil e;

	join(&e);
	at = offered(&e, service);
	before = order(ORDER_TELL, 0);
	memset(e.data, 0x11, 2 * VICTIM_BUFFER_BYTES);
	CHECK(evil_write(&e, at.address, at.key, VICTIM_BUFFER_BYTES));
	m = pushed(service, VICTIM_OFFERS, at);
	CHECK(evil_say(&e, &m));
	CHECK(evil_hear(&e, &m, SOON_MS) && m.type == PACKET_DONE && m.number == 1);
	after = order(ORDER_TELL, 0);
	while (after.messages == before.messages)
		after = order(ORDER_TELL, 0);
	CHECK(after.returned == before.returned + 1 && !after.guards_changed);
	order(ORDER_TELL, 0);
	m = pushed(service, VICTIM_OFFERS, at);
	m.number = 2;
	if (by_write)
		evil_write(&e, at.address, at.key, 1);
	else
		evil_say(&e, &m);
	CHECK(evil_is_ended(&e, SOON_MS) && !order(ORDER_TELL, 0).buffer_changed);
	evil_close(&e);
}

/* All of the memory around the buffer is registered, too. */
static void written_beyond(void)
{
	static const struct {
		int64_t at;
		uint32_t key, bytes;
	} cases[] = {
		{ 0, 0, VICTIM_BUFFER_BYTES + 1 }, { -1, 0, VICTIM_BUFFER_BYTES },
		{ -1, 0, 1 }, { VICTIM_BUFFER_BYTES, 0, 1 }, { VICTIM_BUFFER_BYTES - 1, 0, 2 },
		{ 0, 1, VICTIM_BUFFER_BYTES }, { 0, 77, VICTIM_BUFFER_BYTES },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t service = next_service++;
		struct packet_memory at;
		struct evil e;

		join(&e);
		at = offered(&e, service);
		evil_write(&e, at.address + (uint64_t)cases[i].at, at.key + cases[i].key,
			   cases[i].bytes);
		if (!evil_is_ended(&e, SOON_MS) || order(ORDER_TELL, 0).guards_changed)
			printf("%u bytes at %d\n", cases[i].bytes, (int)cases[i].at);
		CHECK(e.ended && !order(ORDER_TELL, 0).guards_changed);
		CHECK(order(ORDER_REVOKE, service).result == 1);
		evil_close(&e);
	}
	order(ORDER_TELL, 0);
}

/* It says that it does not write any more. */
static void written_after_all(void)
{
	uint32_t service = next_service++;
	struct packet_memory at;
	struct packet_message m;
	struct evil e;

	join(&e);
	at = offered(&e, service);
	order(ORDER_TELL, 0);
	victim_order(&victim, ORDER_REVOKE, service);
	CHECK(evil_hear(&e, &m, SOON_MS) && m.type == PACKET_REVOKE);
	m = (struct packet_message){ .type = PACKET_REVOKED, .from = m.to, .to = m.from,
				     .number = m.number };
	CHECK(evil_say(&e, &m));
	CHECK(victim_wait(&victim).result == 1);
	CHECK(!e.ended);
	evil_write(&e, at.address, at.key, 1);
	CHECK(evil_is_ended(&e, SOON_MS) && !order(ORDER_TELL, 0).buffer_changed);
	evil_close(&e);
}

static bool has_windows(void)
{
	const char *without = getenv("BUSBAR_WITHOUT");

	return !without || !strstr(without, "windows");
}

/* The key is of another one's connection; that of a registration is of all. */
static void written_by_another(void)
{
	uint32_t service = next_service++;
	struct packet_memory at;
	struct evil owner, other;

	join(&owner);
	at = offered(&owner, service);
	evil_hello(&other, &target, draw());
	order(ORDER_TELL, 0);
	if (has_windows()) {
		evil_write(&other, at.address, at.key, 1);
		CHECK(evil_is_ended(&other, SOON_MS) && !order(ORDER_TELL, 0).buffer_changed);
	}
	CHECK(!owner.ended);
	evil_close(&owner);
	evil_close(&other);
	CHECK(order(ORDER_REVOKE, service).result == 1);
}

void return_buffers(void)
{
	for (unsigned how = 0; how < 7; how++)
		pushed_elsewhere(how);
	written_once_more(false);
	written_once_more(true);
	written_beyond();
	written_after_all();
	written_by_another();
}

/* ---- long messages ---- */

static struct packet_message long_of(struct evil *e, uint64_t number, uint64_t bytes)
{
	struct packet_message m = { .type = PACKET_LONG, .from = 899, .to = VICTIM_OFFERS,
				    .number = number, .count = 1 };

	m.items[0] = (struct packet_memory){ .address = (uintptr_t)e->data, .bytes = bytes,
					     .key = e->mr->rkey };
	return m;
}

static void is_answered(struct evil *e, const struct packet_message *m, unsigned type,
			uint32_t error)
{
	struct packet_message back;

	CHECK(evil_say(e, m));
	CHECK(evil_hear(e, &back, SOON_MS));
	CHECK(back.type == type && back.number == m->number && back.error == error);
}

void memory_that_is_none(void)
{
	for (unsigned how = 0; how < 4; how++) {
		struct packet_message m;
		struct evil e;

		join(&e);
		m = long_of(&e, 1, 4096);
		switch (how) {
		case 0: m.items[0].key++; break;
		case 1: m.items[0].address = 4096; break;
		case 2: m.items[0].bytes = EVIL_DATA_BYTES + 4096; break;
		default: m.items[0].key = 0; m.items[0].bytes = VICTIM_MESSAGE_MAX; break;
		}
		evil_say(&e, &m);
		CHECK(evil_is_ended(&e, SOON_MS));
		evil_close(&e);
	}
}

void lengths_and_numbers(void)
{
	uint64_t before = order(ORDER_TELL, 0).messages;
	struct packet_message m;
	struct evil e;

	join(&e);
	m = long_of(&e, 1, UINT64_C(1) << 63);
	m.items[0].address = 0;
	is_answered(&e, &m, PACKET_FAILED, EMSGSIZE);
	m = long_of(&e, 2, VICTIM_MESSAGE_MAX);
	m.items[1] = m.items[0];
	m.count = 2;
	is_answered(&e, &m, PACKET_FAILED, EMSGSIZE);
	m = long_of(&e, 3, 100);
	m.to = 12345;
	is_answered(&e, &m, PACKET_FAILED, EHOSTUNREACH);
	/* Again: the same is said; what was taken is not taken twice. */
	m = long_of(&e, 2, 100);
	is_answered(&e, &m, PACKET_FAILED, EMSGSIZE);
	m = long_of(&e, 9, 100);
	is_answered(&e, &m, PACKET_DONE, 0);
	is_answered(&e, &m, PACKET_DONE, 0);
	m = long_of(&e, 8, 100);
	is_answered(&e, &m, PACKET_DONE, 0);
	m = long_of(&e, UINT64_MAX, 100);
	is_answered(&e, &m, PACKET_DONE, 0);
	m = long_of(&e, 10, 100);
	is_answered(&e, &m, PACKET_DONE, 0);
	while (order(ORDER_TELL, 0).messages < before + 2)
		;
	CHECK(order(ORDER_TELL, 0).messages == before + 2);
	evil_close(&e);
}

/* Refused more often than is remembered: none of these may be called delivered. */
void refusals_are_not_forgotten(void)
{
	struct packet_message m;
	struct evil e;

	join(&e);
	for (unsigned i = 1; i <= 70; i++) {
		m = long_of(&e, i, 100);
		m.to = 12345;
		is_answered(&e, &m, PACKET_FAILED, EHOSTUNREACH);
	}
	m = long_of(&e, 1, 100);
	is_answered(&e, &m, PACKET_FAILED, ECONNRESET);
	m.number = 70;
	is_answered(&e, &m, PACKET_FAILED, EHOSTUNREACH);
	evil_close(&e);
}

void ends_of_nothing(void)
{
	struct ripc_counters before, after;
	struct packet_message m = { .type = PACKET_DONE, .from = GOOD, .to = VICTIM_ECHO,
				    .number = 1 };
	struct evil e;

	is_served(false);
	before = order(ORDER_TELL, 0).counters;
	join(&e);
	for (unsigned i = 0; i < 20; i++) {
		m.number = i ? draw() : UINT64_MAX;
		CHECK(evil_say(&e, &m));
		m.type = i & 1 ? PACKET_DONE : PACKET_FAILED;
		m.error = EHOSTUNREACH;
	}
	/* A service of another peer is not gone because this one says so. */
	m = (struct packet_message){ .type = PACKET_FAILED, .from = GOOD, .to = VICTIM_ECHO,
				     .error = EHOSTUNREACH };
	CHECK(evil_say(&e, &m));
	is_served(false);
	after = order(ORDER_TELL, 0).counters;
	CHECK(after.bad_packets == before.bad_packets && after.resolves == before.resolves);
	/* Nobody has revoked anything. */
	m = (struct packet_message){ .type = PACKET_REVOKED, .from = 900, .to = VICTIM_OFFERS,
				     .number = 1 };
	evil_say(&e, &m);
	CHECK(evil_is_ended(&e, SOON_MS) && bad_packets() == before.bad_packets + 1);
	evil_close(&e);
}

void gone_while_fetched(void)
{
	for (unsigned i = 0; i < 8; i++) {
		struct packet_message m;
		struct evil e;

		join(&e);
		for (unsigned k = 1; k <= 8; k++) {
			m = long_of(&e, k, EVIL_DATA_BYTES);
			evil_say(&e, &m);
		}
		evil_close(&e);
	}
}

/* After a message that was not delivered its sender has the return buffers again: the next
 * service of that number does not write there. */
static void is_not_written(struct evil *e, uint32_t service)
{
	struct packet_message m;

	CHECK(!order(ORDER_OPEN, 0).result);
	victim_order(&victim, ORDER_PASS, service);
	CHECK(evil_hear(e, &m, SOON_MS) && m.type == PACKET_LONG && m.count == 1);
	CHECK(!m.items[0].pushed);
	m = (struct packet_message){ .type = PACKET_DONE, .from = m.to, .to = m.from,
				     .number = m.number };
	CHECK(evil_say(e, &m));
	CHECK(!victim_wait(&victim).result);
}

/* Before it is announced, while it is fetched, or after it was delivered. */
void closed_while_fetched(void)
{
	uint32_t service = next_service++;
	struct evil e;

	join(&e);
	for (unsigned i = 1; i <= 24; i++) {
		struct packet_message m = long_of(&e, i, EVIL_DATA_BYTES), back;

		m.from = service;
		m.to = VICTIM_PASSING;
		m.returns_count = 1;
		m.returns[0] = m.items[0];
		for (m.count = 1; m.count < VICTIM_MESSAGE_MAX / EVIL_DATA_BYTES; m.count++)
			m.items[m.count] = m.items[0];
		CHECK(!order(ORDER_OPEN, 0).result);
		CHECK(evil_say(&e, &m));
		for (unsigned n = (unsigned)prng_below(&prng, 100000); n; n--)
			atomic_signal_fence(memory_order_seq_cst);
		victim_order(&victim, ORDER_CLOSE, 0);
		CHECK(evil_hear(&e, &back, SOON_MS) && back.number == i);
		CHECK(!victim_wait(&victim).result);
		if (back.type == PACKET_FAILED) {
			CHECK(back.error == EHOSTUNREACH);
			is_answered(&e, &m, PACKET_FAILED, EHOSTUNREACH);
			is_not_written(&e, service);
			order(ORDER_CLOSE, 0);
		} else {
			CHECK(back.type == PACKET_DONE);
			is_answered(&e, &m, PACKET_DONE, 0);
			/* The buffer is that service's, also of the next one with its number. */
			m = (struct packet_message){ .type = PACKET_REVOKE, .from = service,
						     .to = VICTIM_PASSING, .number = i };
			is_answered(&e, &m, PACKET_REVOKED, 0);
		}
	}
	evil_close(&e);
}
