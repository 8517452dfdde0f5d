/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzing of the socket node: random datagrams and streams, cut anywhere, to nodes
 * in this process. Whatever comes, reading goes on: after each batch a good sample
 * has to arrive. SECONDS and SEED in the environment make it longer and another one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/config/config.h"
#include "gateway/base/memory.h"
#include "gateway/plugin/node.h"
#include "util/clock.h"
#include "util/log.h"

extern const struct node_type node_socket;

#define MARK 4242424242
#define AT_ONCE 4

struct target {
	struct config *config;
	struct node node;
	bool stream, framed;
	uint16_t port;
	int fd;           /* of a stream: the connection there is */
	uint64_t samples;
};

static struct pool pool;
static uint64_t random_state, first_seed, good;

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "failed: %s; SEED=%ju\n", what, (uintmax_t)first_seed);
	exit(1);
}

static uint64_t random_below(uint64_t n)
{
	uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31)) % n;
}

static uint16_t free_port(int type)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	require(fd >= 0 && !bind(fd, (struct sockaddr *)&a, len) &&
			!getsockname(fd, (struct sockaddr *)&a, &len),
		"a port");
	close(fd);
	return ntohs(a.sin_port);
}

static struct sockaddr_in address_of(const struct target *t)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr = { htonl(INADDR_LOOPBACK) },
				     .sin_port = htons(t->port) };
}

static void start(struct target *t, const char *format, bool stream, bool framed)
{
	const struct node_type *type = &node_socket;
	json_t *cfg, *in;
	char text[400];

	memset(t, 0, sizeof(*t));
	t->stream = stream;
	t->framed = framed;
	t->fd = -1;
	t->port = free_port(stream ? SOCK_STREAM : SOCK_DGRAM);
	snprintf(text, sizeof(text),
		 "{ \"layer\": \"%s\", \"format\": \"%s\", \"framing\": \"%s\", \"in\": { \"address\": \"127.0.0.1:%u\", \"buffer_size\": %u } }",
		 stream ? "tcp-server" : "udp", format,
		 framed ? "length" : "auto", t->port, stream ? 4096 : 1 << 20);
	t->node.type = type;
	t->node.name = (char *)"fuzz";
	t->node.private_data = calloc(1, type->size);
	t->node.is_source = true;
	require(!config_load_text("fuzz", text, strlen(text), &t->config), "text");
	cfg = config_root(t->config);
	in = json_object_get(cfg, "in");
	t->node.in.cfg = in;
	t->node.in.present = t->node.in.enabled = true;
	require(!config_unpack_part(t->config, cfg, type->keys, type->key_count,
				    t->node.private_data) &&
			!config_unpack_part(t->config, in, type->in_keys,
					    type->in_key_count,
					    t->node.private_data) &&
			!config_unpack_part(t->config, NULL, type->out_keys,
					    type->out_key_count,
					    t->node.private_data) &&
			!type->parse(&t->node, t->config, cfg) &&
			!type->check(&t->node, t->config, cfg) &&
			!type->start(&t->node),
		"a node");
	/* As a path that polls does: reading never sleeps. */
	require(type->poll_fds(&t->node, (int[8]){ 0 }, 8) > 0, "descriptors");
}

static void stop(struct target *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->node.type->stop(&t->node);
	t->node.type->destroy(&t->node);
	free(t->node.private_data);
	config_destroy(t->config);
}

/* Reads what is there; true when the marked sample is among it. */
static bool drain(struct target *t)
{
	struct sample *smps[AT_ONCE];
	bool marked = false;
	int n;

	require(sample_alloc_many(&pool, smps, AT_ONCE) == AT_ONCE, "samples");
	do {
		unsigned cnt = 1 + (unsigned)random_below(AT_ONCE);
		unsigned release = cnt;

		for (unsigned i = 0; i < cnt; i++) {
			smps[i]->flags = 0;
			smps[i]->length = 0;
			smps[i]->signals = NULL;
		}
		n = node_read(&t->node, smps, cnt, &release);
		require(n <= (int)cnt && n != -ENODATA, "reading goes on");
		for (int i = 0; i < n; i++) {
			require(smps[i]->length <= smps[i]->capacity, "room");
			require(smps[i]->flags & SAMPLE_HAS_RECEIVED, "a stamp");
			marked |= smps[i]->flags & SAMPLE_HAS_SEQUENCE &&
				  smps[i]->sequence == MARK;
		}
		t->samples += n > 0 ? (unsigned)n : 0;
	} while (n > 0);
	sample_put_many(smps, AT_ONCE);
	return marked;
}

static size_t make_junk(const struct target *t, char *buf, size_t size)
{
	static const char *const pieces[] = {
		"1637846259,201578969,0.1,5,1.5,2,3\n", "nan,nan,nan,nan\n",
		"1.5+2(7)\t1\t2\n", "#\n", ",,,,,,\n", "\n\n\n", "1e999(",
		"\0\0\0\x10", "\xff\xff\xff\xff", "\0\0\0\0", "\0\0\x0f\xff", "18446744073709551616",
	};
	size_t len = 0;

	for (uint64_t n = 1 + random_below(12); n > 0; n--) {
		const char *piece = pieces[random_below(ARRAY_SIZE(pieces))];
		size_t piece_len = strlen(piece) ? strlen(piece) : 4;

		if (random_below(3) == 0) {
			for (piece_len = random_below(40); piece_len > 0; piece_len--)
				if (len < size)
					buf[len++] = (char)random_below(256);
			continue;
		}
		if (len + piece_len > size)
			break;
		memcpy(buf + len, piece, piece_len);
		len += piece_len;
	}
	/* A bit somewhere. */
	if (len && random_below(2))
		buf[random_below(len)] ^= (char)(1 << random_below(8));
	/* Now and then much of it, without an end. */
	if (t->stream && random_below(20) == 0)
		for (; len < size; len++)
			buf[len] = '1';
	return len;
}

static void connect_stream(struct target *t)
{
	struct sockaddr_in a = address_of(t);

	if (t->fd >= 0)
		close(t->fd);
	t->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	require(!connect(t->fd, (struct sockaddr *)&a, sizeof(a)), "a connection");
}

static void send_junk(struct target *t, int udp)
{
	struct sockaddr_in a = address_of(t);
	char buf[9000];
	size_t len = make_junk(t, buf, t->stream ? sizeof(buf) : 1400), done = 0;

	if (!t->stream) {
		sendto(udp, buf, len, 0, (struct sockaddr *)&a, sizeof(a));
		return;
	}
	if (t->fd < 0 || random_below(50) == 0)
		connect_stream(t);
	while (done < len) {
		size_t piece = 1 + random_below(len - done);
		ssize_t n = send(t->fd, buf + done, piece,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN) {
			drain(t);
			continue;
		}
		if (n < 0) {
			connect_stream(t); /* the node has had enough */
			return;
		}
		done += (size_t)n;
		if (random_below(8) == 0)
			drain(t);
	}
}

/* A good sample, over a connection of its own, and it arrives. */
static void check_alive(struct target *t, int udp)
{
	struct sockaddr_in a = address_of(t);
	uint64_t end_ns = clock_monotonic_ns_slow() + 10 * NSEC_PER_SEC;
	char buf[100] = "\0\0\0";
	int len = snprintf(buf + 4, 96, "1,0,nan,%ju,1\n", (uintmax_t)MARK);
	bool skip = t->stream && t->framed;

	buf[3] = (char)len;
	if (t->stream) {
		connect_stream(t);
		require(send(t->fd, buf + (skip ? 0 : 4),
			     (size_t)len + (skip ? 4 : 0), MSG_NOSIGNAL) > 0, "send");
	} else {
		require(sendto(udp, buf + 4, (size_t)len, 0,
			       (struct sockaddr *)&a, sizeof(a)) > 0, "send");
	}
	while (!drain(t)) {
		require(clock_monotonic_ns_slow() < end_ns,
			"a good sample arrives after bad ones");
		poll(NULL, 0, 1);
	}
	good++;
}

static bool quiet(enum log_level level, const char *line)
{
	return true;
}

int main(void)
{
	const char *seconds = getenv("SECONDS"), *seed = getenv("SEED");
	struct target targets[3];
	uint64_t stop_ns, batches = 0, samples = 0;
	int udp;

	clock_init();
	log_set_sink(quiet);
	random_state = seed ? strtoull(seed, NULL, 0) : 1;
	first_seed = random_state;
	udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	require(!pool_init(&pool, AT_ONCE, 16, &memory_heap), "memory");
	start(&targets[0], "csv", false, false);
	start(&targets[1], "csv", true, false);
	start(&targets[2], "csv", true, true);
	stop_ns = clock_monotonic_ns_slow() +
		  (seconds ? strtoull(seconds, NULL, 0) : 1) * NSEC_PER_SEC;
	while (clock_monotonic_ns_slow() < stop_ns) {
		struct target *t = &targets[random_below(ARRAY_SIZE(targets))];

		for (uint64_t n = random_below(30); n > 0; n--)
			send_junk(t, udp);
		drain(t);
		check_alive(t, udp);
		batches++;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(targets); i++) {
		samples += targets[i].samples;
		stop(&targets[i]);
	}
	close(udp);
	pool_destroy(&pool);
	printf("%ju batches, %ju samples understood\n", (uintmax_t)batches,
	       (uintmax_t)samples);
	return good == batches ? 0 : 1;
}
