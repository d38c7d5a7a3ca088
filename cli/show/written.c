#include "cli/show/written.h"

#include <errno.h>
#include <string.h>

#include "base/size.h"
#include "cli/out.h"

int written_split(char *word, const char **ret_clone, const char **ret_path, struct err *err)
{
	char *colon = strchr(word, ':');

	if (!colon || colon == word || colon[1] == '\0')
		return err_set(err, -EINVAL, "'%s' is not CLONE:PATH", word);
	*colon = '\0';
	*ret_clone = word;
	*ret_path = colon + 1;
	return 0;
}

int written_print(struct invocation *inv, const char *clone, const char *path,
		  const struct engine_written *w, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	char size[SIZE_TEXT_MAX];
	struct json j;

	if (!inv->json) {
		if (inv->quiet)
			return CMD_OK;
		fprintf(inv->out, "%s ", w->created ? "created" : "changed");
		out_name(inv->out, path);
		fprintf(inv->out, " in %s (%s)\n", clone, size_format(w->bytes, size));
		return CMD_OK;
	}
	j = out_json_begin(inv, &doc);
	json_set_text(j, "clone", clone);
	json_set_name(j, "path", path);
	json_set_bool(j, "created", w->created);
	json_set_uint(j, "bytes", w->bytes);
	if (w->replaced > 0)
		json_set_uint(j, "replaced", w->replaced);
	return json_print(&doc, inv->out, err);
}
