/* SPDX-License-Identifier: BSD-2-Clause */
/* Inspection of the processes that use the adapter, as `busbar devices` does it. */
#ifndef ADAPTER_LOOK_H
#define ADAPTER_LOOK_H

#include "hca/view/inspect.h"
#include "pair.h"

/* The view of all processes now; the test fails if it cannot be made. */
struct hca_view *look(void);
void look_free(struct hca_view *v);
/* An inspector that is kept, for several looks. */
struct hca_inspector *look_open(void);
struct hca_view *look_again(struct hca_inspector *in);
void look_close(struct hca_inspector *in);

pid_t side_pid(const struct side *s);
/* NULL: the process is not in the view. */
const struct hca_process_view *look_find(const struct hca_view *v, pid_t pid);
/* The process of a side in a view, which is to be freed; the test fails when it is not shown
 * without a problem. */
const struct hca_process_view *look_shown(struct hca_view **v, const struct side *s);
/* Process or QP of a side; the test fails when it is not shown. */
struct hca_process_view look_process(const struct side *s); /* no lists */
struct hca_qp_view look_qp(const struct side *s, int qp);

#endif
