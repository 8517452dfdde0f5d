/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * epoll(7) for rsockets, and what else librspreload.so needs. A program's epoll instance keeps its
 * ordinary descriptors; a set (struct rs_set) beside it keeps the rsockets that it watches,
 * and adds their event and completion channels to the instance. So a thread sleeps in the
 * kernel on all of them, and the instance may be in another one.
 */
#ifndef RDMACM_RSOCKET_EPOLL_H
#define RDMACM_RSOCKET_EPOLL_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <time.h>

struct rs_set;

/* A set without sockets and one reference to it; NULL: no memory. */
struct rs_set *busbar_epoll_make(void);
void busbar_epoll_get(struct rs_set *set);
void busbar_epoll_put(struct rs_set *set);
/* The program has closed the instance: removes all sockets. */
void busbar_epoll_end(struct rs_set *set);
bool busbar_epoll_ended(struct rs_set *set);

/* As epoll_ctl(2) for an rsocket; `epfd` is the instance's descriptor, `fd` the program's
 * number of the socket, which may have several (dup(2)). */
int busbar_epoll_ctl(struct rs_set *set, int epfd, int op, int socket, int fd,
		     const struct epoll_event *asked);
/* As epoll_pwait2(2), for the set and the instance. Drops one reference to the set. */
int busbar_epoll_wait(struct rs_set *set, int epfd, struct epoll_event *events, int max,
		      const struct timespec *timeout, const sigset_t *mask);
/* Makes the instance readable, from now on, whenever a socket of the set may be ready, because
 * the program waits for the instance itself. */
void busbar_epoll_nest(struct rs_set *set);

/* As ppoll(2), for rsockets and other descriptors; it reports of an rsocket what ppoll() reports
 * of a TCP socket. */
int busbar_rppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		  const sigset_t *mask);
/* As ioctl(2) with FIONREAD. */
int busbar_rreadable(int socket, int *bytes);

#endif
