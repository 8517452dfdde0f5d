/* SPDX-License-Identifier: BSD-2-Clause */
/* See page.h. */
#include "gateway/page/page.h"

void page_offer(void)
{
	web_files_set(page_files, page_file_count);
}
