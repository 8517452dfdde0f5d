/* SPDX-License-Identifier: BSD-2-Clause */
/* The rendezvous: one socket and one thread, the caller's. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "ripc/find/limit.h"
#include "ripc/find/places.h"
#include "ripc/find/resolver.h"

#define LOOK_MS 100 /* at *stop, which may be set by a signal handler or another thread */
#define TAKEN_AT_ONCE 256
#define EXPIRE_NS UINT64_C(1000000000)

struct rendezvous {
	const struct packet_key *key;
	struct places places;
	struct limit limit;
	int fd;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* With `a` NULL of both families, of IPv4 alone where there is no IPv6. */
static int bound(const union address *a, uint16_t port)
{
	union address any = { .in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) } };
	const union address *at = a ? a : &any;
	const int no = 0;
	int fd = socket(at->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int ret;

	if (fd >= 0 && at->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (fd >= 0 && !bind(fd, &at->any, address_length(at)))
		return fd;
	ret = -errno;
	if (fd >= 0)
		close(fd);
	if (a || (ret != -EAFNOSUPPORT && ret != -EADDRNOTAVAIL))
		return ret;
	any = (union address){ .in = { .sin_family = AF_INET, .sin_port = htons(port) } };
	return bound(&any, port);
}

static void answer(struct rendezvous *r, const union address *from, const uint8_t *bytes,
		   size_t length)
{
	struct places_out out[PLACES_OUT_MAX];
	uint8_t reply[PACKET_RESOLVE_BYTES_MAX];
	struct packet_resolve p;
	unsigned n;

	if (packet_resolve_decode(&p, r->key, bytes, length))
		return;
	n = places_take(&r->places, now(), from, &p, out);
	for (unsigned i = 0; i < n && limit_take(&r->limit, from, now()); i++)
		sendto(r->fd, reply, packet_resolve_encode(&out[i].packet, r->key, reply),
		       MSG_DONTWAIT | MSG_NOSIGNAL, &out[i].to.any,
		       address_length(&out[i].to));
}

static void receive(struct rendezvous *r)
{
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX + 1];
	union address from;

	for (unsigned i = 0; i < TAKEN_AT_ONCE; i++) {
		socklen_t from_length = sizeof(from);
		ssize_t got = recvfrom(r->fd, bytes, sizeof(bytes), MSG_DONTWAIT, &from.any,
				       &from_length);

		if (got < 0)
			return;
		answer(r, &from, bytes, (size_t)got);
	}
}

static int serve(struct rendezvous *r, const atomic_bool *stop, const char **why)
{
	uint64_t expire_ns = now() + EXPIRE_NS;

	while (!atomic_load(stop)) {
		struct pollfd p = { .fd = r->fd, .events = POLLIN };

		if (poll(&p, 1, LOOK_MS) < 0 && errno != EINTR) {
			*why = "cannot wait for questions";
			return -errno;
		}
		if (p.revents)
			receive(r);
		if (now() >= expire_ns) {
			places_expire(&r->places, now());
			expire_ns = now() + EXPIRE_NS;
		}
	}
	return 0;
}

static int failed(const char **why, int ret, const char *address, uint16_t port)
{
	static _Thread_local char sentence[256];

	snprintf(sentence, sizeof(sentence), "%s, UDP port %u: %s",
		 address ? address : "all addresses", (unsigned)port,
		 ret == -EINVAL ? "not an IP address" : strerrordesc_np(-ret));
	*why = sentence;
	return ret;
}

int rendezvous_serve(const char *address, uint16_t port, const struct packet_key *key,
		     unsigned entries_max, const atomic_bool *stop,
		     void (*ready)(void *arg, uint16_t port), void *arg, const char **why)
{
	struct rendezvous r = { .key = key };
	socklen_t length = sizeof(union address);
	union address a;
	uint8_t seed[32];
	int ret;

	*why = NULL;
	if (address && !address_parse(address, port, &a))
		return failed(why, -EINVAL, address, port);
	if (getrandom(seed, sizeof(seed), 0) != sizeof(seed)) {
		*why = "no random numbers";
		return -EIO;
	}
	r.fd = bound(address ? &a : NULL, port);
	if (r.fd < 0)
		return failed(why, r.fd, address, port);
	limit_init(&r.limit, seed + 16);
	ret = places_init(&r.places, entries_max, seed);
	*why = ret ? "no memory" : NULL;
	if (!ret) {
		if (ready && !getsockname(r.fd, &a.any, &length))
			ready(arg, address_port(&a));
		ret = serve(&r, stop, why);
		places_free(&r.places);
	}
	close(r.fd);
	return ret;
}
