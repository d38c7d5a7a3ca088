#include "cli/show/verdicts.h"

#include "cli/out.h"

static void print_step(const struct invocation *inv, const struct engine_policy_step *s)
{
	FILE *out = inv->out;

	fputs("  ", out);
	out_name(out, s->file);
	if (s->rule) {
		fprintf(out, ":%d: '", s->line);
		out_line(out, s->rule);
		fputc('\'', out);
	} else {
		fputc(':', out);
	}
	if (s->because) {
		fputs(s->rule ? " does not fit: " : " ", out);
		out_line(out, s->because);
	}
	if (s->rule && s->fits)
		fprintf(out, " fits: %s", engine_authority_name(s->then));
	fputc('\n', out);
}

void verdicts_print_steps(const struct invocation *inv, const struct engine_verdict *v)
{
	for (size_t i = 0; i < v->n_steps; i++)
		print_step(inv, &v->steps[i]);
	if (v->facts.held > 0 || v->facts.conflicts > 0)
		fputs("  paths that are held or conflict always need a person\n", inv->out);
}

void verdicts_set_steps(struct json list, const struct engine_verdict *v)
{
	for (size_t i = 0; i < v->n_steps; i++) {
		const struct engine_policy_step *s = &v->steps[i];
		struct json j = json_add_object(list);

		json_set_name(j, "file", s->file);
		json_set_int(j, "line", s->line);
		json_set_name(j, "rule", s->rule);
		json_set_bool(j, "fits", s->fits);
		json_set_text(j, "then", engine_authority_name(s->then));
		json_set_name(j, "because", s->because);
	}
}
