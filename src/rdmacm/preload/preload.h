/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: the socket calls of a TCP program, turned into rsocket calls.
 * Loaded by LD_PRELOAD (`busbar exec --rsockets`); rsocket(7) describes the like.
 *
 * A socket of the program stays what it is, a real TCP socket, and gets an rsocket
 * beside it. Both are bound and both listen; which of the two carries a connection
 * is decided when it is made: rsockets where the other side has them, else TCP, and
 * the rsocket goes. So numbers, dup2(), inheritance and options need no care, and a
 * server serves programs of both kinds.
 *
 * With RDMAV_FORK_SAFE set (on both sides) connections begin as TCP and become
 * rsockets by their first use, in the process that uses them: a server may accept,
 * fork, and let the child serve (later.c).
 *
 * Only the public rsocket calls are used. What this library and those below it call
 * themselves goes to the C library: `preload_inside` says so, per thread.
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
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define PRELOAD_EXPORT __attribute__((visibility("default")))

/* The C library's own. */
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
	PRELOAD_LISTENING,  /* both do */
	PRELOAD_CONNECTED,  /* the rsocket is it, or is about to be */
	PRELOAD_ACTIVE,     /* over TCP, to become an rsocket: we called */
	PRELOAD_PASSIVE,    /* likewise: we were called */
};

/* A socket of the program, under one number or several (dup). */
struct preload_socket {
	atomic_uint refs;
	int rs;             /* the rsocket, -1: none yet */
	_Atomic(enum preload_state) state;
	struct preload_socket *next_free;
};

/* The socket of `fd`; NULL when it is none of ours, or the caller is ourselves. */
struct preload_socket *preload_find(int fd);
struct preload_socket *preload_new(int rs, enum preload_state state);
int preload_put(int fd, struct preload_socket *s);
/* Another number for the same socket. */
void preload_share(int fd, struct preload_socket *s);
/* Forgets `fd`; the rsocket goes with its last number. */
void preload_forget(int fd);
/* From now on `fd` is a TCP socket and nothing else. */
void preload_become_tcp(int fd, struct preload_socket *s);

/* The rsocket that data of `fd` go by, -1 when they do not (later.c decides for
 * those that are to become rsockets). */
int preload_data(int fd);
bool preload_fork_safe(void);
int preload_later(int fd, struct preload_socket *s);
void preload_later_forked(void);

/* Is this program to use rsockets for such a socket? (config.c) */
bool preload_wanted(int domain, int type, int protocol);

#endif
