/* SPDX-License-Identifier: BSD-2-Clause */
/* While a connection lasts: samples are read at a rate, and written. */
#define LOG_ROOM "gateway/modbus"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/format/part/text.h"
#include "gateway/node/modbus/modbus.h"
#include "util/clock.h"

/* A server that is busy is asked again after this. */
#define AGAIN_NS (NSEC_PER_SEC / 20)

/* ---- reading ---- */

/* 0, or as modbus_request(). */
static int read_block(struct modbus_node *m, const struct modbus_block *b, struct sample *s)
{
	const struct modbus_op op = { false, b->table, b->address, b->count };
	int ret = modbus_request(m, &op, m->image);

	for (unsigned i = b->first; !ret && i < b->first + b->maps; i++) {
		const struct modbus_map *map = &m->in.maps[i];

		modbus_value_read(map, m->image + (map->address - b->address), &s->data[map->signal]);
	}
	return ret;
}

static int fill(struct modbus_node *m, struct sample *s)
{
	struct node *n = m->outside.node;
	int ret = 0;

	s->origin = clock_realtime();
	for (unsigned i = 0; i < m->in.block_count && !ret; i++)
		ret = read_block(m, &m->in.blocks[i], s);
	if (ret)
		return ret;
	s->signals = n->in.signals;
	s->length = m->in.count;
	s->sequence = n->sequence++;
	s->flags = SAMPLE_HAS_DATA | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_SEQUENCE;
	return 0;
}

/* Reads all registers, if this is due. 0 or a negative errno: the connection is broken. */
static int poll_registers(struct modbus_node *m)
{
	struct node *n = m->outside.node;
	struct sample *s;
	uint64_t late_ns, steps;
	int ret;

	if (!n->is_source || outside_is_ending(&m->outside))
		return 0;
	steps = timer_grid_advance(&m->grid, clock_now_ns(), &late_ns);
	if (!steps)
		return 0;
	node_figure_add(n, MODBUS_POLLS, 1);
	node_figure_add(n, MODBUS_POLLS_LEFT_OUT, steps - 1);
	if (!outside_samples_take(&m->outside, &s, 1))
		return 0;
	ret = fill(m, s);
	outside_samples_give(&m->outside, &s, 1, !ret);
	if (!ret)
		return 0;
	node_figure_add(n, MODBUS_POLLS_FAILED, 1);
	if (ret != -EBADMSG && ret != -EAGAIN)
		return ret;
	outside_malformed(&m->outside, "%s", m->outside.why);
	return 0;
}

/* ---- writing ---- */

/* A message is the registers of each block, or the value and the mask of bits. */
static const char *print_block(struct modbus_node *m, const struct modbus_block *b,
			       const struct sample *s, const struct signal_list *l, uint16_t words[],
			       unsigned *signal)
{
	const char *why = NULL;

	memset(words, 0, modbus_block_words(b) * sizeof(*words));
	for (unsigned i = b->first; i < b->first + b->maps && !why; i++) {
		const struct modbus_map *map = &m->out.maps[i];
		const union signal_data on = { .i = 1 };

		*signal = map->signal;
		why = modbus_value_write(map, text_type(l, map->signal), &s->data[map->signal],
					 words + (map->address - b->address));
		if (b->bits)
			modbus_value_write(map, SIGNAL_BOOLEAN, &on, words + 1);
	}
	return why;
}

int modbus_print_sample(struct outside *o, char *buf, size_t size, size_t *used,
			struct sample *const smps[], unsigned cnt)
{
	struct modbus_node *m = modbus_of(o);
	const struct sample *s = smps[0];
	const struct signal_list *l = s->signals ? s->signals : o->node->out.signals;
	char *at = buf;

	(void)cnt;
	if (s->length < m->out.count)
		return outside_unprintable(o, -EBADMSG, "a sample has %u values, out.signals are %u",
					   s->length, m->out.count);
	if (size < m->words * sizeof(uint16_t))
		return 0;
	for (unsigned i = 0; i < m->out.block_count; i++) {
		const struct modbus_block *b = &m->out.blocks[i];
		uint16_t words[MODBUS_MAX_WRITE_REGISTERS];
		unsigned signal = 0;
		const char *why = print_block(m, b, s, l, words, &signal);

		if (why)
			return outside_unprintable(o, -EBADMSG, "value %u (from 0 on) %s", signal, why);
		memcpy(at, words, modbus_block_words(b) * sizeof(*words));
		at += modbus_block_words(b) * sizeof(*words);
	}
	*used = (size_t)(at - buf);
	return 1;
}

/* One message at a time: turn() writes it, and the others wait. */
int modbus_send(struct outside *o, struct outbox_message *msg)
{
	struct modbus_node *m = modbus_of(o);

	if (m->has_message)
		return -EAGAIN;
	/* As a message of the same settings has it. */
	if (msg->len != m->words * sizeof(*m->message))
		return outside_fail(o, -EBADMSG, "the registers of a message are not those of the node");
	memcpy(m->message, msg->data, msg->len);
	if (!msg->tag)
		msg->tag = outside_new_tag(o);
	m->tag = msg->tag;
	m->has_message = true;
	m->message_failed = false;
	m->next_block = 0;
	m->again_ns = 0;
	return OUTSIDE_UNCONFIRMED;
}

static int write_bits(struct modbus_node *m, const struct modbus_block *b, const uint16_t words[])
{
	struct modbus_op op = { false, b->table, b->address, 1 };
	uint16_t reg;
	int ret = modbus_request(m, &op, &reg);

	if (ret)
		return ret;
	reg = (uint16_t)((reg & ~words[1]) | words[0]);
	op.writes = true;
	return modbus_request(m, &op, &reg);
}

/* Does any register of the signal have another value than that which was written? */
static bool is_changed(const struct modbus_block *b, const struct modbus_map *map,
		       const uint16_t words[], const uint16_t written[])
{
	unsigned at = map->address - b->address;

	return memcmp(words + at, written + at, map->count * sizeof(*words)) != 0;
}

static int write_registers(struct modbus_node *m, const struct modbus_block *b, uint16_t words[],
			   const uint16_t written[], bool known)
{
	unsigned from = b->count, to = 0;

	/* From the first one that has changed to the last one. */
	for (unsigned i = b->first; i < b->first + b->maps; i++) {
		const struct modbus_map *map = &m->out.maps[i];
		unsigned at = map->address - b->address;

		if (known && !is_changed(b, map, words, written))
			continue;
		from = MIN(from, at);
		to = MAX(to, at + map->count);
	}
	if (from >= to)
		return 0;
	return modbus_request(m, &(struct modbus_op){ true, b->table, (uint16_t)(b->address + from),
						      to - from }, words + from);
}

static int write_block(struct modbus_node *m, unsigned i, size_t at)
{
	const struct modbus_block *b = &m->out.blocks[i];
	uint16_t *words = m->message + at, *written = m->written + at;
	size_t bytes = modbus_block_words(b) * sizeof(*words);
	bool known = m->write == MODBUS_WRITE_CHANGED && m->known[i];
	int ret = 0;

	if (!b->bits)
		ret = write_registers(m, b, words, written, known);
	else if (!known || memcmp(words, written, bytes))
		ret = write_bits(m, b, words);
	m->known[i] = !ret;
	memcpy(written, words, bytes);
	return ret;
}

/* The server may do later what it does not do now. */
static bool is_for_now(int exception)
{
	return exception == MODBUS_EXCEPTION_ACKNOWLEDGE ||
	       exception == MODBUS_EXCEPTION_SLAVE_OR_SERVER_BUSY ||
	       exception == MODBUS_EXCEPTION_GATEWAY_PATH ||
	       exception == MODBUS_EXCEPTION_GATEWAY_TARGET;
}

static void end_message(struct modbus_node *m)
{
	m->has_message = false;
	if (m->message_failed)
		outside_reject(&m->outside, m->tag, m->message_why);
	else
		outside_confirm(&m->outside, m->tag, false);
}

/* Writes what is left of the message. 0 or a negative errno: the connection is broken. */
static int write_message(struct modbus_node *m)
{
	size_t at = 0;

	if (!m->has_message || clock_now_ns() < m->again_ns)
		return 0;
	for (unsigned i = 0; i < m->out.block_count; i++) {
		size_t words = modbus_block_words(&m->out.blocks[i]);
		int ret = i < m->next_block ? 0 : write_block(m, i, at);

		at += words;
		if (ret == -EAGAIN || (ret == -EBADMSG && is_for_now(m->exception))) {
			m->again_ns = clock_now_ns() + AGAIN_NS;
			m->next_block = i;
			return 0;
		}
		/* The other blocks are written nevertheless. */
		if (ret == -EBADMSG && !m->message_failed) {
			m->message_failed = true;
			memcpy(m->message_why, m->outside.why, sizeof(m->message_why));
		} else if (ret && ret != -EBADMSG) {
			return ret;
		}
	}
	end_message(m);
	return 0;
}

int modbus_turn(struct outside *o)
{
	struct modbus_node *m = modbus_of(o);
	int ret = o->polled && o->polled[0].revents ? modbus_look(m) : 0;

	return ret ?: write_message(m) ?: poll_registers(m);
}

unsigned modbus_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct modbus_node *m = modbus_of(o);

	if (m->has_message)
		*until_ns = MIN(*until_ns, m->again_ns);
	if (o->node->is_source && !outside_is_ending(o))
		*until_ns = MIN(*until_ns, timer_grid_next_ns(&m->grid));
	if (m->transport != MODBUS_TCP)
		return 0;
	fds[0] = (struct pollfd){ .fd = m->fd, .events = POLLIN };
	return 1;
}
