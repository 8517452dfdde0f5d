/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the XML of SCL files by expat, into the tree of elements.h: only the elements that the gateway
 * uses, of the namespace of SCL or of none. A document type, and so each entity that a file could
 * define, is refused.
 */
#include <errno.h>
#include <expat.h>
#include <limits.h>
#include <string.h>

#include "gateway/scl/elements.h"
#include "util/container_of.h"

extern const struct scl_xml_ops scl_xml;

#define NAMESPACE "http://www.iec.ch/61850/2003/SCL"
#define ATTRIBUTES_MAX 100 /* of an element; SCL has fewer than 20 */
#define SEPARATOR '\n' /* no character of a name */

/* What stands in others is not read. */
static const char *const kept[] = {
	"AccessPoint", "Address", "BDA", "Communication", "ConnectedAP", "DA", "DAType", "DO",
	"DOType", "DataSet", "DataTypeTemplates", "FCDA", "GSE", "GSEControl", "IED", "LDevice",
	"LN", "LN0", "LNodeType", "MaxTime", "MinTime", "P", "Protocol", "SCL", "SDO", "SMV",
	"SampledValueControl", "Server", "SmvOpts", "SubNetwork",
};
/* Of these the text is read. */
static const char *const with_text[] = { "MaxTime", "MinTime", "P", "Protocol" };

struct reader {
	XML_Parser parser;
	struct scl_tree *tree;
	struct scl_element *at; /* the innermost element that is kept */
	unsigned depth;         /* of all elements */
	unsigned skipped;       /* of the elements in, and with, one that is not kept */
	bool has_text;          /* the text of `at` is read */
	char text[SCL_VALUE_MAX + 1];
	size_t text_len;
	const char *why;        /* NULL: all is well */
	unsigned line;
	bool no_memory;
};

static void stop(struct reader *r, const char *why)
{
	if (r->why)
		return;
	r->why = why;
	r->line = (unsigned)XML_GetCurrentLineNumber(r->parser);
	XML_StopParser(r->parser, XML_FALSE);
}

static void stop_without_memory(struct reader *r)
{
	r->no_memory = true;
	stop(r, "its elements need more memory than there is, or than 256 MiB");
}

/* The list's own text, without the namespace; NULL: the element is not kept. */
static const char *find(const char *const list[], size_t count, const char *name)
{
	const char *local = strchr(name, SEPARATOR);

	if (local) {
		if (strncmp(name, NAMESPACE, strlen(NAMESPACE)) ||
		    local != name + strlen(NAMESPACE))
			return NULL;
		name = local + 1;
	}
	for (size_t i = 0; i < count; i++)
		if (!strcmp(list[i], name))
			return list[i];
	return NULL;
}

static void XMLCALL on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
	struct reader *r = arg;
	const char *known = find(kept, ARRAY_SIZE(kept), name);

	/* Of an element without contents, the handlers may still run after the end. */
	if (r->why)
		return;
	if (++r->depth > SCL_TREE_DEPTH_MAX) {
		stop(r, "elements stand in elements more than 64 deep");
		return;
	}
	if (r->depth == 1 && (!known || strcmp(known, "SCL"))) {
		stop(r, "this is no SCL file: its first element is not SCL");
		return;
	}
	if (r->skipped || !known) {
		r->skipped++;
		return;
	}
	r->at = scl_tree_add(r->tree, r->at, known,
			     (unsigned)XML_GetCurrentLineNumber(r->parser));
	if (!r->at) {
		stop_without_memory(r);
		return;
	}
	r->has_text = find(with_text, ARRAY_SIZE(with_text), known);
	r->text_len = 0;
	if (XML_GetSpecifiedAttributeCount(r->parser) > 2 * ATTRIBUTES_MAX)
		stop(r, "an element has more than 100 attributes");
	for (; *attributes && !r->why; attributes += 2) {
		if (strchr(attributes[0], SEPARATOR))
			continue;
		if (strlen(attributes[1]) > SCL_VALUE_MAX)
			stop(r, "an attribute is longer than 1000 bytes");
		else if (!scl_tree_set(r->tree, r->at, attributes[0], attributes[1]))
			stop_without_memory(r);
	}
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void keep_text(struct reader *r)
{
	const char *from = r->text, *end = r->text + r->text_len;

	while (from < end && is_blank(*from))
		from++;
	while (from < end && is_blank(end[-1]))
		end--;
	r->at->text = scl_tree_text(r->tree, from, (size_t)(end - from));
	if (!r->at->text)
		stop_without_memory(r);
}

static void XMLCALL on_end(void *arg, const XML_Char *name)
{
	struct reader *r = arg;

	if (r->why)
		return;
	r->depth--;
	if (r->skipped) {
		r->skipped--;
		return;
	}
	if (r->has_text)
		keep_text(r);
	r->has_text = false;
	r->at = r->at->parent;
}

static void XMLCALL on_text(void *arg, const XML_Char *text, int len)
{
	struct reader *r = arg;

	if (!r->has_text || r->skipped || r->why)
		return;
	if ((size_t)len > SCL_VALUE_MAX - r->text_len) {
		stop(r, "a text is longer than 1000 bytes");
		return;
	}
	memcpy(r->text + r->text_len, text, (size_t)len);
	r->text_len += (size_t)len;
}

static void XMLCALL on_doctype(void *arg, const XML_Char *name, const XML_Char *system,
			       const XML_Char *public, int has_internal)
{
	stop(arg, "a document type is refused: an SCL file needs none, and entities could be "
		  "defined there");
}

static int read_xml(struct scl_tree *t, const char *text, size_t len, const char **why,
		    unsigned *line)
{
	struct reader r = { .parser = XML_ParserCreateNS(NULL, SEPARATOR), .tree = t };
	enum XML_Status status;

	if (!r.parser)
		return -ENOMEM;
	XML_SetUserData(r.parser, &r);
	XML_SetElementHandler(r.parser, on_start, on_end);
	XML_SetCharacterDataHandler(r.parser, on_text);
	XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
	/* All at once: expat looks at a part of a long token again with each part that follows. */
	status = len > INT_MAX ? XML_STATUS_ERROR : XML_Parse(r.parser, text, (int)len, 1);
	if (status != XML_STATUS_OK && !r.why) {
		r.why = XML_ErrorString(XML_GetErrorCode(r.parser));
		r.line = (unsigned)XML_GetCurrentLineNumber(r.parser);
	}
	XML_ParserFree(r.parser);
	*why = r.why;
	*line = r.line;
	return r.no_memory ? -ENOMEM : r.why ? -EINVAL : 0;
}

const struct scl_xml_ops scl_xml = { .read = read_xml };
