/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: turns the socket calls of a TCP program into rsocket calls. Loaded by
 * LD_PRELOAD (`busbar exec --rsockets`); compare rsocket(7).
 *
 * A socket of the program stays a TCP socket and has an rsocket in addition. Both are
 * bound and both listen. When a connection is made, one of the two carries it: the
 * rsocket if the peer has one, else TCP, and then the rsocket is closed. So descriptor
 * numbers, dup2(), inheritance and options work as before, and a server serves
 * programs of both kinds.
 *
 * With RDMAV_FORK_SAFE set on both sides a connection begins as TCP and becomes an
 * rsocket on its first use: a server may accept, fork, and let the child serve
 * (later.c).
 *
 * Public rsocket calls are used, and those of rsocket/epoll.h. While `preload_inside` is set,
 * socket calls of the thread are those of this library and the ones below it, and go to the C
 * library.
 */
#ifndef RDMACM_PRELOAD_PRELOAD_H
#define RDMACM_PRELOAD_PRELOAD_H

#include <errno.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define PRELOAD_EXPORT __attribute__((visibility("default")))
#define PRELOAD_FDS_MAX 65536

/* The C library's functions. */
struct preload_real {
	int (*socket)(int, int, int);
	int (*bind)(int, const struct sockaddr *, socklen_t);
	int (*listen)(int, int);
	int (*accept4)(int, struct sockaddr *, socklen_t *, int);
	int (*connect)(int, const struct sockaddr *, socklen_t);
	int (*shutdown)(int, int);
	int (*close)(int);
	ssize_t (*recv)(int, void *, size_t, int);
	ssize_t (*recvfrom)(int, void *, size_t, int, struct sockaddr *,
			    socklen_t *);
	ssize_t (*recvmsg)(int, struct msghdr *, int);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*readv)(int, const struct iovec *, int);
	ssize_t (*send)(int, const void *, size_t, int);
	ssize_t (*sendto)(int, const void *, size_t, int, const struct sockaddr *,
			  socklen_t);
	ssize_t (*sendmsg)(int, const struct msghdr *, int);
	ssize_t (*write)(int, const void *, size_t);
	ssize_t (*writev)(int, const struct iovec *, int);
	ssize_t (*sendfile)(int, int, off_t *, size_t);
	int (*poll)(struct pollfd *, nfds_t, int);
	int (*ppoll)(struct pollfd *, nfds_t, const struct timespec *,
		     const sigset_t *);
	int (*select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
	int (*pselect)(int, fd_set *, fd_set *, fd_set *, const struct timespec *,
		       const sigset_t *);
	int (*getpeername)(int, struct sockaddr *, socklen_t *);
	int (*getsockname)(int, struct sockaddr *, socklen_t *);
	int (*setsockopt)(int, int, int, const void *, socklen_t);
	int (*getsockopt)(int, int, int, void *, socklen_t *);
	int (*fcntl)(int, int, ...);
	int (*ioctl)(int, unsigned long, ...);
	int (*dup)(int);
	int (*dup2)(int, int);
	int (*dup3)(int, int, int);
	int (*epoll_create1)(int);
	int (*epoll_ctl)(int, int, int, struct epoll_event *);
	int (*epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
	int (*epoll_pwait2)(int, struct epoll_event *, int, const struct timespec *,
			    const sigset_t *);
};

extern struct preload_real preload_real;
void preload_init(void);
extern _Thread_local unsigned preload_inside;

static inline void preload_enter(void)
{
	preload_inside++;
}

static inline void preload_leave(void)
{
	preload_inside--;
}

enum preload_state {
	PRELOAD_FRESH,      /* neither connected nor listening */
	PRELOAD_LISTENING,  /* both sockets listen */
	PRELOAD_CONNECTED,  /* by the rsocket, or it is connecting */
	PRELOAD_ACTIVE,     /* by TCP, to become an rsocket: this side connected */
	PRELOAD_PASSIVE,    /* by TCP, to become an rsocket: this side accepted */
};

/* A socket of the program, with one or more descriptors (dup()). */
struct preload_socket {
	atomic_uint refs;
	int rs;             /* the rsocket, -1: none yet */
	_Atomic(enum preload_state) state;
	struct preload_watch *watches; /* its entries in epoll instances (epoll.c) */
	struct preload_socket *next_free;
};

/* One more than the largest descriptor that has had a socket or a set: loops end here. */
extern atomic_int preload_fds_end;

static inline void preload_fd_used(int fd)
{
	int end = atomic_load_explicit(&preload_fds_end, memory_order_relaxed);

	while (fd >= end && !atomic_compare_exchange_weak(&preload_fds_end, &end, fd + 1))
		;
}

/* The socket of `fd`; NULL: it has no rsocket, or preload_inside is set. */
struct preload_socket *preload_find(int fd);
struct preload_socket *preload_new(int rs, enum preload_state state);
int preload_put(int fd, struct preload_socket *s);
/* Makes `fd` another descriptor of the socket. */
void preload_share(int fd, struct preload_socket *s);
/* Removes `fd`; the rsocket is closed with the last descriptor. */
void preload_forget(int fd);
/* Closes the rsocket: all descriptors of the socket are plain TCP from now on. */
void preload_become_tcp(int fd, struct preload_socket *s);

/* The rsocket for data of `fd`; -1: TCP. Turns a connection that is to become an
 * rsocket into one (later.c). */
int preload_data(int fd);
bool preload_fork_safe(void);
int preload_later(int fd, struct preload_socket *s);
void preload_later_forked(void);

/* Moves the socket's watches after its bytes have moved from TCP to the rsocket or back
 * (epoll.c). */
void preload_watches_move(struct preload_socket *s);
void preload_watches_free(struct preload_socket *s);
/* Descriptor `to` is now one of the epoll instance `from`; -1: of no instance. */
void preload_set_share(int from, int to);
/* The program waits for `fd`, which may be an epoll instance. */
void preload_set_nest(int fd);
void preload_epoll_forked(void);

/* Does the configuration want rsockets for such a socket of this program? (config.c) */
bool preload_wanted(int domain, int type, int protocol);

#endif
