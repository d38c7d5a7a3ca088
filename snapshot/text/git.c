#include <errno.h>
#include <pthread.h>

#include "base/library.h"
#include "snapshot/text/git-i.h"

static struct {
	pthread_once_t once;
	struct git git;
	int r;
	struct err why;
} loaded = { .once = PTHREAD_ONCE_INIT };

static const struct library_function functions[] = {
#define GIT_SYMBOL(name) { "git_" #name, offsetof(struct git, name) },
#include "snapshot/text/git-symbols-i.h"
#undef GIT_SYMBOL
};
static const struct library library = {
	.what = "libgit2 (install the package that has '" GIT_LIBRARY "')",
	.names = (const char *const[]){ GIT_LIBRARY, NULL },
	.functions = functions,
	.n_functions = ARRAY_LEN(functions),
};

static void load_once(void)
{
	struct git *g = &loaded.git;

	loaded.r = library_load(&library, g, &loaded.why);
	if (loaded.r >= 0 && g->libgit2_init() < 0)
		loaded.r = git_failed(g, -1, "initialising libgit2", &loaded.why);
}

int git_load(const struct git **ret, struct err *err)
{
	pthread_once(&loaded.once, load_once);
	if (loaded.r < 0)
		return err_set(err, loaded.r, "%s", loaded.why.msg);
	*ret = &loaded.git;
	return 0;
}

int git_failed(const struct git *g, int rc, const char *doing, struct err *err)
{
	const git_error *last = g->error_last();

	if (last && last->klass == GIT_ERROR_NOMEMORY)
		return err_nomem(err);
	return err_set(err, -EIO, "%s: %s", doing,
		       last && last->message ? last->message
		       : rc < 0              ? "libgit2 failed"
					     : "stopped");
}
