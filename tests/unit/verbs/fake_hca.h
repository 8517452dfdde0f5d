/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fake adapter that returns what the test sets, for tests of the verbs room alone (return
 * conventions, sizes, arguments). It keeps no objects.
 */
#ifndef FAKE_HCA_H
#define FAKE_HCA_H

#include <infiniband/verbs.h>
#include <stddef.h>

extern struct fake_hca {
	int answer;              /* result of every function; 0: success */
	unsigned int calls;      /* number of functions called so far */

	struct ibv_device device;
	struct ibv_context context;
	struct ibv_pd pd;
	struct ibv_mr mr;
	struct ibv_comp_channel channel;
	struct ibv_cq cq;
	struct ibv_qp qp;
	struct ibv_srq srq;
	struct ibv_ah ah;

	size_t port_attr_size;   /* last size that hca_port_query() got */
	uint64_t mr_iova;        /* last registration */
	unsigned int mr_access;
	int rereg_access;
	ssize_t gid_count;       /* entries of the GID table, all ROCE v2 */
	struct ibv_cq_init_attr_ex cq_attr;
	struct ibv_qp_init_attr_ex qp_attr;
} fake_hca;

#endif
