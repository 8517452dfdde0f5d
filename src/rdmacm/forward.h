/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifiers on real devices are forwarded to the system's librdmacm.so.1.
 *
 * The program's identifier is always a struct cma_id. If its address belongs to a
 * real device, it has a shadow, an identifier of the system's library that does the
 * work. If it is bound to a wildcard address, it may be bound itself and have a
 * shadow as well (shadow_beside), until the destination decides which of the two
 * is used.
 *
 * No lock of ours is held during a call of the system's library.
 */
#ifndef RDMACM_FORWARD_H
#define RDMACM_FORWARD_H

#include "rdmacm/abi-calls.h"
#include "rdmacm/cma.h"
#include "util/cancel.h"

/* Result: the call is not for the system's library; the caller carries it out. */
#define FORWARD_OURS 1

enum forward_call {
#define FORWARD_ENUM(name, version) FORWARD_##name,
	FORWARD_CALLS(FORWARD_ENUM)
#undef FORWARD_ENUM
	FORWARD_CALL_COUNT
};

/* The functions of the system's library; NULL: its version has no such function. */
extern void *forward_system[FORWARD_CALL_COUNT];

#define FORWARD_SYSTEM(name) ((__typeof__(&name))forward_system[FORWARD_##name])

/*
 * Number of nested calls of the system's library in this thread. That library calls
 * its own public functions by name, and the loader resolves these to ours; they
 * are passed through.
 */
extern _Thread_local unsigned forward_depth;

/* Calls a function of the system's library. */
#define FORWARD_CALL(name, ...)                                         \
	({                                                              \
		__typeof__(name(__VA_ARGS__)) forward_ret_;             \
		forward_depth++;                                        \
		forward_ret_ = FORWARD_SYSTEM(name)(__VA_ARGS__);       \
		forward_depth--;                                        \
		forward_ret_;                                           \
	})
#define FORWARD_CALL_VOID(name, ...)                 \
	do {                                         \
		forward_depth++;                     \
		FORWARD_SYSTEM(name)(__VA_ARGS__);   \
		forward_depth--;                     \
	} while (0)

/* First statement of a public function that is a cancellation point: passes a call
 * that the system's library makes to the system's function. */
#define FORWARD_WAITING(name, ...)                                \
	do {                                                      \
		if (unlikely(forward_depth))                      \
			return FORWARD_SYSTEM(name)(__VA_ARGS__); \
	} while (0)

/* First statement of the others: the same, and disables cancellation. */
#define FORWARD_INSIDE(...)           \
	FORWARD_WAITING(__VA_ARGS__); \
	CANCEL_OFF

/* The same; for an identifier with nothing but a shadow returns `function`'s result. */
#define FORWARD(id, function, name, ...)                                \
	do {                                                            \
		FORWARD_WAITING(name, __VA_ARGS__);                     \
		if (unlikely(forward_owns(cma_id_of(id))))              \
			return cma_result(function(__VA_ARGS__));       \
	} while (0);                                                    \
	CANCEL_OFF

/* Is the identifier used through its shadow alone? */
static inline bool forward_owns(const struct cma_id *id)
{
	return id->shadow && !id->shadow_beside;
}

/* ---- opening (forward_open.c) ---- */

/* Is there a real device, and is the system's library open? Opens it if need be. */
bool forward_ready(void);
/* The same, but never opens it. */
bool forward_opened(void);
/* A list of the `count` contexts of `ours` and then those of the system's library
 * that are not ours. The system's own list is stored behind the terminating NULL,
 * for forward_devices_free(). NULL: out of memory. */
struct ibv_context **forward_devices(struct ibv_context **ours, unsigned count,
				     int *total);
void forward_devices_free(struct ibv_context **list);

/* ---- addresses (forward_addr.c) ---- */

/* As the public functions, but 0 or a negative errno. FORWARD_OURS: the address is
 * soft0's, and the caller binds or resolves it. */
int forward_bind(struct cma_id *id, const struct sockaddr *addr);
int forward_resolve(struct cma_id *id, struct sockaddr *src, struct sockaddr *dst,
		    int timeout_ms);
/* FORWARD_OURS: the caller listens as well, and calls forward_drop() if it fails. */
int forward_listen(struct cma_id *id, int backlog);
/* Destroys the shadow, after its events are acknowledged. 0, or a negative errno:
 * the shadow still exists. */
int forward_drop(struct cma_id *id);
/* Before a call: copies to the shadow what the program may have changed (QP, SRQ,
 * PD). After it: copies what the call has changed from the shadow. */
void forward_push(struct cma_id *id);
void forward_pull(struct cma_id *id);

/* ---- channels and events (forward_event.c) ---- */

/* Makes pub.fd of a new channel: 0 or a negative errno. */
int forward_channel_init(struct cma_channel *ch);
/* Can the channel have events of the system's library as well? */
static inline bool forward_channel_is_merged(const struct cma_channel *ch)
{
	return ch->pub.fd != ch->count_fd;
}
/* The system's channel for `ch`, made on first use; 0 or a negative errno. */
int forward_channel_open(struct cma_channel *ch, struct rdma_event_channel **out);
void forward_channel_destroy(struct cma_channel *ch);
/* Takes and translates the next event of the system's channel and counts it as
 * reported. 0 and NULL: an event was dropped; -EAGAIN: there is none. */
int forward_event_take(struct cma_channel *ch, struct cma_event **out);
/* Moves the shadow to `ch`; 0 or a negative errno. */
int forward_migrate(struct cma_id *id, struct cma_channel *ch);

/* ---- other calls, as the public ones but 0 or a negative errno
 * (forward_call.c) ---- */

int forward_resolve_route(struct rdma_cm_id *id, int timeout_ms);
int forward_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int forward_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int forward_reject(struct rdma_cm_id *id, const void *private_data, uint8_t len);
int forward_reject_ece(struct rdma_cm_id *id, const void *private_data,
		       uint8_t len);
int forward_establish(struct rdma_cm_id *id);
int forward_notify(struct rdma_cm_id *id, enum ibv_event_type event);
int forward_disconnect(struct rdma_cm_id *id);
int forward_join(struct rdma_cm_id *id, struct sockaddr *addr, void *context);
int forward_join_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
		    void *context);
int forward_leave(struct rdma_cm_id *id, struct sockaddr *addr);
int forward_set_option(struct rdma_cm_id *id, int level, int name, void *value,
		       size_t len);
int forward_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);
int forward_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/* ---- queue pairs (forward_qp.c) ---- */

int forward_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr,
			 int *mask);
int forward_create_qp(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr);
void forward_destroy_qp(struct rdma_cm_id *id);
/* For XRC; a basic SRQ needs only the device. */
int forward_create_srq(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr);

#endif
