#include "cli/mcp/job-i.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

void printed_done(struct printed *p)
{
	json_done(&p->doc);
	free(p->text);
}

int job_capture(const struct mcp_options *o, char **words, struct printed *ret)
{
	FILE *out = open_memstream(&ret->text, &ret->len);
	int argc = 0;

	while (words[argc])
		argc++;
	if (!out)
		return -ENOMEM;
	ret->status = o->run_line(argc, words, out, o->ctx);
	fclose(out);
	while (ret->len > 0 && ret->text[ret->len - 1] == '\n')
		ret->len--;
	return json_parse(&ret->doc, ret->text, ret->len, &ret->j, NULL);
}

bool job_failed(const struct printed *p)
{
	return json_kind(p->j, "error") == JSON_OBJECT;
}

int job_pass_on(const struct printed *p, FILE *out)
{
	fprintf(out, "%.*s\n", (int)p->len, p->text);
	return p->status;
}

static volatile sig_atomic_t stopped;

static void note_stop(int signo)
{
	stopped = 1;
}

void job_begin(void)
{
	signal(SIGTERM, note_stop);
}

void job_say_id(FILE *out, const char *id)
{
	fprintf(out, "%c%s\n", JOB_ID_MARK, id);
	fflush(out);
	signal(SIGTERM, SIG_DFL);
	if (stopped)
		_exit(0);
}
