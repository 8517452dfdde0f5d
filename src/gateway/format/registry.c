/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All formats, one line each. meson.build defines GATEWAY_FORMAT_<FILE> for
 * every file that is there; csv.c holds both csv and tsv.
 */
#include <stddef.h>
#include <string.h>

#include "gateway/format.h"

extern const struct format_type format_csv, format_tsv, format_villas_human;

const struct format_type *const format_types[] = {
#ifdef GATEWAY_FORMAT_CSV
	&format_csv,
	&format_tsv,
#endif
#ifdef GATEWAY_FORMAT_VILLAS_HUMAN
	&format_villas_human,
#endif
	NULL,
};

const struct format_type *format_type_find(const char *name)
{
	for (size_t i = 0; format_types[i]; i++)
		if (!strcmp(format_types[i]->name, name))
			return format_types[i];
	return NULL;
}
