/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries the processes; names and sums that all printers use. */
#include "cli/processes.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <string.h>

#include "util/container_of.h"
#include "util/log.h"

static const struct traffic_class sent[] = {
	{ "SEND", { HCA_TX_SENDS, HCA_TX_SENDS_IMM, HCA_TX_SENDS_INV }, 3 },
	{ "WRITE", { HCA_TX_WRITES, HCA_TX_WRITES_IMM }, 2 },
	{ "READ", { HCA_TX_READS }, 1 },
	{ "ATOMIC", { HCA_TX_COMPARE_SWAPS, HCA_TX_FETCH_ADDS }, 2 },
};
static const struct traffic_class received[] = {
	{ "SEND", { HCA_RX_SENDS }, 1 },
	{ "WRITE with immediate", { HCA_RX_WRITES_IMM }, 1 },
	{ "ATOMIC", { HCA_RX_ATOMICS }, 1 },
};

const struct traffic_classes traffic_sent = { sent, ARRAY_SIZE(sent) };
const struct traffic_classes traffic_received = { received, ARRAY_SIZE(received) };

int processes_open(struct processes *p)
{
	int (*open)(unsigned version, struct hca_inspector **out);
	int ret;

	/* From the libibverbs that this process has loaded, whosever it is. */
	*(void **)&open = dlvsym(RTLD_DEFAULT, "busbar_inspector_open", "BUSBAR_1");
	*(void **)&p->look = dlvsym(RTLD_DEFAULT, "busbar_inspector_look", "BUSBAR_1");
	*(void **)&p->view_free = dlvsym(RTLD_DEFAULT, "busbar_view_free", "BUSBAR_1");
	*(void **)&p->close = dlvsym(RTLD_DEFAULT, "busbar_inspector_close", "BUSBAR_1");
	if (!open || !p->look || !p->view_free || !p->close) {
		log_warn("the libibverbs in use is not busbar's: processes on busbar's adapter are not shown");
		return -ENOSYS;
	}
	ret = open(HCA_VIEW_VERSION, &p->inspector);
	if (ret)
		log_error("processes cannot be looked at: %s",
			  ret == -EPROTONOSUPPORT ?
				  "command and library come from different builds" :
				  strerror(-ret));
	return ret;
}

void processes_close(struct processes *p)
{
	p->close(p->inspector);
}

/* Why a process was not asked, or refused; `what` needs its user. */
static void explain(uint32_t pid, int ret, const char *what)
{
	if (!ret)
		return;
	if (ret == -ESRCH && kill((pid_t)pid, 0) && errno == ESRCH)
		log_error("there is no process %u", pid);
	else if (ret == -ESRCH)
		log_error("process %u has no queue pair of busbar's adapter: it cannot be asked, 'busbar devices -v' lists those that can",
			  pid);
	else if (ret == -ENODEV)
		log_error("process %u has just closed its device", pid);
	else if (ret == -EPERM)
		log_error("only root and the user of process %u can %s", pid, what);
	else if (ret == -EPROTONOSUPPORT)
		log_error("process %u does not know the request: an older busbar, or none", pid);
	else if (ret == -ETIMEDOUT)
		log_error("process %u does not answer: stopped, or very busy", pid);
	else
		log_error("process %u cannot be asked: %s", pid, strerror(-ret));
}

int processes_fail(uint32_t pid, const char *device)
{
	int (*ask)(uint32_t pid, const char *device);
	int ret;

	*(void **)&ask = dlvsym(RTLD_DEFAULT, "busbar_fail_ask", "BUSBAR_1");
	if (!ask) {
		log_error("the libibverbs in use is not this busbar's: no device can be asked to fail");
		return -ENOSYS;
	}
	ret = ask(pid, device);
	if (ret == -ENODEV && device)
		log_error("device '%s' is none of busbar's in process %u: only those can be made to fail",
			  device, pid);
	else
		explain(pid, ret, "let its device fail");
	return ret;
}

int processes_faults(uint32_t pid, const char *faults, struct hca_faults_view *out)
{
	int (*ask)(uint32_t pid, const char *text, struct hca_faults_view *out);
	int ret;

	*(void **)&ask = dlvsym(RTLD_DEFAULT, "busbar_faults_ask", "BUSBAR_1");
	if (!ask) {
		log_error("the libibverbs in use is not this busbar's: no process can be asked about faults");
		return -ENOSYS;
	}
	ret = ask(pid, faults, out);
	if (ret == -EINVAL && faults)
		log_error("--faults '%s' not usable: %s", faults, out->notes);
	else if (ret != -EOPNOTSUPP)
		explain(pid, ret, "see or change its faults");
	return ret;
}

bool processes_fault_event(uint32_t pid, uint32_t index, char *line, size_t line_bytes)
{
	int (*ask)(uint32_t pid, uint32_t index, char *line, size_t line_bytes);

	*(void **)&ask = dlvsym(RTLD_DEFAULT, "busbar_fault_event_ask", "BUSBAR_1");
	return ask && !ask(pid, index, line, line_bytes);
}

bool process_uses(const struct hca_process_view *p, const char *device)
{
	char name[32];

	for (size_t i = 0; i < p->qp_count; i++) {
		snprintf(name, sizeof(name), "soft%u", p->qps[i].device);
		if (!strcmp(name, device))
			return true;
	}
	return false;
}

const char *qp_type_name(uint32_t type)
{
	switch (type) {
	case IBV_QPT_RC: return "RC";
	case IBV_QPT_UC: return "UC";
	case IBV_QPT_UD: return "UD";
	case IBV_QPT_RAW_PACKET: return "RAW";
	case IBV_QPT_XRC_SEND: return "XRC_SEND";
	case IBV_QPT_XRC_RECV: return "XRC_RECV";
	default: return "unknown";
	}
}

const char *qp_state_name(uint32_t state)
{
	static const char *const names[] = {
		[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT",
		[IBV_QPS_RTR] = "RTR", [IBV_QPS_RTS] = "RTS",
		[IBV_QPS_SQD] = "SQD", [IBV_QPS_SQE] = "SQE",
		[IBV_QPS_ERR] = "ERR",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

struct traffic traffic_of(const struct traffic_class *c,
			  const uint64_t counters[HCA_QP_COUNTERS])
{
	struct traffic t = { 0, 0 };

	for (unsigned i = 0; i < c->count; i++) {
		t.messages += counters[c->places[i]];
		/* The size of an atomic is fixed, so its bytes are not counted. */
		t.bytes += c->places[i] == HCA_RX_ATOMICS ?
				   counters[HCA_RX_ATOMICS] * sizeof(uint64_t) :
				   counters[c->places[i] + 1];
	}
	return t;
}

struct traffic traffic_sum(const struct traffic_classes *c,
			   const uint64_t counters[HCA_QP_COUNTERS])
{
	struct traffic sum = { 0, 0 };

	for (size_t i = 0; i < c->count; i++) {
		struct traffic t = traffic_of(&c->list[i], counters);

		sum.messages += t.messages;
		sum.bytes += t.bytes;
	}
	return sum;
}

void traffic_total(const struct hca_view *v, struct traffic_totals *t)
{
	memset(t, 0, sizeof(*t));
	for (size_t i = 0; i < v->process_count; i++) {
		const struct hca_process_view *p = &v->processes[i];

		if (*p->problem)
			continue;
		t->processes++;
		t->qps += p->qp_count;
		t->mrs += p->counters[HCA_MRS];
		t->mr_bytes += p->counters[HCA_MR_BYTES];
		for (unsigned k = 0; k < HCA_QP_COUNTERS; k++)
			t->counters[k] += p->totals[k];
	}
}

void qp_states_count(const struct hca_process_view *p,
		     unsigned counts[QP_TYPES][QP_STATES])
{
	memset(counts, 0, QP_TYPES * sizeof(*counts));
	for (size_t i = 0; i < p->qp_count; i++)
		counts[MIN(p->qps[i].type, QP_TYPES - 1u)]
		      [MIN(p->qps[i].state, QP_STATES - 1u)]++;
}

const char *bytes_text(char *buf, size_t size, double bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
	unsigned unit = 0;

	while (bytes >= 999.5 && unit < 6) {
		bytes /= 1000;
		unit++;
	}
	snprintf(buf, size, "%.*f %s", unit && bytes < 99.5 ? 1 : 0, bytes,
		 units[unit]);
	return buf;
}

const struct hca_process_view *process_find(const struct hca_view *v,
					    const struct hca_process_view *p)
{
	for (size_t i = 0; v && i < v->process_count; i++)
		if (!*v->processes[i].problem && !*p->problem &&
		    v->processes[i].pid == p->pid &&
		    !memcmp(v->processes[i].uuid, p->uuid, sizeof(p->uuid)))
			return &v->processes[i];
	return NULL;
}

const struct hca_qp_view *process_find_qp(const struct hca_process_view *p,
					  uint32_t qpn)
{
	for (size_t i = 0; p && i < p->qp_count; i++)
		if (p->qps[i].qpn == qpn)
			return &p->qps[i];
	return NULL;
}
