/* SPDX-License-Identifier: BSD-2-Clause */
/* What the verbs of `busbar ripc` share: options of the instance, errors, Ctrl-C. */
#ifndef CLI_RIPC_COMMON_H
#define CLI_RIPC_COMMON_H

#include <busbar/ripc.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "cli/json_out.h"

/* Long options of all verbs; the short ones are in RIPC_COMMON_SHORT. */
#define RIPC_COMMON_SHORT "a:r:h"
#define RIPC_COMMON_LONG \
	{ "address", required_argument, NULL, 'a' }, \
	{ "resolver", required_argument, NULL, 'r' }, \
	{ "secret-file", required_argument, NULL, 0x101 }, \
	{ "short-by", required_argument, NULL, 0x102 }, \
	{ "poll", required_argument, NULL, 0x103 }, \
	{ "resolver-port", required_argument, NULL, 0x104 }, \
	{ "help", no_argument, NULL, 'h' }
#define RIPC_COMMON_HELP \
	"  -a, --address ADDRESS    local IP address of the adapter\n" \
	"  -r, --resolver HOW       multicast, broadcast, hosts:FILE, rendezvous:HOST:PORT\n" \
	"      --resolver-port N    UDP port of multicast and broadcast (15511)\n" \
	"      --secret-file FILE   only instances with the same one find each other\n" \
	"      --short-by KIND      short messages by connection or datagram\n" \
	"      --poll US            how long a waiting call polls before it sleeps (50)\n" \
	"  -h, --help               this text\n"

/* Takes one of these options. False: the value is wrong, which was logged; or it is not one
 * of these, and getopt has said so. Not for 'h'. */
bool ripc_common_option(struct ripc_config *c, int option, const char *value);
/* Whole numbers, logged if not. */
bool ripc_number(const char *option, const char *text, uint64_t min, uint64_t max,
		 uint64_t *out);
/* Seconds, with a fraction, as nanoseconds. */
bool ripc_seconds(const char *option, const char *text, double max, uint64_t *ns);
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
/* Blocks them, for this thread and those made after; ripc_common_wait() waits for one.
 * Before ripc_common_open(). */
void ripc_common_block(void);
void ripc_common_wait(void);

/* Those that are not 0, or as members of `j`. */
void ripc_common_counters(struct ripc *r, struct json_out *j);

#endif
