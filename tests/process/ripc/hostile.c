/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostile [ROUNDS [SEED]]: a peer that does not keep to the rules, against an instance in
 * another process. After each misdeed a good peer is still served, nothing was written but
 * where a return buffer was offered, and the counters say what was seen. The rounds after the
 * first must not cost memory or descriptors.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "evil.h"
#include "util/prng.h"
#include "victim.h"

enum { SOON_MS = 3000, GOOD = 500, RSS_SLACK_KB = 16384 };

static struct victim victim, secretive;
static struct evil_target target, secret_target;
static struct ripc *good;
static struct ripc_service *good_service;
static struct prng prng;
static uint32_t next_service = VICTIM_OTHERS;
static const char *now_at;

static void noise(uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)prng_next(&prng);
}

/* ---- the resolver's side: says where our services are ---- */

static struct {
	int fd;
	pthread_t thread;
	_Atomic uint64_t instance;     /* that has all of them */
	struct sockaddr_in victim_at;  /* where it asks from */
	atomic_bool asked, stop;
} name;

static void tell(const struct sockaddr_in *to, uint64_t nonce, uint32_t id, uint64_t instance)
{
	const struct packet_key none = { .set = false };
	struct packet_resolve p = { .type = PACKET_TELL, .nonce = nonce, .id = id,
				    .where = { .instance = instance, .port = 1 } };
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];
	size_t length;

	p.where.address[10] = p.where.address[11] = 0xff;
	p.where.address[12] = 127;
	p.where.address[15] = 1;
	length = packet_resolve_encode(&p, &none, bytes);
	sendto(name.fd, bytes, length, 0, (const struct sockaddr *)to, sizeof(*to));
}

static void *answer_questions(void *arg)
{
	const struct packet_key none = { .set = false };
	uint8_t bytes[512];

	(void)arg;
	while (!atomic_load(&name.stop)) {
		struct pollfd p = { .fd = name.fd, .events = POLLIN };
		struct sockaddr_in from;
		socklen_t size = sizeof(from);
		struct packet_resolve question;
		ssize_t n;

		if (poll(&p, 1, 50) != 1)
			continue;
		n = recvfrom(name.fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size);
		if (n < 0 || packet_resolve_decode(&question, &none, bytes, (size_t)n) ||
		    question.type != PACKET_ASK)
			continue;
		if (!atomic_load(&name.asked))
			name.victim_at = from;
		atomic_store(&name.asked, true);
		tell(&from, question.nonce, question.id, atomic_load(&name.instance));
	}
	return NULL;
}

/* A file for the resolver of the victim. */
static const char *hosts_file(void)
{
	static char path[64];
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	socklen_t size = sizeof(a);
	int fd = memfd_create("hosts", 0);

	name.fd = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(fd >= 0 && name.fd >= 0 && !bind(name.fd, (struct sockaddr *)&a, size));
	CHECK(!getsockname(name.fd, (struct sockaddr *)&a, &size));
	for (unsigned id = VICTIM_OTHERS; id < VICTIM_OTHERS + 200; id++)
		dprintf(fd, "%u 127.0.0.1 %u\n", id, ntohs(a.sin_port));
	snprintf(path, sizeof(path), "multicast,hosts:/proc/%d/fd/%d", (int)getpid(), fd);
	return path;
}

/* ---- what must hold after each misdeed ---- */

static struct victim_answer order(enum victim_order what, uint32_t argument)
{
	return victim_tell(&victim, what, argument);
}

static void is_served(bool is_long)
{
	static uint8_t bytes[100000];
	struct ripc_item item = { bytes, is_long ? sizeof(bytes) : 100 };
	struct ripc_message m;
	int ret;

	noise(bytes, item.bytes);
	ret = is_long ? ripc_send_long(good_service, VICTIM_ECHO, &item, 1, NULL, 0, NULL) :
			ripc_send_short(good_service, VICTIM_ECHO, &item, 1, NULL, 0);
	if (ret)
		printf("%s: the good peer cannot send: %s\n", now_at, ripc_error());
	CHECK(!ret);
	ret = ripc_receive(good_service, &m, SOON_MS);
	if (ret)
		printf("%s: the good peer gets no answer\n", now_at);
	CHECK(!ret && m.count == 1 && m.items[0].bytes == item.bytes &&
	      !memcmp(m.items[0].data, bytes, item.bytes));
	ripc_release(&m);
}

static void all_is_well(void)
{
	struct victim_answer a;

	is_served(false);
	is_served(true);
	a = order(ORDER_TELL, 0);
	CHECK(!a.guards_changed && !a.buffer_changed);
}

static uint64_t bad_packets(void)
{
	return order(ORDER_TELL, 0).counters.bad_packets;
}

static uint64_t draw(void)
{
	return prng_next(&prng) | 1;
}

static void join(struct evil *e)
{
	evil_hello(e, &target, draw());
	atomic_store(&name.instance, e->instance);
}

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

static void messages_that_are_none(void)
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

static void written_beyond(void)
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
	/* Used up. */
	m = pushed(service, VICTIM_OFFERS, at);
	m.number = 2;
	evil_say(&e, &m);
	CHECK(evil_is_ended(&e, SOON_MS));
	evil_close(&e);
	/* One byte too many, on both sides, and with keys that are none. */
	for (unsigned how = 0; how < 4; how++) {
		service = next_service++;
		join(&e);
		at = offered(&e, service);
		evil_write(&e, at.address - (how == 1), at.key + (how == 2) + 77 * (how == 3),
			   VICTIM_BUFFER_BYTES + (how == 0));
		CHECK(evil_is_ended(&e, SOON_MS));
		CHECK(!order(ORDER_TELL, 0).guards_changed);
		CHECK(order(ORDER_REVOKE, service).result == 1);
		evil_close(&e);
	}
	order(ORDER_TELL, 0);
}

static void return_buffers(void)
{
	for (unsigned how = 0; how < 7; how++)
		pushed_elsewhere(how);
	written_beyond();
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
	struct packet_message ask = *m, back;

	ask.credits = 1; /* for the answer */
	CHECK(evil_say(e, &ask));
	CHECK(evil_hear(e, &back, SOON_MS));
	CHECK(back.type == type && back.number == m->number && back.error == error);
}

static void memory_that_is_none(void)
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

static void lengths_and_numbers(void)
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
static void refusals_are_not_forgotten(void)
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

static void ends_of_nothing(void)
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

static void gone_while_fetched(void)
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

/* ---- credits ---- */

static void revocations_without_end(void)
{
	struct packet_message m = { .type = PACKET_REVOKE, .from = 900, .to = VICTIM_ECHO };
	const struct packet_message hello = { .type = PACKET_CREDIT };
	unsigned n = 0;
	struct evil e;

	CHECK(evil_join(&e, &target, draw(), 1));
	CHECK(evil_say(&e, &hello));
	while (n < 20000) {
		m.number = ++n;
		if (!evil_say(&e, &m))
			break;
	}
	CHECK(n < 20000 && evil_is_ended(&e, SOON_MS));
	evil_close(&e);
}

/* The victim sends and has no room; then the connection ends. */
static void no_credits(uint16_t credits)
{
	const struct packet_message hello = { .type = PACKET_CREDIT };
	uint32_t service = next_service++;
	struct victim_answer a;
	struct evil e;

	CHECK(evil_join(&e, &target, draw(), credits));
	atomic_store(&name.instance, e.instance);
	e.mute = true;
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
	const struct packet_message hello = { .type = PACKET_CREDIT };
	uint32_t service = next_service++;
	pthread_t thread;
	struct evil e;

	CHECK(evil_join(&e, &target, draw(), 1));
	atomic_store(&name.instance, e.instance);
	e.mute = true;
	CHECK(evil_say(&e, &hello));
	CHECK(!pthread_create(&thread, NULL, leave_soon, &e));
	CHECK(order(ORDER_SHORTS, service).result < 0);
	pthread_join(thread, NULL);
	evil_close(&e);
	order(ORDER_REVOKE, service);
}

static void credits(void)
{
	revocations_without_end();
	no_credits(1);
	no_credits(65535);
	gone_while_waited_for();
}

static void more_than_allowed(void)
{
	struct packet_message m = { .type = PACKET_SHORT, .from = 900, .to = VICTIM_DEAF };
	uint64_t before = order(ORDER_TELL, 0).counters.short_received;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_sge sge;
	struct evil e;

	join(&e);
	sge = (struct ibv_sge){ (uintptr_t)e.out,
				(uint32_t)packet_message_encode(&m, false, e.out),
				e.mr->lkey };
	wr.sg_list = &sge;
	for (unsigned i = 0; i < 60; i++)
		if (ibv_post_send(e.id->qp, &wr, &bad))
			break;
	evil_nap(50);
	is_served(true);
	CHECK(order(ORDER_TELL, 0).counters.short_received - before <= 36 + 2);
	evil_close(&e);
}

/* ---- connections ---- */

static void requests(void)
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
		packet_connect_encode(&p, &key, data);
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

static void without_the_secret(void)
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
		packet_connect_encode(&p, &key, data);
		CHECK(!evil_connect(&e, &secret_target, data, sizeof(data)));
		evil_close(&e);
	}
	after = victim_tell(&secretive, ORDER_TELL, 0).counters;
	CHECK(after.unauthentic == before.unauthentic + 2);
	CHECK(after.refused == before.refused + 2);
}

/* Those that never say a word are counted as connections, and end. */
static void silent_connections(void)
{
	static struct evil e[VICTIM_CONNECTIONS + 8];
	unsigned up = 0, n = sizeof(e) / sizeof(e[0]);
	uint64_t until;

	for (unsigned i = 0; i < n; i++)
		up += evil_join(&e[i], &target, draw(), 32);
	if (up > VICTIM_CONNECTIONS)
		printf("%u connections\n", up);
	CHECK(up <= VICTIM_CONNECTIONS);
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
static void replaced_connection(void)
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

/* ---- the resolver ---- */

static void replies_nobody_asked_for(void)
{
	struct ripc_counters before = order(ORDER_TELL, 0).counters, after;
	uint64_t until = evil_now_ms() + SOON_MS;

	CHECK(atomic_load(&name.asked));
	tell(&name.victim_at, draw(), GOOD, draw());
	sendto(name.fd, "what?", 5, 0, (struct sockaddr *)&name.victim_at,
	       sizeof(name.victim_at));
	do {
		after = order(ORDER_TELL, 0).counters;
	} while (evil_now_ms() < until &&
		 (after.unasked_replies == before.unasked_replies ||
		  after.bad_packets == before.bad_packets));
	CHECK(after.unasked_replies == before.unasked_replies + 1);
	CHECK(after.bad_packets == before.bad_packets + 1);
}

/* ---- rounds ---- */

static const struct {
	const char *what;
	void (*run)(void);
} misdeeds[] = {
	{ "messages that are none", messages_that_are_none },
	{ "return buffers of others", return_buffers },
	{ "memory that is none", memory_that_is_none },
	{ "lengths and numbers", lengths_and_numbers },
	{ "refusals", refusals_are_not_forgotten },
	{ "ends of nothing", ends_of_nothing },
	{ "gone while it is fetched from", gone_while_fetched },
	{ "credits", credits },
	{ "more than allowed", more_than_allowed },
	{ "requests", requests },
	{ "without the secret", without_the_secret },
	{ "silent connections", silent_connections },
	{ "a connection that replaces another", replaced_connection },
	{ "replies nobody asked for", replies_nobody_asked_for },
};

static struct victim_answer round_of(void)
{
	uint64_t until = evil_now_ms() + SOON_MS;
	struct victim_answer a;

	next_service = VICTIM_OTHERS;
	for (unsigned i = 0; i < sizeof(misdeeds) / sizeof(misdeeds[0]); i++) {
		now_at = misdeeds[i].what;
		printf("%s\n", now_at);
		fflush(stdout);
		misdeeds[i].run();
		all_is_well();
	}
	/* Only the good peer's connection is left. */
	do {
		evil_nap(10);
		a = order(ORDER_TELL, 0);
	} while (a.counters.connections != 1 && evil_now_ms() < until + SOON_MS);
	CHECK(a.counters.connections == 1);
	evil_nap(2 * VICTIM_TIMEOUT_MS); /* those that have not said a word end */
	return order(ORDER_TELL, 0);
}

static void start_all(uint16_t port)
{
	const char *hosts = hosts_file();
	int fd = memfd_create("secret", 0);
	struct victim_answer a;
	char path[64];

	CHECK(write(fd, "0123456789abcdef", 16) == 16);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	victim = victim_start(hosts, NULL, port);
	secretive = victim_start("multicast", path, port);
	CHECK(!pthread_create(&name.thread, NULL, answer_questions, NULL));
	a = order(ORDER_TELL, 0);
	target.instance = a.instance;
	target.at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(a.port),
					  .sin_addr.s_addr = htonl(0x7f000001) };
	a = victim_tell(&secretive, ORDER_TELL, 0);
	secret_target = target;
	secret_target.instance = a.instance;
	secret_target.at.sin_port = htons(a.port);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)getpid();
	uint16_t port = (uint16_t)(20000 + getpid() % 20000);
	struct ripc_config c = { .address = "127.0.0.1", .resolver = "multicast",
				 .resolver_port = port, .claim_ms = UINT32_MAX };
	struct victim_answer first, last;

	printf("seed %llu\n", (unsigned long long)seed);
	prng = prng_from(seed);
	start_all(port);
	if (ripc_open(&c, &good) || ripc_service_open(good, GOOD, NULL, &good_service)) {
		printf("the good peer: %s\n", ripc_error());
		return 1;
	}
	first = last = round_of();
	for (unsigned i = 1; i < rounds; i++)
		last = round_of();
	printf("descriptors %llu and %llu, memory %llu and %llu KiB, registered %llu and %llu\n",
	       (unsigned long long)first.descriptors, (unsigned long long)last.descriptors,
	       (unsigned long long)first.rss_kb, (unsigned long long)last.rss_kb,
	       (unsigned long long)first.counters.registered_bytes,
	       (unsigned long long)last.counters.registered_bytes);
	CHECK(last.descriptors <= first.descriptors);
	CHECK(last.rss_kb <= first.rss_kb + RSS_SLACK_KB);
	atomic_store(&name.stop, true);
	pthread_join(name.thread, NULL);
	ripc_close(good);
	CHECK(!victim_end(&victim) && !victim_end(&secretive));
	return 0;
}
