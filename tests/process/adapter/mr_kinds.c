/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kinds of memory regions and their ranges: zero based, with an address of their
 * own, empty, null; what registration refuses; re-registration (the manual pages of
 * ibv_reg_mr, ibv_rereg_mr and ibv_alloc_null_mr).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assault.h"
#include "window.h"

enum { TO = 1 << 20, BYTES = 4 << 20 };

static const struct side_options big = { .bytes = BYTES };
static const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
/* In a slot, in the data area, pulled, in several parts. */
static const uint32_t lengths[] = { 50, 5000, 100000, 1000000 };

static void start(struct pair *p)
{
	p->conn.access_a = p->conn.access_b = window_rights();
	pair_start(p, &big);
}

static void reconnect(struct pair *p)
{
	pair_reset_qp(p, 0);
	pair_connect_qp(p, 0);
	while (side_async(&p->b, 0) >= 0)
		;
}

struct own_address {
	uint64_t offset, length, iova;
	int access;
	uint32_t key;
};

/* For the end of the side. */
static void keep(struct end *e, struct ibv_mr *mr)
{
	for (int i = 0; i < SIDE_MRS; i++) {
		if (e->mr[i])
			continue;
		e->mr[i] = mr;
		break;
	}
}

/* A region with an address of its own; 0 or the errno. */
static int do_reg_iova(struct end *e, void *arg)
{
	struct own_address *o = arg;
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr_iova(e->pd, e->buffer + o->offset, o->length, o->iova,
			     o->access);
	if (!mr)
		return errno;
	keep(e, mr);
	o->key = mr->lkey;
	return mr->addr == e->buffer + o->offset ? 0 : -1;
}

/* Uses the key of memory at AT of side b, whose first byte has address `iova`, in
 * every way that there is. */
static void used_from(struct pair *p, uint32_t key, uint64_t iova)
{
	struct send_req r;
	struct recv_req rr = { .wr_id = 2, .num_sge = 1,
			       .sge = { { iova + 10, 1000, key } } };

	side_fill(&p->a, 0, 1000, 1);
	expect_eq(side_post_recv(&p->b, 0, &rr, 1).ret, 0);
	side_send(&p->a, 1, 0, 1000);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 2);
	side_check(&p->b, AT + 10, 1000, 1);

	side_fill(&p->b, AT + 20, 500, 2);
	r = send_req(&p->b, IBV_WR_SEND, 3, 0, 500);
	r.sge[0] = (struct ibv_sge){ iova + 20, 500, key };
	side_recv(&p->a, 4, 0, 500);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, SEND_CQ, 3);
	side_wait_ok(&p->a, RECV_CQ, 4);
	side_check(&p->a, 0, 500, 2);

	side_fill(&p->a, 0, 700, 3);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 5, 0, 0, 700);
	r.rkey = key;
	r.remote_addr = iova + 30;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 5);
	side_check(&p->b, AT + 30, 700, 3);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_READ, 0, key, iova),
		      IBV_WC_SUCCESS);
	expect_status(access_with(&p->a, &p->b, IBV_WR_ATOMIC_FETCH_AND_ADD, 0,
				  key, iova + 8), IBV_WC_SUCCESS);
}

static void a_zero_based_region_is_addressed_by_offsets(struct pair *p)
{
	struct region mr;

	start(p);
	mr = side_reg(&p->b, AT, 4096, all | IBV_ACCESS_ZERO_BASED, 0);
	expect(mr.index >= 0);
	expect_eq(mr.addr, p->b.addr + AT);
	used_from(p, mr.lkey, 0);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_WRITE, 0, mr.rkey,
				  4096 - 63), IBV_WC_REM_ACCESS_ERR);
	reconnect(p);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_WRITE, 0, mr.rkey,
				  p->b.addr + AT), IBV_WC_REM_ACCESS_ERR);
}

static void a_region_may_have_any_address_of_its_own(struct pair *p)
{
	static const uint64_t iovas[] = { 0, 4096, UINT64_C(1) << 40,
					  UINT64_MAX - 8191 };

	start(p);
	for (unsigned i = 0; i < 4; i++) {
		struct own_address o = { AT, 4096, iovas[i], all, 0 };

		expect_eq(side_run(&p->b, do_reg_iova, &o, sizeof(o)), 0);
		used_from(p, o.key, iovas[i]);
		expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_WRITE, 0,
					  o.key, iovas[i] - 1),
			      IBV_WC_REM_ACCESS_ERR);
		reconnect(p);
		expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_WRITE, 0,
					  o.key, iovas[i] + 4096 - 63),
			      IBV_WC_REM_ACCESS_ERR);
		reconnect(p);
	}
	struct own_address over = { AT, 4096, UINT64_MAX - 4000, all, 0 };

	expect_eq(side_run(&p->b, do_reg_iova, &over, sizeof(over)), EINVAL);
}

static void permissions_to_be_lax_are_taken_and_not_needed(struct pair *p)
{
	struct region mr;

	start(p);
	mr = side_reg(&p->b, AT, 4096, all | IBV_ACCESS_RELAXED_ORDERING, 0);
	expect(mr.index >= 0);
	used_from(p, mr.lkey, p->b.addr + AT);
	mr = side_reg(&p->b, AT, 4096, all | IBV_ACCESS_OPTIONAL_RANGE, 0);
	expect(mr.index >= 0);
	used_from(p, mr.lkey, p->b.addr + AT);
}

static void an_empty_region_gives_nothing(struct pair *p)
{
	struct send_req r;
	struct region mr;

	start(p);
	mr = side_reg(&p->b, AT + 1, 0, all, 0);
	expect(mr.index >= 0);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_WRITE, 0, mr.rkey,
				  p->b.addr + AT + 1), IBV_WC_REM_ACCESS_ERR);
	reconnect(p);
	r = send_req(&p->b, IBV_WR_SEND, 1, AT + 1, 1);
	r.sge[0].lkey = mr.lkey;
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	reconnect(p);
	/* Of nothing it can give all. */
	r.sge[0].length = 0;
	side_recv(&p->a, 2, 0, 10);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, SEND_CQ, 1);
	expect_eq(side_wait_ok(&p->a, RECV_CQ, 2).byte_len, 0);
}

static void registration_looks_at_the_memory(struct pair *p)
{
	struct ibv_pd *pd;
	uint8_t *at;

	side_open(&p->a, &big);
	pd = p->a.end->pd;
	at = p->a.end->buffer;
#define REFUSED(error, addr, length, access)                           \
	do {                                                           \
		errno = 0;                                             \
		expect(!ibv_reg_mr(pd, (void *)(uintptr_t)(addr),      \
				   length, access));                   \
		expect_eq(errno, error);                               \
	} while (0)
	/* A page in the middle is missing, is not to be written, or to be read. */
	munmap(at + 3 * 4096, 4096);
	REFUSED(EFAULT, at, 8 * 4096, IBV_ACCESS_LOCAL_WRITE);
	REFUSED(EFAULT, at, 8 * 4096, 0);
	expect(mmap(at + 3 * 4096, 4096, PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	       at + 3 * 4096);
	REFUSED(EFAULT, at, 8 * 4096, IBV_ACCESS_LOCAL_WRITE);
	expect_eq(ibv_dereg_mr(ibv_reg_mr(pd, at, 8 * 4096, 0)), 0);
	expect_eq(ibv_dereg_mr(ibv_reg_mr(pd, at, 8 * 4096,
					  IBV_ACCESS_REMOTE_READ)), 0);
	mprotect(at + 3 * 4096, 4096, PROT_NONE);
	REFUSED(EFAULT, at, 8 * 4096, 0);
	mprotect(at + 3 * 4096, 4096, PROT_READ | PROT_WRITE);
	expect_eq(ibv_dereg_mr(ibv_reg_mr(pd, at, 8 * 4096, all)), 0);
	REFUSED(EFAULT, NULL, 4096, 0);
	REFUSED(EINVAL, at, SIZE_MAX, 0);
	REFUSED(EINVAL, UINT64_MAX - 4, 5, 0);
	REFUSED(EINVAL, at, 4096, IBV_ACCESS_REMOTE_WRITE);
	REFUSED(EINVAL, at, 4096, IBV_ACCESS_REMOTE_ATOMIC);
#undef REFUSED
}

/* Linux counts the pages from the first byte to behind the last one. */
static void a_region_has_at_least_one_page(struct pair *p)
{
	static const size_t lengths_of[] = { 0, 1, 4095, 4096, 4097 };
	static const unsigned offsets[] = { 0, 1, 4095 }, kinds[] = { 0, IBV_ACCESS_ON_DEMAND,
		IBV_ACCESS_ZERO_BASED, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED };

	side_open(&p->a, &big);
	for (unsigned i = 0; i < 5 * 3 * 4; i++) {
		size_t length = lengths_of[i % 5];
		unsigned offset = offsets[i / 5 % 3];
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr_iova2(p->a.end->pd, p->a.end->buffer + offset, length, 0x1000,
				      (unsigned)all | kinds[i / 15]);
		if (!length && !offset) {
			expect(!mr);
			expect_eq(errno, EINVAL);
			continue;
		}
		expect(mr);
		expect_eq(mr->length, length);
		expect_eq(ibv_dereg_mr(mr), 0);
	}
	/* Nor does a region of no memory at address 0 have one. */
	expect(!ibv_reg_mr(p->a.end->pd, NULL, 0, 0));
}

/* Each bit of the access rights, with all that it needs. */
static void each_right_is_known_or_refused(struct pair *p)
{
	struct ibv_mr *mr, *old;

	side_open(&p->a, &big);
	old = ibv_reg_mr(p->a.end->pd, p->a.end->buffer, 4096, 0);
	expect(old);
	for (unsigned bit = 0; bit < 32; bit++) {
		unsigned access = 1u << bit | IBV_ACCESS_LOCAL_WRITE;
		bool known = bit < 8 || access & IBV_ACCESS_OPTIONAL_RANGE;
		/* FLUSH, which is not offered, or nothing that is defined. */
		int error = bit == 8 || bit == 9 ? EOPNOTSUPP : EINVAL;

		if (access & IBV_ACCESS_HUGETLB) /* a matter of the memory */
			continue;
		errno = 0;
		mr = ibv_reg_mr_iova2(p->a.end->pd, p->a.end->buffer, 4096, 0, access);
		expect(known ? !!mr : !mr && errno == error);
		expect(!mr || !ibv_dereg_mr(mr));
		errno = 0;
		expect_eq(ibv_rereg_mr(old, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				       (int)access), known ? 0 : IBV_REREG_MR_ERR_CMD);
		expect(known || errno == error);
	}
	expect_eq(ibv_dereg_mr(old), 0);
}

/* ---- by a file ---- */

static int memory_file(uint64_t bytes, int seals)
{
	int fd = memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	expect(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	expect(!seals || !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

/* Puts the second page of a file in place of the side's memory at AT, and registers that page;
 * 0 or the errno. */
static int do_reg_file(struct end *e, void *arg)
{
	int fd = memory_file(3 * 4096, F_SEAL_SHRINK | F_SEAL_GROW);
	struct own_address *o = arg;
	struct ibv_mr *mr;

	if (mmap(e->buffer + AT, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 4096) ==
	    MAP_FAILED)
		return -1;
	errno = 0;
	mr = ibv_reg_dmabuf_mr(e->pd, o->offset, o->length, o->iova, fd, o->access);
	close(fd);
	if (!mr)
		return errno;
	keep(e, mr);
	o->key = mr->lkey;
	return mr->length == o->length && mr->pd == e->pd ? 0 : -2;
}

static void a_region_may_be_registered_by_its_file(struct pair *p)
{
	struct own_address o = { 4096, 4096, UINT64_C(1) << 40, all, 0 };

	start(p);
	expect_eq(side_run(&p->b, do_reg_file, &o, sizeof(o)), 0);
	/* The last ones when the peer has mapped it, or had the time for that. */
	for (int i = 0; i < 20; i++)
		used_from(p, o.key, o.iova);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_WRITE, 0, o.key, o.iova - 1),
		      IBV_WC_REM_ACCESS_ERR);
	reconnect(p);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_WRITE, 0, o.key,
				  o.iova + 4096 - 63), IBV_WC_REM_ACCESS_ERR);
}

static void registration_by_a_file_looks_at_the_file(struct pair *p)
{
	int fd, ro, sealed, pipes[2];
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	char path[64];

	side_open(&p->a, &big);
	pd = p->a.end->pd;
	fd = memory_file(3 * 4096, F_SEAL_SHRINK);
	sealed = memory_file(4096, F_SEAL_SHRINK | F_SEAL_WRITE);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	expect(ro >= 0 && !pipe(pipes));
#define REFUSED(error, offset, length, iova, fd, access)                               \
	do {                                                                           \
		errno = 0;                                                             \
		expect(!ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, access));      \
		expect_eq(errno, error);                                               \
	} while (0)
	REFUSED(EBADF, 0, 4096, 0, -1, 0);
	REFUSED(EOPNOTSUPP, 0, 4096, 0, pipes[0], 0);
	REFUSED(EINVAL, 0, 0, 0, fd, 0);
	REFUSED(EINVAL, 0, 3 * 4096 + 1, 0, fd, 0);
	REFUSED(EINVAL, 2 * 4096, 4097, 0, fd, 0);
	REFUSED(EINVAL, UINT64_MAX, 2, 0, fd, 0);
	REFUSED(EINVAL, 0, 4096, UINT64_MAX - 4094, fd, 0);
	REFUSED(EINVAL, 0, 4096, 0, fd, IBV_ACCESS_REMOTE_WRITE);
	REFUSED(EOPNOTSUPP, 0, 4096, 0, fd, IBV_ACCESS_ON_DEMAND);
	REFUSED(EACCES, 0, 4096, 0, ro, IBV_ACCESS_LOCAL_WRITE);
	REFUSED(EACCES, 0, 4096, 0, sealed, IBV_ACCESS_LOCAL_WRITE);
	expect_eq(ibv_dereg_mr(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, ro, IBV_ACCESS_REMOTE_READ)), 0);
	expect_eq(ibv_dereg_mr(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, sealed, 0)), 0);
	/* A file that may shrink. */
	expect(!ftruncate(fd, 4 * 4096));
	ro = (close(ro), memory_file(4096, 0));
	REFUSED(EOPNOTSUPP, 0, 4096, 0, ro, 0);
	/* It stays what it is. */
	mr = ibv_reg_dmabuf_mr(pd, 1, 3 * 4096, 5, fd, IBV_ACCESS_LOCAL_WRITE);
	expect(mr);
	errno = 0;
	expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		  IBV_REREG_MR_ERR_INPUT);
	expect_eq(errno, EINVAL);
	expect_eq(ibv_dereg_mr(mr), 0);
#undef REFUSED
	close(fd);
	close(ro);
	close(sealed);
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- null ---- */

static int do_null(struct end *e, void *arg)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(e->pd);

	if (!mr)
		return -1;
	keep(e, mr);
	*(uint32_t *)arg = mr->lkey;
	return mr->length == SIZE_MAX && mr->pd == e->pd ? 0 : -2;
}

static uint32_t null_key(struct side *s)
{
	uint32_t key = 0;

	expect_eq(side_run(s, do_null, &key, sizeof(key)), 0);
	expect(key);
	return key;
}

static void all_zero(struct side *s, uint64_t offset, uint32_t length)
{
	static uint8_t bytes[NOTE_BYTES];

	for (uint32_t at = 0; at < length; at += NOTE_BYTES) {
		uint32_t n = length - at < NOTE_BYTES ? length - at : NOTE_BYTES;

		if (at > 2 * NOTE_BYTES && at + 3 * NOTE_BYTES < length)
			continue; /* the middle of a long one */
		side_peek(s, offset + at, bytes, n);
		for (uint32_t i = 0; i < n; i++)
			expect_eq(bytes[i], 0);
	}
}

static void the_null_region_is_all_zeros(struct pair *p)
{
	uint32_t key;

	start(p);
	key = null_key(&p->a);
	for (unsigned i = 0; i < 4; i++) {
		struct send_req r = send_req(&p->a, IBV_WR_SEND, 1, 0,
					     lengths[i]);

		/* Whatever the address. */
		r.sge[0] = (struct ibv_sge){ i * UINT64_C(0x123456789),
					     lengths[i], key };
		side_set(&p->b, TO, lengths[i], 0xee);
		side_recv(&p->b, 2, TO, lengths[i]);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 1);
		expect_eq(side_wait_ok(&p->b, RECV_CQ, 2).byte_len, lengths[i]);
		all_zero(&p->b, TO, lengths[i]);
		r.opcode = IBV_WR_RDMA_WRITE;
		r.rkey = p->b.rkey;
		r.remote_addr = p->b.addr + TO;
		side_set(&p->b, TO, lengths[i], 0xee);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 1);
		/* One behind it tells that it has arrived. */
		expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_READ, 0, p->b.rkey,
					  p->b.addr), IBV_WC_SUCCESS);
		all_zero(&p->b, TO, lengths[i]);
	}
}

static void what_goes_to_the_null_region_is_gone(struct pair *p)
{
	uint32_t key;

	start(p);
	key = null_key(&p->a);
	for (unsigned i = 0; i < 4; i++) {
		struct recv_req rr = { .wr_id = 2, .num_sge = 3 };
		struct send_req r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 1,
					     0, TO, lengths[i]);

		/* A piece of it in the middle of a receive. */
		side_fill(&p->b, TO, lengths[i], i);
		side_set(&p->a, 0, 4096, 0xee);
		rr.sge[0] = side_sge(&p->a, 0, 20);
		rr.sge[1] = (struct ibv_sge){ 5, lengths[i] - 40, key };
		rr.sge[2] = side_sge(&p->a, 20, 20);
		expect_eq(side_post_recv(&p->a, 0, &rr, 1).ret, 0);
		side_send(&p->b, 3, TO, lengths[i]);
		side_wait_ok(&p->b, SEND_CQ, 3);
		expect_eq(side_wait_ok(&p->a, RECV_CQ, 2).byte_len, lengths[i]);
		side_check(&p->a, 0, 20, i);
		/* And of what a READ brings. */
		r.sge[0] = rr.sge[1];
		r.sge[0].length = lengths[i];
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 1);
	}
	/* And what an atomic operation found. */
	struct region words = side_reg(&p->b, BYTES - 4096, 4096, all, 0);
	struct send_req add = rdma_req(&p->a, &p->b, IBV_WR_ATOMIC_FETCH_AND_ADD,
				       1, 0, BYTES - 4096, 8);

	add.sge[0] = (struct ibv_sge){ 0, 8, key };
	add.rkey = words.rkey;
	expect_eq(side_post_send(&p->a, 0, &add, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	/* Whatever was written there, zeros are read. */
	side_set(&p->b, TO, 5000, 0xee);
	side_recv(&p->b, 2, TO, 5000);
	struct send_req r = send_req(&p->a, IBV_WR_SEND, 1, 0, 5000);

	r.sge[0] = (struct ibv_sge){ 5, 5000, key };
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 2);
	all_zero(&p->b, TO, 5000);
}

static void the_null_region_is_for_local_use_in_its_domain(struct pair *p)
{
	struct ibv_mr *null;
	struct ibv_sge sge;
	struct send_req r;
	uint32_t key;

	start(p);
	key = null_key(&p->b);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_WRITE, 0, key, 0),
		      IBV_WC_REM_ACCESS_ERR);
	reconnect(p);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_READ, 0, key,
				  p->b.addr), IBV_WC_REM_ACCESS_ERR);
	reconnect(p);
	null = ibv_alloc_null_mr(p->a.end->other_pd);
	expect(null);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 10);
	r.sge[0].lkey = null->lkey;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	/* It stays what it is. */
	errno = 0;
	expect_eq(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       IBV_ACCESS_LOCAL_WRITE), IBV_REREG_MR_ERR_INPUT);
	expect_eq(errno, EINVAL);
	sge = (struct ibv_sge){ 0, 4096, null->lkey };
	expect_eq(ibv_advise_mr(p->a.end->other_pd,
				IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
		  EINVAL);
	expect_eq(ibv_dereg_mr(null), 0);
}

static void no_window_is_bound_to_the_null_region(struct pair *p)
{
	struct end *e = p->a.end;
	struct ibv_mw_bind bind = { .wr_id = 1 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_mw *one, *two;
	struct ibv_mr *null;

	need_no_rnic("it has no windows");
	start(p);
	null = ibv_alloc_null_mr(e->pd);
	one = ibv_alloc_mw(e->pd, IBV_MW_TYPE_1);
	two = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2);
	bind.bind_info = (struct ibv_mw_bind_info){
		.mr = null, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_READ,
	};
	expect_eq(ibv_bind_mw(e->qp[0], one, &bind), EINVAL);
	wr.bind_mw.mw = two;
	wr.bind_mw.bind_info = bind.bind_info;
	expect_eq(ibv_post_send(e->qp[0], &wr, &bad), 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_MW_BIND_ERR);
	expect_eq(ibv_dealloc_mw(one), 0);
	expect_eq(ibv_dealloc_mw(two), 0);
	expect_eq(ibv_dereg_mr(null), 0);
}

/* ---- re-registration ---- */

enum {
	TRANSLATION = IBV_REREG_MR_CHANGE_TRANSLATION,
	INPUT = IBV_REREG_MR_ERR_INPUT,
	COMMAND = IBV_REREG_MR_ERR_CMD,
	PD = IBV_REREG_MR_CHANGE_PD,
	ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
};

/* Every combination: exactly what was named changes. */
static void every_combination_changes_what_it_names(struct pair *p)
{
	start(p);
	for (int flags = 1; flags < 8; flags++) {
		bool moved = flags & TRANSLATION, domain = flags & PD,
		     writable = flags & ACCESS;
		struct region mr = side_reg(&p->b, AT, 4096,
					    IBV_ACCESS_LOCAL_WRITE |
						    IBV_ACCESS_REMOTE_READ, 0);
		struct region now = side_rereg(&p->b, mr.index, flags, 1, TO, 64,
					       writable ? IBV_ACCESS_LOCAL_WRITE |
						IBV_ACCESS_REMOTE_WRITE : 0);
		uint64_t at = p->b.addr + (moved ? TO : AT);

		expect_eq(now.error, 0);
		expect_eq(now.addr, at);
		/* Only of other memory the key is another. */
		expect_eq(now.rkey == mr.rkey, !moved);
		expect_eq(now.lkey == mr.lkey, !moved);
		for (int write = 0; write < 2; write++) {
			struct ibv_wc wc = access_with(
				&p->a, &p->b,
				write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0,
				now.rkey, at);

			if (!domain && write == writable) {
				expect_status(wc, IBV_WC_SUCCESS);
				continue;
			}
			expect_status(wc, IBV_WC_REM_ACCESS_ERR);
			reconnect(p);
		}
		if (!domain && moved) {
			expect_status(access_with(&p->a, &p->b,
				writable ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
				0, now.rkey, at + 1), IBV_WC_REM_ACCESS_ERR);
			reconnect(p);
		}
		/* The old one is no key any more. */
		if (moved) {
			expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_READ,
						  0, mr.rkey, p->b.addr + AT),
				      IBV_WC_REM_ACCESS_ERR);
			reconnect(p);
		}
		expect_eq(side_dereg(&p->b, mr.index), 0);
	}
}

static void a_refused_re_registration_leaves_the_old_region(struct pair *p)
{
	static const struct {
		int flags;
		bool pd;
		uint64_t offset, length;
		bool no_addr;
		int access, error;
		/* The library refuses the input, or the device the command. */
		int ret;
	} bad[] = {
		{ 0, true, AT, 64, false, 0, EINVAL, COMMAND },
		{ 8, true, AT, 64, false, 0, EINVAL, INPUT },
		{ TRANSLATION | 8, true, AT, 64, false, 0, EINVAL, INPUT },
		{ TRANSLATION, true, AT, 0, false, 0, EINVAL, INPUT },
		{ TRANSLATION, true, AT, 64, true, 0, EINVAL, INPUT },
		{ TRANSLATION, true, AT, SIZE_MAX, false, 0, EINVAL, COMMAND },
		{ TRANSLATION, true, AT, 64, false, IBV_ACCESS_LOCAL_WRITE,
		  EINVAL, INPUT },
		{ PD, false, 0, 0, false, 0, EINVAL, INPUT },
		{ PD, true, 0, 0, false, IBV_ACCESS_LOCAL_WRITE, EINVAL, INPUT },
		{ ACCESS, true, 0, 0, false, IBV_ACCESS_REMOTE_WRITE, EINVAL, COMMAND },
		{ ACCESS, true, 0, 0, false, IBV_ACCESS_REMOTE_ATOMIC, EINVAL, COMMAND },
		{ TRANSLATION | ACCESS, true, AT, 64, false, IBV_ACCESS_REMOTE_WRITE, EINVAL,
		  COMMAND },
		{ TRANSLATION, true, BYTES, UINT64_C(1) << 44, false, 0,
		  EFAULT, COMMAND },
	};
	struct region mr;
	struct ibv_mr *m;

	start(p);
	mr = side_reg(&p->a, AT, 4096, all, 0);
	m = p->a.end->mr[mr.index];
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		errno = 0;
		expect_eq(ibv_rereg_mr(m, bad[i].flags,
				       bad[i].pd ? p->a.end->pd : NULL,
				       bad[i].no_addr ? NULL :
					       p->a.end->buffer + bad[i].offset,
				       bad[i].length, bad[i].access),
			  bad[i].ret);
		expect_eq(errno, bad[i].error);
		expect_eq(m->rkey, mr.rkey);
		expect(m->pd == p->a.end->pd);
		expect_eq(m->length, 4096);
	}
	expect_status(access_with(&p->b, &p->a, IBV_WR_RDMA_WRITE, 0, mr.rkey,
				  p->a.addr + AT + 4096 - 64), IBV_WC_SUCCESS);
}

static void a_region_changes_between_its_kinds(struct pair *p)
{
	struct region mr, now;

	start(p);
	mr = side_reg(&p->b, AT, 4096, all, 0);
	now = side_rereg(&p->b, mr.index, ACCESS, 0, 0, 0,
			 all | IBV_ACCESS_ZERO_BASED);
	expect_eq(now.error, 0);
	used_from(p, now.lkey, 0);
	now = side_rereg(&p->b, mr.index, ACCESS, 0, 0, 0,
			 all | IBV_ACCESS_ON_DEMAND);
	expect_eq(now.error, 0);
	used_from(p, now.lkey, p->b.addr + AT);
	now = side_rereg(&p->b, mr.index, TRANSLATION | ACCESS, 0, AT, 4096, all);
	expect_eq(now.error, 0);
	used_from(p, now.lkey, p->b.addr + AT);
}

/* ---- memory that is deregistered while its owner reads into it ---- */

enum { MIB = 1 << 20 };

/* A thread of side a reads, this one takes the memory back. */
static void reads_stop_when_deregistration_returns(struct pair *p)
{
	struct end *e = p->a.end;
	uint8_t *target;

	start(p);
	target = e->buffer + TO;
	side_set(&p->b, 0, MIB, 0xaa);
	for (int i = 0; i < 30; i++) {
		struct ibv_mr *mr = ibv_reg_mr(e->pd, target, MIB,
					       IBV_ACCESS_LOCAL_WRITE);
		struct assault rd = { .opcode = IBV_WR_RDMA_READ, .local = TO,
				      .lkey = mr->lkey,
				      .remote_addr = p->b.addr,
				      .rkey = p->b.rkey, .length = MIB };

		memset(target, 0, MIB);
		side_start(&p->a, assault_until_refused, &rd, sizeof(rd));
		assault_wait(target + MIB - 1, 0xaa);
		expect_eq(ibv_dereg_mr(mr), 0);
		/* From here on it is ours. */
		memset(target, 0x11, MIB);
		expect_eq(side_join(&p->a, &rd, sizeof(rd)), 0);
		expect_eq(rd.result, IBV_WC_LOC_PROT_ERR);
		for (uint32_t k = 0; k < MIB; k++)
			if (target[k] != 0x11)
				fail("byte %u was written after the end", k);
		reconnect(p);
	}
}

static void a_read_that_is_waiting_does_not_touch_what_is_deregistered(struct pair *p)
{
	struct send_req r[2];
	struct region mr;

	need_rnr();
	/* Behind a send for which there is no receive yet. */
	p->conn.min_rnr_timer = 20;
	start(p);
	mr = side_reg(&p->a, TO, 100000, IBV_ACCESS_LOCAL_WRITE, 0);
	side_fill(&p->a, TO, 100000, 1);
	r[0] = send_req(&p->a, IBV_WR_SEND, 1, 0, 8);
	r[1] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 2, TO, 0, 100000);
	r[1].sge[0].lkey = mr.lkey;
	expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
	side_expect_none(&p->a, SEND_CQ);
	expect_eq(side_dereg(&p->a, mr.index), 0);
	side_recv(&p->b, 3, 0, 8);
	side_wait_ok(&p->a, SEND_CQ, 1);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	side_check(&p->a, TO, 100000, 1);
}

/* ---- fork ---- */

static void a_forked_child_may_free_what_its_parent_registered(struct pair *p)
{
	struct end *e = p->a.end;
	struct binding b;
	struct region mr;
	struct window w;
	int status;
	pid_t pid;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	exit(77); /* their allocators' locks may stay locked in the child */
#endif
	start(p);
	mr = side_reg_bindable(&p->a, AT, 4096);
	w = side_mw_alloc(&p->a, IBV_MW_TYPE_2, 0);
	b = binding_of(&p->a, BIND_BY_POST, &w, &mr, AT, 64);
	side_mw_bind(&p->a, &b);
	pid = fork();
	if (pid == 0) {
		bool good = !ibv_dealloc_mw(e->mw[w.index]) &&
			    !ibv_dereg_mr(e->mr[mr.index]) &&
			    !ibv_reg_mr(e->pd, e->buffer, 4096, 0);

		_exit(good ? 0 : 1);
	}
	expect(pid > 0 && waitpid(pid, &status, 0) == pid);
	expect_eq(status, 0);
	/* It is the parent's as before. */
	expect_status(access_with(&p->b, &p->a, IBV_WR_RDMA_WRITE, 0,
				  b.rkey_after, b.addr), IBV_WC_SUCCESS);
}

static const struct test_case cases[] = {
	RULE("ibv_reg_mr(3)", a_zero_based_region_is_addressed_by_offsets),
	RULE("ibv_reg_mr(3)", a_region_may_have_any_address_of_its_own),
	RULE("ibv_reg_mr(3)", permissions_to_be_lax_are_taken_and_not_needed),
	CASE(an_empty_region_gives_nothing),
	CASE_IN(ONLY_ONE_PROCESS, a_region_has_at_least_one_page),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_reg_mr(3)", each_right_is_known_or_refused),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_reg_mr(3)",
		registration_looks_at_the_memory),
	RULE("ibv_reg_dmabuf_mr(3)", a_region_may_be_registered_by_its_file),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_reg_dmabuf_mr(3)",
		registration_by_a_file_looks_at_the_file),
	RULE("ibv_alloc_null_mr(3)", the_null_region_is_all_zeros),
	RULE("ibv_alloc_null_mr(3)", what_goes_to_the_null_region_is_gone),
	RULE("ibv_alloc_null_mr(3)",
	     the_null_region_is_for_local_use_in_its_domain),
	RULE("ibv_alloc_null_mr(3)", no_window_is_bound_to_the_null_region),
	RULE("ibv_rereg_mr(3)", every_combination_changes_what_it_names),
	RULE("ibv_rereg_mr(3)",
	     a_refused_re_registration_leaves_the_old_region),
	RULE("ibv_rereg_mr(3)", a_region_changes_between_its_kinds),
	CASE_IN(ONLY_TWO_PROCESSES,
		a_forked_child_may_free_what_its_parent_registered),
	RULE("IBTA 10.6.5", reads_stop_when_deregistration_returns),
	RULE("IBTA 10.6.5",
	     a_read_that_is_waiting_does_not_touch_what_is_deregistered),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
