/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `shmem`: samples to and from a simulator on the same host, through
 * two rings in shared memory. The rings are those of libbusbar-shmem
 * (include/busbar/shmem.h), which the simulator uses too.
 *
 * The node offers no poll descriptors: the peer is another process, and a thread
 * that turned its wake-ups into an eventfd would add a switch to every sample.
 * Where a path has several sources the framework reads this one from a thread of
 * its own, which is the same thread at the same price.
 *
 * A thread looks whether the simulator has come or gone, for the node's state and
 * the log; the data path finds out by itself, and says so. Each look takes some 20 us
 * from a processor on which somebody may generate samples, so there are few while
 * the simulator is there. It also attaches anew where an object was cut off or
 * removed; reading and writing stand behind a gate of the node meanwhile, which
 * costs a sample nothing else than the one of its path does.
 */
#define LOG_ROOM "gateway/shmem"
#include <busbar/shmem.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "gateway/base/gate.h"
#include "gateway/base/thread.h"
#include "gateway/part/child.h"
#include "gateway/plugin/node.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/log.h"

#define WATCH_MS 20
#define WATCH_CONNECTED_MS 100
#define READ_NS 100000000
#define ARGUMENTS_MAX 64
/* A simulator that takes nothing for so long is not waited for, and how often is
 * looked: it has no way to wake a writer. */
#define BLOCK_NS UINT64_C(2000000000)
#define LOOK_NS 20000
/* Between two looks whether reading and writing have come to an end. */
#define LET_GO_NS 200000
/* For a simulator that the node starts, before its first sample is written. */
#define START_WAIT_MS 1000
/* Between asking the simulator to end and killing it. */
#define GRACE_MS 2000

/* How read waits. */
enum shmem_mode { MODE_AUTO, MODE_PTHREAD, MODE_POLLING };

static const char *const mode_names[] = { "auto", "pthread", "polling", NULL };

enum shmem_full { FULL_DROP, FULL_BLOCK };

static const char *const full_names[] = { "drop", "block", NULL };

struct shmem {
	/* Settings. */
	const char *in_name, *out_name;
	int64_t queuelen, samplelen;
	int mode, full;
	json_t *exec;

	struct busbar_shmem *handle;
	struct busbar_shmem *reader; /* the handle, but for one object that is
				      * written and read: the node is its own peer */
	pthread_mutex_t swap;    /* the two, for who is not behind a gate */
	struct gate reading, writing; /* shut: there are none */
	bool cut_off;            /* of the thread: it is to attach anew */
	bool said_again;         /* that this cannot be done yet */
	unsigned long again;     /* how often it has */
	struct busbar_shmem_sample *in, *out; /* headers of a batch */
	struct child child;
	pthread_t thread;
	bool has_thread;
	int event_fd;            /* makes the thread look */
	_Atomic bool ending;     /* so that it ends */
	_Atomic bool called;     /* it has been made to look, and will */
	_Atomic bool connected;
	bool said_cut;
	bool gave_up;            /* a full ring was waited for in vain */
};

extern const struct node_type node_shmem;

static const struct config_key shmem_keys[] = {
	{ "queuelen", CONFIG_INT, offsetof(struct shmem, queuelen), "512",
	  .min = 2, .max = 1 << 20,
	  .help = "Samples in the ring of a direction, rounded up to a power of two" },
	{ "samplelen", CONFIG_INT, offsetof(struct shmem, samplelen), "0",
	  .min = 0, .max = 65536,
	  .help = "Values in a sample at most; 0: as many as there are signals, else 64" },
	{ "mode", CONFIG_ENUM, offsetof(struct shmem, mode), "auto",
	  .names = mode_names,
	  .help = "auto: read waits as seems best; pthread: it sleeps until something comes; polling: it spins" },
	{ "exec", CONFIG_JSON, offsetof(struct shmem, exec),
	  .help = "Program and arguments of a simulator that is started with the node" },
};

static const struct config_key shmem_in_keys[] = {
	{ "name", CONFIG_STRING, offsetof(struct shmem, in_name),
	  .help = "Shared memory object that is read; the simulator writes it" },
};

static const struct config_key shmem_out_keys[] = {
	{ "name", CONFIG_STRING, offsetof(struct shmem, out_name),
	  .help = "Shared memory object that is written; the simulator reads it" },
	{ "full", CONFIG_ENUM, offsetof(struct shmem, full), "drop",
	  .names = full_names,
	  .help = "When the ring is full: drop samples and count them, or block "
		  "the path until the simulator has taken some" },
};

static int shmem_parse(struct node *n, struct config *c, json_t *cfg)
{
	const struct shmem *s = n->private_data;

	n->in.waits_itself = s->mode != MODE_AUTO;
	return 0;
}

static int shmem_init(struct node *n)
{
	struct shmem *s = n->private_data;

	s->event_fd = -1;
	pthread_mutex_init(&s->swap, NULL);
	return 0;
}

static int shmem_reverse(struct node *n)
{
	struct shmem *s = n->private_data;
	const char *name = s->in_name;

	s->in_name = s->out_name;
	s->out_name = name;
	return 0;
}

/* ---- check ---- */

static void check_name(struct config *c, const json_t *cfg, const char *group,
		       const char *name)
{
	const json_t *at = json_object_get(cfg, group);
	const char *plain = name + (*name == '/');

	if (!*plain || strchr(plain, '/') || strlen(plain) > 240)
		config_fail(c, json_is_object(at) ? at : cfg, "name",
			    "'%.80s' is no name of a shared memory object: 1 to 240 characters without a slash, but for the first",
			    name);
}

static void check_exec(struct config *c, const json_t *cfg, const json_t *exec)
{
	size_t i;
	const json_t *word;

	if (!json_is_array(exec) || json_array_size(exec) < 1 ||
	    json_array_size(exec) > ARGUMENTS_MAX) {
		config_fail(c, cfg, "exec",
			    "expected a list of a program and its arguments, at most %d",
			    ARGUMENTS_MAX);
		return;
	}
	json_array_foreach(exec, i, word)
		if (!json_is_string(word))
			config_fail(c, cfg, "exec",
				    "entry %zu is no text; write numbers in quotes",
				    i);
}

static int shmem_check(struct node *n, struct config *c, json_t *cfg)
{
	struct shmem *s = n->private_data;
	unsigned before = config_errors(c);

	if (s->in_name)
		check_name(c, cfg, "in", s->in_name);
	if (s->out_name)
		check_name(c, cfg, "out", s->out_name);
	if (!s->in_name && !s->out_name)
		config_fail(c, cfg, NULL,
			    "`in.name` and `out.name` are missing; the names of the objects that are read and written");
	if (s->exec)
		check_exec(c, cfg, s->exec);
	return config_errors(c) > before ? -EINVAL : 0;
}

/* ---- life ---- */

static int start_child(struct node *n)
{
	struct shmem *s = n->private_data;
	char *argv[ARGUMENTS_MAX + 1] = { NULL };
	const struct child_settings settings = {
		.node = n->name, .argv = argv,
		.streams = { SPAWN_INHERITS, SPAWN_INHERITS, SPAWN_INHERITS },
		/* Else it would hold on to the objects that the next gateway wants to
		 * give to a new simulator. */
		.dies_along = true,
	};
	size_t i;
	json_t *word;

	json_array_foreach(s->exec, i, word)
		argv[i] = (char *)(uintptr_t)json_string_value(word);
	return child_start(&s->child, &settings);
}

/* Whether the simulator runs; its end is logged, once. */
static bool child_runs(struct shmem *s)
{
	if (!s->child.pid)
		return false;
	if (!child_wait(&s->child, 0))
		return true;
	child_tell_end(&s->child);
	child_reap(&s->child);
	return false;
}

static const char *name_or(const char *name)
{
	return name ? name : "(none)";
}

static void close_rings(struct shmem *s)
{
	if (s->reader != s->handle)
		busbar_shmem_close(s->reader);
	busbar_shmem_close(s->handle);
	s->handle = s->reader = NULL;
}

/* Nobody can come to the objects that the node has, or there is nothing in them
 * any more. True, and said. */
static bool is_cut_off(struct node *n, bool connected)
{
	struct shmem *s = n->private_data;

	if (busbar_shmem_broken(s->handle) || busbar_shmem_broken(s->reader))
		log_error("node %s: somebody made the shared memory object %s or %s smaller while it was in use, and its samples are lost; the node attaches anew",
			  n->name, name_or(s->out_name), name_or(s->in_name));
	else if (!connected && (busbar_shmem_removed(s->handle) ||
				busbar_shmem_removed(s->reader)))
		log_warn("node %s: somebody removed the shared memory object %s or %s; the node attaches anew",
			 n->name, name_or(s->out_name), name_or(s->in_name));
	else
		return false;
	return true;
}

/* From now on reading and writing find no peer. */
static void let_go(struct shmem *s)
{
	gate_shut(&s->reading, GATE_HOLD);
	gate_shut(&s->writing, GATE_HOLD);
	while (!gate_is_empty(&s->reading) || !gate_is_empty(&s->writing)) {
		busbar_shmem_interrupt(s->reader);
		nanosleep(&(struct timespec){ .tv_nsec = LET_GO_NS }, NULL);
	}
	pthread_mutex_lock(&s->swap);
	close_rings(s);
	pthread_mutex_unlock(&s->swap);
	s->cut_off = true;
	s->said_again = false;
}

static int open_rings(struct node *n);

/* What is in the way, a simulator that still has the old object, may go. */
static bool attach_again(struct node *n)
{
	struct shmem *s = n->private_data;
	int ret;

	pthread_mutex_lock(&s->swap);
	ret = open_rings(n);
	if (ret)
		close_rings(s);
	pthread_mutex_unlock(&s->swap);
	if (ret && !s->said_again)
		log_warn("node %s: cannot attach anew yet: %s", n->name,
			 busbar_shmem_error());
	s->said_again = ret;
	if (ret)
		return false;
	s->cut_off = false;
	log_info("node %s: attached anew to %s and %s (%lu. time)", n->name,
		 name_or(s->out_name), name_or(s->in_name), ++s->again);
	gate_open(&s->reading, GATE_HOLD);
	gate_open(&s->writing, GATE_HOLD);
	return true;
}

/* The node's state follows the simulator. */
static void follow(struct node *n)
{
	struct shmem *s = n->private_data;
	bool is = false;

	child_runs(s);
	if (!s->cut_off) {
		is = busbar_shmem_connected(s->handle);
		if (is_cut_off(n, is)) {
			let_go(s);
			is = false;
		}
	}
	if (s->cut_off && attach_again(n))
		is = busbar_shmem_connected(s->handle);
	/* Before that the state is the super-node's. */
	if (!node_is_running(n))
		return;
	if (is && !atomic_load(&s->connected))
		log_info("node %s: connected, simulator attached to %s and %s",
			 n->name, name_or(s->out_name), name_or(s->in_name));
	else if (!is && atomic_load(&s->connected))
		log_info("node %s: the simulator has gone; received %llu, sent %llu samples so far",
			 n->name,
			 (unsigned long long)atomic_load(&n->counters.received),
			 (unsigned long long)atomic_load(&n->counters.sent));
	else if (!is && node_state(n) == NODE_STARTED)
		log_info("node %s: waiting for a simulator that writes %s and reads %s",
			 n->name, name_or(s->in_name), name_or(s->out_name));
	atomic_store(&s->connected, is);
	if (node_state(n) != (is ? NODE_CONNECTED : NODE_PENDING_CONNECT))
		node_set_state(n, is ? NODE_CONNECTED : NODE_PENDING_CONNECT);
}

static void *watch(void *node)
{
	struct node *n = node;
	struct shmem *s = n->private_data;
	struct pollfd pfd = { .fd = s->event_fd, .events = POLLIN };
	uint64_t count;

	while (!atomic_load(&s->ending)) {
		follow(n);
		if (poll(&pfd, 1, atomic_load(&s->connected) ? WATCH_CONNECTED_MS :
							       WATCH_MS) > 0 &&
		    read(s->event_fd, &count, sizeof(count)) > 0)
			atomic_store(&s->called, false);
	}
	return NULL;
}

static bool call_watch(struct shmem *s)
{
	const uint64_t one = 1;

	return write(s->event_fd, &one, sizeof(one)) == sizeof(one);
}

/* The data path found no peer: tells that once. */
static void say_gone(struct shmem *s)
{
	if (atomic_load(&s->connected) && !atomic_exchange(&s->called, true))
		call_watch(s);
}

static struct busbar_shmem_sample *make_headers(unsigned count)
{
	return calloc(count, sizeof(struct busbar_shmem_sample));
}

static unsigned values_wanted(const struct node *n)
{
	const struct shmem *s = n->private_data;
	unsigned count = 0;

	if (s->samplelen)
		return (unsigned)s->samplelen;
	if (n->in.signals)
		count = n->in.signals->count;
	if (n->out.signals)
		count = MAX(count, n->out.signals->count);
	return count ? count : SIGNALS_DEFAULT;
}

static bool is_own_peer(const struct shmem *s)
{
	return s->in_name && s->out_name &&
	       !strcmp(s->in_name + (*s->in_name == '/'),
		       s->out_name + (*s->out_name == '/'));
}

/* An object that takes less than what paths bring would lose all of it. */
static int shmem_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct shmem *s = n->private_data;
	unsigned count = n->out.signals ? n->out.signals->count : 0;

	if (!n->is_destination || !s->samplelen || s->samplelen >= count)
		return 0;
	log_info("node %s: samplelen %lld is raised to %u, the values of a sample that is written",
		 n->name, (long long)s->samplelen, count);
	s->samplelen = count;
	return 0;
}

static int open_rings(struct node *n)
{
	struct shmem *s = n->private_data;
	struct busbar_shmem_options options = {
		.mode = s->mode == MODE_POLLING ? BUSBAR_SHMEM_POLLING :
						  BUSBAR_SHMEM_PTHREAD,
		.queuelen = (uint32_t)s->queuelen,
		.values = values_wanted(n),
	};
	bool own_peer = is_own_peer(s);
	int ret = busbar_shmem_open(&s->handle, s->out_name,
				    own_peer ? NULL : s->in_name, &options);

	if (!ret && own_peer)
		ret = busbar_shmem_open(&s->reader, NULL, s->in_name, &options);
	else
		s->reader = s->handle;
	return ret;
}

/* A simulator that the node started itself shall not miss the beginning. */
static void await_child(struct node *n)
{
	struct shmem *s = n->private_data;

	for (int ms = 0; ms < START_WAIT_MS && !ending_has_begun(); ms++) {
		if (busbar_shmem_connected(s->handle) || !child_runs(s))
			return;
		poll(NULL, 0, 1);
	}
}

static int shmem_stop(struct node *n)
{
	struct shmem *s = n->private_data;

	atomic_store(&s->ending, true);
	if (s->has_thread && call_watch(s))
		pthread_join(s->thread, NULL);
	s->has_thread = false;
	if (s->event_fd >= 0)
		close(s->event_fd);
	s->event_fd = -1;
	/* First the rings: a simulator that reads knows that it is over. */
	close_rings(s);
	if (child_runs(s)) {
		child_end(&s->child, 0, GRACE_MS);
		child_reap(&s->child);
	}
	free(s->in);
	free(s->out);
	s->in = s->out = NULL;
	return 0;
}

static int shmem_start(struct node *n)
{
	struct shmem *s = n->private_data;
	int ret;

	atomic_store(&s->connected, false);
	atomic_store(&s->called, false);
	atomic_store(&s->ending, false);
	s->said_cut = s->gave_up = false;
	s->cut_off = false;
	s->again = 0;
	gate_open(&s->reading, GATE_HOLD);
	gate_open(&s->writing, GATE_HOLD);
	busbar_shmem_guard();
	s->in = make_headers(n->in.vectorize);
	s->out = make_headers(n->out.vectorize);
	s->event_fd = eventfd(0, EFD_CLOEXEC);
	ret = !s->in || !s->out ? -ENOMEM : s->event_fd < 0 ? -errno : 0;
	if (!ret && (ret = open_rings(n)))
		log_error("node %s: %s", n->name, busbar_shmem_error());
	if (!ret && s->exec)
		ret = start_child(n);
	if (ret)
		goto err_stop;
	if (s->exec)
		await_child(n);
	ret = thread_start(&s->thread, "shmem-watch", THREAD_AS_CALLER, watch, n);
	if (ret)
		goto err_stop;
	s->has_thread = true;
	return 0;
err_stop:
	shmem_stop(n);
	return ret;
}

static void shmem_destroy(struct node *n)
{
	struct shmem *s = n->private_data;

	shmem_stop(n);
	pthread_mutex_destroy(&s->swap);
}

/* ---- data ---- */

#define SAME_FLAG(name) \
	_Static_assert((int)SAMPLE_##name == (int)BUSBAR_SHMEM_##name, #name)
SAME_FLAG(HAS_SEQUENCE);
SAME_FLAG(HAS_ORIGIN);
SAME_FLAG(HAS_RECEIVED);
SAME_FLAG(HAS_DATA);
SAME_FLAG(NEW_FRAME);
SAME_FLAG(NEW_SIMULATION);
_Static_assert(sizeof(union signal_data) == sizeof(union busbar_shmem_value),
	       "values are copied as they are");

static int read_ring(struct node *n, struct sample *smps[], unsigned cnt)
{
	struct shmem *s = n->private_data;
	struct timespec now;
	int ret;

	cnt = MIN(cnt, n->in.vectorize);
	for (unsigned i = 0; i < cnt; i++) {
		s->in[i].values = (void *)smps[i]->data;
		s->in[i].capacity = smps[i]->capacity;
	}
	ret = busbar_shmem_read(s->reader, s->in, cnt,
				n->in.awaited ? 0 : READ_NS);
	if (ret == -ENOTCONN) {
		say_gone(s);
		return 0;
	}
	if (ret <= 0)
		return ret;
	now = clock_realtime();
	for (int i = 0; i < ret; i++) {
		const struct busbar_shmem_sample *from = &s->in[i];

		smps[i]->sequence = from->sequence;
		smps[i]->origin = from->origin;
		smps[i]->received = now;
		smps[i]->length = from->length;
		smps[i]->flags = (from->flags & ~(uint32_t)BUSBAR_SHMEM_CUT) |
				 SAMPLE_HAS_RECEIVED;
		if (unlikely(from->flags & BUSBAR_SHMEM_CUT) && !s->said_cut) {
			s->said_cut = true;
			log_warn("node %s: the simulator sends more values than the %u that `signals` has here; the rest is left out",
				 n->name, from->capacity);
		}
	}
	return ret;
}

static int shmem_read(struct node *n, struct sample *smps[], unsigned cnt,
		      unsigned *release)
{
	struct shmem *s = n->private_data;
	int ret = 0;

	if (likely(gate_enter(&s->reading))) {
		ret = read_ring(n, smps, cnt);
		gate_leave(&s->reading);
	} else {
		/* The thread is about to attach anew, or tries to. */
		gate_wait(&s->reading, WATCH_MS * UINT64_C(1000000));
	}
	return ret;
}

/* Why `count` were not written, of which `s` is the first. */
static void refuse(struct node *n, int ret, const struct sample *s,
		   unsigned count)
{
	struct shmem *shm = n->private_data;
	unsigned max = busbar_shmem_write_max(shm->handle);

	if (ret == -ENOTCONN)
		node_refuse(n, NODE_LOSS_ABSENT, count,
			    "no simulator reads %s", name_or(shm->out_name));
	else if (s->length > max)
		node_refuse(n, NODE_LOSS_TOO_LONG, count,
			    "samples have %u values, the object %s takes %u; raise samplelen, or the simulator's, whichever comes first",
			    s->length, name_or(shm->out_name), max);
	else if (ret < 0)
		node_refuse(n, NODE_LOSS_REFUSED, count, "%s", strerror(-ret));
	else
		node_refuse(n, shm->full == FULL_BLOCK ? NODE_LOSS_STUCK :
							 NODE_LOSS_FULL,
			    count,
			    "the simulator reads too slowly; a longer queuelen (%lld) may help",
			    (long long)shm->queuelen);
}

/* What found no room, as room comes; how many of them. */
static int write_rest(struct shmem *s, unsigned from, unsigned cnt)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	uint64_t since = clock_monotonic_ns_slow();
	unsigned done = 0;

	while (done < cnt && clock_monotonic_ns_slow() - since < BLOCK_NS) {
		int ret = busbar_shmem_write(s->handle, s->out + from + done,
					     cnt - done);

		if (ret < 0)
			break; /* nobody is there, or it is too long */
		done += (unsigned)ret;
		if (ret)
			since = clock_monotonic_ns_slow();
		else
			nanosleep(&pause, NULL);
	}
	return (int)done;
}

static int write_ring(struct node *n, struct sample *smps[], unsigned cnt)
{
	struct shmem *s = n->private_data;
	unsigned take = MIN(cnt, n->out.vectorize);
	int ret;

	for (unsigned i = 0; i < take; i++)
		s->out[i] = (struct busbar_shmem_sample){
			.sequence = smps[i]->sequence,
			.origin = smps[i]->origin,
			.received = smps[i]->received,
			.flags = smps[i]->flags,
			.length = smps[i]->length,
			.values = (void *)smps[i]->data,
		};
	ret = busbar_shmem_write(s->handle, s->out, take);
	if (unlikely(ret == -ENOTCONN))
		say_gone(s);
	if (s->full == FULL_BLOCK && ret >= 0 && ret < (int)take && !s->gave_up) {
		ret += write_rest(s, (unsigned)ret, take - (unsigned)ret);
		s->gave_up = ret < (int)take;
	} else if (ret > 0) {
		s->gave_up = false;
	}
	if (unlikely(ret < (int)cnt))
		refuse(n, ret, smps[MAX(ret, 0)], cnt - (unsigned)MAX(ret, 0));
	return ret < 0 ? 0 : ret;
}

static void shmem_sleep(struct node *n, uint64_t until_ns)
{
	struct shmem *s = n->private_data;
	uint64_t now = clock_now_ns();

	if (until_ns <= now || unlikely(!gate_enter(&s->reading)))
		return;
	busbar_shmem_wait(s->reader, (int64_t)MIN(until_ns - now, (uint64_t)READ_NS));
	gate_leave(&s->reading);
}

static bool shmem_may_wait(struct node *n)
{
	const struct shmem *s = n->private_data;

	return s->full == FULL_BLOCK;
}

static int shmem_write(struct node *n, struct sample *smps[], unsigned cnt,
		       unsigned *release)
{
	struct shmem *s = n->private_data;
	int ret = 0;

	if (likely(gate_enter(&s->writing))) {
		ret = write_ring(n, smps, cnt);
		gate_leave(&s->writing);
	} else {
		/* The thread is about to attach anew. */
		node_refuse(n, NODE_LOSS_ABSENT, cnt,
			    "the object %s is being attached anew",
			    name_or(s->out_name));
	}
	return ret;
}

static void shmem_interrupt(struct node *n)
{
	struct shmem *s = n->private_data;

	pthread_mutex_lock(&s->swap);
	if (s->handle)
		busbar_shmem_interrupt(s->handle);
	if (s->reader && s->reader != s->handle)
		busbar_shmem_interrupt(s->reader);
	pthread_mutex_unlock(&s->swap);
}

static void shmem_print(struct node *n, char *buf, size_t size)
{
	const struct shmem *s = n->private_data;

	snprintf(buf, size, "in.name %s, out.name %s, mode %s, queuelen %lld",
		 name_or(s->in_name), name_or(s->out_name), mode_names[s->mode],
		 (long long)s->queuelen);
}

const struct node_type node_shmem = {
	.name = "shmem",
	.description = "shared memory to a simulator on the same host",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS |
		 NODE_NEEDS_GROUP | NODE_STOP_WAITS,
	.size = sizeof(struct shmem),
	.keys = shmem_keys,
	.key_count = ARRAY_SIZE(shmem_keys),
	.in_keys = shmem_in_keys,
	.in_key_count = ARRAY_SIZE(shmem_in_keys),
	.out_keys = shmem_out_keys,
	.out_key_count = ARRAY_SIZE(shmem_out_keys),
	.init = shmem_init,
	.parse = shmem_parse,
	.check = shmem_check,
	.check_signals = shmem_check_signals,
	.start = shmem_start,
	.stop = shmem_stop,
	.destroy = shmem_destroy,
	.reverse = shmem_reverse,
	.read = shmem_read,
	.write = shmem_write,
	.sleep = shmem_sleep,
	.may_wait = shmem_may_wait,
	.interrupt = shmem_interrupt,
	.rearm = node_rearm_nothing,
	.print = shmem_print,
};
