/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The writer and its thread; see writer.h.
 *
 * Samples under way stand in chunks. The producer fills one chunk and links the
 * next; the thread follows behind and hands emptied chunks back through a ring.
 * When everything is to be kept in memory the thread hands out new chunks
 * instead, ahead of the producer, and follows only at the end. It sleeps until the
 * producer has used half of the buffer: a look now and then would disturb a
 * generator on the same processor.
 */
#define LOG_ROOM "gateway/file"
#include "gateway/base/ending.h"
#include "gateway/base/own_thread.h"
#include "gateway/part/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/thread.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/ring.h"
#include "util/spin.h"

#define CHUNKS 8
#define CHUNK_SIZE_MIN 4096
#define IDLE_NS (1000 * 1000)
#define SPARES_LOW (CHUNKS / 2)
#define FLUSH_NS (100 * UINT64_C(1000000))
#define PROGRESS_NS NSEC_PER_SEC
#define SETTLE_NS NSEC_PER_SEC
/* How long a pipe without an active reader may delay the producer or the end. */
#define STUCK_NS (2 * NSEC_PER_SEC)
/* How long who is asked to end waits for room all the same; and how old the last
 * request is when it counts no more. */
#define ENDING_NS (NSEC_PER_SEC / 2)
#define ASKED_NS (NSEC_PER_SEC / 4)
#define OUT_SIZE (256u << 10)
#define BATCH 64

struct chunk {
	cache_aligned _Atomic size_t filled;   /* bytes, by the producer */
	_Atomic(struct chunk *) next;          /* by the producer, once */
	cache_aligned size_t taken;            /* bytes, by the thread */
	cache_aligned char bytes[];
};

struct writer {
	struct writer_settings settings;
	struct format *format;
	int fd;
	size_t chunk_size;          /* of the mapping */

	struct spin producer;
	struct chunk *head;         /* under `producer` */
	_Atomic uint64_t accepted;

	struct ring spare;          /* empty chunks, thread to producer */
	sem_t wanted;               /* in memory: more of them, or the end */
	struct chunk *tail;         /* of the thread, until it is joined */
	char *out;
	size_t out_size, out_used;
	uint64_t written, pending;  /* samples in the file, in `out` */
	uint64_t last_write_ns, next_report_ns, bytes_total, bytes_done;
	bool header_done;
	bool unsettled;             /* bytes have come since settle() */
	uint64_t last_settle_ns;

	pthread_t thread;
	atomic_bool stopping, exhausted;
	/* writer_interrupt(): the first and the last call of a row; 0: none. */
	_Atomic uint64_t asked_first_ns, asked_last_ns;
	atomic_bool stuck;          /* nothing could be written for STUCK_NS */
	_Atomic uint64_t stop_ns;
	atomic_int failed;          /* errno of the first failure */
};

static size_t record_size(unsigned length)
{
	size_t size = sizeof(struct sample) + length * sizeof(union signal_data);

	return (size + 15) & ~(size_t)15;
}

size_t writer_buffer_min(unsigned length)
{
	return CHUNKS * (offsetof(struct chunk, bytes) + record_size(length));
}

static size_t chunk_room(const struct writer *w)
{
	return w->chunk_size - offsetof(struct chunk, bytes);
}

/* Zeroed and present: its first use causes no page fault. */
static struct chunk *chunk_new(const struct writer *w)
{
	void *p = mmap(NULL, w->chunk_size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void chunk_free(const struct writer *w, struct chunk *c)
{
	if (c)
		munmap(c, w->chunk_size);
}

static int failure(struct writer *w)
{
	return atomic_load_explicit(&w->failed, memory_order_relaxed);
}

static void fail(struct writer *w, int err)
{
	if (failure(w))
		return;
	atomic_store(&w->failed, err);
	log_error("cannot write '%s': %s", w->settings.path, strerror(err));
}

/* The producer. */

/* Asked to come to an end, and it has had its time. */
static bool is_to_end(struct writer *w)
{
	uint64_t first = atomic_load(&w->asked_first_ns), now;

	if (!first)
		return false;
	now = clock_monotonic_ns_slow();
	return now - first > ENDING_NS &&
	       now - atomic_load(&w->asked_last_ns) < ASKED_NS;
}

static bool may_wait(struct writer *w)
{
	return w->settings.block && !failure(w) &&
	       !atomic_load_explicit(&w->exhausted, memory_order_relaxed) &&
	       !atomic_load_explicit(&w->stuck, memory_order_relaxed) &&
	       !is_to_end(w);
}

static struct chunk *next_chunk(struct writer *w)
{
	const struct timespec pause = { .tv_nsec = 50 * 1000 };
	struct chunk *c;

	while (!(c = ring_pop(&w->spare)) && may_wait(w))
		nanosleep(&pause, NULL);
	/* Only we take any: there are at least as many as we see. */
	if (c && w->settings.in_memory && ring_count(&w->spare) < SPARES_LOW)
		sem_post(&w->wanted);
	return c;
}

static bool put_one(struct writer *w, const struct sample *s)
{
	size_t size = record_size(s->length);
	struct chunk *c = w->head;
	size_t filled = atomic_load_explicit(&c->filled, memory_order_relaxed);
	struct sample *to;

	if (unlikely(filled + size > chunk_room(w))) {
		if (size > chunk_room(w))
			return false;
		c = next_chunk(w);
		if (!c)
			return false;
		atomic_store_explicit(&w->head->next, c, memory_order_release);
		w->head = c;
		filled = 0;
	}
	to = (struct sample *)(c->bytes + filled);
	to->owned = NULL;
	sample_set_signals(to, s->signals);
	to->flags = s->flags;
	to->length = s->length;
	to->received = s->received;
	to->sequence = s->sequence;
	to->origin = s->origin;
	memcpy(to->data, s->data, s->length * sizeof(s->data[0]));
	atomic_store_explicit(&c->filled, filled + size, memory_order_release);
	return true;
}

unsigned writer_put(struct writer *w, struct sample *const smps[], unsigned cnt)
{
	unsigned i = 0;

	if (unlikely(failure(w)))
		return 0;
	spin_lock(&w->producer);
	while (i < cnt && put_one(w, smps[i]))
		i++;
	atomic_store_explicit(&w->accepted,
			      atomic_load_explicit(&w->accepted,
						   memory_order_relaxed) + i,
			      memory_order_relaxed);
	spin_unlock(&w->producer);
	return i;
}

bool writer_may_wait(struct writer *w)
{
	return w->settings.block && !w->settings.in_memory &&
	       ring_count(&w->spare) < CHUNKS / 2;
}

enum node_loss writer_why(struct writer *w, const struct sample *s, char *text,
			  size_t size)
{
	const char *path = w->settings.path;

	if (record_size(s->length) > chunk_room(w)) {
		snprintf(text, size,
			 "a sample of %u values needs a buffer_size of %zu, '%s' has %zu",
			 s->length, writer_buffer_min(s->length), path,
			 w->settings.buffer_size);
		return NODE_LOSS_TOO_LONG;
	}
	if (failure(w)) {
		snprintf(text, size, "'%s' cannot be written: %s", path,
			 strerror(failure(w)));
		return NODE_LOSS_REFUSED;
	}
	if (atomic_load(&w->exhausted)) {
		snprintf(text, size, "no memory for more samples of '%s'", path);
		return NODE_LOSS_REFUSED;
	}
	snprintf(text, size,
		 "the buffer of '%s' is full; a larger buffer_size than %zu may help",
		 path, w->settings.buffer_size);
	return w->settings.block ? NODE_LOSS_STUCK : NODE_LOSS_FULL;
}

void writer_interrupt(struct writer *w)
{
	uint64_t now = clock_monotonic_ns_slow();

	if (now - atomic_load(&w->asked_last_ns) > ASKED_NS)
		atomic_store(&w->asked_first_ns, now);
	atomic_store(&w->asked_last_ns, now);
}

void writer_rearm(struct writer *w)
{
	atomic_store(&w->asked_first_ns, 0);
	atomic_store(&w->asked_last_ns, 0);
}

/* The thread. */

/*
 * A pipe is full: waits for its reader, but not for ever when stopping. Returns
 * 0 or a positive errno.
 */
static int wait_writable(struct writer *w, uint64_t since_ns)
{
	struct pollfd p = { .fd = w->fd, .events = POLLOUT };
	bool hurries;
	uint64_t now;

	poll(&p, 1, ending_left_ms(ENDING_WRITERS_MS, 100));
	now = clock_monotonic_ns_slow();
	hurries = ending_is_past(ENDING_WRITERS_MS);
	if ((now - since_ns > STUCK_NS || hurries) && !atomic_exchange(&w->stuck, true))
		log_warn("nobody reads from '%s'", w->settings.path);
	if (atomic_load(&w->stopping) &&
	    (now - atomic_load(&w->stop_ns) > STUCK_NS || hurries))
		return ETIMEDOUT;
	return 0;
}

static void settle(struct writer *w)
{
	int err;

	if (!w->settings.settle || failure(w))
		return;
	w->unsettled = false;
	w->last_settle_ns = clock_monotonic_ns_slow();
	err = w->settings.settle(w->settings.settle_arg, w->fd);
	if (err)
		atomic_store(&w->failed, err); /* it has said why */
}

static void settle_when_due(struct writer *w)
{
	if (w->unsettled && clock_monotonic_ns_slow() - w->last_settle_ns >= SETTLE_NS)
		settle(w);
}

static void write_out(struct writer *w)
{
	uint64_t since_ns = clock_monotonic_ns_slow();
	size_t done = 0;

	while (done < w->out_used && !failure(w)) {
		ssize_t n = write(w->fd, w->out + done, w->out_used - done);

		if (n >= 0) {
			done += (size_t)n;
			atomic_store(&w->stuck, false);
		} else if (errno == EAGAIN) {
			int err = wait_writable(w, since_ns);

			if (err)
				fail(w, err);
		} else if (errno != EINTR) {
			fail(w, errno);
		}
	}
	if (!failure(w))
		w->written += w->pending;
	w->unsettled |= w->out_used > 0;
	w->pending = 0;
	w->out_used = 0;
	w->last_write_ns = clock_monotonic_ns_slow();
	settle_when_due(w);
}

/* The format refused a sample: what it says about that. */
static void fail_format(struct writer *w, int err)
{
	if (failure(w))
		return;
	atomic_store(&w->failed, err);
	log_error("cannot write '%s': %s", w->settings.path,
		  format_error(w->format)[0] ? format_error(w->format) :
					       strerror(err));
}

static bool grow_out(struct writer *w)
{
	char *out = realloc(w->out, 2 * w->out_size);

	if (!out) {
		fail(w, ENOMEM);
		return false;
	}
	w->out = out;
	w->out_size *= 2;
	return true;
}

static void print_header(struct writer *w, const struct signal_list *signals,
			 unsigned length)
{
	const struct format_type *type = w->format->type;
	struct signal_list *l;
	size_t need;

	if (w->header_done)
		return;
	w->header_done = true;
	l = signal_list_header(signals, length);
	if (!l)
		return fail(w, ENOMEM);
	need = type->header(w->format, NULL, 0, l);
	while (w->out_size < need + 1 && !failure(w))
		grow_out(w);
	if (!failure(w))
		w->out_used += type->header(w->format, w->out, w->out_size, l);
	signal_list_put(l);
}

static void format_batch(struct writer *w, struct sample *smps[], unsigned cnt)
{
	unsigned done = 0;

	print_header(w, smps[0]->signals ? smps[0]->signals : w->format->signals,
		     smps[0]->length);
	while (done < cnt && !failure(w)) {
		size_t used;
		int n = w->format->type->print(w->format, w->out + w->out_used,
					       w->out_size - w->out_used, &used,
					       smps + done, cnt - done);

		if (n < 0)
			return fail_format(w, -n);
		w->out_used += used;
		w->pending += (unsigned)n;
		done += (unsigned)n;
		if (done == cnt)
			break;
		if (w->out_used)
			write_out(w);
		else if (!grow_out(w))
			break;
	}
}

/* Formats what has come in the present chunk; true when there was anything. */
static bool take_batches(struct writer *w)
{
	struct chunk *c = w->tail;
	size_t filled = atomic_load_explicit(&c->filled, memory_order_acquire);
	struct sample *smps[BATCH];

	if (c->taken == filled)
		return false;
	while (c->taken < filled) {
		size_t before = c->taken;
		unsigned n = 0;

		for (; n < BATCH && c->taken < filled; n++) {
			smps[n] = (struct sample *)(c->bytes + c->taken);
			c->taken += record_size(smps[n]->length);
		}
		if (!failure(w))
			format_batch(w, smps, n);
		for (unsigned i = 0; i < n; i++)
			if (unlikely(smps[i]->owned))
				sample_own_list(smps[i], NULL);
		w->bytes_done += c->taken - before;
	}
	return true;
}

/* Goes on to the next chunk when there is one; frees or returns the old one. */
static bool follow(struct writer *w)
{
	struct chunk *c = w->tail;
	struct chunk *next = atomic_load_explicit(&c->next, memory_order_acquire);

	/* Linked after its last record: nothing can be missed. */
	if (!next || c->taken < atomic_load_explicit(&c->filled,
						     memory_order_acquire))
		return false;
	w->tail = next;
	if (w->settings.in_memory) {
		chunk_free(w, c);
		return true;
	}
	atomic_store_explicit(&c->filled, 0, memory_order_relaxed);
	atomic_store_explicit(&c->next, NULL, memory_order_relaxed);
	c->taken = 0;
	ring_push(&w->spare, c); /* has room for all chunks */
	return true;
}

static void keep_spares(struct writer *w)
{
	/* Half of the buffer is used before any is added: a run that fits into
	 * it sees no page fault. */
	while (ring_count(&w->spare) < SPARES_LOW &&
	       !atomic_load_explicit(&w->exhausted, memory_order_relaxed)) {
		struct chunk *c = chunk_new(w);

		if (!c) {
			log_error("no memory for more samples of '%s'; further ones are lost",
				  w->settings.path);
			atomic_store(&w->exhausted, true);
			return;
		}
		w->bytes_total += w->chunk_size;
		ring_push(&w->spare, c);
	}
}

static void report_progress(struct writer *w, uint64_t now)
{
	if (!w->settings.in_memory || now < w->next_report_ns)
		return;
	if (w->next_report_ns)
		log_info("writing '%s': %.0f of about %.0f MiB of samples",
			 w->settings.path, (double)w->bytes_done / 0x1p20,
			 (double)w->bytes_total / 0x1p20);
	w->next_report_ns = now + PROGRESS_NS;
}

static void drain(struct writer *w)
{
	do {
		take_batches(w);
		if (w->settings.in_memory)
			report_progress(w, clock_monotonic_ns_slow());
	} while (follow(w));
}

static bool is_stopping(struct writer *w)
{
	return atomic_load_explicit(&w->stopping, memory_order_acquire);
}

static void keep_in_memory(struct writer *w)
{
	while (!is_stopping(w)) {
		keep_spares(w);
		sem_wait(&w->wanted); /* interrupted: it looks once more */
	}
}

static void follow_producer(struct writer *w)
{
	const struct timespec idle = { .tv_nsec = IDLE_NS };

	while (!is_stopping(w)) {
		bool busy = take_batches(w);

		if (follow(w) || busy)
			continue;
		if (w->out_used &&
		    (w->settings.flush ||
		     clock_monotonic_ns_slow() - w->last_write_ns > FLUSH_NS))
			write_out(w);
		else
			settle_when_due(w);
		nanosleep(&idle, NULL);
	}
}

static void *writer_run(void *arg)
{
	struct writer *w = arg;

	own_thread_keep(OWN_PRIORITY);
	/* Nor before others for the nice value of the gateway. */
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	if (w->settings.in_memory)
		keep_in_memory(w);
	else
		follow_producer(w);
	drain(w);
	write_out(w);
	return NULL;
}

static int start_thread(struct writer *w)
{
	return thread_start(&w->thread, "file-writer", THREAD_NORMAL, writer_run,
			    w);
}

/* The folders that lead to a file, as far as they are missing. */
static void make_folders(const char *path)
{
	char folder[PATH_MAX];

	for (const char *p = path; (p = strchr(p + 1, '/'));) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(p - path), path);
		if (!mkdir(folder, 0777))
			log_info("made the folder '%s'", folder);
	}
}

static int open_file(struct writer *w)
{
	const struct writer_settings *s = &w->settings;
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK |
		    (s->append ? O_APPEND : O_TRUNC);
	struct stat st;
	int err;

	w->fd = open(s->path, flags, 0666);
	if (w->fd < 0 && errno == ENOENT) {
		make_folders(s->path);
		w->fd = open(s->path, flags, 0666);
	}
	if (w->fd < 0) {
		err = errno;
		log_error("cannot open '%s' for writing: %s", s->path,
			  err == ENXIO ? "nobody reads from this pipe" :
					 strerror(err));
		return -err;
	}
	/* A header in the middle of a file is of no use. */
	w->header_done = !w->format->header || !w->format->type->header ||
			 (!fstat(w->fd, &st) && S_ISREG(st.st_mode) &&
			  st.st_size > 0);
	return 0;
}

/* Leaves what it has made to writer_free(). */
static int allocate(struct writer *w)
{
	int ret;

	w->chunk_size = MAX(w->settings.buffer_size / CHUNKS,
			    (size_t)CHUNK_SIZE_MIN);
	w->chunk_size = (w->chunk_size + 4095) & ~(size_t)4095;
	w->out_size = OUT_SIZE;
	w->out = malloc(w->out_size);
	ret = ring_init(&w->spare, CHUNKS);
	if (ret)
		return ret;
	for (int i = 0; i < CHUNKS; i++) {
		struct chunk *c = chunk_new(w);

		if (!c)
			return -ENOMEM;
		w->bytes_total += w->chunk_size;
		if (i == 0)
			w->head = w->tail = c;
		else
			ring_push(&w->spare, c);
	}
	return w->out ? 0 : -ENOMEM;
}

static void writer_free(struct writer *w)
{
	struct chunk *c;

	while (w->spare.slots && (c = ring_pop(&w->spare)))
		chunk_free(w, c);
	chunk_free(w, w->tail); /* the head too: nothing is left between them */
	if (w->spare.slots)
		ring_destroy(&w->spare);
	if (w->fd >= 0)
		close(w->fd);
	sem_destroy(&w->wanted);
	free(w->out);
	free(w);
}

int writer_open(struct writer **out, const struct writer_settings *settings,
		struct format *format)
{
	struct writer *w = aligned_alloc(CACHE_LINE, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	memset(w, 0, sizeof(*w));
	w->settings = *settings;
	w->format = format;
	w->fd = -1;
	sem_init(&w->wanted, 0, 0);
	ret = allocate(w);
	if (ret) {
		log_error("no memory for the %zu bytes of buffer of '%s'",
			  settings->buffer_size, settings->path);
		goto err_free;
	}
	ret = open_file(w);
	if (ret)
		goto err_free;
	ret = start_thread(w);
	if (ret) {
		log_error("cannot start a thread: %s", strerror(-ret));
		goto err_free;
	}
	*out = w;
	return 0;

err_free:
	writer_free(w);
	return ret;
}

int writer_close(struct writer *w, struct signal_list *signals)
{
	uint64_t accepted;
	int err;

	atomic_store(&w->stop_ns, clock_monotonic_ns_slow());
	atomic_store_explicit(&w->stopping, true, memory_order_release);
	sem_post(&w->wanted);
	pthread_join(w->thread, NULL);
	if (signals && !w->header_done && !failure(w)) {
		print_header(w, signals, signals->count);
		write_out(w);
	}
	settle(w);
	accepted = atomic_load(&w->accepted);
	err = failure(w);
	if (w->written != accepted) {
		log_error("%ju of %ju samples are not in '%s'",
			  (uintmax_t)(accepted - w->written),
			  (uintmax_t)accepted, w->settings.path);
		if (w->settings.node)
			node_lose(w->settings.node,
				  err == ETIMEDOUT ? NODE_LOSS_STUCK :
						     NODE_LOSS_REFUSED,
				  accepted - w->written, "'%s': %s",
				  w->settings.path,
				  err == ETIMEDOUT ? "nobody reads it" :
						     strerror(err));
	} else {
		log_debug("wrote %ju samples to '%s'", (uintmax_t)w->written,
			  w->settings.path);
	}
	writer_free(w);
	return -err;
}
