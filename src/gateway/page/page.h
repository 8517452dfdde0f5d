/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of a gateway at "/" of its HTTP server: files in memory, gzip-encoded, made from
 * src/page by pack.py. The server knows nothing of them, nor they of the gateway: the page
 * asks by the requests of control/request.c and by taps, as any client.
 */
#ifndef GATEWAY_PAGE_PAGE_H
#define GATEWAY_PAGE_PAGE_H

#include "gateway/plugin/web.h"

/* Puts the files into the registry (plugin/web.h). Before a server is started. */
void page_offer(void);

/* Of the file that pack.py makes. */
extern const struct web_file page_files[];
extern const size_t page_file_count;

#endif
