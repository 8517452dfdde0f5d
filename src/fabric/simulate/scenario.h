/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An experiment on a subnet: its description, how its links, switches and adapters behave, which traffic
 * passes it, which faults come, and what is expected of the result. It is read from text, of which each line
 * has a key and values (busbar-fabric(1), SCENARIOS); run.h carries it out.
 */
#ifndef FABRIC_SIMULATE_SCENARIO_H
#define FABRIC_SIMULATE_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/topology/topology.h"

#define SIMULATE_NAME_MAX 32
#define SIMULATE_TITLE_MAX 160
#define SIMULATE_TRAFFIC_MAX 64
#define SIMULATE_FAULTS_MAX 1024
#define SIMULATE_EXPECT_MAX 64
#define SIMULATE_RULES_MAX 256
#define SIMULATE_ARBITRATION_MAX 64
#define SIMULATE_TABLE_MAX 1024
#define SIMULATE_TEXT_MAX (1u << 20)
#define SIMULATE_TIME_PS_MAX UINT64_C(1000000000000000) /* 1000 seconds: of an experiment */

enum simulate_routing {
	SIMULATE_MIN_HOP,
	SIMULATE_UP_DOWN,
	SIMULATE_LASH, /* a service level for each layer, which the path decides */
	SIMULATE_DFSSSP, /* as well */
};

enum simulate_pattern {
	SIMULATE_LISTED,       /* each source to each target, or pairs if there are as many of both */
	SIMULATE_ALL_TO_ALL,   /* each host to each other one in turn */
	SIMULATE_PERMUTATION,  /* each host to one other, each host from one other, at random */
	SIMULATE_SHIFT,        /* each host to the one N places further */
	SIMULATE_BIT_REVERSAL, /* host i to the host whose number has the bits of i in reverse */
	SIMULATE_UNIFORM,      /* each message to a host at random */
	SIMULATE_HOT_SPOT,     /* the same, but a share of the messages to one host */
};

struct simulate_traffic {
	char name[SIMULATE_NAME_MAX + 1];
	unsigned line;
	enum simulate_pattern pattern;
	struct topology_end *sources, *targets; /* ports of adapters */
	uint32_t source_count, target_count;
	uint32_t shift;
	uint32_t hot_target;     /* index into `targets` */
	double hot_share;
	double load;             /* of the sender's link, with headers; 0: as much as it takes */
	bool random_arrivals;    /* gaps between messages from 0 to twice the mean */
	uint32_t message_bytes;
	uint32_t packet_bytes;   /* payload; 0: the MTU */
	uint32_t window;         /* packets of a sender that may be on their way; 0: no limit */
	uint64_t messages;       /* of each sender, to each of its targets if it takes them in turn; 0: no limit */
	uint64_t start_ps, stop_ps; /* FABRIC_NEVER: until the end */
	uint8_t sl;
};

enum simulate_fault_kind { SIMULATE_CUT, SIMULATE_JOIN, SIMULATE_BIT_ERRORS };

struct simulate_fault {
	uint64_t at_ps;
	enum simulate_fault_kind kind;
	struct topology_end end;
	double rate;
};

struct simulate_weight {
	uint8_t lane, weight;
};

struct simulate_arbitration { /* at all ports, or at one (node TOPOLOGY_NONE: all) */
	struct topology_end at;
	bool high;
	uint8_t count;
	struct simulate_weight entries[SIMULATE_ARBITRATION_MAX];
};

struct simulate_congestion { /* annex A10; see fabric_set_congestion_switch(), _host() */
	bool at_switches, at_hosts;
	uint32_t threshold, marking_rate, marked_bytes;
	bool victims;
	uint32_t timer, increase, trigger, minimum, limit;
	uint16_t table[SIMULATE_TABLE_MAX];
	uint32_t table_count;
};

enum simulate_figure {
	/* Of traffic. */
	SIMULATE_RATE,         /* Gbit/s of all its flows */
	SIMULATE_SHARE,        /* its rate by its fair share */
	SIMULATE_LEAST_SHARE,  /* of the flow with the least */
	SIMULATE_LATENCY,      /* median of packets, us */
	SIMULATE_LATENCY_99,
	/* Of all. */
	SIMULATE_DEADLOCKS,
	SIMULATE_CIRCLES,      /* channels of a circle in the paths */
	SIMULATE_LOST,
	SIMULATE_REORDERED,
	SIMULATE_MARKED,
	SIMULATE_LAYERS,
	SIMULATE_CARRIED,      /* rate of all traffic by what the senders' links carry */
	SIMULATE_FIGURES,
};

enum simulate_relation { SIMULATE_BELOW, SIMULATE_ABOVE, SIMULATE_EQUAL };

struct simulate_expect { /* figure of a [/ figure of b] relation value, of equal ones within a tolerance */
	unsigned line;
	enum simulate_figure figure;
	int a, b;              /* traffic; -1: none */
	enum simulate_relation relation;
	double value, tolerance;
	char text[SIMULATE_TITLE_MAX + 1];
};

struct simulate_scenario {
	char title[SIMULATE_TITLE_MAX + 1];
	char topology_name[256];
	struct topology *topology;
	enum simulate_routing routing;
	/* Links and ports. */
	uint32_t lanes, high_limit, buffer_bytes, mtu, hoq_life;
	uint8_t lane_of_level[16];
	struct simulate_arbitration *rules;
	uint32_t rule_count;
	/* Switches. */
	uint64_t latency_ps;
	bool store_and_forward, output_queues;
	struct simulate_congestion congestion;
	/* Time. */
	uint64_t seed, duration_ps, measure_from_ps, sample_ps, still_ps;
	bool goes_on; /* after a deadlock */
	struct simulate_traffic *traffic;
	struct simulate_fault *faults; /* in the order of their times */
	struct simulate_expect *expect;
	uint32_t traffic_count, fault_count, expect_count;
	unsigned value_lines[16]; /* where the lines of one value stood; the reader's */
};

/*
 * Reads a scenario. `name` is its file's name, for messages; `folder` where topology files with a relative path
 * are looked for; NULL: none is read, only families. On success the caller frees *s. -EINVAL: `why` says what
 * is wrong, in which line and at which key, and what would be right; -ENOMEM; or that of the topology's file.
 */
int simulate_scenario_read(const char *text, size_t bytes, const char *name, const char *folder,
			   struct simulate_scenario **s, char *why, size_t why_bytes);
int simulate_scenario_read_file(const char *path, struct simulate_scenario **s, char *why, size_t why_bytes);
void simulate_scenario_free(struct simulate_scenario *s);

/* The words of a scenario for figures and patterns, as results name them. */
const char *simulate_figure_name(enum simulate_figure figure);
const char *simulate_pattern_name(enum simulate_pattern pattern);
const char *simulate_routing_name(enum simulate_routing routing);

#endif
