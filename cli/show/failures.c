#include "cli/show/failures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "cli/cmd.h"

#define FAILURES_MAX 20   /* that are named one by one */
#define LINES_MAX    10   /* of each */
#define BYTES_MAX    4096 /* of each */

void failures_done(struct failures *f)
{
	VEC_FREE(it, f->list, f->n, free(it->end));
	*f = (struct failures){ 0 };
}

/* --- finding ------------------------------------------------------------------------------- */

/* The run that says why the arm did not pass; NULL: none does. */
static const char *run_of(const struct engine_arm *arm)
{
	switch (arm->state) {
	case ENGINE_ARM_CHECK_FAILED:
		return arm->n_checks > 0 ? arm->checks[arm->n_checks - 1].run : NULL;
	case ENGINE_ARM_FAILED: /* else what is inside of it did */
		return arm->exit_code != 0 ? arm->run : NULL;
	case ENGINE_ARM_LIMIT:
	case ENGINE_ARM_STOPPED:
		return arm->run;
	case ENGINE_ARM_WAITING:
	case ENGINE_ARM_RUNNING:
	case ENGINE_ARM_CHECKING:
	case ENGINE_ARM_PASSED:
	case ENGINE_ARM_UNSCORED:
	case ENGINE_ARM_LOST:
		break;
	}
	return NULL;
}

/* A text ends at a zero byte, so that is spelled. */
static int add_bytes(bool of_stderr, const void *data, size_t len, void *ctx, struct err *err)
{
	const char *bytes = data;
	int r = 0;

	for (size_t i = 0; i < len && r >= 0; i++)
		r = bytes[i] == '\0' ? buf_append_str(ctx, "\\x00")
				     : buf_append_u8(ctx, (uint8_t)bytes[i]);
	return r < 0 ? err_nomem(err) : 0;
}

/* The last lines of it, whole ones if there are several. */
static const char *last_lines(const char *text, bool *cut)
{
	const char *at = text + strlen(text);
	size_t lines = 0;

	if (at > text && at[-1] == '\n')
		at--;
	while (at > text && (at[-1] != '\n' || ++lines < LINES_MAX))
		at--;
	if (at > text)
		*cut = true;
	/* The first line may have lost its beginning. */
	else if (*cut && strchr(text, '\n') && strchr(text, '\n')[1] != '\0')
		at = strchr(text, '\n') + 1;
	return at;
}

/* Of a run whose record has gone nothing is known. */
static int read_end(const struct invocation *inv, struct failure *f, struct err *err)
{
	const struct engine_log_options options = { .last = BYTES_MAX, .stop_fd = -1 };
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	uint64_t all = 0;
	int r = engine_run_find(inv->engine, f->run, &run, NULL);

	if (r >= 0)
		r = engine_run_log(inv->engine, &run, &options, add_bytes, &text, &all, err);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (buf_append_u8(&text, '\0') < 0)
		return err_nomem(err);
	f->cut = all > BYTES_MAX;
	f->end = strdup(last_lines((const char *)text.data, &f->cut));
	return f->end ? 0 : err_nomem(err);
}

int failures_find(const struct invocation *inv, const struct engine_experiment *x, bool ends,
		  struct failures *ret, struct err *err)
{
	CLEANUP(failures_done) struct failures f = { 0 };
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;
	int r = 0;

	while ((arm = engine_arms_next(&walk)) && r >= 0) {
		const char *run = run_of(arm);

		if (!run || *run == '\0')
			continue;
		if (f.n == FAILURES_MAX) {
			f.more++;
			continue;
		}
		if (!VEC_ONE_MORE(f.list, f.n))
			return err_nomem(err);
		f.list[f.n] = (struct failure){ .why = arm->why, .run = run };
		engine_arms_path(&walk, f.list[f.n].arm);
		r = ends ? read_end(inv, &f.list[f.n], err) : 0;
		f.n++;
	}
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(f);
	return 0;
}

/* --- showing ------------------------------------------------------------------------------- */

void failures_print(const struct invocation *inv, FILE *out, const struct failures *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct failure *one = &f->list[i];
		AUTO_FREE char *line = cmd_line(inv, "logs", (const char *[]){ one->run, NULL });

		if (!line)
			continue;
		if (one->end)
			fputc('\n', out);
		fprintf(out, "what %s printed%s: %s\n", one->arm,
			one->end && *one->end != '\0' ? " last" : "", line);
		if (one->end && one->cut)
			fputs("  ...\n", out);
		if (one->end && *one->end != '\0')
			out_text(out, one->end, "  ");
		else if (one->end)
			fputs("  nothing\n", out);
	}
	if (f->more > 0)
		fprintf(out, "%zu more did not pass\n", f->more);
}

void failures_put(struct page *p, const struct failures *f)
{
	if (f->n > 0)
		page_put(p, "<h2>Arms that did not pass</h2>\n");
	for (size_t i = 0; i < f->n; i++) {
		const struct failure *one = &f->list[i];

		page_put(p, "<details open><summary>");
		page_name(p, one->arm);
		if (one->why) {
			page_put(p, ": ");
			page_name(p, one->why);
		}
		page_put(p, "</summary><p class=\"dim\">snapcow logs ");
		page_name(p, one->run);
		page_put(p, "</p><pre>");
		if (one->cut)
			page_put(p, "...\n");
		if (one->end)
			page_text(p, one->end, strlen(one->end));
		page_put(p, "</pre></details>\n");
	}
	if (f->more > 0)
		page_printf(p, "<p>%zu more did not pass</p>\n", f->more);
}
