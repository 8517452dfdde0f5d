/* SPDX-License-Identifier: BSD-2-Clause */
/* See fake.h. Takes the place of the gateway's registry of node-types. */
#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gateway/base/turn.h"
#include "util/clock.h"
#include "util/log.h"

char fake_events[4096];
_Atomic pthread_t fake_reader;
_Atomic uint64_t fake_given;
atomic_bool fake_refuse_prepare;

static char log_text[65536];
static size_t log_len;
static unsigned log_errors;
static struct spin log_lock;

static bool keep_line(enum log_level level, const char *line)
{
	spin_lock(&log_lock);
	log_errors += level == LOG_ERROR;
	if (log_len < sizeof(log_text))
		log_len += (size_t)snprintf(log_text + log_len,
					    sizeof(log_text) - log_len, "%s\n",
					    line);
	log_len = MIN(log_len, sizeof(log_text) - 1);
	spin_unlock(&log_lock);
	return true;
}

void fake_log_start(void)
{
	log_len = log_errors = 0;
	log_text[0] = '\0';
	fake_events[0] = '\0';
	log_set_sink(keep_line);
	log_set_level(LOG_INFO);
}

const char *fake_log(void)
{
	return log_text;
}

unsigned fake_log_errors(void)
{
	return log_errors;
}

static const char *const fake_modes[] = { "plain", "hold", "few", "idle",
					  "keep", "wait", "paced", "slow", NULL };

static const struct config_key fake_keys[] = {
	{ "limit", CONFIG_INT, offsetof(struct fake, limit), "10",
	  .help = "samples" },
	{ "seed", CONFIG_INT, offsetof(struct fake, seed), "1", .help = "seed" },
	{ "base", CONFIG_INT, offsetof(struct fake, base), "0",
	  .help = "added to values" },
	{ "pace_us", CONFIG_INT, offsetof(struct fake, pace_us), "50",
	  .help = "between samples of mode paced" },
	{ "values", CONFIG_INT, offsetof(struct fake, values), "2",
	  .help = "per sample" },
	{ "mode", CONFIG_ENUM, offsetof(struct fake, mode), "plain",
	  .names = fake_modes, .help = "mode" },
	{ "fail_start", CONFIG_BOOL, offsetof(struct fake, fail_start),
	  .help = "start fails" },
	{ "fail_prepare", CONFIG_BOOL, offsetof(struct fake, fail_prepare),
	  .help = "prepare fails" },
	{ "hoard", CONFIG_BOOL, offsetof(struct fake, hoard),
	  .help = "does not say how much it holds" },
	{ "own_memory", CONFIG_BOOL, offsetof(struct fake, own_memory),
	  .help = "wraps memory" },
};

static unsigned draw(struct fake *f, unsigned below)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return (unsigned)(f->random % below);
}

static void event(struct node *n, const char *what)
{
	size_t len = strlen(fake_events);

	if (len + 64 > sizeof(fake_events))
		return;
	snprintf(fake_events + len, sizeof(fake_events) - len, "%s%s:%s",
		 len ? " " : "", what, n->name);
}

static struct memory_block *own_alloc(struct memory_type *t, size_t size)
{
	struct fake *f = t->private_data;
	struct memory_block *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->parent = memory_alloc(t->parent, size);
	b->addr = b->parent->addr;
	b->size_bytes = b->parent->size_bytes;
	b->type = t;
	f->blocks++;
	return b;
}

static void own_free(struct memory_type *t, struct memory_block *b)
{
	struct fake *f = t->private_data;

	memory_free(b->parent);
	f->blocks--;
	free(b);
}

static struct memory_type *fake_memory_type(struct node *n,
					    struct memory_type *parent)
{
	struct fake *f = n->private_data;

	if (!f->own_memory)
		return parent;
	assert_true(node_state(n) >= NODE_PREPARED);
	f->memory = (struct memory_type){ .name = "fake",
					  .parent = parent,
					  .alignment = parent->alignment,
					  .alloc = own_alloc,
					  .free = own_free,
					  .private_data = f };
	return &f->memory;
}

static int fake_prepare(struct node *n)
{
	struct fake *f = n->private_data;

	event(n, "prepare");
	f->random = (uint64_t)f->seed * 0x9e3779b97f4a7c15u + 1;
	f->seen = calloc(FAKE_SEEN_MAX, sizeof(*f->seen));
	f->first = calloc(FAKE_SEEN_MAX, sizeof(*f->first));
	f->second = calloc(FAKE_SEEN_MAX, sizeof(*f->second));
	f->data = calloc(FAKE_SEEN_MAX, sizeof(*f->data));
	f->lengths = calloc(FAKE_SEEN_MAX, sizeof(*f->lengths));
	return f->fail_prepare || atomic_load(&fake_refuse_prepare) ? -EIO : 0;
}

static int fake_start(struct node *n)
{
	struct fake *f = n->private_data;

	event(n, "start");
	assert_false(atomic_load(&f->inside) || atomic_load(&f->writing));
	atomic_store(&f->interrupted, false);
	/* A source that is started anew begins anew. */
	f->next = 0;
	return f->fail_start || atomic_load(&f->refuse) ? -EIO : 0;
}

static int fake_stop(struct node *n)
{
	struct fake *f = n->private_data;

	event(n, "stop");
	assert_false(atomic_load(&f->inside) || atomic_load(&f->writing));
	sample_put_many(f->held, f->held_count);
	f->held_count = 0;
	return 0;
}

static void fake_destroy(struct node *n)
{
	struct fake *f = n->private_data;

	assert_int_equal(f->held_count, 0);
	assert_int_equal(f->blocks, 0);
	free(f->seen);
	free(f->first);
	free(f->second);
	free(f->lengths);
	free(f->data);
}

static void fake_interrupt(struct node *n)
{
	atomic_store(&((struct fake *)n->private_data)->interrupted, true);
}

static void fake_rearm(struct node *n)
{
	atomic_store(&((struct fake *)n->private_data)->interrupted, false);
}

static void fake_resume(struct node *n)
{
	struct fake *f = n->private_data;

	/* In the thread that reads, before it does. */
	assert_false(atomic_load(&f->inside));
	atomic_fetch_add(&f->resumed, 1);
}

static unsigned fake_hold_max(struct node *n)
{
	const struct fake *f = n->private_data;

	return f->hoard ? 0 : FAKE_HELD_MAX;
}

static void fill(struct fake *f, struct sample *s)
{
	assert_int_equal(s->flags, 0);
	assert_int_equal(s->length, 0);
	assert_int_equal(s->refcnt, 1);
	s->sequence = f->next++;
	s->origin = clock_realtime();
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	s->length = MIN((unsigned)f->values, s->capacity);
	for (unsigned i = 0; i < s->length; i++)
		s->data[i].f = (double)(f->base + (int64_t)s->sequence +
					1000000 * i);
	if (s->length > 1)
		s->data[1].f = -s->data[0].f;
	atomic_fetch_add(&fake_given, 1);
}

/*
 * Like a receive queue: keeps what it is given until it is full, then hands out
 * some of the oldest in exchange for new ones, and now and then refuses some.
 */
static int read_hold(struct fake *f, struct sample *smps[], unsigned cnt,
		     unsigned *release)
{
	unsigned room = FAKE_HELD_MAX / 2 - MIN(f->held_count,
						FAKE_HELD_MAX / 2);
	unsigned n;

	if (room) {
		n = MIN(cnt, room);
		n = MIN(n, 1 + draw(f, cnt));
		for (unsigned i = 0; i < n; i++)
			f->held[f->held_count++] = smps[i];
		memmove(smps, smps + n, (cnt - n) * sizeof(*smps));
		*release = cnt - n;
		return 0;
	}
	n = draw(f, cnt + 1);
	n = (unsigned)MIN((uint64_t)n, (uint64_t)f->limit - f->next);
	for (unsigned i = 0; i < n; i++) {
		struct sample *fresh = smps[i];

		smps[i] = f->held[0];
		memmove(f->held, f->held + 1,
			(f->held_count - 1) * sizeof(*f->held));
		f->held[f->held_count - 1] = fresh;
		fill(f, smps[i]);
	}
	return (int)n;
}

/* As an instrument: one sample each time, and soon back when interrupted. */
static int read_paced(struct node *n, struct fake *f, struct sample *smps[])
{
	if (n->in.carries)
		turn_spinner_begins(); /* as a timer does */
	nanosleep(&(struct timespec){ .tv_nsec = f->pace_us * 1000 }, NULL);
	if (atomic_load(&f->interrupted))
		return -EINTR;
	fill(f, smps[0]);
	return 1;
}

static int read_any(struct node *n, struct sample *smps[], unsigned cnt,
		    unsigned *release)
{
	struct fake *f = n->private_data;
	unsigned give = cnt;

	assert_int_equal(*release, cnt);
	if (f->mode == FAKE_PACED)
		return read_paced(n, f, smps);
	if (f->mode == FAKE_IDLE && f->next == (uint64_t)f->limit) {
		if (atomic_load(&f->interrupted))
			return -EINTR;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		return 0;
	}
	if (f->next >= (uint64_t)f->limit)
		return -ENODATA;
	if (f->mode == FAKE_SLOW) {
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
		cnt = give = 1;
	}
	if (f->mode == FAKE_HOLD)
		return read_hold(f, smps, cnt, release);
	if (f->mode == FAKE_KEEP) {
		/* Looks at its own samples until the next call. */
		sample_put_many(f->held, f->held_count);
		f->held_count = 0;
	}
	if (f->mode == FAKE_FEW)
		give = draw(f, cnt + 1);
	give = (unsigned)MIN((uint64_t)give, (uint64_t)f->limit - f->next);
	for (unsigned i = 0; i < give; i++)
		fill(f, smps[i]);
	if (f->mode == FAKE_KEEP) {
		memcpy(f->held, smps, cnt * sizeof(*smps));
		f->held_count = cnt;
		*release = 0;
	}
	return (int)give;
}

/* No thread may be in here while the node is started or stopped. */
static int fake_read(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *release)
{
	struct fake *f = n->private_data;
	int ret;

	assert_true(node_is_running(n));
	assert_false(atomic_exchange(&f->inside, true));
	atomic_store(&fake_reader, pthread_self());
	ret = read_any(n, smps, cnt, release);
	atomic_store(&f->inside, false);
	return ret;
}

static void note(struct fake *f, const struct sample *s)
{
	assert_true(s->refcnt >= 1);
	spin_lock(&f->lock);
	/* On a slow machine a test may let more pass. */
	if (f->seen_count == FAKE_SEEN_MAX) {
		spin_unlock(&f->lock);
		return;
	}
	f->seen[f->seen_count] = s->sequence;
	f->first[f->seen_count] = s->length > 0 ? s->data[0].f : 0;
	f->second[f->seen_count] = s->length > 1 ? s->data[1].f : 0;
	memcpy(f->data[f->seen_count], s->data,
	       MIN(s->length, FAKE_VALUES_MAX) * sizeof(s->data[0]));
	f->lengths[f->seen_count++] = s->length;
	if (f->own_memory && !memory_block_of(s->pool->block, &f->memory))
		f->foreign++;
	spin_unlock(&f->lock);
}

/* Like a send queue: keeps some, gives back some of this or earlier calls. */
static int write_hold(struct fake *f, struct sample *smps[], unsigned cnt,
		      unsigned *release)
{
	struct sample *back[FAKE_HELD_MAX];
	unsigned n = 0, accepted = cnt;

	if (draw(f, 8) == 0)
		accepted = draw(f, cnt + 1);
	for (unsigned i = accepted; i < cnt; i++)
		back[n++] = smps[i];
	for (unsigned i = 0; i < accepted; i++) {
		note(f, smps[i]);
		if (f->held_count == FAKE_HELD_MAX || draw(f, 3) == 0)
			back[n++] = smps[i]; /* as if sent inline */
		else
			f->held[f->held_count++] = smps[i];
	}
	/* Completions of earlier calls, as many as there are places for. */
	while (n < cnt && f->held_count && draw(f, 2))
		back[n++] = f->held[--f->held_count];
	memcpy(smps, back, n * sizeof(*smps));
	*release = n;
	return (int)accepted;
}

static bool fake_may_wait(struct node *n)
{
	const struct fake *f = n->private_data;

	return f->mode == FAKE_WAIT;
}

static int fake_write(struct node *n, struct sample *smps[], unsigned cnt,
		      unsigned *release)
{
	struct fake *f = n->private_data;
	int ret = (int)cnt;

	assert_int_equal(*release, cnt);
	assert_true(cnt >= 1 && cnt <= n->out.vectorize);
	assert_true(node_is_running(n));
	assert_false(atomic_exchange(&f->writing, true));
	if (pthread_equal(pthread_self(), atomic_load(&fake_reader)))
		f->carried += cnt;
	while (f->mode == FAKE_WAIT &&
	       atomic_load(&fake_given) < (uint64_t)f->limit &&
	       !atomic_load(&f->interrupted))
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	if (f->mode == FAKE_HOLD) {
		ret = write_hold(f, smps, cnt, release);
		node_refuse(n, NODE_LOSS_FULL, cnt - (unsigned)ret, "drawn");
	} else {
		for (unsigned i = 0; i < cnt; i++)
			note(f, smps[i]);
	}
	atomic_store(&f->writing, false);
	return ret;
}

unsigned fake_seen(struct fake *f)
{
	unsigned n;

	spin_lock(&f->lock);
	n = f->seen_count;
	spin_unlock(&f->lock);
	return n;
}

#define FAKE_COMMON                                                       \
	.size = sizeof(struct fake), .keys = fake_keys,                   \
	.key_count = ARRAY_SIZE(fake_keys), .prepare = fake_prepare,      \
	.start = fake_start, .stop = fake_stop, .destroy = fake_destroy,  \
	.interrupt = fake_interrupt, .memory_type = fake_memory_type,     \
	.hold_max = fake_hold_max, .rearm = fake_rearm,                   \
	.resume = fake_resume

static const struct node_type fake_source = {
	.name = "source",
	.flags = NODE_CAN_READ | NODE_READ_BLOCKS,
	FAKE_COMMON,
	.read = fake_read,
};

static const struct node_type fake_sink = {
	.name = "sink",
	.flags = NODE_CAN_WRITE,
	FAKE_COMMON,
	.write = fake_write,
	.may_wait = fake_may_wait,
};

static const struct node_type fake_both = {
	.name = "both",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS,
	FAKE_COMMON,
	.read = fake_read,
	.write = fake_write,
	.may_wait = fake_may_wait,
};

/* Never has data, and a descriptor that says so. */
static int polled_start(struct node *n)
{
	struct fake *f = n->private_data;

	f->event_fd = eventfd(0, EFD_CLOEXEC);
	return f->event_fd < 0 ? -errno : 0;
}

static int polled_stop(struct node *n)
{
	close(((struct fake *)n->private_data)->event_fd);
	return 0;
}

static int polled_read(struct node *n, struct sample *smps[], unsigned cnt,
		       unsigned *release)
{
	return 0;
}

static int polled_poll_fds(struct node *n, int fds[], int max)
{
	struct fake *f = n->private_data;

	atomic_store(&f->polled, max > 0);
	if (max > 0)
		fds[0] = f->event_fd;
	return max > 0;
}

static const struct node_type fake_polled = {
	.name = "polled",
	.flags = NODE_CAN_READ | NODE_READ_BLOCKS,
	.size = sizeof(struct fake),
	.start = polled_start,
	.stop = polled_stop,
	.read = polled_read,
	.interrupt = fake_interrupt,
	.rearm = fake_rearm,
	.resume = fake_resume,
	.poll_fds = polled_poll_fds,
};

extern const struct node_type node_loopback, node_stats;

const struct plugin node_plugins[] = {
	{ .name = "source", .type = &fake_source },
	{ .name = "sink", .type = &fake_sink },
	{ .name = "both", .type = &fake_both },
	{ .name = "polled", .type = &fake_polled },
	{ .name = "loopback", .type = &node_loopback },
	{ .name = "stats", .type = &node_stats },
	{ .name = NULL },
};

const struct plugin node_plugins_left_out[] = {
	{ .name = "unbuilt", .package = "libunbuilt-dev" },
	{ .name = NULL },
};

struct config *fake_config(const char *text)
{
	struct config *c = NULL;

	assert_int_equal(config_load_text("test.conf", text, strlen(text), &c),
			 0);
	return c;
}

struct super_node *fake_super_node(const char *text, struct config **c)
{
	struct super_node *sn = NULL;

	fake_log_start();
	atomic_store(&fake_given, 0);
	*c = fake_config(text);
	if (super_node_new(&sn, *c))
		return NULL;
	return sn;
}

void fake_run(struct super_node *sn)
{
	assert_int_equal(super_node_start(sn), 0);
	assert_true(super_node_wait(sn, 20000));
	super_node_stop(sn);
}

void fake_end(struct super_node *sn, struct config *c)
{
	super_node_destroy(sn);
	config_destroy(c);
	if (fake_log_errors())
		print_error("%s", fake_log());
	assert_int_equal(fake_log_errors(), 0);
}
