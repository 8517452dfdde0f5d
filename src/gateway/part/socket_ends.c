/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of nodes with a socket; see socket_ends.h. */
#define LOG_ROOM "gateway/node"
#include "gateway/part/socket_ends.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"

int socket_ends_init(struct node *n)
{
	struct socket_ends *e = n->private_data;

	e->node = n;
	e->fd = e->wait.wake_fd = -1;
	return 0;
}

void socket_ends_destroy(struct node *n)
{
	struct socket_ends *e = n->private_data;

	format_destroy(e->reader);
	format_destroy(e->writer);
}

int socket_ends_reverse(struct node *n)
{
	struct socket_ends *e = n->private_data;
	const char *was = e->in.address;

	e->in.address = e->out.address;
	e->out.address = was;
	return 0;
}

void socket_ends_interrupt(struct node *n)
{
	struct socket_ends *e = n->private_data;

	atomic_fetch_add(&e->write_interrupts, 1);
	socket_wait_interrupt(&e->wait);
}

void socket_ends_sleep(struct node *n, uint64_t until_ns)
{
	struct socket_ends *e = n->private_data;

	if (e->reader && until_ns > clock_now_ns())
		socket_wait_sleep(&e->wait, e->fd, until_ns);
}

int socket_ends_poll_fds(struct node *n, int fds[], int max)
{
	struct socket_ends *e = n->private_data;

	if (!socket_wait_set_polled(&e->wait, max >= 2))
		return 0;
	fds[0] = e->fd;
	fds[1] = e->wait.wake_fd;
	return 2;
}

/* `receives`: and sends nothing. */
static int parse_multicast(struct socket_ends *e, struct config *c, bool receives)
{
	struct socket_end *const ends[] = { &e->in, &e->out };

	for (unsigned i = 0; i < 2; i++) {
		json_t *cfg = ends[i]->multicast_cfg;

		if (multicast_parse(&ends[i]->multicast, c, cfg))
			return -EINVAL;
		if (!cfg || e->layer == LAYER_UDP || e->layer == LAYER_IP)
			continue;
		config_fail(c, cfg, NULL, "is for layer udp and ip, not %s",
			    socket_layer_names[e->layer]);
		return -EINVAL;
	}
	return multicast_merge(&e->in.multicast, e->in.multicast_cfg, &e->out.multicast,
			       e->out.multicast_cfg, receives, c);
}

int socket_ends_new_reader(struct socket_ends *e, struct format **out)
{
	int ret = format_new(out, e->config, e->in.format ? e->in.format : e->format,
			     SOCKET_DEFAULT_FORMAT, e->node->in.signals);

	if (!ret)
		(*out)->message = !layer_is_stream(e->layer);
	return ret;
}

int socket_ends_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct socket_ends *e = n->private_data;
	bool reads = n->in.present && n->in.enabled;
	bool writes = n->out.present && n->out.enabled;
	int ret = 0;

	e->node = n;
	e->config = c;
	e->verify_source |= e->in.verify_source;
	if (!reads && !writes) {
		config_fail(c, cfg, NULL,
			    "needs `in = { address = ... }` to receive, or `out = { address = ... }` to send");
		return -EINVAL;
	}
	if (parse_multicast(e, c, reads && !writes))
		return -EINVAL;
	if (reads)
		ret = socket_ends_new_reader(e, &e->reader);
	if (!ret && writes)
		ret = format_new(&e->writer, c, e->out.format ? e->out.format : e->format,
				 SOCKET_DEFAULT_FORMAT, n->out.signals);
	if (!ret && writes)
		e->writer->message = !layer_is_stream(e->layer);
	return ret;
}

static int check_address(struct socket_ends *e, struct config *c, json_t *group, json_t *cfg,
			 const char *key, const char *text, const char *needed)
{
	char why[SOCKET_WHY_MAX];

	if (text && socket_address_check(e->layer, text, why)) {
		config_fail(c, group, "address", "%s", why);
		return -EINVAL;
	}
	if (text || !needed)
		return 0;
	config_fail(c, group ? group : cfg, group ? "address" : NULL, "%s is required: %s", key,
		    needed);
	return -EINVAL;
}

static int check_families(struct socket_ends *e, struct config *c)
{
	int in_family, out_family;

	if (!e->in.address || !e->out.address || !layer_is_internet(e->layer))
		return 0;
	in_family = socket_address_family(e->in.address);
	out_family = socket_address_family(e->out.address);
	if (!in_family || !out_family || in_family == out_family)
		return 0;
	config_fail(c, e->node->out.cfg, "address",
		    "is of IPv%d, in.address of IPv%d; one node has one of them",
		    out_family == AF_INET ? 4 : 6, in_family == AF_INET ? 4 : 6);
	return -EINVAL;
}

int socket_ends_check(struct socket_ends *e, struct config *c, json_t *cfg,
		      const char *in_needed, const char *out_needed)
{
	struct node *n = e->node;

	if (check_address(e, c, n->in.cfg, cfg, "in.address", e->in.address, in_needed) ||
	    check_address(e, c, n->out.cfg, cfg, "out.address", e->out.address, out_needed) ||
	    check_families(e, c))
		return -EINVAL;
	if (socket_ends_has_peer(e) && layer_is_internet(e->layer) &&
	    socket_address_is_any(e->out.address)) {
		config_fail(c, n->out.cfg, "address", "'%.60s' names no host to send to",
			    e->out.address);
		return -EINVAL;
	}
	return format_check_use(e->reader, e->writer, c, cfg);
}

int socket_ends_start(struct node *n)
{
	struct socket_ends *e = n->private_data;
	int ret;

	e->node = e->faults.node = n;
	e->fd = -1;
	ret = socket_wait_open(&e->wait);
	if (ret)
		log_error("%s: no event descriptor: %s", n->name, strerror(-ret));
	return ret;
}

void socket_ends_stop(struct socket_ends *e)
{
	if (e->fd >= 0)
		close(e->fd);
	e->fd = -1;
	socket_wait_close(&e->wait);
	fault_finish(&e->faults);
}
