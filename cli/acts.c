#include "cli/acts.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

static int refuse(const struct invocation *inv, const struct act *acts, struct err *err)
{
	CLEANUP(buf_done) struct buf list = BUF_INIT;

	for (const struct act *a = acts; a->word; a++)
		if (!a->alias && (buf_append_str(&list, a == acts ? "" : ", ") < 0 ||
				  buf_append_str(&list, a->word) < 0))
			return err_nomem(err);
	if (!buf_str(&list))
		return err_nomem(err);
	return err_set(err, -EINVAL, "'%s' does not know '%s': it takes %s", inv->command->name,
		       inv->words[0], buf_str(&list));
}

int acts_run(struct invocation *inv, const struct act *acts, struct err *err)
{
	const struct act *a = acts;
	int r;

	while (inv->n_words > 0 && a->word && strcmp(a->word, inv->words[0]) != 0)
		a++;
	r = a->word ? a->run(inv, err) : refuse(inv, acts, err);
	if (inv->n_hints == 0 && (r == -ENOENT || !a->word))
		cmd_hint(inv, "help %s", inv->command->name);
	return r;
}
