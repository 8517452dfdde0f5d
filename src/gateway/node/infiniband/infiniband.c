/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type infiniband: keys and callbacks. Gateway section 4; the keys
 * and defaults are those that laboratories have in their files.
 */
#define LOG_ROOM "gateway/infiniband"

#include "gateway/node/infiniband/infiniband.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"
#include "util/wakeup.h"

#define WRS_MAX 32768 /* no adapter has deeper queues */
#define WAIT_MS 100   /* of a read without a connection */

#define IN(field) offsetof(struct infiniband, in.field)
#define OUT(field) offsetof(struct infiniband, out.field)

/*
 * The values of rdma_transport_mode and rdma_port_space, the default first. UC: in the port space
 * of InfiniBand the kernel lets the caller choose the type; that of IPoIB, whose identifiers it
 * makes datagrams, is what VILLASnode's use, with libraries of its own.
 */
static const char *const service_names[] = {
	"RC", "UC", "UD", "RDMA_PS_TCP", "RDMA_PS_IB", "RDMA_PS_IPOIB", "RDMA_PS_UDP",
	"RDMA_PS_RC", "RDMA_PS_UC", "RDMA_PS_UD", NULL,
};

static const struct service {
	enum ib_mode mode;
	enum rdma_port_space space;
} services[] = {
	{ IB_RC, RDMA_PS_TCP }, { IB_UC, RDMA_PS_IB }, { IB_UD, RDMA_PS_UDP },
	{ IB_RC, RDMA_PS_TCP }, { IB_UC, RDMA_PS_IB }, { IB_UC, RDMA_PS_IPOIB },
	{ IB_UD, RDMA_PS_UDP },
	{ IB_RC, RDMA_PS_TCP }, { IB_UC, RDMA_PS_IB }, { IB_UD, RDMA_PS_UDP },
};

static const struct config_key keys[] = {
	{ .name = "rdma_transport_mode", .type = CONFIG_ENUM, .names = service_names,
	  .offset = offsetof(struct infiniband, transport_mode),
	  .help = "Service type: RC (reliable connection, the default), UC (unreliable connection) or UD (unreliable datagram)" },
	{ .name = "rdma_port_space", .type = CONFIG_ENUM, .names = service_names,
	  .offset = offsetof(struct infiniband, port_space),
	  .help = "Other name of rdma_transport_mode; also takes RDMA_PS_TCP (RC), RDMA_PS_IB or RDMA_PS_IPOIB (UC) and RDMA_PS_UDP (UD)" },
	{ .name = "budget", .type = CONFIG_STRING,
	  .offset = offsetof(struct infiniband, budget_path),
	  .help = "File into which the node writes, when it stops, the times of the parts of its last reads and writes; for the benchmarks" },
};

static const struct config_key in_keys[] = {
	{ .name = "address", .type = CONFIG_STRING, .offset = IN(address),
	  .help = "Local address HOST:PORT; selects the adapter, and where to listen" },
	{ .name = "peers", .type = CONFIG_JSON, .offset = IN(peers),
	  .help = "List of the hosts (\"10.0.0.2\") and networks (\"10.1.0.0/16\") that may call; without this key all may" },
	{ .name = "max_wrs", .type = CONFIG_INT, .offset = IN(max_wrs),
	  .fallback = "128", .min = 1, .max = WRS_MAX,
	  .help = "Depth of the receive queue; rounded up to a power of two" },
	{ .name = "cq_size", .type = CONFIG_INT, .offset = IN(cq_size),
	  .fallback = "128", .min = 1, .max = 2 * WRS_MAX,
	  .help = "Depth of the receive completion queue, at least max_wrs" },
	{ .name = "buffer_subtraction", .type = CONFIG_INT,
	  .offset = IN(buffer_subtraction), .min = 0, .max = WRS_MAX,
	  .help = "The receive queue is filled up to max_wrs minus this before data is taken; at least twice and by default 16 or twice in.vectorize" },
	{ .name = "polling", .type = CONFIG_ENUM, .offset = IN(polling),
	  .fallback = "auto", .names = ib_polling_names,
	  .help = "How reading waits: auto (as seems best), busy (asks the adapter without end, takes a processor), event (sleeps until the adapter tells) or adaptive (busy for in.spin, then event)" },
	{ .name = "spin", .type = CONFIG_INT, .offset = IN(spin_us),
	  .fallback = "50", .min = 0, .max = 1000000,
	  .help = "Microseconds without data after which an adaptive reader sleeps" },
};

static const struct config_key out_keys[] = {
	{ .name = "address", .type = CONFIG_STRING, .offset = OUT(address),
	  .help = "Peer's address HOST:PORT; without it the node only listens" },
	{ .name = "resolution_timeout", .type = CONFIG_INT,
	  .offset = OUT(resolution_timeout_ms), .fallback = "1000",
	  .min = 1, .max = 600000,
	  .help = "Milliseconds for resolving the address, and again the route" },
	{ .name = "max_wrs", .type = CONFIG_INT, .offset = OUT(max_wrs),
	  .fallback = "128", .min = 2, .max = WRS_MAX,
	  .help = "Depth of the send queue; rounded up to a power of two" },
	{ .name = "cq_size", .type = CONFIG_INT, .offset = OUT(cq_size),
	  .fallback = "128", .min = 1, .max = 2 * WRS_MAX,
	  .help = "Depth of the send completion queue, at least max_wrs" },
	{ .name = "max_inline_data", .type = CONFIG_INT,
	  .offset = OUT(max_inline_data), .min = 0, .max = 4096,
	  .help = "Bytes up to which a sample is sent inline (24 plus 8 for each value); adapters may round up; 0, the default, is never" },
	{ .name = "send_inline", .type = CONFIG_BOOL, .offset = OUT(send_inline),
	  .fallback = "true", .help = "Allow sending inline" },
	{ .name = "use_fallback", .type = CONFIG_BOOL,
	  .offset = OUT(use_fallback), .fallback = "true",
	  .help = "Listen on in.address when the peer cannot be reached" },
	{ .name = "periodic_signaling", .type = CONFIG_INT,
	  .offset = OUT(periodic_signaling), .min = 0, .max = WRS_MAX,
	  .help = "Of so many inline samples in a row one is sent signaled; at most and by default half of max_wrs" },
	{ .name = "reconnect_interval", .type = CONFIG_INT,
	  .offset = OUT(reconnect_interval_ms), .fallback = "1000",
	  .min = 0, .max = 3600000,
	  .help = "Milliseconds between attempts to reach a peer that is not there or went away; 0: only one attempt" },
};

static struct infiniband *ib_of(struct node *n)
{
	return n->private_data;
}

static int infiniband_init(struct node *n)
{
	struct infiniband *ib = ib_of(n);

	ib->node = n;
	ib->registrar.name = n->name;
	return 0;
}

static int infiniband_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct infiniband *ib = ib_of(n);
	bool by_space = json_object_get(cfg, "rdma_port_space");
	const struct service *s = &services[by_space ? ib->port_space : ib->transport_mode];

	n->in.waits_itself = ib->in.polling != IB_POLLING_AUTO;
	ib->mode = s->mode;
	ib->space = s->space;
	if (!by_space || !json_object_get(cfg, "rdma_transport_mode") ||
	    services[ib->transport_mode].mode == ib->mode)
		return 0;
	config_fail(c, cfg, "rdma_port_space",
		    "contradicts rdma_transport_mode '%s'; one of them is enough",
		    service_names[ib->transport_mode]);
	return -EINVAL;
}

static int infiniband_reverse(struct node *n)
{
	struct infiniband *ib = ib_of(n);
	const char *address = ib->in.address;

	ib->in.address = ib->out.address;
	ib->out.address = address;
	return 0;
}

static int infiniband_prepare(struct node *n)
{
	return ib_device_open(ib_of(n));
}

static int open_events(struct infiniband *ib)
{
	if (ib->in.polling == IB_POLLING_BUSY)
		return 0;
	ib->recv_events = ibv_create_comp_channel(ib->verbs);
	if (ib->recv_events && !fcntl(ib->recv_events->fd, F_SETFL, O_NONBLOCK))
		return 0;
	if (ib->in.polling == IB_POLLING_AUTO) {
		log_warn("%s: the adapter offers no events: %s; in.polling is busy",
			 ib->node->name, strerror(errno));
		ib->node->in.waits_itself = true;
		return 0;
	}
	log_error("%s: the adapter offers no events: %s; in.polling = \"busy\" does without",
		  ib->node->name, strerror(errno));
	return errno ? -errno : -EIO;
}

/* Undoes start, however far that came. */
static void release(struct infiniband *ib)
{
	if (ib->channel)
		ib_channel_destroy(ib->channel);
	free(ib->channel);
	ib->channel = NULL;
	ib_budget_free(ib->budget);
	ib->budget = NULL;
	if (ib->recv_events && ibv_destroy_comp_channel(ib->recv_events))
		log_warn("%s: the completion channel is still in use",
			 ib->node->name);
	ib->recv_events = NULL;
	close(ib->wake_fd);
}

static int open_channel(struct infiniband *ib)
{
	const struct ib_channel_config cfg = {
		.name = ib->node->name,
		.node = ib->node,
		.registrar = &ib->registrar,
		.signals = ib->node->in.signals,
		.rx_depth = (unsigned)ib->in.max_wrs,
		.rx_threshold = (unsigned)(ib->in.max_wrs -
					   ib->in.buffer_subtraction),
		.tx_depth = (unsigned)ib->out.max_wrs,
		.signal_every = (unsigned)ib->out.periodic_signaling,
		.ud = ib->mode == IB_UD,
		.notify_fd = ib->wake_fd,
		.events = ib->recv_events,
		.spin_ns = ib->in.polling == IB_POLLING_ADAPTIVE ?
			   (uint64_t)ib->in.spin_us * 1000 : 0,
	};
	int err;

	if (ib->budget_path) {
		ib->budget = ib_budget_make();
		if (!ib->budget)
			return -ENOMEM;
	}
	ib->channel = aligned_alloc(CACHE_LINE, sizeof(*ib->channel));
	if (!ib->channel)
		return -ENOMEM;
	err = ib_channel_init(ib->channel, &cfg);
	ib->channel->budget = ib->budget;
	return err;
}

static int infiniband_start(struct node *n)
{
	struct infiniband *ib = ib_of(n);
	int err;

	clock_init();
	ib->wake_fd = wakeup_open_signal();
	if (ib->wake_fd < 0)
		return ib->wake_fd;
	err = open_events(ib);
	if (!err)
		err = open_channel(ib);
	if (!err)
		err = ib_cm_start(ib);
	if (err)
		release(ib);
	return err;
}

static int infiniband_stop(struct node *n)
{
	struct infiniband *ib = ib_of(n);
	int ret = 0;

	if (!ib->channel)
		return 0;
	ib_cm_stop(ib);
	ib_channel_release_all(ib->channel);
	node_lose(n, NODE_LOSS_ABSENT,
		  atomic_load(&ib->channel->counters.faults[IB_COUNT_FAILED]), "%s",
		  "its sending was under way when the connection broke");
	/* Of this start alone: the next one begins anew, and replaces the file. */
	if (ib->budget)
		ret = ib_budget_write_file(ib->budget, ib->budget_path, n->name);
	release(ib);
	return ret;
}

static void infiniband_destroy(struct node *n)
{
	struct infiniband *ib = ib_of(n);

	ib_device_close(ib);
	peers_free(&ib->peers);
	ib_registrar_destroy(&ib->registrar);
}

static int infiniband_read(struct node *n, struct sample *smps[], unsigned cnt,
			   unsigned *release)
{
	struct infiniband *ib = ib_of(n);
	struct ib_channel *ch = ib->channel;
	int ret;

	ch->awaited = n->in.awaited;
	ret = unlikely(ch->budget) ? ib_budget_read(ch, smps, cnt, release) :
				     ib_channel_read(ch, smps, cnt, release);
	if (likely(ret > 0 || *release < cnt))
		return ret;
	if (atomic_load_explicit(&ib->failed, memory_order_relaxed))
		return -ENODATA;
	if (!(atomic_load(&ch->control) & (IB_RX_OPEN | IB_RX_PENDING)))
		ib_channel_wait(ch, n->in.awaited || atomic_load(&ch->polled) ?
					    0 : WAIT_MS);
	return 0;
}

static void infiniband_sleep(struct node *n, uint64_t until_ns)
{
	struct ib_channel *ch = ib_of(n)->channel;

	if (atomic_load(&ch->control) & (IB_RX_OPEN | IB_RX_PENDING))
		ib_channel_sleep(ch, until_ns);
	else
		ib_channel_wait(ch, WAIT_MS);
}

static int infiniband_poll_fds(struct node *n, int fds[], int max)
{
	struct infiniband *ib = ib_of(n);

	return ib->channel ? ib_channel_poll_fds(ib->channel, fds, max) : 0;
}

static int infiniband_write(struct node *n, struct sample *smps[], unsigned cnt,
			    unsigned *release)
{
	struct ib_channel *ch = ib_of(n)->channel;
	bool open = atomic_load(&ch->control) & IB_TX_OPEN;
	uint64_t unsendable = atomic_load(&ch->counters.faults[IB_COUNT_UNSENDABLE]);
	int ret = unlikely(ch->budget) ? ib_budget_write(ch, smps, cnt, release) :
					 ib_channel_write(ch, smps, cnt, release);

	if (likely(ret == (int)cnt))
		return ret;
	if (!open)
		node_refuse(n, NODE_LOSS_ABSENT, cnt - (unsigned)ret, "%s",
			    "it is not connected");
	else if (atomic_load(&ch->counters.faults[IB_COUNT_UNSENDABLE]) != unsendable)
		node_refuse(n, NODE_LOSS_TOO_LONG, cnt - (unsigned)ret, "%s",
			    "it is larger than a message, or its memory is not registered");
	else
		node_refuse(n, NODE_LOSS_STUCK, cnt - (unsigned)ret, "%s",
			    "the send queue is full; a longer out.max_wrs or a lower rate may help");
	return ret;
}

static void infiniband_interrupt(struct node *n)
{
	struct infiniband *ib = ib_of(n);

	if (ib->channel)
		ib_channel_interrupt(ib->channel);
}

/* Pools may have gone and others come meanwhile. */
static void infiniband_rearm(struct node *n)
{
	struct infiniband *ib = ib_of(n);

	if (!ib->channel)
		return;
	atomic_fetch_and(&ib->channel->control, ~(unsigned)IB_INTERRUPT);
	/* The thread of the connection may be opening the channel just now. */
	ib_keys_forget(&ib->channel->rx.keys);
	ib_keys_forget(&ib->channel->tx.keys);
}

static struct memory_type *infiniband_memory_type(struct node *n,
						  struct memory_type *parent)
{
	return ib_registrar_type(&ib_of(n)->registrar, parent);
}

static unsigned infiniband_hold_max(struct node *n)
{
	struct infiniband *ib = ib_of(n);

	return (unsigned)(ib->in.max_wrs + ib->out.max_wrs);
}

static void infiniband_print(struct node *n, char *buf, size_t size)
{
	struct infiniband *ib = ib_of(n);

	snprintf(buf, size,
		 "%s, in.address %s, in.max_wrs %lld filled to %lld, polling %s, out.address %s, out.max_wrs %lld, inline up to %lld bytes, one of %lld signaled",
		 ib_mode_name(ib->mode),
		 ib->in.address ? ib->in.address : "none",
		 (long long)ib->in.max_wrs,
		 (long long)(ib->in.max_wrs - ib->in.buffer_subtraction),
		 ib_polling_names[ib->in.polling],
		 ib->out.address ? ib->out.address : "none",
		 (long long)ib->out.max_wrs,
		 (long long)(ib->out.send_inline ? ib->out.max_inline_data : 0),
		 (long long)ib->out.periodic_signaling);
}

static const struct node_figure infiniband_figures[IB_FIGURES] = {
	[IB_COUNT_MALFORMED] = { "malformed", "Messages whose size is that of no sample", NODE_COUNTER },
	[IB_COUNT_FAILED] = { "failed", "Samples whose sending ended with an error", NODE_COUNTER },
	[IB_COUNT_QUEUE_FULL] = { "queue_full", "Writes that the send queue cut short", NODE_COUNTER },
	[IB_COUNT_UNSENDABLE] = { "unsendable",
			    "Samples larger than a message, or in memory that is not registered", NODE_COUNTER },
	[IB_COUNT_CONNECTIONS] = { "connections", "Connections now", NODE_GAUGE },
	[IB_COUNT_CONNECTED_TIMES] = { "connected", "Connections that were made", NODE_COUNTER },
	[IB_COUNT_LOST] = { "lost", "Connections that ended against our will", NODE_COUNTER },
	[IB_COUNT_UNREACHABLE] = { "unreachable", "Connections that could not be made", NODE_COUNTER },
	[IB_COUNT_REJECTED] = { "rejected", "Peers that called and were rejected", NODE_COUNTER },
};

extern const struct node_type node_infiniband;

const struct node_type node_infiniband = {
	.name = "infiniband",
	.description = "samples over RDMA verbs, on InfiniBand, RoCE or iWARP adapters or our own in software",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS,
	.size = sizeof(struct infiniband),
	.keys = keys,
	.key_count = ARRAY_SIZE(keys),
	.in_keys = in_keys,
	.in_key_count = ARRAY_SIZE(in_keys),
	.out_keys = out_keys,
	.out_key_count = ARRAY_SIZE(out_keys),
	.figures = infiniband_figures,
	.figure_count = IB_FIGURES,
	.init = infiniband_init,
	.destroy = infiniband_destroy,
	.parse = infiniband_parse,
	.check = ib_check,
	.prepare = infiniband_prepare,
	.start = infiniband_start,
	.stop = infiniband_stop,
	.read = infiniband_read,
	.write = infiniband_write,
	.interrupt = infiniband_interrupt,
	.rearm = infiniband_rearm,
	.sleep = infiniband_sleep,
	.poll_fds = infiniband_poll_fds,
	.reverse = infiniband_reverse,
	.memory_type = infiniband_memory_type,
	.hold_max = infiniband_hold_max,
	.print = infiniband_print,
};
