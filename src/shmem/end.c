/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attaching to a shared memory object and leaving it; see end.h and layout.h.
 *
 * Whoever attaches or leaves holds the set-up lock meanwhile, so there is one at
 * a time. When the other side's lock is free the object belongs to nobody: an
 * old one is removed and a new one made, because a process that was killed may
 * have left anything in it. When that lock is taken the object is in use and
 * stays as it is. Who opens an object that is being removed sees afterwards that
 * it has no name any more, and starts again.
 */
#include "shmem/end.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shmem/guard.h"

/* The set-up lock is held for some ten microseconds. */
#define SETUP_WAIT_NS 2000000
#define SETUP_TRIES 1000
/* Others that remove and create objects of the same name meanwhile. */
#define OPEN_TRIES 100

static const char *const role_names[] = { [SHMEM_READER] = "reads",
					  [SHMEM_WRITER] = "writes" };

struct attempt {
	struct shmem_end *e;
	const struct shmem_wish *wish;
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 3, 4))) static int fail(struct attempt *a, int err,
						      const char *fmt, ...)
{
	int at = snprintf(a->why, a->why_bytes, "shared memory object %s: ",
			  a->e->name);
	va_list args;

	va_start(args, fmt);
	if (at > 0 && (size_t)at < a->why_bytes)
		vsnprintf(a->why + at, a->why_bytes - (size_t)at, fmt, args);
	va_end(args);
	return err;
}

static int lock_byte(int fd, enum shmem_lock which, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET,
			      .l_start = which, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &lock) ? -errno : 0;
}

static bool held_by_other(int fd, enum shmem_lock which)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
			      .l_start = which, .l_len = 1 };

	/* When it cannot be said the peer is left alone. */
	return fcntl(fd, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
}

static enum shmem_lock lock_of(enum shmem_role role)
{
	return role == SHMEM_READER ? SHMEM_LOCK_READER : SHMEM_LOCK_WRITER;
}

static int lock_setup(int fd)
{
	const struct timespec pause = { .tv_nsec = SETUP_WAIT_NS };

	for (int i = 0; i < SETUP_TRIES; i++) {
		int ret = lock_byte(fd, SHMEM_LOCK_SETUP, F_WRLCK);

		if (ret != -EAGAIN && ret != -EACCES)
			return ret;
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

/* Opens it, or creates it. Not in one call: the kernel refuses O_CREAT on
 * another user's object even to root, where it protects /dev/shm. */
static int open_object(struct attempt *a)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		int fd = shm_open(a->e->name, O_RDWR, 0);

		if (fd >= 0)
			return fd;
		if (errno == ENOENT)
			fd = shm_open(a->e->name, O_RDWR | O_CREAT | O_EXCL,
				      0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return fail(a, -errno, "cannot be opened: %s",
				    strerror(errno));
	}
	return fail(a, -EBUSY, "comes and goes; who else uses this name?");
}

static int map_object(struct attempt *a, int fd, uint64_t bytes)
{
	void *at;

	if (bytes > SIZE_MAX / 2)
		return fail(a, -EPROTO, "is too large");
	at = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_POPULATE, fd, 0);
	if (at == MAP_FAILED)
		return fail(a, -errno, "cannot be mapped: %s", strerror(errno));
	shmem_guard_add(at, (size_t)bytes);
	a->e->header = at;
	a->e->slots = (unsigned char *)at + SHMEM_HEADER_BYTES;
	a->e->map_bytes = (size_t)bytes;
	return 0;
}

static void take_dimensions(struct shmem_end *e, uint32_t slot_bytes,
			    uint32_t slot_count, uint32_t values)
{
	e->slot_bytes = slot_bytes;
	e->mask = slot_count - 1;
	e->values = values;
}

/* A new object, as `wish` says. */
static int make_object(struct attempt *a, int fd)
{
	uint32_t slot_bytes = shmem_slot_bytes(a->wish->values);
	uint64_t bytes = shmem_object_bytes(slot_bytes, a->wish->slot_count);
	struct shmem_header *h;
	int ret;

	/* Not ftruncate(): a full file system is to say so now, and not by a
	 * signal once the memory is touched. */
	ret = posix_fallocate(fd, 0, (off_t)bytes);
	if (ret)
		return fail(a, -ret, "no room for %llu bytes: %s",
			    (unsigned long long)bytes, strerror(ret));
	ret = map_object(a, fd, bytes);
	if (ret)
		return ret;
	h = a->e->header;
	h->version = SHMEM_VERSION;
	h->header_bytes = SHMEM_HEADER_BYTES;
	h->slot_bytes = slot_bytes;
	h->slot_count = a->wish->slot_count;
	h->values = a->wish->values;
	atomic_store_explicit(&h->magic, SHMEM_MAGIC, memory_order_release);
	take_dimensions(a->e, slot_bytes, h->slot_count, h->values);
	return 0;
}

/* One that somebody is attached to. Looks at each number once. */
static int use_object(struct attempt *a, int fd, uint64_t size)
{
	struct shmem_header h;
	ssize_t got = pread(fd, &h, sizeof(h), 0);
	uint64_t bytes;

	if (got != (ssize_t)sizeof(h) || h.magic != SHMEM_MAGIC)
		return fail(a, -EPROTO, "is in use, but not by busbar");
	if (h.version != SHMEM_VERSION ||
	    h.header_bytes != SHMEM_HEADER_BYTES)
		return fail(a, -EPROTO,
			    "has layout %u, this program knows %u; use the same version on both sides",
			    h.version, SHMEM_VERSION);
	if (!h.slot_count || h.slot_count > SHMEM_SLOTS_MAX ||
	    (h.slot_count & (h.slot_count - 1)) || !h.values ||
	    h.values > SHMEM_VALUES_MAX ||
	    h.slot_bytes != shmem_slot_bytes(h.values))
		return fail(a, -EPROTO, "says of itself what cannot be");
	bytes = shmem_object_bytes(h.slot_bytes, h.slot_count);
	if (size < bytes)
		return fail(a, -EPROTO, "has %llu bytes, it says %llu",
			    (unsigned long long)size,
			    (unsigned long long)bytes);
	take_dimensions(a->e, h.slot_bytes, h.slot_count, h.values);
	return map_object(a, fd, bytes);
}

/* Nobody is attached. -EAGAIN when the name is free now. */
static int clear_leftover(struct attempt *a, int fd)
{
	uint64_t magic = 0;

	/* Zero: whoever made it was killed before the end. */
	if (pread(fd, &magic, sizeof(magic), 0) != sizeof(magic) ||
	    (magic && magic != SHMEM_MAGIC))
		return fail(a, -EEXIST,
			    "is something else and not touched; take another name, or remove it");
	if (shm_unlink(a->e->name) && errno != ENOENT)
		return fail(a, -errno,
			    "is a leftover that cannot be removed: %s",
			    strerror(errno));
	return -EAGAIN;
}

/* Where this end begins, once the object is mapped. */
static void find_position(struct shmem_end *e)
{
	struct shmem_header *h = e->header;
	uint64_t tail = atomic_load(&h->tail), at = atomic_load(&h->head);

	/* A killed writer may have published one more than it said. A new
	 * reader leaves out what was meant for another. */
	for (uint64_t i = 0; i <= e->mask; i++, at++)
		if (!shmem_slot_holds(shmem_end_slot(e, at), at))
			break;
	if (e->role == SHMEM_WRITER && at - tail > (uint64_t)e->mask + 1)
		at = tail;
	e->position = at;
	e->tail = tail;
	if (e->role == SHMEM_READER) {
		shmem_end_release(e);
		/* One that was killed in its sleep left this. */
		atomic_store(&h->waiting, 0);
	}
}

static void announce(struct shmem_end *e, uint32_t mode)
{
	struct shmem_side *side = &e->header->sides[e->role];
	uint64_t owner = atomic_load(&side->owner);

	atomic_store(&side->mode, mode);
	atomic_store(&side->owner,
		     (uint64_t)(shmem_owner_generation(owner) + 1) << 32 |
			     (uint32_t)getpid());
	shmem_end_wake(e);
}

/* -EAGAIN: the object went away meanwhile. */
static int attach_to(struct attempt *a, int fd)
{
	enum shmem_lock mine = lock_of(a->e->role), other = lock_of(!a->e->role);
	struct stat st;
	int ret = lock_setup(fd);

	if (ret)
		return fail(a, ret, "cannot be locked: %s", strerror(-ret));
	if (fstat(fd, &st))
		return fail(a, -errno, "%s", strerror(errno));
	if (!st.st_nlink)
		return -EAGAIN;
	ret = lock_byte(fd, mine, F_WRLCK);
	if (ret == -EAGAIN || ret == -EACCES)
		return fail(a, -EBUSY, "another process %s it already",
			    role_names[a->e->role]);
	if (ret)
		return fail(a, ret, "cannot be locked: %s", strerror(-ret));
	if (held_by_other(fd, other))
		ret = use_object(a, fd, (uint64_t)st.st_size);
	else if (st.st_size)
		return clear_leftover(a, fd);
	else
		ret = make_object(a, fd);
	if (ret) {
		if (!held_by_other(fd, other))
			shm_unlink(a->e->name);
		return ret;
	}
	a->e->fd = fd;
	find_position(a->e);
	announce(a->e, a->wish->mode);
	lock_byte(fd, SHMEM_LOCK_SETUP, F_UNLCK);
	return 0;
}

static int set_name(struct attempt *a, const char *name)
{
	size_t length;

	name += *name == '/';
	length = strlen(name);
	if (length == 0 || length > SHMEM_NAME_MAX || strchr(name, '/') ||
	    !strcmp(name, ".") || !strcmp(name, "..")) {
		snprintf(a->why, a->why_bytes,
			 "'%.80s' is no name of a shared memory object: 1 to %d characters without a slash, but for the first",
			 name, SHMEM_NAME_MAX);
		return -EINVAL;
	}
	snprintf(a->e->name, sizeof(a->e->name), "/%s", name);
	return 0;
}

int shmem_end_attach(struct shmem_end *e, const char *name,
		     enum shmem_role role, const struct shmem_wish *wish,
		     char *why, size_t why_bytes)
{
	struct attempt a = { e, wish, why, why_bytes };
	int ret;

	memset(e, 0, sizeof(*e));
	e->fd = -1;
	e->role = role;
	ret = set_name(&a, name);
	if (ret)
		return ret;
	for (int i = 0; i < OPEN_TRIES; i++) {
		int fd = open_object(&a);

		if (fd < 0)
			return fd;
		ret = attach_to(&a, fd);
		if (ret == 0)
			return 0;
		shmem_guard_remove(e->header);
		if (e->header)
			munmap(e->header, e->map_bytes);
		e->header = NULL;
		close(fd);
		if (ret != -EAGAIN)
			return ret;
	}
	return fail(&a, -EBUSY, "comes and goes; who else uses this name?");
}

void shmem_end_detach(struct shmem_end *e)
{
	struct stat st;

	if (e->fd < 0)
		return;
	/* Without the lock (somebody is stuck in it) the object stays, and the
	 * next one to attach clears it. */
	if (!lock_setup(e->fd)) {
		atomic_fetch_and(&e->header->sides[e->role].owner,
				 ~(uint64_t)UINT32_MAX);
		if (!held_by_other(e->fd, lock_of(!e->role)) &&
		    !fstat(e->fd, &st) && st.st_nlink)
			shm_unlink(e->name);
	}
	shmem_end_wake(e);
	shmem_guard_remove(e->header);
	munmap(e->header, e->map_bytes);
	close(e->fd);
	e->fd = -1;
	e->header = NULL;
}

bool shmem_end_is_removed(const struct shmem_end *e)
{
	struct stat st;

	return e->fd >= 0 && !fstat(e->fd, &st) && !st.st_nlink;
}

uint64_t shmem_end_peer_alive(struct shmem_end *e)
{
	struct shmem_side *side = &e->header->sides[!e->role];
	uint64_t owner = shmem_end_peer(e);

	if (!owner || held_by_other(e->fd, lock_of(!e->role)))
		return owner;
	/* Unless another has come in this moment. */
	atomic_compare_exchange_strong(&side->owner, &owner,
				       owner & ~(uint64_t)UINT32_MAX);
	return shmem_end_peer(e);
}

void shmem_end_wake(struct shmem_end *e)
{
	int saved_errno = errno;

	atomic_fetch_add(&e->header->wake, 1);
	syscall(SYS_futex, &e->header->wake, FUTEX_WAKE, INT_MAX, NULL, NULL,
		0);
	errno = saved_errno;
}
