/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Importing: a further context by the descriptor of the first, and with it further
 * names of a protection domain, of a region and of device memory, in one process
 * (ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3)).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../threads_rest.h"
#include "pair.h"

static struct ibv_context *import_context(const struct ibv_context *from)
{
	int fd = dup(from->cmd_fd);
	struct ibv_context *ctx;

	expect(fd >= 0);
	ctx = ibv_import_device(fd);
	if (!ctx)
		fail("not imported: %s", strerror(errno));
	expect_eq(ctx->cmd_fd, fd);
	return ctx;
}

static void a_context_has_a_descriptor_of_its_own(struct pair *p)
{
	struct ibv_context *one, *two;
	struct stat st[2];
	int fd;

	side_open(&p->a, NULL);
	one = p->a.end->ctx;
	two = ibv_open_device(one->device);
	expect(two);
	expect_eq(fstat(one->cmd_fd, &st[0]), 0);
	expect_eq(fstat(two->cmd_fd, &st[1]), 0);
	expect(st[0].st_ino != st[1].st_ino || st[0].st_dev != st[1].st_dev);
	expect(fcntl(one->cmd_fd, F_GETFD) & FD_CLOEXEC);
	fd = two->cmd_fd;
	expect_eq(ibv_close_device(two), 0);
	expect_eq(fcntl(fd, F_GETFD), -1);
	expect_eq(errno, EBADF);
}

static void an_imported_context_is_one_of_the_same_device(struct pair *p)
{
	struct ibv_device_attr dev;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	int fd;

	side_open(&p->a, NULL);
	ctx = import_context(p->a.end->ctx);
	expect(ctx != p->a.end->ctx && ctx->device == p->a.end->ctx->device);
	expect_eq(ibv_query_device(ctx, &dev), 0);
	pd = ibv_alloc_pd(ctx);
	expect(pd && pd->context == ctx);
	expect_eq(ibv_dealloc_pd(pd), 0);
	fd = ctx->cmd_fd;
	expect_eq(ibv_close_device(ctx), 0);
	expect_eq(fcntl(fd, F_GETFD), -1);
}

static void what_is_no_context_is_not_imported(struct pair *p)
{
	int fd = open("/dev/null", O_RDWR);

	side_open(&p->a, NULL);
	errno = 0;
	expect(!ibv_import_device(-1));
	expect_eq(errno, EBADF);
	expect(!ibv_import_device(fd));
	expect_eq(errno, EINVAL);
	expect(!ibv_import_pd(p->a.end->ctx, UINT32_MAX));
	expect_eq(errno, EINVAL);
	expect(!ibv_import_mr(p->a.end->pd, UINT32_MAX));
	expect_eq(errno, EINVAL);
	expect(!ibv_import_dm(p->a.end->ctx, UINT32_MAX));
	expect_eq(errno, EINVAL);
	close(fd);
}

static void another_process_is_told_that_it_cannot(struct pair *p)
{
	int status;
	pid_t pid;

	side_open(&p->a, NULL);
	threads_rest();
	pid = fork();
	if (pid == 0) {
		struct ibv_context *ctx =
			ibv_import_device(dup(p->a.end->ctx->cmd_fd));

		_exit(ctx || errno != EOPNOTSUPP);
	}
	expect_eq(waitpid(pid, &status, 0), pid);
	expect_eq(status, 0);
}

static void a_domain_stays_while_it_is_imported(struct pair *p)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other;
	uint32_t handle;

	side_open(&p->a, NULL);
	ctx = import_context(p->a.end->ctx);
	pd = ibv_alloc_pd(p->a.end->ctx);
	handle = pd->handle;
	other = ibv_import_pd(ctx, handle);
	expect(other && other != pd && other->context == ctx);
	expect_eq(other->handle, pd->handle);
	expect_eq(ibv_dealloc_pd(pd), EBUSY);
	ibv_unimport_pd(other);
	other = ibv_import_pd(ctx, pd->handle);
	expect(other);
	expect_eq(ibv_dealloc_pd(other), 0);
	expect_eq(ibv_dealloc_pd(pd), 0);
	expect(!ibv_import_pd(ctx, handle));
	expect_eq(ibv_close_device(ctx), 0);
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { 4, 4, 1, 1, 0 },
	};

	return ibv_create_qp(pd, &init);
}

static void a_domain_that_is_in_use_may_be_unimported(struct pair *p)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	side_open(&p->a, NULL);
	ctx = import_context(p->a.end->ctx);
	pd = ibv_alloc_pd(p->a.end->ctx);
	other = ibv_import_pd(ctx, pd->handle);
	cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	qp = create_qp(other, cq);
	expect(qp);
	expect_eq(ibv_dealloc_pd(other), EBUSY);
	ibv_unimport_pd(other);
	expect_eq(ibv_dealloc_pd(pd), EBUSY);
	expect_eq(ibv_destroy_qp(qp), 0);
	expect_eq(ibv_dealloc_pd(pd), 0);
	expect_eq(ibv_destroy_cq(cq), 0);
	expect_eq(ibv_close_device(ctx), 0);
}

/* Side a's QP is of its own domain; here its buffer is used by the imported one. */
static void an_imported_region_has_the_keys_of_its_origin(struct pair *p)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct send_req r;
	struct end *e;

	p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, NULL);
	e = p->b.end;
	ctx = import_context(e->ctx);
	pd = ibv_import_pd(ctx, e->pd->handle);
	expect(pd);
	mr = ibv_import_mr(pd, e->mr[0]->handle);
	expect(mr && !mr->addr && mr->pd == pd && mr->context == ctx);
	expect_eq(mr->lkey, e->mr[0]->lkey);
	expect_eq(mr->rkey, e->mr[0]->rkey);
	expect_eq(mr->length, e->mr[0]->length);
	side_fill(&p->a, 0, 100, 1);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 0, 100);
	r.rkey = mr->rkey;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->b, 0, 100, 1);
	/* Of another domain it is not. */
	expect(!ibv_import_mr(e->other_pd, e->mr[0]->handle));
	expect_eq(errno, EINVAL);
	expect(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
	ibv_unimport_mr(mr);
	/* The region is what it was, and so after the other way of giving it back. */
	mr = ibv_import_mr(pd, e->mr[0]->handle);
	expect(mr && ibv_dereg_mr(mr) == 0);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	ibv_unimport_pd(pd);
	expect_eq(ibv_close_device(ctx), 0);
}

static void imported_device_memory_is_the_same_memory(struct pair *p)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	const unsigned access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	char text[64] = "written by one name, read by the other", back[64];
	struct ibv_context *ctx;
	struct ibv_dm *dm, *other;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	side_open(&p->a, NULL);
	ctx = import_context(p->a.end->ctx);
	dm = ibv_alloc_dm(p->a.end->ctx, &attr);
	other = ibv_import_dm(ctx, dm->handle);
	expect(other && other != dm && other->context == ctx);
	expect_eq(ibv_memcpy_to_dm(dm, 0, text, 64), 0);
	expect_eq(ibv_memcpy_from_dm(back, other, 0, 64), 0);
	expect(!memcmp(text, back, 64));
	expect_eq(ibv_memcpy_to_dm(other, 64, text, 4), EINVAL);
	pd = ibv_alloc_pd(ctx);
	mr = ibv_reg_dm_mr(pd, other, 0, 64, access);
	expect(mr);
	ibv_unimport_dm(other);
	expect_eq(ibv_free_dm(dm), EBUSY);
	expect_eq(ibv_dereg_mr(mr), 0);
	other = ibv_import_dm(ctx, dm->handle);
	expect_eq(ibv_free_dm(dm), EBUSY);
	expect_eq(ibv_free_dm(other), 0);
	expect_eq(ibv_free_dm(dm), 0);
	expect_eq(ibv_dealloc_pd(pd), 0);
	expect_eq(ibv_close_device(ctx), 0);
}

static const struct test_case cases[] = {
	RULE_IN(ONLY_ONE_PROCESS, "ibv_import_device(3)",
		a_context_has_a_descriptor_of_its_own),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_import_device(3)",
		an_imported_context_is_one_of_the_same_device),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_import_device(3)",
		what_is_no_context_is_not_imported),
	CASE_IN(ONLY_ONE_PROCESS, another_process_is_told_that_it_cannot),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_import_pd(3)",
		a_domain_stays_while_it_is_imported),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_import_pd(3)",
		a_domain_that_is_in_use_may_be_unimported),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_import_mr(3)",
		an_imported_region_has_the_keys_of_its_origin),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_import_dm(3)",
		imported_device_memory_is_the_same_memory),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
