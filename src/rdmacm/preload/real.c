/* SPDX-License-Identifier: BSD-2-Clause */
/* The C library's functions, and the table of sockets. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "rdmacm/preload/preload.h"

struct preload_real preload_real;
_Thread_local unsigned preload_inside;
atomic_int preload_fds_end;

static _Atomic(struct preload_socket *) sockets[PRELOAD_FDS_MAX];
static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
static struct preload_socket *free_list;

#define FIND(name) \
	preload_real.name = (__typeof__(preload_real.name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) void preload_init(void)
{
	if (preload_real.socket)
		return;
	FIND(bind);
	FIND(listen);
	FIND(accept4);
	FIND(connect);
	FIND(shutdown);
	FIND(close);
	FIND(recv);
	FIND(recvfrom);
	FIND(recvmsg);
	FIND(read);
	FIND(readv);
	FIND(send);
	FIND(sendto);
	FIND(sendmsg);
	FIND(write);
	FIND(writev);
	FIND(sendfile);
	FIND(poll);
	FIND(ppoll);
	FIND(select);
	FIND(pselect);
	FIND(getpeername);
	FIND(getsockname);
	FIND(setsockopt);
	FIND(getsockopt);
	FIND(fcntl);
	FIND(ioctl);
	FIND(dup);
	FIND(dup2);
	FIND(dup3);
	FIND(epoll_create1);
	FIND(epoll_ctl);
	FIND(epoll_pwait);
	FIND(epoll_pwait2);
	FIND(socket); /* last: other functions test it to see whether all are set */
}

/* The child does not have the parent's rsockets: its listeners go on with TCP. */
static void sockets_forked(void)
{
	for (int fd = 0; fd < atomic_load(&preload_fds_end); fd++) {
		struct preload_socket *s = atomic_load(&sockets[fd]);

		if (!s)
			continue;
		s->watches = NULL;
		if (atomic_load(&s->state) == PRELOAD_LISTENING)
			s->rs = -1;
	}
}

static void locks_forked(void)
{
	pthread_mutex_init(&free_lock, NULL);
	preload_later_forked();
	preload_epoll_forked();
	sockets_forked();
}

__attribute__((constructor)) static void locks_load(void)
{
	pthread_atfork(NULL, NULL, locks_forked);
}

struct preload_socket *preload_find(int fd)
{
	if (!preload_real.socket)
		preload_init();
	if (preload_inside || fd < 0 || fd >= PRELOAD_FDS_MAX)
		return NULL;
	return atomic_load_explicit(&sockets[fd], memory_order_acquire);
}

struct preload_socket *preload_new(int rs, enum preload_state state)
{
	struct preload_socket *s;

	pthread_mutex_lock(&free_lock);
	s = free_list;
	if (s)
		free_list = s->next_free;
	pthread_mutex_unlock(&free_lock);
	if (!s)
		s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->rs = rs;
	atomic_store(&s->state, state);
	atomic_store(&s->refs, 0);
	return s;
}

int preload_put(int fd, struct preload_socket *s)
{
	if (fd < 0 || fd >= PRELOAD_FDS_MAX)
		return -EMFILE;
	preload_share(fd, s);
	return 0;
}

static void release(struct preload_socket *s)
{
	if (atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	preload_watches_free(s);
	if (s->rs >= 0) {
		preload_enter();
		rclose(s->rs);
		preload_leave();
	}
	/* Another thread may have read the pointer: the memory is not freed. */
	pthread_mutex_lock(&free_lock);
	s->next_free = free_list;
	free_list = s;
	pthread_mutex_unlock(&free_lock);
}

void preload_share(int fd, struct preload_socket *s)
{
	struct preload_socket *old;

	if (fd < 0 || fd >= PRELOAD_FDS_MAX)
		return;
	if (s) {
		preload_fd_used(fd);
		atomic_fetch_add(&s->refs, 1);
	}
	old = atomic_exchange(&sockets[fd], s);
	if (old)
		release(old);
}

void preload_forget(int fd)
{
	preload_share(fd, NULL);
}

void preload_become_tcp(int fd, struct preload_socket *s)
{
	int rs = s->rs;

	/* Removes all its descriptors. */
	s->rs = -1;
	preload_watches_move(s);
	for (int other = 0; other < atomic_load(&preload_fds_end); other++)
		if (atomic_load(&sockets[other]) == s)
			preload_forget(other);
	if (rs >= 0) {
		preload_enter();
		rclose(rs);
		preload_leave();
	}
}

int preload_data(int fd)
{
	struct preload_socket *s = preload_find(fd);

	if (!s)
		return -1;
	switch (atomic_load_explicit(&s->state, memory_order_acquire)) {
	case PRELOAD_CONNECTED:
		return s->rs;
	case PRELOAD_ACTIVE:
	case PRELOAD_PASSIVE:
		return preload_later(fd, s);
	default:
		return -1;
	}
}
