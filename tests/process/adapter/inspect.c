/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inspection of processes (hca/view/inspect.h): what is shown of them; that nothing another
 * process does or writes disturbs the inspecting process; and that inspection does not
 * disturb the processes inspected.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hca/share/inspect_message.h"
#include "hca/share/process.h"
#include "look.h"
#include "verbs/private.h"

/* ---- what is shown ---- */

static void a_connection_is_shown_from_both_ends(struct pair *p)
{
	struct hca_qp_view a, b;
	struct hca_view *v;
	const struct hca_process_view *pa;

	pair_start(p, NULL);
	a = look_qp(&p->a, 0);
	b = look_qp(&p->b, 0);
	expect_eq(a.type, IBV_QPT_RC);
	expect_eq(a.state, IBV_QPS_RTS);
	expect_eq(a.device, 0);
	expect(!strcmp(a.transport, transport_under_test()->name));
	expect_eq(a.peer_qpn, p->b.qpn[0]);
	expect_eq(a.peer_pid, side_pid(&p->b));
	expect_eq(b.peer_qpn, p->a.qpn[0]);
	expect_eq(b.peer_pid, side_pid(&p->a));
	pa = look_shown(&v, &p->a);
	expect_eq(pa->uid, geteuid());
	expect(strstr(pa->command, "adapter-inspect"));
	expect(strstr(pa->transports, transport_under_test()->name));
	expect_eq(pa->qp_count, p->two_processes ? 1 : 2);
	look_free(v);
}

static void a_link_is_shown_from_both_ends(struct pair *p)
{
	const struct hca_process_view *pa;
	struct hca_view *v;

	pair_start(p, NULL);
	pa = look_shown(&v, &p->a);
	expect(!strcmp(pa->transports, "shm"));
	/* A process with a link to itself has both ends of the link. */
	expect_eq(pa->link_count, p->two_processes ? 1 : 2);
	expect_eq(pa->links[0].pid, side_pid(&p->b));
	expect_eq(pa->counters[HCA_LINKS_UP], p->two_processes ? 1 : 2);
	look_free(v);
}

static void the_state_is_that_of_the_moment(struct pair *p)
{
	pair_open(p, NULL);
	expect_eq(look_qp(&p->a, 0).state, IBV_QPS_RESET);
	expect_eq(look_qp(&p->a, 0).peer_qpn, 0);
	expect_eq(side_to_init(&p->a, 0, 0), 0);
	expect_eq(look_qp(&p->a, 0).state, IBV_QPS_INIT);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid, p->b.qpn[0], 0), 0);
	expect_eq(look_qp(&p->a, 0).state, IBV_QPS_RTR);
	expect_eq(look_qp(&p->a, 0).peer_qpn, p->b.qpn[0]);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_ERR), 0);
	expect_eq(look_qp(&p->a, 0).state, IBV_QPS_ERR);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
	expect_eq(look_qp(&p->a, 0).peer_qpn, 0);
}

static void a_process_with_many_blocks_is_shown_once(struct pair *p)
{
	/* More than two blocks of 1024; the harness has room for few. */
	enum { QPS = 2100 };
	struct ibv_qp **qps = calloc(QPS, sizeof(struct ibv_qp *));
	struct hca_view *v;
	size_t shown = 0;

	pair_open(p, NULL);
	for (int i = 0; i < QPS; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_UC,
			.send_cq = p->a.end->cq[SEND_CQ],
			.recv_cq = p->a.end->cq[RECV_CQ],
			.cap = { 1, 1, 1, 1, 0 },
		};

		qps[i] = ibv_create_qp(p->a.end->pd, &init);
		expect(qps[i]);
	}
	look_shown(&v, &p->a);
	for (size_t i = 0; i < v->process_count; i++)
		if (v->processes[i].pid == (uint32_t)getpid()) {
			shown++;
			expect_eq(v->processes[i].qp_count, QPS + 2);
		}
	expect_eq(shown, 1);
	look_free(v);
	for (int i = 0; i < QPS; i++)
		expect_eq(ibv_destroy_qp(qps[i]), 0);
	free(qps);
}

/* ---- processes that are stopped or killed ---- */

static void a_stopped_process_is_said_to_be_silent(struct pair *p)
{
	struct hca_inspector *kept = look_open();
	const struct hca_process_view *b;
	struct hca_view *v;
	uint64_t start;

	pair_start(p, NULL);
	look_free(look_again(kept));
	side_stop(&p->b);
	start = now_ms();
	v = look();
	if (now_ms() - start > 4000)
		fail("one stopped process held the inspection up for %llu ms",
		     (unsigned long long)(now_ms() - start));
	b = look_find(v, side_pid(&p->b));
	expect(b);
	expect(strstr(b->problem, "does not answer"));
	look_free(v);
	look_shown(&v, &p->a);
	look_free(v);
	/* An inspector that had its segment before can still read it. */
	v = look_again(kept);
	expect(!*look_find(v, side_pid(&p->b))->problem);
	look_free(v);
	look_close(kept);
	side_signal(&p->b, SIGCONT);
	expect_eq(look_qp(&p->b, 0).state, IBV_QPS_RTS);
}

static void a_killed_process_is_gone_at_the_next_look(struct pair *p)
{
	struct hca_inspector *kept = look_open();
	struct hca_view *v;
	pid_t pid;

	pair_start(p, NULL);
	pid = side_pid(&p->b);
	v = look_again(kept);
	expect(look_find(v, pid));
	look_free(v);
	side_kill(&p->b);
	v = look_again(kept);
	expect(!look_find(v, pid));
	expect(look_find(v, side_pid(&p->a)));
	look_free(v);
	look_close(kept);
	/* The remaining process notices without being inspected. */
	for (int i = 0; look_process(&p->a).counters[HCA_LINKS_DOWN] != 1; i++) {
		if (i > 1000)
			fail("the end of the link is not counted");
		usleep(5000);
	}
	v = look();
	expect_eq(look_find(v, side_pid(&p->a))->link_count, 0);
	look_free(v);
}

static int count_fds(pid_t pid)
{
	char path[64];
	DIR *d;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	expect(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void looking_leaves_nothing_behind(struct pair *p)
{
	int before;

	pair_start(p, NULL);
	before = count_fds(side_pid(&p->b));
	for (int i = 0; i < 50; i++)
		look_free(look());
	/* The last connection is closed when the thread there has run. Others may look
	 * at the moment, now or before; and the library has a file open now and then. */
	for (int i = 0; count_fds(side_pid(&p->b)) > before; i++) {
		if (i > 1000)
			fail("%d descriptors instead of %d",
			     count_fds(side_pid(&p->b)), before);
		usleep(5000);
	}
	side_recv(&p->b, 1, 0, 100);
	side_send(&p->a, 1, 0, 100);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 1);
}

static void another_user_learns_nothing(struct pair *p)
{
	int go[2], status;
	pid_t child;

	if (geteuid() != 0)
		exit(77);
	expect(!pipe2(go, O_CLOEXEC));
	child = fork();
	if (child == 0) {
		const struct hca_process_view *seen;
		struct hca_view *v;
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		expect(read(go[0], &byte, 1) == 1);
		expect(!setresuid(65534, 65534, 65534));
		v = look();
		seen = look_find(v, getppid());
		for (int i = 0; i < 10 && seen && strstr(seen->problem, "does not answer"); i++) {
			look_free(v);
			v = look();
			seen = look_find(v, getppid());
		}
		expect(seen);
		expect(strstr(seen->problem, "own user"));
		expect_eq(seen->qp_count, 0);
		look_free(v);
		_exit(0);
	}
	pair_start(p, NULL);
	expect(write(go[1], "", 1) == 1);
	expect_eq(waitpid(child, &status, 0), child);
	expect_eq(status, 0);
	close(go[0]);
	close(go[1]);
}

/* ---- other programs that listen under the name of a block ---- */

enum answer {
	ANSWER_HANG_UP,
	ANSWER_GARBAGE,
	ANSWER_NO_DESCRIPTOR,
	ANSWER_PIPE,
	ANSWER_SHORT_FILE,
	ANSWER_OTHER_VERSION,
	ANSWER_RANDOM, /* and all that follow: seeds */
	ANSWERS = ANSWER_RANDOM + 24,
};

static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return random_state >> 20;
}

static void fill_random(void *to, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = (uint8_t)next_random();
}

/* A segment with a proper head and anything behind it. */
static int random_segment(uint32_t block)
{
	static const size_t size = sizeof(struct hca_segment);
	int fd = memfd_create("not-busbar", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct hca_segment *s;

	if (ftruncate(fd, (off_t)size))
		_exit(1);
	s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		_exit(1);
	s->magic = HCA_SEGMENT_MAGIC;
	s->version = HCA_SEGMENT_VERSION;
	s->bytes = size;
	fill_random(&s->uuid, sizeof(s->uuid));
	fill_random(&s->counters, sizeof(s->counters));
	fill_random(&s->links, sizeof(s->links));
	fill_random(&s->transports, sizeof(s->transports));
	for (unsigned i = 0; i < HCA_BLOCKS_PER_PROCESS; i++)
		s->blocks[i] = (uint32_t)next_random();
	s->blocks[3] = block;
	fill_random(&s->qps[3 * HCA_QPN_BLOCK_SIZE],
		    HCA_QPN_BLOCK_SIZE * sizeof(s->qps[0]));
	for (unsigned i = 0; i < 20; i++) {
		unsigned at = (unsigned)next_random() % HCA_QPN_BLOCK_SIZE;

		s->qps[3 * HCA_QPN_BLOCK_SIZE + at].qpn =
			block << HCA_QPN_BLOCK_BITS | at;
	}
	munmap(s, size);
	return fd;
}

static int foreign_descriptor(enum answer kind, uint32_t block)
{
	struct {
		uint64_t magic;
		uint8_t rest[4096];
	} head = { .magic = HCA_SEGMENT_MAGIC };
	int fds[2], fd;

	if (kind == ANSWER_NO_DESCRIPTOR)
		return -1;
	if (kind == ANSWER_PIPE) /* from which nothing ever comes */
		return pipe2(fds, O_CLOEXEC) ? -1 : fds[0];
	if (kind >= ANSWER_RANDOM) {
		random_state = kind;
		return random_segment(block);
	}
	fd = memfd_create("not-busbar", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (write(fd, &head, kind == ANSWER_SHORT_FILE ? 12 : sizeof(head)) < 0)
		_exit(1);
	return fd;
}

static void foreign_answer(int fd, enum answer kind, uint32_t block)
{
	struct hca_inspect_message msg = {
		.magic = HCA_INSPECT_MAGIC, .version = HCA_INSPECT_VERSION,
		.kind = HCA_INSPECT_ANSWER,
	};
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} space = { 0 };
	struct iovec iov = { &msg, sizeof(msg) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	int passed;

	if (kind == ANSWER_HANG_UP)
		return;
	if (kind == ANSWER_GARBAGE)
		memset(&msg, 0x5a, sizeof(msg));
	passed = foreign_descriptor(kind, block);
	if (passed >= 0) {
		h.msg_control = space.buf;
		h.msg_controllen = sizeof(space.buf);
		space.align.cmsg_level = SOL_SOCKET;
		space.align.cmsg_type = SCM_RIGHTS;
		space.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&space.align), &passed, sizeof(passed));
	}
	sendmsg(fd, &h, MSG_NOSIGNAL);
	if (passed >= 0)
		close(passed);
}

/* Listens as the owner of a free block, and gives each question the next kind of answer.
 * Other processes may inspect meanwhile, so only questions of the parent count. */
static _Noreturn void foreign_main(int ready)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	uint32_t block = 16000;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int len;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	do {
		len = snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1,
			       "busbar.qpn.%u", ++block);
		len += (int)offsetof(struct sockaddr_un, sun_path) + 1;
	} while (bind(fd, (struct sockaddr *)&sun, (socklen_t)len) &&
		 errno == EADDRINUSE);
	if (listen(fd, 128) || write(ready, "", 1) != 1)
		_exit(1);
	for (int kind = 0; kind < ANSWERS;) {
		struct hca_inspect_message question;
		struct ucred cred = { 0 };
		socklen_t cred_len = sizeof(cred);
		int from = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (recv(from, &question, sizeof(question), 0) > 0 &&
		    !getsockopt(from, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) &&
		    cred.pid == getppid())
			foreign_answer(from, (enum answer)kind++, block);
		close(from);
	}
	pause();
	_exit(0);
}

static void expect_text(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	expect(n < size);
	for (size_t i = 0; i < n; i++)
		expect((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
}

static void expect_well_formed(const struct hca_process_view *p)
{
	expect_text(p->command, sizeof(p->command));
	expect_text(p->transports, sizeof(p->transports));
	expect(p->link_count <= HCA_LINKS);
	expect(p->qp_count >= 1 && p->qp_count <= 20);
	for (size_t i = 0; i < p->qp_count; i++) {
		expect(p->qps[i].qpn >> HCA_QPN_BLOCK_BITS >= 16000);
		expect(p->qps[i].peer_qpn <= 0xffffff);
		expect_text(p->qps[i].transport, sizeof(p->qps[i].transport));
	}
}

static void any_answer_of_another_program_is_handled(struct pair *p)
{
	static const char *const problems[] = {
		[ANSWER_HANG_UP] = "does not know the question",
		[ANSWER_GARBAGE] = "not as busbar does",
		[ANSWER_NO_DESCRIPTOR] = "refuses",
		[ANSWER_PIPE] = "no segment of busbar's",
		[ANSWER_SHORT_FILE] = "no segment of busbar's",
		[ANSWER_OTHER_VERSION] = "another busbar (segment version 0",
	};
	int ready[2], late = 0;
	pid_t foreign;
	char byte;

	expect(!pipe2(ready, O_CLOEXEC));
	foreign = fork();
	if (foreign == 0)
		foreign_main(ready[1]);
	expect(read(ready[0], &byte, 1) == 1);
	for (int kind = 0; kind < ANSWERS; kind++) {
		struct hca_view *v = look();
		const struct hca_process_view *s = look_find(v, foreign);

		/* On a busy machine the answer may come too late. */
		expect(s);
		if (strstr(s->problem, "does not answer")) {
			expect(late++ < 3);
		} else if (kind >= ANSWER_RANDOM) {
			expect(!*s->problem);
			expect_well_formed(s);
		} else if (!strstr(s->problem, problems[kind])) {
			fail("'%s' instead of '%s'", s->problem, problems[kind]);
		}
		look_free(v);
	}
	kill(foreign, SIGKILL);
	waitpid(foreign, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	pair_open(p, NULL);
}

static void a_view_of_another_version_is_refused(struct pair *p)
{
	struct hca_inspector *in;

	pair_open(p, NULL);
	expect_eq(busbar_inspector_open(HCA_VIEW_VERSION + 1, &in), -EPROTONOSUPPORT);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(a_connection_is_shown_from_both_ends),
		CASE(a_link_is_shown_from_both_ends),
		CASE(the_state_is_that_of_the_moment),
		CASE_IN(ONLY_ONE_PROCESS, a_process_with_many_blocks_is_shown_once),
		CASE_IN(ONLY_TWO_PROCESSES, a_stopped_process_is_said_to_be_silent),
		CASE_IN(ONLY_TWO_PROCESSES, a_killed_process_is_gone_at_the_next_look),
		CASE(looking_leaves_nothing_behind),
		CASE_IN(ONLY_ONE_PROCESS, another_user_learns_nothing),
		CASE_IN(ONLY_ONE_PROCESS, any_answer_of_another_program_is_handled),
		CASE_IN(ONLY_ONE_PROCESS, a_view_of_another_version_is_refused),
	};

	return RUN_CASES(argc, argv, cases);
}
