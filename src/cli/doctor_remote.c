/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar doctor HOST`: probes of several sizes, there and back. */
#include "cli/doctor.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/doctor_probe.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/order.h"

#define FIRST_PROBES 5   /* until one is answered: addresses may have to be resolved */
#define PROBES 100       /* for round trip and losses */
#define SIZE_PROBES 3    /* of each size and direction */
#define WAIT_NS (NSEC_PER_SEC / 4)
#define SMALL 64

struct dialogue {
	int fd;
	struct sockaddr_in6 to;
	uint32_t session, sequence;
	uint64_t token;
	bool refused; /* the host said that nobody is at the port */
	int error;    /* of sending: positive errno, 0: none */
};

enum outcome { ARRIVED, LOST, TOO_LONG_HERE, TOO_LONG_THERE, NO_TOKEN };

/* Errors that other hosts have reported: only whether the port is nobody's. */
static void note_error(struct dialogue *d, int number)
{
	if (number == ECONNREFUSED)
		d->refused = true;
	else if (number != EAGAIN && number != EINTR && number != EMSGSIZE)
		d->error = number;
}

/* Waits for the reply to the last request. */
static enum outcome await(struct dialogue *d, uint64_t until, uint64_t *took, uint64_t sent_at)
{
	static uint8_t bytes[DOCTOR_PROBE_MAX + 1];
	uint64_t now;

	while ((now = clock_now_ns()) < until) {
		struct pollfd polled = { .fd = d->fd, .events = POLLIN };
		struct doctor_probe p;
		ssize_t got;

		poll(&polled, 1, (int)((until - now) / 1000000) + 1);
		got = recv(d->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (got < 0)
			note_error(d, errno);
		if (d->refused)
			return LOST;
		if (got < 0 || doctor_probe_decode(bytes, (size_t)got, &p) ||
		    p.kind != DOCTOR_REPLY || p.session != d->session ||
		    p.sequence != d->sequence)
			continue;
		*took = clock_now_ns() - sent_at;
		d->token = p.token;
		return p.status == DOCTOR_TOO_LONG ? TOO_LONG_THERE :
		       p.status == DOCTOR_TOKEN	   ? NO_TOKEN :
						     ARRIVED;
	}
	return LOST;
}

static enum outcome probe(struct dialogue *d, unsigned there, unsigned back, uint64_t *took)
{
	static uint8_t bytes[DOCTOR_PROBE_MAX];
	const struct doctor_probe p = { .kind = DOCTOR_REQUEST, .session = d->session,
					.sequence = ++d->sequence,
					.length = (uint16_t)there, .other = (uint16_t)back,
					.token = d->token };
	uint64_t sent_at = clock_now_ns();

	doctor_probe_encode(&p, bytes);
	if (send(d->fd, bytes, there, MSG_NOSIGNAL) < 0) {
		int number = errno;

		note_error(d, number);
		return number == EMSGSIZE ? TOO_LONG_HERE : LOST;
	}
	return await(d, sent_at + WAIT_NS, took, sent_at);
}

/* 0 or a negative errno. Packets leave from `from`, 0 for any port. */
static int open_dialogue(struct dialogue *d, const struct doctor_route *route, uint16_t from,
			 uint16_t to)
{
	int ret;

	*d = (struct dialogue){ .to = route->to,
				.session = (uint32_t)clock_now_ns() ^ (uint32_t)getpid() << 16 };
	d->to.sin6_port = htons(to);
	d->fd = doctor_socket(SOCK_DGRAM, from);
	if (d->fd == -EADDRINUSE && from)
		d->fd = doctor_socket(SOCK_DGRAM, 0);
	if (d->fd < 0)
		return d->fd;
	ret = doctor_connect(d->fd, &d->to);
	if (ret)
		close(d->fd);
	return ret;
}

/* Whether anything comes back. */
static bool greet(struct dialogue *d)
{
	for (unsigned i = 0; i < FIRST_PROBES && !d->refused; i++) {
		uint64_t took;

		if (probe(d, SMALL, SMALL, &took) == ARRIVED)
			return true;
	}
	return false;
}

/* The port is silent: why? */
static void explain_silence(const struct doctor_route *route, uint16_t port,
			    const struct dialogue *d)
{
	char text[INET6_ADDRSTRLEN];
	struct dialogue second;
	bool answers;

	doctor_text(&route->to, text);
	if (d->refused) {
		doctor_bad("start 'busbar doctor --serve' there, with the same --port",
			   "%s is there, but nobody answers on its UDP port %u", text, port);
		return;
	}
	if (d->error == EPERM || d->error == EACCES) {
		doctor_bad(doctor_remedy("let UDP port %u out: see busbar-doctor(1)", port),
			   "this host's own firewall or a rule of its routes forbids UDP port %u to %s",
			   port, text);
		return;
	}
	if (d->error == EHOSTUNREACH || d->error == ENETUNREACH) {
		doctor_bad("is it on, is the cable in, is the address right? 'ip neigh' shows whether it answers",
			   "%s does not answer on the link, or a router does not know it", text);
		return;
	}
	if (port == DOCTOR_SECOND_PORT ||
	    open_dialogue(&second, route, 0, DOCTOR_SECOND_PORT))
		return;
	answers = greet(&second);
	close(second.fd);
	if (answers) {
		doctor_bad(doctor_remedy("open it in both directions, there, here and between: 'nft add rule inet filter input udp dport %u accept', 'ufw allow %u/udp' or 'firewall-cmd --add-port=%u/udp'",
					 port, port, port),
			   "a firewall drops UDP port %u: %s answers on port %u and not on it",
			   port, text, DOCTOR_SECOND_PORT);
	} else if (second.refused) {
		doctor_bad("start 'busbar doctor --serve' there; if it runs, a firewall drops this port",
			   "%s is there, and is silent on UDP port %u", text, port);
	} else {
		doctor_bad("is it on, does 'busbar doctor --serve' run there, does a firewall there or here drop UDP?",
			   "nothing comes back from %s, on UDP port %u or %u", text, port,
			   DOCTOR_SECOND_PORT);
	}
}

/* ---- round trip and losses ---- */

static void look_at_losses(struct dialogue *d)
{
	int64_t took[PROBES];
	uint64_t one;
	unsigned got = 0, sent = 0;
	/* A few that are lost take a quarter of a second each: not all of them. */
	uint64_t until = clock_now_ns() + 3 * NSEC_PER_SEC;

	while (sent < PROBES && clock_now_ns() < until) {
		sent++;
		if (probe(d, SMALL, SMALL, &one) == ARRIVED)
			took[got++] = (int64_t)one;
	}
	if (got) {
		order_int64(took, got);
		doctor_good("round trip of a datagram, in us: least %.1f, median %.1f, most %.1f",
			    (double)took[0] / 1e3, (double)took[got / 2] / 1e3,
			    (double)took[got - 1] / 1e3);
	}
	if (got < sent)
		doctor_bad("look for a full link, a bad cable or a limit of rate (policer); 'ip -s link' counts errors",
			   "%u of %u short probes, or their answers, were lost", sent - got, sent);
	else
		doctor_good("none of %u short probes was lost", sent);
}

/* ---- sizes ---- */

/* Of packets of that path MTU one way. */
static enum outcome try_size(struct dialogue *d, unsigned path, bool back)
{
	unsigned size = path + DOCTOR_ROCE_BYTES;
	enum outcome is = LOST;

	for (unsigned i = 0; i < SIZE_PROBES; i++) {
		uint64_t took;

		is = probe(d, back ? SMALL : size, back ? size : SMALL, &took);
		if (is == NO_TOKEN) /* has got it now */
			is = probe(d, SMALL, size, &took);
		if (is != LOST)
			break;
	}
	return is;
}

struct passing {
	unsigned path;     /* the largest path MTU that passes; 0: none */
	unsigned stopped;  /* the smallest that does not; 0: none */
	enum outcome why;
};

static struct passing look_at_sizes(struct dialogue *d, bool back)
{
	struct passing p = { .path = 0 };

	for (unsigned path = 256; path <= 4096 && !p.stopped; path *= 2) {
		enum outcome is = try_size(d, path, back);

		if (is == ARRIVED) {
			p.path = path;
		} else {
			p.stopped = path;
			p.why = is;
		}
	}
	return p;
}

/* Sizes that the interfaces take and that do not arrive: nothing tells the sender. */
static void say_vanished(const struct passing *p, unsigned overhead, const char *way)
{
	doctor_bad(doctor_remedy("set the same MTU at both hosts and all switches, %u or more for path MTU %u, or give programs '-m %u'",
				 p->stopped + overhead, p->stopped, p->path ? p->path : 256),
		   "packets of path MTU %u (%u bytes) vanish on the way %s: an MTU between is smaller than the sender's",
		   p->stopped, p->stopped + overhead, way);
}

static void say_sizes(const struct doctor_route *route, const struct passing *there,
		      const struct passing *back)
{
	unsigned both = MIN(there->path, back->path), overhead = doctor_overhead(route);

	if (there->stopped && there->why == LOST)
		say_vanished(there, overhead, "there");
	if (back->stopped && back->why == LOST)
		say_vanished(back, overhead, "back");
	if (back->stopped && back->why == TOO_LONG_THERE && (!there->stopped || there->path > back->path ||
							      there->why == LOST))
		doctor_bad(doctor_remedy("give programs '-m %u', or raise the MTU of the interface there to 4200 or more",
					 both),
			   "the other host's interface takes path MTU %u at most, and this one's %u",
			   back->path, route->path);
	if (both == 4096)
		doctor_good("all sizes pass in both directions, up to path MTU 4096");
	else if (both && !doctor_found())
		doctor_note(NULL, "sizes up to path MTU %u pass in both directions", both);
	else if (both)
		doctor_note(NULL, "sizes up to path MTU %u pass there, and up to %u back",
			    there->path, back->path);
}

void doctor_remote(const struct doctor_route *route, uint16_t port, bool port_is_free)
{
	struct passing there, back;
	struct dialogue d;
	/* As RoCE packets do, which leave from their own port: a filter sees both. */
	int ret = open_dialogue(&d, route, port_is_free ? port : 0, port);

	if (ret) {
		doctor_bad("see what forbids sockets here", "no probe can be sent: %s", strerror(-ret));
		return;
	}
	if (!greet(&d)) {
		explain_silence(route, port, &d);
		close(d.fd);
		return;
	}
	look_at_losses(&d);
	there = look_at_sizes(&d, false);
	back = look_at_sizes(&d, true);
	say_sizes(route, &there, &back);
	close(d.fd);
}
