/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target for what the other process writes into the objects of
 * libbusbar-shmem: header, positions, marks, slots, before and after this side
 * has attached. Each input is a program of the peer's writes and of our own
 * calls. Nothing may be touched outside the mapping and the caller's values, no
 * call may hang, and what is delivered keeps its promises.
 *
 *     fuzz_shmem [SECONDS [SEED]]
 *
 * Built with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#include <busbar/shmem.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shmem/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CANARY 0xa5
#define VALUES 4
#define SLOTS 4
#define ROOM 600 /* more than an object has behind its last slot */

static const uint8_t *input, *input_end;
static char to_us[64], from_us[64];
static struct busbar_shmem *ours;
/* The peer: it holds the locks that say that the objects are in use. */
static struct object {
	const char *name;
	int fd;
	struct shmem_header *header;
	enum shmem_lock role;
	size_t bytes;
} objects[2];

static uint8_t byte(void)
{
	return input < input_end ? *input++ : 0;
}

static uint64_t number(void)
{
	static const uint64_t edges[] = {
		0, 1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 4096, 65535, 65536, 65537,
		1u << 20, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
		UINT64_MAX >> 1, UINT64_MAX - 3, UINT64_MAX,
		SHMEM_MAGIC, 999999999, 1000000000,
	};
	uint8_t b = byte();
	uint64_t n = 0;

	if (b < 2 * ARRAY_SIZE(edges))
		return edges[b / 2];
	for (int i = 0; i < 1 + b % 8; i++)
		n = n << 8 | byte();
	return n;
}

_Noreturn static void broken(const char *what)
{
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

#define must(cond) ((cond) ? (void)0 : broken(#cond))

/* ---- the peer ---- */

static void lock(struct object *o, enum shmem_lock which, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET,
			   .l_start = which, .l_len = 1 };

	fcntl(o->fd, F_OFD_SETLK, &l);
}

static void drop_object(struct object *o)
{
	if (o->header)
		munmap(o->header, o->bytes);
	if (o->fd >= 0)
		close(o->fd);
	shm_unlink(o->name);
	o->header = NULL;
	o->fd = -1;
}

/* A valid object of the peer's. Its file has a size of its own, which never gets
 * less: that a peer can take the ground away is a known limit. */
static void make_object(struct object *o)
{
	uint32_t slot = shmem_slot_bytes(VALUES);

	drop_object(o);
	o->bytes = (size_t)shmem_object_bytes(slot, SLOTS);
	o->fd = shm_open(o->name, O_RDWR | O_CREAT | O_EXCL, 0600);
	must(o->fd >= 0 && !ftruncate(o->fd, (off_t)o->bytes));
	o->header = mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 o->fd, 0);
	must(o->header != MAP_FAILED);
	lock(o, o->role, F_WRLCK);
	o->header->magic = SHMEM_MAGIC;
	o->header->version = SHMEM_VERSION;
	o->header->header_bytes = SHMEM_HEADER_BYTES;
	o->header->slot_bytes = slot;
	o->header->slot_count = SLOTS;
	o->header->values = VALUES;
	o->header->sides[o->role].owner = UINT64_C(1) << 32 | (uint32_t)getpid();
}

static void write_header(struct object *o)
{
	struct shmem_header *h = o->header;
	uint64_t n = number();

	switch (byte() % 12) {
	case 0: h->magic = n; break;
	case 1: h->version = (uint32_t)n; break;
	case 2: h->header_bytes = (uint32_t)n; break;
	case 3: h->slot_bytes = (uint32_t)n; break;
	case 4: h->slot_count = (uint32_t)n; break;
	case 5: h->values = (uint32_t)n; break;
	case 6: h->sides[byte() & 1].owner = n; break;
	case 7: h->sides[byte() & 1].mode = (uint32_t)n; break;
	case 8: h->tail = n; break;
	case 9: h->head = n; break;
	case 10: h->wake = (uint32_t)n; break;
	case 11: h->waiting = (uint32_t)n; break;
	}
}

static void write_slot(struct object *o)
{
	struct shmem_slot *s = (void *)((char *)o->header + SHMEM_HEADER_BYTES +
					(byte() % SLOTS) * shmem_slot_bytes(VALUES));

	switch (byte() % 6) {
	case 0: s->tag = number(); break;
	case 1: s->length = (uint32_t)number(); break;
	case 2: s->flags = (uint32_t)number(); break;
	case 3: s->origin_nsec = (int64_t)number(); break;
	case 4: s->received_nsec = (int64_t)number(); break;
	case 5: s->values[byte() % VALUES] = number(); break;
	}
}

/* A sample as it should be, so that there is something to read. */
static void write_properly(struct object *o)
{
	uint64_t at = o->header->head;
	struct shmem_slot *s = (void *)((char *)o->header + SHMEM_HEADER_BYTES +
					(at % SLOTS) * shmem_slot_bytes(VALUES));

	s->length = byte() % (VALUES + 2);
	s->flags = byte();
	s->tag = at + 1;
	o->header->head = at + 1;
}

/* ---- our side ---- */

static void open_ours(void)
{
	const struct busbar_shmem_options o = { .mode = byte() & 1,
						.queuelen = SLOTS,
						.values = VALUES };

	if (ours)
		return;
	if (busbar_shmem_open(&ours, from_us, to_us, &o)) {
		ours = NULL;
		must(busbar_shmem_error()[0]);
		return;
	}
	must(busbar_shmem_read_max(ours) <= SHMEM_VALUES_MAX);
}

static void read_ours(void)
{
	static uint8_t room[3 * (ROOM + 1) * 8];
	struct busbar_shmem_sample samples[3];
	unsigned count = 1 + byte() % 3, capacity = byte();

	int ret;

	capacity = capacity > 128 ? ROOM : capacity % (VALUES + 1);

	memset(room, CANARY, sizeof(room));
	for (unsigned i = 0; i < count; i++) {
		samples[i].values = (void *)(room + i * (ROOM + 1) * 8);
		samples[i].capacity = capacity;
	}
	ret = busbar_shmem_read(ours, samples, count, byte() & 1 ? 1000 : 0);
	must(ret <= (int)count);
	must(ret >= 0 || ret == -ENOTCONN || ret == -EINTR);
	for (int i = 0; i < ret; i++) {
		must(samples[i].length <= capacity);
		must(samples[i].length <= busbar_shmem_read_max(ours));
		must(samples[i].origin.tv_nsec >= 0 &&
		     samples[i].origin.tv_nsec < 1000000000);
		must(samples[i].received.tv_nsec >= 0 &&
		     samples[i].received.tv_nsec < 1000000000);
	}
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = capacity * 8; k < (ROOM + 1) * 8; k++)
			must(room[i * (ROOM + 1) * 8 + k] == CANARY);
}

static void write_ours(void)
{
	double v[VALUES + 2] = { 1, 2, 3, 4, 5, 6 };
	int ret = busbar_shmem_write_values(ours, v, byte() % (VALUES + 3));

	must(ret == 1 || ret == 0 || ret == -EMSGSIZE || ret == -ENOTCONN);
}

static void close_ours(void)
{
	busbar_shmem_close(ours);
	ours = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = data;
	input_end = data + size;
	for (int i = 0; i < 2; i++)
		make_object(&objects[i]);
	while (input < input_end) {
		struct object *o = &objects[byte() & 1];

		switch (byte() % 10) {
		case 0: case 1: write_header(o); break;
		case 2: case 3: write_slot(o); break;
		case 4: write_properly(&objects[0]); break;
		case 5: open_ours(); break;
		case 6: if (ours) read_ours(); break;
		case 7: if (ours) write_ours(); break;
		case 8: if (ours) busbar_shmem_connected(ours); break;
		case 9: /* dies, or is there again */
			lock(o, o->role, byte() & 1 ? F_WRLCK : F_UNLCK);
			break;
		}
		if (byte() > 250)
			close_ours();
	}
	close_ours();
	return 0;
}

__attribute__((constructor)) static void set_up(void)
{
	snprintf(to_us, sizeof(to_us), "/busbar-shmem-fuzz-%d-a", (int)getpid());
	snprintf(from_us, sizeof(from_us), "/busbar-shmem-fuzz-%d-b", (int)getpid());
	objects[0] = (struct object){ .name = to_us, .fd = -1,
				      .role = SHMEM_LOCK_WRITER };
	objects[1] = (struct object){ .name = from_us, .fd = -1,
				      .role = SHMEM_LOCK_READER };
}

#ifndef FUZZER
static uint64_t random_state;

static uint64_t random_next(void)
{
	uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char *argv[])
{
	double end = seconds_now() + (argc > 1 ? atof(argv[1]) : 1.0);
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) :
				   (uint64_t)time(NULL);
	unsigned long runs = 0;

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	random_state = seed;
	while (seconds_now() < end) {
		uint8_t data[512];
		size_t size = 16 + random_next() % (sizeof(data) - 16);

		for (size_t i = 0; i < size; i++)
			data[i] = (uint8_t)random_next();
		LLVMFuzzerTestOneInput(data, size);
		runs++;
	}
	for (int i = 0; i < 2; i++)
		drop_object(&objects[i]);
	printf("%lu inputs\n", runs);
	return 0;
}
#endif
