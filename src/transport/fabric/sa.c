/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to subnet administration; see sa.h. */
#define LOG_ROOM "fabric"
#include "transport/fabric/sa.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#include "hca/host/gid.h"
#include "hca/host/subnet.h"
#include "transport/fabric/qp1.h"
#include "transport/packet/packet.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"
#include "wire/mad/sa.h"

#define TRIES 4u
#define GROUP_QKEY 0x01234567 /* that of the connection manager (RDMA_UDP_QKEY) */
#define TRY_NS (NSEC_PER_SEC / 4)
/* Agents of management programs, by which the fabric finds who gets an answer, have small numbers in the
 * upper half of their transactions. */
#define TID_OWN (UINT64_C(1) << 63)

static struct {
	pthread_mutex_t asking; /* one question at a time */
	pthread_mutex_t lock;   /* a leaf; of the next two */
	uint64_t tid;           /* of the question that waits; 0: none does */
	uint8_t answer[MAD_BYTES];
	atomic_bool answered;
} sa = { .asking = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER };

void fabric_sa_arrived(const uint8_t *mad)
{
	struct mad_header h;

	mad_header_unpack(mad, &h);
	pthread_mutex_lock(&sa.lock);
	if (h.method & MAD_RESPONSE && sa.tid && h.tid == sa.tid) {
		memcpy(sa.answer, mad, sizeof(sa.answer));
		sa.tid = 0;
		atomic_store(&sa.answered, true);
	}
	pthread_mutex_unlock(&sa.lock);
}

void fabric_sa_forked(void)
{
	pthread_mutex_init(&sa.asking, NULL);
	pthread_mutex_init(&sa.lock, NULL);
	sa.tid = 0;
}

/* ---- a question ---- */

static bool wait_for_answer(struct packet_port *port)
{
	const uint64_t until_ns = clock_monotonic_ns_slow() + TRY_NS;

	while (!atomic_load(&sa.answered) && clock_monotonic_ns_slow() < until_ns) {
		hca_enter();
		packet_poll(port, true);
		hca_leave();
		if (!atomic_load(&sa.answered))
			poll(NULL, 0, 1);
	}
	return atomic_load(&sa.answered);
}

static int send_question(const uint8_t *mad)
{
	struct plug_port own;
	struct ibv_ah_attr ah = { .port_num = 1 };
	const union ibv_gid none = { 0 };

	hca_subnet_port(&own);
	ah.dlid = own.sm_lid;
	ah.sl = own.sm_sl & 15;
	return own.sm_lid ? fabric_qp1_emit(&ah, &none, mad) : -ENETUNREACH;
}

/* `asking` is held. */
static int ask_locked(struct packet_port *port, const uint8_t *mad, uint64_t tid)
{
	int ret = -ETIMEDOUT;

	for (unsigned i = 0; i < TRIES && ret == -ETIMEDOUT; i++) {
		pthread_mutex_lock(&sa.lock);
		sa.tid = tid;
		atomic_store(&sa.answered, false);
		pthread_mutex_unlock(&sa.lock);
		ret = send_question(mad);
		if (!ret || ret == -EAGAIN)
			ret = wait_for_answer(port) ? 0 : -ETIMEDOUT;
	}
	pthread_mutex_lock(&sa.lock);
	sa.tid = 0;
	pthread_mutex_unlock(&sa.lock);
	return ret;
}

/* `record`: of the question, then of the answer. *status is that of the answer. */
static int ask(struct packet_port *port, enum mad_method method, uint16_t attr_id, uint64_t mask,
	       uint8_t record[MAD_SA_DATA_BYTES], uint16_t *status)
{
	const struct mad_sa question = { .component_mask = mask };
	struct mad_header h = { .base_version = MAD_BASE_VERSION, .mgmt_class = MAD_CLASS_SUBN_ADM,
				.class_version = MAD_VERSION_SUBN_ADM, .method = (uint8_t)method,
				.attr_id = attr_id };
	uint8_t mad[MAD_BYTES] = { 0 };
	int ret;

	CANCEL_OFF;
	if (getrandom(&h.tid, sizeof(h.tid), 0) != sizeof(h.tid))
		return -errno;
	h.tid |= TID_OWN;
	mad_header_pack(&h, mad);
	mad_sa_pack(&question, mad + MAD_SA_HEADER_AT);
	memcpy(mad + MAD_SA_DATA_AT, record, MAD_SA_DATA_BYTES);
	pthread_mutex_lock(&sa.asking);
	ret = ask_locked(port, mad, h.tid);
	if (!ret) {
		mad_header_unpack(sa.answer, &h);
		*status = h.status;
		memcpy(record, sa.answer + MAD_SA_DATA_AT, MAD_SA_DATA_BYTES);
	}
	pthread_mutex_unlock(&sa.asking);
	return ret;
}

static int own_gid(uint8_t gid[16])
{
	struct ibv_gid_entry entry;
	int ret = hca_gid_by_index(0, &entry);

	if (!ret)
		memcpy(gid, entry.gid.raw, sizeof(entry.gid.raw));
	return ret;
}

/* ---- the questions ---- */

int fabric_sa_path(struct packet_port *port, const union ibv_gid *to, struct hca_subnet_path *path)
{
	struct mad_path_record r = { .reversible = 1, .numb_path = 1 };
	uint8_t record[MAD_SA_DATA_BYTES] = { 0 };
	uint16_t status = 0;
	int ret = own_gid(r.sgid);

	if (ret)
		return ret;
	memcpy(r.dgid, to->raw, sizeof(r.dgid));
	mad_path_record_pack(&r, record);
	ret = ask(port, MAD_GET, MAD_ATTR_PATH_RECORD,
		  MAD_COMPONENT(MAD_PATH_DGID) | MAD_COMPONENT(MAD_PATH_SGID) |
			  MAD_COMPONENT(MAD_PATH_REVERSIBLE) | MAD_COMPONENT(MAD_PATH_NUMB_PATH),
		  record, &status);
	if (ret)
		return ret;
	if (status) {
		log_warn("subnet administration knows no path: status 0x%x", status);
		return -EHOSTUNREACH;
	}
	mad_path_record_unpack(record, &r);
	*path = (struct hca_subnet_path){ .lid = r.dlid, .sl = r.sl & 15, .mtu = r.mtu, .rate = r.rate,
					  .packet_life = r.packet_life };
	return 0;
}

int fabric_sa_join(struct packet_port *port, const union ibv_gid *mgid, bool sends_only,
		   struct hca_subnet_path *path)
{
	/* The last five are those by which a group is made that is not there. */
	const uint64_t mask = MAD_COMPONENT(MAD_MC_MGID) | MAD_COMPONENT(MAD_MC_PORT_GID) |
			      MAD_COMPONENT(MAD_MC_JOIN_STATE) | MAD_COMPONENT(MAD_MC_QKEY) |
			      MAD_COMPONENT(MAD_MC_PKEY) | MAD_COMPONENT(MAD_MC_SL) |
			      MAD_COMPONENT(MAD_MC_TCLASS) | MAD_COMPONENT(MAD_MC_FLOW_LABEL);
	struct mad_mc_member_record r = {
		.qkey = GROUP_QKEY, .pkey = hca_subnet_pkey(0),
		.join_state = sends_only ? MAD_JOIN_SEND_ONLY : MAD_JOIN_FULL,
	};
	uint8_t record[MAD_SA_DATA_BYTES] = { 0 };
	uint16_t status = 0;
	int ret = own_gid(r.port_gid);

	if (ret)
		return ret;
	memcpy(r.mgid, mgid->raw, sizeof(r.mgid));
	mad_mc_member_record_pack(&r, record);
	ret = ask(port, MAD_SET, MAD_ATTR_MC_MEMBER_RECORD, mask, record, &status);
	if (ret)
		return ret;
	if (status) {
		log_warn("subnet administration refuses a group: status 0x%x", status);
		return -EHOSTUNREACH;
	}
	mad_mc_member_record_unpack(record, &r);
	*path = (struct hca_subnet_path){ .lid = r.mlid, .sl = r.sl & 15, .mtu = r.mtu, .rate = r.rate,
					  .packet_life = r.packet_life };
	return 0;
}
