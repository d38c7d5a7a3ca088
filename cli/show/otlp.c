/*
 * By the mapping of the protocol's messages to JSON: ids in hex, 64-bit integers as text, enumerations
 * as numbers, names in lowerCamelCase.
 */
#include "cli/show/otlp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/sha256.h"
#include "cli/out.h"

#define KIND_INTERNAL 1
#define STATUS_OK     1
#define STATUS_ERROR  2

static struct json add_attribute(struct json list, const char *key)
{
	const struct json j = json_add_object(list);

	json_set_text(j, "key", key);
	return json_set_object(j, "value");
}

static void add_text(struct json list, const char *key, const char *value)
{
	if (value && *value != '\0')
		json_set_name(add_attribute(list, key), "stringValue", value);
}

static void set_number(struct json j, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	json_set_text(j, key, text);
}

static void add_number(struct json list, const char *key, uint64_t value)
{
	set_number(add_attribute(list, key), "intValue", (int64_t)value);
}

/* The run's span, in the caller's trace or, without one, in a trace that its id stands for. */
static void set_ids(struct json j, const struct engine_run *run)
{
	char trace[TRACEPARENT_SIZE], parent[TRACEPARENT_SPAN_LEN + 1] = "";
	char hex[SHA256_HEX_SIZE];
	uint8_t digest[SHA256_SIZE];

	if (*run->trace != '\0') {
		memcpy(trace, run->trace, sizeof(trace));
		memcpy(parent, trace + TRACEPARENT_SPAN, TRACEPARENT_SPAN_LEN);
	} else {
		sha256_of(run->id, strlen(run->id), digest);
		hex_encode(digest, sizeof(digest), hex);
		snprintf(trace, sizeof(trace), "00-%.32s-%016d-01", hex, 0);
	}
	traceparent_set_span(trace, run->id);
	trace[TRACEPARENT_TRACE + TRACEPARENT_TRACE_LEN] = '\0';
	trace[TRACEPARENT_SPAN + TRACEPARENT_SPAN_LEN] = '\0';
	json_set_text(j, "traceId", trace + TRACEPARENT_TRACE);
	json_set_text(j, "spanId", trace + TRACEPARENT_SPAN);
	if (*parent != '\0')
		json_set_text(j, "parentSpanId", parent);
}

static void set_status(struct json j, const struct engine_run *run)
{
	const bool ok = run->state == ENGINE_RUN_ENDED && run->exit_code == 0;
	char text[32];

	json_set_uint(j, "code", ok ? STATUS_OK : STATUS_ERROR);
	if (ok)
		return;
	snprintf(text, sizeof(text), "exit code %d", run->exit_code);
	json_set_text(j, "message", run->problem ? run->problem : text);
}

static void set_attributes(struct json list, const struct engine_run *run)
{
	struct json words;

	add_text(list, "snapcow.run", run->id);
	add_text(list, "snapcow.clone", run->clone);
	add_text(list, "snapcow.project", run->project);
	add_text(list, "snapcow.profile", run->profile);
	add_text(list, "snapcow.net", run->net);
	add_text(list, "snapcow.limit", run->limit);
	add_number(list, "process.exit.code", (uint64_t)run->exit_code);
	add_number(list, "snapcow.cpu_ms", run->cpu_ms);
	add_number(list, "snapcow.max_rss", run->max_rss);
	add_number(list, "snapcow.refusals", run->refusals.n + run->refusals.more);
	words = json_set_array(
	    json_set_object(add_attribute(list, "process.command_args"), "arrayValue"), "values");
	for (size_t i = 0; i < run->argv.n; i++)
		json_set_name(json_add_object(words), "stringValue", run->argv.list[i]);
}

static void add_span(struct json spans, const struct engine_run *run)
{
	const struct json j = json_add_object(spans);

	set_ids(j, run);
	json_set_name(j, "name", run->argv.n > 0 ? run->argv.list[0] : "run");
	json_set_uint(j, "kind", KIND_INTERNAL);
	set_number(j, "startTimeUnixNano", run->started);
	set_number(j, "endTimeUnixNano", run->ended > run->started ? run->ended : run->started);
	set_attributes(json_set_array(j, "attributes"), run);
	set_status(json_set_object(j, "status"), run);
}

int otlp_append(const struct engine_run *list, size_t n, struct buf *out, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct json top = json_begin(&doc);
	const struct json resource = json_add_object(json_set_array(top, "resourceSpans"));
	struct json scope, spans;

	add_text(json_set_array(json_set_object(resource, "resource"), "attributes"),
		 "service.name", "snapcow");
	scope = json_add_object(json_set_array(resource, "scopeSpans"));
	json_set_text(json_set_object(scope, "scope"), "name", "snapcow");
	spans = json_set_array(scope, "spans");
	for (size_t i = 0; i < n; i++)
		if (list[i].ended > 0)
			add_span(spans, &list[i]);
	if (json_append(&doc, out, err) < 0)
		return err_nomem(err);
	return buf_append_str(out, "\n") < 0 ? err_nomem(err) : 0;
}
