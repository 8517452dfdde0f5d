/* SPDX-License-Identifier: BSD-2-Clause */
/* The path of a queue pair (path.h): none, opened, closed. */
#ifndef HCA_ROUTE_H
#define HCA_ROUTE_H

struct hca_destination;
struct hca_qp;

/* Sets the table whose functions do nothing. sq_lock is held, or no other thread knows the QP. */
void hca_path_none(struct hca_qp *qp);
/* Chooses a transport and opens the path. If no transport reaches the destination, the first
 * one is used, which then reports the error. 0, or a negative errno: the QP has no path;
 * -EINVAL: it has one already, or another thread is opening one. No lock is held. */
int hca_path_open(struct hca_qp *qp, const struct hca_destination *to);
/* The same with the transport of an RNIC's queue pairs. */
int hca_path_open_stream(struct hca_qp *qp);
/* Closes the path; afterwards no transport holds a reference to the QP. No lock is held. */
void hca_path_close(struct hca_qp *qp);

/* See hca_transport_ops.expect: calls that of all transports but the one of
 * the path. No lock
 * is held. */
void hca_path_expect(struct hca_qp *qp);

#endif
