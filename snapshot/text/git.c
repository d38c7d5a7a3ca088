#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "snapshot/text/git-i.h"

static struct {
	pthread_once_t once;
	struct git git;
	int r;
	struct err why;
} loaded = { .once = PTHREAD_ONCE_INIT };

/* POSIX has it that a function's address travels as an object's. */
static bool find_symbol(void *lib, const char *name, void *ret)
{
	void *at = dlsym(lib, name);

	*(void **)ret = at;
	return at != NULL;
}

static void load_library(void)
{
	struct git *g = &loaded.git;
	void *lib = dlopen(GIT_LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		loaded.r = err_set(&loaded.why, -ENOTSUP, "cannot load libgit2: %s", dlerror());
		return;
	}
	if (!find_symbol(lib, "git_libgit2_init", &g->init) ||
	    !find_symbol(lib, "git_error_last", &g->error_last) ||
	    !find_symbol(lib, "git_diff_options_init", &g->diff_options_init) ||
	    !find_symbol(lib, "git_diff_buffers", &g->diff_buffers) ||
	    !find_symbol(lib, "git_merge_file", &g->three_way) ||
	    !find_symbol(lib, "git_merge_file_result_free", &g->three_way_free) ||
	    !find_symbol(lib, "git_hashsig_create", &g->hashsig_create) ||
	    !find_symbol(lib, "git_hashsig_compare", &g->hashsig_compare) ||
#define GIT_SYMBOL(name) !find_symbol(lib, "git_" #name, &g->name) ||
#include "snapshot/text/git-symbols-i.h"
#undef GIT_SYMBOL
	    !find_symbol(lib, "git_hashsig_free", &g->hashsig_free)) {
		loaded.r = err_set(&loaded.why, -ENOTSUP,
				   "'" GIT_LIBRARY "' is another libgit2: %s", dlerror());
		return;
	}
	if (g->init() < 0)
		loaded.r = git_failed(g, -1, "initialising libgit2", &loaded.why);
}

int git_load(const struct git **ret, struct err *err)
{
	pthread_once(&loaded.once, load_library);
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
