/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets into a capture file; see capture.h. The buffer is a ring that is mapped twice in
 * a row, so that each block lies in one piece. `head` changes under the lock of those who
 * bring packets, `tail` by the thread alone.
 */
#define LOG_ROOM "capture"
#include "transport/carrier/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "transport/carrier/capture_file.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/library_thread.h"
#include "util/log.h"
#include "util/spin.h"
#include "util/timed.h"

#define BUFFER_BYTES (UINT64_C(16) << 20)
#define BUFFER_MIN (UINT64_C(64) << 10)
#define CHUNK_BYTES (UINT64_C(256) << 10) /* a write */
#define STACK_BYTES (256u << 10)
/* Pauses of the thread: while packets come, and when none has come for a while. A buffer of
 * 16 MiB in 2 ms are 8 GB a second. */
#define BUSY_NS 2000000
#define IDLE_NS 50000000
#define BUSY_PAUSES 500
#define READER_NS 100000000 /* between two looks for a pipe's reader */
#define CLOSE_LIMIT_S 2
#define JOIN_LIMIT_S 5

struct capture {
	struct spin lock;
	uint8_t *ring; /* twice `size` bytes of address space */
	uint64_t size;
	_Atomic uint64_t head;
	cache_aligned _Atomic uint64_t tail;
	uint64_t untold; /* dropped since the last packet that was not */
	struct capture_counters count[CAPTURE_INTERFACES];
	/* Packets are counted, but not kept any more. */
	atomic_bool ended;

	struct capture_params p;
	char *pattern;
	struct capture_file file;
	uint64_t start_ns;
	pthread_t thread;
	sem_t wake;
	atomic_bool closing;
	struct timespec close_until;
	uint64_t discarded; /* by the thread */
};

static uint64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* ---- those who bring packets ---- */

void capture_packet(struct capture *c, const struct capture_packet *packet)
{
	uint32_t kept = packet->bytes;
	struct pcapng_packet p = {
		.interface = packet->interface,
		.data = packet->data,
		.length = packet->bytes,
		.direction = packet->direction == CARRIER_IN ? PCAPNG_INBOUND :
							       PCAPNG_OUTBOUND,
		.comment = packet->comment,
	};
	size_t block = 0;
	uint64_t head;

	if (c->p.snap)
		kept = MIN(kept, c->p.snap);
	p.captured = kept;
	spin_lock(&c->lock);
	c->count[packet->interface].packets++;
	if (likely(!atomic_load_explicit(&c->ended, memory_order_relaxed))) {
		/* Within the lock, so that times never go back in the file. */
		p.when_ns = wall_ns();
		p.dropped = c->untold;
		head = atomic_load_explicit(&c->head, memory_order_relaxed);
		block = pcapng_packet(
			c->ring + head % c->size,
			c->size - (head - atomic_load_explicit(&c->tail,
							       memory_order_acquire)),
			&p);
		atomic_store_explicit(&c->head, head + block, memory_order_release);
	}
	c->untold = block ? 0 : c->untold + 1;
	c->count[packet->interface].dropped += !block;
	spin_unlock(&c->lock);
}

void capture_count(struct capture *c, struct capture_counters *out)
{
	memset(out, 0, sizeof(*out));
	spin_lock(&c->lock);
	for (unsigned i = 0; i < CAPTURE_INTERFACES; i++) {
		out->packets += c->count[i].packets;
		out->dropped += c->count[i].dropped;
	}
	spin_unlock(&c->lock);
}

/* ---- the thread ---- */

static bool closing_is_over(void *arg)
{
	struct capture *c = arg;
	struct timespec now;

	if (!atomic_load(&c->closing))
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > c->close_until.tv_sec ||
	       (now.tv_sec == c->close_until.tv_sec &&
		now.tv_nsec >= c->close_until.tv_nsec);
}

static int write_out(struct capture *c, const void *data, size_t bytes)
{
	return capture_file_write(&c->file, data, bytes,
				  &(struct capture_patience){ closing_is_over, c });
}

/* The section's head. */
static int write_head(struct capture *c)
{
	uint8_t head[2 * PCAPNG_BLOCK_EXTRA + CAPTURE_INTERFACES * PCAPNG_BLOCK_EXTRA];
	struct pcapng_section section = { .application = c->p.application };
	struct utsname os;
	char text[200];
	size_t at;

	if (!uname(&os)) {
		snprintf(text, sizeof(text), "%.60s %.60s", os.sysname, os.release);
		section.os = text;
		section.hardware = os.machine;
	}
	at = pcapng_section(head, sizeof(head), &section);
	for (unsigned i = 0; i < CAPTURE_INTERFACES && c->p.interfaces[i]; i++) {
		const struct pcapng_interface interface = {
			.link = c->p.link,
			.snap = c->p.snap,
			.name = c->p.interfaces[i],
		};

		at += pcapng_interface(head + at, sizeof(head) - at, &interface);
	}
	c->start_ns = wall_ns();
	return write_out(c, head, at);
}

static size_t encode_tail(struct capture *c, const char *comment, uint8_t *to, size_t room)
{
	struct pcapng_statistics s = { .when_ns = wall_ns(), .start_ns = c->start_ns,
				       .comment = comment };
	size_t at = 0;

	s.end_ns = s.when_ns;
	for (unsigned i = 0; i < CAPTURE_INTERFACES && c->p.interfaces[i]; i++) {
		spin_lock(&c->lock);
		s.received = c->count[i].packets;
		s.dropped = c->count[i].dropped;
		spin_unlock(&c->lock);
		s.interface = i;
		at += pcapng_statistics(to + at, room - at, &s);
	}
	return at;
}

#define TAIL_BYTES (CAPTURE_INTERFACES * PCAPNG_BLOCK_EXTRA)

static int write_tail(struct capture *c, const char *comment)
{
	uint8_t tail[TAIL_BYTES];

	return write_out(c, tail, encode_tail(c, comment, tail, sizeof(tail)));
}

/* Nothing is kept any more. */
static void finish(struct capture *c)
{
	atomic_store(&c->ended, true);
	capture_file_close(&c->file);
}

static void fail(struct capture *c, int error)
{
	log_error("'%s': %s; the capture ends here, after %" PRIu64 " bytes",
		  c->file.name, strerror(-error), c->file.bytes);
	finish(c);
}

static uint32_t block_bytes(const struct capture *c, uint64_t at)
{
	uint32_t length;

	memcpy(&length, c->ring + at % c->size + sizeof(uint32_t), sizeof(length));
	return length;
}

/* Opens the file, unless it is, and writes its head. False: not now, or never (`ended`). */
static bool is_open(struct capture *c)
{
	int ret = 0;

	if (c->file.fd < 0)
		ret = capture_file_open(&c->file);
	else if (c->file.bytes)
		return true;
	if (ret == -ENXIO || (ret == -EAGAIN && c->file.pipe))
		return false;
	if (!ret)
		ret = write_head(c);
	if (ret == -EPIPE || ret == -ETIMEDOUT)
		capture_file_close(&c->file);
	else if (ret)
		fail(c, ret);
	return !ret;
}

/* The file has its limit of bytes. */
static void turn_over(struct capture *c)
{
	int ret;

	if (c->p.files == 1) {
		log_warn("'%s' has the size that was allowed, %" PRIu64
			 " bytes: later packets are not captured",
			 c->file.name, c->p.file_bytes);
		write_tail(c, "the size that was allowed is reached: later packets were not captured");
		finish(c);
		return;
	}
	ret = write_tail(c, NULL);
	if (!ret)
		ret = capture_file_next(&c->file);
	if (!ret)
		ret = write_head(c);
	if (ret)
		fail(c, ret);
}

/* Whole blocks from `at` on for one write, which the file has room for; 0: it has not. */
static uint64_t chunk(const struct capture *c, uint64_t at, uint64_t head)
{
	uint64_t bytes = 0, limit = UINT64_MAX;

	if (c->p.file_bytes && !c->file.pipe)
		limit = c->p.file_bytes -
			MIN(c->p.file_bytes, c->file.bytes + TAIL_BYTES);
	while (at + bytes < head) {
		uint32_t block = block_bytes(c, at + bytes);

		if (bytes + block > limit || (bytes && bytes + block > CHUNK_BYTES))
			break;
		bytes += block;
	}
	return bytes;
}

/* These blocks are lost. */
static void discard(struct capture *c, uint64_t at, uint64_t end)
{
	spin_lock(&c->lock);
	for (; at < end; at += block_bytes(c, at)) {
		uint32_t interface;

		memcpy(&interface, c->ring + at % c->size + 8, sizeof(interface));
		c->count[interface].dropped++;
		c->untold++;
	}
	spin_unlock(&c->lock);
}

/* One write, if there is something to write. False: nothing was moved. */
static bool move(struct capture *c)
{
	uint64_t at = atomic_load_explicit(&c->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&c->head, memory_order_acquire);
	uint64_t bytes;
	int ret;

	if (atomic_load(&c->ended)) {
		discard(c, at, head);
		atomic_store_explicit(&c->tail, head, memory_order_release);
		return false;
	}
	if (!is_open(c) || at == head)
		return false;
	bytes = chunk(c, at, head);
	if (!bytes) {
		turn_over(c);
		return true;
	}
	ret = write_out(c, c->ring + at % c->size, bytes);
	if (ret) {
		discard(c, at, at + bytes);
		if (ret == -EPIPE || ret == -ETIMEDOUT)
			capture_file_close(&c->file); /* for the next reader */
		else
			fail(c, ret);
	}
	atomic_store_explicit(&c->tail, at + bytes, memory_order_release);
	return !ret;
}

static void pause_for(struct capture *c, uint64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)ns;
	until.tv_sec += until.tv_nsec / (long)NSEC_PER_SEC;
	until.tv_nsec %= (long)NSEC_PER_SEC;
	timed_sem_wait(&c->wake, &until);
}

static void *work(void *arg)
{
	struct capture *c = arg;
	unsigned quiet = 0;

	while (!atomic_load(&c->closing)) {
		if (move(c)) {
			quiet = 0;
			continue;
		}
		quiet++;
		pause_for(c, c->file.fd < 0	 ? READER_NS :
			     quiet < BUSY_PAUSES ? BUSY_NS :
						   IDLE_NS);
	}
	while (!closing_is_over(c) && move(c))
		;
	return NULL;
}

/* ---- life ---- */

/* Without a file in memory, which a limit of the size of files would forbid: mremap() of no
 * bytes maps shared pages once more. */
static int ring_map(struct capture *c)
{
	uint8_t *base = mmap(NULL, 2 * c->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	int ret = 0;

	if (base == MAP_FAILED)
		return -errno;
	if (mmap(base, c->size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ||
	    mremap(base, 0, c->size, MREMAP_MAYMOVE | MREMAP_FIXED, base + c->size) ==
		    MAP_FAILED)
		ret = -errno;
	if (ret) {
		munmap(base, 2 * c->size);
		log_error("no memory for a capture: %s", strerror(-ret));
		return ret;
	}
	madvise(base, 2 * c->size, MADV_DONTFORK);
	madvise(base, 2 * c->size, MADV_DONTDUMP);
	c->ring = base;
	return 0;
}

static int params_copy(struct capture *c, const struct capture_params *p)
{
	uint64_t size = BUFFER_MIN;

	if (!p->files || p->files > CAPTURE_FILES_MAX ||
	    (p->file_bytes && p->file_bytes < CAPTURE_SIZE_MIN)) {
		log_error("a capture keeps 1 to %u files, of at least %u bytes each",
			  CAPTURE_FILES_MAX, CAPTURE_SIZE_MIN);
		return -EINVAL;
	}
	if (p->files > 1 && !p->file_bytes) {
		log_error("a capture into several files needs a size for them");
		return -EINVAL;
	}
	c->p = *p;
	c->pattern = strdup(p->path);
	if (!c->pattern)
		return -ENOMEM;
	c->p.path = c->pattern;
	for (unsigned i = 0; i < CAPTURE_INTERFACES && p->interfaces[i]; i++) {
		c->p.interfaces[i] = strdup(p->interfaces[i]);
		if (!c->p.interfaces[i])
			return -ENOMEM;
	}
	c->p.application = p->application ? strdup(p->application) : NULL;
	while (size < (p->buffer_bytes ? p->buffer_bytes : BUFFER_BYTES))
		size *= 2;
	c->size = size;
	c->file = (struct capture_file){ .pattern = c->pattern, .files = p->files, .fd = -1 };
	return 0;
}

static void release(struct capture *c)
{
	capture_file_close(&c->file);
	if (c->ring)
		munmap(c->ring, 2 * c->size);
	for (unsigned i = 0; i < CAPTURE_INTERFACES && c->p.interfaces[i]; i++)
		free((void *)(uintptr_t)c->p.interfaces[i]);
	free((void *)(uintptr_t)c->p.application);
	free(c->pattern);
	sem_destroy(&c->wake);
	free(c);
}

/* Signals are the business of the program's own threads, and writing raises SIGPIPE and
 * SIGXFSZ in the thread that writes. */
static int thread_start(struct capture *c)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	ret = library_thread_start(&c->thread, &attr, work, c);
	pthread_attr_destroy(&attr);
	return ret;
}

/* The file is opened here, so that an error is told while somebody looks; its head is
 * written by the thread. */
static int file_try(struct capture *c)
{
	int ret = capture_file_open(&c->file);

	if (ret == -ENXIO || (ret == -EAGAIN && c->file.pipe))
		return 0;
	if (ret == -EINVAL)
		log_error("'%s' cannot be captured to: a file or a pipe is expected, with no %% but %%p (the process id) and %%%% in its name",
			  c->pattern);
	else if (ret)
		log_error("'%s' cannot be captured to: %s",
			  c->file.name[0] ? c->file.name : c->pattern, strerror(-ret));
	return ret;
}

int capture_open(const struct capture_params *params, struct capture **out)
{
	struct capture *c = aligned_alloc(CACHE_LINE, (sizeof(*c) + CACHE_LINE - 1) &
							      ~(size_t)(CACHE_LINE - 1));
	int ret;

	if (!c)
		return -ENOMEM;
	memset(c, 0, sizeof(*c));
	c->file.fd = -1;
	sem_init(&c->wake, 0, 0);
	ret = params_copy(c, params);
	if (!ret)
		ret = file_try(c);
	if (!ret)
		ret = ring_map(c);
	if (!ret)
		ret = thread_start(c);
	if (ret) {
		release(c);
		return ret;
	}
	log_info("packets are captured to '%s'", c->file.name);
	*out = c;
	return 0;
}

/* What is still there, and the sums. */
static void tell_end(struct capture *c)
{
	struct capture_counters n;
	uint64_t head = atomic_load(&c->head);

	discard(c, atomic_load(&c->tail), head);
	if (c->file.fd >= 0)
		write_tail(c, NULL);
	capture_count(c, &n);
	if (n.dropped)
		log_warn("'%s': %" PRIu64 " of %" PRIu64 " packets are missing in the capture",
			 c->file.name, n.dropped, n.packets);
	else
		log_info("'%s': %" PRIu64 " packets captured", c->file.name, n.packets);
}

void capture_close(struct capture *c)
{
	struct timespec until;

	if (!c)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	c->close_until = until;
	c->close_until.tv_sec += CLOSE_LIMIT_S;
	until.tv_sec += JOIN_LIMIT_S;
	atomic_store(&c->closing, true);
	sem_post(&c->wake);
	if (timed_join(c->thread, &until)) {
		/* It hangs in a file system. Its memory stays. */
		log_error("'%s' cannot be written to, the end of the capture is missing",
			  c->file.name);
		pthread_detach(c->thread);
		return;
	}
	tell_end(c);
	release(c);
}

void capture_forked(struct capture *c)
{
	if (c)
		release(c);
}
