/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading: samples are scanned where the message lies. It is given back when all of them
 * were taken, so a sender that is faster than the path waits for it.
 */
#define LOG_ROOM "gateway/ripc"
#include "gateway/node/ripc/ripc.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

/* Messages without items, one after the other, before others have their turn. */
#define EMPTY_MAX 64

/* Where an item lies. Senders of a single line often omit its end. */
static const char *item_at(struct ripc_node *r, size_t *bytes)
{
	struct ripc_rx *rx = &r->rx;
	const struct ripc_item *i = &rx->message.items[rx->item];
	const char *at = i->data;

	*bytes = i->bytes;
	if (!r->reader->type->lines || !i->bytes || i->bytes >= sizeof(rx->line) ||
	    at[i->bytes - 1] == r->reader->delimiter)
		return at;
	if (!rx->position) {
		memcpy(rx->line, at, i->bytes);
		rx->line[i->bytes] = r->reader->delimiter;
	}
	*bytes += 1;
	return rx->line;
}

/* Samples of one item; at its end when nothing more is in it. */
static unsigned scan_item(struct ripc_node *r, struct sample *smps[], unsigned cnt)
{
	struct ripc_rx *rx = &r->rx;
	struct format *f = r->reader;
	size_t bytes, used = 0;
	const char *at = item_at(r, &bytes);
	int ret = 0;

	if (rx->position < bytes)
		ret = f->type->scan(f, at + rx->position, bytes - rx->position, &used, smps, cnt);
	rx->position += used;
	if (ret < 0) {
		fault_note(&r->faults, FAULT_MALFORMED, 1, "of service %#x: %s",
			   rx->message.from, format_error(f));
		/* A line can be wrong alone; of others the rest is. */
		if (!f->type->lines || !used)
			rx->position = bytes;
	} else if (rx->position < bytes && (!ret || !used)) {
		fault_note(&r->faults, FAULT_MALFORMED, 1,
			   "of service %#x: it ends inside a sample, %zu bytes are left",
			   rx->message.from, bytes - rx->position);
		rx->position = bytes;
	}
	if (rx->position >= bytes) {
		rx->item++;
		rx->position = 0;
	}
	return ret > 0 ? (unsigned)ret : 0;
}

static unsigned take(struct ripc_node *r, struct sample *smps[], unsigned cnt)
{
	struct ripc_rx *rx = &r->rx;
	unsigned n = 0;

	while (rx->held && n < cnt) {
		unsigned got = rx->item < rx->message.count ? scan_item(r, smps + n, cnt - n) : 0;

		for (unsigned i = n; i < n + got; i++) {
			/* The receive time in the message is that of the sender. */
			smps[i]->received = rx->received;
			smps[i]->flags |= SAMPLE_HAS_RECEIVED;
		}
		n += got;
		if (rx->item >= rx->message.count) {
			ripc_release(&rx->message);
			rx->held = false;
		}
	}
	return n;
}

/* One message with something in it: 0, or -EAGAIN, or an error, which is logged. */
static int receive(struct ripc_node *r)
{
	struct ripc_rx *rx = &r->rx;
	int ret = -EAGAIN;

	for (unsigned i = 0; i < EMPTY_MAX && !rx->held; i++) {
		ret = ripc_receive(r->service, &rx->message, 0);
		if (ret)
			break;
		rx->held = rx->message.count;
		/* The other side has found us. */
		if (!rx->held)
			ripc_release(&rx->message);
	}
	if (rx->held) {
		rx->item = 0;
		rx->position = 0;
		rx->received = clock_realtime();
		return 0;
	}
	if (ret && ret != -EAGAIN)
		log_error("%s: receiving: %s", r->node->name, ripc_error());
	return ret ? ret : -EAGAIN;
}

/* As many messages as fill the samples. */
static int take_and_receive(struct node *node, struct sample *smps[], unsigned cnt)
{
	struct ripc_node *r = node->private_data;
	unsigned n = take(r, smps, cnt);
	int ret = 0;

	while (n < cnt && !ret) {
		ret = receive(r);
		if (!ret)
			n += take(r, smps + n, cnt - n);
	}
	return n ? (int)n : ret;
}

void ripc_node_sleep(struct node *n, uint64_t until_ns)
{
	struct ripc_node *r = n->private_data;

	if (r->reader && until_ns > clock_now_ns())
		socket_wait_sleep(&r->wait, r->fd, until_ns);
}

int ripc_node_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct ripc_node *r = n->private_data;
	bool polled = atomic_load_explicit(&r->wait.polled, memory_order_relaxed);
	int ret;

	if (unlikely(!r->reader))
		return -ENODATA;
	if (!polled)
		return socket_wait_read(&r->wait, n, smps, cnt, take_and_receive);
	socket_wait_clear(&r->wait);
	ret = take_and_receive(n, smps, cnt);
	if (r->rx.held)
		socket_wait_kick(&r->wait); /* not seen at the service's descriptor any more */
	return ret == -EAGAIN ? 0 : ret;
}

int ripc_node_poll_fds(struct node *n, int fds[], int max)
{
	struct ripc_node *r = n->private_data;

	if (!socket_wait_set_polled(&r->wait, max >= 2 && r->reader))
		return 0;
	fds[0] = r->fd;
	fds[1] = r->wait.wake_fd;
	return 2;
}
