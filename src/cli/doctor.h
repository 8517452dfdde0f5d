/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of `busbar doctor`: what is wrong between this host and another one. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Answered beside the port in question: where that one is silent and this one answers, a
 * filter is between the hosts. */
#define DOCTOR_SECOND_PORT 14791

/* What a packet of RoCE v2 has besides its payload, at most: BTH, RETH, immediate data and
 * ICRC; then UDP. */
#define DOCTOR_ROCE_BYTES (12 + 16 + 4 + 4)
#define DOCTOR_UDP_BYTES 8

/* Findings: one line each, and one that says what to do, or NULL. */
void doctor_say(const char *mark, const char *remedy, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define doctor_good(...) doctor_say("ok", NULL, __VA_ARGS__)
#define doctor_note(remedy, ...) doctor_say("note", remedy, __VA_ARGS__)
#define doctor_bad(remedy, ...) doctor_say("BAD", remedy, __VA_ARGS__)
/* A remedy with values in it; valid until the next one. */
const char *doctor_remedy(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Was any of them bad? */
bool doctor_found(void);

/* An address with its port, for text of at most INET6_ADDRSTRLEN. */
const char *doctor_text(const struct sockaddr_in6 *address, char *to);
bool doctor_is_v4(const struct sockaddr_in6 *address);
/* *to: the address, one of IPv4 in its mapped form, as in a GID. False: it is of neither. */
bool doctor_map(const struct sockaddr *from, struct sockaddr_in6 *to);

/* A socket of both IP versions (of IPv4 where the kernel has no other) and of this type, which
 * does not block; one of datagrams sends with Don't Fragment whatever the kernel knows of the
 * path. Bound to the port, 0 for any, or not, below 0. The descriptor, or a negative errno. */
int doctor_socket(int type, int port);

/* connect() of such a socket to an address, mapped or not; 0 or a negative errno. */
int doctor_connect(int fd, const struct sockaddr_in6 *to);

/* The route to a host. */
struct doctor_route {
	struct sockaddr_in6 to, from; /* IPv4 addresses in their mapped form */
	char interface[32];           /* "": not known */
	unsigned mtu;                 /* of the interface, 0: not known */
	unsigned path;                /* largest path MTU of RDMA that fits, 0: none */
};
/* 0 or a negative errno, with a finding. */
int doctor_route(const char *host, uint16_t port, struct doctor_route *route);
/* Whether path MTUs of RDMA fit into its interface. */
void doctor_path(const struct doctor_route *route);
/* The IP header and all of RoCE v2 but the payload. */
unsigned doctor_overhead(const struct doctor_route *route);

/* ---- what this host tells by itself ---- */

/* Findings about the port, addresses, buffers and filters. `serving`: the port is wanted
 * for doctor_serve() itself. Returns whether the port is free. */
bool doctor_local(uint16_t port, bool serving);
/* For iWARP, by this TCP port: addresses and filters. */
void doctor_local_stream(uint16_t port);

/* ---- with the other host ---- */

/* Answers probes until a signal (SIGINT, SIGTERM) or for `seconds`, 0 for ever; an exit
 * status. */
int doctor_serve(uint16_t port, unsigned seconds);
/* Sends probes and says what it finds. */
void doctor_remote(const struct doctor_route *route, uint16_t port, bool port_is_free);

/* For iWARP: calls that TCP port of the host, and says what it finds. */
void doctor_stream(const struct doctor_route *route, uint16_t port);
/* Takes such calls, as doctor_serve() does probes. */
int doctor_stream_serve(uint16_t port, unsigned seconds);

/* ---- of a server ---- */
/* From here on SIGINT and SIGTERM end doctor_serve_wait(). */
void doctor_serve_begin(void);
/* Waits for something on one of the sockets. False: a signal came, or it is `until`. */
bool doctor_serve_wait(struct pollfd *polled, unsigned count, uint64_t until);

#endif
