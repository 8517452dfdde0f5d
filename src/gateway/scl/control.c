/* SPDX-License-Identifier: BSD-2-Clause */
/* What a file says of one control block: names, address, times, and options; see scl.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/scl/scl_file.h"
#include "util/container_of.h"

#define REFERENCE_MAX 129 /* of IEC 61850-8-1 and -9-2 */

static int take_number(struct scl *s, const struct scl_element *e, const char *name,
		       unsigned long max, unsigned long *out, bool *has)
{
	const char *text = scl_attribute(e, name);

	*has = text;
	if (!text || scl_read_number(text, 10, max, out))
		return 0;
	return scl_fail(s, e->line, "%s \"%.40s\" is no number up to %lu", name, text, max);
}

static int take_flag(struct scl *s, const struct scl_element *e, const char *name, bool *out)
{
	const char *text = scl_text_of(e, name);

	*out = !strcmp(text, "true") || !strcmp(text, "1");
	if (*out || !*text || !strcmp(text, "false") || !strcmp(text, "0"))
		return 0;
	return scl_fail(s, e->line, "%s \"%.40s\" is neither true nor false", name, text);
}

/* ---- names ---- */

/* "BAY1LD0/LLN0$GO$trip" and "BAY1LD0/LLN0$set". */
static int make_references(struct scl *s, struct scl_control *c)
{
	const struct scl_element *device = scl_around(c->node, "LDevice");
	const char *name = scl_attribute(device, "ldName"), *node = scl_node_name(s, c->node);
	const char *set = scl_attribute(c->element, "datSet");

	if (!name)
		name = scl_tree_print(&s->tree, "%s%s", c->ied, scl_text_of(device, "inst"));
	if (!name || !node)
		return scl_fail_memory(s);
	if (!set || !*set)
		return scl_fail(s, c->line, "control block '%.100s' has no data set (datSet)",
				c->path);
	c->reference = scl_tree_print(&s->tree, "%s/%s$%s$%s", name, node,
				      c->kind == SCL_GOOSE ? "GO" : "MS",
				      scl_attribute(c->element, "name"));
	c->dataset = scl_tree_print(&s->tree, "%s/%s$%s", name, node, set);
	if (!c->reference || !c->dataset)
		return scl_fail_memory(s);
	if (strlen(c->reference) > REFERENCE_MAX || strlen(c->dataset) > REFERENCE_MAX)
		return scl_fail(s, c->line, "the reference '%.150s' is longer than %d bytes",
				c->reference,
				REFERENCE_MAX);
	c->id = scl_attribute(c->element, c->kind == SCL_GOOSE ? "appID" : "smvID");
	if (!c->id || !*c->id)
		return scl_fail(s, c->line, "control block '%.100s' has no %s", c->path,
				c->kind == SCL_GOOSE ? "appID (goID)" : "smvID");
	if (strlen(c->id) > REFERENCE_MAX)
		return scl_fail(s, c->line, "'%.150s' is longer than %d bytes", c->id,
				REFERENCE_MAX);
	return 0;
}

static int check_security(struct scl *s, struct scl_control *c)
{
	const char *security = scl_text_of(c->element, "securityEnable");

	if (!*security || !strcmp(security, "None"))
		return 0;
	return scl_fail(s, c->line,
			"control block '%.100s' asks for messages that are signed (securityEnable \"%.40s\"), which is not supported",
			c->path, security);
}

static int read_names(struct scl *s, struct scl_control *c)
{
	const char *type = scl_text_of(c->element, "type");
	const struct scl_element *protocol = scl_child(c->element, "Protocol", NULL);
	unsigned long revision;
	int ret = make_references(s, c);

	if (!ret)
		ret = take_number(s, c->element, "confRev", UINT32_MAX, &revision,
				  &c->has_revision);
	if (ret)
		return ret;
	if (c->has_revision)
		c->revision = (uint32_t)revision;
	if (protocol)
		c->protocol = protocol->text;
	if (c->kind == SCL_GOOSE && *type && strcmp(type, "GOOSE"))
		return scl_fail(s, c->line, "control block '%.100s' is of type %.40s, not GOOSE",
				c->path, type);
	if (take_flag(s, c->element, "fixedOffs", &c->fixed_offsets))
		return -EINVAL;
	return check_security(s, c);
}

/* ---- the address ---- */

/* "01-0C-CD-01-00-01" */
static bool is_mac(const char *text)
{
	for (unsigned i = 0; i < 17; i++)
		if (i % 3 == 2 ? text[i] != '-' : !text[i] ||
		    !strchr("0123456789abcdefABCDEF", text[i]))
			return false;
	return !text[17];
}

static int take_address_part(struct scl *s, struct scl_control *c, const struct scl_element *p)
{
	const char *type = scl_text_of(p, "type"), *text = p->text ? p->text : "";
	unsigned long number;
	bool again = false;

	if (!strcmp(type, "MAC-Address")) {
		again = c->mac;
		c->mac = text;
		if (!is_mac(text))
			return scl_fail(s, p->line,
					"MAC-Address \"%.40s\" is none such as 01-0C-CD-01-00-01", text);
	} else if (!strcmp(type, "IP")) {
		again = c->ip;
		c->ip = text;
	} else if (!strcmp(type, "APPID")) {
		again = c->has_appid;
		c->has_appid = scl_read_number(text, 16, 0xffff, &number);
		if (!c->has_appid)
			return scl_fail(s, p->line,
					"APPID \"%.40s\" is no hexadecimal number up to FFFF", text);
		c->appid = (uint16_t)number;
	} else if (!strcmp(type, "VLAN-ID")) {
		again = c->has_vlan_id;
		c->has_vlan_id = scl_read_number(text, 16, 0xffe, &number);
		if (!c->has_vlan_id)
			return scl_fail(s, p->line,
					"VLAN-ID \"%.40s\" is no hexadecimal number up to FFE", text);
		c->vlan_id = (uint16_t)number;
	} else if (!strcmp(type, "VLAN-PRIORITY")) {
		again = c->has_vlan_priority;
		c->has_vlan_priority = scl_read_number(text, 10, 7, &number);
		if (!c->has_vlan_priority)
			return scl_fail(s, p->line, "VLAN-PRIORITY \"%.40s\" is no number up to 7",
					text);
		c->vlan_priority = (uint8_t)number;
	}
	return again ? scl_fail(s, p->line, "the address has a second %.40s", type) : 0;
}

/* MinTime and MaxTime: seconds with a multiplier. A publisher would send without a pause if they
 * were too short. */
#define TIME_MAX_S 3600
#define MIN_TIME_MIN_S 0.0001
#define MAX_TIME_MIN_S 0.001

static int take_time(struct scl *s, const struct scl_element *at, const char *name, double min_s,
		     double *out)
{
	const struct scl_element *e = scl_child(at, name, NULL);
	const char *unit = scl_text_of(e, "unit"), *multiplier = scl_text_of(e, "multiplier");
	const char *text = e && e->text ? e->text : "";
	char *end;

	if (!e)
		return 0;
	*out = strtod(text, &end);
	/* strtod() takes hexadecimal numbers, too. */
	if (end == text || *end || strpbrk(text, "xX") || !(*out > 0))
		return scl_fail(s, e->line, "%s \"%.40s\" is no time", name, text);
	if (*unit && strcmp(unit, "s"))
		return scl_fail(s, e->line, "%s has the unit \"%.20s\", which is not s", name,
				unit);
	if (!strcmp(multiplier, "m"))
		*out /= 1e3;
	else if (!strcmp(multiplier, "u") || !strcmp(multiplier, "\xc2\xb5"))
		*out /= 1e6;
	else if (*multiplier)
		return scl_fail(s, e->line,
				"%s has the multiplier \"%.20s\", which is none of m and u", name,
				multiplier);
	if (*out < min_s || *out > TIME_MAX_S)
		return scl_fail(s, e->line, "%s is %g s, which is not from %g s to %d s", name, *out,
				min_s, TIME_MAX_S);
	return 0;
}

static bool is_address_of(const struct scl_element *e, const struct scl_control *c)
{
	return !strcmp(scl_text_of(e, "ldInst"), scl_text_of(c->node->parent, "inst")) &&
	       !strcmp(scl_text_of(e, "cbName"), scl_text_of(c->element, "name"));
}

static int find_in_point(struct scl *s, const struct scl_control *c,
			 const struct scl_element *point,
			 const struct scl_element **found)
{
	const char *name = c->kind == SCL_GOOSE ? "GSE" : "SMV";
	struct scl_element *e = NULL;
	unsigned long looks = 0;

	while ((e = scl_child(point, name, e))) {
		looks++;
		if (!is_address_of(e, c))
			continue;
		if (*found)
			return scl_fail(s, e->line,
					"a second address of control block '%.100s' of IED %.80s, which has one in line %u, too",
					c->path, c->ied, (*found)->line);
		*found = e;
	}
	return scl_note_looks(s, point->line, looks);
}

/* The GSE or SMV of the control block; NULL: the file has none. */
static int find_address(struct scl *s, const struct scl_control *c,
			const struct scl_element **found)
{
	const struct scl_element *all = scl_child(s->tree.root, "Communication", NULL);
	const char *access = scl_text_of(scl_around(c->node, "AccessPoint"), "name");
	struct scl_element *net = NULL, *point;
	int ret = 0;

	*found = NULL;
	while (all && !ret && (net = scl_child(all, "SubNetwork", net)))
		for (point = NULL; !ret && (point = scl_child(net, "ConnectedAP", point));)
			if (!strcmp(scl_text_of(point, "iedName"), c->ied) &&
			    !strcmp(scl_text_of(point, "apName"), access))
				ret = find_in_point(s, c, point, found);
	return ret;
}

static int read_address(struct scl *s, struct scl_control *c)
{
	const struct scl_element *at, *address;
	struct scl_element *p = NULL;
	int ret = find_address(s, c, &at);

	if (ret || !at)
		return ret;
	c->address_line = at->line;
	address = scl_child(at, "Address", NULL);
	while (address && !ret && (p = scl_child(address, "P", p)))
		ret = take_address_part(s, c, p);
	ret = ret ? ret : take_time(s, at, "MinTime", MIN_TIME_MIN_S, &c->min_s);
	ret = ret ? ret : take_time(s, at, "MaxTime", MAX_TIME_MIN_S, &c->max_s);
	if (!ret && c->min_s > 0 && c->max_s > 0 && c->min_s > c->max_s)
		return scl_fail(s, at->line, "MinTime is longer than MaxTime");
	return ret;
}

/* ---- sampled values ---- */

static int read_mode(struct scl *s, struct scl_control *c)
{
	static const char *const modes[] = { "SmpPerPeriod", "SmpPerSec", "SecPerSmp" };
	const char *mode = scl_attribute(c->element, "smpMod");

	for (size_t i = 0; mode && i < ARRAY_SIZE(modes); i++)
		if (!strcmp(mode, modes[i])) {
			c->mode = (uint8_t)i;
			return 0;
		}
	return mode ? scl_fail(s, c->line,
			       "smpMod \"%.40s\" is none of SmpPerPeriod, SmpPerSec and SecPerSmp",
			       mode) : 0;
}

static int read_sampling(struct scl *s, struct scl_control *c)
{
	const struct scl_element *options = scl_child(c->element, "SmvOpts", NULL);
	unsigned long rate = 0, asdus = 0;
	bool has_rate, has_asdus, is_signed = false;
	const char *multicast = scl_text_of(c->element, "multicast");
	int ret = take_number(s, c->element, "smpRate", UINT16_MAX, &rate, &has_rate);

	ret = ret ? ret : take_number(s, c->element, "nofASDU", UINT8_MAX, &asdus, &has_asdus);
	ret = ret ? ret : read_mode(s, c);
	if (ret)
		return ret;
	if (!has_rate || !rate || !has_asdus || !asdus)
		return scl_fail(s, c->line, "control block '%.100s' has no %s, or it is 0", c->path,
				has_rate && rate ? "nofASDU" : "smpRate");
	if (!strcmp(multicast, "false") || !strcmp(multicast, "0"))
		return scl_fail(s, c->line,
				"control block '%.100s' is for one client (multicast), which is not supported",
				c->path);
	c->rate = (uint16_t)rate;
	c->asdus = (uint8_t)asdus;
	if (!options)
		return 0;
	ret = take_flag(s, options, "refreshTime", &c->with_time);
	ret = ret ? ret : take_flag(s, options, "sampleRate", &c->with_rate);
	ret = ret ? ret : take_flag(s, options, "dataSet", &c->with_dataset);
	ret = ret ? ret : take_flag(s, options, "security", &is_signed);
	if (!ret && is_signed)
		return scl_fail(s, options->line,
				"control block '%.100s' asks for messages that are signed (security), which is not supported",
				c->path);
	return ret;
}

int scl_control_read(struct scl *s, struct scl_control *c, char why[SCL_WHY_MAX])
{
	struct scl_element *set = NULL;
	int ret;

	s->why = why;
	/* As before, if it is read a second time. */
	*c = (struct scl_control){ .kind = c->kind, .ied = c->ied, .path = c->path, .line = c->line,
				   .element = c->element, .node = c->node };
	ret = scl_note_looks(s, c->line, 0) ?: read_names(s, c);
	ret = ret ? ret : read_address(s, c);
	if (!ret && c->kind == SCL_SAMPLED_VALUES)
		ret = read_sampling(s, c);
	ret = ret ? ret : scl_find_one(s, c->node, "DataSet", "name",
				       scl_text_of(c->element, "datSet"), &set);
	if (!ret && !set)
		return scl_fail(s, c->line,
				"control block '%.100s' names data set '%.80s', which its logical node does not have",
				c->path, scl_text_of(c->element, "datSet"));
	return ret ? ret : scl_read_data(s, c, set);
}
