/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of different users, and what the owner of memory allows those of its own
 * user (hca/share/peers.h): both sides change their user before they open a device, so the
 * tests need root.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "look.h"
#include "pair.h"

enum { ROOT = 0, ONE = 65533, OTHER = 65534, GRH = 40, QKEY = 0x11111111,
       BYTES = 300000, FAR = 1 << 20 };

static const struct side_options big = { .bytes = 4 << 20 };

struct identity {
	uid_t uid;
	gid_t gid;
	char peers[16], memory[16], access[16]; /* settings; "": none */
};

static int become(struct end *e, void *arg)
{
	const struct identity *who = arg;

	if (*who->peers)
		setenv("BUSBAR_PEERS", who->peers, 1);
	if (*who->memory)
		setenv("BUSBAR_MEMORY", who->memory, 1);
	if (*who->access)
		setenv("BUSBAR_SHM_ACCESS", who->access, 1);
	if (setgroups(0, NULL) || setresgid(who->gid, who->gid, who->gid) ||
	    setresuid(who->uid, who->uid, who->uid))
		return -errno;
	/* A change of user clears the dumpable flag, without which /proc/self cannot be
	 * read, and the signal that ends this process with the test. */
	return prctl(PR_SET_DUMPABLE, 1) || prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void be_both(struct pair *p, struct identity a, struct identity b)
{
	if (geteuid() != 0) {
		printf("    not root\n");
		exit(77);
	}
	expect_eq(side_run(&p->b, become, &b, sizeof(b)), 0);
	expect_eq(side_run(&p->a, become, &a, sizeof(a)), 0);
}

static void exchange(struct pair *p, struct side *from, struct side *to)
{
	static uint64_t seed;
	struct send_req r;

	seed += 2;
	side_fill(from, 0, BYTES, seed);
	side_recv(to, 1, FAR, BYTES);
	side_send(from, 2, 0, BYTES);
	side_wait_ok(to, RECV_CQ, 1);
	side_wait_ok(from, SEND_CQ, 2);
	side_check(to, FAR, BYTES, seed);
	r = rdma_req(from, to, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0, 2 * FAR, BYTES);
	side_recv(to, 4, 0, 0);
	expect_eq(side_post_send(from, 0, &r, 1).ret, 0);
	side_wait_ok(from, SEND_CQ, 3);
	expect_eq(side_wait_ok(to, RECV_CQ, 4).byte_len, BYTES);
	side_check(to, 2 * FAR, BYTES, seed);
	side_fill(to, FAR, BYTES, seed + 1);
	r = rdma_req(from, to, IBV_WR_RDMA_READ, 5, 3 * FAR, FAR, BYTES);
	expect_eq(side_post_send(from, 0, &r, 1).ret, 0);
	side_wait_ok(from, SEND_CQ, 5);
	side_check(from, 3 * FAR, BYTES, seed + 1);
}

/* What the process of `s`, which we may look at, does with its peer's memory. */
static struct hca_link_view link_of(const struct side *s, const struct side *peer)
{
	struct hca_view *v;
	const struct hca_process_view *p = look_shown(&v, s);
	struct hca_link_view found = { .pid = 0 };

	for (size_t i = 0; i < p->link_count; i++)
		if (p->links[i].pid == (uint32_t)side_pid(peer))
			found = p->links[i];
	expect(found.pid);
	look_free(v);
	return found;
}

static void all_between(struct pair *p)
{
	pair_start(p, &big);
	exchange(p, &p->a, &p->b);
	exchange(p, &p->b, &p->a);
}

/* ---- which users may exchange messages ---- */

static void a_user_and_root_talk_without_reaching_memory(struct pair *p)
{
	be_both(p, (struct identity){ .uid = ROOT },
		(struct identity){ .uid = ONE, .gid = ONE });
	all_between(p);
	/* Root could, as far as the kernel is asked. */
	expect_eq(link_of(&p->a, &p->b).accesses, 0);
	expect_eq(link_of(&p->a, &p->b).pulls, 0);
	expect_eq(link_of(&p->b, &p->a).accesses, 0);
}

static void root_and_a_user_talk_the_other_way_round(struct pair *p)
{
	be_both(p, (struct identity){ .uid = ONE, .gid = ONE },
		(struct identity){ .uid = ROOT, .memory = "all" });
	all_between(p);
	expect_eq(link_of(&p->a, &p->b).accesses, 0);
}

/* A process that waits for events is woken through the link's socket. */
static void sleepers_of_different_users_wake_each_other(struct pair *p)
{
	const struct side_options opt = { .bytes = 4 << 20, .events = true };

	be_both(p, (struct identity){ .uid = ROOT },
		(struct identity){ .uid = ONE, .gid = ONE });
	pair_start(p, &opt);
	for (uint64_t i = 0; i < 20; i++) {
		struct side *from = i % 2 ? &p->b : &p->a;
		struct side *to = i % 2 ? &p->a : &p->b;

		side_recv(to, i, FAR, 100);
		expect_eq(side_arm(to, RECV_CQ, false), 0);
		side_send(from, i, 0, 100);
		expect_eq(side_event(to, WAIT_MS), RECV_CQ);
		side_wait_ok(to, RECV_CQ, i);
		side_wait_ok(from, SEND_CQ, i);
	}
}

static void datagram(struct side *from, struct side *to, bool arrives)
{
	struct send_req r = send_req(from, IBV_WR_SEND, 1, 0, 100);
	int ah = side_ah_to(from, &to->gid);

	side_fill(from, 0, 100, 7);
	side_recv(to, 2, FAR, 100 + GRH);
	r.ah = ah;
	r.qkey = QKEY;
	r.remote_qpn = to->qpn[0];
	expect_eq(side_post_send(from, 0, &r, 1).ret, 0);
	side_wait_ok(from, SEND_CQ, 1);
	if (arrives) {
		side_wait_ok(to, RECV_CQ, 2);
		side_check(to, FAR + GRH, 100, 7);
	} else {
		side_expect_none(to, RECV_CQ);
	}
	side_ah_destroy(from, ah);
}

static void start_datagrams(struct pair *p)
{
	const struct side_options ud = { .type = IBV_QPT_UD, .bytes = 4 << 20 };

	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &ud);
}

static void datagrams_go_between_root_and_a_user(struct pair *p)
{
	be_both(p, (struct identity){ .uid = ROOT },
		(struct identity){ .uid = ONE, .gid = ONE });
	start_datagrams(p);
	datagram(&p->a, &p->b, true);
	datagram(&p->b, &p->a, true);
}

static void datagrams_between_two_users_are_lost(struct pair *p)
{
	be_both(p, (struct identity){ .uid = ONE, .gid = ONE, .peers = "any" },
		(struct identity){ .uid = OTHER, .gid = OTHER });
	start_datagrams(p);
	datagram(&p->a, &p->b, false);
	datagram(&p->b, &p->a, false);
	/* Others of the same queue pair are not held up. */
	datagram(&p->a, &p->a, true);
}

static int join_group(struct end *e, void *arg)
{
	return ibv_attach_mcast(e->qp[0], arg, 0);
}

static int leave_group(struct end *e, void *arg)
{
	return ibv_detach_mcast(e->qp[0], arg, 0);
}

static void multicast(struct pair *p, bool arrives)
{
	union ibv_gid group = { .raw = { 0xff, 0x0e, [12] = 0x55 } };
	struct side *s[] = { &p->a, &p->b };
	struct send_req r;
	uint32_t pid = (uint32_t)getpid();
	int ah;

	memcpy(&group.raw[4], &pid, sizeof(pid));
	start_datagrams(p);
	for (int i = 0; i < 2; i++) {
		expect_eq(side_run(s[i], join_group, &group, sizeof(group)), 0);
		side_recv(s[i], 5, FAR, 100 + GRH);
	}
	ah = side_ah_to(&p->a, &group);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 100);
	r.ah = ah;
	r.qkey = QKEY;
	r.remote_qpn = 0xffffff;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->a, RECV_CQ, 5);
	if (arrives)
		side_wait_ok(&p->b, RECV_CQ, 5);
	else
		side_expect_none(&p->b, RECV_CQ);
	side_ah_destroy(&p->a, ah);
	for (int i = 0; i < 2; i++)
		expect_eq(side_run(s[i], leave_group, &group, sizeof(group)), 0);
}

static void groups_join_root_and_a_user(struct pair *p)
{
	be_both(p, (struct identity){ .uid = ONE, .gid = ONE },
		(struct identity){ .uid = ROOT });
	multicast(p, true);
}

static void groups_do_not_join_two_users(struct pair *p)
{
	be_both(p, (struct identity){ .uid = ONE, .gid = ONE },
		(struct identity){ .uid = OTHER, .gid = OTHER });
	multicast(p, false);
}

/* ---- the log of the one that refuses ---- */

struct log {
	int fd, old;
	int lines;
	char text[1500];
};
static struct log log_kept = { .fd = -1 };

static int log_keep(struct end *e, void *arg)
{
	log_kept.fd = memfd_create("log", MFD_CLOEXEC);
	log_kept.old = fcntl(2, F_DUPFD_CLOEXEC, 3);
	return log_kept.fd < 0 || dup2(log_kept.fd, 2) < 0;
}

static int log_read(struct end *e, void *arg)
{
	ssize_t n = pread(log_kept.fd, log_kept.text, sizeof(log_kept.text) - 1, 0);

	log_kept.text[n > 0 ? n : 0] = '\0';
	for (char *at = log_kept.text; (at = strstr(at, "refused")); at++)
		log_kept.lines++;
	dup2(log_kept.old, 2);
	close(log_kept.old);
	close(log_kept.fd);
	memcpy(arg, &log_kept, sizeof(log_kept));
	return 0;
}

/* It is enough that one side refuses; it logs once which process was refused and why. */
static void a_refusal(struct pair *p, const char *a, const char *b)
{
	struct identity one = { .uid = ONE, .gid = ONE };
	struct identity other = { .uid = OTHER, .gid = OTHER };
	struct log seen;

	strcpy(one.peers, a);
	strcpy(other.peers, b);
	be_both(p, one, other);
	expect_eq(side_run(&p->b, log_keep, NULL, 0), 0);
	p->conn.timeout = 12; /* 17 ms */
	p->conn.retry_cnt = 3;
	pair_start(p, NULL);
	for (int i = 0; i < 2; i++) {
		struct side *s = i ? &p->b : &p->a;

		side_send(s, 1, 0, 100);
		expect_status(side_wait(s, SEND_CQ), IBV_WC_RETRY_EXC_ERR);
	}
	expect_eq(side_run(&p->b, log_read, &seen, sizeof(seen)), 0);
	if (strcmp(b, "any") == 0) {
		expect_eq(seen.lines, 0);
		return;
	}
	if (seen.lines != 1 || !strstr(seen.text, "uid 65533") ||
	    !strstr(seen.text, "uid 65534") || !strstr(seen.text, "BUSBAR_PEERS"))
		fail("the log says: %s", seen.text);
}

static void who_is_refused_by_the_peer_runs_out_of_retries(struct pair *p)
{
	a_refusal(p, "any", "user");
}

static void who_refuses_runs_out_of_retries_too(struct pair *p)
{
	a_refusal(p, "user", "any");
}

static void two_users_talk_when_both_let_any_in(struct pair *p)
{
	be_both(p, (struct identity){ ONE, ONE, "any", "all", "auto" },
		(struct identity){ OTHER, OTHER, "any", "all", "auto" });
	all_between(p);
	/* That opens no memory. */
	expect_eq(link_of(&p->a, &p->b).accesses, 0);
}

static void users_of_a_group_talk_when_both_let_it_in(struct pair *p)
{
	be_both(p, (struct identity){ ONE, ONE, "group", "", "" },
		(struct identity){ OTHER, ONE, "group", "", "" });
	all_between(p);
}

static void who_is_of_another_group_is_refused(struct pair *p)
{
	a_refusal(p, "group", "group");
}

/* The setting's former name. */
static int old_setting(struct end *e, void *arg)
{
	return setenv("BUSBAR_SHM_PEERS", arg, 1);
}

static void the_setting_has_its_former_name_too(struct pair *p)
{
	char any[] = "any";

	expect_eq(side_run(&p->a, old_setting, any, sizeof(any)), 0);
	expect_eq(side_run(&p->b, old_setting, any, sizeof(any)), 0);
	be_both(p, (struct identity){ .uid = ONE, .gid = ONE },
		(struct identity){ .uid = OTHER, .gid = OTHER });
	all_between(p);
}

/* ---- which users may access the memory of which ---- */

static void memory_of(struct pair *p, const char *owner, const char *user,
		      uint32_t accesses, uint32_t procmem)
{
	struct identity a = { .uid = ONE, .gid = ONE };
	struct identity b = a;
	uint64_t end;

	strcpy(a.access, user);
	strcpy(b.memory, owner);
	be_both(p, a, b);
	all_between(p);
	/* A descriptor comes after the link. */
	for (end = now_ms() + WAIT_MS; procmem && now_ms() < end; usleep(1000))
		if (link_of(&p->a, &p->b).procmem)
			break;
	expect_eq(link_of(&p->a, &p->b).accesses, accesses);
	expect_eq(link_of(&p->a, &p->b).procmem, procmem);
	/* Messages are not pulled out of it, either. */
	if (!accesses)
		expect_eq(link_of(&p->b, &p->a).pulls, 0);
	exchange(p, &p->a, &p->b);
}

static void an_owner_that_forbids_is_reached_through_itself(struct pair *p)
{
	memory_of(p, "regions", "process_vm", 0, 0);
}

static void an_owner_that_lends_nothing_is_reached_through_itself(struct pair *p)
{
	memory_of(p, "target", "auto", 0, 0);
}

static void no_descriptor_of_all_memory_is_passed_unless_told_to(struct pair *p)
{
	memory_of(p, "ptrace", "procmem", 0, 0);
}

static void an_owner_that_allows_all_passes_its_descriptor(struct pair *p)
{
	memory_of(p, "all", "procmem", 1, 1);
}

#define USERS(fn_) { .name = #fn_, .fn = fn_, .where = ONLY_TWO_PROCESSES }

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		USERS(a_user_and_root_talk_without_reaching_memory),
		USERS(root_and_a_user_talk_the_other_way_round),
		USERS(sleepers_of_different_users_wake_each_other),
		USERS(datagrams_go_between_root_and_a_user),
		USERS(datagrams_between_two_users_are_lost),
		USERS(groups_join_root_and_a_user),
		USERS(groups_do_not_join_two_users),
		USERS(who_is_refused_by_the_peer_runs_out_of_retries),
		USERS(who_refuses_runs_out_of_retries_too),
		USERS(two_users_talk_when_both_let_any_in),
		USERS(users_of_a_group_talk_when_both_let_it_in),
		USERS(who_is_of_another_group_is_refused),
		USERS(the_setting_has_its_former_name_too),
		USERS(an_owner_that_forbids_is_reached_through_itself),
		USERS(an_owner_that_lends_nothing_is_reached_through_itself),
		USERS(no_descriptor_of_all_memory_is_passed_unless_told_to),
		USERS(an_owner_that_allows_all_passes_its_descriptor),
	};

	/* What the suite runs under is not meant here. */
	unsetenv("BUSBAR_PEERS");
	unsetenv("BUSBAR_SHM_PEERS");
	unsetenv("BUSBAR_MEMORY");
	unsetenv("BUSBAR_SHM_ACCESS");
	unsetenv("BUSBAR_MAP_MEMORY");
	return RUN_CASES(argc, argv, cases);
}
