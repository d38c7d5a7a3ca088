/*
 * seccomp-table.h - which system calls a run may make, as data.
 *
 * A call that is in no list fails with ENOSYS: it is newer than the list, and libc falls back.
 * Names that an architecture does not have are ignored on it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum seccomp_verdict {
	SECCOMP_SAYS_ALLOW,
	SECCOMP_SAYS_EPERM,        /* known, and not for a run */
	SECCOMP_SAYS_ENOSYS,       /* as if the kernel did not have it */
	SECCOMP_SAYS_EAFNOSUPPORT, /* as if the kernel had no such sockets */
	SECCOMP_SAYS_DONE,         /* as if it had worked */
	SECCOMP_SAYS_KILL,
};

/*
 * If the low 32 bits of the argument, masked, are the value (or, with `unless`, are not),
 * this is the verdict.  The kernel looks at no more of these arguments than that: a filter
 * that compares all 64 bits is passed by setting an upper one (CVE-2019-10063).  Of a pointer the
 * kernel looks at all of it: `high` compares the upper half instead.
 */
struct seccomp_case {
	unsigned int arg;
	uint32_t mask;
	uint32_t value;
	bool unless;
	enum seccomp_verdict then;
	bool high;
	bool with_next; /* holds only together with the next case, which says the verdict */
};

#define SECCOMP_CASES_MAX 12

/* A call that is judged by its arguments: by the first case that holds, else as said last. */
struct seccomp_judged {
	const char *call;
	unsigned int n_cases;
	struct seccomp_case cases[SECCOMP_CASES_MAX];
	enum seccomp_verdict otherwise;
};

extern const char *const seccomp_allowed[]; /* whatever their arguments */
extern const size_t seccomp_n_allowed;
extern const char *const seccomp_refused[]; /* with EPERM, whatever their arguments */
extern const size_t seccomp_n_refused;
extern const struct seccomp_judged seccomp_kept[]; /* that no filter in our place can lift */
extern const size_t seccomp_n_kept;
extern const struct seccomp_judged seccomp_judged[]; /* the others */
extern const size_t seccomp_n_judged;
extern const struct seccomp_judged seccomp_strict[]; /* in the place of the above, if asked for */
extern const size_t seccomp_n_strict;
extern const char *const seccomp_root[]; /* allowed, for root of a root file system of its own */
extern const size_t seccomp_n_root;
extern const struct seccomp_judged seccomp_root_judged[]; /* the same, by their arguments */
extern const size_t seccomp_n_root_judged;
extern const char
    *const seccomp_one_id[]; /* with that, where it has one id: as if they had worked */
extern const size_t seccomp_n_one_id;
extern const char *const seccomp_askable[]; /* of what is refused: a person may let it through */
extern const size_t seccomp_n_askable;
