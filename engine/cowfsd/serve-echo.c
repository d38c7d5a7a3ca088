#include "engine/act/echo-i.h"
#include "engine/cowfsd/verbs-i.h"

int serve_echo(struct task *task, const struct engine_watch *watch, struct json options,
	       struct json answer, struct err *err)
{
	CLEANUP(echo_page_done) struct echo_page page = { 0 };
	const uint64_t from = json_get_uint(options, "from");
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	return serve_fields(echo_page(task, from, &page, err), answer, &wire_echo_page, &page);
}
