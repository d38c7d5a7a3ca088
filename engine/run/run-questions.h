/*
 * run-questions.h - let a person decide about things that a run is refused (engine/api/question.h).
 *
 * Each thing is one question: a host with its port, a system call. Other processes of the run that
 * want the same wait for the same answer. cowfsd keeps the question, and the answer comes from
 * there or from a line on the terminal. Without an answer in time, without cowfsd and beyond the
 * bounds below, the answer is no.
 *
 * The run's own output reaches the same terminal, so it could look like a question, or like another
 * one. Therefore no output passes while a question stands there, earlier typed input is dropped,
 * and "allow" needs the first digits of the question's id, which the run does not know.
 */
#pragma once

#include "engine/api/run.h"
#include "engine/run/run-net.h"
#include "engine/run/scrub.h"
#include "runner/sandbox.h"

#define RUN_QUESTIONS_MAX  64 /* of one run */
#define RUN_QUESTIONS_OPEN 8  /* of these at once */
#define RUN_CALLS_MAX      64 /* system calls that wait at once */

struct run_questions;

struct run_questions_options {
	struct engine *engine; /* all of it is borrowed */
	const struct engine_run_options *run;
	const struct scrub *secrets;
	struct run_net *net;
	uint64_t wait_ms;
	struct engine_run *into; /* has the id; gets the answers, and what was refused after all */
};

/* Before run_net_open(): makes the spec and the network ask. */
NODISCARD int run_questions_open(const struct run_questions_options *options,
				 struct sandbox_spec *spec, struct run_questions **ret,
				 struct err *err);

/* The run has ended: what is still open is noted as such.  NULL is fine. */
void run_questions_close(struct run_questions *q);
DEFINE_CLEANUP(struct run_questions *, run_questions_close)
