/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets of datagrams: how they are opened, and which datagrams are read. */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/datagram.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"

/* How long a peer that takes no datagram may hold up a write. A peer that takes one datagram
 * in that time would delay each one by as much, so it has to take some first. */
#define STUCK_NS (2 * NSEC_PER_SEC)
#define STUCK_UNTIL 16
#define BUSY_POLL_US 50

static int fail_errno(const struct socket_node *s, const char *what)
{
	int err = errno;
	const char *hint = "";

	if (err == EPERM && (s->ends.layer == LAYER_IP || s->ends.layer == LAYER_ETH))
		hint = "; layer ip and eth need root or CAP_NET_RAW";
	log_error("%s: %s: %s%s", s->ends.node->name, what, strerror(err), hint);
	return -err;
}

/* The request about the interface of an address of layer eth; as ioctl(2). */
static int ask_interface(struct socket_node *s, const struct socket_address *a,
			 unsigned long request, struct ifreq *answer)
{
	*answer = (struct ifreq){ 0 };
	if_indextoname((unsigned)a->ll.sll_ifindex, answer->ifr_name);
	return ioctl(s->ends.fd, request, answer);
}

static int open_socket(struct socket_node *s)
{
	struct socket_ends *e = &s->ends;
	const struct socket_address *a = e->has_local ? &e->local : &e->remote;
	int type = e->layer == LAYER_IP ? SOCK_RAW : SOCK_DGRAM, protocol = 0;
	struct ifreq answer;

	if (e->layer == LAYER_IP)
		protocol = a->protocol;
	else if (e->layer == LAYER_ETH)
		protocol = a->ll.sll_protocol;
	e->fd = socket(a->sa.sa_family, type | SOCK_CLOEXEC, protocol);
	if (e->fd < 0)
		return fail_errno(s, "cannot open a socket");
	if (e->layer == LAYER_ETH)
		s->datagram->accept_others = !ask_interface(s, a, SIOCGIFFLAGS, &answer) &&
					     answer.ifr_flags & IFF_LOOPBACK;
	return 0;
}

static int set_options(struct socket_node *s)
{
	const char *node = s->ends.node->name;
	int fd = s->ends.fd, polling = s->ends.wait.polling, one = 1;
	int ret = socket_ends_tune(&s->ends);

	if (!ret && s->in.stamp == STAMP_KERNEL)
		ret = socket_option_set(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one), node,
					"in.received = kernel");
	if (polling == POLLING_BUSY || polling == POLLING_ADAPTIVE)
		socket_option_try(fd, SOL_SOCKET, SO_BUSY_POLL,
				  polling == POLLING_BUSY ? BUSY_POLL_US :
							    (int)MIN(s->in.spin_us, 1000),
				  node, "SO_BUSY_POLL");
	return ret ? ret : socket_set_mark(s, fd);
}

static int bind_socket(struct socket_node *s)
{
	struct socket_ends *e = &s->ends;
	const struct socket_address *a = e->has_local ? &e->local : &e->remote;
	bool makes_path = e->has_local && e->layer == LAYER_UNIX && e->local.un.sun_path[0];
	int ret = makes_path ? unix_path_clear(e) : 0;

	if (!ret)
		ret = socket_ends_bind(e, e->fd, a, "");
	if (!ret && makes_path)
		s->datagram->unlink_path = strdup(e->local.un.sun_path);
	return ret;
}

static bool is_wanted(struct socket_node *s, const struct socket_address *from)
{
	struct socket_ends *e = &s->ends;
	char text[SOCKET_ADDRESS_MAX];

	if (e->layer == LAYER_ETH) {
		if (from->ll.sll_pkttype == PACKET_OUTGOING)
			return false;
		/* Another program has set the card to promiscuous mode. */
		if (from->ll.sll_pkttype == PACKET_OTHERHOST && !s->datagram->accept_others)
			return false;
	}
	if (!e->verify_source ||
	    socket_address_equal(from, &e->remote,
				 e->layer == LAYER_UDP && e->remote.in4.sin_port))
		return true;
	fault_note(&e->faults, FAULT_FOREIGN, 1, "from %s", socket_address_print(from, text));
	return false;
}

static bool take(struct socket_ends *e, struct datagram *d)
{
	struct message *m = &d->message;
	size_t header;

	if (!is_wanted(container_of(e, struct socket_node, ends), d->from))
		return false;
	/* A raw socket of IPv4 delivers the header, too. */
	if (e->layer != LAYER_IP || d->from->sa.sa_family != AF_INET)
		return true;
	header = m->len ? (size_t)(m->at[0] & 15) * 4 : 0;
	if (header < 20 || header > m->len) {
		fault_note(&e->faults, FAULT_MALFORMED, 1, "no IPv4 header in %zu bytes",
			   m->len);
		return false;
	}
	m->at += header;
	m->len -= header;
	return true;
}

static int open_reader(struct socket_node *s)
{
	struct socket_ends *e = &s->ends;
	struct datagram_reader *r = datagram_reader_new(e);

	s->datagram->reader = r;
	if (!r)
		return -ENOMEM;
	if (e->layer == LAYER_ETH || e->layer == LAYER_IP || e->verify_source)
		r->take = take;
	/* A format that keeps nothing between messages needs no reader for each sender. */
	if (!e->reader->type->reset)
		return 0;
	r->scan = sources_scan;
	return sources_open(s);
}

static void send_delayed(void *node, char *buf, size_t len)
{
	struct socket_node *s = node;

	datagram_send_late(s->datagram->writer, buf, len);
}

/* Through the emulated network: what it loses was accepted all the same. */
static unsigned send_emulated(struct socket_ends *e, unsigned first)
{
	struct socket_node *s = container_of(e, struct socket_node, ends);
	const struct iovec *piece = &s->datagram->writer->pieces[first];

	netem_put(s->netem, piece->iov_base, piece->iov_len);
	return 1;
}

size_t datagram_max(const struct socket_node *s)
{
	/* IPv6, whose headers do not count, until the address is known. */
	bool v4 = s->ends.remote.sa.sa_family == AF_INET;
	size_t max = s->ends.layer == LAYER_UDP ? (v4 ? 65507 : 65527) :
		     s->ends.layer == LAYER_IP  ? (v4 ? 65515 : 65535) :
						  DATAGRAM_MAX;

	return s->out.datagram_size ? MIN(max, (size_t)s->out.datagram_size) : max;
}

static int open_writer(struct socket_node *s)
{
	struct datagram_writer *w = datagram_writer_new(&s->ends);
	struct ifreq answer;

	s->datagram->writer = w;
	if (!w)
		return -ENOMEM;
	w->size_max = datagram_max(s);
	if (s->ends.layer == LAYER_ETH) {
		if (ask_interface(s, &s->ends.remote, SIOCGIFMTU, &answer))
			return fail_errno(s, "the interface's MTU");
		w->size_max = MIN(w->size_max, (size_t)answer.ifr_mtu);
	}
	w->pack_max = w->size_max;
	if (!s->out.pack)
		w->samples_max = 1;
	w->drop = s->out.full == FULL_DROP;
	w->patience_ns = STUCK_NS;
	w->stuck_max = STUCK_UNTIL;
	w->limit = "a datagram has at most";
	w->size_key = "out.datagram_size";
	if (!s->out.netem.enabled)
		return 0;
	w->send = send_emulated;
	return netem_open(&s->netem, &s->out.netem, send_delayed, s);
}

int datagram_start(struct socket_node *s)
{
	int ret;

	s->datagram = calloc(1, sizeof(*s->datagram));
	if (!s->datagram)
		return -ENOMEM;
	ret = socket_ends_resolve(&s->ends);
	if (!ret)
		ret = open_socket(s);
	if (!ret)
		ret = set_options(s);
	if (!ret)
		ret = bind_socket(s);
	if (!ret && s->ends.reader)
		ret = open_reader(s);
	if (!ret && s->ends.writer)
		ret = open_writer(s);
	return ret;
}

void datagram_stop(struct socket_node *s)
{
	struct socket_datagrams *d = s->datagram;

	if (!d)
		return;
	netem_close(s->netem, s->ends.node->name);
	s->netem = NULL;
	if (d->unlink_path)
		unlink(d->unlink_path);
	free(d->unlink_path);
	sources_close(s);
	datagram_reader_free(d->reader);
	datagram_writer_free(d->writer);
	free(d);
	s->datagram = NULL;
}
