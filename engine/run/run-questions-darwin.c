#include <errno.h>

#include "engine/run/run-questions.h"

int run_questions_open(const struct run_questions_options *options, struct sandbox_spec *spec,
		       struct run_questions **ret, struct err *err)
{
	return err_set(err, -ENOTSUP, "option '--ask' needs Linux");
}

void run_questions_close(struct run_questions *q)
{
}
