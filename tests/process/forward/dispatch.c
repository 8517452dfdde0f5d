/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who gets a call: every public function with a handle of stand0, every one with
 * a handle of soft0, and every private one.
 */
#include "forward.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port

const struct public_symbol public_symbols[] = {
#define X(name, version, owner) { #name, version, owner },
#include "public_symbols.h"
#undef X
};
const size_t public_symbol_count =
	sizeof(public_symbols) / sizeof(public_symbols[0]);

/* Arguments and results of these functions are integers and pointers. */
typedef long (*any_function)(long, long, long, long, long, long);
typedef long (*long_function)(long, long, long, long, long, long, long, long,
			      long);

/* All objects begin with their context. */
struct any_object {
	struct ibv_context *context;
	char rest[1024];
};

static void *own_symbol(const char *name, const char *version)
{
	void *symbol = dlvsym(RTLD_DEFAULT, name, version);
	Dl_info info;

	CHECK_FOR(name, symbol);
	CHECK_FOR(name, dladdr(symbol, &info) &&
				!strstr(info.dli_fname, "standin"));
	return symbol;
}

static void call_reaches(const struct public_symbol *s, long handle)
{
	any_function f = (any_function)(uintptr_t)own_symbol(s->name, s->version);
	struct standin_call *call = standin()->call();
	unsigned long before = call->count;
	long ret = f(handle, 2, 3, 4, 5, 6);

	CHECK_FOR(s->name, call->count == before + 1);
	CHECK_FOR(s->name, !strcmp(call->name, s->name));
	CHECK_FOR(s->name, call->args[0] == handle);
	/* That of a function without result is nothing. */
	if (strncmp(s->name, "ibv_ack_", 8) && strncmp(s->name, "ibv_unimport_", 13) &&
	    strcmp(s->name, "ibv_open_device") && strcmp(s->name, "ibv_close_device"))
		CHECK_FOR(s->name, (int)ret == (int)standin_answer(s->name));
}

/* More than a function may have is left as it was by chance; what it has is not
 * in the list, so the manual pages' counts stand here. */
static void arguments_arrive(struct ibv_context *context)
{
	struct any_object object = { .context = context };
	struct standin_call *call = standin()->call();
	struct ibv_pd *pd = (struct ibv_pd *)&object;
	uint64_t wide = UINT64_C(0x1122334455667788);

	ibv_reg_dmabuf_mr(pd, wide, 0x99, wide + 1, 7, 8);
	CHECK(call->args[0] == (long)pd && call->args[1] == (long)wide);
	CHECK(call->args[2] == 0x99 && call->args[3] == (long)wide + 1);
	CHECK((int)call->args[4] == 7 && (int)call->args[5] == 8);
	ibv_rereg_mr((struct ibv_mr *)&object, 1, pd, &wide, 4, -5);
	CHECK((int)call->args[1] == 1 && call->args[2] == (long)pd);
	CHECK(call->args[3] == (long)&wide && call->args[4] == 4);
	CHECK((int)call->args[5] == -5);
}

void public_functions_of_stand0_are_the_stand_ins(void)
{
	struct ibv_context *context = open_named("stand0");
	struct any_object object = { .context = context };
	struct ibv_async_event event = { .element.qp = (struct ibv_qp *)&object };
	int reached = 0;

	for (size_t i = 0; i < public_symbol_count; i++) {
		const struct public_symbol *s = &public_symbols[i];

		switch (s->owner) {
		case OWNER_device:
			call_reaches(s, (long)context->device);
			break;
		case OWNER_context:
			call_reaches(s, (long)context);
			break;
		case OWNER_object:
			call_reaches(s, (long)&object);
			break;
		case OWNER_event:
			for (int t = IBV_EVENT_CQ_ERR; t <= IBV_EVENT_WQ_FATAL; t++) {
				event.event_type = (enum ibv_event_type)t;
				/* These are a device's or a port's. */
				if (t == IBV_EVENT_GID_CHANGE ||
				    t == IBV_EVENT_CLIENT_REREGISTER ||
				    (t >= IBV_EVENT_DEVICE_FATAL &&
				     t <= IBV_EVENT_SM_CHANGE))
					ibv_ack_async_event(&event);
				else
					call_reaches(s, (long)&event);
			}
			break;
		default:
			continue;
		}
		reached++;
	}
	CHECK(reached > 50);
	arguments_arrive(context);
}

void an_old_library_lacks_functions(void)
{
	struct ibv_context *context = open_named("stand0");
	struct any_object object = { .context = context };

	errno = 0;
	CHECK(!ibv_reg_mr_iova2((struct ibv_pd *)&object, &object, 8, 0, 0));
	CHECK(errno == EOPNOTSUPP);
	CHECK(ibv_query_ece((struct ibv_qp *)&object, NULL) == EOPNOTSUPP);
	errno = 0;
	CHECK(ibv_get_pkey_index(context, 1, 0) == -1 && errno == EOPNOTSUPP);
	CHECK(!ibv_qp_to_qp_ex((struct ibv_qp *)&object));
	CHECK(ibv_query_qp_data_in_order((struct ibv_qp *)&object,
					 IBV_WR_RDMA_WRITE, 0) == 0);
	CHECK(_ibv_query_gid_table(context, (void *)&object, 1, 0, 1) ==
	      -EOPNOTSUPP);
	ibv_unimport_pd((struct ibv_pd *)&object);
	/* And what it has is used. */
	CHECK(ibv_dealloc_pd((struct ibv_pd *)&object) ==
	      (int)standin_answer("ibv_dealloc_pd"));
}

static void private_reaches(const char *name, const char *version)
{
	long_function f = (long_function)(uintptr_t)own_symbol(name, version);
	struct standin_call *call = standin()->call();
	long ret = f(11, 12, 13, 14, 15, 16, 17, 18, 19);

	CHECK_FOR(name, !strcmp(call->name, name));
	for (int i = 0; i < STANDIN_ARGS; i++)
		CHECK_FOR(name, call->args[i] == 11 + i);
	CHECK_FOR(name, ret == standin_answer(name));
}

/* The one private function that a program, not a provider, calls. */
static void gid_type_is_the_owners(struct ibv_context *stand)
{
	int (*query)(struct ibv_context *, uint8_t, unsigned int, int *) =
		own_symbol("ibv_query_gid_type", "IBVERBS_PRIVATE_34");
	struct ibv_context *soft = open_named("soft0");
	int type = 99;

	CHECK(query(stand, 1, 0, &type) ==
	      (int)standin_answer("ibv_query_gid_type"));
	CHECK(query(soft, 1, 0, &type) == 0);
	CHECK(type == 0 || type == 1);
	CHECK(ibv_close_device(soft) == 0);
}

void private_functions_are_the_stand_ins(void)
{
	static const char *const names[] = {
#define PRIVATE(name) #name,
#include "private_symbols.h"
#undef PRIVATE
	};
	struct ibv_context *context = open_named("stand0");
	void (*log)(void *, uint32_t, const char *, ...);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i], "ibv_query_gid_type") ||
		    !strcmp(names[i], "__verbs_log"))
			continue;
		private_reaches(names[i], "IBVERBS_PRIVATE_34");
		/* A name is one function in all nodes. */
		private_reaches(names[i], "IBVERBS_PRIVATE_22");
	}
	gid_type_is_the_owners(context);
	log = own_symbol("__verbs_log", "IBVERBS_PRIVATE_34");
	log(NULL, 0, "%s %d %.2f %.1f %ld", "text", 7, 0.25, 1.5, 1L << 40);
	CHECK(!strcmp(standin()->log, "text 7 0.25 1.5 1099511627776"));
}
