/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `iec61850-9-2`: samples as sampled values, in frames of Ethernet (IEC 61850-9-2,
 * with the profiles 9-2LE and IEC 61869-9) or, routed (R-SV), in datagrams of UDP. Sockets send
 * what paths write (publisher.c) and receive what paths read (subscriber.c); the messages are in
 * wire/grid/sv.h.
 */
#ifndef GATEWAY_NODE_IEC61850_9_2_SAMPLED_VALUES_H
#define GATEWAY_NODE_IEC61850_9_2_SAMPLED_VALUES_H

#include "gateway/node/iec61850-9-2/counting.h"
#include "gateway/node/iec61850-9-2/values.h"
#include "gateway/part/ethernet.h"
#include "gateway/part/fault.h"
#include "gateway/part/routing.h"
#include "gateway/part/socket_wait.h"
#include "gateway/plugin/node.h"
#include "gateway/scl/choice.h"
#include "wire/grid/sv.h"

/* Behind the figures of fault.h. */
enum sv_figure {
	SV_FIGURE_LOST = FAULT_KINDS,
	SV_FIGURE_REPEATED,
	SV_FIGURE_REORDERED,
	SV_FIGURE_RESTARTS,
	SV_FIGURE_WRONG_LENGTH,
	SV_FIGURE_WRONG_CONF_REV,
	SV_FIGURE_WRONG_SMP_CNT,
	SV_FIGURE_NOT_SYNCHRONIZED,
	SV_FIGURE_SIMULATED,
	SV_FIGURE_NOT_SIMULATED,
	SV_FIGURE_OTHERS,
	SV_FIGURE_BAD_QUALITY,
	SV_FIGURE_SMP_SYNCH,
	SV_FIGURE_SMP_RATE,
	SV_FIGURE_MESSAGES_RECEIVED,
	SV_FIGURE_MESSAGES_SENT,
	SV_FIGURE_CLIPPED,
	SV_FIGURE_ASTRAY,
	SV_FIGURE_SECURED,
	SV_FIGURE_UNVERIFIED,
	SV_FIGURES,
};

struct sv_vlan {
	bool enabled;
	int64_t id, priority;
};

struct sv_in_settings {
	const char *sv_id;
	int64_t app_id, conf_rev, smp_rate;
	bool has_conf_rev, check_dst_address, simulation;
	struct routing routing;
	json_t *scl_cfg;
	struct scl_choice scl;
};

struct sv_out_settings {
	const char *sv_id, *datset;
	int64_t conf_rev, smp_rate, asdus;
	double frequency;
	int smp_mod, smp_synch;
	bool has_smp_mod, refr_tm, simulation, flush, announce;
	struct routing routing;
	struct socket_address to; /* of routed messages */
	json_t *vlan_cfg, *scl_cfg;
	struct scl_choice scl;
	/* Older names of VILLASnode. */
	const char *svid;
	int64_t confrev, smprate, vlan_id, vlan_priority;
	int smpmod;
};

struct sv_subscriber;
struct sv_publisher;

struct sv_node {
	struct node *node;
	const char *interface, *capture, *dst_text;
	int64_t app_id;
	uint8_t dst[ETHERNET_MAC];
	struct sv_in_settings in;
	struct sv_out_settings out;
	struct sv_vlan vlan;
	struct scl_files files;
	struct data_set *in_set, *out_set; /* NULL: the direction is closed, or not known yet */

	struct ethernet ethernet; /* unless both directions are routed */
	struct routed in_socket, out_socket; /* of those that are */
	struct socket_wait wait;
	struct fault_counters faults;
	struct sv_subscriber *subscriber;
	struct sv_publisher *publisher;
};

/* engineering.c: settings of the files that `in.scl` and `out.scl` name; keys of the configuration
 * come before them. After all keys are read; then the data sets, where the configuration has no
 * signals. 0; -EINVAL after config_fail(); or -ENOMEM. */
int sv_take_scl(struct sv_node *v, struct config *c, const json_t *cfg);
int sv_take_scl_data(struct sv_node *v, struct config *c);

/* Of the socket that is read. */
static inline int sv_in_fd(const struct sv_node *v)
{
	return v->in.routing.enabled ? v->in_socket.fd : v->ethernet.fd;
}

/* subscriber.c. 0 or a negative errno after a message in the log; close undoes a part, too. */
int sv_subscriber_open(struct sv_node *v);
void sv_subscriber_close(struct sv_node *v);
int sv_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);
int sv_poll_fds(struct node *n, int fds[], int max);

/* publisher.c; likewise. Closing sends what waits for more samples. */
int sv_publisher_open(struct sv_node *v);
void sv_publisher_close(struct sv_node *v);
int sv_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);
/* Behind how many samples smpCnt begins at 0 again; 0: that is more than it can count. */
uint32_t sv_out_wrap(const struct sv_out_settings *s);

#endif
