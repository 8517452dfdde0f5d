/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads ELF headers of programs and libraries; see elf_facts.h. */
#include "cli/elf_facts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#elif defined(__riscv)
#define OWN_MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define OWN_MACHINE EM_PPC64
#else
#define OWN_MACHINE EM_NONE
#endif

struct file {
	const uint8_t *bytes;
	size_t size;
	mode_t mode;
};

static int map_file(const char *path, struct file *f)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat st;
	void *addr;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size == 0) {
		err = -EINVAL;
		goto out_close;
	}
	addr = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (addr == MAP_FAILED) {
		err = -errno;
		goto out_close;
	}
	*f = (struct file){ addr, (size_t)st.st_size, st.st_mode };
out_close:
	close(fd);
	return err;
}

static void unmap_file(struct file *f)
{
	munmap((void *)(uintptr_t)f->bytes, f->size);
}

/* The bytes [offset, offset + len) of the file; NULL: they are not inside of it. */
static const void *piece(const struct file *f, uint64_t offset, uint64_t len)
{
	if (offset > f->size || len > f->size - offset)
		return NULL;
	return f->bytes + offset;
}

static bool dynamic_has_rpath(const struct file *f, const ElfW(Phdr) *ph)
{
	bool rpath = false, runpath = false;
	uint64_t count = ph->p_filesz / sizeof(ElfW(Dyn));

	for (uint64_t i = 0; i < count; i++) {
		const void *at = piece(f, ph->p_offset + i * sizeof(ElfW(Dyn)),
				       sizeof(ElfW(Dyn)));
		ElfW(Dyn) d;

		if (!at)
			break;
		memcpy(&d, at, sizeof(d));
		if (d.d_tag == DT_NULL)
			break;
		rpath |= d.d_tag == DT_RPATH;
		runpath |= d.d_tag == DT_RUNPATH;
	}
	return rpath && !runpath;
}

static void read_headers(const struct file *f, struct elf_facts *facts)
{
	const int own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
	ElfW(Ehdr) eh;

	if (f->size < sizeof(eh) || memcmp(f->bytes, ELFMAG, SELFMAG))
		return;
	memcpy(&eh, f->bytes, sizeof(eh));
	if (eh.e_ident[EI_CLASS] != own_class ||
	    (OWN_MACHINE != EM_NONE && eh.e_machine != OWN_MACHINE)) {
		facts->foreign = true;
		return;
	}
	facts->elf = true;
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		const void *at = piece(f, eh.e_phoff + (uint64_t)i * eh.e_phentsize,
				       sizeof(ElfW(Phdr)));
		ElfW(Phdr) ph;

		if (!at)
			return;
		memcpy(&ph, at, sizeof(ph));
		if (ph.p_type == PT_INTERP)
			facts->linked = true;
		if (ph.p_type == PT_DYNAMIC)
			facts->rpath = dynamic_has_rpath(f, &ph);
	}
}

int elf_facts_read(const char *path, struct elf_facts *facts)
{
	struct file f;
	int err = map_file(path, &f);

	memset(facts, 0, sizeof(*facts));
	if (err)
		return err;
	facts->secure = (f.mode & (S_ISUID | S_ISGID)) ||
			getxattr(path, "security.capability", NULL, 0) > 0;
	read_headers(&f, facts);
	unmap_file(&f);
	return 0;
}

unsigned elf_private_versions(const char *path, unsigned versions[],
			      unsigned max)
{
	/* The string table has the names as text; the file is searched for them. */
	static const char prefix[] = "IBVERBS_PRIVATE_";
	const size_t len = sizeof(prefix) - 1;
	const uint8_t *at, *end;
	unsigned count = 0;
	struct file f;

	if (map_file(path, &f))
		return 0;
	at = f.bytes;
	end = f.bytes + f.size;
	while (count < max &&
	       (at = memmem(at, (size_t)(end - at), prefix, len))) {
		unsigned n = 0, digits = 0;

		for (at += len; at < end && *at >= '0' && *at <= '9' &&
				digits < 6; at++, digits++)
			n = n * 10 + (unsigned)(*at - '0');
		/* Only terminated names: longer strings may begin in the same way. */
		if (digits && at < end && *at == '\0')
			versions[count++] = n;
	}
	unmap_file(&f);
	return count;
}
