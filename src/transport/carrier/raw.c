/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter that sends short packets past IP and UDP; see raw.h. */
#include "transport/carrier/raw.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transport/carrier/drainer.h"
#include "transport/carrier/raw_frame.h"
#include "util/container_of.h"

/* The ring: frames of RAW_FRAME_BYTES, and what the kernel says of each. */
#define SLOT_BYTES 1024u
#define SLOTS 512u
#define BLOCK_BYTES 65536u
#define RING_BYTES ((size_t)SLOT_BYTES * SLOTS)
/* How many polls after the last frame the ring is the likelier place. */
#define WARM_POLLS 16384u
/* Polls that look at the carrier below behind one that found something there. */
#define BELOW_POLLS 256u
/* How long the frame to oneself is waited for. */
#define TRIAL_NS 100000000

/* The kernel puts the IP header at the first aligned place with 16 bytes of room before it. */
_Static_assert(RAW_FRAME_BYTES - RAW_ETHERNET_BYTES + TPACKET_ALIGN(TPACKET2_HDRLEN + 16) <=
		       SLOT_BYTES, "a frame has room");

struct raw {
	struct carrier carrier;
	int fd;
	uint32_t interface;
	uint16_t port;
	uint8_t *ring;
	struct clock_source clock;
	cache_aligned atomic_uint_fast64_t sent, refused;
	/* By who drains; read without that, too. */
	cache_aligned struct drainer drainer;
	atomic_uint next;          /* slot of the ring */
	atomic_uint warm;
	_Atomic uint64_t looked_ns; /* at the carrier below; 0: look */
	unsigned below_busy;
	unsigned inside;           /* frames that were delivered while it was looked at */
	atomic_uint_fast64_t received, malformed;
};

static struct raw *raw_of(const struct carrier *c)
{
	return container_of(c, struct raw, carrier);
}

static void add(atomic_uint_fast64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- leaving ---- */

static bool is_short(const struct carrier_unit *unit, size_t bytes)
{
	const unsigned all = CARRIER_RAW | CARRIER_FROM | CARRIER_INTERFACE |
			     CARRIER_FRAGMENTS;

	return (unit->known & all) == (CARRIER_RAW | CARRIER_FROM) &&
	       carrier_raw_is_short(bytes);
}

/* A system call, because that of the C library is a cancellation point. */
static bool send_frame(const struct raw *r, const uint8_t *frame, size_t bytes)
{
	return syscall(SYS_sendto, (long)r->fd, frame, bytes,
		       (long)(MSG_DONTWAIT | MSG_NOSIGNAL), NULL, 0L) == (long)bytes;
}

/* False: it has to go by the carrier below. */
static bool leave(struct raw *r, const struct carrier_unit *unit)
{
	size_t bytes = carrier_unit_bytes(unit), n;
	uint8_t frame[RAW_FRAME_BYTES];
	bool sent;

	if (!is_short(unit, bytes))
		return false;
	n = raw_frame_write(unit, bytes, r->port, frame);
	sent = n && send_frame(r, frame, n);
	add(sent ? &r->sent : &r->refused, 1);
	return sent;
}

static int raw_emit(struct carrier *c, const struct carrier_unit *units, unsigned n)
{
	struct raw *r = raw_of(c);
	unsigned left = 0;
	int taken;

	while (left < n && leave(r, &units[left]))
		left++;
	if (left == n)
		return (int)n;
	/* What is behind it keeps its place. */
	taken = carrier_emit(c->below, units + left, n - left);
	return left ? (int)left + MAX(taken, 0) : taken;
}

/* ---- arriving ---- */

static inline unsigned load(const atomic_uint *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static inline void store(atomic_uint *n, unsigned value)
{
	atomic_store_explicit(n, value, memory_order_relaxed);
}

static inline struct tpacket2_hdr *slot_of(const struct raw *r, unsigned next)
{
	return (void *)(r->ring + (size_t)(next % SLOTS) * SLOT_BYTES);
}

static inline bool has_come(const struct tpacket2_hdr *slot)
{
	return __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER;
}

static void deliver_slot(struct raw *r, const struct tpacket2_hdr *slot)
{
	const uint8_t *frame = (const uint8_t *)slot + slot->tp_mac;
	struct iovec packets;
	struct carrier_unit unit = { .iov = &packets, .count = 1 };

	if (unlikely(slot->tp_snaplen != slot->tp_len ||
		     (size_t)slot->tp_mac + slot->tp_snaplen > SLOT_BYTES ||
		     !raw_frame_read(frame, slot->tp_snaplen, &unit, &packets))) {
		add(&r->malformed, 1);
		return;
	}
	add(&r->received, 1);
	unit.interface = r->interface;
	unit.known |= CARRIER_INTERFACE | CARRIER_RAW;
	carrier_deliver(&r->carrier, &unit);
}

/* The kernel writes a slot and then its status, and does not touch it until that says that
 * it is the kernel's. */
static unsigned drain(struct raw *r, unsigned budget)
{
	unsigned next = load(&r->next), done = 0;

	for (; done < budget; done++) {
		struct tpacket2_hdr *slot = slot_of(r, next);

		if (!has_come(slot))
			break;
		deliver_slot(r, slot);
		__atomic_store_n(&slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		store(&r->next, ++next);
	}
	if (done)
		store(&r->warm, WARM_POLLS);
	return done;
}

/* Of the carrier below, from within a poll. Frames that came before it were sent before. */
static void raw_deliver(void *arg, const struct carrier_unit *unit)
{
	struct raw *r = raw_of(arg);

	r->inside += drain(r, SLOTS);
	carrier_deliver(&r->carrier, unit);
}

static void raw_writable(void *arg)
{
	carrier_writable(arg);
}

static inline bool below_is_due(struct raw *r)
{
	uint64_t looked = atomic_load_explicit(&r->looked_ns, memory_order_relaxed);

	return !looked || !load(&r->warm) ||
	       clock_source_now_ns(&r->clock) - looked >= CARRIER_RAW_LOOK_NS;
}

/* In vain, most likely, as frames came in the last polls and none is there now. */
static inline bool is_in_vain(struct raw *r)
{
	if (has_come(slot_of(r, load(&r->next))) || below_is_due(r))
		return false;
	store(&r->warm, load(&r->warm) - 1);
	return true;
}

static unsigned look_below(struct raw *r, unsigned budget)
{
	unsigned done;

	r->inside = 0;
	done = carrier_poll(r->carrier.below, budget);
	/* What finds something there is likely to find more. */
	if (done)
		r->below_busy = BELOW_POLLS;
	else if (r->below_busy)
		r->below_busy--;
	atomic_store_explicit(&r->looked_ns,
			      r->below_busy ? 0 : clock_source_now_ns(&r->clock),
			      memory_order_relaxed);
	return MIN(done + r->inside, budget);
}

/* Neither place keeps the other one waiting. */
static unsigned poll_both(struct raw *r, unsigned budget)
{
	unsigned done = below_is_due(r) ? look_below(r, budget) : 0;

	return done + drain(r, budget - done);
}

static unsigned raw_poll(struct carrier *c, unsigned budget)
{
	struct raw *r = raw_of(c);
	unsigned done = 0;

	if (likely(is_in_vain(r)))
		return 0;
	/* A second pass for a thread that came meanwhile, as udp_poll() has. */
	for (unsigned pass = 0; pass < 2 && done < budget; pass++) {
		if (!drainer_enter(&r->drainer))
			break;
		done += poll_both(r, budget - done);
		if (!drainer_leave(&r->drainer))
			break;
	}
	return done;
}

static uint64_t raw_next_ns(struct carrier *c)
{
	return carrier_next_ns(c->below);
}

/* ---- life ---- */

static void release(struct raw *r)
{
	if (r->ring)
		munmap(r->ring, RING_BYTES);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

static void raw_close(struct carrier *c)
{
	carrier_close(c->below);
	release(raw_of(c));
}

static const struct carrier_ops raw_ops = {
	.emit = raw_emit,
	.poll = raw_poll,
	.next_ns = raw_next_ns,
	.close = raw_close,
};

/* Which frames of the interface are ours; no other one gets into the ring. */
static int filter_attach(int fd, const struct carrier_raw_params *p)
{
	enum { V6 = 7, PORT = 13, NONE = 18 };
	struct sock_filter code[] = {
		/* The first byte behind the header of Ethernet tells the version of IP. */
		[0] = BPF_STMT(BPF_LD | BPF_B | BPF_ABS, RAW_ETHERNET_BYTES),
		[1] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x45, 0, V6 - 2),
		[2] = BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, RAW_HEADERS_V4),
		[3] = BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		[4] = BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, RAW_HEADERS_V4 + CARRIER_RAW_BYTES,
			       NONE - 5, 0),
		[5] = BPF_STMT(BPF_LD | BPF_H | BPF_ABS, RAW_HEADERS_V4 - 6),
		[6] = BPF_STMT(BPF_JMP | BPF_JA, PORT - 7),
		[V6] = BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
		[8] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, NONE - 9),
		[9] = BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, RAW_HEADERS_V6),
		[10] = BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		[11] = BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K,
				RAW_HEADERS_V6 + CARRIER_RAW_BYTES, NONE - 12, 0),
		[12] = BPF_STMT(BPF_LD | BPF_H | BPF_ABS, RAW_HEADERS_V6 - 6),
		/* Loaded is the destination port of UDP; the packet begins at X. */
		[PORT] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, p->port, 0, NONE - 14),
		[14] = BPF_STMT(BPF_LD | BPF_W | BPF_IND, 4),
		[15] = BPF_STMT(BPF_ALU | BPF_AND | BPF_K, p->mask),
		[16] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, p->value, 0, NONE - 17),
		[17] = BPF_STMT(BPF_RET | BPF_K, SLOT_BYTES),
		[NONE] = BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = { ARRAY_SIZE(code), code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ?
		       -errno : 0;
}

static int set_int(int fd, int option, int value)
{
	return setsockopt(fd, SOL_PACKET, option, &value, sizeof(value)) ? -errno : 0;
}

static int ring_map(struct raw *r)
{
	const struct tpacket_req request = {
		.tp_block_size = BLOCK_BYTES,
		.tp_block_nr = RING_BYTES / BLOCK_BYTES,
		.tp_frame_size = SLOT_BYTES,
		.tp_frame_nr = SLOTS,
	};
	int ret = set_int(r->fd, PACKET_VERSION, TPACKET_V2);
	void *at;

	if (!ret && setsockopt(r->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)))
		ret = -errno;
	if (ret)
		return ret;
	at = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	r->ring = at;
	return 0;
}

/* The filter is there before anything can come. */
static int socket_open(struct raw *r, const struct carrier_raw_params *params)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(RAW_ETHERTYPE),
		.sll_ifindex = (int)r->interface,
	};
	socklen_t len = sizeof(int);
	int ret;

	/* Protocol 0: nothing comes until it is bound. */
	r->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->fd < 0)
		return -errno;
	ret = filter_attach(r->fd, params);
	/* Frames leave at once, as the loopback interface has no queue. */
	if (!ret)
		ret = set_int(r->fd, PACKET_QDISC_BYPASS, 1);
	if (!ret)
		ret = ring_map(r);
	if (!ret && bind(r->fd, (struct sockaddr *)&address, sizeof(address)))
		ret = -errno;
	/* Told only so: the interface is down. */
	if (!ret && getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &ret, &len))
		ret = errno;
	return -abs(ret);
}

/* A frame to oneself, as a rule of the host may take such frames away. */
static int trial(struct raw *r, const struct carrier_raw_params *params)
{
	const struct sockaddr_in here = { .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	/* As long as any, so that it tells of the MTU, too. */
	uint32_t bytes[CARRIER_RAW_BYTES / 4] = { 0, htonl(params->value) };
	struct iovec iov = { bytes, sizeof(bytes) };
	uint64_t end_ns = clock_source_now_ns(&r->clock) + TRIAL_NS;
	struct carrier_unit unit = { .iov = &iov, .count = 1 };
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	uint8_t frame[RAW_FRAME_BYTES];
	struct tpacket2_hdr *slot = slot_of(r, 0);
	size_t n;

	memcpy(&unit.to, &here, sizeof(here));
	unit.from = unit.to;
	n = raw_frame_write(&unit, sizeof(bytes), r->port, frame);
	if (!send_frame(r, frame, n))
		return -errno;
	while (!has_come(slot))
		/* The last look is behind the end of the time. */
		if (poll(&p, 1, 1) < 0 ? errno != EINTR :
		    p.revents & POLLERR ||
			    (clock_source_now_ns(&r->clock) > end_ns && !has_come(slot)))
			return -EIO;
	__atomic_store_n(&slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	store(&r->next, 1);
	return 0;
}

int carrier_raw_open(struct carrier *below, const struct carrier_raw_params *params,
		     struct carrier **out)
{
	struct carrier_upper upper = { raw_deliver, raw_writable, NULL };
	struct raw *r = aligned_alloc(CACHE_LINE, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	memset(r, 0, sizeof(*r));
	r->carrier.ops = &raw_ops;
	r->carrier.below = below;
	r->fd = -1;
	r->port = params->port;
	r->clock = params->clock;
	r->interface = if_nametoindex("lo");
	ret = r->interface ? socket_open(r, params) : -ENODEV;
	if (!ret)
		ret = trial(r, params);
	if (ret) {
		release(r);
		return ret;
	}
	upper.arg = &r->carrier;
	carrier_set_upper(below, &upper);
	*out = &r->carrier;
	return 0;
}

int carrier_raw_fd(const struct carrier *c)
{
	return raw_of(c)->fd;
}

uint64_t carrier_raw_refused(const struct carrier *c)
{
	return atomic_load_explicit(&raw_of(c)->refused, memory_order_relaxed);
}

void carrier_raw_look_below(struct carrier *c)
{
	atomic_store_explicit(&raw_of(c)->looked_ns, 0, memory_order_relaxed);
}

void carrier_raw_forgive(struct carrier *c)
{
	socklen_t len = sizeof(int);
	int error;

	/* To be read is to be taken away. */
	getsockopt(raw_of(c)->fd, SOL_SOCKET, SO_ERROR, &error, &len);
}

static uint64_t read_counter(atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void carrier_raw_count(struct carrier *c, struct carrier_raw_counters *out)
{
	struct raw *r = raw_of(c);
	struct tpacket_stats stats = { 0 };
	socklen_t len = sizeof(stats);

	*out = (struct carrier_raw_counters){
		.sent = read_counter(&r->sent),
		.refused = read_counter(&r->refused),
		.received = read_counter(&r->received),
		.malformed = read_counter(&r->malformed),
	};
	if (!getsockopt(r->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
		out->overrun = stats.tp_drops;
}
