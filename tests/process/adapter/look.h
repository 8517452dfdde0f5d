/* SPDX-License-Identifier: BSD-2-Clause */
/* Looking at the processes of the adapter, as `busbar devices` does. */
#ifndef ADAPTER_LOOK_H
#define ADAPTER_LOOK_H

#include "hca/inspect.h"
#include "pair.h"

/* A copy of what is there now; the test fails when it cannot be had. */
struct hca_view *look(void);
void look_free(struct hca_view *v);
/* An inspector that is kept, for several looks. */
struct hca_inspector *look_open(void);
struct hca_view *look_again(struct hca_inspector *in);
void look_close(struct hca_inspector *in);

pid_t side_pid(const struct side *s);
/* NULL: not there. */
const struct hca_process_view *look_find(const struct hca_view *v, pid_t pid);
/* Process or QP of a side; the test fails when it is not shown. */
struct hca_process_view look_process(const struct side *s); /* no lists */
struct hca_qp_view look_qp(const struct side *s, int qp);

#endif
