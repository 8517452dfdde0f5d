/* SPDX-License-Identifier: BSD-2-Clause */
/* Places of signals from DBC files: the keys dbc and dbc_signal. */
#define LOG_ROOM "gateway/can"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "gateway/node/can/can.h"
#include "util/text_file.h"

int can_dbc_load(struct dbc *dbc, char **text, struct config *c, const json_t *cfg, const char *path)
{
	char why[DBC_WHY_MAX];
	unsigned line;
	size_t len;
	int ret;

	*text = text_file_read(path, DBC_BYTES_MAX, &len, why, sizeof(why));
	if (!*text) {
		config_fail(c, cfg, "dbc", "%s: %s", path, why);
		return -EINVAL;
	}
	ret = dbc_read(dbc, *text, len, &line, why);
	if (!ret)
		return 0;
	if (ret == -ENOMEM)
		config_fail(c, cfg, "dbc", "no memory for %s", path);
	else
		config_fail(c, cfg, "dbc", "%s:%u: %s", path, line, why);
	dbc_free(dbc);
	free(*text);
	*text = NULL;
	return ret;
}

static bool has_no_room(const struct dbc_signal *mux, const struct dbc_signal *s)
{
	return mux->length < 32 && s->value >> mux->length;
}

/* The signal has to be there once, and to be one that can be read. */
static int choose(struct config *c, const json_t *at, const struct dbc *dbc, const char *name,
		  const struct dbc_message **m, const struct dbc_signal **s)
{
	unsigned found = dbc_find(dbc, name, m, s);

	if (found > 1)
		config_fail(c, at, "dbc_signal", "the DBC file has '%.100s' %u times", name, found);
	else if (!found)
		config_fail(c, at, "dbc_signal",
			    "the DBC file has no '%.100s'; a signal is named MESSAGE.SIGNAL", name);
	else if ((*s)->nested)
		config_fail(c, at, "dbc_signal",
			    "line %u of the DBC file: extended multiplexing, of ranges or in steps, is not supported",
			    (*s)->line);
	else if ((*s)->multiplexed && !dbc_switch(dbc, *m))
		config_fail(c, at, "dbc_signal",
			    "line %u of the DBC file: the message of this multiplexed signal has no multiplexor (M)",
			    (*s)->line);
	else if ((*s)->multiplexed && has_no_room(dbc_switch(dbc, *m), *s))
		config_fail(c, at, "dbc_signal",
			    "line %u of the DBC file: the multiplexor has too few bits for the value %u",
			    (*s)->line, (*s)->value);
	else
		return 0;
	return -EINVAL;
}

static int set_kind(struct can_map *to, struct config *c, const json_t *at, const struct dbc_signal *s,
		    enum signal_type type)
{
	const char *why = NULL;

	to->kind = CAN_INTEGER;
	if (type == SIGNAL_FLOAT)
		to->kind = s->coding ? CAN_REAL : CAN_SCALED;
	else if (type == SIGNAL_BOOLEAN && !s->coding)
		to->kind = CAN_BOOLEAN;
	else if (type == SIGNAL_INTEGER && !s->coding && s->factor == 1 && s->offset == 0)
		to->kind = CAN_INTEGER;
	else
		why = s->coding ? "it is a float" : "it has a factor or an offset";
	if (!why)
		return 0;
	config_fail(c, at, "dbc_signal", "line %u of the DBC file: %s, and needs type = \"float\"",
		    s->line, type == SIGNAL_COMPLEX ? "it is not complex" : why);
	return -EINVAL;
}

int can_map_from_dbc(struct can_map *to, struct config *c, const json_t *at, const struct dbc *dbc,
		     const char *name, enum signal_type type)
{
	const struct dbc_message *m;
	const struct dbc_signal *s, *mux;

	if (!dbc) {
		config_fail(c, at, "dbc_signal", "needs the key dbc of the node");
		return -EINVAL;
	}
	if (choose(c, at, dbc, name, &m, &s) || set_kind(to, c, at, s, type))
		return -EINVAL;
	to->id = m->id;
	to->start = s->start;
	to->length = s->length;
	to->big = s->big;
	to->is_signed = s->is_signed;
	to->factor = s->factor;
	to->offset = s->offset;
	to->min = s->min < s->max ? s->min : -INFINITY;
	to->max = s->min < s->max ? s->max : INFINITY;
	to->frame_length = m->length;
	mux = s->multiplexed ? dbc_switch(dbc, m) : NULL;
	if (mux)
		to->mux = (struct can_switch){ mux->start, mux->length, mux->big, s->value };
	return 0;
}
