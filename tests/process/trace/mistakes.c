/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that makes mistakes, run under `busbar exec --trace=FILE`. After each it
 * reads FILE and looks whether the reason is there.
 */
#include "mistakes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct ibv_context *context;
struct ibv_pd *pd;
struct ibv_cq *cq;
struct ibv_mr *mr;
char memory[1 << 16];

static int trace_fd = -1;
static unsigned looked_at, failed;

void need_failed(const char *file, int line, const char *what)
{
	printf("%s:%d: %s: %s\n", file, line, what, strerror(errno));
	exit(1);
}

static char *news(void)
{
	static char text[1 << 16];
	ssize_t n, length = 0;

	while ((n = read(trace_fd, text + length, sizeof(text) - 1 - (size_t)length)) > 0)
		length += n;
	text[length] = '\0';
	return text;
}

/* " call(" or " > call(" */
static char *last_line_of(char *text, const char *call)
{
	char *line, *rest = text, *found = NULL, name[64];

	snprintf(name, sizeof(name), " %s(", call);
	while ((line = strsep(&rest, "\n")))
		if (strstr(line, name))
			found = line;
	return found;
}

void because(const char *file, int line, const char *call, const char *error, ...)
{
	char *found = last_line_of(news(), call);
	const char *word;
	va_list words;

	looked_at++;
	if (!found) {
		printf("%s:%d: no line of %s\n", file, line, call);
		failed++;
		return;
	}
	va_start(words, error);
	for (word = error; word; word = va_arg(words, const char *))
		if (!strstr(found, word)) {
			printf("%s:%d: no '%s' in: %s\n", file, line, word, found);
			failed++;
			break;
		}
	va_end(words);
}

struct ibv_qp *qp_new(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2,
			 .max_recv_sge = 2 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	NEED(qp);
	return qp;
}

struct ibv_ah_attr own_address(void)
{
	struct ibv_ah_attr a = { .port_num = 1, .is_global = 1, .grh.hop_limit = 64 };

	NEED(!ibv_query_gid(context, 1, 0, &a.grh.dgid));
	return a;
}

void qp_to(struct ibv_qp *qp, enum ibv_qp_state state, uint32_t peer)
{
	bool datagram = qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer, .timeout = 8, .retry_cnt = 1, .rnr_retry = 0,
		.max_rd_atomic = 1, .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
		.ah_attr = own_address(),
	};

	NEED(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	if (state == IBV_QPS_INIT)
		return;
	a.qp_state = IBV_QPS_RTR;
	NEED(!ibv_modify_qp(qp, &a, datagram ? IBV_QP_STATE :
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			    IBV_QP_MIN_RNR_TIMER));
	if (state == IBV_QPS_RTR)
		return;
	a.qp_state = IBV_QPS_RTS;
	NEED(!ibv_modify_qp(qp, &a, datagram ? IBV_QP_STATE | IBV_QP_SQ_PSN :
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void device_open(void)
{
	int count, i = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	NEED(list);
	while (i < count && strcmp(ibv_get_device_name(list[i]), "soft0"))
		i++;
	NEED(i < count);
	context = ibv_open_device(list[i]);
	NEED(context);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	NEED(pd && cq && mr);
}

int main(void)
{
	const char *file = getenv("BUSBAR_TRACE");

	if (!file || (trace_fd = open(file, O_RDONLY | O_CLOEXEC)) < 0) {
		printf("usage: busbar exec --trace=FILE -- mistakes\n");
		return 2;
	}
	device_open();
	BECAUSE("ibv_reg_mr", "= mr 0x", "lkey 0x", "LOCAL_WRITE");
	mistakes_modify();
	mistakes_objects();
	mistakes_data();
	mistakes_connections();
	mistakes_not_offered();
	printf("%u mistakes, %u without their reason\n", looked_at, failed);
	return failed || looked_at < 40;
}
