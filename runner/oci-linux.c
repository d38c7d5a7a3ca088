/*
 * oci-linux.c - read the profile, let libseccomp compile it.
 */
#include "runner/oci.h"

#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/json.h"

#define CODE_MAX (4096 * 8) /* BPF_MAXINSNS instructions */
#define ARGS_MAX 6

#if defined(__x86_64__)
#define THIS_ARCH "amd64"
#elif defined(__aarch64__)
#define THIS_ARCH "arm64"
#else
#define THIS_ARCH "unknown"
#endif

static int find_action(const char *name, uint32_t errnum, uint32_t *ret, struct err *err)
{
	static const struct {
		const char *name;
		uint32_t action;
	} all[] = {
		{ "SCMP_ACT_ALLOW", SCMP_ACT_ALLOW },
		{ "SCMP_ACT_LOG", SCMP_ACT_LOG },
		{ "SCMP_ACT_KILL", SCMP_ACT_KILL_PROCESS },
		{ "SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS },
		{ "SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD },
		{ "SCMP_ACT_TRAP", SCMP_ACT_TRAP },
	};

	if (strcmp(name, "SCMP_ACT_ERRNO") == 0) {
		*ret = SCMP_ACT_ERRNO(errnum);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (strcmp(name, all[i].name) == 0) {
			*ret = all[i].action;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "'%s' is no action that a filter of a run can take", name);
}

static int find_compare(const char *name, enum scmp_compare *ret, struct err *err)
{
	static const struct {
		const char *name;
		enum scmp_compare op;
	} all[] = {
		{ "SCMP_CMP_NE", SCMP_CMP_NE },
		{ "SCMP_CMP_LT", SCMP_CMP_LT },
		{ "SCMP_CMP_LE", SCMP_CMP_LE },
		{ "SCMP_CMP_EQ", SCMP_CMP_EQ },
		{ "SCMP_CMP_GE", SCMP_CMP_GE },
		{ "SCMP_CMP_GT", SCMP_CMP_GT },
		{ "SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (strcmp(name, all[i].name) == 0) {
			*ret = all[i].op;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "'%s' is no comparison of a filter", name);
}

static uint32_t get_errno(struct json j, const char *key)
{
	return json_has(j, key) ? (uint32_t)json_get_uint(j, key) & 0xfff : EPERM;
}

/* Whether `key` of this condition is a list that names us; `absent` if there is none. */
static bool lists(struct json condition, const char *key, const char *what, bool absent)
{
	struct json list;

	if (!json_has(condition, key))
		return absent;
	list = json_get_array(condition, key);
	if (json_length(list) == 0)
		return absent;
	for (size_t i = 0; what && i < json_length(list); i++) {
		AUTO_FREE char *one = json_at_name(list, i);

		if (one && strcmp(one, what) == 0)
			return true;
	}
	return false;
}

/* Said wrongly is said too high: json_end() then refuses the whole. */
static bool kernel_is_at_least(const char *wanted)
{
	struct utsname u;
	int want[2] = { 0, 0 }, have[2] = { 0, 0 };

	if (!wanted || uname(&u) < 0 || sscanf(wanted, "%d.%d", &want[0], &want[1]) < 1 ||
	    sscanf(u.release, "%d.%d", &have[0], &have[1]) < 2)
		return false;
	return have[0] > want[0] || (have[0] == want[0] && have[1] >= want[1]);
}

static bool applies(struct json rule)
{
	struct json c;

	if (json_has(rule, "includes")) {
		c = json_get_object(rule, "includes");
		if (!lists(c, "caps", NULL, true) || !lists(c, "arches", THIS_ARCH, true))
			return false;
		if (json_has(c, "minKernel") && !kernel_is_at_least(json_get_text(c, "minKernel")))
			return false;
	}
	if (json_has(rule, "excludes")) {
		c = json_get_object(rule, "excludes");
		if (lists(c, "arches", THIS_ARCH, false))
			return false;
		if (json_has(c, "minKernel") && kernel_is_at_least(json_get_text(c, "minKernel")))
			return false;
	}
	return true;
}

static int read_args(struct json rule, struct scmp_arg_cmp args[ARGS_MAX], unsigned int *ret_n,
		     struct err *err)
{
	struct json list;

	*ret_n = 0;
	if (!json_has(rule, "args"))
		return 0;
	list = json_get_array(rule, "args");
	for (size_t i = 0; i < json_length(list); i++) {
		struct json a = json_at_object(list, i);
		const char *op = json_get_text(a, "op");
		uint64_t index = json_get_uint(a, "index");
		enum scmp_compare compare = SCMP_CMP_EQ;
		int r;

		if (!op || index >= ARGS_MAX || i >= ARGS_MAX)
			return err_set(err, -EINVAL,
				       "a system call has no argument %llu to compare",
				       (unsigned long long)index);
		r = find_compare(op, &compare, err);
		if (r < 0)
			return r;
		args[i] = (struct scmp_arg_cmp){
			.arg = (unsigned int)index,
			.op = compare,
			.datum_a = json_get_uint(a, "value"),
			.datum_b = json_has(a, "valueTwo") ? json_get_uint(a, "valueTwo") : 0,
		};
		*ret_n = (unsigned int)i + 1;
	}
	return 0;
}

static int add_call(scmp_filter_ctx ctx, const char *name, uint32_t action, unsigned int n,
		    const struct scmp_arg_cmp *args, struct err *err)
{
	int nr = seccomp_syscall_resolve_name(name), rc;

	if (nr == __NR_SCMP_ERROR)
		return 0;
	rc = seccomp_rule_add_array(ctx, action, nr, n, args);
	/* -EACCES: a rule that says what the default says anyway. */
	if (rc < 0 && rc != -EACCES && rc != -EEXIST)
		return err_set(err, -EINVAL, "libseccomp does not take the rule for '%s'", name);
	return 0;
}

static int add_rule(scmp_filter_ctx ctx, struct json rule, struct err *err)
{
	struct scmp_arg_cmp args[ARGS_MAX];
	const char *action_name = json_get_text(rule, "action");
	struct json names = json_get_array(rule, "names");
	uint32_t action = SCMP_ACT_KILL_PROCESS;
	unsigned int n = 0;
	int r;

	if (!action_name || !applies(rule))
		return 0;
	r = find_action(action_name, get_errno(rule, "errnoRet"), &action, err);
	if (r == 0)
		r = read_args(rule, args, &n, err);
	for (size_t i = 0; r == 0 && i < json_length(names); i++) {
		AUTO_FREE char *name = json_at_name(names, i);

		r = name ? add_call(ctx, name, action, n, args, err) : 0;
	}
	return r;
}

static int export_code(scmp_filter_ctx ctx, struct buf *out, struct err *err)
{
	AUTO_CLOSE int fd = memfd_create("filter", MFD_CLOEXEC);
	unsigned char *code = buf_extend(out, CODE_MAX);
	ssize_t n;
	int rc;

	if (fd < 0)
		return err_sys(err, "making room for the filter of the run");
	if (!code)
		return err_nomem(err);
	out->len -= CODE_MAX;
	rc = seccomp_export_bpf(ctx, fd);
	if (rc < 0)
		return err_wrap(err, rc, "compiling the filter");
	n = fdio_pread(fd, code, CODE_MAX, 0);
	if (n < 0)
		return err_wrap(err, (int)n, "reading the filter of the run");
	if (n == CODE_MAX)
		return err_set(err, -E2BIG, "the filter is longer than the kernel takes");
	out->len += (size_t)n;
	return 0;
}

static void release(scmp_filter_ctx *ctx)
{
	seccomp_release(*ctx);
}

int oci_compile(const char *text, size_t len, struct buf *out, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(release) scmp_filter_ctx ctx = NULL;
	struct json top, rules;
	const char *name;
	uint32_t action = SCMP_ACT_KILL_PROCESS;
	int r;

	while (len > 0 && strchr(" \t\r\n", text[len - 1]))
		len--;
	r = json_parse(&doc, text, len, &top, err);
	if (r < 0)
		return err_wrap(err, r, "the profile is no JSON");
	name = json_get_text(top, "defaultAction");
	rules = json_get_array(top, "syscalls");
	r = json_end(&doc, err);
	if (r == 0)
		r = find_action(name, get_errno(top, "defaultErrnoRet"), &action, err);
	if (r < 0)
		return r;
	ctx = seccomp_init(action);
	if (!ctx)
		return err_nomem(err);
	if (seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0 ||
	    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0)
		return err_set(err, -ENOTSUP, "this libseccomp cannot make such filters");
	for (size_t i = 0; r == 0 && i < json_length(rules); i++)
		r = add_rule(ctx, json_at_object(rules, i), err);
	if (r == 0)
		r = json_end(&doc, err);
	return r < 0 ? r : export_code(ctx, out, err);
}
