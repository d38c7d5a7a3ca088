/*
 * model - random operations on a directory under test and on a plain one, compared.
 *
 *   model [OPTION...] DIR REFDIR [SCRIPT...]
 *
 * Prints TAP: a test for each seed, or for each script.  REFDIR is on a file system that is
 * trusted (ext4).  A failing seed can be shrunk to a script that is kept and replayed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/opt.h"
#include "tests/model/play.h"

struct model_args {
	uint64_t seed, seeds, ops, every, tries;
	const char *hook, *keep;
	bool shrink, print, no_snapshots, no_restarts, rollback_closes;
};

static const struct opt model_opts[] = {
	OPT_U64('s', "seed", "N", struct model_args, seed, "first seed (default: any)"),
	OPT_U64('S', "seeds", "N", struct model_args, seeds, "how many seeds (default: 1)"),
	OPT_U64('n', "ops", "N", struct model_args, ops, "operations a seed (default: 500)"),
	OPT_U64('e', "every", "N", struct model_args, every,
		"compare everything after so many operations (default: 20)"),
	OPT_STR(0, "hook", "COMMAND", struct model_args, hook,
		"does snapshot NAME, rollback NAME, remount and kill to DIR"),
	OPT_FLAG(0, "no-snapshots", struct model_args, no_snapshots, "no snapshot and rollback"),
	OPT_FLAG(0, "no-restarts", struct model_args, no_restarts, "no remount and kill"),
	OPT_FLAG(0, "rollback-closes", struct model_args, rollback_closes,
		 "the hook's rollback is a new mount, so let go of everything before"),
	OPT_FLAG(0, "shrink", struct model_args, shrink, "make a failing script short"),
	OPT_U64(0, "tries", "N", struct model_args, tries, "for shrinking (default: 400)"),
	OPT_STR(0, "keep", "DIR", struct model_args, keep, "write failing scripts there"),
	OPT_FLAG(0, "print", struct model_args, print, "print the script and do nothing"),
	OPT_END,
};

static void keep_script(const struct script *s, const char *dir, const char *name)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f) {
		printf("# cannot write %s: %s\n", path, strerrorname_np(errno));
		return;
	}
	script_write(s, f);
	fclose(f);
	printf("# kept as %s\n", path);
}

/* True if it passed. */
static bool play_one(struct play *p, struct script *s, const struct model_args *args,
		     const char *name)
{
	struct err err = { 0 }, ignored = { 0 };
	size_t at = 0, i;
	int r = play_script(p, s, &at, &err);

	if (r == 0)
		return true;
	printf("# %s\n", err.msg);
	if (r != -EBADMSG)
		return false;
	if (at < s->n)
		s->n = at;
	if (args->shrink) {
		IGNORE_RESULT(play_shrink(p, s, (unsigned)args->tries, &ignored),
			      "the script stays a failing one");
		printf("# a shorter script that fails:\n");
		for (i = 0; i < s->n; i++) {
			printf("#   ");
			op_print(&s->ops[i], stdout);
		}
		IGNORE_RESULT(play_script(p, s, &at, &ignored), "for what it prints");
		if (ignored.code)
			printf("# %s\n", ignored.msg);
	}
	if (args->keep)
		keep_script(s, args->keep, name);
	return false;
}

static struct script_plan plan_for(const struct model_args *args, uint64_t seed)
{
	return (struct script_plan){ .seed = seed,
				     .ops = args->ops,
				     .snapshots = args->hook && !args->no_snapshots,
				     .restarts = args->hook && !args->no_restarts,
				     .owners = geteuid() == 0 };
}

static unsigned play_seeds(struct play *p, const struct model_args *args)
{
	unsigned failed = 0;
	uint64_t i;

	printf("1..%" PRIu64 "\n", args->seeds);
	for (i = 0; i < args->seeds; i++) {
		CLEANUP(script_done) struct script s = { 0 };
		struct script_plan plan = plan_for(args, args->seed + i);
		char name[64];
		bool ok;

		snprintf(name, sizeof(name), "seed-%" PRIu64, plan.seed);
		ok = script_make(&plan, &s) == 0 && play_one(p, &s, args, name);
		failed += !ok;
		if (ok)
			printf(
			    "# %zu succeeded, %zu failed on both sides alike; %zu of %zu kills lost something\n",
			    p->done, p->failed, p->lost, p->kills);
		printf("%sok %" PRIu64 " - seed %" PRIu64 ", %" PRIu64 " operations%s\n",
		       ok ? "" : "not ", i + 1, plan.seed, args->ops,
		       plan.snapshots && plan.restarts ? ", snapshots and restarts"
		       : plan.snapshots                ? " and snapshots"
		       : plan.restarts                 ? " and restarts"
						       : "");
	}
	return failed;
}

static unsigned replay(struct play *p, const struct model_args *args, int n, char **paths)
{
	unsigned failed = 0;
	int i;

	printf("1..%d\n", n);
	for (i = 0; i < n; i++) {
		CLEANUP(script_done) struct script s = { 0 };
		const char *base = strrchr(paths[i], '/');
		struct err err = { 0 };
		FILE *f = fopen(paths[i], "re");
		bool ok = false;
		int r = f ? script_read(f, &s, &err) : err_sys(&err, "%s", paths[i]);

		if (f)
			fclose(f);
		if (r < 0)
			printf("# %s\n", err.msg);
		else
			ok = play_one(p, &s, args, "replayed");
		failed += !ok;
		printf("%sok %d - %s\n", ok ? "" : "not ", i + 1, base ? base + 1 : paths[i]);
	}
	return failed;
}

static int print_script(const struct model_args *args)
{
	CLEANUP(script_done) struct script s = { 0 };
	struct script_plan plan = plan_for(args, args->seed);

	if (script_make(&plan, &s) < 0)
		return 1;
	script_write(&s, stdout);
	return 0;
}

static int run(struct model_args *args, int n, char **words)
{
	char dir[4096], ref[4096];
	struct play p = { .hook = args->hook,
			  .every = args->every ? args->every : 1,
			  .rollback_closes = args->rollback_closes };

	if (!realpath(words[0], dir) || !realpath(words[1], ref)) {
		fprintf(stderr, "error: cannot use '%s' and '%s': %s\n", words[0], words[1],
			strerror(errno));
		return 1;
	}
	p.dir = dir;
	p.ref = ref;
	setvbuf(stdout, NULL, _IOLBF, 0);
	umask(0);
	return n > 2 ? replay(&p, args, n - 2, words + 2) != 0 : play_seeds(&p, args) != 0;
}

int main(int argc, char **argv)
{
	struct model_args args = { .seeds = 1, .ops = 500, .every = 20, .tries = 400 };
	struct opt_words words = { 0 };
	struct err err = { 0 };

	if (getrandom(&args.seed, sizeof(args.seed), 0) < 0)
		args.seed = (uint64_t)getpid();
	args.seed %= 1000000;
	if (opt_parse(model_opts, OPT_PERMUTE, argc - 1, argv + 1, &args, &words, &err) < 0) {
		fprintf(stderr, "error: %s\n", err.msg);
		return 2;
	}
	if (args.print)
		return print_script(&args);
	if (words.n < 2) {
		fputs("usage: model [OPTION...] DIR REFDIR [SCRIPT...]\n", stderr);
		opt_describe(model_opts, 80, stderr);
		return 2;
	}
	return run(&args, words.n, argv + 1);
}
