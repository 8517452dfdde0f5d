/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The asking side of an inspection: finds the processes and obtains their segments.
 *
 * All new processes are asked first, and their answers awaited then, so that several
 * stopped processes cost the time limit of a second only once.
 */
#define LOG_ROOM "hca"
#include "hca/view/inspect.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca/host/names.h"
#include "hca/run/aside.h"
#include "hca/share/inspect_message.h"
#include "hca/share/process.h"
#include "hca/view/inspect_read.h"
#include "util/clock.h"
#include "util/log.h"

#define ANSWER_LIMIT_NS (NSEC_PER_SEC / 2)

struct target {
	/* Socket names that belong to the process according to the kernel; at least one. */
	struct inspect_name names[HCA_BLOCKS_PER_PROCESS];
	unsigned name_count;
	uint32_t pid, uid;
	uint8_t uuid[16];
	int socket;     /* -1: no answer is expected */
	int segment_fd; /* -1: not obtained */
	ino_t segment;  /* inode of that file */
	bool repeated;  /* another target has the same segment */
	char problem[sizeof(((struct hca_process_view *)0)->problem)];
};

struct hca_inspector {
	struct target *targets;
	size_t count, room;
};

int hca_inspector_open(unsigned version, struct hca_inspector **out)
{
	struct hca_inspector *in;

	if (version != HCA_VIEW_VERSION)
		return -EPROTONOSUPPORT;
	in = calloc(1, sizeof(*in));
	if (!in)
		return -ENOMEM;
	*out = in;
	return 0;
}

static void target_close(struct target *t)
{
	if (t->socket >= 0)
		close(t->socket);
	if (t->segment_fd >= 0)
		close(t->segment_fd);
	t->socket = t->segment_fd = -1;
}

void hca_inspector_close(struct hca_inspector *in)
{
	for (size_t i = 0; i < in->count; i++)
		target_close(&in->targets[i]);
	free(in->targets);
	free(in);
}

/* ---- the processes ---- */

static bool is_listed(const struct inspect_name *names, size_t count, uint64_t inode)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].inode == inode)
			return true;
	return false;
}

/* Removes the targets that have ended, and those whose segment was not obtained. */
static void forget_the_rest(struct hca_inspector *in, const struct inspect_name *names,
			    size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < in->count; i++) {
		struct target *t = &in->targets[i];

		if (t->segment_fd >= 0 && !*t->problem &&
		    is_listed(names, count, t->names[0].inode))
			in->targets[kept++] = *t;
		else
			target_close(t);
	}
	in->count = kept;
}

static bool is_known(const struct hca_inspector *in, uint64_t inode)
{
	for (size_t i = 0; i < in->count; i++)
		if (is_listed(in->targets[i].names, in->targets[i].name_count,
			      inode))
			return true;
	return false;
}

/* ---- asking ---- */

static void question_send(struct target *t)
{
	const struct hca_inspect_message msg = {
		.magic = HCA_INSPECT_MAGIC,
		.version = HCA_INSPECT_VERSION,
		.kind = HCA_INSPECT_QUESTION,
	};

	/* Ignores that the process has closed the connection already: receiving the answer then
	 * finds the reason. */
	if (send(t->socket, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
	    errno != EPIPE && errno != ECONNRESET)
		snprintf(t->problem, sizeof(t->problem), "cannot be asked: %s",
			 strerror(errno));
}

/* Adds the name to the target with that pid. False: there is none. */
static bool name_merged(struct hca_inspector *in, const struct inspect_name *n,
			uint32_t pid)
{
	for (size_t i = 0; pid && i < in->count; i++) {
		struct target *t = &in->targets[i];

		if (t->pid != pid || t->name_count == ARRAY_SIZE(t->names))
			continue;
		t->names[t->name_count++] = *n;
		return true;
	}
	return false;
}

static int targets_grow(struct hca_inspector *in)
{
	size_t room = MAX(2 * in->room, (size_t)16);
	struct target *grown;

	if (in->count < in->room)
		return 0;
	grown = realloc(in->targets, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	in->targets = grown;
	in->room = room;
	return 0;
}

/* Asks the owner of a name and adds it as a target, unless it is one already or has ended. */
static int target_add(struct hca_inspector *in, const struct inspect_name *n)
{
	struct target t = { .names = { *n }, .name_count = 1, .segment_fd = -1 };
	struct ucred cred;
	int ret = targets_grow(in);

	if (ret)
		return ret;
	t.socket = hca_block_call(n->block);
	if (t.socket == -ECONNREFUSED)
		return 0; /* ended meanwhile */
	if (t.socket < 0) {
		snprintf(t.problem, sizeof(t.problem), "cannot be asked: %s",
			 strerror(-t.socket));
		t.socket = -1;
	} else {
		hca_peer_cred(t.socket, &cred);
		t.pid = (uint32_t)MAX(cred.pid, 0);
		t.uid = cred.uid;
		if (name_merged(in, n, t.pid)) {
			close(t.socket);
			return 0;
		}
		question_send(&t);
	}
	in->targets[in->count++] = t;
	return 0;
}

static void take_descriptor(struct msghdr *h, int *fd)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int got;

			memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(got));
			if (*fd < 0)
				*fd = got;
			else
				hca_fd_drop(got);
		}
	}
}

static const char *answer_problem(const struct target *t,
				  const struct hca_inspect_message *msg,
				  ssize_t n, int fd)
{
	/* The process may close the connection of another user without answering. */
	if (n <= 0 && geteuid() != 0 && t->uid != geteuid())
		return "shows itself to its own user and to root only";
	if (n <= 0)
		return "does not know the question: an older busbar, or none";
	if (n != sizeof(*msg) || msg->magic != HCA_INSPECT_MAGIC ||
	    msg->kind != HCA_INSPECT_ANSWER)
		return "answers, but not as busbar does";
	if (msg->status == -EPERM)
		return "shows itself to its own user and to root only";
	return msg->status || fd < 0 ? "refuses to show itself" : NULL;
}

static void answer_take(struct target *t)
{
	struct hca_inspect_message msg = { 0 };
	union {
		char buf[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} space;
	struct iovec iov = { &msg, sizeof(msg) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = space.buf,
			    .msg_controllen = sizeof(space.buf) };
	ssize_t n = recvmsg(t->socket, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const char *problem;

	if (n > 0)
		take_descriptor(&h, &t->segment_fd);
	problem = answer_problem(t, &msg, n, t->segment_fd);
	if (problem)
		snprintf(t->problem, sizeof(t->problem), "%s", problem);
	else if (inspect_segment_check(t->segment_fd, t->uuid, t->problem,
				       sizeof(t->problem)))
		return;
	if (t->segment_fd >= 0)
		hca_fd_drop(t->segment_fd);
	t->segment_fd = -1;
}

/* Marks targets with the same segment: one process whose pid is not visible. */
static void find_repeated(struct hca_inspector *in)
{
	for (size_t i = 0; i < in->count; i++) {
		struct target *t = &in->targets[i];
		struct stat st;

		if (t->pid || t->segment_fd < 0 || fstat(t->segment_fd, &st))
			continue;
		t->segment = st.st_ino;
		t->repeated = false;
		for (size_t k = 0; k < i && !t->repeated; k++)
			t->repeated = !in->targets[k].pid &&
				      in->targets[k].segment_fd >= 0 &&
				      in->targets[k].segment == t->segment;
	}
}

static void answers_await(struct hca_inspector *in)
{
	uint64_t end = clock_monotonic_ns_slow() + ANSWER_LIMIT_NS;

	for (size_t i = 0; i < in->count; i++) {
		struct target *t = &in->targets[i];
		struct pollfd p = { .fd = t->socket, .events = POLLIN };
		uint64_t now = clock_monotonic_ns_slow();
		int left_ms = now < end ? (int)((end - now) / 1000000) : 0;

		if (t->socket < 0)
			continue;
		if (!*t->problem && poll(&p, 1, left_ms) == 1)
			answer_take(t);
		else if (!*t->problem)
			snprintf(t->problem, sizeof(t->problem),
				 "does not answer: stopped, or very busy");
		close(t->socket);
		t->socket = -1;
	}
}

/* ---- the view ---- */

static int by_pid(const void *a, const void *b)
{
	const struct hca_process_view *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void process_fill(struct hca_process_view *p, const struct target *t)
{
	p->pid = t->pid;
	p->uid = t->uid;
	memcpy(p->uuid, t->uuid, sizeof(p->uuid));
	memcpy(p->problem, t->problem, sizeof(p->problem));
	inspect_command_read(t->pid, p->command, sizeof(p->command));
	if (!*p->problem && !inspect_process_read(t->segment_fd, p))
		snprintf(p->problem, sizeof(p->problem),
			 "cannot be read any more");
}

/* Finds the process of each peer's QP number by the socket names, whose owners the kernel tells. */
static void peers_resolve(struct hca_view *v, const struct hca_inspector *in)
{
	uint32_t *owner = calloc(HCA_QPN_BLOCKS, sizeof(*owner));

	if (!owner)
		return;
	for (size_t i = 0; i < in->count; i++) {
		const struct target *t = &in->targets[i];

		for (unsigned n = 0; n < t->name_count; n++)
			owner[t->names[n].block] = t->pid;
	}
	for (size_t i = 0; i < v->process_count; i++)
		for (size_t q = 0; q < v->processes[i].qp_count; q++) {
			struct hca_qp_view *qp = &v->processes[i].qps[q];

			if (qp->peer_qpn)
				qp->peer_pid = owner[qp->peer_qpn >>
						     HCA_QPN_BLOCK_BITS];
		}
	free(owner);
}

int hca_inspector_look(struct hca_inspector *in, struct hca_view **out)
{
	struct hca_view *v;
	struct inspect_name *names;
	size_t count;
	int ret = inspect_names_read(&names, &count);

	if (ret)
		return ret;
	forget_the_rest(in, names, count);
	for (size_t i = 0; i < count && !ret; i++)
		if (!is_known(in, names[i].inode))
			ret = target_add(in, &names[i]);
	free(names);
	if (ret)
		return ret;
	answers_await(in);
	find_repeated(in);
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->qp_counter_names = hca_qp_counter_names;
	v->process_counter_names = hca_process_counter_names;
	v->processes = calloc(MAX(in->count, (size_t)1), sizeof(*v->processes));
	if (!v->processes) {
		free(v);
		return -ENOMEM;
	}
	for (size_t i = 0; i < in->count; i++)
		if (!in->targets[i].repeated)
			process_fill(&v->processes[v->process_count++],
				     &in->targets[i]);
	peers_resolve(v, in);
	qsort(v->processes, v->process_count, sizeof(*v->processes), by_pid);
	*out = v;
	return 0;
}

void hca_view_free(struct hca_view *v)
{
	for (size_t i = 0; i < v->process_count; i++) {
		free(v->processes[i].qps);
		free(v->processes[i].links);
	}
	free(v->processes);
	free(v);
}
