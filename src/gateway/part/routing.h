/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of routed GOOSE and sampled values, in one direction of a node: the keys, and the socket
 * (routed.h) that they stand for.
 */
#ifndef GATEWAY_PART_ROUTING_H
#define GATEWAY_PART_ROUTING_H

#include "gateway/config/config.h"
#include "gateway/part/routed.h"

struct routing {
	bool enabled;
	const char *local_address, *remote_address;
	int64_t local_port, remote_port, ttl, session_version;
	json_t *groups_cfg;
	struct socket_address local;
	struct socket_address *groups; /* to join */
	unsigned group_count;
};

#define ROUTING_ADDRESS "'type': 'string', 'pattern': '^[0-9a-fA-F:.]+$'"
#define ROUTING_ADDRESSES \
	"'anyOf': [{'type': 'null'}, {" ROUTING_ADDRESS "}, " \
	"{'type': 'array', 'items': {" ROUTING_ADDRESS "}}]"

/* Keys of a direction, whose struct routing stands at `at` of the target. */
enum { ROUTING_IN_KEYS = 4, ROUTING_OUT_KEYS = 7 };
#define ROUTING_KEYS_IN(at) \
	{ "routed", CONFIG_BOOL, (at) + offsetof(struct routing, enabled), "false", \
	  .help = "Messages come over UDP, not in frames of Ethernet" }, \
	{ "local_address", CONFIG_STRING, (at) + offsetof(struct routing, local_address), "0.0.0.0", \
	  .help = "Of routed messages: own address, in numbers, of IPv4 or IPv6" }, \
	{ "local_port", CONFIG_INT, (at) + offsetof(struct routing, local_port), "102", \
	  .min = 1, .max = 65535, .help = "Own port" }, \
	{ "multicast_groups", CONFIG_JSON, (at) + offsetof(struct routing, groups_cfg), \
	  .form = ROUTING_ADDRESSES, .help = "Addresses of groups to join" }
#define ROUTING_KEYS_OUT(at) \
	{ "routed", CONFIG_BOOL, (at) + offsetof(struct routing, enabled), "false", \
	  .help = "Messages are sent over UDP, not in frames of Ethernet" }, \
	{ "local_address", CONFIG_STRING, (at) + offsetof(struct routing, local_address), "0.0.0.0", \
	  .help = "Of routed messages: own address, in numbers, of IPv4 or IPv6" }, \
	{ "local_port", CONFIG_INT, (at) + offsetof(struct routing, local_port), "0", \
	  .min = 0, .max = 65535, .help = "Own port; 0: any" }, \
	{ "remote_address", CONFIG_STRING, (at) + offsetof(struct routing, remote_address), \
	  .help = "Where to send, in numbers: a host or a group" }, \
	{ "remote_port", CONFIG_INT, (at) + offsetof(struct routing, remote_port), "102", \
	  .min = 1, .max = 65535, .help = "The port there" }, \
	{ "ttl", CONFIG_INT, (at) + offsetof(struct routing, ttl), "64", .min = 1, .max = 255, \
	  .help = "How many routers may pass on what is sent to a group" }, \
	{ "session_version", CONFIG_INT, (at) + offsetof(struct routing, session_version), "2", \
	  .min = 1, .max = 2, \
	  .help = "Of the header: 1: IEC TR 61850-90-5; 2: IEC 61850-8-1, edition 2.1" }

/* Checks what config_unpack() has read from `at`, and makes addresses of it. 0; -EINVAL after
 * config_fail(); or -ENOMEM. */
int routing_parse(struct routing *r, struct config *c, const json_t *at, bool out);
/* Where `key` of `at` says to send. Likewise. */
int routing_parse_to(const struct routing *r, struct config *c, const json_t *at, const char *key,
		     const char *text, struct socket_address *to);
/* Joins one more group, if `text` (NULL allowed) is the address of one. 0 or -ENOMEM. */
int routing_join(struct routing *r, const char *text);
void routing_free(struct routing *r);

/* Opens the socket. `interface`: of groups; NULL: the kernel chooses. 0 or a negative errno, with
 * the reason in why[SOCKET_WHY_MAX]. */
int routing_open(const struct routing *r, const char *interface, bool out, struct routed *socket,
		 char *why);

#endif
