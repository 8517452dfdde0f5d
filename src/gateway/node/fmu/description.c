/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * modelDescription.xml of FMI 2.0 (section 2.2) and FMI 3.0 (section 2.4): what busbar needs of it.
 * Expat reads the XML. The file may come from anywhere: document types, and with them entities, are
 * refused, and depth and numbers have limits.
 */
#include <errno.h>
#include <expat.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/fmu/fmu.h"
#include "util/container_of.h"
#include "util/num.h"

#define DEPTH_MAX 64
#define VARIABLES_MAX 1000000
#define TEXT_MAX 4000

struct parse {
	struct fmu_description *d;
	struct fmu_why *why;
	XML_Parser xml;
	int ret;
	unsigned depth;
	bool in_variables; /* the element at depth 2 */
	bool has_model;    /* fmiModelDescription was there */
};

static const char *const type_names[FMU_TYPES] = {
	[FMU_FLOAT64] = "Float64", [FMU_FLOAT32] = "Float32", [FMU_INT8] = "Int8",
	[FMU_UINT8] = "UInt8",     [FMU_INT16] = "Int16",     [FMU_UINT16] = "UInt16",
	[FMU_INT32] = "Int32",     [FMU_UINT32] = "UInt32",   [FMU_INT64] = "Int64",
	[FMU_UINT64] = "UInt64",   [FMU_BOOLEAN] = "Boolean", [FMU_STRING] = "String",
};

static const struct {
	const char *element;
	enum fmu_type type;
} fmi2_types[] = {
	{ "Real", FMU_FLOAT64 },   { "Integer", FMU_INT32 }, { "Boolean", FMU_BOOLEAN },
	{ "String", FMU_STRING },  { "Enumeration", FMU_INT32 },
};

static const char *const causalities[] = {
	[FMU_LOCAL] = "local",         [FMU_INPUT] = "input",
	[FMU_OUTPUT] = "output",       [FMU_PARAMETER] = "parameter",
	[FMU_CALCULATED] = "calculatedParameter", [FMU_INDEPENDENT] = "independent",
	[FMU_STRUCTURAL] = "structuralParameter",
};

const char *fmu_type_name(unsigned version, enum fmu_type type)
{
	if (type >= FMU_TYPES)
		return NULL;
	if (version == 2)
		for (size_t i = 0; i < ARRAY_SIZE(fmi2_types); i++)
			if (fmi2_types[i].type == type)
				return fmi2_types[i].element;
	return type_names[type];
}

const char *fmu_causality_name(enum fmu_causality causality)
{
	return causalities[causality];
}

size_t fmu_type_size(unsigned version, enum fmu_type type)
{
	static const size_t sizes[FMU_TYPES] = {
		[FMU_FLOAT64] = 8, [FMU_FLOAT32] = 4, [FMU_INT8] = 1,   [FMU_UINT8] = 1,
		[FMU_INT16] = 2,   [FMU_UINT16] = 2,  [FMU_INT32] = 4,  [FMU_UINT32] = 4,
		[FMU_INT64] = 8,   [FMU_UINT64] = 8,  [FMU_BOOLEAN] = sizeof(bool),
		[FMU_STRING] = sizeof(char *),
	};

	return version == 2 && type == FMU_BOOLEAN ? sizeof(int) : sizes[type];
}

/* ---- elements ---- */

__attribute__((format(printf, 2, 3))) static void fail(struct parse *p, const char *fmt, ...)
{
	char text[200];
	va_list args;

	if (p->ret)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	p->ret = fmu_why(p->why, -EINVAL, "line %lu of modelDescription.xml: %s",
			 (unsigned long)XML_GetCurrentLineNumber(p->xml), text);
	XML_StopParser(p->xml, XML_FALSE);
}

/* NULL: the element has no such attribute. */
static const char *attribute(const XML_Char **attributes, const char *name)
{
	for (; *attributes; attributes += 2)
		if (!strcmp(attributes[0], name))
			return attributes[1];
	return NULL;
}

static bool is_true(const char *text)
{
	return text && (!strcmp(text, "true") || !strcmp(text, "1"));
}

static void set_number(struct parse *p, const XML_Char **attributes, const char *name, double *to)
{
	const char *text = attribute(attributes, name), *end = text ? text + strlen(text) : NULL;
	double v;

	if (!text)
		return;
	if (num_parse_double(text, end, &v) != end || !isfinite(v))
		fail(p, "%s '%.60s' is no number", name, text);
	else
		*to = v;
}

static char *copy_text(struct parse *p, const char *name, const char *text)
{
	char *copy;

	if (!text || !*text || strlen(text) > TEXT_MAX) {
		fail(p, "%s is %s", name, text && *text ? "too long" : "missing");
		return NULL;
	}
	/* Character references can bring line breaks, which would look like lines of the log. */
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f) {
			fail(p, "%s has a control character", name);
			return NULL;
		}
	copy = strdup(text);
	if (!copy)
		fail(p, "no memory");
	return copy;
}

static void start_model(struct parse *p, const char *element, const XML_Char **attributes)
{
	const char *version = attribute(attributes, "fmiVersion");
	struct fmu_description *d = p->d;

	if (strcmp(element, "fmiModelDescription")) {
		fail(p, "the first element is %.60s, it should be fmiModelDescription", element);
		return;
	}
	p->has_model = true;
	if (version && !strncmp(version, "2.0", 3))
		d->version = 2;
	else if (version && !strncmp(version, "3.", 2) && !strchr(version, '-'))
		d->version = 3;
	else
		fail(p, "fmiVersion is %.20s; 2.0 and 3.0 can be run",
		     version ? version : "missing");
	d->model = copy_text(p, "modelName", attribute(attributes, "modelName"));
	d->token = d->version == 2 ? copy_text(p, "guid", attribute(attributes, "guid")) :
				     copy_text(p, "instantiationToken",
					       attribute(attributes, "instantiationToken"));
}

/* The name of a file in the archive: an identifier of C. */
static bool is_identifier(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	return *text && strlen(text) <= 200 && text[strspn(text, letters)] == '\0';
}

static void start_co_simulation(struct parse *p, const XML_Char **attributes)
{
	const char *identifier = attribute(attributes, "modelIdentifier");
	struct fmu_description *d = p->d;

	if (d->identifier)
		fail(p, "a second CoSimulation");
	else if (!identifier || !is_identifier(identifier))
		fail(p, "modelIdentifier of CoSimulation is no identifier of C");
	else
		d->identifier = copy_text(p, "modelIdentifier", identifier);
	d->variable_step = is_true(attribute(attributes, "canHandleVariableCommunicationStepSize"));
}

static void start_part(struct parse *p, const char *element, const XML_Char **attributes)
{
	struct fmu_description *d = p->d;

	p->in_variables = !strcmp(element, "ModelVariables");
	if (!strcmp(element, "CoSimulation"))
		start_co_simulation(p, attributes);
	if (strcmp(element, "DefaultExperiment"))
		return;
	set_number(p, attributes, "startTime", &d->start);
	set_number(p, attributes, "stopTime", &d->stop);
	set_number(p, attributes, "stepSize", &d->step);
	set_number(p, attributes, "tolerance", &d->tolerance);
}

static struct fmu_variable *new_variable(struct parse *p)
{
	struct fmu_description *d = p->d;

	if (d->count == VARIABLES_MAX) {
		fail(p, "more than %d variables", VARIABLES_MAX);
		return NULL;
	}
	if (d->count == d->room) {
		size_t room = d->room ? 2 * d->room : 64;
		struct fmu_variable *more = realloc(d->variables, room * sizeof(*more));

		if (!more) {
			fail(p, "no memory");
			return NULL;
		}
		d->variables = more;
		d->room = room;
	}
	return memset(&d->variables[d->count], 0, sizeof(*d->variables));
}

static void set_causality(struct parse *p, struct fmu_variable *v, const XML_Char **attributes)
{
	const char *causality = attribute(attributes, "causality");
	const char *variability = attribute(attributes, "variability");

	v->constant = variability && !strcmp(variability, "constant");
	v->tunable = variability && !strcmp(variability, "tunable");
	if (!causality)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(causalities); i++) {
		if (strcmp(causality, causalities[i]))
			continue;
		v->causality = (uint8_t)i;
		return;
	}
	fail(p, "no causality '%.60s'", causality);
}

static uint8_t type_of(const char *element)
{
	/* An enumeration of FMI 3.0 is set and got as Int64. */
	if (!strcmp(element, "Enumeration"))
		return FMU_INT64;
	for (size_t i = 0; i < FMU_TYPES; i++)
		if (!strcmp(element, type_names[i]))
			return (uint8_t)i;
	return FMU_OTHER;
}

static void start_variable(struct parse *p, const char *element, const XML_Char **attributes)
{
	const char *text = attribute(attributes, "valueReference");
	const char *end = text ? text + strlen(text) : NULL;
	struct fmu_variable *v;
	uint64_t reference = 0;

	if (p->d->version == 2 && strcmp(element, "ScalarVariable"))
		return;
	v = new_variable(p);
	if (!v)
		return;
	v->type = p->d->version == 2 ? FMU_OTHER : type_of(element);
	if (!text || num_parse_u64(text, end, &reference) != end || reference > UINT32_MAX) {
		fail(p, "valueReference %s%.60s", text ? "cannot be " : "is missing",
		     text ? text : "");
		return;
	}
	v->reference = (fmi_reference)reference;
	set_causality(p, v, attributes);
	v->name = copy_text(p, "the name of a variable", attribute(attributes, "name"));
	if (v->name)
		p->d->count++;
}

/* The type of a variable of FMI 2.0; the dimension of an array of FMI 3.0. */
static void start_detail(struct parse *p, const char *element)
{
	struct fmu_variable *v = p->d->count ? &p->d->variables[p->d->count - 1] : NULL;

	if (!v)
		return;
	if (p->d->version == 3) {
		v->array |= !strcmp(element, "Dimension");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fmi2_types); i++)
		if (!strcmp(element, fmi2_types[i].element))
			v->type = (uint8_t)fmi2_types[i].type;
}

/* ---- the file ---- */

static void XMLCALL on_start(void *context, const XML_Char *element, const XML_Char **attributes)
{
	struct parse *p = context;

	if (p->ret)
		return;
	switch (++p->depth) {
	case 1:
		start_model(p, element, attributes);
		break;
	case 2:
		start_part(p, element, attributes);
		break;
	case 3:
		if (p->in_variables)
			start_variable(p, element, attributes);
		break;
	case 4:
		if (p->in_variables)
			start_detail(p, element);
		break;
	case DEPTH_MAX:
		fail(p, "more than %d elements lie in each other", DEPTH_MAX - 1);
		break;
	}
}

static void XMLCALL on_end(void *context, const XML_Char *element)
{
	struct parse *p = context;

	p->depth--;
}

static void XMLCALL on_doctype(void *context, const XML_Char *name, const XML_Char *system_id,
			       const XML_Char *public_id, int internal)
{
	fail(context, "it has a document type, which an FMU does not need");
}

static int compare_names(const void *a, const void *b, void *variables)
{
	const struct fmu_variable *v = variables;

	return strcmp(v[*(const size_t *)a].name, v[*(const size_t *)b].name);
}

static int sort_names(struct fmu_description *d, struct fmu_why *why)
{
	d->by_name = calloc(d->count ? d->count : 1, sizeof(*d->by_name));
	if (!d->by_name)
		return fmu_why(why, -ENOMEM, "no memory");
	for (size_t i = 0; i < d->count; i++)
		d->by_name[i] = i;
	qsort_r(d->by_name, d->count, sizeof(*d->by_name), compare_names, d->variables);
	for (size_t i = 1; i < d->count; i++) {
		const char *name = d->variables[d->by_name[i]].name;

		if (!strcmp(name, d->variables[d->by_name[i - 1]].name))
			return fmu_why(why, -EINVAL,
				       "modelDescription.xml has two variables called '%.200s'", name);
	}
	return 0;
}

static int run_parser(struct parse *p, const char *text, size_t length)
{
	enum XML_Status status;

	XML_SetUserData(p->xml, p);
	XML_SetElementHandler(p->xml, on_start, on_end);
	XML_SetStartDoctypeDeclHandler(p->xml, on_doctype);
	status = length > INT32_MAX ? XML_STATUS_ERROR :
				      XML_Parse(p->xml, text, (int)length, XML_TRUE);
	if (!p->ret && status != XML_STATUS_OK)
		p->ret = fmu_why(p->why, -EINVAL, "line %lu of modelDescription.xml: %s",
				 (unsigned long)XML_GetCurrentLineNumber(p->xml),
				 XML_ErrorString(XML_GetErrorCode(p->xml)));
	return p->ret;
}

int fmu_description_parse(struct fmu_description *d, const char *text, size_t length,
			  struct fmu_why *why)
{
	struct parse p = { .d = d, .why = why, .xml = XML_ParserCreate(NULL) };
	int ret;

	*d = (struct fmu_description){ .start = NAN, .stop = NAN, .step = NAN, .tolerance = NAN };
	if (!p.xml)
		return fmu_why(why, -ENOMEM, "no memory");
	ret = run_parser(&p, text, length);
	XML_ParserFree(p.xml);
	if (!ret && !d->identifier)
		ret = fmu_why(why, -EINVAL,
			      "the model '%.100s' has no co-simulation (model exchange needs a solver)",
			      d->model);
	return ret ? ret : sort_names(d, why);
}

void fmu_description_free(struct fmu_description *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->variables[i].name);
	free(d->variables);
	free(d->by_name);
	free(d->model);
	free(d->token);
	free(d->identifier);
	*d = (struct fmu_description){ 0 };
}

const struct fmu_variable *fmu_variable_find(const struct fmu_description *d, const char *name)
{
	size_t low = 0, high = d->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct fmu_variable *v = &d->variables[d->by_name[middle]];
		int order = strcmp(name, v->name);

		if (!order)
			return v;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}
