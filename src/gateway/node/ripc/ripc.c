/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `ripc`: samples in short messages between services (include/busbar/ripc.h). A
 * node has an instance and a service of its own; it receives as that service, and sends from
 * it to another one.
 */
#define LOG_ROOM "gateway/ripc"
#include "gateway/node/ripc/ripc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/log.h"

/* Who has the name already may be slow to answer, and a start may take a while. */
#define CLAIM_MS 300

extern const struct node_type node_ripc;

static const char *const short_names[] = { "default", "connection", "datagram", NULL };

#define OFFSET(field) offsetof(struct ripc_node, field)

static const struct config_key ripc_keys[] = {
	{ "address", CONFIG_STRING, OFFSET(address),
	  .help = "IP address of the adapter to use; else that of RIPC_ADDRESS, else the first one" },
	{ "resolver", CONFIG_STRING, OFFSET(resolver),
	  .help = "How services are found: multicast, broadcast, hosts:FILE, rendezvous:HOST:PORT, with commas between them" },
	{ "resolver_port", CONFIG_INT, OFFSET(resolver_port), "0", .min = 0, .max = 65535,
	  .help = "UDP port of multicast and broadcast; 0: that of RIPC_PORT, else 15511" },
	{ "secret_file", CONFIG_STRING, OFFSET(secret_file),
	  .help = "File of 16 to 64 bytes; only who has the same one is found and connected" },
	{ "short", CONFIG_ENUM, OFFSET(short_by), "default", .names = short_names,
	  .help = "How messages go: connection, datagram, or as RIPC_SHORT says" },
	{ "format", CONFIG_JSON, OFFSET(format),
	  .help = "Format of the samples in messages, a name or a group" },
	{ "resolve_timeout", CONFIG_INT, OFFSET(resolve_timeout_ms), "500", .min = 1,
	  .max = 60000, .help = "Milliseconds to wait for an answer where a service is" },
	{ "connect_timeout", CONFIG_INT, OFFSET(connect_timeout_ms), "1000", .min = 1,
	  .max = 60000,
	  .help = "Milliseconds to wait for a connection, and for room at the receiver" },
};

static const struct config_key ripc_in_keys[] = {
	{ "name", CONFIG_STRING, OFFSET(in.name), .help = "Name of the service of this node" },
	{ "id", CONFIG_INT, OFFSET(in.id), "0", .min = 0, .max = UINT32_MAX,
	  .help = "Number of the service of this node; 0: from its name" },
	{ "format", CONFIG_JSON, OFFSET(in.format),
	  .help = "Format of received samples, if another one" },
};

static const struct config_key ripc_out_keys[] = {
	{ "name", CONFIG_STRING, OFFSET(out.name), .help = "Name of the service to send to" },
	{ "id", CONFIG_INT, OFFSET(out.id), "0", .min = 0, .max = UINT32_MAX,
	  .help = "Number of the service to send to; 0: it is asked for by its name" },
	{ "format", CONFIG_JSON, OFFSET(out.format),
	  .help = "Format of sent samples, if another one" },
	{ "reconnect_interval", CONFIG_INT, OFFSET(reconnect_interval_ms), "1000", .min = 1,
	  .max = 86400000,
	  .help = "Longest time between two attempts to find the service, milliseconds" },
};

static bool can_read(const struct node *n)
{
	return n->in.present && n->in.enabled;
}

static bool can_write(const struct node *n)
{
	return n->out.present && n->out.enabled;
}

static int ripc_node_init(struct node *n)
{
	struct ripc_node *r = n->private_data;

	r->node = n;
	r->fd = r->wait.wake_fd = -1;
	pthread_mutex_init(&r->tx.lock, NULL);
	pthread_cond_init(&r->tx.changed, NULL);
	return 0;
}

static void ripc_node_destroy(struct node *n)
{
	struct ripc_node *r = n->private_data;

	format_destroy(r->reader);
	format_destroy(r->writer);
	pthread_cond_destroy(&r->tx.changed);
	pthread_mutex_destroy(&r->tx.lock);
}

static int ripc_node_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct ripc_node *r = n->private_data;
	int ret = 0;

	if (!can_read(n) && !can_write(n)) {
		config_fail(c, cfg, NULL,
			    "needs `in = { name = ... }` to receive, or `out = { name = ... }` to send");
		return -EINVAL;
	}
	if (can_read(n))
		ret = format_new(&r->reader, c, r->in.format ? r->in.format : r->format,
				 RIPC_DEFAULT_FORMAT, n->in.signals);
	if (!ret && can_write(n))
		ret = format_new(&r->writer, c, r->out.format ? r->out.format : r->format,
				 RIPC_DEFAULT_FORMAT, n->out.signals);
	if (ret)
		return ret;
	if (r->reader)
		r->reader->message = true;
	if (r->writer)
		r->writer->message = true;
	return 0;
}

/* ---- check ---- */

static int check_side(struct config *c, json_t *cfg, struct node_direction *d,
		      const struct ripc_side *side, const char *what)
{
	const char *name = side->name;
	size_t length = name ? strlen(name) : 0;

	if (!d->present || !d->enabled)
		return 0;
	if (!name && !side->id) {
		config_fail(c, d->cfg ? d->cfg : cfg, NULL,
			    "needs `name` or `id` of the service %s", what);
		return -EINVAL;
	}
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			length = 0;
	if (name && (!length || length > RIPC_NAME_MAX)) {
		config_fail(c, d->cfg, "name",
			    "is no name of a service: 1 to %d bytes without control characters",
			    RIPC_NAME_MAX);
		return -EINVAL;
	}
	return 0;
}

static int ripc_node_check(struct node *n, struct config *c, json_t *cfg)
{
	struct ripc_node *r = n->private_data;
	int ret = check_side(c, cfg, &n->in, &r->in, "as which the node receives");

	if (check_side(c, cfg, &n->out, &r->out, "to which the node sends"))
		ret = -EINVAL;
	return format_check_use(r->reader, r->writer, c, cfg) ?: ret;
}

static int ripc_node_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct ripc_node *r = n->private_data;
	struct format_sizes sizes;
	int ret;

	if (!r->writer)
		return 0;
	ret = format_check_signals(r->writer, c, cfg, n->out.hooked);
	if (ret || !n->is_destination || !n->out.hooked)
		return ret;
	if (format_check_sizes(r->writer, c, cfg, n->out.hooked, &sizes))
		return -EINVAL;
	if (sizes.bytes_min <= RIPC_SHORT_BYTES_MAX)
		return 0;
	config_fail(c, n->out.cfg ? n->out.cfg : cfg, NULL,
		    "a sample of %u values takes %zu bytes at least in the format %s, a short message has less than %d; use another format, or fewer signals",
		    n->out.hooked->count, sizes.bytes_min, r->writer->type->name,
		    RIPC_SHORT_BYTES_MAX);
	return -EINVAL;
}

static int ripc_node_reverse(struct node *n)
{
	struct ripc_node *r = n->private_data;
	struct ripc_side was = r->in;

	r->in.name = r->out.name;
	r->in.id = r->out.id;
	r->out.name = was.name;
	r->out.id = was.id;
	return 0;
}

/* ---- life ---- */

static int ripc_node_stop(struct node *n)
{
	struct ripc_node *r = n->private_data;

	ripc_tx_stop(r);
	if (r->rx.held)
		ripc_release(&r->rx.message);
	r->rx.held = false;
	ripc_service_close(r->service);
	ripc_close(r->instance);
	r->service = NULL;
	r->instance = NULL;
	r->fd = -1; /* was the service's */
	socket_wait_close(&r->wait);
	fault_finish(&r->faults);
	return 0;
}

static int open_service(struct ripc_node *r)
{
	const bool reads = can_read(r->node);
	const struct ripc_config config = {
		.address = r->address, .resolver = r->resolver,
		.resolver_port = (uint16_t)r->resolver_port, .secret_file = r->secret_file,
		.short_by = (enum ripc_short)r->short_by,
		.resolve_timeout_ms = (unsigned)r->resolve_timeout_ms,
		.connect_timeout_ms = (unsigned)r->connect_timeout_ms,
		.claim_ms = CLAIM_MS,
	};
	int ret = ripc_open(&config, &r->instance);

	if (!ret)
		ret = ripc_service_open(r->instance, reads ? (uint32_t)r->in.id : 0,
					reads ? r->in.name : NULL, &r->service);
	if (!ret) {
		r->fd = ripc_service_fd(r->service);
		ret = r->fd < 0 ? r->fd : 0;
	}
	if (ret)
		log_error("%s: %s", r->node->name, ripc_error());
	else if (reads)
		log_info("%s: receiving as service %#x %s", r->node->name,
			 ripc_service_id(r->service), r->in.name ? r->in.name : "");
	return ret;
}

static int ripc_node_start(struct node *n)
{
	struct ripc_node *r = n->private_data;
	int ret = socket_wait_open(&r->wait);

	r->faults.node = n;
	if (ret)
		log_error("%s: no event descriptor: %s", n->name, strerror(-ret));
	else
		ret = open_service(r);
	if (!ret && can_write(n))
		ret = ripc_tx_start(r);
	if (ret)
		ripc_node_stop(n);
	return ret;
}

/* A message waits for the receiver. */
static bool ripc_node_may_wait(struct node *n)
{
	return true;
}

static void ripc_node_interrupt(struct node *n)
{
	struct ripc_node *r = n->private_data;

	socket_wait_interrupt(&r->wait);
}

static void ripc_node_print(struct node *n, char *buf, size_t size)
{
	const struct ripc_node *r = n->private_data;
	const struct format *f = r->reader ? r->reader : r->writer;
	int used = snprintf(buf, size, "format %s", f ? f->type->name : "none");
	const struct ripc_side *sides[] = { can_read(n) ? &r->in : NULL,
					    can_write(n) ? &r->out : NULL };

	for (unsigned i = 0; i < 2; i++)
		if (sides[i] && used >= 0 && (size_t)used < size)
			used += snprintf(buf + used, size - (size_t)used, ", %s %s%s%#x",
					 i ? "out" : "in", sides[i]->name ? sides[i]->name : "",
					 sides[i]->name ? " " : "", (unsigned)sides[i]->id);
}

static const struct node_figure ripc_figures[FAULT_KINDS] = {
	[FAULT_MALFORMED] = { "malformed", "Messages that the format cannot read", NODE_COUNTER },
};

const struct node_type node_ripc = {
	.name = "ripc",
	.description = "Samples in messages between services, over any RDMA adapter",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS |
		 NODE_NEEDS_GROUP,
	.size = sizeof(struct ripc_node),
	.keys = ripc_keys,
	.key_count = ARRAY_SIZE(ripc_keys),
	.figures = ripc_figures,
	.figure_count = FAULT_KINDS,
	.in_keys = ripc_in_keys,
	.in_key_count = ARRAY_SIZE(ripc_in_keys),
	.out_keys = ripc_out_keys,
	.out_key_count = ARRAY_SIZE(ripc_out_keys),
	.init = ripc_node_init,
	.destroy = ripc_node_destroy,
	.parse = ripc_node_parse,
	.check = ripc_node_check,
	.check_signals = ripc_node_check_signals,
	.start = ripc_node_start,
	.stop = ripc_node_stop,
	.read = ripc_node_read,
	.write = ripc_node_write,
	.sleep = ripc_node_sleep,
	.may_wait = ripc_node_may_wait,
	.interrupt = ripc_node_interrupt,
	.rearm = node_rearm_nothing,
	.reverse = ripc_node_reverse,
	.poll_fds = ripc_node_poll_fds,
	.print = ripc_node_print,
};
