/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What our librdmacm.so.1 and the command use of our libibverbs.so.1 beyond the
 * public verbs. Exported under the version node BUSBAR_1, never part of the
 * public interface; both libraries come from the same build. The command may run
 * with another libibverbs and therefore looks its functions up at run time.
 */
#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct progress_timer;

int busbar_progress_hold(void);
void busbar_progress_release(void);
int busbar_progress_watch(int fd, uint32_t events,
			  void (*fn)(void *arg, uint32_t events), void *arg);
int busbar_progress_rewatch(int fd, uint32_t events);
void busbar_progress_unwatch(int fd);
void busbar_progress_timer_init(struct progress_timer *t,
				void (*fn)(struct progress_timer *t));
void busbar_progress_timer_arm(struct progress_timer *t, uint64_t deadline_ns);
void busbar_progress_timer_cancel(struct progress_timer *t);
void busbar_progress_timer_disarm(struct progress_timer *t);
bool busbar_progress_is_self(void);

/* For the command: hca/inspect.h. */
struct hca_inspector;
struct hca_view;
int busbar_inspector_open(unsigned version, struct hca_inspector **out);
int busbar_inspector_look(struct hca_inspector *in, struct hca_view **out);
void busbar_view_free(struct hca_view *view);
void busbar_inspector_close(struct hca_inspector *in);
int busbar_fail_ask(uint32_t pid, const char *device);

/* A library of the system behind one of ours of the same soname. */
struct busbar_system_library {
	const char *soname;
	const char *env;     /* the setting that may name it */
	const char *setting; /* its value: a path, "auto" or "off" */
	const char *mark;    /* a function of version BUSBAR_1 that ours has */
	const void *own;     /* anything that lies in ours */
	atomic_flag *said;   /* that the named one cannot be opened */
};

/* Opens it by its absolute path, never a busbar's; or NULL, with a line in the
 * log where somebody asked for a certain file. No lock may be held. */
void *busbar_system_dlopen(const struct busbar_system_library *lib);

/* Is `qp`, which had this number, not destroyed? Looks at its address only. */
bool busbar_qp_exists(const struct ibv_qp *qp, uint32_t qpn);
/* Has its device failed (hca/fail.h)? It had when IBV_EVENT_DEVICE_FATAL came. */
bool busbar_context_failed(struct ibv_context *ctx);
/* A device of ours (a context of another owner is left alone). */
bool busbar_owns_device(const struct ibv_device *dev);

/* May the process at the other end of the socket, the `what` of the line that is
 * written when not, talk to us (hca/peers.h)? 0 and its number, -EACCES or another
 * negative errno. */
int busbar_peer_check(int fd, const char *what, pid_t *pid);

#endif
