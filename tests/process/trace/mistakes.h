/* SPDX-License-Identifier: BSD-2-Clause */
/* Wrong calls, each with words that the trace's reason must have. */
#ifndef TESTS_MISTAKES_H
#define TESTS_MISTAKES_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>

/* Reads what the trace has written since the last time: its last line of `call` must
 * have `error` ("EINVAL"; "" for a call that went well) and all of the words. */
void because(const char *file, int line, const char *call, const char *error, ...)
	__attribute__((sentinel));
#define BECAUSE(call, error, ...) \
	because(__FILE__, __LINE__, call, error, __VA_ARGS__, (char *)NULL)
/* What the test needs and does not do wrong. */
#define NEED(condition)                                                        \
	do {                                                                   \
		if (!(condition))                                              \
			need_failed(__FILE__, __LINE__, #condition);           \
	} while (0)
__attribute__((noreturn)) void need_failed(const char *file, int line, const char *what);

extern struct ibv_context *context;
extern struct ibv_pd *pd;
extern struct ibv_cq *cq;
extern struct ibv_mr *mr;
extern char memory[1 << 16];

struct ibv_qp *qp_new(enum ibv_qp_type type);
void qp_to(struct ibv_qp *qp, enum ibv_qp_state state, uint32_t peer);
struct ibv_ah_attr own_address(void);

void mistakes_modify(void);
void mistakes_objects(void);
void mistakes_data(void);
void mistakes_connections(void);
void mistakes_not_offered(void);

#endif
