/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DBC files for the node-type can: what they say comes out, whatever other sections stand around
 * it; wrong ones are refused with the line; settings take places, limits and multiplexors from
 * them. That values come out of frames is in can.c and tests/qemu/vcan.py.
 */
#include "fixture.h"

#include <math.h>
#include <unistd.h>

#include "gateway/node/can/can.h"

extern const struct node_type node_can;

static const char drive_text[] =
	"VERSION \"1.0\"\n\n"
	"NS_ :\n\tNS_DESC_\n\tCM_\n\tBA_DEF_\n\tSIG_VALTYPE_\n\n"
	"BS_:\n\n"
	"BU_: ECU Gateway\n Logger\n"
	"VAL_TABLE_ States 1 \"on; BO_ 5\" 0 \"off\" ;\n\n"
	"BO_ 385 Engine: 8 ECU\n"
	" SG_ Speed : 0|16@1- (0.25,0) [-3000|3000] \"rpm\" Gateway,\n  Logger\n"
	" SG_ Oil:23|12@0+ (1,-40) [0|0] \"\xb0""C\"  Gateway\n"
	" SG_ Running : 39|1@1+ (1,0) [0|1] \"\" Vector__XXX\n\n"
	"BO_ 2566868965 Inverter: 8 Vector__XXX\n"
	" SG_ Kind M : 7|4@0+ (1,0) [0|15] \"\" Gateway\n"
	" SG_ Voltage m0 : 8|32@1- (1,0) [0|0] \"V\" Gateway\n"
	" SG_ Current m1 : 8|16@1- (0.1,0) [0|0] \"A\" Gateway\n"
	" SG_ Phase m0x : 1|1@1+ (1,0) [0|0] \"\" Gateway\n";

static const char drive_end[] =
	"BO_ 7 Deep: 8 ECU\n"
	" SG_ Outer M : 0|8@1+ (1,0) [0|0] \"\" X\n"
	" SG_ Inner m1M : 8|8@1+ (1,0) [0|0] \"\" X\n"
	" SG_ Ranged m2 : 8|8@1+ (1,0) [0|0] \"\" X\n"
	" SG_ Plain m3 : 8|8@1+ (1,0) [0|0] \"\" X\n"
	" SG_ Great m300 : 8|8@1+ (1,0) [0|0] \"\" X\n"
	"BO_ 8 Lost: 8 ECU\n"
	" SG_ Alone m1 : 0|8@1+ (1,0) [0|0] \"\" X\n"
	"BO_ 9 Long: 64 ECU\n"
	" SG_ Last : 504|8@1+ (1,0) [0|0] \"\" X\n"
	"BO_ 3221225472 VECTOR__INDEPENDENT_SIG_MSG: 0 Vector__XXX\n"
	" SG_ Nowhere : 0|8@1+ (1,0) [0|0] \"\" X\n"
	"CM_ SG_ 385 Speed \"a text of\nBO_ 1 lines with \\\"marks\\\"; SG_\";\n"
	"BA_DEF_ BO_ \"GenMsgCycleTime\" INT 0 1000;\n"
	"VAL_ 385 Running 1 \"yes\" 0 \"no\" ;\n"
	"SIG_VALTYPE_ 2566868965 Voltage : 1;\n"
	"SG_MUL_VAL_ 7 Ranged Outer 2-2, 5-9;\n"
	"SG_MUL_VAL_ 7 Plain Outer 3-3;\n";

static char *whole_text(void)
{
	static char text[sizeof(drive_text) + sizeof(drive_end)];
	char *wrong;

	snprintf(text, sizeof(text), "%s%s", drive_text, drive_end);
	/* Of another test. */
	wrong = strstr(text, " SG_ Phase");
	memset(wrong, ' ', strcspn(wrong, "\n"));
	return text;
}

static void signals_and_their_places_are_read(void **unused)
{
	const struct dbc_message *m;
	const struct dbc_signal *s;
	char why[DBC_WHY_MAX] = "", *text = whole_text();
	unsigned line;
	struct dbc d;

	if (dbc_read(&d, text, strlen(text), &line, why))
		fail_msg("line %u: %s", line, why);
	assert_int_equal(d.message_count, 6);
	assert_int_equal(dbc_find(&d, "Engine.Speed", &m, &s), 1);
	assert_int_equal(m->id, 385);
	assert_int_equal(m->length, 8);
	assert_int_equal(s->start, 0);
	assert_int_equal(s->length, 16);
	assert_false(s->big);
	assert_true(s->is_signed);
	assert_true(s->factor == 0.25 && s->offset == 0 && s->min == -3000 && s->max == 3000);
	assert_int_equal(dbc_find(&d, "Engine.Oil", &m, &s), 1);
	assert_true(s->big && !s->is_signed && s->start == 23 && s->length == 12 && s->offset == -40);
	assert_int_equal(dbc_find(&d, "Inverter.Voltage", &m, &s), 1);
	assert_int_equal(m->id, 2566868965);
	assert_true(s->multiplexed && s->value == 0 && s->coding == DBC_FLOAT && !s->nested);
	assert_true(dbc_switch(&d, m)->big && dbc_switch(&d, m)->start == 7);
	assert_int_equal(dbc_find(&d, "Deep.Inner", &m, &s), 1);
	assert_true(s->nested);
	assert_int_equal(dbc_find(&d, "Deep.Ranged", &m, &s), 1);
	assert_true(s->nested);
	assert_int_equal(dbc_find(&d, "Deep.Plain", &m, &s), 1);
	assert_false(s->nested);
	assert_int_equal(dbc_find(&d, "VECTOR__INDEPENDENT_SIG_MSG.Nowhere", &m, &s), 0);
	assert_int_equal(dbc_find(&d, "Engine", &m, &s), 0);
	assert_int_equal(dbc_find(&d, "Engine.Spee", &m, &s), 0);
	dbc_free(&d);
}

static void wrong_files_are_refused_with_the_line(void **unused)
{
	static const struct {
		const char *text, *why;
		unsigned line;
	} wrong[] = {
		{ "BO_ 4294967295 A: 8 X", "no identifier", 1 },
		{ "BO_ 2048 A: 8 X", "no identifier", 1 },
		{ "BO_ 1 2: 8 X", "name of a message", 1 },
		{ "BO_ 1 A 8 X", "':'", 1 },
		{ "\nSG_ A : 0|8@1+ (1,0) [0|0] \"\" X", "before the first message", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B : 0|0@1+ (1,0) [0|0] \"\" X", "1 to 64 bits", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B : 0|65@1+ (1,0) [0|0] \"\" X", "bits", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B : 510|8@1+ (1,0) [0|0] \"\" X", "beyond the 64 bytes", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B : 0|8@2+ (1,0) [0|0] \"\" X", "order of bytes", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B : 0|8@1* (1,0) [0|0] \"\" X", "'+'", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B : 0|8@1+ (0,0) [0|0] \"\" X", "factor 0", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B : 0|8@1+ (nan,0) [0|0] \"\" X", "the factor", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B : 0|8@1+ (1,1e999) [0|0] \"\" X", "the offset", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B : 0|8@1+ (1,0x10) [0|0] \"\" X", "the offset", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B n : 0|8@1+ (1,0) [0|0] \"\" X", "M or m", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B m99999999999 : 0|8@1+ (1,0) [0|0] \"\" X", "too great", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B : 0|8@1+ (1,0) [0|0] rpm X", "unit", 2 },
		{ "BO_ 1 A: 8 X\n SG_ B : 0|8@1+ (1,0) [0|0] \"\" X\nSIG_VALTYPE_ 1 B : 1;", "32 bits", 3 },
		{ "CM_ \"a text", "no end", 1 },
		{ "\nVAL_ 1 A 0 \"b\"\nBO_ 1 A: 8 X", "no end", 2 },
		{ "hello;", "no section", 1 },
		{ "\x7f""ELF", "expected a section", 1 },
	};
	char why[DBC_WHY_MAX];
	unsigned line;
	struct dbc d;

	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (dbc_read(&d, wrong[i].text, strlen(wrong[i].text), &line, why) != -EINVAL)
			fail_msg("accepted: %s", wrong[i].text);
		if (!strstr(why, wrong[i].why) || line != wrong[i].line)
			fail_msg("%s: line %u: %s", wrong[i].text, line, why);
		dbc_free(&d);
	}
	/* The multiplexor of a signal is named wrongly. */
	assert_int_equal(dbc_read(&d, drive_text, strlen(drive_text), &line, why), -EINVAL);
	assert_int_equal(line, 25);
	dbc_free(&d);
}

static char file[] = "/tmp/busbar-can-dbc-XXXXXX";

static int write_file(void **unused)
{
	int fd = mkstemp(file);
	const char *text = whole_text();
	ssize_t len = (ssize_t)strlen(text);

	return fd < 0 || write(fd, text, (size_t)len) != len || close(fd);
}

static int remove_file(void **unused)
{
	return unlink(file);
}

static const char *quoted(const char *words)
{
	static char text[1500];

	snprintf(text, sizeof(text), "%s", words);
	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	return text;
}

static const char *with_file(const char *more, const char *direction, const char *entries)
{
	static char text[1500];

	snprintf(text, sizeof(text), "interface_name = 'c0'; dbc = '%s'; %s %s = { signals = ( %s ); };",
		 file, more, direction, entries);
	return text;
}

static void settings_take_their_places_from_a_file(void **unused)
{
	static const char entries[] =
		"{ name = 'a'; type = 'float'; dbc_signal = 'Engine.Speed'; max = 100.0; },"
		"{ name = 'b'; type = 'integer'; dbc_signal = 'Inverter.Kind'; },"
		"{ name = 'c'; type = 'float'; dbc_signal = 'Inverter.Voltage'; },"
		"{ name = 'd'; type = 'float'; dbc_signal = 'Inverter.Current'; },"
		"{ name = 'e'; type = 'boolean'; dbc_signal = 'Engine.Running'; },"
		"{ name = 'f'; type = 'float'; can_id = 3; can_size = 4; }";
	struct made_node m;
	struct can_node *c;

	make_node(&m, &node_can, quoted(with_file("", "out", entries)));
	c = m.node.private_data;
	assert_int_equal(c->out.message_count, 5);
	assert_int_equal(c->out.messages[0].id, 3);
	assert_int_equal(c->out.messages[1].id, 385);
	assert_int_equal(c->out.messages[1].length, 8);
	assert_true(c->out.maps[1].max == 100 && c->out.maps[1].min == -3000);
	/* The multiplexor; its values 0 and 1. */
	assert_true(c->out.messages[2].has_values && !c->out.messages[2].mux.length);
	assert_int_equal(c->out.messages[3].id, CAN_EFF_FLAG | (2566868965 & CAN_EFF_MASK));
	assert_int_equal(c->out.messages[3].mux.value, 0);
	assert_int_equal(c->out.messages[4].mux.value, 1);
	assert_int_equal(c->out.messages[4].always_count, 1);
	assert_int_equal(c->out.maps[c->out.messages[3].first].kind, CAN_REAL);
	drop_node(&m);
}

static void signals_that_do_not_fit_are_refused(void **unused)
{
	static const char *const wrong[] = {
		"{ dbc_signal = 'Engine.Spede'; }", "{ dbc_signal = 'Speed'; }",
		"{ dbc_signal = 'Engine.Speed'; can_id = 385; }",
		"{ dbc_signal = 'Engine.Speed'; factor = 2.0; }",
		"{ type = 'integer'; dbc_signal = 'Engine.Speed'; }",
		"{ type = 'complex'; dbc_signal = 'Inverter.Voltage'; }",
		"{ type = 'boolean'; dbc_signal = 'Inverter.Voltage'; }",
		"{ dbc_signal = 'Deep.Inner'; }", "{ dbc_signal = 'Deep.Ranged'; }",
		"{ dbc_signal = 'Deep.Great'; }", "{ dbc_signal = 'Lost.Alone'; }",
		"{ dbc_signal = 'Long.Last'; }",
		"{ dbc_signal = 'VECTOR__INDEPENDENT_SIG_MSG.Nowhere'; }",
		"{ dbc_signal = 'Engine.Speed'; min = 5000.0; }",
	};
	struct made_node m;

	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (!try_node(&m, &node_can, quoted(with_file("", "in", wrong[i]))))
			fail_msg("accepted: %s", wrong[i]);
		drop_node(&m);
	}
	make_node(&m, &node_can, quoted(with_file("fd = true;", "in", "{ dbc_signal = 'Long.Last'; }")));
	drop_node(&m);
	assert_true(try_node(&m, &node_can,
			     quoted("interface_name = 'c0'; in = { signals = ( { dbc_signal = 'A.B'; } ); };")));
	drop_node(&m);
	assert_true(try_node(&m, &node_can,
			     quoted("interface_name = 'c0'; dbc = '/nowhere'; in = { signals = ( { can_id = 1; } ); };")));
	drop_node(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_and_their_places_are_read),
		cmocka_unit_test(wrong_files_are_refused_with_the_line),
		cmocka_unit_test(settings_take_their_places_from_a_file),
		cmocka_unit_test(signals_that_do_not_fit_are_refused),
	};

	return cmocka_run_group_tests(tests, write_file, remove_file);
}
