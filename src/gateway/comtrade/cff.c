/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a single file. Each begins with a line such as
 *
 *   --- file type: CFG ---
 *   --- file type: DAT BINARY: 4214 ---
 *
 * Writers differ in the dashes, the colons and the blanks; the words count.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "gateway/comtrade/comtrade.h"
#include "gateway/comtrade/fields.h"
#include "util/num.h"

/* The next word, without what surrounds words here. */
static struct piece next_word(struct piece *line)
{
	struct piece word;

	while (line->at < line->end && !isalnum((unsigned char)*line->at))
		line->at++;
	word.at = line->at;
	while (line->at < line->end && isalnum((unsigned char)*line->at))
		line->at++;
	word.end = line->at;
	return word;
}

static bool is_word(struct piece p, const char *word)
{
	return piece_len(p) == strlen(word) &&
	       !strncasecmp(p.at, word, piece_len(p));
}

/* Whether the line begins a part; then `line` is what follows "file type". */
static bool begins_part(struct piece *line)
{
	*line = piece_trim(*line);
	if (piece_len(*line) < 2 || memcmp(line->at, "--", 2))
		return false;
	return is_word(next_word(line), "file") && is_word(next_word(line), "type");
}

/* The type and the number of bytes; both may be missing. */
static void parse_dat(struct piece line, struct comtrade_cff *parts)
{
	struct piece word = next_word(&line);

	parts->data = comtrade_data_parse(word.at, word.end);
	if (parts->data >= 0)
		word = next_word(&line);
	/* A writer that could not seek back has written 0. */
	parts->has_size = piece_to_u64(word, &parts->dat_size) &&
			  parts->dat_size > 0;
}

int comtrade_cff_find(const char *buf, size_t len, struct comtrade_cff *parts,
		      struct comtrade_error *err)
{
	const char *at = buf, *end = buf + len, *start;
	bool inside = false, seen = false;
	unsigned count = 0;
	struct piece line, word;

	memset(parts, 0, sizeof(*parts));
	if (len >= 3 && !memcmp(buf, "\xef\xbb\xbf", 3))
		at += 3;
	for (;;) {
		start = at;
		/* A line counts when it is whole, with the LF of its CR LF. */
		if (!memchr(at, '\n', (size_t)(end - at)) ||
		    !piece_next_line(&at, end, &line))
			return 0;
		count++;
		if (!begins_part(&line)) {
			if (!seen && piece_len(piece_trim(line)))
				return comtrade_fail(err, count,
					"is not the beginning of a single file, '--- file type: CFG ---'");
			continue;
		}
		seen = true;
		if (inside)
			parts->cfg_end = (size_t)(start - buf);
		inside = false;
		word = next_word(&line);
		if (is_word(word, "CFG")) {
			inside = true;
			parts->cfg_start = (size_t)(at - buf);
			parts->cfg_line = count;
		} else if (is_word(word, "DAT")) {
			break;
		}
	}
	if (!parts->cfg_start)
		return comtrade_fail(err, count,
				     "the data stand before any configuration");
	parse_dat(line, parts);
	parts->dat_start = (size_t)(at - buf);
	return 1;
}
