/* SPDX-License-Identifier: BSD-2-Clause */
/* What the verbs of `busbar ripc` share: options of the instance, errors, Ctrl-C. */
#ifndef CLI_RIPC_COMMON_H
#define CLI_RIPC_COMMON_H

#include <busbar/ripc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "cli/json_out.h"
#include "util/options.h"

/* The options of an instance, at the end of a table; `type` has a member `config`. */
#define RIPC_OPTIONS(type) \
	{ "-a, --address ADDRESS: local IP address of the adapter", OPTION_TEXT(type, config.address) }, \
	{ "-r, --resolver HOW: multicast, broadcast, hosts:FILE, rendezvous:HOST:PORT", \
	  OPTION_TEXT(type, config.resolver) }, \
	{ "--resolver-port N: UDP port of multicast and broadcast (15511)", \
	  OPTION_WHOLE(type, config.resolver_port, 1, UINT16_MAX) }, \
	{ "--secret-file FILE: only instances with the same one find each other", \
	  OPTION_TEXT(type, config.secret_file) }, \
	{ "--short-by KIND: short messages by connection or datagram", \
	  OPTION_TAKE(type, config.short_by, ripc_take_short_by) }, \
	{ "--poll US: how long a waiting call polls before it sleeps (50)", \
	  OPTION_WHOLE(type, config.poll_us, 1, UINT32_MAX) }, \
	{ .text = NULL }

int ripc_take_short_by(const struct option_given *g);
/* Of options that are times. */
#define RIPC_SECONDS(type, member) OPTION_SECONDS(type, member, 0, 3600)

/* Is it a number ("7", "0x7") rather than a name? */
bool ripc_is_id(const char *service, uint32_t *id);

/* Logs what failed with ripc_error(); returns CLI_FAILED. */
int ripc_failed(const char *what, int err);
/* An instance; logged. */
int ripc_common_open(const struct ripc_config *c, struct ripc **out);
/* The number of a service by name or number; logged. */
int ripc_common_find(struct ripc *r, const char *service, uint32_t *id);
/* A service of this process, by name or number; logged. */
int ripc_common_serve(struct ripc *r, const char *service, struct ripc_service **out);

/* Set by SIGINT and SIGTERM after ripc_common_catch(); the second one ends the process. */
extern atomic_bool ripc_interrupted;
void ripc_common_catch(void);
void ripc_common_signals(sigset_t *s);
/* Blocks them, for this thread and those made after; ripc_common_wait() waits for one.
 * Before ripc_common_open(). */
void ripc_common_block(void);
void ripc_common_wait(void);

/* The verbs, which ripc.c finds by these names. */
int cli_ripc_bridge(int argc, char **argv);
int cli_ripc_get(int argc, char **argv);
int cli_ripc_list(int argc, char **argv);
int cli_ripc_ping(int argc, char **argv);
int cli_ripc_rendezvous(int argc, char **argv);
int cli_ripc_serve(int argc, char **argv);
int cli_ripc_top(int argc, char **argv);

/* As members of `j`. */
void ripc_counters_json(const struct ripc_counters *n, struct cli_json *j);
void ripc_common_counters(struct ripc *r, struct cli_json *j);

#endif
