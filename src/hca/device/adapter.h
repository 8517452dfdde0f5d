/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter of the process, as long as it has contexts. */
#ifndef HCA_ADAPTER_H
#define HCA_ADAPTER_H

/* The first call starts the adapter; each one needs a hca_process_close(), of which the last one
 * stops the adapter. 0 or a negative errno. They take process.lock. */
int hca_process_open(void);
void hca_process_close(void);

#endif
