/* SPDX-License-Identifier: BSD-2-Clause */
/* fixture NAME LINK FORMAT: writes the scene NAME as a capture file to standard output. FORMAT
 * is pcap or pcapng, with a - behind for the other byte order. Without arguments: the names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

int main(int argc, char **argv)
{
	struct scene_file f = { 0 };
	struct scene s;
	uint8_t *bytes;
	size_t size;

	for (int i = 0; argc < 4 && scene_names[i]; i++)
		puts(scene_names[i]);
	if (argc < 4 || !scene_named(argv[1], &s))
		return argc > 1;
	f.link = (uint16_t)atoi(argv[2]);
	f.ng = !strncmp(argv[3], "pcapng", 6);
	f.big = strchr(argv[3], '-');
	bytes = scene_write(&s, &f, &size);
	size = fwrite(bytes, size, 1, stdout);
	free(bytes);
	scene_free(&s);
	return size != 1;
}
