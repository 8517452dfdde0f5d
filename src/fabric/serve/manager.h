/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet manager inside of the fabric's process (`--sm auto`): that of fabric/manager, at the port of the
 * first host that has a link. A manager that is plugged in, such as opensm, takes its place with
 * `--sm none`.
 */
#ifndef FABRIC_SERVE_MANAGER_H
#define FABRIC_SERVE_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

struct agent_address;
struct manager_report;
struct serve;
struct serve_manager;

/* 0 with *out, or -ENOMEM. Its first sweep is due at once. */
int serve_manager_open(struct serve *s, struct serve_manager **out);
void serve_manager_close(struct serve_manager *m);

/* A link has changed: another sweep is due soon. */
void serve_manager_link(struct serve_manager *m, uint64_t now_ns);
/* A MAD has come to a host; true: it is the manager's. */
bool serve_manager_deliver(struct serve_manager *m, uint32_t node, uint8_t port, const uint8_t *mad,
			   const struct agent_address *from);
uint64_t serve_manager_next_ns(const struct serve_manager *m);
void serve_manager_tick(struct serve_manager *m, uint64_t now_ns);
/* How many sweeps have ended, and what the last one came to (zeros: none has). */
uint64_t serve_manager_sweeps(const struct serve_manager *m, struct manager_report *last);
/* Has the first sweep ended? */
bool serve_manager_is_done(const struct serve_manager *m);

#endif
