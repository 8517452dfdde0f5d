/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type infiniband: whether the settings fit together. */
#include "gateway/node/infiniband/infiniband.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WRS_LARGE 8192   /* beyond, not every adapter goes along */
#define SUBTRACTION 16   /* default of buffer_subtraction */
#define UD_SIZE_MAX 4096 /* largest MTU there is */

const char *const ib_polling_names[] = {
	[IB_POLLING_AUTO] = "auto",
	[IB_POLLING_BUSY] = "busy",
	[IB_POLLING_ADAPTIVE] = "adaptive",
	[IB_POLLING_EVENT] = "event",
	NULL,
};

static void check_address(struct config *c, const json_t *group, const char *text)
{
	char why[SOCKET_WHY_MAX];

	/* Unlike a socket: no empty host, no port 0 and no name of a port. */
	if (text && (*text == ':' || socket_address_check(LAYER_TCP_SERVER, text, why) ||
		     atoi(strrchr(text, ':') + 1) == 0))
		config_fail(c, group, "address",
			    "'%.80s' is no address, expected HOST:PORT, [IPV6]:PORT or *:PORT",
			    text);
}

static void check_peers(struct infiniband *ib, struct config *c)
{
	const json_t *group = ib->node->in.cfg, *list = ib->in.peers;

	if (list && (!json_is_array(list) || !json_array_size(list)))
		config_fail(c, group, "peers",
			    "expected a list of addresses of hosts and networks, such as ( \"10.0.0.2\", \"10.1.0.0/16\" )");
	else
		peers_parse(&ib->peers, c, group, list);
}

static void check_depths(struct config *c, const json_t *group, int64_t *max_wrs,
			 int64_t *cq_size)
{
	int64_t rounded = 1;

	while (rounded < *max_wrs)
		rounded *= 2;
	if (rounded != *max_wrs)
		config_warn(c, group, "max_wrs", "%lld is no power of two, using %lld",
			    (long long)*max_wrs, (long long)rounded);
	*max_wrs = rounded;
	if (rounded > WRS_LARGE)
		config_warn(c, group, "max_wrs",
			    "%lld is more than %d, which many adapters do not offer",
			    (long long)rounded, WRS_LARGE);
	if (*cq_size < rounded) {
		/* A completion queue that overflows ends the connection. */
		config_warn(c, group, "cq_size", "%lld is less than max_wrs, using %lld",
			    (long long)*cq_size, (long long)rounded);
		*cq_size = rounded;
	}
}

static void check_subtraction(struct node *n, struct config *c)
{
	struct infiniband *ib = n->private_data;
	int64_t vectorize = MAX(n->in.vectorize, 1);

	if (ib->in.buffer_subtraction == 0)
		ib->in.buffer_subtraction =
			MIN(MAX(SUBTRACTION, 2 * vectorize),
			    MAX(ib->in.max_wrs / 2, 2 * vectorize));
	if (ib->in.buffer_subtraction < 2 * vectorize)
		config_fail(c, n->in.cfg, "buffer_subtraction",
			    "%lld is too small, expected at least %lld (twice in.vectorize)",
			    (long long)ib->in.buffer_subtraction,
			    (long long)(2 * vectorize));
	else if (ib->in.buffer_subtraction >= ib->in.max_wrs - vectorize)
		config_fail(c, n->in.cfg, "buffer_subtraction",
			    "%lld is too large, expected less than %lld (in.max_wrs %lld minus in.vectorize); or raise in.max_wrs",
			    (long long)ib->in.buffer_subtraction,
			    (long long)(ib->in.max_wrs - vectorize),
			    (long long)ib->in.max_wrs);
}

static void check_ud_size(struct config *c, const struct node_direction *d)
{
	const unsigned most = (UD_SIZE_MAX - SAMPLE_WIRE_HEADER) /
			      sizeof(union signal_data);

	if (d->signals && d->signals->count > most)
		config_fail(c, d->cfg, "signals",
			    "%u values do not fit into one packet, with UD at most %u do",
			    d->signals->count, most);
}

/* A reader that sleeps by itself does so between two stamps. */
static void check_budget(struct infiniband *ib, struct config *c, json_t *cfg)
{
	if (ib->budget_path && !*ib->budget_path)
		config_fail(c, cfg, "budget", "expected the name of a file");
	else if (ib->budget_path && (ib->in.polling == IB_POLLING_EVENT ||
				     ib->in.polling == IB_POLLING_ADAPTIVE))
		config_fail(c, cfg, "budget",
			    "needs in.polling = \"auto\" or \"busy\", not \"%s\"",
			    ib_polling_names[ib->in.polling]);
}

int ib_check(struct node *n, struct config *c, json_t *cfg)
{
	struct infiniband *ib = n->private_data;
	unsigned before = config_errors(c);

	if (ib->mode == IB_UC && !ib_uc_available())
		config_fail(c, cfg,
			    json_object_get(cfg, "rdma_transport_mode") ?
				    "rdma_transport_mode" : "rdma_port_space",
			    "UC needs a librdmacm.so.1 with rdma_create_id2(), and the one that is loaded has none; busbar's own has it (see LD_LIBRARY_PATH), else RC and UD are possible");
	if (!ib->in.address && !ib->out.address)
		config_fail(c, cfg, NULL,
			    "needs in.address (where to listen), out.address (the peer) or both");
	check_address(c, n->in.cfg, ib->in.address);
	check_address(c, n->out.cfg, ib->out.address);
	check_peers(ib, c);
	check_depths(c, n->in.cfg, &ib->in.max_wrs, &ib->in.cq_size);
	check_depths(c, n->out.cfg, &ib->out.max_wrs, &ib->out.cq_size);
	check_subtraction(n, c);
	check_budget(ib, c, cfg);
	if (ib->out.periodic_signaling == 0)
		ib->out.periodic_signaling = ib->out.max_wrs / 2;
	if (ib->out.periodic_signaling > ib->out.max_wrs / 2)
		config_fail(c, n->out.cfg, "periodic_signaling",
			    "%lld is more than half of out.max_wrs (%lld): a completion is taken one period late, so the send queue would run full; expected at most %lld",
			    (long long)ib->out.periodic_signaling,
			    (long long)ib->out.max_wrs,
			    (long long)ib->out.max_wrs / 2);
	if (ib->mode == IB_UD) {
		check_ud_size(c, &n->in);
		check_ud_size(c, &n->out);
	}
	return config_errors(c) > before ? -EINVAL : 0;
}
