/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the other side of an rsocket says: a peer that speaks the connection
 * manager and SENDs whatever it likes, with hellos and messages that are nearly
 * right. The rsocket may deliver what is right and must end the stream at what is
 * not; it never ends the program, reads what was not sent, or waits for ever.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "rdmacm/rsocket/wire.h"

#define SECONDS 5
#define SENDS_MAX 40
#define BYTES_MAX 4096

static uint16_t port;
static unsigned long taken, refused, sent_in_all;
static atomic_bool over;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Reads until the stream ends, by its order or by a violation. */
static void read_to_the_end(int s)
{
	struct linger none = { .l_onoff = 1 };
	uint64_t end = now_ms() + 10000;
	uint8_t bytes[3000];

	for (;;) {
		struct pollfd p = { .fd = s, .events = POLLIN };
		ssize_t n = rrecv(s, bytes, sizeof(bytes), MSG_DONTWAIT);

		must(n <= (ssize_t)sizeof(bytes));
		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		must(n > 0 || is_errno(errno));
		must(now_ms() < end);
		/* What may go back goes back. */
		if (n > 0)
			rsend(s, bytes, (size_t)n, MSG_DONTWAIT);
		else
			rpoll(&p, 1, 20);
	}
	rsetsockopt(s, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	must(rclose(s) == 0);
}

static void *serve(void *arg)
{
	int listener = *(int *)arg;

	while (!over) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		int s;

		if (rpoll(&p, 1, 20) <= 0)
			continue;
		s = raccept(listener, NULL, NULL);
		if (s < 0)
			continue;
		rsetsockopt(s, SOL_RDMA, RDMA_IOMAPSIZE, &(int){ 4 }, sizeof(int));
		read_to_the_end(s);
	}
	return NULL;
}

/* ---- the peer ---- */

static void spoil(void *at, size_t size)
{
	uint8_t *bytes = at;

	if (one_in(3))
		bytes[draw((uint32_t)size)] ^= (uint8_t)(1u << draw(8));
}

/* `*slots` is what the stream may be granted to begin with. */
static uint8_t hello_make(uint8_t out[64], uint32_t *slots)
{
	struct rs_hello h;

	*slots = one_in(4) ? number() : 8 + draw(100);
	rs_hello_encode(&h, one_in(12) ? RS_KIND_DATAGRAM : RS_KIND_STREAM, *slots,
			one_in(4) ? number() : BYTES_MAX,
			one_in(4) ? number() : draw(16));
	if (one_in(4))
		spoil(&h, sizeof(h));
	memset(out, 0, 64);
	memcpy(out, &h, sizeof(h));
	return (uint8_t)(one_in(10) ? draw(57) : sizeof(h));
}

static uint32_t message_make(uint8_t *out, uint32_t *granted)
{
	struct rs_header h = { .type = (uint8_t)(one_in(12) ? number() :
							      1 + draw(5)) };
	uint32_t len = one_in(3) ? draw(BYTES_MAX - sizeof(h)) : draw(200);

	*granted += one_in(4) ? draw(4) : 0;
	h.granted = htonl(one_in(16) ? number() : *granted);
	for (uint32_t i = 0; i < len; i++)
		out[sizeof(h) + i] = (uint8_t)draw(256);
	if (h.type == RS_MAP || h.type == RS_UNMAP) {
		struct rs_map m = {
			.offset = htobe64(number()),
			.addr = htobe64(number()),
			.length = htobe64(one_in(4) ? UINT64_MAX : number()),
			.rkey = htonl(number()),
			.index = htonl(mostly(5)),
		};

		memcpy(out + sizeof(h), &m, sizeof(m));
		len = one_in(6) ? len : sizeof(m);
	}
	memcpy(out, &h, sizeof(h));
	return one_in(20) ? draw(sizeof(h)) : (uint32_t)sizeof(h) + len;
}

static void send_some(struct rdma_cm_id *id, uint8_t *out, struct ibv_mr *mr,
		      uint32_t granted)
{
	for (unsigned n = draw(SENDS_MAX); n > 0; n--) {
		struct ibv_wc wc;
		uint32_t len = message_make(out, &granted);

		if (rdma_post_send(id, NULL, out, len, mr, IBV_SEND_SIGNALED))
			return;
		/* It ends when the other side does, too. */
		if (rdma_get_send_comp(id, &wc) != 1 || wc.status)
			return;
		sent_in_all++;
	}
}

static void one_peer(uint8_t *out, uint8_t *in)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 64,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
	};
	uint32_t slots;
	uint8_t hello[64];
	struct rdma_conn_param param = { .private_data = hello,
					 .private_data_len = hello_make(hello, &slots),
					 .retry_count = 1,
					 .rnr_retry_count = 2 };
	struct ibv_mr *mr_out, *mr_in;
	struct rdma_cm_id *id;
	char text[8];

	snprintf(text, sizeof(text), "%u", port);
	must(rdma_getaddrinfo("127.0.0.1", text, &hints, &res) == 0);
	must(rdma_create_ep(&id, res, NULL, &attr) == 0);
	rdma_freeaddrinfo(res);
	mr_out = rdma_reg_msgs(id, out, BYTES_MAX);
	mr_in = rdma_reg_msgs(id, in, BYTES_MAX);
	must(mr_out && mr_in);
	for (int i = 0; i < 64; i++)
		must(rdma_post_recv(id, NULL, in, BYTES_MAX, mr_in) == 0);
	if (rdma_connect(id, &param)) {
		refused++;
	} else {
		taken++;
		send_some(id, out, mr_out, slots);
		if (draw(2))
			rdma_disconnect(id);
	}
	must(ibv_dereg_mr(mr_out) == 0 && ibv_dereg_mr(mr_in) == 0);
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint64_t end = now_ms() + SECONDS * 1000, seed = now_ms();
	uint8_t *out = malloc(BYTES_MAX + 64), *in = malloc(BYTES_MAX);
	socklen_t len = sizeof(addr);
	pthread_t thread;
	int listener = rsocket(AF_INET, SOCK_STREAM, 0);

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	api_state = seed;
	must(listener >= 0 && out && in);
	must(rbind(listener, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	must(rlisten(listener, 8) == 0);
	must(rfcntl(listener, F_SETFL, O_NONBLOCK) == 0);
	must(rgetsockname(listener, (struct sockaddr *)&addr, &len) == 0);
	port = ntohs(addr.sin_port);
	must(pthread_create(&thread, NULL, serve, &listener) == 0);
	alarm(100);
	while (now_ms() < end)
		one_peer(out, in);
	over = true;
	pthread_join(thread, NULL);
	must(rclose(listener) == 0);
	free(out);
	free(in);
	printf("%lu connections, %lu refused, %lu messages\n", taken, refused,
	       sent_in_all);
	must(taken > 0 && refused > 0 && sent_in_all > 0);
	return 0;
}
