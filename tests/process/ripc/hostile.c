/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostile [ROUNDS [SEED]]: a peer that does not keep to the rules, against an instance in
 * another process. After each misdeed a good peer is still served, nothing was written but
 * where a return buffer was offered, and the counters say what was seen. The rounds after the
 * first must not cost memory or descriptors.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostile.h"

enum { RSS_SLACK_KB = 16384 };

struct victim victim, secretive;
struct evil_target target, secret_target;
static struct ripc *good;
static struct ripc_service *good_service;
struct prng prng;
uint32_t next_service = VICTIM_OTHERS;
_Atomic uint64_t our_instance;
static const char *now_at;

void noise(uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)prng_next(&prng);
}

/* ---- the resolver's side: says where our services are ---- */

static struct {
	int fd;
	pthread_t thread;
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
		tell(&from, question.nonce, question.id, atomic_load(&our_instance));
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

struct victim_answer order(enum victim_order what, uint32_t argument)
{
	return victim_tell(&victim, what, argument);
}

void is_served(bool is_long)
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

uint64_t bad_packets(void)
{
	return order(ORDER_TELL, 0).counters.bad_packets;
}

uint64_t draw(void)
{
	return prng_next(&prng) | 1;
}

void join(struct evil *e)
{
	evil_hello(e, &target, draw());
	atomic_store(&our_instance, e->instance);
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
	{ "a service closed while one is fetched for it", closed_while_fetched },
	{ "credits", credits },
	{ "more than allowed", more_than_allowed },
	{ "more than allowed, in parts", more_than_allowed_in_parts },
	{ "requests", requests },
	{ "without the secret", without_the_secret },
	{ "recorded requests", recorded_requests },
	{ "silent connections", silent_connections },
	{ "a connection that replaces another", replaced_connection },
	{ "replies nobody asked for", replies_nobody_asked_for },
};

static struct victim_answer round_of(void)
{
	struct victim_answer a;
	uint64_t until;

	next_service = VICTIM_OTHERS;
	for (unsigned i = 0; i < sizeof(misdeeds) / sizeof(misdeeds[0]); i++) {
		now_at = misdeeds[i].what;
		printf("%s\n", now_at);
		fflush(stdout);
		misdeeds[i].run();
		all_is_well();
	}
	/* Only the good peer's connection is left. */
	until = evil_now_ms() + 2 * SOON_MS;
	do {
		evil_nap(10);
		a = order(ORDER_TELL, 0);
	} while (a.counters.connections != 1 && evil_now_ms() < until);
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

	CHECK(write(fd, VICTIM_SECRET, strlen(VICTIM_SECRET)) == (ssize_t)strlen(VICTIM_SECRET));
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
	uint16_t port = (uint16_t)(20000 + getpid() % 12000);
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
	/* Those of connections that are just ending. */
	for (unsigned i = 0; i < 200 && last.descriptors > first.descriptors; i++) {
		evil_nap(10);
		last = order(ORDER_TELL, 0);
	}
	printf("descriptors %llu and %llu, memory %llu and %llu KiB, registered %llu and %llu\n",
	       (unsigned long long)first.descriptors, (unsigned long long)last.descriptors,
	       (unsigned long long)first.rss_kb, (unsigned long long)last.rss_kb,
	       (unsigned long long)first.counters.registered_bytes,
	       (unsigned long long)last.counters.registered_bytes);
	CHECK(last.descriptors <= first.descriptors);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* keep what was freed */
	CHECK(last.rss_kb <= first.rss_kb + RSS_SLACK_KB);
#endif
	atomic_store(&name.stop, true);
	pthread_join(name.thread, NULL);
	ripc_close(good);
	CHECK(!victim_end(&victim) && !victim_end(&secretive));
	return 0;
}
