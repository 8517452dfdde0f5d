/* SPDX-License-Identifier: BSD-2-Clause */
/* See parts.h. */
#include "parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "carrier.h"
#include "gateway/base/turn.h"
#include "gateway/base/waiting.h"
#include "util/clock.h"
#include "world.h"

/* A number consists of the stream of a source and the index of the sample in it. */
#define STREAMS 1024
#define NUMBER_BITS 14
#define HELD_MAX 24
#define ROOM_MAX 64

enum part_mode { MODE_PLAIN, MODE_HOLD, MODE_REFUSE, MODE_SLOW, MODE_STUCK };

static const char *const mode_names[] = { "plain", "hold", "refuse", "slow",
					  "stuck", NULL };

struct message {
	size_t len;
	char *bytes;
};

struct part {
	json_t *format;
	int64_t gap_ns, limit, room;
	int mode;
	bool strict, waits, spins;

	struct waiting waiting;
	struct carrier carrier;
	unsigned stream, next;
	unsigned burst;
	uint64_t due_ns;
	atomic_bool interrupted, dead;
	bool reading, writing;
	int event_fd;
	struct sample *held[HELD_MAX];
	unsigned held_count;
	struct message messages[ROOM_MAX];
	unsigned first, count;
	uint64_t noted, lost;
	unsigned last[STREAMS];
};

uint64_t parts_offers;
static unsigned streams;
static unsigned handed[STREAMS];      /* number of samples of each stream */

static const struct config_key part_keys[] = {
	{ "format", CONFIG_JSON, offsetof(struct part, format), .help = "format" },
	{ "gap", CONFIG_INT, offsetof(struct part, gap_ns), "50000",
	  .help = "ns between samples" },
	{ "limit", CONFIG_INT, offsetof(struct part, limit), "100000",
	  .help = "samples before the end" },
	{ "room", CONFIG_INT, offsetof(struct part, room), "16", .min = 1,
	  .max = ROOM_MAX, .help = "messages in the wire" },
	{ "mode", CONFIG_ENUM, offsetof(struct part, mode), "plain",
	  .names = mode_names, .help = "how it takes samples" },
	{ "strict", CONFIG_BOOL, offsetof(struct part, strict),
	  .help = "each sample comes once at most, in order" },
	{ "waits", CONFIG_BOOL, offsetof(struct part, waits),
	  .help = "has no descriptor" },
	{ "spins", CONFIG_BOOL, offsetof(struct part, spins),
	  .help = "waits as a generator that runs turns of paths, when it may" },
};

void parts_begin(void)
{
	streams = 0;
	memset(handed, 0, sizeof(handed));
}

static int part_init(struct node *n)
{
	struct part *p = n->private_data;

	p->event_fd = -1;
	return 0;
}

static int part_prepare(struct node *n)
{
	struct part *p = n->private_data;

	if (n->type == &parts_source) {
		if (streams == STREAMS)
			world_fail("too many sources");
		p->stream = streams++;
	}
	n->in.waits_itself = p->waits;
	p->event_fd = eventfd(n->type == &parts_source, EFD_CLOEXEC |
			      EFD_NONBLOCK);
	return p->event_fd < 0 ? -errno : 0;
}

static void nobody_inside(const struct node *n, const char *what)
{
	const struct part *p = n->private_data;

	if (p->reading || p->writing)
		world_fail("node %s: %s while somebody is in its read or write",
			   n->name, what);
}

static int part_start(struct node *n)
{
	struct part *p = n->private_data;
	struct signal_list *written = n->type == &parts_source ?
					      n->in.signals : n->out.signals;
	int ret;

	nobody_inside(n, "start");
	world_turn();
	atomic_store(&p->interrupted, false);
	ret = carrier_open(&p->carrier, n->config, p->format, written,
			   n->type == &parts_wire ? n->in.signals : written);
	p->waiting.generator = true;
	/* Counted until part_stop(), which only follows a start that went well. */
	if (!ret && p->spins)
		waiting_begin_spin(&p->waiting);
	return ret;
}

static int part_stop(struct node *n)
{
	struct part *p = n->private_data;

	nobody_inside(n, "stop");
	world_turn();
	waiting_end_spin(&p->waiting);
	sample_put_many(p->held, p->held_count);
	p->held_count = 0;
	carrier_close(&p->carrier);
	return 0;
}

static void forget_messages(struct part *p)
{
	p->lost += p->count;
	for (; p->count; p->count--) {
		free(p->messages[p->first].bytes);
		p->first = (p->first + 1) % ROOM_MAX;
	}
}

static void part_destroy(struct node *n)
{
	struct part *p = n->private_data;

	nobody_inside(n, "destroy");
	if (p->held_count)
		world_fail("node %s is destroyed and holds samples", n->name);
	carrier_close(&p->carrier);
	forget_messages(p);
	if (p->event_fd >= 0)
		close(p->event_fd);
}

static void part_interrupt(struct node *n)
{
	atomic_store(&((struct part *)n->private_data)->interrupted, true);
}

static void part_rearm(struct node *n)
{
	/* A writer may rearm a wire in the middle of a read. */
	if (n->type != &parts_wire)
		nobody_inside(n, "rearm");
	atomic_store(&((struct part *)n->private_data)->interrupted, false);
}

static void part_resume(struct node *n)
{
	struct part *p = n->private_data;

	p->due_ns = 0;
}

static unsigned part_hold_max(struct node *n)
{
	const struct part *p = n->private_data;

	return p->mode == MODE_HOLD ? HELD_MAX : 0;
}

static int part_poll_fds(struct node *n, int fds[], int max)
{
	struct part *p = n->private_data;

	if (p->waits || max < 1)
		return 0;
	fds[0] = p->event_fd;
	return 1;
}

static void enter(struct node *n, bool *inside, const char *what)
{
	if (!node_is_running(n))
		world_fail("node %s: %s though it is not started", n->name, what);
	if (*inside)
		world_fail("node %s: two threads in its %s", n->name, what);
	*inside = true;
	world_turn();
}

/* Passes the sample through the format and compares it. */
static int make(struct node *n, struct sample *s)
{
	struct part *p = n->private_data;
	unsigned number = p->stream << NUMBER_BITS | (p->next + 1);
	struct sample *scratch = p->carrier.scratch;
	int len;

	scratch->sequence = n->sequence + p->next;
	scratch->origin = clock_realtime();
	scratch->signals = n->in.signals;
	scratch->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN;
	carrier_fill(scratch, number);
	len = carrier_write(&p->carrier, scratch);
	if (len < 0 ||
	    carrier_read(&p->carrier, p->carrier.bytes, (size_t)len, s) ||
	    !carrier_is_sound(s) || s->data[0].f != number)
		world_fail("node %s: its format %s changes a sample (%d): %s",
			   n->name, p->carrier.writer->type->name, len,
			   format_error(p->carrier.reader));
	p->next++;
	handed[p->stream]++;
	return 1;
}

static bool is_due(struct part *p)
{
	uint64_t now = world_now_ns();

	if (p->burst) {
		p->burst--;
		return true;
	}
	if (!p->due_ns)
		p->due_ns = now;
	if (now < p->due_ns)
		return false;
	p->due_ns += (uint64_t)p->gap_ns;
	return true;
}

/* A generator's wait for its next step, and turns of paths in it (part/timer.c). */
static void wait_a_little(struct node *n)
{
	struct part *p = n->private_data;

	if (!p->spins || !n->in.carries || world_draw(32) == 0) {
		turn_spinner_ends();
		world_sleep_ns(20000);
		return;
	}
	turn_spinner_begins();
	if (turn_run_offered())
		parts_offers++;
	world_turn();
}

static int source_read_inside(struct node *n, struct sample *smps[],
			      unsigned cnt)
{
	struct part *p = n->private_data;
	unsigned got = 0;

	if (atomic_load(&p->dead))
		return -EIO;
	for (;;) {
		while (got < cnt && p->next < p->limit && is_due(p))
			got += (unsigned)make(n, smps[got]);
		if (got)
			return (int)got;
		if (p->next >= p->limit)
			return -ENODATA;
		if (!p->waits)
			return 0;
		if (atomic_load(&p->interrupted))
			return -EINTR;
		wait_a_little(n);
	}
}

static int source_read(struct node *n, struct sample *smps[], unsigned cnt,
		       unsigned *release)
{
	struct part *p = n->private_data;
	int ret;

	enter(n, &p->reading, "read");
	ret = source_read_inside(n, smps, cnt);
	p->reading = false;
	return ret;
}

/* Until it may be due; its path decides whether it sleeps or looks again and again. */
static void source_sleep(struct node *n, uint64_t until_ns)
{
	struct part *p = n->private_data;

	world_turn();
	while (!atomic_load(&p->interrupted) && world_now_ns() < until_ns && !p->burst &&
	       world_now_ns() < p->due_ns)
		world_sleep_ns(1 + MIN(p->due_ns - world_now_ns(), UINT64_C(20000)));
}

/* Each pair of values must be of a sample that a source has made. */
static void check_pairs(struct node *n, const struct sample *s)
{
	struct part *p = n->private_data;

	if (!carrier_is_sound(s))
		world_fail("node %s: a sample came changed", n->name);
	for (unsigned i = 0; i < s->length; i += 2) {
		unsigned number = (unsigned)s->data[i].f;
		unsigned stream = number >> NUMBER_BITS;
		unsigned of = number & ((1u << NUMBER_BITS) - 1);

		if (number && (stream >= streams || !of || of > handed[stream]))
			world_fail("node %s: sample %u of %u was never handed out",
				   n->name, of, stream);
		if (!p->strict)
			continue;
		if (of <= p->last[stream])
			world_fail("node %s: sample %u of %u comes after %u",
				   n->name, of, stream, p->last[stream]);
		p->last[stream] = of;
	}
}

static void note(struct node *n, struct sample *s)
{
	struct part *p = n->private_data;
	struct sample *back = p->carrier.scratch;
	int len = carrier_write(&p->carrier, s);

	if (len < 0 ||
	    carrier_read(&p->carrier, p->carrier.bytes, (size_t)len, back))
		world_fail("node %s: format %s cannot carry a sample of %u values (%d): %s",
			   n->name, p->carrier.writer->type->name, s->length,
			   len, len < 0 ? format_error(p->carrier.writer) :
					  format_error(p->carrier.reader));
	if (back->length != s->length ||
	    memcmp(back->data, s->data, s->length * sizeof(s->data[0])))
		world_fail("node %s: format %s changes a sample", n->name,
			   p->carrier.writer->type->name);
	check_pairs(n, s);
	world_note((uint64_t)s->data[0].f);
	p->noted++;
}

/* Like an adapter: keeps some samples, gives back some of this or earlier calls. */
static void hold(struct part *p, struct sample *smps[], unsigned cnt,
		 unsigned *release)
{
	struct sample *back[HELD_MAX + 64];
	unsigned n = 0;

	for (unsigned i = 0; i < cnt; i++) {
		if (p->held_count == HELD_MAX || !world_draw(3))
			back[n++] = smps[i];
		else
			p->held[p->held_count++] = smps[i];
	}
	while (n < cnt && p->held_count && world_draw(2))
		back[n++] = p->held[--p->held_count];
	memcpy(smps, back, n * sizeof(*smps));
	*release = n;
}

static unsigned sink_accepts(struct part *p, unsigned cnt)
{
	switch ((enum part_mode)p->mode) {
	case MODE_PLAIN:
	case MODE_HOLD:
		return cnt;
	case MODE_REFUSE:
		return world_draw(8) ? cnt : world_draw(cnt + 1);
	case MODE_SLOW:
		world_sleep_ns(world_draw(300000));
		return cnt;
	case MODE_STUCK:
		/* Sometimes its peer takes nothing for a long time. */
		if (world_draw(16))
			return cnt;
		for (int i = 0; i < 3000 && !atomic_load(&p->interrupted); i++)
			world_sleep_ns(10000);
		return atomic_load(&p->interrupted) ? 0 : cnt;
	}
	return cnt;
}

static int sink_write(struct node *n, struct sample *smps[], unsigned cnt,
		      unsigned *release)
{
	struct part *p = n->private_data;
	unsigned accepted;

	enter(n, &p->writing, "write");
	accepted = sink_accepts(p, cnt);
	for (unsigned i = 0; i < accepted; i++)
		note(n, smps[i]);
	if (p->mode == MODE_HOLD)
		hold(p, smps, cnt, release);
	p->writing = false;
	return (int)accepted;
}

static bool wire_push(struct node *n, struct sample *s)
{
	struct part *p = n->private_data;
	struct message *m = &p->messages[(p->first + p->count) % ROOM_MAX];
	uint64_t one = 1;
	int len;

	if (p->count == p->room || atomic_load(&p->dead))
		return false;
	len = carrier_write(&p->carrier, s);
	if (len < 0)
		world_fail("node %s: format %s cannot write a sample: %s",
			   n->name, p->carrier.writer->type->name,
			   format_error(p->carrier.writer));
	m->len = (size_t)len;
	m->bytes = malloc(m->len);
	memcpy(m->bytes, p->carrier.bytes, m->len);
	p->count++;
	return write(p->event_fd, &one, sizeof(one)) == sizeof(one);
}

static int wire_write(struct node *n, struct sample *smps[], unsigned cnt,
		      unsigned *release)
{
	struct part *p = n->private_data;
	unsigned i = 0;

	enter(n, &p->writing, "write");
	while (i < cnt && wire_push(n, smps[i]))
		i++;
	p->writing = false;
	return (int)i;
}

static void wire_pop(struct node *n, struct sample *s)
{
	struct part *p = n->private_data;
	struct message *m = &p->messages[p->first];

	if (carrier_read(&p->carrier, m->bytes, m->len, s) ||
	    !carrier_is_sound(s))
		world_fail("node %s: format %s cannot read what it wrote: %s",
			   n->name, p->carrier.reader->type->name,
			   format_error(p->carrier.reader));
	free(m->bytes);
	p->first = (p->first + 1) % ROOM_MAX;
	p->count--;
}

static int wire_read_inside(struct node *n, struct sample *smps[], unsigned cnt)
{
	struct part *p = n->private_data;
	unsigned got = 0;
	uint64_t drained;

	if (!p->waits && read(p->event_fd, &drained, sizeof(drained)) < 0 &&
	    errno != EAGAIN)
		return -errno;
	while (!p->count && p->waits && !atomic_load(&p->interrupted))
		world_sleep_ns(20000);
	while (got < cnt && p->count)
		wire_pop(n, smps[got++]);
	/* Samples are left: the descriptor stays readable. */
	drained = 1;
	if (p->count && write(p->event_fd, &drained, sizeof(drained)) < 0)
		return -errno;
	if (!got && p->waits)
		return -EINTR;
	return (int)got;
}

static int wire_read(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *release)
{
	struct part *p = n->private_data;
	int ret;

	enter(n, &p->reading, "read");
	ret = wire_read_inside(n, smps, cnt);
	p->reading = false;
	return ret;
}

void parts_kill(struct node *n, bool dead)
{
	struct part *p = n->private_data;

	if (n->type != &parts_source && n->type != &parts_wire)
		return;
	atomic_store(&p->dead, dead);
	if (n->type == &parts_wire)
		forget_messages(p);
}

void parts_burst(struct node *n, unsigned samples)
{
	if (n->type == &parts_source)
		((struct part *)n->private_data)->burst += samples;
}

static const struct part *part_of(const struct node *n)
{
	return n->private_data;
}

uint64_t parts_noted(const struct node *n)
{
	return part_of(n)->noted;
}

uint64_t parts_lost(const struct node *n)
{
	return part_of(n)->lost;
}

uint64_t parts_inside(const struct node *n)
{
	return part_of(n)->count;
}

#define PART_COMMON                                                     \
	.size = sizeof(struct part), .keys = part_keys,                 \
	.key_count = ARRAY_SIZE(part_keys), .init = part_init,          \
	.prepare = part_prepare, .start = part_start, .stop = part_stop, \
	.destroy = part_destroy, .interrupt = part_interrupt,           \
	.rearm = part_rearm, .hold_max = part_hold_max

const struct node_type parts_source = {
	.name = "sim.source",
	.flags = NODE_CAN_READ,
	PART_COMMON,
	.read = source_read,
	.sleep = source_sleep,
	.resume = part_resume,
	.poll_fds = part_poll_fds,
};

const struct node_type parts_sink = {
	.name = "sim.sink",
	.flags = NODE_CAN_WRITE,
	.vectorize_max = 64,
	PART_COMMON,
	.write = sink_write,
};

const struct node_type parts_wire = {
	.name = "sim.wire",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_LOOPS,
	PART_COMMON,
	.read = wire_read,
	.write = wire_write,
	.poll_fds = part_poll_fds,
};

static const struct plugin parts[] = {
	{ .name = "sim.source", .type = &parts_source },
	{ .name = "sim.sink", .type = &parts_sink },
	{ .name = "sim.wire", .type = &parts_wire },
	{ .name = NULL },
};

void parts_register(void)
{
	plugin_extend(node_plugins, parts);
}
