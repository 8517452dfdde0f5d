/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifiers on real devices: the system's own librdmacm.so.1 behind ours.
 *
 * What a program holds is always ours. An identifier whose address belongs to a
 * real device has a shadow, an identifier of the system's library, which does the
 * work; one that is bound to a wildcard address may have a shadow beside itself
 * and be ours as well, until its destination says where it belongs.
 *
 * Nothing here holds a lock of ours while the system's library works.
 */
#ifndef RDMACM_FORWARD_H
#define RDMACM_FORWARD_H

#include "rdmacm/abi-calls.h"
#include "rdmacm/cma.h"
#include "util/cancel.h"

/* Not the system library's business: ours goes on. */
#define FORWARD_OURS 1

enum forward_call {
#define FORWARD_ENUM(name, version) FORWARD_##name,
	FORWARD_CALLS(FORWARD_ENUM)
#undef FORWARD_ENUM
	FORWARD_CALL_COUNT
};

/* The system library's functions; NULL where it is too old to have one. */
extern void *forward_system[FORWARD_CALL_COUNT];

#define FORWARD_SYSTEM(name) ((__typeof__(&name))forward_system[FORWARD_##name])

/*
 * How deep this thread is inside of the system's library. It calls its own
 * functions by name, and the loader finds ours for them.
 */
extern _Thread_local unsigned forward_depth;

/* Calls the system's function. */
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

/* First line of a public function that is a cancellation point: a call of the
 * system's library to itself. */
#define FORWARD_WAITING(name, ...)                                \
	do {                                                      \
		if (unlikely(forward_depth))                      \
			return FORWARD_SYSTEM(name)(__VA_ARGS__); \
	} while (0)

/* First line of all others, which no cancellation ends half done. */
#define FORWARD_INSIDE(...)           \
	FORWARD_WAITING(__VA_ARGS__); \
	CANCEL_OFF

/* The same, then what `function` makes of an identifier on a real device. */
#define FORWARD(id, function, name, ...)                                \
	do {                                                            \
		FORWARD_WAITING(name, __VA_ARGS__);                     \
		if (unlikely(forward_owns(cma_id_of(id))))              \
			return cma_result(function(__VA_ARGS__));       \
	} while (0);                                                    \
	CANCEL_OFF

/* The identifier is the system library's alone. */
static inline bool forward_owns(const struct cma_id *id)
{
	return id->shadow && !id->shadow_beside;
}

/* ---- opening (forward_open.c) ---- */

/* Whether a real device is listed and the system's library is open; opens it. */
bool forward_ready(void);
/* Without opening it. */
bool forward_opened(void);
/* Those of the system's library that are not ours, behind `count` of ours; the
 * system's own list is kept behind the end. Or NULL, out of memory. */
struct ibv_context **forward_devices(struct ibv_context **ours, unsigned count,
				     int *total);
void forward_devices_free(struct ibv_context **list);

/* ---- addresses (forward_addr.c) ---- */

/* As the public functions, but 0 or a negative errno; FORWARD_OURS: the address is
 * soft0's, and nothing was done that the caller has to do. */
int forward_bind(struct cma_id *id, const struct sockaddr *addr);
int forward_resolve(struct cma_id *id, struct sockaddr *src, struct sockaddr *dst,
		    int timeout_ms);
/* FORWARD_OURS: ours listens, too; then, if that fails, forward_drop(). */
int forward_listen(struct cma_id *id, int backlog);
/* Ends the shadow; waits until its events are acknowledged. 0 or a negative
 * errno, and then it is still there. */
int forward_drop(struct cma_id *id);
/* What the program may have changed, before a call; and what the call changed. */
void forward_push(struct cma_id *id);
void forward_pull(struct cma_id *id);

/* ---- channels and events (forward_event.c) ---- */

/* Makes pub.fd of a new channel; 0 or a negative errno. */
int forward_channel_init(struct cma_channel *ch);
/* A channel that can have events of both. */
static inline bool forward_channel_is_merged(const struct cma_channel *ch)
{
	return ch->pub.fd != ch->count_fd;
}
/* The system's channel of `ch`, made with the first use; 0 or negative errno. */
int forward_channel_open(struct cma_channel *ch, struct rdma_event_channel **out);
void forward_channel_destroy(struct cma_channel *ch);
/* The next event of the system's channel, translated; 0, and NULL if it was of no
 * use; -EAGAIN: none. It is counted as reported. */
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
/* XRC ones; a basic one needs nothing but the device. */
int forward_create_srq(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr);

#endif
