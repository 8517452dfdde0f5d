/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attacks by a process of another user, which is allowed to exchange messages, on a
 * process of root; and descriptors, from any process, whose close() blocks. See
 * hostile.c for violations of the link's protocol.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "evil.h"
#include "look.h"
#include "pair.h"
#include "victims.h"

#define BLOCK_OF(qpn) ((qpn) >> HCA_QPN_BLOCK_BITS)
#define EVIL_BLOCK 15000u
enum { NOBODY = 65534, QKEY = 0x1111 };

/* Arguments and results of functions that run in the hostile process. */
struct note {
	uint32_t block;
	uint32_t qpn, key, length;
	uid_t uid;
	uint32_t lends;
	pid_t pid;
	bool ok;
};

/* Of the hostile process, from one call to the next. */
static struct evil evil;

static struct note told(struct pair *p, const struct side *victim, side_fn *fn,
			struct note n)
{
	n.block = BLOCK_OF(victim->qpn[0]);
	side_run(&p->spare[0], fn, &n, sizeof(n));
	return n;
}

static int evil_starts(struct end *e, void *arg)
{
	struct note *n = arg;

	if (n->uid && (setgroups(0, NULL) || setresgid(n->uid, n->uid, n->uid) ||
		       setresuid(n->uid, n->uid, n->uid)))
		return 77;
	prctl(PR_SET_DUMPABLE, 1);
	n->ok = !evil_open(&evil, EVIL_BLOCK);
	n->qpn = evil.block << HCA_QPN_BLOCK_BITS | 5;
	n->pid = getpid();
	evil.segment->qps[5].qpn = n->qpn;
	evil.segment->qps[5].state = IBV_QPS_RTS;
	return 0;
}

static int evil_calls(struct end *e, void *arg)
{
	struct note *n = arg;

	evil.lends = n->lends;
	n->ok = !evil_call(&evil, n->block);
	return 0;
}

static int evil_ends(struct end *e, void *arg)
{
	evil_close(&evil);
	return 0;
}

/* `a` and `b` run as the user of this test (root); the third process runs as `uid`. */
static uint32_t start_as(struct pair *p, uid_t uid)
{
	struct note n = { .uid = uid };

	if (uid && geteuid() != 0) {
		printf("    not root\n");
		exit(77);
	}
	n = told(p, &p->a, evil_starts, n);
	expect(n.ok);
	return n.qpn;
}

static void end_evil(struct pair *p)
{
	told(p, &p->a, evil_ends, (struct note){ 0 });
}

#define ALL_LENT (HCA_PEER_WAKEUP | HCA_PEER_REGIONS | HCA_PEER_PTRACE | \
		  HCA_PEER_PROCMEM)

static int pretends_to_copy(struct end *e, void *arg)
{
	struct note *n = arg;
	uint64_t tag;

	/* That it reaches our memory, and is at it. */
	atomic_store(&evil.rx->ack.pulls, 1);
	memcpy(&tag, evil.victim_uuid, sizeof(tag));
	evil.segment->hazards[3] = tag << 32 | n->key;
	return 0;
}

static void who_has_no_memory_of_ours_does_not_delay_deregistration(struct pair *p)
{
	struct note n = { .lends = ALL_LENT };
	struct region mr;
	uint64_t start;

	pair_start(p, NULL);
	start_as(p, NOBODY);
	expect(told(p, &p->a, evil_calls, n).ok);
	exchange(p);
	mr = side_reg(&p->a, 0, 4096, IBV_ACCESS_LOCAL_WRITE, 0);
	expect(mr.index >= 0);
	told(p, &p->a, pretends_to_copy, (struct note){ .key = mr.rkey });
	start = now_ms();
	expect_eq(side_dereg(&p->a, mr.index), 0);
	/* A peer that can access the memory would be waited for, for ten seconds. */
	expect(now_ms() - start < 5000);
	exchange(p);
	end_evil(p);
}

/* ---- what a completion says ---- */

static int writes_with(struct end *e, void *arg)
{
	struct note *n = arg;
	struct shm_slot *s = evil_slot(&evil);

	s->op = SHM_WRITE_IMM;
	s->dst_qpn = n->qpn;
	s->src_qpn = evil.block << HCA_QPN_BLOCK_BITS | 5;
	s->psn = 100;
	s->length = n->length;
	evil_publish(&evil);
	n->ok = evil_closed(evil.fd, WAIT_MS);
	return 0;
}

static void claim(struct pair *p, uid_t uid, uint32_t length)
{
	struct connection c = p->conn;
	uint32_t evil_qpn;
	struct recv_req r = { .wr_id = 9 };

	c.timeout = c.retry_cnt = 1;
	pair_start(p, NULL);
	evil_qpn = start_as(p, uid);
	expect(told(p, &p->a, evil_calls, (struct note){ .lends = ALL_LENT }).ok);
	expect_eq(side_qp_create(&p->a, NULL), 1);
	expect_eq(side_to_init(&p->a, 1, IBV_ACCESS_REMOTE_WRITE), 0);
	expect_eq(side_to_rtr(&p->a, 1, &c, &p->a.gid, evil_qpn, 100), 0);
	expect_eq(side_to_rts(&p->a, 1, &c, 200), 0);
	expect_eq(side_post_recv(&p->a, 1, &r, 1).ret, 0);
	expect(told(p, &p->a, writes_with,
		    (struct note){ .qpn = p->a.qpn[1], .length = length }).ok);
	side_expect_none(&p->a, RECV_CQ);
	exchange(p);
	end_evil(p);
}

static void more_bytes_than_a_message_has_are_not_reported(struct pair *p)
{
	claim(p, 0, HCA_MAX_MSG_BYTES + 1);
}

static void bytes_that_another_user_cannot_have_written_are_not_reported(struct pair *p)
{
	claim(p, NOBODY, 1);
}

/* ---- descriptors ---- */

static int passes_unasked(struct end *e, void *arg)
{
	struct note *n = arg;
	struct shm_control msg = evil_control(&evil, SHM_MEMORY);
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	n->ok = fd >= 0 && !evil_send(evil.fd, &msg, sizeof(msg), &fd, 1);
	msg = evil_control(&evil, SHM_REGION);
	msg.id = 7;
	msg.length = 4096;
	n->ok = n->ok && !evil_send(evil.fd, &msg, sizeof(msg), &fd, 1);
	n->pid = getpid();
	close(fd);
	return 0;
}

static int only_by_descriptor(struct end *e, void *arg)
{
	return setenv("BUSBAR_SHM_ACCESS", "procmem", 1);
}

static uint32_t procmem_of(const struct side *s, pid_t peer)
{
	struct hca_view *v;
	const struct hca_process_view *p = look_shown(&v, s);
	uint32_t procmem = 2; /* no link */

	for (size_t i = 0; i < p->link_count; i++)
		if (p->links[i].pid == (uint32_t)peer)
			procmem = p->links[i].procmem;
	look_free(v);
	return procmem;
}

static int asks_for_region(struct end *e, void *arg)
{
	struct note *n = arg;
	struct shm_control msg = evil_control(&evil, SHM_ASK_REGION);
	int fds[3];

	/* There is no such region, which is answered after the messages sent before. */
	msg.id = 7;
	n->ok = !evil_send(evil.fd, &msg, sizeof(msg), NULL, 0);
	while (n->ok && (evil_recv(evil.fd, &msg, fds, WAIT_MS) != sizeof(msg) ||
			 msg.kind != SHM_REGION_GONE))
		n->ok = !evil_closed(evil.fd, 0);
	return 0;
}

static void descriptors_that_nobody_asked_for_are_not_taken(struct pair *p)
{
	struct note n = { .lends = HCA_PEER_WAKEUP | HCA_PEER_REGIONS };
	int fds;

	side_run(&p->a, only_by_descriptor, NULL, 0);
	pair_start(p, NULL);
	start_as(p, 0);
	n = told(p, &p->a, evil_calls, n);
	expect(n.ok);
	exchange(p);
	fds = open_fds();
	n = told(p, &p->a, passes_unasked, n);
	expect(n.ok);
	expect(told(p, &p->a, asks_for_region, (struct note){ 0 }).ok);
	/* Fewer: those of the handshake are closed by a thread aside. More for a moment: others
	 * look at this process. */
	for (uint64_t end = now_ms() + WAIT_MS; open_fds() > fds;)
		expect(now_ms() < end);
	expect_eq(procmem_of(&p->a, n.pid), 0);
	exchange(p);
	end_evil(p);
}

/*
 * A socket with SO_LINGER and bytes that its other end does not read: the last close()
 * of it blocks, as on a file of a file system that does not answer.
 */
static int slow_to_close(int *other)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger for_long = { .l_onoff = 1, .l_linger = 3600 };
	socklen_t len = sizeof(at);
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char bytes[1 << 16];

	if (bind(listening, (struct sockaddr *)&at, len) ||
	    listen(listening, 1) ||
	    getsockname(listening, (struct sockaddr *)&at, &len) ||
	    connect(fd, (struct sockaddr *)&at, len))
		return -1;
	*other = accept(listening, NULL, NULL);
	close(listening);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return setsockopt(fd, SOL_SOCKET, SO_LINGER, &for_long,
			  sizeof(for_long)) ? -1 : fd;
}

/* The victim is stopped meanwhile, so that it closes the descriptors last. */
static int hello_with_slow_descriptors(struct end *e, void *arg)
{
	struct note *n = arg;
	struct shm_control msg = evil_control(&evil, SHM_HELLO);
	int fd = evil_connect(n->block), fds[3];

	n->ok = true;
	for (int i = 0; i < 3; i++) {
		int other;

		fds[i] = slow_to_close(&other);
		n->ok = n->ok && fds[i] >= 0;
	}
	n->ok = n->ok && !evil_send(fd, &msg, sizeof(msg), fds, 3);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	return 0;
}

static void a_descriptor_that_is_slow_to_close_holds_nobody_up(struct pair *p)
{
	uint64_t start;

	pair_start(p, NULL);
	exchange(p);
	start_as(p, 0);
	side_stop(&p->b);
	expect(told(p, &p->b, hello_with_slow_descriptors,
		    (struct note){ 0 }).ok);
	side_signal(&p->b, SIGCONT);
	start = now_ms();
	/* It has come to it when a second one after it is refused. */
	expect(told(p, &p->b, evil_calls, (struct note){ .lends = ALL_LENT }).ok);
	exchange(p);
	expect(now_ms() - start < WAIT_MS);
	end_evil(p);
}

/* ---- names ---- */

static void who_has_a_number_and_is_silent_does_not_hold_up_datagrams(struct pair *p)
{
	const struct side_options ud = { .type = IBV_QPT_UD };
	struct send_req r;
	uint32_t silent_qpn;
	struct polled polled;
	int ah;

	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &ud);
	silent_qpn = start_as(p, NOBODY);
	ah = side_ah_to(&p->a, &p->b.gid);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 100);
	r.ah = ah;
	r.qkey = QKEY;
	side_recv(&p->b, 5, 0, 200);
	r.remote_qpn = silent_qpn;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	r.remote_qpn = p->b.qpn[0];
	r.wr_id = 2;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	polled = side_poll(&p->a, SEND_CQ, 2, 3 * WAIT_MS);
	expect_eq(polled.count, 2);
	side_wait_ok(&p->b, RECV_CQ, 5);
	side_ah_destroy(&p->a, ah);
	end_evil(p);
}

struct domain {
	unsigned long long device, inode;
	bool listens;
	int ret;
};

static int takes_lock(struct end *e, void *arg)
{
	struct domain *d = arg;
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
			   "busbar.xrcd.0.%llx.%llx.lock", d->device, d->inode);

	if (setresuid(NOBODY, NOBODY, NOBODY))
		return 77;
	d->ret = bind(fd, (struct sockaddr *)&name,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				  (size_t)len));
	if (d->listens)
		d->ret |= listen(fd, 1);
	return 0;
}

static void open_domain(struct pair *p, bool listens)
{
	FILE *f = tmpfile();
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.oflags = O_CREAT,
	};
	struct domain d = { .listens = listens };
	struct ibv_xrcd *x;
	struct stat st;

	if (geteuid() != 0) {
		printf("    not root\n");
		exit(77);
	}
	setenv("BUSBAR_PEERS", "user", 1);
	expect(f && !fstat(fileno(f), &st));
	attr.fd = fileno(f);
	d.device = st.st_dev;
	d.inode = st.st_ino;
	side_run(&p->spare[0], takes_lock, &d, sizeof(d));
	expect_eq(d.ret, 0);
	/* Root may exchange messages with all users, so another user's lock counts. */
	expect_eq(setresuid(NOBODY - 1, NOBODY - 1, NOBODY - 1), 0);
	prctl(PR_SET_DUMPABLE, 1);
	pair_open(p, NULL);
	x = ibv_open_xrcd(p->a.end->ctx, &attr);
	expect(x);
	expect_eq(ibv_close_xrcd(x), 0);
	fclose(f);
}

static void the_lock_of_an_xrc_domain_taken_by_another_user_is_passed_by(struct pair *p)
{
	open_domain(p, true);
}

static void a_lock_that_does_not_say_whose_it_is_is_passed_by_in_time(struct pair *p)
{
	open_domain(p, false);
}

#define HOSTILE(fn_) \
	{ .name = #fn_, .fn = fn_, .where = ONLY_TWO_PROCESSES, .spares = 1 }

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		HOSTILE(who_has_no_memory_of_ours_does_not_delay_deregistration),
		HOSTILE(more_bytes_than_a_message_has_are_not_reported),
		HOSTILE(bytes_that_another_user_cannot_have_written_are_not_reported),
		HOSTILE(descriptors_that_nobody_asked_for_are_not_taken),
		HOSTILE(a_descriptor_that_is_slow_to_close_holds_nobody_up),
		HOSTILE(who_has_a_number_and_is_silent_does_not_hold_up_datagrams),
		HOSTILE(the_lock_of_an_xrc_domain_taken_by_another_user_is_passed_by),
		HOSTILE(a_lock_that_does_not_say_whose_it_is_is_passed_by_in_time),
	};

	return RUN_CASES(argc, argv, cases);
}
