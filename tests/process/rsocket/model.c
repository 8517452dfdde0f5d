/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random operations on both ends of a connection, compared with a model of two counters:
 * the bytes that were sent are received, whatever the sizes, flags and buffer sizes.
 *
 *   rsocket_model the_model_holds [SEED]: a failing seed is printed.
 */
#include "rs_help.h"

#include <sys/uio.h>

#define ROUNDS 6
#define STEPS 3000
#define MOST 40000

static uint64_t seed, state;
static const char *seed_given;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

/* Mostly small; sometimes more than all buffers hold. */
static size_t draw_size(void)
{
	switch (draw(4)) {
	case 0:
		return 1 + draw(8);
	case 1:
		return 1 + draw(200);
	case 2:
		return 1 + draw(5000);
	default:
		return 1 + draw(MOST);
	}
}

#define HOLDS(what)                                                       \
	do {                                                              \
		if (!(what)) {                                            \
			fprintf(stderr, "seed %llu\n",                    \
				(unsigned long long)seed);                \
			CHECK(what);                                      \
		}                                                         \
	} while (0)

/* One direction of the connection. */
struct flow {
	int from, to;
	uint64_t in, out;
	bool ended;
};

static uint8_t buf[MOST];

static void step_in(struct flow *f)
{
	size_t len = draw_size(), cut;
	ssize_t n;

	for (size_t i = 0; i < len; i++)
		buf[i] = rs_byte(f->in + i);
	cut = draw((uint32_t)len + 1);
	if (draw(3)) {
		n = rsend(f->from, buf, len, MSG_DONTWAIT);
	} else {
		struct iovec iov[2] = { { buf, cut }, { buf + cut, len - cut } };
		struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

		n = rsendmsg(f->from, &msg, MSG_DONTWAIT);
	}
	if (n < 0)
		HOLDS(errno == EAGAIN);
	else
		f->in += (uint64_t)n;
	HOLDS(n != 0 && n <= (ssize_t)len);
}

static void step_out(struct flow *f)
{
	size_t len = draw_size();
	bool peek = !draw(4);
	ssize_t n = rrecv(f->to, buf, len, MSG_DONTWAIT | (peek ? MSG_PEEK : 0));

	if (n < 0) {
		HOLDS(errno == EAGAIN);
		return;
	}
	HOLDS((uint64_t)n <= f->in - f->out && (n > 0 || f->ended));
	for (ssize_t i = 0; i < n; i++)
		HOLDS(buf[i] == rs_byte(f->out + (uint64_t)i));
	if (!peek)
		f->out += (uint64_t)n;
}

static void finish(struct flow *f)
{
	HOLDS(rshutdown(f->from, SHUT_WR) == 0);
	while (f->out < f->in) {
		ssize_t n = rrecv(f->to, buf, sizeof(buf), 0);

		HOLDS(n > 0);
		for (ssize_t i = 0; i < n; i++)
			HOLDS(buf[i] == rs_byte(f->out++));
	}
	HOLDS(rrecv(f->to, buf, sizeof(buf), 0) == 0);
}

static void sizes(int fd)
{
	rs_set_int(fd, SOL_SOCKET, SO_RCVBUF, 4096 << draw(8));
	rs_set_int(fd, SOL_SOCKET, SO_SNDBUF, 4096 << draw(8));
	rs_set_int(fd, SOL_RDMA, RDMA_RQSIZE, 2 << draw(8));
	rs_set_int(fd, SOL_RDMA, RDMA_SQSIZE, 8 << draw(5));
	rs_set_int(fd, SOL_RDMA, RDMA_INLINE, draw(2) ? 0 : 1 << draw(10));
}

static void run_round(void)
{
	struct flow flow[2] = { 0 };
	struct rs_pair p;

	rs_pair_make(&p, sizes);
	flow[0].from = flow[1].to = p.caller;
	flow[1].from = flow[0].to = p.callee;
	for (int i = 0; i < STEPS; i++) {
		struct flow *f = &flow[draw(2)];

		if (draw(2))
			step_in(f);
		else
			step_out(f);
	}
	for (int i = 0; i < 2; i++)
		finish(&flow[i]);
	rs_pair_free(&p);
}

static void the_model_holds(void)
{
	seed = seed_given ? strtoull(seed_given, NULL, 10) : cm_now_ms();
	printf("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < ROUNDS; i++, seed++) {
		state = seed * 0x9e3779b97f4a7c15u + 1;
		run_round();
	}
}

int main(int argc, char **argv)
{
	static const struct cm_case cases[] = { CASE(the_model_holds) };

	seed_given = argc > 2 ? argv[2] : NULL;
	return cm_main(argc, argv, cases, 1);
}
