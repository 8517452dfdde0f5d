/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `iec61850-8-1`: its callbacks and figures; see goose.h. */
#define LOG_ROOM "gateway/iec61850-8-1"
#include "gateway/node/iec61850-8-1/goose.h"

#include <stdio.h>
#include <string.h>

#include "util/log.h"

extern const struct node_type node_iec61850_8_1;

static int goose_init(struct node *n)
{
	struct goose_node *g = n->private_data;

	g->node = n;
	g->ethernet.fd = g->socket.fd = -1;
	g->wait.wake_fd = g->wake_fd = -1;
	g->faults.node = n;
	return -pthread_mutex_init(&g->lock, NULL);
}

static void goose_destroy(struct node *n)
{
	struct goose_node *g = n->private_data;

	goose_settings_free(g);
	pthread_mutex_destroy(&g->lock);
}

static int goose_stop(struct node *n)
{
	struct goose_node *g = n->private_data;

	goose_sender_close(g);
	goose_receiver_close(g);
	socket_wait_close(&g->wait);
	fault_finish(&g->faults);
	return 0;
}

static int goose_start(struct node *n)
{
	struct goose_node *g = n->private_data;
	int ret = socket_wait_open(&g->wait);

	if (ret)
		log_error("%s: no event descriptor: %s", n->name, strerror(-ret));
	if (!ret && goose_can_read(n))
		ret = goose_receiver_open(g);
	if (!ret && goose_can_write(n))
		ret = goose_sender_open(g);
	if (ret)
		goose_stop(n);
	return ret;
}

static void goose_interrupt(struct node *n)
{
	struct goose_node *g = n->private_data;

	socket_wait_interrupt(&g->wait);
}

static void goose_print(struct node *n, char *buf, size_t size)
{
	const struct goose_node *g = n->private_data;
	int used = 0;

	*buf = '\0';
	if (goose_can_read(n))
		used = snprintf(buf, size, "in %.45s, control block %.130s%s",
				g->in.routing.enabled ? g->in.routing.local_address : g->in.interface,
				g->in.sources[0].reference, g->in.source_count > 1 ? " ..." : "");
	if (goose_can_write(n) && (size_t)used < size)
		snprintf(buf + used, size - (size_t)used, "%sout %.45s, control block %.130s%s",
			 used ? "; " : "",
			 !g->out.routing.enabled	? g->out.interface :
			 g->out.routing.remote_address	? g->out.routing.remote_address : "routed",
			 g->out.sinks[0].reference, g->out.sink_count > 1 ? " ..." : "");
}

#define VERDICT(v) [GOOSE_FIGURE_VERDICT + (v)]

static const struct node_figure goose_figures[GOOSE_FIGURES] = {
	[FAULT_MALFORMED] = { "malformed", "Messages that cannot be read", NODE_COUNTER },
	[FAULT_TRUNCATED] = { "truncated", "Frames longer than the interface allows", NODE_COUNTER },
	[FAULT_OVERRUN] = { "overrun", "Frames lost because reading was too slow", NODE_COUNTER },
	VERDICT(GOOSE_CHANGE) = { "changes", "Messages that brought a new state", NODE_COUNTER },
	VERDICT(GOOSE_REPETITION) = { "repetitions", "Messages that repeated a known state", NODE_COUNTER },
	VERDICT(GOOSE_DUPLICATE) = { "duplicates", "Messages that came a second time", NODE_COUNTER },
	VERDICT(GOOSE_OLD) = { "old", "Messages not used because a number had fallen", NODE_COUNTER },
	VERDICT(GOOSE_INCOMPLETE) = { "needs_commissioning", "Messages not used because of ndsCom", NODE_COUNTER },
	VERDICT(GOOSE_SIMULATED) = { "simulated", "Simulated messages that were not used", NODE_COUNTER },
	VERDICT(GOOSE_REPLACED) = { "not_simulated", "Messages not used because simulated ones come", NODE_COUNTER },
	VERDICT(GOOSE_LIFELESS) = { "no_time_to_live", "Messages not used because their time allowed to live is 0", NODE_COUNTER },
	[GOOSE_FIGURE_RECEIVED] = { "messages_received", "Messages of the subscribed control blocks", NODE_COUNTER },
	[GOOSE_FIGURE_OTHERS] = { "others", "Messages of other control blocks", NODE_COUNTER },
	[GOOSE_FIGURE_LOST_CHANGES] = { "lost_changes", "States that did not arrive, by stNum", NODE_COUNTER },
	[GOOSE_FIGURE_LOST_MESSAGES] = { "lost_messages", "Messages that did not arrive at least, by stNum and sqNum", NODE_COUNTER },
	[GOOSE_FIGURE_EXPIRED] = { "expired", "How often the time allowed to live ended", NODE_COUNTER },
	[GOOSE_FIGURE_RESTARTED] = { "restarts", "How often a publisher began its numbers again", NODE_COUNTER },
	[GOOSE_FIGURE_REVISED] = { "revisions", "How often confRev changed", NODE_COUNTER },
	[GOOSE_FIGURE_MISMATCHED] = { "mismatched", "Messages whose values are not those of the signals", NODE_COUNTER },
	[GOOSE_FIGURE_WRONG_REVISION] = { "wrong_conf_rev", "Messages not used because of their confRev", NODE_COUNTER },
	[GOOSE_FIGURE_SECURED] = { "secured", "Messages not used because they are signed or encrypted", NODE_COUNTER },
	[GOOSE_FIGURE_UNVERIFIED] = { "unverified", "Messages used though their signature was not checked", NODE_COUNTER },
	[GOOSE_FIGURE_SENT] = { "messages_sent", "Messages sent", NODE_COUNTER },
	[GOOSE_FIGURE_CHANGES_SENT] = { "changes_sent", "States of control blocks that were published", NODE_COUNTER },
	[GOOSE_FIGURE_UNCHANGED] = { "unchanged", "Samples that changed no value", NODE_COUNTER },
	[GOOSE_FIGURE_FAILED] = { "send_failed", "Messages that could not be sent", NODE_COUNTER },
};

const struct node_type node_iec61850_8_1 = {
	.name = "iec61850-8-1",
	.description = "Values of samples in messages of GOOSE (IEC 61850-8-1), over Ethernet or routed",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_NEEDS_GROUP,
	.size = sizeof(struct goose_node),
	.keys = goose_keys,
	.key_count = GOOSE_KEYS,
	.in_keys = goose_in_keys,
	.in_key_count = GOOSE_IN_KEYS,
	.out_keys = goose_out_keys,
	.out_key_count = GOOSE_OUT_KEYS,
	.signal_keys = goose_signal_keys,
	.signal_key_count = GOOSE_SIGNAL_KEYS,
	.figures = goose_figures,
	.figure_count = ARRAY_SIZE(goose_figures),
	.init = goose_init,
	.destroy = goose_destroy,
	.parse = goose_parse,
	.check = goose_check,
	.check_signals = goose_check_signals,
	.start = goose_start,
	.stop = goose_stop,
	.read = goose_read,
	.write = goose_write,
	.sleep = goose_sleep,
	.interrupt = goose_interrupt,
	.rearm = node_rearm_nothing,
	.poll_fds = goose_poll_fds,
	.print = goose_print,
};
