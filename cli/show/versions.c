#include "cli/show/versions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define SESSION_SHOWN 8

void versions_set_one(struct json j, const struct engine_version *v)
{
	const struct engine_snapshot *s = &v->snapshot;

	out_json_id(j, "snapshot", s->id);
	out_json_time(j, "time", s->created);
	json_set_text(j, "message", s->message);
	json_set_text(j, "by", engine_writer_name(v->writer));
	json_set_text(j, "who", v->who);
	json_set_text(j, "status", (const char[]){ v->status, '\0' });
	json_set_name(j, "path", v->path);
	json_set_name(j, "old_path", v->old_path);
	json_set_uint(j, "added", v->added);
	json_set_uint(j, "removed", v->removed);
	out_json_id(j, "run", v->run);
	json_set_name(j, "command", v->command);
	out_json_id(j, "promotion", v->promotion);
	json_set_name(j, "clone", v->clone);
	json_set_text(j, "session", v->session);
	json_set_uint(j, "turn", v->turn);
}

void versions_print_writer(FILE *out, const struct engine_version *v)
{
	switch (v->writer) {
	case ENGINE_BY_NOBODY:
		fputs("no snapshot yet", out);
		break;
	case ENGINE_BY_SNAPSHOT:
		out_name(out, v->who);
		break;
	case ENGINE_BY_STEP:
		out_name(out, v->who);
		fprintf(out, " turn %" PRIu64, v->turn);
		break;
	case ENGINE_BY_RUN:
		fprintf(out, "run %s", v->run);
		break;
	case ENGINE_BY_PROMOTION:
		fputs("promotion", out);
		break;
	case ENGINE_BY_ROLLBACK:
		fputs("rollback", out);
		break;
	case ENGINE_BY_UNDO:
		fputs("undo", out);
		break;
	}
	if (!v->clone)
		return;
	fputs(" in ", out);
	out_name(out, v->clone);
}

static void print_one(const struct invocation *inv, const struct engine_version *v)
{
	char when[OUT_TIME_MAX];

	fprintf(inv->out, "%s%-*.*s%s  %-16s  %c  +%-5" PRIu64 " -%-5" PRIu64 "  ",
		out_style(inv, OUT_ID), OUT_SHORT_ID, OUT_SHORT_ID, v->snapshot.id,
		out_style(inv, OUT_PLAIN), out_when(v->snapshot.created, when), v->status, v->added,
		v->removed);
	versions_print_writer(inv->out, v);
	if (v->old_path) {
		fputs("  from ", inv->out);
		out_name(inv->out, v->old_path);
	}
	if (v->command || *v->snapshot.message != '\0') {
		fprintf(inv->out, "  %s", out_style(inv, OUT_DIM));
		out_line(inv->out, v->command ? v->command : v->snapshot.message);
		fputs(out_style(inv, OUT_PLAIN), inv->out);
	}
	fputc('\n', inv->out);
}

void versions_print(const struct invocation *inv, const struct engine_versions *v)
{
	for (size_t i = 0; i < v->n; i++) {
		if (!inv->quiet)
			print_one(inv, &v->list[i]);
		else if (*v->list[i].snapshot.id != '\0')
			fprintf(inv->out, "%s\n", v->list[i].snapshot.id);
	}
}

static int bad_range(const char *text, struct err *err)
{
	return err_set(err, -EINVAL, "'%s' is no range: say FIRST,LAST:PATH or FIRST,+COUNT:PATH",
		       text);
}

int versions_parse_range(const char *text, uint64_t *from, uint64_t *to, const char **path,
			 struct err *err)
{
	const char *colon = strchr(text, ':');
	AUTO_FREE char *range = colon ? strndup(text, (size_t)(colon - text)) : NULL;
	char *comma = range ? strchr(range, ',') : NULL;
	bool count;

	if (!colon || colon[1] == '\0')
		return bad_range(text, err);
	if (!range)
		return err_nomem(err);
	if (comma)
		*comma++ = '\0';
	if (size_parse_u64(range, from) < 0 || *from == 0)
		return bad_range(text, err);
	*to = *from;
	count = comma && *comma == '+';
	if (comma && *comma == '\0')
		*to = UINT64_MAX;
	else if (comma && size_parse_u64(comma + count, to) < 0)
		return bad_range(text, err);
	if (count && (*to == 0 || *to > UINT64_MAX - *from))
		return bad_range(text, err);
	if (count)
		*to += *from - 1;
	if (*to < *from)
		return bad_range(text, err);
	*path = colon + 1;
	return 0;
}
