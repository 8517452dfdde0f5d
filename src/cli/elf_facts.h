/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `busbar exec` must know of a program file before it starts it: whether
 * the dynamic loader will look at LD_LIBRARY_PATH at all. Reads files only.
 */
#ifndef CLI_ELF_FACTS_H
#define CLI_ELF_FACTS_H

#include <stdbool.h>
#include <stddef.h>

struct elf_facts {
	bool elf;        /* an ELF file of this machine's word size */
	bool foreign;    /* an ELF file of another word size or machine */
	bool linked;     /* asks for a dynamic loader */
	bool rpath;      /* DT_RPATH without DT_RUNPATH: beats LD_LIBRARY_PATH */
	bool secure;     /* set-user-id, set-group-id or file capabilities */
};

/* 0, or the negative errno of opening or reading `path`. */
int elf_facts_read(const char *path, struct elf_facts *facts);

/*
 * Versions N of the nodes IBVERBS_PRIVATE_N in a library, up to `max`; returns
 * how many there are (0 also when the file cannot be read).
 */
unsigned elf_private_versions(const char *path, unsigned versions[],
			      unsigned max);

#endif
