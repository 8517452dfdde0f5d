/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the stand-in library does besides recording: see standin.h. It calls
 * public functions through the loader as the system's library does, so that they
 * come out at the library under test.
 *
 *   STANDIN_SYSFS       folder that stand0 names as its own in sysfs
 *   STANDIN_LISTS       its constructor lists devices
 *   STANDIN_PORT        number of the state that its port has when asked
 *   STANDIN_NODE        number of its private node (at compile time)
 */
#include "standin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STR_(x) #x
#define STR(x) STR_(x)
#define NODE "IBVERBS_PRIVATE_" STR(STANDIN_NODE)
#define EXPORT __attribute__((visibility("default")))

EXPORT extern struct standin_state standin_state;

static struct ibv_device stand0 = {
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.name = "stand0",
	.dev_name = "uverbs0",
};
static struct verbs_context context;
static _Thread_local struct standin_call call;

static struct standin_call *this_call(void)
{
	return &call;
}

static bool allow_destroy;
__asm__(".symver standin_allow, verbs_allow_disassociate_destroy@@" NODE);
extern bool standin_allow __attribute__((alias("allow_destroy")));

struct standin_state standin_state = {
	.call = this_call,
	.allow_destroy = &allow_destroy,
};

long standin_record(const char *name, long a1, long a2, long a3, long a4,
		    long a5, long a6, long a7, long a8, long a9)
{
	const long args[] = { a1, a2, a3, a4, a5, a6, a7, a8, a9 };

	call.name = name;
	memcpy(call.args, args, sizeof(args));
	call.count++;
	atomic_fetch_add(&standin_state.calls, 1);
	if (!strcmp(name, "ibv_fork_init"))
		atomic_fetch_add(&standin_state.forks, 1);
	return standin_answer(name);
}

#define RECORD(name, a1, a2) \
	standin_record(name, (long)(a1), (long)(a2), 0, 0, 0, 0, 0, 0, 0)

static int op_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	RECORD("poll_cq", cq, count);
	return 0;
}

static int op_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			struct ibv_send_wr **bad)
{
	RECORD("post_send", qp, wr);
	return 0;
}

static int op_query_port(struct ibv_context *ctx, uint8_t port,
			 struct ibv_port_attr *attr, size_t size)
{
	RECORD("query_port", ctx, port);
	memset(attr, 0, size);
	attr->state = getenv("STANDIN_PORT") ?
			      (enum ibv_port_state)atoi(getenv("STANDIN_PORT")) :
			      IBV_PORT_ARMED;
	return 0;
}

static void init(void)
{
	const char *sysfs = getenv("STANDIN_SYSFS");

	if (sysfs)
		snprintf(stand0.ibdev_path, sizeof(stand0.ibdev_path), "%s",
			 sysfs);
	context.sz = sizeof(context);
	context.query_port = op_query_port;
	context.context.device = &stand0;
	context.context.cmd_fd = -1;
	context.context.async_fd = -1;
	context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	context.context.num_comp_vectors = 1;
	context.context.ops.poll_cq = op_poll_cq;
	context.context.ops.post_send = op_post_send;
}

struct ibv_device **standin_list(int *count);
struct ibv_device **standin_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	RECORD("ibv_get_device_list", count, 0);
	if (getenv("RDMAV_ALLOW_DISASSOC_DESTROY"))
		allow_destroy = true;
	list[0] = &stand0;
	*count = 1;
	atomic_fetch_add(&standin_state.lists, 1);
	return list;
}
__asm__(".symver standin_list, ibv_get_device_list@@IBVERBS_1.1");

void standin_free(struct ibv_device **list);
void standin_free(struct ibv_device **list)
{
	RECORD("ibv_free_device_list", list, 0);
	/* A list of somebody else's would be freed here. */
	if (list[0] != &stand0 || list[1])
		abort();
	atomic_fetch_sub(&standin_state.lists, 1);
	free(list);
}
__asm__(".symver standin_free, ibv_free_device_list@@IBVERBS_1.1");

struct ibv_context *standin_open(struct ibv_device *device);
struct ibv_context *standin_open(struct ibv_device *device)
{
	RECORD("ibv_open_device", device, 0);
	return device == &stand0 ? &context.context : NULL;
}
__asm__(".symver standin_open, ibv_open_device@@IBVERBS_1.1");

int standin_close(struct ibv_context *ctx);
int standin_close(struct ibv_context *ctx)
{
	RECORD("ibv_close_device", ctx, 0);
	return ctx == &context.context ? 0 : -1;
}
__asm__(".symver standin_close, ibv_close_device@@IBVERBS_1.1");

const char *standin_name(struct ibv_device *device);
const char *standin_name(struct ibv_device *device)
{
	return device->name;
}
__asm__(".symver standin_name, ibv_get_device_name@@IBVERBS_1.1");

__attribute__((format(printf, 3, 4))) void
standin_log(void *ctx, uint32_t level, const char *format, ...);
void standin_log(void *ctx, uint32_t level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(standin_state.log, sizeof(standin_state.log), format, args);
	va_end(args);
}
__asm__(".symver standin_log, __verbs_log@@" NODE);

void standin_register(const void *driver);
void standin_register(const void *driver)
{
	int i = atomic_fetch_add(&standin_state.drivers, 1);

	if (i < STANDIN_DRIVERS)
		standin_state.driver[i] = driver;
}
__asm__(".symver standin_register, verbs_register_driver_" STR(STANDIN_NODE) "@@" NODE);

/* A library that looks around while it is being loaded. */
__attribute__((constructor)) static void load(void)
{
	int count = 0;
	struct ibv_device **list;

	init();
	if (!getenv("STANDIN_LISTS"))
		return;
	list = ibv_get_device_list(&count);
	standin_state.listed_in_constructor = count;
	if (list)
		ibv_free_device_list(list);
}
