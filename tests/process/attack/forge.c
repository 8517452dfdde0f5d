/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forged packets of connection management, by a plain UDP socket:
 *
 *   forge FROM TO PORT KIND COUNT SEED
 *
 * FROM: the own address; TO: the victim's, whose service has PORT. KIND:
 *
 *   call        requests that nobody completes, with the longest times; each prints a line
 *               with what comes back
 *   unheard     the same, which should get no answer
 *   liar        the same, with the address of host 1 of the own network in the private data
 *   calls       COUNT of them, without waiting
 *   rejects     COUNT early REJs, for which each process of the victim is asked
 *   fields      every byte of each kind of message in turn is zero, ones and random; then every
 *               opcode, queue pair, Q_Key and length of the packets
 *   identified  one DREQ with an ICRC for IPv4 identification COUNT, from port 4791;
 *               `identified-unheard` likewise, without waiting long, and
 *               `identified-elsewhere` from another port; exit status 1: nobody answers
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/cm_answer.h"
#include "wire/ib/icrc.h"

#define check(what)                                                             \
	do {                                                                    \
		if (!(what)) {                                                  \
			fprintf(stderr, "%s:%d: failed: %s: %m\n", __FILE__,    \
				__LINE__, #what);                               \
			exit(2);                                                \
		}                                                               \
	} while (0)

enum { HEADERS = IB_BTH_BYTES + IB_DETH_BYTES, OTHER_PORT = 50000, PACKET_MAX = 2048 };
#define QKEY 0x80010000u
#define ANSWER_MS 8000 /* on a busy machine */
#define SILENCE_MS 1000
#define LONGEST 31 /* a code of a time */
#define BURST 64   /* packets, behind which the victim gets a millisecond */

static struct {
	struct in_addr from, to;
	uint16_t port;
	int fd, answers;
	unsigned sent;
} self;

/* The fields in which a packet differs from one for queue pair 1. */
struct odd {
	uint8_t opcode;
	uint32_t qpn, qkey;
	uint16_t id, source;
};
static const struct odd even = { IB_SERVICE_UD | IB_SEND_ONLY, 1, QKEY, 0, OTHER_PORT };

static unsigned random_next(void)
{
	return (unsigned)(rand() >> 4);
}

static int socket_at(uint16_t port)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = self.from,
				   .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), discover = IP_PMTUDISC_DO;

	check(fd >= 0);
	check(!setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)));
	if (bind(fd, (struct sockaddr *)&own, sizeof(own))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void put(uint8_t *at, uint32_t value, unsigned bytes)
{
	while (bytes--) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static void send_packet(const struct odd *o, const void *payload, size_t bytes)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = self.to,
				  .sin_port = htons(IB_UDP_PORT) };
	uint8_t packet[PACKET_MAX] = { o->opcode };
	size_t pad = -bytes & 3, all = HEADERS + bytes + pad + IB_ICRC_BYTES;
	struct icrc_ip ip = { .version = 4, .src_port = o->source, .id = o->id,
			      .dst_port = IB_UDP_PORT, .dont_fragment = true,
			      .udp_length = (uint16_t)(8 + all) };
	struct icrc c;

	packet[1] = (uint8_t)(pad << 4);
	put(packet + 2, IB_PKEY_DEFAULT, 2);
	put(packet + 5, o->qpn, 3);
	put(packet + 9, random_next(), 3);
	put(packet + 12, o->qkey, 4);
	put(packet + 17, 1, 3);
	memcpy(packet + HEADERS, payload, bytes);
	memcpy(ip.src, &self.from, 4);
	memcpy(ip.dst, &self.to, 4);
	icrc_begin(&c, &ip, packet);
	icrc_add(&c, packet + IB_BTH_BYTES, all - IB_BTH_BYTES - IB_ICRC_BYTES);
	icrc_end(&c, packet + all - IB_ICRC_BYTES);
	/* The victim's receive buffer and ours may be full: that is an attack, too. */
	if (sendto(self.fd, packet, all, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		return;
	if (++self.sent % BURST == 0)
		usleep(1000);
}

static void send_message(const struct cm_mad *mad)
{
	uint8_t bytes[CM_MAD_SIZE];

	check(!wire_cm_encode(mad, bytes));
	send_packet(&even, bytes, sizeof(bytes));
}

/* ---- messages ---- */

static void mapped(uint8_t out[16], struct in_addr ip)
{
	memset(out, 0, 16);
	memset(out + 10, 0xff, 2);
	memcpy(out + 12, &ip, 4);
}

static struct cm_mad request(struct in_addr said)
{
	struct cm_ip_header ip = { .ip_version = 4, .src_port = 999 };
	struct cm_mad mad = {
		.type = CM_REQ,
		.tid = random_next(),
		.req = { .local_comm_id = random_next() + 1u,
			 .local_qpn = random_next() & 0xffffff,
			 .service_id = wire_cm_service_id(0x0106, self.port),
			 .remote_response_timeout = LONGEST,
			 .local_response_timeout = LONGEST, .max_cm_retries = 15,
			 .path_mtu = 3, .pkey = IB_PKEY_DEFAULT, .retry_count = 7,
			 .rnr_retry_count = 7, .initiator_depth = 1,
			 .responder_resources = 1,
			 .primary = { .local_ack_timeout = LONGEST, .hop_limit = 64 } },
	};

	memcpy(ip.src + 12, &said, 4);
	memcpy(ip.dst + 12, &self.to, 4);
	mapped(mad.req.primary.local_gid, self.from);
	mapped(mad.req.primary.remote_gid, self.to);
	check(!wire_cm_ip_encode(&ip, mad.req.private_data));
	return mad;
}

static struct cm_mad message(unsigned type)
{
	struct cm_mad mad = { .type = type, .tid = random_next() };

	if (type == CM_REQ)
		return request(self.from);
	if (type == CM_SIDR_REQ)
		mad.sidr_req.service_id = wire_cm_service_id(0x0111, self.port);
	else if (type == CM_SIDR_REP)
		mad.sidr_rep.request_id = random_next();
	else
		wire_cm_parties_set(&mad, random_next(), random_next());
	return mad;
}

/* What comes back, or "nothing". True: something. */
static bool say_answer(int ms)
{
	struct pollfd p = { .fd = self.answers, .events = POLLIN };
	uint8_t packet[PACKET_MAX];
	struct cm_mad mad;
	ssize_t n;

	if (poll(&p, 1, ms) != 1) {
		puts("nothing");
		return false;
	}
	n = recv(self.answers, packet, sizeof(packet), 0);
	if (n != HEADERS + CM_MAD_SIZE + IB_ICRC_BYTES ||
	    wire_cm_decode(packet + HEADERS, CM_MAD_SIZE, &mad))
		puts("garbage");
	else
		printf("%s %u\n", wire_cm_name(mad.type),
		       mad.type == CM_REJ ? mad.rej.reason : 0);
	return true;
}

/* ---- attacks ---- */

static void call(struct in_addr said, unsigned count, int ms)
{
	while (count--) {
		struct cm_mad mad = request(said);

		send_message(&mad);
		if (ms)
			say_answer(ms);
	}
}

static struct in_addr host_1(void)
{
	return (struct in_addr){ htonl((ntohl(self.from.s_addr) & ~0xffu) | 1) };
}

static void rejects(unsigned count)
{
	struct cm_mad mad = { .type = CM_REJ, .rej.reason = CM_REASON_TIMEOUT };

	while (count--) {
		mad.rej.local_comm_id = random_next() + 1u;
		send_message(&mad);
	}
}

static void packets(void)
{
	uint8_t bytes[1024];
	struct odd o = even;

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)random_next();
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		o.opcode = (uint8_t)opcode;
		for (unsigned i = 0; i < 8; i++) {
			o.qpn = i < 4 ? i : i == 4 ? 0xffffff : random_next() & 0xffffff;
			o.qkey = i % 2 ? QKEY : random_next();
			send_packet(&o, bytes, i * 37);
		}
	}
	for (unsigned length = 0; length <= sizeof(bytes); length += 1 + length / 64)
		send_packet(&even, bytes, length);
}

static void fields(void)
{
	for (unsigned type = CM_REQ; type <= CM_APR; type++)
		for (unsigned at = 0; at < CM_MAD_SIZE; at++)
			for (unsigned kind = 0; kind < 3; kind++) {
				struct cm_mad mad = message(type);
				uint8_t bytes[CM_MAD_SIZE];

				check(!wire_cm_encode(&mad, bytes));
				bytes[at] = (uint8_t)(kind == 0 ? 0 : kind == 1 ? 0xff :
						      random_next());
				send_packet(&even, bytes, sizeof(bytes));
			}
	packets();
}

static int identified(uint16_t id, uint16_t source, int ms)
{
	struct cm_mad mad = message(CM_DREQ);
	struct odd o = even;
	uint8_t bytes[CM_MAD_SIZE];

	check(self.answers >= 0);
	if (source == IB_UDP_PORT)
		self.fd = self.answers;
	o.id = id;
	o.source = source;
	check(!wire_cm_encode(&mad, bytes));
	send_packet(&o, bytes, sizeof(bytes));
	return say_answer(ms) ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *kind;
	unsigned count;

	check(argc == 7 && inet_aton(argv[1], &self.from) && inet_aton(argv[2], &self.to));
	self.port = (uint16_t)atoi(argv[3]);
	kind = argv[4];
	count = (unsigned)atoi(argv[5]);
	srand((unsigned)atoi(argv[6]));
	self.fd = socket_at(OTHER_PORT);
	check(self.fd >= 0);
	self.answers = socket_at(IB_UDP_PORT); /* another program may have it */
	if (!strcmp(kind, "call"))
		call(self.from, count, ANSWER_MS);
	else if (!strcmp(kind, "unheard"))
		call(self.from, count, SILENCE_MS);
	else if (!strcmp(kind, "liar"))
		call(host_1(), count, ANSWER_MS);
	else if (!strcmp(kind, "calls"))
		call(self.from, count, 0);
	else if (!strcmp(kind, "rejects"))
		rejects(count);
	else if (!strcmp(kind, "fields"))
		fields();
	else if (!strcmp(kind, "identified"))
		return identified((uint16_t)count, IB_UDP_PORT, ANSWER_MS);
	else if (!strcmp(kind, "identified-unheard"))
		return identified((uint16_t)count, IB_UDP_PORT, SILENCE_MS);
	else if (!strcmp(kind, "identified-elsewhere"))
		return identified((uint16_t)count, OTHER_PORT, ANSWER_MS);
	else
		check(!"a known kind");
	fprintf(stderr, "%u packets sent\n", self.sent);
	return 0;
}
