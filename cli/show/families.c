#include "cli/show/families.h"

#include <inttypes.h>
#include <stdio.h>

void families_begin(struct families *f, const char *name, const char *type, const char *help)
{
	struct json j;

	if (!f->inv->json) {
		fprintf(f->inv->out,
			"# HELP " FAMILY_PREFIX "%s %s\n# TYPE " FAMILY_PREFIX "%s %s\n", name,
			help, name, type);
		return;
	}
	j = json_add_object(f->list);
	json_set_name(j, "name", name);
	json_set_text(j, "type", type);
	json_set_text(j, "help", help);
	f->samples = json_set_array(j, "samples");
}

/* Names come from other machines. */
static void print_label(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			putc('\\', out);
		if (*text == '\n')
			fputs("\\n", out);
		else
			putc(*text, out);
	}
}

void families_add(struct families *f, const char *name, struct family_sample s)
{
	struct json j;

	if (f->inv->json) {
		j = json_add_object(f->samples);
		json_set_name(j, "label", s.label ? s.label : "");
		json_set_uint(j, "value", s.value);
		return;
	}
	fprintf(f->inv->out, FAMILY_PREFIX "%s", name);
	if (s.key) {
		fprintf(f->inv->out, "{%s=\"", s.key);
		print_label(f->inv->out, s.label);
		fputs("\"}", f->inv->out);
	}
	fprintf(f->inv->out, " %" PRIu64 "\n", s.value);
}

void families_add_singles(struct families *f, const struct family_of_one *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		families_begin(f, list[i].name, list[i].type, list[i].help);
		families_add(f, list[i].name, (struct family_sample){ .value = list[i].value });
	}
}
