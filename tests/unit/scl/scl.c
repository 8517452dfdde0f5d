/* SPDX-License-Identifier: BSD-2-Clause */
/* SCL files: the example is read as it is meant, and each change that makes it wrong is said. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>

#include "gateway/scl/scl.h"
#include "util/container_of.h"

#define TEXT_MAX 100000

extern const struct scl_xml_ops scl_xml;

static char station[TEXT_MAX]; /* the example */

static struct scl *read_good(const char *text)
{
	char why[SCL_WHY_MAX] = "";
	struct scl *s = NULL;

	if (scl_read(&scl_xml, "f.scd", text, strlen(text), &s, why))
		fail_msg("%s", why);
	return s;
}

/* The example with `to` in the place of the first `from`. */
static const char *changed(const char *from, const char *to)
{
	static char text[TEXT_MAX];
	const char *at = strstr(station, from);
	int len;

	if (!at)
		fail_msg("the example has no %s", from);
	len = snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - station), station, to,
		       at + strlen(from));
	assert_true(len > 0 && (size_t)len < sizeof(text));
	return text;
}

static struct scl_control *control(struct scl *s, enum scl_kind kind, const char *path)
{
	char why[SCL_WHY_MAX] = "";
	struct scl_control *c;

	if (scl_find(s, kind, NULL, path, &c, why) || scl_control_read(s, c, why))
		fail_msg("%s", why);
	return c;
}

struct list {
	char text[4000];
};

static int add(void *arg, const struct scl_data *d, const unsigned place[], unsigned depth)
{
	struct list *l = arg;
	size_t used = strlen(l->text);

	used += (size_t)snprintf(l->text + used, sizeof(l->text) - used, "%s %s", d->name, d->basic->name);
	for (unsigned i = 0; i < depth; i++)
		used += (size_t)snprintf(l->text + used, sizeof(l->text) - used, "%c%u", i ? '.' : ' ', place[i]);
	snprintf(l->text + used, sizeof(l->text) - used, "\n");
	return 0;
}

static void has_values(const struct scl_control *c, const char *wanted)
{
	struct list l = { "" };

	assert_int_equal(scl_each_value(c, add, &l), 0);
	assert_string_equal(l.text, wanted);
}

static void reads_a_control_block_of_goose(void **state)
{
	struct scl *s = read_good(station);
	struct scl_control *c = control(s, SCL_GOOSE, "LD0/LLN0.trip");

	assert_string_equal(c->ied, "BAY1");
	assert_string_equal(c->reference, "BAY1LD0/LLN0$GO$trip");
	assert_string_equal(c->dataset, "BAY1LD0/LLN0$protection");
	assert_string_equal(c->id, "BAY1trip");
	assert_string_equal(c->mac, "01-0C-CD-01-00-01");
	/* APPID and VLAN-ID are hexadecimal. */
	assert_true(c->has_appid && c->appid == 0x1001);
	assert_true(c->has_vlan_id && c->vlan_id == 5 && c->has_vlan_priority && c->vlan_priority == 4);
	assert_true(c->has_revision && c->revision == 3);
	assert_true(c->min_s == 0.004 && c->max_s == 1);
	assert_int_equal(c->count, 4);
	has_values(c, "LD0/PTRC1.Tr.general BOOLEAN 0\n"
		      "LD0/PTRC1.Tr.q Quality 1\n"
		      "LD0/MMXU1.A.phsA.cVal.mag.f FLOAT32 2.0.0.0\n"
		      "LD0/MMXU1.A.phsA.cVal.ang.f FLOAT32 2.0.1.0\n"
		      "LD0/MMXU1.A.phsA.q Quality 2.1\n"
		      "LD0/MMXU1.A.phsA.t Timestamp 2.2\n"
		      "LD0/XCBR1.Pos.stVal Dbpos 3\n");
	scl_free(s);
}

static void reads_a_control_block_of_sampled_values(void **state)
{
	struct scl *s = read_good(station);
	struct scl_control *c = control(s, SCL_SAMPLED_VALUES, "MU/LLN0.currents");
	struct scl_sampled *values;
	char why[SCL_WHY_MAX];
	unsigned count;

	assert_string_equal(c->id, "MU01currents");
	assert_true(c->appid == 0x4001 && c->vlan_id == 0x1a && c->revision == 2);
	assert_true(c->mode == 1 && c->rate == 4800 && c->asdus == 2);
	assert_true(c->with_time && c->with_rate && c->with_dataset);
	/* Of CF is nothing in a data object of MX. */
	has_values(c, "MU/I01ATCTR1.AmpSv.instMag.i INT32 0\nMU/I01ATCTR1.AmpSv.q Quality 1\n"
		      "MU/I01BTCTR2.AmpSv.instMag.i INT32 2.0.0\nMU/I01BTCTR2.AmpSv.q Quality 2.1\n");
	assert_int_equal(scl_sampled_values(s, c, &values, &count, why), 0);
	assert_int_equal(count, 2);
	assert_true(values[0].quality && values[1].quality);
	assert_string_equal(values[1].data->name, "MU/I01BTCTR2.AmpSv.instMag.i");
	scl_free(s);
}

static void a_whole_object_has_its_objects_in_their_order(void **state)
{
	struct scl *s = read_good(changed("doName=\"A.phsA\" fc=\"MX\"", "doName=\"A\" fc=\"MX\""));
	struct scl_control *c = control(s, SCL_GOOSE, "LD0/LLN0.trip");

	assert_int_equal(c->data[2].count, 3);
	assert_string_equal(c->data[2].parts[2].name, "LD0/MMXU1.A.phsC");
	assert_int_equal(c->data[2].parts[2].count, 3);
	scl_free(s);
}

static void arrays_have_numbered_members_and_one_can_be_meant(void **state)
{
	struct scl *s = read_good(changed("<BDA name=\"f\" bType=\"FLOAT32\"/>",
					  "<BDA name=\"f\" bType=\"FLOAT32\" count=\"2\"/>"));
	struct scl_control *c = control(s, SCL_GOOSE, "LD0/LLN0.trip");

	assert_true(c->data[2].parts[0].parts[0].parts[0].array);
	assert_string_equal(c->data[2].parts[0].parts[0].parts[0].parts[1].name,
			    "LD0/MMXU1.A.phsA.cVal.mag.f(1)");
	scl_free(s);
	strcpy(station, changed("<SDO name=\"phsA\" type=\"CMV\"/>", "<SDO name=\"phsA\" type=\"CMV\" count=\"3\"/>"));
	s = read_good(changed("doName=\"A.phsA\" fc=\"MX\"", "doName=\"A.phsA\" daName=\"cVal.mag.f\" ix=\"2\" fc=\"MX\""));
	c = control(s, SCL_GOOSE, "LD0/LLN0.trip");
	assert_string_equal(c->data[2].name, "LD0/MMXU1.A.phsA(2).cVal.mag.f");
	assert_string_equal(c->data[2].basic->name, "FLOAT32");
	scl_free(s);
}

static void elements_of_others_are_passed_over(void **state)
{
	struct scl *s = read_good(changed("<GSE ldInst",
		"<Private type=\"x\"><x:GSE xmlns:x=\"urn:x\" ldInst=\"LD0\" cbName=\"trip\"/>"
		"<GSE ldInst=\"LD0\" cbName=\"trip\"/></Private><y:GSE xmlns:y=\"urn:y\" ldInst=\"LD0\" cbName=\"trip\"/>"
		"<GSE xmlns:y=\"urn:y\" y:cbName=\"no\" ldInst"));

	assert_true(control(s, SCL_GOOSE, "LD0/LLN0.trip")->has_appid);
	scl_free(s);
	s = read_good(changed(" xmlns=\"http://www.iec.ch/61850/2003/SCL\"", ""));
	assert_true(control(s, SCL_GOOSE, "LD0/LLN0.trip")->has_appid);
	scl_free(s);
}

static void a_file_may_have_no_addresses(void **state)
{
	struct scl *s = read_good(changed("<ConnectedAP iedName=\"BAY1\"", "<ConnectedAP iedName=\"BAY2\""));
	struct scl_control *c = control(s, SCL_GOOSE, "LD0/LLN0.trip");

	assert_true(!c->address_line && !c->mac && !c->has_appid && !c->has_vlan_id && c->max_s == 0);
	scl_free(s);
}

static void a_path_in_two_devices_needs_the_name_of_one(void **state)
{
	struct scl *s = read_good(changed("<IED name=\"MU01\">",
		"<IED name=\"BAY2\"><AccessPoint name=\"P1\"><Server><LDevice inst=\"LD0\"><LN0 lnClass=\"LLN0\" lnType=\"LLN0\">"
		"<GSEControl name=\"trip\" datSet=\"none\" appID=\"a\"/></LN0></LDevice></Server></AccessPoint></IED><IED name=\"MU01\">"));
	char why[SCL_WHY_MAX] = "";
	struct scl_control *c;

	assert_int_not_equal(scl_find(s, SCL_GOOSE, NULL, "LD0/LLN0.trip", &c, why), 0);
	assert_non_null(strstr(why, "BAY1 and BAY2"));
	assert_int_equal(scl_find(s, SCL_GOOSE, "BAY2", "LD0/LLN0.trip", &c, why), 0);
	assert_int_not_equal(scl_control_read(s, c, why), 0);
	assert_non_null(strstr(why, "names data set 'none', which its logical node does not have"));
	assert_int_not_equal(scl_find(s, SCL_SAMPLED_VALUES, NULL, "LD0/LLN0.trip", &c, why), 0);
	assert_non_null(strstr(why, "it has MU01 MU/LLN0.currents"));
	scl_free(s);
}

/* A change of the example, and what is said then; the line is that of `to`, or `line` behind it. */
static const struct wrong {
	const char *from, *to, *why;
} wrongs[] = {
	/* References that lead nowhere. */
	{ "daName=\"general\"", "daName=\"all\"", "DOType 'ACT' has no DA 'all'" },
	{ "doName=\"Tr\"", "doName=\"Op\"", "LNodeType 'PTRC' has no DO 'Op'" },
	{ "doName=\"A.phsA\"", "doName=\"A.phsD\"", "DOType 'WYE' has no SDO 'phsD'" },
	{ "doName=\"A.phsA\"", "doName=\"A.phsA\" daName=\"cVal.mag.f.x\"", "has no members, and FCDA names 'x'" },
	{ "lnClass=\"XCBR\" lnInst", "lnClass=\"XSWI\" lnInst", "no logical node 'XSWI1'" },
	{ "ldInst=\"LD0\" lnClass=\"XCBR\"", "ldInst=\"LD9\" lnClass=\"XCBR\"", "has no LDevice 'LD9'" },
	{ "lnType=\"PTRC\"", "lnType=\"P\"", "there is no LNodeType 'P'" },
	{ "name=\"Tr\" type=\"ACT\"", "name=\"Tr\" type=\"X\"", "there is no DOType 'X', which DO 'Tr' names" },
	{ "type=\"Vector\"", "type=\"V\"", "there is no DAType 'V', which DA 'cVal' names" },
	{ "datSet=\"protection\"", "datSet=\"x\"", "names data set 'x'" },
	{ "datSet=\"protection\"", "", "has no data set (datSet)" },
	{ "appID=\"BAY1trip\"", "", "has no appID" },
	/* What contradicts itself. */
	{ "daName=\"general\" fc=\"ST\"", "daName=\"general\" fc=\"MX\"", "FCDA has fc MX, but 'general' has fc ST" },
	{ "doName=\"A.phsA\" fc=\"MX\"", "doName=\"A.phsA\" fc=\"ST\"", "has no values with fc ST" },
	{ "daName=\"general\" fc=\"ST\"", "daName=\"general\"", "FCDA has no fc" },
	{ "bType=\"FLOAT32\"", "bType=\"Struct\" type=\"Vector\"", "DAType 'Vector' contains itself" },
	{ "<SDO name=\"phsA\" type=\"CMV\"/>", "<SDO name=\"phsA\" type=\"WYE\"/>", "DOType 'WYE' contains itself" },
	{ "<DAType id=\"Vector\">", "<DAType id=\"Vector\"/><DAType id=\"Vector\">", "a second DAType" },
	{ "<DA name=\"general\"", "<DA name=\"general\" bType=\"INT8\" fc=\"ST\"/><DA name=\"general\"", "a second DA" },
	{ "<DataSet name=\"protection\">", "<DataSet name=\"protection\"/><DataSet name=\"protection\">", "a second DataSet" },
	{ "<GSE ldInst", "<GSE ldInst=\"LD0\" cbName=\"trip\"/><GSE ldInst", "a second address" },
	{ "<GSEControl ", "<GSEControl name=\"trip\"/><GSEControl ", "a second control block" },
	{ "<P type=\"APPID\">", "<P type=\"APPID\">1</P><P type=\"APPID\">", "a second APPID" },
	{ ">4</MinTime>", ">4000</MinTime>", "MinTime is longer than MaxTime" },
	{ "<DataTypeTemplates>", "</SCL><!--", "no element found|not well-formed|unclosed|junk" },
	/* Numbers and words. */
	{ ">1001<", ">10011<", "APPID \"10011\" is no hexadecimal number" },
	{ ">1001<", ">0x11<", "APPID \"0x11\" is no hexadecimal number" },
	{ ">1001<", "><", "APPID \"\" is no hexadecimal number" },
	{ ">01-0C-CD-01-00-01<", ">01-0C-CD-01-00<", "MAC-Address \"01-0C-CD-01-00\"" },
	{ ">01-0C-CD-01-00-01<", ">01-0C-CD-01-00-01-02<", "MAC-Address" },
	{ ">005<", ">FFF<", "VLAN-ID \"FFF\" is no hexadecimal number up to FFE" },
	{ "\"VLAN-PRIORITY\">4<", "\"VLAN-PRIORITY\">8<", "VLAN-PRIORITY \"8\" is no number up to 7" },
	{ ">4</MinTime>", ">soon</MinTime>", "MinTime \"soon\" is no time" },
	{ ">4</MinTime>", ">-4</MinTime>", "is no time" },
	{ ">4</MinTime>", ">0x4</MinTime>", "is no time" },
	{ ">4</MinTime>", ">nan</MinTime>", "is no time" },
	{ ">4</MinTime>", ">1e-9</MinTime>", "MinTime is 1e-12 s, which is not from 0.0001 s to 3600 s" },
	{ ">1000</MaxTime>", ">1e9</MaxTime>", "MaxTime is 1e+06 s" },
	{ ">1000</MaxTime>", ">0.5</MaxTime>", "MaxTime is 0.0005 s, which is not from 0.001 s" },
	{ "multiplier=\"m\">4<", "multiplier=\"k\">4<", "multiplier \"k\"" },
	{ "unit=\"s\" multiplier=\"m\">4<", "unit=\"Hz\">4<", "unit \"Hz\"" },
	{ "confRev=\"3\"", "confRev=\"4294967296\"", "confRev \"4294967296\" is no number" },
	{ "confRev=\"3\"", "confRev=\"-1\"", "confRev \"-1\" is no number" },
	{ "type=\"GOOSE\"", "type=\"GSSE\"", "is of type GSSE, not GOOSE" },
	{ "type=\"GOOSE\"", "fixedOffs=\"maybe\"", "neither true nor false" },
	{ "type=\"GOOSE\"", "securityEnable=\"Signature\"", "messages that are signed" },
	{ "bType=\"FLOAT32\"", "bType=\"FLOAT80\"", "bType \"FLOAT80\" of BDA 'f' is not supported" },
	{ "bType=\"FLOAT32\"", "bType=\"FLOAT32\" count=\"n\"", "count \"n\" of BDA 'f' is no number" },
	{ "bType=\"FLOAT32\"", "bType=\"FLOAT32\" count=\"+2\"", "count \"+2\" of BDA 'f' is no number" },
	{ "bType=\"FLOAT32\"", "bType=\"FLOAT32\" count=\" 2\"", "is no number" },
	{ "bType=\"FLOAT32\"", "bType=\"FLOAT32\" count=\"99999999999999999999\"", "is no number" },
	{ "bType=\"FLOAT32\"", "bType=\"FLOAT32\" count=\"100000\"", "more than 4096" },
	{ "bType=\"FLOAT32\"", "bType=\"FLOAT32\" count=\"3000\"", "the data set has more than 4096 values" },
	{ "daName=\"general\"", "daName=\"general\" ix=\"0\"", "FCDA has ix, but names no array" },
	{ "<SDO name=\"phsA\" type=\"CMV\"/>\n", "<SDO name=\"phsA\" type=\"CMV\" count=\"2\"/>", "" },
	{ "doName=\"A.phsA\"", "doName=\"\"", "empty doName" },
};

/* Of one control block, or of the file. */
static bool read_wrong(const char *text, enum scl_kind kind, const char *path, char why[SCL_WHY_MAX])
{
	struct scl *s = NULL;
	struct scl_control *c;
	int ret = scl_read(&scl_xml, "f.scd", text, strlen(text), &s, why);

	ret = ret ? ret : scl_find(s, kind, NULL, path, &c, why);
	ret = ret ? ret : scl_control_read(s, c, why);
	scl_free(s);
	return ret;
}

static bool says_one_of(const char *why, const char *list)
{
	char copy[200], *rest = copy, *word;

	snprintf(copy, sizeof(copy), "%s", list);
	while ((word = strsep(&rest, "|")))
		if (strstr(why, word))
			return true;
	return false;
}

static void what_is_wrong_is_said_with_file_and_line(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(wrongs); i++) {
		const struct wrong *w = &wrongs[i];
		char why[SCL_WHY_MAX] = "";
		bool wrong = read_wrong(changed(w->from, w->to), SCL_GOOSE, "LD0/LLN0.trip", why);

		if (wrong != (*w->why != '\0') || (wrong && !says_one_of(why, w->why)))
			fail_msg("%s -> %s: '%s', not '%s'", w->from, w->to, why, w->why);
		if (wrong && (strncmp(why, "f.scd:", 6) || atoi(why + 6) < 1))
			fail_msg("no line: %s", why);
	}
}

static void the_line_is_that_of_the_fault(void **state)
{
	char why[SCL_WHY_MAX] = "", wanted[40];
	const char *text = changed(">1001<", ">G<"), *at = strstr(text, ">G<");
	unsigned line = 1;

	for (const char *p = text; p < at; p++)
		line += *p == '\n';
	assert_true(read_wrong(text, SCL_GOOSE, "LD0/LLN0.trip", why));
	snprintf(wanted, sizeof(wanted), "f.scd:%u: APPID", line);
	assert_ptr_equal(strstr(why, wanted), why);
}

static void options_of_sampled_values_are_checked(void **state)
{
	static const struct wrong rows[] = {
		{ "nofASDU=\"2\"", "", "has no nofASDU" },
		{ "nofASDU=\"2\"", "nofASDU=\"0\"", "has no nofASDU" },
		{ "nofASDU=\"2\"", "nofASDU=\"256\"", "is no number up to 255" },
		{ "smpRate=\"4800\"", "", "has no smpRate" },
		{ "SmpPerSec", "SmpPerDay", "smpMod \"SmpPerDay\"" },
		{ "sampleRate=\"true\"", "sampleRate=\"yes\"", "neither true nor false" },
		{ "refreshTime=\"true\"", "security=\"true\"", "messages that are signed" },
		{ "smvID=\"MU01currents\"", "", "has no smvID" },
		{ "nofASDU=\"2\"", "nofASDU=\"2\" multicast=\"false\"", "is for one client" },
	};
	struct scl_sampled *values;
	char why[SCL_WHY_MAX];
	struct scl *s;
	unsigned count;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_true(read_wrong(changed(rows[i].from, rows[i].to), SCL_SAMPLED_VALUES,
				       "MU/LLN0.currents", why));
		if (!strstr(why, rows[i].why))
			fail_msg("%s", why);
	}
	s = read_good(changed("name=\"i\" bType=\"INT32\"", "name=\"i\" bType=\"VisString64\""));
	assert_int_not_equal(scl_sampled_values(s, control(s, SCL_SAMPLED_VALUES, "MU/LLN0.currents"),
						&values, &count, why), 0);
	assert_non_null(strstr(why, "VisString64, which sampled values cannot hold"));
	scl_free(s);
}

static void fails_to_read(const char *text, const char *wanted)
{
	char why[SCL_WHY_MAX] = "";
	struct scl *s;

	assert_int_not_equal(scl_read(&scl_xml, "f.scd", text, strlen(text), &s, why), 0);
	if (!strstr(why, wanted))
		fail_msg("%s, not %s", why, wanted);
}

static void what_is_no_scl_file_is_refused(void **state)
{
	char deep[1000] = "<SCL>";

	for (unsigned i = 0; i < 70; i++)
		strcat(deep, "<Private>");
	fails_to_read(deep, "more than 64 deep");
	fails_to_read("", "f.scd:1: ");
	fails_to_read("<SCL>", "f.scd:1: ");
	fails_to_read("<IED/>", "this is no SCL file");
	fails_to_read("<SCL xmlns='urn:other'/>", "this is no SCL file");
	fails_to_read("<!DOCTYPE SCL [ <!ENTITY a 'aaaaaaaaaa'> <!ENTITY b '&a;&a;&a;'> ]>\n<SCL>&b;</SCL>",
		      "a document type is refused");
	fails_to_read("<!DOCTYPE SCL SYSTEM '/etc/hostname'>\n<SCL/>", "a document type is refused");
	fails_to_read("<SCL>&x;</SCL>", "undefined entity");
	fails_to_read("<SCL><IED name='a'></SCL>", "mismatched tag");
	fails_to_read("<SCL><IED><LDevice><LN0><GSEControl name='a'/></LN0></LDevice></IED></SCL>",
		      "stands in no IED with a name");
}

static void values_that_are_too_long_are_refused(void **state)
{
	char text[3000], letters[SCL_VALUE_MAX + 2], *at;

	memset(letters, 'a', sizeof(letters) - 1);
	letters[sizeof(letters) - 1] = '\0';
	snprintf(text, sizeof(text), "<SCL><IED name='%s'/></SCL>", letters);
	fails_to_read(text, "longer than 1000 bytes");
	snprintf(text, sizeof(text), "<SCL><P>%s</P></SCL>", letters);
	fails_to_read(text, "longer than 1000 bytes");
	at = stpcpy(text, "<SCL><IED ");
	for (unsigned i = 0; i < 101; i++)
		at += sprintf(at, "a%u='' ", i);
	strcpy(at, "/></SCL>");
	fails_to_read(text, "more than 100 attributes");
}

/* Each type has ten members of the next one: a thousand million values. */
static void types_that_grow_without_bound_are_refused(void **state)
{
	char types[8000] = "", why[SCL_WHY_MAX];
	size_t used = 0;

	for (unsigned i = 0; i < 5; i++) {
		used += (size_t)snprintf(types + used, sizeof(types) - used, "<DAType id=\"T%u\">", i);
		for (unsigned k = 0; k < 10; k++)
			used += (size_t)snprintf(types + used, sizeof(types) - used,
						 "<BDA name=\"b%u\" bType=\"Struct\" type=\"T%u\"/>", k, i + 1);
		used += (size_t)snprintf(types + used, sizeof(types) - used, "</DAType>\n");
	}
	snprintf(types + used, sizeof(types) - used,
		 "<DAType id=\"T5\"><BDA name=\"f\" bType=\"FLOAT32\"/></DAType><DAType id=\"Vector\">");
	strcpy(station, changed("<DAType id=\"Vector\">", types));
	assert_true(read_wrong(changed("type=\"Vector\"", "type=\"T1\""), SCL_GOOSE, "LD0/LLN0.trip", why));
	assert_non_null(strstr(why, "more than 4096 values"));
	assert_true(read_wrong(changed("type=\"Vector\"", "type=\"T0\""), SCL_GOOSE, "LD0/LLN0.trip", why));
}

static void put(char **at, const char *text, unsigned times)
{
	while (times--)
		*at = stpcpy(*at, text);
}

/* Each entry of the data set looks for its logical node, of which there are many with long names. */
static void finding_logical_nodes_takes_no_memory(void **state)
{
	enum { NODES = 800, ENTRIES = 2000, LONG = 250 };
	char *text = malloc((NODES + ENTRIES) * 400), *at = text, prefix[LONG + 1], why[SCL_WHY_MAX];
	struct scl_control *c;
	struct scl *s;

	assert_non_null(text);
	memset(prefix, 'p', LONG);
	prefix[LONG] = '\0';
	put(&at, "<SCL><IED name='I'><AccessPoint><Server><LDevice inst='D'><LN0 lnType='N'><DataSet name='s'>", 1);
	put(&at, "<FCDA ldInst='D' lnClass='GGIO' lnInst='1' doName='Ind' daName='stVal' fc='ST'/>\n",
	    ENTRIES);
	put(&at, "</DataSet><GSEControl name='g' datSet='s' appID='g'/></LN0>", 1);
	for (unsigned i = 0; i < NODES; i++)
		at += sprintf(at, "<LN prefix='%s' lnClass='GGIO' inst='%u' lnType='N'/>", prefix, i);
	put(&at, "<LN lnClass='GGIO' inst='1' lnType='N'/></LDevice></Server></AccessPoint></IED><DataTypeTemplates>"
		 "<LNodeType id='N'><DO name='Ind' type='O'/></LNodeType>"
		 "<DOType id='O'><DA name='stVal' bType='BOOLEAN' fc='ST'/></DOType>"
		 "</DataTypeTemplates></SCL>", 1);
	s = read_good(text);
	assert_false(scl_find(s, SCL_GOOSE, NULL, "D/LLN0.g", &c, why));
	if (scl_control_read(s, c, why))
		fail_msg("%s", why);
	assert_int_equal(c->count, ENTRIES);
	scl_free(s);
	free(text);
}

static const char *file;

static int load(void **state)
{
	FILE *f = fopen(file, "re");
	size_t len = f ? fread(station, 1, sizeof(station) - 1, f) : 0;

	station[len] = '\0';
	return f && len ? fclose(f) : -1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(reads_a_control_block_of_goose, load),
		cmocka_unit_test_setup(reads_a_control_block_of_sampled_values, load),
		cmocka_unit_test_setup(a_whole_object_has_its_objects_in_their_order, load),
		cmocka_unit_test_setup(arrays_have_numbered_members_and_one_can_be_meant, load),
		cmocka_unit_test_setup(elements_of_others_are_passed_over, load),
		cmocka_unit_test_setup(a_file_may_have_no_addresses, load),
		cmocka_unit_test_setup(a_path_in_two_devices_needs_the_name_of_one, load),
		cmocka_unit_test_setup(what_is_wrong_is_said_with_file_and_line, load),
		cmocka_unit_test_setup(the_line_is_that_of_the_fault, load),
		cmocka_unit_test_setup(options_of_sampled_values_are_checked, load),
		cmocka_unit_test_setup(what_is_no_scl_file_is_refused, load),
		cmocka_unit_test_setup(values_that_are_too_long_are_refused, load),
		cmocka_unit_test_setup(types_that_grow_without_bound_are_refused, load),
		cmocka_unit_test(finding_logical_nodes_takes_no_memory),
	};

	if (argc != 2)
		return 2;
	file = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
