/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of the client into a pcapng file, with their virtual times: those that it sends when
 * they leave, also such that get lost behind its adapter, and those that come to it.
 */
#ifndef VIRTUAL_ODP_CAPTURE_H
#define VIRTUAL_ODP_CAPTURE_H

/* From now on, until odp_capture_end(). 0 or a negative errno, logged. */
int odp_capture_begin(const char *path);
void odp_capture_end(void);

#endif
