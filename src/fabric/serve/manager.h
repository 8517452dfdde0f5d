/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A manager inside of the fabric's process (`--sm auto`): it gives LIDs, writes forwarding tables and makes
 * the ports active, by directed-route SMPs from one of the hosts, at the start and after each change of
 * a link. It knows the description and discovers nothing. It answers no question of subnet
 * administration and knows one partition; all multicast LIDs of its first block reach all hosts. A
 * subnet manager such as opensm, which is plugged in, does more (`--sm none`).
 */
#ifndef FABRIC_SERVE_MANAGER_H
#define FABRIC_SERVE_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

struct agent_address;
struct serve;
struct serve_manager;

/* 0 with *out, or -ENOMEM, or -ENOSPC: there are more ports than LIDs. Its first sweep is due at once. */
int serve_manager_open(struct serve *s, struct serve_manager **out);
void serve_manager_close(struct serve_manager *m);

/* A link has changed: another sweep is due soon. */
void serve_manager_link(struct serve_manager *m, uint64_t now_ns);
/* A MAD has come to a host; true: it is the manager's. */
bool serve_manager_deliver(struct serve_manager *m, uint32_t node, uint8_t port, const uint8_t *mad,
			   const struct agent_address *from);
uint64_t serve_manager_next_ns(const struct serve_manager *m);
void serve_manager_tick(struct serve_manager *m, uint64_t now_ns);
/* Have all ports that can be reached been set once? */
bool serve_manager_is_done(const struct serve_manager *m);

#endif
