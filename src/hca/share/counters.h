/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of queue pairs and of the process, in the shared segment: processes that may
 * map the segment read them without a request (inspect.h).
 *
 * Only the owner writes. Counters per message are changed under a lock that the writer
 * holds anyway, so they are plain additions on a line that no other thread writes: a QP's
 * transmit part under its sq_lock, its receive part under the consume_lock of its receive
 * queue. Other processes read through the kernel, which copies aligned words as a whole.
 * Rare events are added atomically, because they happen under different locks.
 */
#ifndef HCA_COUNTERS_H
#define HCA_COUNTERS_H

#include <stdint.h>

#include "util/container_of.h"

/*
 * X(name, index, text of JSON and tables). Eight counters are a cache line; the transmit and
 * the receive part share none. Operations: the index of the messages is twice the opcode
 * (opcode.h), the next index is that of their bytes, so no table is needed.
 */
#define HCA_QP_COUNTER_LIST(X)                                  \
	X(TX_WRITES, 0, "tx_write_messages")                    \
	X(TX_WRITE_BYTES, 1, "tx_write_bytes")                  \
	X(TX_WRITES_IMM, 2, "tx_write_imm_messages")            \
	X(TX_WRITE_IMM_BYTES, 3, "tx_write_imm_bytes")          \
	X(TX_SENDS, 4, "tx_send_messages")                      \
	X(TX_SEND_BYTES, 5, "tx_send_bytes")                    \
	X(TX_SENDS_IMM, 6, "tx_send_imm_messages")              \
	X(TX_SEND_IMM_BYTES, 7, "tx_send_imm_bytes")            \
	X(TX_READS, 8, "tx_read_messages")                      \
	X(TX_READ_BYTES, 9, "tx_read_bytes")                    \
	X(TX_COMPARE_SWAPS, 10, "tx_compare_swap_messages")     \
	X(TX_COMPARE_SWAP_BYTES, 11, "tx_compare_swap_bytes")   \
	X(TX_FETCH_ADDS, 12, "tx_fetch_add_messages")           \
	X(TX_FETCH_ADD_BYTES, 13, "tx_fetch_add_bytes")         \
	X(TX_INVALIDATES, 14, "tx_invalidate_requests")         \
	X(TX_BINDS, 16, "tx_bind_requests")                     \
	X(TX_SENDS_INV, 18, "tx_send_inv_messages")             \
	X(TX_SEND_INV_BYTES, 19, "tx_send_inv_bytes")           \
	X(TX_ATOMIC_WRITES, 22, "tx_atomic_write_messages")     \
	X(TX_ATOMIC_WRITE_BYTES, 23, "tx_atomic_write_bytes")   \
	/* Rare. */                                             \
	X(TX_RETRIES, 24, "tx_retries")                         \
	X(TX_REPEATED, 25, "tx_repeated_messages")              \
	X(TX_RNR_RECEIVED, 26, "tx_rnr_received")               \
	X(TX_NAKS_RECEIVED, 27, "tx_naks_received")             \
	X(TX_GIVEN_UP, 28, "tx_given_up")                       \
	X(TX_ERRORS, 29, "tx_local_errors")                     \
	X(TX_FLUSHED, 30, "tx_flushed")                         \
	X(TX_LOST, 31, "tx_lost_messages")                      \
	/* Receive part. */                                     \
	X(RX_SENDS, 32, "rx_send_messages")                     \
	X(RX_SEND_BYTES, 33, "rx_send_bytes")                   \
	X(RX_WRITES_IMM, 34, "rx_write_imm_messages")           \
	X(RX_WRITE_IMM_BYTES, 35, "rx_write_imm_bytes")         \
	X(RX_ATOMICS, 36, "rx_atomic_messages")                 \
	/* Rare, of the transmit part, which has no more room. */ \
	X(TX_TIMEOUTS, 37, "tx_timeouts")                       \
	X(TX_GAPS, 38, "tx_gaps")                               \
	/* Rare. */                                             \
	X(RX_RNR_SENT, 40, "rx_rnr_sent")                       \
	X(RX_NAKS_SENT, 41, "rx_naks_sent")                     \
	X(RX_DROPPED, 42, "rx_dropped_messages")                \
	X(RX_ACCESS_FAULTS, 43, "rx_access_faults")             \
	X(RX_ERRORS, 44, "rx_local_errors")                     \
	X(RX_FLUSHED, 45, "rx_flushed")                         \
	X(ASYNC_EVENTS, 46, "async_events")                     \
	X(PAGE_FAULTS, 47, "page_faults")

/* Gauges are present values; all others count up from the opening of the device. */
#define HCA_PROCESS_COUNTER_LIST(X)                             \
	X(MRS, 0, "memory_regions")                             \
	X(MR_BYTES, 1, "registered_bytes")                      \
	X(MRS_REGISTERED, 2, "registrations")                   \
	X(QPS_CREATED, 3, "qps_created")                        \
	X(LINKS_UP, 4, "links_up")                              \
	X(LINKS_DOWN, 5, "links_down")                          \
	X(LINKS_BROKEN, 6, "links_broken")                      \
	X(UNKNOWN_QP, 7, "messages_to_no_qp")                   \
	X(KICKS_SENT, 8, "kicks_sent")                          \
	X(KICKS_RECEIVED, 9, "kicks_received")                  \
	X(CQ_EVENTS, 10, "cq_events")                           \
	X(PROCESS_ASYNC_EVENTS, 11, "async_events")             \
	X(CQ_OVERRUNS, 12, "cq_overruns")                       \
	/* Packets from the network that were dropped. */       \
	X(BAD_ICRC, 13, "packets_bad_icrc")                     \
	X(BAD_PACKETS, 14, "packets_malformed")                 \
	X(STRANGERS, 15, "packets_from_strangers")              \
	/* Written at each poll or tick: a line of their own. */ \
	X(POLLS, 16, "polls")                                   \
	X(TICKS, 17, "progress_ticks")                          \
	X(WRONG_QKEYS, 18, "packets_wrong_qkey")                \
	/* Faults that were asked for, on streams. */           \
	X(FPDUS_DELAYED, 19, "fpdus_delayed")                   \
	X(FPDUS_CORRUPTED, 20, "fpdus_corrupted")               \
	X(STREAMS_STALLED, 21, "streams_stalled")               \
	X(STREAMS_CUT, 22, "streams_cut")                       \
	X(STREAMS_RESET, 23, "streams_reset")

#define HCA_COUNTER_ENTRY(name, place, text) HCA_##name = (place),
enum hca_qp_counter {
	HCA_QP_COUNTER_LIST(HCA_COUNTER_ENTRY)
	HCA_QP_COUNTERS = 48,
};

enum hca_process_counter {
	HCA_PROCESS_COUNTER_LIST(HCA_COUNTER_ENTRY)
	HCA_PROCESS_COUNTERS = 24,
};
#undef HCA_COUNTER_ENTRY

/* Names by index; NULL: there is no such counter. */
extern const char *const hca_qp_counter_names[HCA_QP_COUNTERS];
extern const char *const hca_process_counter_names[HCA_PROCESS_COUNTERS];

struct hca_qp_counters {
	cache_aligned uint64_t at[HCA_QP_COUNTERS];
};

struct hca_process_counters {
	cache_aligned uint64_t at[HCA_PROCESS_COUNTERS];
};

/* Per message; the lock of the part is held. */
#define HCA_COUNT(qp, counter, n) ((qp)->counters->at[HCA_##counter] += (n))
/* For rare events, or without that lock. */
#define HCA_COUNT_RARE(qp, counter, n)                                   \
	__atomic_fetch_add(&(qp)->counters->at[HCA_##counter], (n),      \
			   __ATOMIC_RELAXED)
/* Of the process; only while a device is open. */
#define HCA_COUNT_PROCESS(counter, n)                                    \
	__atomic_fetch_add(&hca_process.segment->counters.at[HCA_##counter], \
			   (n), __ATOMIC_RELAXED)

/* A successful completion of the send queue; sq_lock is held. */
#define HCA_COUNT_SENT(qp, opcode, bytes)                                \
	do {                                                             \
		uint64_t *op_ = &(qp)->counters->at[2 * (size_t)(opcode)]; \
		op_[0]++;                                                \
		op_[1] += (bytes);                                       \
	} while (0)

/* A message that used up a receive; consume_lock is held. `write` is 1 for a
 * WRITE with immediate, else 0. */
#define HCA_COUNT_RECEIVED(qp, write, bytes)                             \
	do {                                                             \
		uint64_t *op_ = &(qp)->counters->at[HCA_RX_SENDS +       \
						    2 * (size_t)(write)]; \
		op_[0]++;                                                \
		op_[1] += (bytes);                                       \
	} while (0)

struct hca_qp;
struct hca_srq;

/* A completion of the send queue with an error, by its status. */
void hca_count_failed(struct hca_qp *qp, unsigned status);
/* Before the QP's number is published: sets the counters to zero. */
void hca_counters_reset(struct hca_qp *qp);
/* Before the QP's number is free again: adds the counters to those of the process. */
void hca_counters_retire(struct hca_qp *qp);
/* The same for an XRC SRQ, which counts what targets of other processes received. */
void hca_counters_retire_srq(struct hca_srq *srq);

#endif
