/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's own limits, measured in one short run: no transport on this machine can
 * be faster. Results of other benchmarks are given as multiples of these, because an
 * absolute figure from a shared machine means little.
 *
 * This is no hardware benchmark: each measurement takes a fraction of a second.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOOR_ROUNDS 15
#define FLOOR_MEASURES_MAX 32

struct hist;
struct floor_method;

struct floor_cpus {
	int first;  /* of the measuring process */
	int second; /* of its partner; -1: there is only one CPU */
};

/* Where a socket is. */
struct floor_host {
	char netns[64];      /* a name of `ip netns`; empty: the process' own namespace */
	struct in_addr address;
};

struct floor_setting {
	struct floor_cpus cpus;
	struct floor_host hosts[2]; /* of the measuring process' socket, of its partner's */
	uint64_t round_ns;   /* each of the rounds takes about as long */
};

/* What a measurement gives. */
struct floor_rounds {
	double value[FLOOR_ROUNDS];
	struct hist *trips;  /* ns of each round trip over sockets, else empty */
};

struct floor_result {
	double median, best; /* over FLOOR_ROUNDS rounds, in the unit below */
	double p50, p99;     /* of single round trips; 0: the measurement has none */
	int err;             /* negative errno: it could not be measured */
};

struct floor_measure {
	const char *name;    /* "cacheline_oneway_ns", also the JSON key */
	const char *label;   /* in the printed table */
	const char *unit;    /* "ns", "GB/s" or "%" */
	size_t size_bytes;   /* what one call moves, or steps a second; 0: there is no such thing */
	const struct floor_method *method; /* floor_method.h */
};

extern const struct floor_measure floor_measures[];
extern const size_t floor_measure_count;

/* Runs the calling thread there. 0 or a negative errno. */
int floor_pin(int cpu);
/* The first two CPUs that this process may use. 0 or a negative errno. */
int floor_default_cpus(struct floor_cpus *cpus);
/* "0,1": two numbers of CPUs; false: it is not. */
bool floor_cpus_parse(const char *text, struct floor_cpus *cpus);
/* The first two, loopback, and rounds with which all measurements take about four seconds. 0 or a
 * negative errno. */
int floor_default_setting(struct floor_setting *setting);
/* "A=10.77.0.1,B=10.77.0.2": two network namespaces with an address of each; false: it is not. */
bool floor_hosts_parse(const char *text, struct floor_host hosts[2]);
#define FLOOR_HOSTS_EXPECTED \
	"expected two network namespaces with an IPv4 address of each, such as A=10.77.0.1,B=10.77.0.2"

/* Measures entry `m`; restores the caller's CPU affinity. */
void floor_measure_run(const struct floor_measure *m,
		       const struct floor_setting *setting, struct floor_result *r);

/* Results in the order of floor_measures as an object of { "median", "best", "p50", "p99" } or
 * { "error" }; those that were not asked for have -ECANCELED and are left out. NULL: no memory. */
json_t *floor_json(const struct floor_cpus *cpus, const struct floor_result *results);

/* `busbar bench floor`. */
int bench_floor_main(int argc, char **argv);

#endif
