/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of our libibverbs.so.1 for our librdmacm.so.1 and the command, beyond the
 * public verbs. They have the version BUSBAR_1 and are not part of the public interface:
 * both libraries come from the same build. The command may run with another
 * libibverbs and therefore looks these functions up at run time.
 */
#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hca_gsi_address;
struct hca_gsi_service;
struct progress_timer;

int busbar_progress_hold(void);
void busbar_progress_release(void);
int busbar_progress_watch(int fd, uint32_t events,
			  void (*fn)(void *arg, uint32_t events), void *arg);
int busbar_progress_rewatch(int fd, uint32_t events);
void busbar_progress_unwatch(int fd);
void busbar_progress_unwatch_async(int fd);
void busbar_progress_timer_init(struct progress_timer *t,
				void (*fn)(struct progress_timer *t));
void busbar_progress_timer_arm(struct progress_timer *t, uint64_t deadline_ns);
void busbar_progress_timer_cancel(struct progress_timer *t);
void busbar_progress_timer_disarm(struct progress_timer *t);
bool busbar_progress_is_self(void);

/* Tells `busbar exec` that this process uses a device. */
void busbar_note_opened(void);

/* For `busbar devices`; see hca/view/inspect.h. */
struct hca_inspector;
struct hca_view;
int busbar_inspector_open(unsigned version, struct hca_inspector **out);
int busbar_inspector_look(struct hca_inspector *in, struct hca_view **out);
void busbar_view_free(struct hca_view *view);
void busbar_inspector_close(struct hca_inspector *in);
int busbar_fail_ask(uint32_t pid, const char *device);
struct hca_faults_view;
int busbar_faults_ask(uint32_t pid, const char *text, struct hca_faults_view *out);
int busbar_fault_event_ask(uint32_t pid, uint32_t index, char *line, size_t line_bytes);

/* A library of the system that has the same soname as one of ours. */
struct busbar_system_library {
	const char *soname;
	const char *env;     /* name of the setting with its path */
	const char *setting; /* the setting's value: a path, "auto" or "off" */
	const char *mark;    /* a function of version BUSBAR_1, exported by ours only */
	const void *own;     /* an address in ours, to recognise its file */
	atomic_flag *said;   /* it was logged that the named file cannot be opened */
};

/* Opens the library by its absolute path, but never one of busbar's. NULL: not found
 * or off; logged if the setting names a file. No lock may be held. */
void *busbar_system_dlopen(const struct busbar_system_library *lib);

/* Processes messages that have arrived by now, for all queue pairs of the process (hca_take_in() in
 * hca/share/process.h). */
void busbar_take_in(void);
/* Does `qp` still exist, with this number? The pointer is compared, not followed. */
bool busbar_qp_exists(const struct ibv_qp *qp, uint32_t qpn);
/* Has the device failed (hca/device/fail.h)? True when IBV_EVENT_DEVICE_FATAL is reported. */
bool busbar_context_failed(struct ibv_context *ctx);
/* Is it a device of ours, and not of the system's library? */
bool busbar_owns_device(const struct ibv_device *dev);

/* Connections over streams for queue pairs of soft1; see hca/path/stream.h and hca/hca.h. */
struct hca_stream;
int busbar_stream_attach(uint32_t qpn, const struct hca_stream *stream);
int busbar_stream_close(uint32_t qpn, const void *arg);
void busbar_stream_forget(uint32_t qpn, const void *arg);

/* Does BUSBAR_NETWORK let this host be reached by the address, which is one of its own? `gid` as in the
 * table of GIDs. */
bool busbar_network_allows(const union ibv_gid *gid);

/* May the process at the other end of the socket talk to us (hca/share/peers.h)? 0 and its
 * number; -EACCES, with a log line about the `what`; or another negative errno. */
int busbar_peer_check(int fd, const char *what, pid_t *pid);

/* A port of a simulated InfiniBand subnet, and others of it; see hca/host/subnet.h and subnet_peer.h. */
bool busbar_subnet_on(void);
uint64_t busbar_subnet_place(void);
void busbar_subnet_own_ipv4(uint8_t ip[4]);
int busbar_subnet_gid_of_ipv4(const uint8_t ip[4], union ibv_gid *gid);
struct hca_subnet_path;
int busbar_subnet_path_to(const union ibv_gid *to, struct hca_subnet_path *path);
int busbar_subnet_join(const union ibv_gid *mgid, bool sends_only, struct hca_subnet_path *path);
int busbar_subnet_lid_of_gid(const union ibv_gid *gid, uint16_t *lid);

/* Queue pair 1, for connections between hosts; see hca/path/gsi.h. */
bool busbar_gsi_exists(void);
bool busbar_local_exists(void);
int busbar_gsi_open(void (*receive)(const struct hca_gsi_address *from,
				    const uint8_t *mad));
uint32_t busbar_gsi_comm_id(uint32_t number);
int busbar_gsi_send(const struct hca_gsi_address *to, const uint8_t *mad);
int busbar_gsi_serve(const struct hca_gsi_service *service);
void busbar_gsi_unserve(const struct hca_gsi_service *service);

#endif
