/*
 * seccomp-linux.c - compile the table, and enter it.
 *
 * libseccomp knows the numbers of the calls. The program is our own, because libseccomp cannot say
 * of one argument "these values are allowed, others EPERM" beside a default of ENOSYS.
 *
 * All numbers are cut into spans with the same answer, and found by binary search: a call costs
 * seven or eight comparisons.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "runner/sandbox-i.h"
#include "runner/seccomp-code.h"
#include "runner/seccomp-table.h"

#define X32_FIRST 0x40000000u /* numbers of the x32 ABI, which passes as x86_64 */
#define X32_LAST  0xfffffffeu /* -1 is a call that a tracer skipped */

/* From `first` up to the next span. */
struct span {
	uint32_t first;
	enum seccomp_verdict says;
	const struct seccomp_judged *judged; /* decides instead, if there is one */
};

struct filtered_call {
	uint32_t number;
	enum seccomp_verdict says;
	const struct seccomp_judged *judged;
};

#define CALLS_MAX 640

struct compiler {
	uint32_t scmp_arch;
	enum seccomp_verdict unlisted;
	struct filtered_call calls[CALLS_MAX];
	size_t n_calls;
	struct span spans[2 * CALLS_MAX + 4];
	size_t n_spans;
	struct buf *out;
	bool failed;
};

/*
 * Negative: this architecture does not have it, or this libseccomp not know it.  That must not
 * open what is judged beside a list that allows the rest; from 424 on a call has the same number
 * everywhere.
 */
static int number_of(const struct compiler *c, const char *name)
{
	int number = seccomp_syscall_resolve_name_arch(c->scmp_arch, name);

	return number < 0 && strcmp(name, "fchmodat2") == 0 ? 452 : number;
}

static void add_call(struct compiler *c, const char *name, enum seccomp_verdict says,
		     const struct seccomp_judged *judged)
{
	int number = number_of(c, name);

	if (number < 0)
		return;
	if (c->n_calls == CALLS_MAX) {
		c->failed = true;
		return;
	}
	c->calls[c->n_calls++] =
	    (struct filtered_call){ .number = (uint32_t)number, .says = says, .judged = judged };
}

static int by_number(const void *a, const void *b)
{
	const struct filtered_call *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static void add_span(struct compiler *c, uint32_t first, enum seccomp_verdict says,
		     const struct seccomp_judged *judged)
{
	struct span *last = c->n_spans > 0 ? &c->spans[c->n_spans - 1] : NULL;

	if (last && last->first == first)
		*last = (struct span){ first, says, judged };
	else if (!last || last->says != says || last->judged || judged)
		c->spans[c->n_spans++] = (struct span){ first, says, judged };
}

static void cut_spans(struct compiler *c)
{
	qsort(c->calls, c->n_calls, sizeof(c->calls[0]), by_number);
	add_span(c, 0, c->unlisted, NULL);
	for (size_t i = 0; i < c->n_calls; i++) {
		add_span(c, c->calls[i].number, c->calls[i].says, c->calls[i].judged);
		if (i + 1 == c->n_calls || c->calls[i + 1].number != c->calls[i].number + 1)
			add_span(c, c->calls[i].number + 1, c->unlisted, NULL);
	}
	if (c->scmp_arch == SCMP_ARCH_X86_64) {
		add_span(c, X32_FIRST, SECCOMP_SAYS_KILL, NULL);
		add_span(c, X32_LAST + 1, c->unlisted, NULL);
	}
}

/* --- code --------------------------------------------------------------------------------- */

static size_t emit(struct compiler *c, uint16_t code, uint8_t yes, uint8_t no, uint32_t k)
{
	struct sock_filter f = { .code = code, .jt = yes, .jf = no, .k = k };

	if (buf_append(c->out, &f, sizeof(f)) < 0)
		c->failed = true;
	return c->out->len / sizeof(f) - 1;
}

static void emit_load(struct compiler *c, size_t offset)
{
	emit(c, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void emit_verdict(struct compiler *c, enum seccomp_verdict says)
{
	static const uint32_t action[] = {
		[SECCOMP_SAYS_ALLOW] = SECCOMP_RET_ALLOW,
		[SECCOMP_SAYS_EPERM] = SECCOMP_RET_ERRNO | EPERM,
		[SECCOMP_SAYS_ENOSYS] = SECCOMP_RET_ERRNO | ENOSYS,
		[SECCOMP_SAYS_EAFNOSUPPORT] = SECCOMP_RET_ERRNO | EAFNOSUPPORT,
		[SECCOMP_SAYS_DONE] = SECCOMP_RET_ERRNO,
		[SECCOMP_SAYS_KILL] = SECCOMP_RET_KILL_PROCESS,
	};

	emit(c, BPF_RET | BPF_K, 0, 0, action[says]);
}

#define CASE_LEN 4 /* instructions of a case with its verdict */

static void emit_judged(struct compiler *c, const struct seccomp_judged *judged)
{
	for (unsigned int i = 0; i < judged->n_cases; i++) {
		const struct seccomp_case *one = &judged->cases[i];
		const uint8_t past = one->with_next ? CASE_LEN : 1;

		/* Both architectures are little-endian: the low half stands first. */
		emit_load(c, offsetof(struct seccomp_data, args) + one->arg * sizeof(uint64_t) +
				 (one->high ? sizeof(uint32_t) : 0));
		emit(c, BPF_ALU | BPF_AND | BPF_K, 0, 0, one->mask);
		emit(c, BPF_JMP | BPF_JEQ | BPF_K, one->unless ? past : 0, one->unless ? 0 : past,
		     one->value);
		if (!one->with_next)
			emit_verdict(c, one->then);
	}
	emit_verdict(c, judged->otherwise);
}

/* Halve [from, to) until one span is left.  Its depth is that of a tree of at most 1,284. */
static void emit_search(struct compiler *c, size_t from, size_t to)
{
	size_t mid = from + (to - from) / 2, jump;

	if (to - from == 1) {
		if (c->spans[from].judged)
			emit_judged(c, c->spans[from].judged);
		else
			emit_verdict(c, c->spans[from].says);
		return;
	}
	emit(c, BPF_JMP | BPF_JGE | BPF_K, 0, 1, c->spans[mid].first);
	jump = emit(c, BPF_JMP | BPF_JA, 0, 0, 0);
	emit_search(c, from, mid);
	if (!c->failed) {
		struct sock_filter *code = (struct sock_filter *)(void *)c->out->data;

		code[jump].k = (uint32_t)(c->out->len / sizeof(*code) - jump - 1);
	}
	emit_search(c, mid, to);
}

static void add_judged(struct compiler *c, const struct seccomp_judged *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_call(c, all[i].call, SECCOMP_SAYS_ALLOW, &all[i]);
}

static bool is_strict(const char *call)
{
	return VEC_HAS(it, seccomp_strict, seccomp_n_strict, strcmp(it->call, call) == 0);
}

static bool is_among(const char *call, const char *const *list, size_t n)
{
	return VEC_HAS(it, list, n, strcmp(*it, call) == 0);
}

/* Those that root of its own root has another answer for. */
static bool is_roots(unsigned int parts, const char *call)
{
	for (size_t i = 0; (parts & SECCOMP_ROOT) && i < seccomp_n_root_judged; i++)
		if (strcmp(seccomp_root_judged[i].call, call) == 0)
			return true;
	return ((parts & SECCOMP_ROOT) && is_among(call, seccomp_root, seccomp_n_root)) ||
	       ((parts & SECCOMP_ONE_ID) && is_among(call, seccomp_one_id, seccomp_n_one_id));
}

static void add_roots(struct compiler *c, unsigned int parts)
{
	for (size_t i = 0; (parts & SECCOMP_ROOT) && i < seccomp_n_root; i++)
		add_call(c, seccomp_root[i], SECCOMP_SAYS_ALLOW, NULL);
	if (parts & SECCOMP_ROOT)
		add_judged(c, seccomp_root_judged, seccomp_n_root_judged);
	for (size_t i = 0; (parts & SECCOMP_ONE_ID) && i < seccomp_n_one_id; i++)
		add_call(c, seccomp_one_id[i], SECCOMP_SAYS_DONE, NULL);
}

static void add_list(struct compiler *c, unsigned int parts)
{
	const bool strict = parts & SECCOMP_STRICT;

	for (size_t i = 0; i < seccomp_n_allowed; i++)
		if ((!strict || !is_strict(seccomp_allowed[i])) &&
		    !is_roots(parts, seccomp_allowed[i]))
			add_call(c, seccomp_allowed[i], SECCOMP_SAYS_ALLOW, NULL);
	for (size_t i = 0; i < seccomp_n_refused; i++)
		if (!is_roots(parts, seccomp_refused[i]))
			add_call(c, seccomp_refused[i], SECCOMP_SAYS_EPERM, NULL);
	for (size_t i = 0; i < seccomp_n_judged; i++)
		if (!strict || !is_strict(seccomp_judged[i].call))
			add_judged(c, &seccomp_judged[i], 1);
	if (strict)
		add_judged(c, seccomp_strict, seccomp_n_strict);
}

int seccomp_compile(uint32_t arch, unsigned int parts, struct buf *out, struct err *err)
{
	AUTO_FREE struct compiler *c = calloc(1, sizeof(*c));

	if (!c)
		return err_nomem(err);
	if (arch != AUDIT_ARCH_X86_64 && arch != AUDIT_ARCH_AARCH64)
		return err_set(err, -ENOTSUP,
			       "the list of system calls is for x86_64 and aarch64, not for %#x",
			       arch);
	c->out = out;
	c->scmp_arch = arch == AUDIT_ARCH_X86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64;
	c->unlisted = parts & SECCOMP_SETID ? SECCOMP_SAYS_ALLOW : SECCOMP_SAYS_ENOSYS;
	for (size_t i = 0; i < seccomp_n_kept; i++)
		if (!is_roots(parts, seccomp_kept[i].call))
			add_judged(c, &seccomp_kept[i], 1);
	add_roots(c, parts);
	if (!(parts & SECCOMP_SETID))
		add_list(c, parts);
	cut_spans(c);

	emit_load(c, offsetof(struct seccomp_data, arch));
	emit(c, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, arch);
	emit_verdict(c, SECCOMP_SAYS_KILL);
	emit_load(c, offsetof(struct seccomp_data, nr));
	emit_search(c, 0, c->n_spans);
	return c->failed ? err_nomem(err) : 0;
}

static int compile_own(unsigned int parts, struct buf *code, struct err *err)
{
#if defined(__x86_64__)
	return seccomp_compile(AUDIT_ARCH_X86_64, parts, code, err);
#elif defined(__aarch64__)
	return seccomp_compile(AUDIT_ARCH_AARCH64, parts, code, err);
#else
	return seccomp_compile(0, parts, code, err);
#endif
}

/*
 * A refused call that we know goes to the listener, and one that would only be said to have worked; an
 * unknown one just does not exist.
 */
void seccomp_tell(struct buf *code)
{
	struct sock_filter *at = (struct sock_filter *)(void *)code->data;

	for (size_t i = 0; i < code->len / sizeof(*at); i++) {
		if (at[i].code == (BPF_RET | BPF_K) &&
		    (at[i].k == (SECCOMP_RET_ERRNO | EPERM) ||
		     at[i].k == (SECCOMP_RET_ERRNO | EAFNOSUPPORT) || at[i].k == SECCOMP_RET_ERRNO))
			at[i].k = SECCOMP_RET_USER_NOTIF;
	}
}

static int enter(struct buf *code, unsigned int flags)
{
	struct sock_fprog prog = {
		.filter = (struct sock_filter *)(void *)code->data,
		.len = (unsigned short)(code->len / sizeof(struct sock_filter)),
	};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

/* The same list, heard.  False where that cannot be had: somebody outside listens already. */
static bool enter_heard(struct run *run, const struct buf *code)
{
	CLEANUP(buf_done) struct buf told = BUF_INIT;

	if (buf_append(&told, code->data, code->len) < 0)
		return false;
	seccomp_tell(&told);
	/* From Linux 5.19 on only what kills ends a call that is being answered: else it asks twice. */
	run->listener =
	    enter(&told, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	if (run->listener < 0 && errno == EINVAL)
		run->listener = enter(&told, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	return run->listener >= 0;
}

static int enter_plain(struct buf *code, struct err *err)
{
	if (enter(code, 0) < 0)
		return err_sys(err, "entering the list of system calls of the run");
	return 0;
}

/* Ours first: theirs may not allow to enter another. */
static int enter_theirs(const struct sandbox_spec *spec, struct err *err)
{
	CLEANUP(buf_done) struct buf own = BUF_INIT, theirs = BUF_INIT;
	int r = compile_own(SECCOMP_SETID, &own, err);

	if (r < 0)
		return r;
	if (buf_append(&theirs, spec->filter, spec->filter_len) < 0)
		return err_nomem(err);
	r = enter_plain(&own, err);
	return r < 0 ? r : enter_plain(&theirs, err);
}

static unsigned int parts_of(const struct run *run)
{
	unsigned int parts = run->spec->strict_calls ? SECCOMP_STRICT : SECCOMP_WHOLE;

	if (run->spec->root)
		parts |= SECCOMP_ROOT | (ids_are_answered(run) ? SECCOMP_ONE_ID : 0);
	return parts;
}

int seccomp_enter(struct run *run, bool heard, struct err *err)
{
	CLEANUP(buf_done) struct buf code = BUF_INIT;
	int r;

	if (run->spec->filter)
		return enter_theirs(run->spec, err);
	r = compile_own(parts_of(run), &code, err);
	if (r < 0)
		return r;
	if (heard && run->spec->refused && enter_heard(run, &code))
		return 0;
	if (heard && run->spec->snapshots)
		return err_set(
		    err, -ENOTSUP,
		    "the run may take snapshots, and that needs seccomp's notifications, "
		    "which somebody outside listens to already");
	return enter_plain(&code, err);
}
