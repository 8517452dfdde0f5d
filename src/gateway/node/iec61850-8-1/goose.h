/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `iec61850-8-1`: values of samples in messages of GOOSE, in frames of Ethernet or, routed
 * (R-GOOSE), in datagrams of UDP. What paths write is sent when it changes, and again and again
 * (send.c, publisher.h); what paths read comes in messages of the control blocks that the
 * configuration names (receive.c, subscriber.h).
 */
#ifndef GATEWAY_NODE_IEC61850_8_1_GOOSE_H
#define GATEWAY_NODE_IEC61850_8_1_GOOSE_H

#include <pthread.h>

#include "gateway/node/iec61850-8-1/mms.h"
#include "gateway/node/iec61850-8-1/publisher.h"
#include "gateway/node/iec61850-8-1/subscriber.h"
#include "gateway/part/ethernet.h"
#include "gateway/part/fault.h"
#include "gateway/part/routing.h"
#include "gateway/part/socket_wait.h"
#include "gateway/plugin/node.h"
#include "gateway/scl/choice.h"

/* Behind the figures of fault.h; those of verdicts are in their order. */
enum goose_figure {
	GOOSE_FIGURE_VERDICT = FAULT_KINDS,
	GOOSE_FIGURE_RECEIVED = GOOSE_FIGURE_VERDICT + GOOSE_VERDICTS,
	GOOSE_FIGURE_OTHERS,
	GOOSE_FIGURE_LOST_CHANGES,
	GOOSE_FIGURE_LOST_MESSAGES,
	GOOSE_FIGURE_EXPIRED,
	GOOSE_FIGURE_RESTARTED,
	GOOSE_FIGURE_REVISED,
	GOOSE_FIGURE_MISMATCHED,
	GOOSE_FIGURE_WRONG_REVISION,
	GOOSE_FIGURE_SECURED,
	GOOSE_FIGURE_UNVERIFIED,
	GOOSE_FIGURE_SENT,
	GOOSE_FIGURE_CHANGES_SENT,
	GOOSE_FIGURE_UNCHANGED,
	GOOSE_FIGURE_FAILED,
	GOOSE_FIGURES,
};

/* Things that are said of a control block, each at most once a second; those of verdicts first. */
enum goose_saying {
	GOOSE_SAY_EXPIRED = GOOSE_VERDICTS,
	GOOSE_SAY_LOST,
	GOOSE_SAY_RESTARTED,
	GOOSE_SAY_REVISED,
	GOOSE_SAY_MISMATCHED,
	GOOSE_SAY_WRONG_REVISION,
	GOOSE_SAYINGS,
};

enum goose_trigger {
	GOOSE_ALWAYS,
	GOOSE_ON_CHANGE,
};

/* A control block that is read. */
struct goose_source {
	const char *name; /* in the configuration */
	json_t *scl_cfg;
	struct scl_choice scl;
	const char *reference, *dst_text;
	int64_t app_id;   /* 0: any */
	int64_t revision; /* confRev, */
	bool has_revision; /* which is the only one that is used */
	int trigger;
	uint8_t dst[ETHERNET_MAC];
	unsigned needed;  /* values that a message has at least */
	struct goose_subscriber machine;
	uint64_t say_ns[GOOSE_SAYINGS]; /* when it may be said again */
};

/* Structures and arrays in each other, at most: as many as are read. */
#define GOOSE_GROUPS_MAX (GOOSE_DEPTH_MAX - 1)
/* Entries of a data set that is written, with those in structures. */
#define GOOSE_ENTRIES_MAX 4096

/* From where a signal comes. */
struct goose_mapping {
	unsigned source, index;
	unsigned depth;                     /* of the value in structures, 0: it is in none; */
	unsigned member[GOOSE_GROUPS_MAX];  /* on each level, which member */
	const struct mms_type *type;
};

/* An entry of a data set that is written. */
struct goose_entry {
	const struct mms_type *type; /* NULL: a structure or an array, */
	enum goose_type group;       /* which of them, */
	unsigned first, part_count;  /* and which entries are its members */
	bool optional;         /* without such a signal it holds `value`, or the time of the change */
	bool stamp;            /* it holds the time of the last change */
	unsigned bits;         /* of a bit string */
	const char *signal;    /* NULL: `value` is constant */
	unsigned index;        /* of the signal in samples */
	enum signal_type from; /* its type */
	struct goose_value value;
	const json_t *cfg;     /* where it is configured */
};

struct goose_vlan {
	bool enabled;
	int64_t id, priority;
};

struct goose_retransmission {
	double min_s, max_s, factor;
};

/* A control block that is written. */
struct goose_sink {
	const char *id, *reference, *dataset, *dst_text;
	json_t *data_cfg, *scl_cfg, *vlan_cfg, *retransmission_cfg;
	struct scl_choice scl;
	struct goose_vlan vlan;
	struct goose_retransmission retransmission;
	int64_t app_id, revision, allowed_live_ms, burst;
	uint8_t dst[ETHERNET_MAC];
	struct socket_address to; /* of routed messages */
	/* Members of a structure stand side by side, behind the entry of the structure. */
	struct goose_entry *data;
	unsigned count;        /* of the data set, without members */
	unsigned total;        /* with them */
	struct goose_publisher machine;
	struct goose_value *values, *next; /* that are published; of the sample that is written */
	struct utc_time time;              /* of the last change */
	bool unsent;                       /* no message of the last change could be sent, */
	int error;                         /* for this reason, an errno */
	uint8_t header[ETHERNET_HEADER_MAX];
	size_t header_len;
};

struct goose_receiver;

struct goose_node {
	struct node *node;
	json_t *session_keys, *key_id; /* of signatures, which are refused */
	struct scl_files files;
	struct {
		const char *interface;
		struct routing routing;
		bool with_timestamp, simulation;
		json_t *subscribers;
		struct goose_source *sources;
		unsigned source_count;
		struct goose_mapping *mappings; /* of each signal */
		unsigned mapping_count;
	} in;
	struct {
		const char *interface;
		struct routing routing;
		double resend_interval_s;
		bool simulation;
		json_t *publishers, *vlan_cfg, *retransmission_cfg;
		struct goose_vlan vlan;
		struct goose_retransmission retransmission;
		struct goose_sink *sinks;
		unsigned sink_count;
	} out;
	struct socket_wait wait;
	struct fault_counters faults;
	struct goose_receiver *receiver;

	/* Sending; all below the lock. */
	struct ethernet ethernet;
	struct routed socket;
	uint32_t datagrams;    /* sent; the number of the session */
	pthread_mutex_t lock;
	pthread_t thread;
	bool running, ending;
	int wake_fd;
	uint64_t planned_ns;   /* until when the thread sleeps */
	uint64_t say_ns;       /* when a failure may be said again */
	uint8_t *frame;
	size_t frame_size;
};

/* settings.c */
extern const struct config_key goose_keys[], goose_in_keys[], goose_out_keys[], goose_signal_keys[];
enum {
	GOOSE_KEYS = 1,
	GOOSE_IN_KEYS = 4 + ROUTING_IN_KEYS,
	GOOSE_OUT_KEYS = 7 + ROUTING_OUT_KEYS,
	GOOSE_SIGNAL_KEYS = 5,
};
enum { GOOSE_VLAN_KEYS = 3, GOOSE_RETRANSMISSION_KEYS = 3 };
extern const struct config_key goose_vlan_keys[], goose_retransmission_keys[];
int goose_parse(struct node *n, struct config *c, json_t *cfg);
int goose_check(struct node *n, struct config *c, json_t *cfg);
int goose_check_signals(struct node *n, struct config *c, json_t *cfg);
void goose_settings_free(struct goose_node *g);

/* data.c */
bool goose_is_given(const json_t *at, const char *key);
/* NULL after config_fail(). `more`: which types there are besides those that signals can hold, as
 * the end of a message; "": no others may be used. */
const struct mms_type *goose_type_parse(struct config *c, const json_t *at, const char *name,
					const char *more);
/* The data set of a publisher. 0, -EINVAL after config_fail(), or -ENOMEM. */
int goose_data_parse(struct goose_sink *s, struct config *c, const json_t *at);

int goose_data_allocate(struct goose_sink *s, size_t count);

/* signals.c: 0, -EINVAL after config_fail(), or -ENOMEM. */
int goose_signals_parse(struct goose_node *g, struct config *c);

/* engineering.c: likewise; without effect where there is no `scl`. */
int goose_source_from_scl(struct goose_node *g, struct goose_source *s, struct config *c,
			  const json_t *at);
int goose_sink_from_scl(struct goose_node *g, struct goose_sink *s, struct config *c,
			const json_t *at);
void goose_sending_from_scl(struct goose_sink *s);
int goose_data_from_scl(struct goose_sink *s, struct config *c, const json_t *at);

/* receive.c. 0 or a negative errno after a message in the log; close undoes a part, too. */
int goose_receiver_open(struct goose_node *g);
void goose_receiver_close(struct goose_node *g);
int goose_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);
void goose_sleep(struct node *n, uint64_t until_ns);
int goose_poll_fds(struct node *n, int fds[], int max);

/* send.c; likewise. */
int goose_sender_open(struct goose_node *g);
void goose_sender_close(struct goose_node *g);
int goose_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);

static inline bool goose_can_read(const struct node *n)
{
	return n->in.present && n->in.enabled;
}

static inline bool goose_can_write(const struct node *n)
{
	return n->out.present && n->out.enabled;
}

#endif
