/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket nodes in this process, and on the other side a plain socket that says
 * what gateways do not say.
 */
#include "../nodes/fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "gateway/base/lookup.h"
#include "gateway/node/socket/tcp.h"
#include "util/log.h"

extern const struct node_type node_socket;

#define VALUES 300

static struct pool pool;
static char logged[8192];
static pthread_mutex_t logged_lock = PTHREAD_MUTEX_INITIALIZER;

/* From any thread of a node. */
static bool keep_line(enum log_level level, const char *line)
{
	size_t used;

	pthread_mutex_lock(&logged_lock);
	used = strlen(logged);
	snprintf(logged + used, sizeof(logged) - used, "%s\n", line);
	pthread_mutex_unlock(&logged_lock);
	return true;
}

static bool said(const char *text)
{
	bool found;

	pthread_mutex_lock(&logged_lock);
	found = strstr(logged, text);
	pthread_mutex_unlock(&logged_lock);
	return found;
}

static int set_up(void **state)
{
	log_set_sink(keep_line);
	log_set_level(LOG_INFO);
	return pool_init(&pool, 64, VALUES, &memory_heap);
}

static int tear_down(void **state)
{
	return (int)pool_destroy(&pool);
}

static void start(struct made_node *m, const char *text)
{
	logged[0] = '\0';
	make_node(m, &node_socket, text);
	m->node.is_source = m->node.in.present;
	m->node.is_destination = m->node.out.present;
	assert_int_equal(m->node.type->start(&m->node), 0);
}

static void stop(struct made_node *m)
{
	m->node.type->stop(&m->node);
	drop_node(m);
}

/* Reads until `cnt` samples are there, at most `at_once` each time. */
static void read_all(struct made_node *m, struct sample *smps[], unsigned cnt,
		     unsigned at_once)
{
	unsigned n = 0;

	assert_int_equal(sample_alloc_many(&pool, smps, cnt), cnt);
	while (n < cnt) {
		unsigned ask = MIN(cnt - n, at_once), release = ask;
		int ret = node_read(&m->node, smps + n, ask, &release);

		if (ret == -EINTR)
			continue;
		assert_in_range(ret, 1, ask);
		n += (unsigned)ret;
	}
}

/* A plain socket on the loopback interface; its port in *port. */
static int bound(int type, unsigned *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

static int udp(unsigned *port)
{
	return bound(SOCK_DGRAM, port);
}

/* One that is free for that kind of socket: they do not share them. */
static unsigned free_port(int type)
{
	unsigned port;

	close(bound(type, &port));
	return port;
}

static void send_to_port(int fd, unsigned port, const char *text, size_t len)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr = { htonl(INADDR_LOOPBACK) },
				 .sin_port = htons((uint16_t)port) };

	assert_int_equal(sendto(fd, text, len, 0, (struct sockaddr *)&a,
				sizeof(a)), len);
}

static void say(int fd, unsigned port, const char *text)
{
	send_to_port(fd, port, text, strlen(text));
}

/* A node that reads csv from a port of its own; plain socket beside. */
static unsigned start_udp(struct made_node *m, int *fd, const char *more)
{
	unsigned port = free_port(SOCK_DGRAM), own;
	char text[400];

	*fd = udp(&own);
	snprintf(text, sizeof(text),
		 "{ \"format\": \"csv\", \"in\": { \"address\": \"127.0.0.1:%u\"%s }, \"out\": { \"address\": \"127.0.0.1:%u\" } }",
		 port, more, own);
	start(m, text);
	return port;
}

static void *read_one(void *node)
{
	struct made_node *m = node;
	struct sample *s = sample_alloc(&pool);
	long ret = node_read_one(m, s);

	sample_put(s);
	return (void *)ret;
}

static void a_datagram_is_read_in_pieces(void **state)
{
	struct sample *smps[5];
	struct made_node m;
	int fd;
	unsigned port = start_udp(&m, &fd, "");

	say(fd, port, "1,0,nan,1,1\n1,0,nan,2,2\n1,0,nan,3,3\n1,0,nan,4,4\n");
	say(fd, port, "1,0,nan,5,5"); /* without an end */
	read_all(&m, smps, 5, 2);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(smps[i]->sequence, i + 1);
		assert_true(smps[i]->flags & SAMPLE_HAS_RECEIVED);
		assert_true(smps[i]->received.tv_sec > 1000000000);
	}
	sample_put_many(smps, 5);
	close(fd);
	stop(&m);
}

static void nonsense_is_told_and_reading_goes_on(void **state)
{
	struct sample *smps[3];
	struct made_node m;
	int fd;
	unsigned port = start_udp(&m, &fd, "");

	for (unsigned i = 0; i < 100; i++)
		say(fd, port, "nonsense\n");
	send_to_port(fd, port, "\0\xff\0\n\n", 5);
	send_to_port(fd, port, "", 0);
	say(fd, port, "1,0,nan,1,1\nx\n1,0,nan,2,2\n");
	say(fd, port, "1,0,nan,3,3\n");
	read_all(&m, smps, 3, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(smps[i]->sequence, i + 1);
	sample_put_many(smps, 3);
	/* One line at once, the rest when it stops. */
	assert_true(said("1 malformed (the last:"));
	close(fd);
	stop(&m);
	assert_true(said("101 malformed"));
}

static void others_than_the_peer_are_not_heard(void **state)
{
	struct sample *smps[2];
	struct made_node m;
	unsigned own, port;
	int fd, other = udp(&own);

	port = start_udp(&m, &fd, ", \"verify_source\": true");
	say(other, port, "1,0,nan,7,7\n");
	say(fd, port, "1,0,nan,1,1\n");
	say(other, port, "1,0,nan,8,8\n");
	say(fd, port, "1,0,nan,2,2\n");
	read_all(&m, smps, 2, 1);
	assert_int_equal(smps[0]->sequence, 1);
	assert_int_equal(smps[1]->sequence, 2);
	sample_put_many(smps, 2);
	assert_true(said("from another sender"));
	close(fd);
	close(other);
	stop(&m);
}

static void the_kernel_says_when_it_came(void **state)
{
	struct timespec before, between;
	bool good = false;
	struct sample *smps[1];
	struct made_node m;
	int fd;
	unsigned port = start_udp(&m, &fd, ", \"received\": \"kernel\"");

	/* The kernel begins with it a moment after it was asked to. */
	for (unsigned i = 0; i < 5000 && !good; i++) {
		poll(NULL, 0, i ? 1 : 0);
		clock_gettime(CLOCK_REALTIME, &before);
		say(fd, port, "1,0,nan,1,1\n");
		clock_gettime(CLOCK_REALTIME, &between);
		read_all(&m, smps, 1, 1);
		good = timespec_to_ns(smps[0]->received) >=
			       timespec_to_ns(before) &&
		       timespec_to_ns(smps[0]->received) <=
			       timespec_to_ns(between);
		sample_put_many(smps, 1);
	}
	assert_true(good);
	close(fd);
	stop(&m);
}

static void what_is_too_long_is_truncated_and_told(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	static char large[100000];
	struct sample *smps[1];
	struct made_node m;
	char text[200];
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
		(size_t)snprintf(a.sun_path + 1, 100, "busbar-test-%d", getpid()));

	snprintf(text, sizeof(text),
		 "{ \"layer\": \"unix\", \"format\": \"csv\", \"in\": { \"address\": \"@busbar-test-%d\" } }",
		 getpid());
	start(&m, text);
	memset(large, '1', sizeof(large));
	assert_int_equal(sendto(fd, large, sizeof(large), 0,
				(struct sockaddr *)&a, len), sizeof(large));
	assert_true(sendto(fd, "1,0,nan,9,1\n", 12, 0, (struct sockaddr *)&a,
			   len) == 12);
	read_all(&m, smps, 1, 1);
	assert_int_equal(smps[0]->sequence, 9);
	sample_put_many(smps, 1);
	assert_true(said("truncated"));
	close(fd);
	stop(&m);
}

static void fill(struct sample *s, uint64_t sequence, unsigned length)
{
	s->sequence = sequence;
	s->origin = (struct timespec){ 1, 0 };
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	s->length = length;
	for (unsigned i = 0; i < length; i++)
		s->data[i].f = 0.1 * (double)i;
}

static void samples_are_put_into_as_few_datagrams_as_hold_them(void **state)
{
	static const struct {
		const char *more;
		unsigned least, most; /* datagrams */
		ssize_t size_max;
	} cases[] = {
		{ "", 1, 1, 65507 },
		{ ", \"pack\": false", 8, 8, 65507 },
		/* Of 20 bytes each; a format may ask for more room than that. */
		{ ", \"datagram_size\": 200", 2, 7, 200 },
		{ ", \"datagram_size\": 25", 8, 8, 25 },
	};
	struct sample *smps[8];

	assert_int_equal(sample_alloc_many(&pool, smps, 8), 8);
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		struct made_node m;
		unsigned port, release = 8, lines = 0, datagrams = 0;
		int fd = udp(&port);
		char text[300], buf[2000];

		snprintf(text, sizeof(text),
			 "{ \"format\": \"csv\", \"out\": { \"address\": \"127.0.0.1:%u\"%s } }",
			 port, cases[k].more);
		start(&m, text);
		for (unsigned i = 0; i < 8; i++)
			fill(smps[i], i, 1);
		assert_int_equal(node_write(&m.node, smps, 8, &release), 8);
		assert_int_equal(release, 8);
		while (lines < 8) {
			ssize_t n = recv(fd, buf, sizeof(buf), 0);

			datagrams++;
			assert_in_range(n, 1, cases[k].size_max);
			for (ssize_t j = 0; j < n; j++)
				lines += buf[j] == '\n';
		}
		assert_int_equal(lines, 8);
		assert_in_range(datagrams, cases[k].least, cases[k].most);
		assert_true(recv(fd, buf, sizeof(buf), MSG_DONTWAIT) < 0);
		close(fd);
		stop(&m);
	}
	sample_put_many(smps, 8);
}

static void a_sample_that_no_datagram_holds_is_named(void **state)
{
	struct sample *smps[3];
	struct made_node m;
	unsigned port, release = 3;
	int fd = udp(&port);
	char text[300], buf[2000];

	snprintf(text, sizeof(text),
		 "{ \"format\": \"csv\", \"out\": { \"address\": \"127.0.0.1:%u\", \"datagram_size\": 1400 } }",
		 port);
	start(&m, text);
	assert_int_equal(sample_alloc_many(&pool, smps, 3), 3);
	fill(smps[0], 0, 2);
	fill(smps[1], 1, VALUES);
	fill(smps[2], 2, 2);
	assert_int_equal(node_write(&m.node, smps, 3, &release), 2);
	assert_true(said("a datagram has at most 1400"));
	assert_true(said("a sample of 300 values is "));
	assert_true(recv(fd, buf, sizeof(buf), 0) > 0);
	sample_put_many(smps, 3);
	close(fd);
	stop(&m);
}

static void a_blocked_read_is_woken(void **state)
{
	static const char *const nodes[] = {
		"{ \"format\": \"csv\", \"in\": { \"address\": \"127.0.0.1:0\"%s } }",
		"{ \"format\": \"csv\", \"layer\": \"tcp-server\", \"in\": { \"address\": \"127.0.0.1:0\"%s } }",
	};
	static const char *const pollings[] = {
		"", ", \"polling\": \"busy\"", ", \"polling\": \"adaptive\""
	};

	for (size_t i = 0; i < 6; i++) {
		struct made_node m;
		pthread_t t;
		void *ret;
		char text[200];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), nodes[i / 3], pollings[i % 3]);
#pragma GCC diagnostic pop
		start(&m, text);
		assert_int_equal(pthread_create(&t, NULL, read_one, &m), 0);
		m.node.type->interrupt(&m.node);
		assert_int_equal(pthread_join(t, &ret), 0);
		assert_int_equal((long)ret, -EINTR);
		stop(&m);
	}
}

static void a_path_that_polls_misses_nothing(void **state)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;
	int fd, fds[8], count;
	unsigned port = start_udp(&m, &fd, ""), n = 0;

	count = m.node.type->poll_fds(&m.node, fds, 8);
	assert_true(count > 0);
	assert_int_equal(node_read_one(&m, s), 0); /* does not block */
	say(fd, port, "1,0,nan,1,1\n1,0,nan,2,2\n1,0,nan,3,3\n");
	say(fd, port, "1,0,nan,4,4\n");
	while (n < 4) {
		struct pollfd p[8];
		int ret;

		for (int i = 0; i < count; i++)
			p[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
		assert_true(poll(p, (nfds_t)count, 5000) > 0);
		ret = node_read_one(&m, s);
		assert_in_range(ret, 0, 1);
		n += (unsigned)ret;
		if (ret)
			assert_int_equal(s->sequence, n);
	}
	sample_put(s);
	close(fd);
	stop(&m);
}

/* A plain TCP connection to a server node. */
static int start_server_with(struct made_node *m, const char *more,
			     const char *out)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	unsigned port = free_port(SOCK_STREAM);
	char text[300];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(text, sizeof(text),
		 "{ \"layer\": \"tcp-server\", \"format\": \"csv\", %s \"in\": { \"address\": \"127.0.0.1:%u\", \"buffer_size\": 4096 }, \"out\": { \"buffer_size\": 4096%s } }",
		 more, port, out);
	start(m, text);
	a.sin_port = htons((uint16_t)port);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static int start_server(struct made_node *m, const char *more)
{
	return start_server_with(m, more, "");
}

static void a_stream_may_be_cut_anywhere(void **state)
{
	static const char lines[] = "1,0,nan,1,1\nnonsense\n1,0,nan,2,2\n1,0,nan,3,3";
	struct sample *smps[3];
	struct made_node m;
	int fd = start_server(&m, "");

	for (size_t i = 0; i < sizeof(lines) - 1; i++) {
		assert_int_equal(send(fd, lines + i, 1, 0), 1);
		if (i % 7 == 0)
			sched_yield();
	}
	close(fd); /* the last line has no end of its own */
	read_all(&m, smps, 3, 2);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(smps[i]->sequence, i + 1);
	sample_put_many(smps, 3);
	assert_true(said("1 malformed"));
	stop(&m);
}

static void frames_of_several_samples_are_read_in_pieces(void **state)
{
	static const char two[] = "\0\0\0\x18" "1,0,nan,1,1\n1,0,nan,2,2\n";
	static const char one[] = "\0\0\0\x0c" "1,0,nan,3,3\n";
	struct sample *smps[3];
	struct made_node m;
	pthread_t t;
	void *ret;
	char buf[10];
	int fd = start_server(&m, "\"framing\": \"length\",");

	assert_int_equal(send(fd, two, sizeof(two) - 1, 0), sizeof(two) - 1);
	assert_int_equal(send(fd, one, sizeof(one) - 1, 0), sizeof(one) - 1);
	read_all(&m, smps, 3, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(smps[i]->sequence, i + 1);
	sample_put_many(smps, 3);
	/* What cannot be a frame ends the connection. */
	assert_int_equal(send(fd, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
	assert_int_equal(pthread_create(&t, NULL, read_one, &m), 0);
	assert_true(recv(fd, buf, sizeof(buf), 0) <= 0);
	m.node.type->interrupt(&m.node);
	assert_int_equal(pthread_join(t, &ret), 0);
	assert_int_equal((long)ret, -EINTR);
	close(fd);
	stop(&m);
}

static void *interrupt_often(void *node)
{
	struct made_node *m = node;
	const struct timespec pause = { .tv_nsec = 30 * 1000 * 1000 };

	for (unsigned i = 0; i < 5; i++) {
		nanosleep(&pause, NULL);
		m->node.type->interrupt(&m->node);
	}
	return NULL;
}

static void a_peer_that_takes_nothing_does_not_hold_up_the_end(void **state)
{
	struct sample *smps[8];
	struct made_node m;
	uint64_t since_ns;
	pthread_t t;
	int fd = start_server(&m, ""), ret;

	assert_int_equal(sample_alloc_many(&pool, smps, 8), 8);
	for (unsigned i = 0; i < 8; i++)
		fill(smps[i], i, VALUES / 4);
	since_ns = clock_now_ns();
	do { /* until it is connected, and then until it is full */
		unsigned release = 8;

		if (clock_now_ns() - since_ns > NSEC_PER_SEC / 4 &&
		    clock_now_ns() - since_ns < NSEC_PER_SEC * 10) {
			pthread_create(&t, NULL, interrupt_often, &m);
			do {
				release = 8;
				ret = node_write(&m.node, smps, 8, &release);
			} while (ret == 8);
			pthread_join(t, NULL);
			break;
		}
		ret = node_write(&m.node, smps, 8, &release);
	} while (true);
	assert_true(ret < 8);
	assert_true(said("takes too little"));
	sample_put_many(smps, 8);
	close(fd);
	stop(&m);
}

/* Through a node: sending counts all, the peer gets what was not lost. */
static void an_emulated_network_loses_its_share(void **state)
{
	const unsigned count = 4000;
	struct sample *smp = sample_alloc(&pool);
	unsigned port, arrived = 0;
	struct made_node m;
	int fd = udp(&port);
	char text[300], buf[200];

	snprintf(text, sizeof(text),
		 "{ \"format\": \"csv\", \"out\": { \"address\": \"127.0.0.1:%u\", \"netem\": { \"loss\": 25, \"seed\": 11 } } }",
		 port);
	start(&m, text);
	for (unsigned i = 0; i < count; i++) {
		unsigned release = 1;

		fill(smp, i, 1);
		assert_int_equal(node_write(&m.node, &smp, 1, &release), 1);
		while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			arrived++;
	}
	stop(&m);
	/* 3000, and a standard deviation of 27. */
	assert_in_range(arrived, 2900, 3100);
	snprintf(text, sizeof(text), "of 4000 messages %u lost", count - arrived);
	assert_true(said(text));
	sample_put(smp);
	close(fd);
}

static void a_delayed_stream_keeps_its_order(void **state)
{
	struct sample *smp = sample_alloc(&pool);
	unsigned lines = 0, used = 0;
	struct made_node m;
	char buf[4000];
	int fd = start_server_with(&m, "", ", \"netem\": { \"delay\": 2000, \"jitter\": 2000, \"seed\": 2 }");

	for (unsigned i = 0; i < 100;) {
		unsigned release = 1;

		fill(smp, i, 1);
		/* Refused until the node has accepted the connection. */
		i += node_write(&m.node, &smp, 1, &release) == 1;
	}
	while (lines < 100) {
		ssize_t n = recv(fd, buf + used, sizeof(buf) - used, 0);

		assert_true(n > 0);
		used += (unsigned)n;
		lines = 0;
		for (unsigned i = 0; i < used; i++)
			lines += buf[i] == '\n';
	}
	buf[used] = '\0';
	for (char *line = buf; *line; line = strchr(line, '\n') + 1) {
		char expected[60];
		int n = snprintf(expected, sizeof(expected),
				 "1,000000000,nan,%u,0.0\n", lines - 100);

		assert_memory_equal(line, expected, n);
		lines++;
	}
	assert_int_equal(lines, 200);
	sample_put(smp);
	close(fd);
	stop(&m);
}

static void a_port_in_use_is_named(void **state)
{
	struct made_node m;
	unsigned port;
	int fd = udp(&port);
	char text[200];

	snprintf(text, sizeof(text),
		 "{ \"format\": \"csv\", \"in\": { \"address\": \"127.0.0.1:%u\" } }",
		 port);
	logged[0] = '\0';
	make_node(&m, &node_socket, text);
	assert_int_equal(m.node.type->start(&m.node), -EADDRINUSE);
	assert_true(said("cannot receive at 127.0.0.1:"));
	assert_true(said("in use"));
	drop_node(&m);
	close(fd);
}

/* Reads what a node sends, as fast as it comes or a little of it now and then. */
struct taker {
	int fd;
	bool slowly;
	atomic_bool end;
	unsigned lines;
	pthread_t thread;
};

static void *take(void *arg)
{
	struct taker *t = arg;
	char buf[4096];

	while (!atomic_load(&t->end)) {
		struct pollfd p = { .fd = t->fd, .events = POLLIN };
		ssize_t n;

		if (t->slowly)
			poll(NULL, 0, 5);
		else if (poll(&p, 1, 20) <= 0)
			continue;
		n = recv(t->fd, buf, t->slowly ? 200 : sizeof(buf), MSG_DONTWAIT);
		if (!n || (n < 0 && errno != EAGAIN))
			break;
		for (ssize_t i = 0; i < n; i++)
			t->lines += buf[i] == '\n';
	}
	return NULL;
}

/* A connection that keeps little back in the kernel. */
static int connect_narrow(unsigned port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr = { htonl(INADDR_LOOPBACK) },
				 .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = 4096;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size,
				    sizeof(size)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void wait_for_places(struct made_node *m, unsigned count)
{
	struct socket_node *s = m->node.private_data;
	uint64_t end_ns = clock_now_ns() + 10 * NSEC_PER_SEC;

	while (atomic_load(&s->tcp->table.count) != count &&
	       clock_now_ns() < end_ns)
		poll(NULL, 0, 1);
	assert_int_equal(atomic_load(&s->tcp->table.count), count);
}

static void a_slow_client_is_parted_with_and_a_good_one_misses_nothing(void **state)
{
	struct taker good = { .slowly = false }, slow = { .slowly = true };
	struct sample *smp = sample_alloc(&pool);
	unsigned port = free_port(SOCK_STREAM), written = 0;
	uint64_t end_ns, waited_ns = 0;
	struct made_node m;
	char text[300];

	snprintf(text, sizeof(text),
		 "{ \"layer\": \"tcp-server\", \"format\": \"csv\", \"in\": { \"address\": \"127.0.0.1:%u\" }, \"out\": { \"buffer_size\": 16384, \"slow_timeout\": 200 } }",
		 port);
	start(&m, text);
	good.fd = connect_narrow(port);
	slow.fd = connect_narrow(port);
	wait_for_places(&m, 2);
	pthread_create(&good.thread, NULL, take, &good);
	pthread_create(&slow.thread, NULL, take, &slow);
	fill(smp, 1, VALUES);
	end_ns = clock_now_ns() + 20 * NSEC_PER_SEC;
	while (!said("(out.slow_timeout)") && clock_now_ns() < end_ns) {
		uint64_t before_ns = clock_now_ns();
		unsigned release = 1;

		assert_int_equal(node_write(&m.node, &smp, 1, &release), 1);
		written++;
		waited_ns += clock_now_ns() - before_ns;
		poll(NULL, 0, 1);
	}
	assert_true(said("is gone: it takes too little for 200 ms"));
	assert_true(said("dropped because the peer takes too little"));
	/* The whole of what one may cost others is 100 ms; a busy machine adds
	 * what it likes, but no two seconds for each message. */
	assert_true(waited_ns < 2 * NSEC_PER_SEC);
	atomic_store(&slow.end, true);
	pthread_join(slow.thread, NULL);
	stop(&m);
	atomic_store(&good.end, true);
	pthread_join(good.thread, NULL);
	assert_int_equal(good.lines, written);
	assert_true(slow.lines < written);
	close(good.fd);
	close(slow.fd);
	sample_put(smp);
}

static void who_takes_single_bytes_does_not_hold_up_each_message(void **state)
{
	struct sample *smp = sample_alloc(&pool);
	struct taker slow = { .slowly = true };
	unsigned port, stalls = 0;
	int listener = bound(SOCK_STREAM, &port), size = 4096;
	struct made_node m;
	uint64_t end_ns;
	char text[300];

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	assert_int_equal(listen(listener, 1), 0);
	snprintf(text, sizeof(text),
		 "{ \"layer\": \"tcp-client\", \"format\": \"csv\", \"out\": { \"address\": \"127.0.0.1:%u\", \"buffer_size\": 65536, \"slow_timeout\": 30 } }",
		 port);
	start(&m, text);
	slow.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(slow.fd >= 0);
	fill(smp, 1, VALUES);
	/* First the queue is full, without a reader. */
	end_ns = clock_now_ns() + 20 * NSEC_PER_SEC;
	while (!said("takes too little") && clock_now_ns() < end_ns) {
		unsigned release = 1;

		node_write(&m.node, &smp, 1, &release);
	}
	pthread_create(&slow.thread, NULL, take, &slow);
	end_ns = clock_now_ns() + NSEC_PER_SEC / 2;
	while (clock_now_ns() < end_ns) {
		uint64_t before_ns = clock_now_ns();
		unsigned release = 1;

		node_write(&m.node, &smp, 1, &release);
		stalls += clock_now_ns() - before_ns > 25 * MS;
		poll(NULL, 0, 1);
	}
	/* Each would be one if it were waited for whenever it takes something. */
	assert_in_range(stalls, 0, 5);
	atomic_store(&slow.end, true);
	pthread_join(slow.thread, NULL);
	close(slow.fd);
	close(listener);
	sample_put(smp);
	stop(&m);
}

/* A name with the address of nobody and that of the server. */
static int two_addresses(const char *host, const char *service, const struct addrinfo *hints,
			 struct addrinfo **out)
{
	int ret = getaddrinfo("127.0.0.2", service, hints, out);

	return ret ? ret : getaddrinfo("127.0.0.1", service, hints, &(*out)->ai_next);
}

static void each_address_of_a_name_is_tried(void **state)
{
	unsigned port;
	int listener = bound(SOCK_STREAM, &port);
	struct pollfd called = { .fd = listener, .events = POLLIN };
	struct made_node m;
	char text[300];

	assert_int_equal(listen(listener, 1), 0);
	snprintf(text, sizeof(text),
		 "{ \"layer\": \"tcp-client\", \"format\": \"csv\", \"out\": { \"address\": \"two.example:%u\" } }",
		 port);
	lookup_resolver = two_addresses;
	start(&m, text);
	assert_int_equal(poll(&called, 1, 10000), 1);
	assert_false(said("cannot reach"));
	stop(&m);
	lookup_resolver = getaddrinfo;
	close(listener);
}

/* Waits until the node says that it is in the state; false: it does not. */
static bool reaches(struct made_node *m, enum node_state state)
{
	uint64_t end_ns = clock_now_ns() + 10 * NSEC_PER_SEC;

	while (node_state(&m->node) != state && clock_now_ns() < end_ns)
		poll(NULL, 0, 5);
	return node_state(&m->node) == state;
}

/* Fills the listener's queue, so that the next call waits in the kernel. */
static unsigned fill_queue(unsigned port, int fds[], unsigned max)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned n = 0;

	for (; n < max; n++) {
		struct pollfd p = { .events = POLLOUT };

		fds[n] = p.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		connect(fds[n], (struct sockaddr *)&to, sizeof(to));
		if (!poll(&p, 1, 200))
			return n + 1;
	}
	fail_msg("the listener takes everybody");
	return n;
}

static void the_state_is_told_of_a_peer_that_is_slow_to_accept(void **state)
{
	unsigned port, count;
	int listener = bound(SOCK_STREAM, &port), fds[32];
	struct made_node m;
	char text[300];

	assert_int_equal(listen(listener, 0), 0);
	count = fill_queue(port, fds, 32);
	snprintf(text, sizeof(text),
		 "{ \"layer\": \"tcp-client\", \"format\": \"csv\", \"out\": { \"address\": \"127.0.0.1:%u\" } }",
		 port);
	start(&m, text);
	node_set_state(&m.node, NODE_STARTED);
	assert_true(reaches(&m, NODE_PENDING_CONNECT));
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
	/* All but the last one were in the queue. The kernel repeats the node's call after a second. */
	for (unsigned i = 0; i + 1 < count; i++)
		close(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	assert_true(reaches(&m, NODE_CONNECTED));
	stop(&m);
	close(listener);
}

static void who_takes_slowly_does_not_hold_up_the_end(void **state)
{
	struct taker slow = { .slowly = true };
	struct sample *smp = sample_alloc(&pool);
	unsigned port = free_port(SOCK_STREAM);
	struct made_node m;
	uint64_t since_ns;
	char text[300];

	snprintf(text, sizeof(text),
		 "{ \"layer\": \"tcp-server\", \"format\": \"csv\", \"in\": { \"address\": \"127.0.0.1:%u\" }, \"out\": { \"buffer_size\": 1048576, \"full\": \"drop\" } }",
		 port);
	start(&m, text);
	slow.fd = connect_narrow(port);
	wait_for_places(&m, 1);
	fill(smp, 1, VALUES);
	since_ns = clock_now_ns();
	while (!said("takes too little") &&
	       clock_now_ns() - since_ns < 20 * NSEC_PER_SEC) {
		unsigned release = 1;

		node_write(&m.node, &smp, 1, &release);
	}
	pthread_create(&slow.thread, NULL, take, &slow);
	since_ns = clock_now_ns();
	stop(&m);
	assert_true(clock_now_ns() - since_ns < 10 * NSEC_PER_SEC);
	assert_true(said("did not take them within a second of the end"));
	atomic_store(&slow.end, true);
	pthread_join(slow.thread, NULL);
	close(slow.fd);
	sample_put(smp);
}

static bool is_closed(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN;
}

static void who_says_nothing_gives_its_place_to_another(void **state)
{
	struct sample *smps[1];
	struct made_node m;
	unsigned port = free_port(SOCK_STREAM);
	uint64_t since_ns;
	int known, unknown[2], late = -1;
	char text[300];

	snprintf(text, sizeof(text),
		 "{ \"layer\": \"tcp-server\", \"format\": \"csv\", \"in\": { \"address\": \"127.0.0.1:%u\", \"max_connections\": 3, \"idle_timeout\": 2000 } }",
		 port);
	start(&m, text);
	known = connect_narrow(port);
	since_ns = clock_now_ns();
	unknown[0] = connect_narrow(port);
	unknown[1] = connect_narrow(port);
	assert_int_equal(send(known, "1,0,nan,1,1\n", 12, 0), 12);
	read_all(&m, smps, 1, 1);
	sample_put_many(smps, 1);
	wait_for_places(&m, 3);
	/* Half a sample is none. */
	assert_int_equal(send(unknown[0], "1,0,nan,", 8, 0), 8);
	while (!said("has to give its place") &&
	       clock_now_ns() - since_ns < 20 * NSEC_PER_SEC) {
		if (late >= 0)
			close(late);
		late = connect_narrow(port);
		poll(NULL, 0, 100);
	}
	/* Not before its time. */
	assert_true(clock_now_ns() - since_ns >= 2000 * MS);
	assert_true(said("is turned away"));
	assert_true(said("no sample has ever come from it"));
	assert_int_equal(send(late, "1,0,nan,2,2\n", 12, 0), 12);
	read_all(&m, smps, 1, 1);
	assert_int_equal(smps[0]->sequence, 2);
	sample_put_many(smps, 1);
	assert_true(is_closed(unknown[0]) || is_closed(unknown[1]));
	assert_false(is_closed(known));
	close(known);
	close(late);
	close(unknown[0]);
	close(unknown[1]);
	stop(&m);
}

static struct format_type counting;
static const struct format_type *counted;
static size_t bytes_scanned;

static int count_scan(struct format *f, const char *buf, size_t len, size_t *used,
		      struct sample *smps[], unsigned cnt)
{
	bytes_scanned += len;
	return counted->scan(f, buf, len, used, smps, cnt);
}

static void a_long_sample_in_small_pieces_is_not_scanned_with_each(void **state)
{
	static const struct {
		const char *format, *begin, *piece, *end;
	} cases[] = {
		{ "json", "{\"note\": [{}", ", {\"a\": \"}\\\"}\"}", "], \"data\": [1.0]}\n" },
		{ "csv", "# a long remark", " that is read on", "\n1,0,nan,7,1\n" },
	};
	struct sample *smps[1];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t len = strlen(cases[i].piece), sent = 0;
		unsigned port = free_port(SOCK_STREAM), release = 1;
		struct tcp_connection *c;
		struct made_node m;
		char text[300];
		int fd, fds[8], got = 0;

		snprintf(text, sizeof(text),
			 "{ \"layer\": \"tcp-server\", \"format\": \"%s\", \"in\": { \"address\": \"127.0.0.1:%u\", \"max_connections\": 1 } }",
			 cases[i].format, port);
		start(&m, text);
		c = ((struct socket_node *)m.node.private_data)->tcp->places;
		counting = *(counted = c->reader->type);
		counting.scan = count_scan;
		c->reader->type = &counting;
		bytes_scanned = 0;
		fd = connect_narrow(port);
		wait_for_places(&m, 1);
		/* As a path that polls does: reading never sleeps. */
		assert_true(m.node.type->poll_fds(&m.node, fds, 8) > 0);
		assert_int_equal(sample_alloc_many(&pool, smps, 1), 1);
		assert_true(send(fd, cases[i].begin, strlen(cases[i].begin), 0) > 0);
		for (; sent < 2000 * len; sent += len) {
			assert_int_equal(send(fd, cases[i].piece, len, 0), len);
			assert_int_equal(node_read(&m.node, smps, 1, &release), 0);
		}
		assert_true(send(fd, cases[i].end, strlen(cases[i].end), 0) > 0);
		for (unsigned k = 0; k < 10000 && !got; k++) {
			got = node_read(&m.node, smps, 1, &release);
			poll(NULL, 0, !got);
		}
		assert_int_equal(got, 1);
		assert_int_equal(smps[0]->length, 1);
		/* At its beginning and at its end; not a thousand times. */
		assert_in_range(bytes_scanned, sent, 3 * sent);
		sample_put_many(smps, 1);
		close(fd);
		stop(&m);
	}
}

static void each_sender_of_datagrams_has_a_format_of_its_own(void **state)
{
	struct sample *smps[3];
	struct made_node m;
	unsigned own[2], port = free_port(SOCK_DGRAM);
	int fds[2] = { udp(&own[0]), udp(&own[1]) };
	char text[300];

	snprintf(text, sizeof(text),
		 "{ \"format\": { \"type\": \"csv\", \"skip_first_line\": true }, \"in\": { \"address\": \"127.0.0.1:%u\" } }",
		 port);
	start(&m, text);
	/* Of each sender the first line is passed over. */
	say(fds[0], port, "1,0,nan,90,0\n1,0,nan,1,1\n");
	say(fds[1], port, "1,0,nan,91,0\n1,0,nan,2,2\n");
	say(fds[0], port, "1,0,nan,3,3\n");
	read_all(&m, smps, 3, 2);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(smps[i]->sequence, i + 1);
	sample_put_many(smps, 3);
	/* Senders without a valid sample do not displace others. */
	for (unsigned i = 0; i < 100; i++) {
		unsigned other;
		int fd = udp(&other);

		say(fd, port, "nothing\n");
		close(fd);
	}
	say(fds[0], port, "1,0,nan,4,4\n");
	say(fds[1], port, "1,0,nan,5,5\n");
	read_all(&m, smps, 2, 1);
	assert_int_equal(smps[0]->sequence, 4);
	assert_int_equal(smps[1]->sequence, 5);
	sample_put_many(smps, 2);
	assert_true(said("more than 64 senders"));
	close(fds[0]);
	close(fds[1]);
	stop(&m);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void a_regular_file_gives_its_place_to_the_socket(void **state)
{
	char folder[] = "/tmp/busbar-socket-XXXXXX", path[100], aside[110],
	     text[300], kept[20] = "";
	struct made_node m;
	struct stat st;
	FILE *f;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(aside, sizeof(aside), "%s.stale", path);
	snprintf(text, sizeof(text),
		 "{ \"layer\": \"unix\", \"format\": \"csv\", \"in\": { \"address\": \"%s\" } }",
		 path);
	write_file(path, "");
	start(&m, text);
	assert_true(said("the empty regular file"));
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	stop(&m);
	/* What holds something is not destroyed. */
	write_file(path, "precious");
	start(&m, text);
	assert_true(said("a regular file of 8 bytes"));
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	stop(&m);
	f = fopen(aside, "re");
	assert_non_null(f);
	assert_non_null(fgets(kept, sizeof(kept), f));
	fclose(f);
	assert_string_equal(kept, "precious");
	/* A link is not followed and nothing else is touched. */
	assert_int_equal(symlink(aside, path), 0);
	logged[0] = '\0';
	make_node(&m, &node_socket, text);
	assert_int_equal(m.node.type->start(&m.node), -EEXIST);
	assert_true(said("is neither a socket nor a regular file"));
	drop_node(&m);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(aside), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_datagram_is_read_in_pieces),
		cmocka_unit_test(nonsense_is_told_and_reading_goes_on),
		cmocka_unit_test(others_than_the_peer_are_not_heard),
		cmocka_unit_test(the_kernel_says_when_it_came),
		cmocka_unit_test(what_is_too_long_is_truncated_and_told),
		cmocka_unit_test(samples_are_put_into_as_few_datagrams_as_hold_them),
		cmocka_unit_test(a_sample_that_no_datagram_holds_is_named),
		cmocka_unit_test(a_blocked_read_is_woken),
		cmocka_unit_test(a_path_that_polls_misses_nothing),
		cmocka_unit_test(a_stream_may_be_cut_anywhere),
		cmocka_unit_test(frames_of_several_samples_are_read_in_pieces),
		cmocka_unit_test(a_peer_that_takes_nothing_does_not_hold_up_the_end),
		cmocka_unit_test(a_slow_client_is_parted_with_and_a_good_one_misses_nothing),
		cmocka_unit_test(who_takes_single_bytes_does_not_hold_up_each_message),
		cmocka_unit_test(who_takes_slowly_does_not_hold_up_the_end),
		cmocka_unit_test(who_says_nothing_gives_its_place_to_another),
		cmocka_unit_test(a_long_sample_in_small_pieces_is_not_scanned_with_each),
		cmocka_unit_test(each_sender_of_datagrams_has_a_format_of_its_own),
		cmocka_unit_test(a_regular_file_gives_its_place_to_the_socket),
		cmocka_unit_test(an_emulated_network_loses_its_share),
		cmocka_unit_test(a_delayed_stream_keeps_its_order),
		cmocka_unit_test(a_port_in_use_is_named),
		cmocka_unit_test(each_address_of_a_name_is_tried),
		cmocka_unit_test(the_state_is_told_of_a_peer_that_is_slow_to_accept),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
