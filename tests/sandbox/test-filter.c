/*
 * test-filter.c - the list of system calls, as the kernel would read it, on both architectures.
 *
 * What the tries in test-attempts show of this machine's architecture is shown here of the
 * other too: the program is run by a small interpreter of the instructions it may have.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/socket.h>

#include "runner/sandbox.h"
#include "runner/seccomp-code.h"
#include "runner/seccomp-table.h"
#include "tests/lib/test.h"

#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define UNKNOWN (SECCOMP_RET_ERRNO | ENOSYS)
#define FAMILY  (SECCOMP_RET_ERRNO | EAFNOSUPPORT)
#define DONE    SECCOMP_RET_ERRNO

static const struct arch {
	uint32_t audit, scmp;
} arches[] = {
	{ AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64 },
	{ AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64 },
};

static uint32_t run(const struct buf *code, const struct seccomp_data *data)
{
	const struct sock_filter *f = (const struct sock_filter *)(const void *)code->data;
	size_t n = code->len / sizeof(*f);
	uint32_t a = 0;

	for (size_t pc = 0; pc < n; pc++) {
		switch (f[pc].code) {
		case BPF_LD | BPF_W | BPF_ABS:
			CHECK(f[pc].k % 4 == 0 && f[pc].k < sizeof(*data));
			memcpy(&a, (const char *)data + f[pc].k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f[pc].k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == f[pc].k ? f[pc].jt : f[pc].jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= f[pc].k ? f[pc].jt : f[pc].jf;
			break;
		case BPF_JMP | BPF_JA:
			pc += f[pc].k;
			break;
		case BPF_RET | BPF_K:
			return f[pc].k;
		default:
			CHECK(!"an instruction that it may not have");
		}
	}
	CHECK(!"ran off its end");
	return 0;
}

static void compile(uint32_t arch, struct buf *code)
{
	struct err err = { 0 };

	CHECK_OK(seccomp_compile(arch, SECCOMP_WHOLE, code, &err), &err);
	CHECK(code->len / sizeof(struct sock_filter) <= BPF_MAXINSNS);
}

/* -1 if this architecture has no such call. */
static int number(const struct arch *arch, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch->scmp, name);

	if (nr < 0 && strcmp(name, "fchmodat2") == 0) /* not known to libseccomp 2.5.4 */
		return 452;
	return nr < 0 ? -1 : nr;
}

static void expect(const struct arch *arch, const struct buf *code, const char *name,
		   const uint64_t args[6], uint32_t want)
{
	struct seccomp_data data = { .nr = number(arch, name), .arch = arch->audit };
	uint32_t got;

	if (data.nr < 0)
		return;
	memcpy(data.args, args, sizeof(data.args));
	got = run(code, &data);
	if (got != want)
		print_message("# %s of %#x: %#x, not %#x\n", name, arch->audit, got, want);
	CHECK_EQ(got, want);
}

#define EXPECT(name, want, ...) expect(arch, &code, name, (uint64_t[6]){ __VA_ARGS__ }, want)

TEST(listed_calls_are_judged_as_listed)
{
	for (size_t i = 0; i < ARRAY_LEN(arches); i++) {
		const struct arch *arch = &arches[i];
		CLEANUP(buf_done) struct buf code = BUF_INIT;
		size_t known = 0;

		compile(arch->audit, &code);
		for (size_t k = 0; k < seccomp_n_allowed; k++) {
			EXPECT(seccomp_allowed[k], SECCOMP_RET_ALLOW, 0);
			known += number(arch, seccomp_allowed[k]) >= 0;
		}
		for (size_t k = 0; k < seccomp_n_refused; k++)
			EXPECT(seccomp_refused[k], REFUSED, 0);
		CHECK(known > 200);
	}
}

TEST(no_call_is_listed_twice)
{
	for (size_t i = 0; i < seccomp_n_allowed; i++) {
		for (size_t k = i + 1; k < seccomp_n_allowed; k++)
			CHECK(strcmp(seccomp_allowed[i], seccomp_allowed[k]) != 0);
		for (size_t k = 0; k < seccomp_n_refused; k++)
			CHECK(strcmp(seccomp_allowed[i], seccomp_refused[k]) != 0);
		for (size_t k = 0; k < seccomp_n_judged; k++)
			CHECK(strcmp(seccomp_allowed[i], seccomp_judged[k].call) != 0);
		for (size_t k = 0; k < seccomp_n_kept; k++)
			CHECK(strcmp(seccomp_allowed[i], seccomp_kept[k].call) != 0);
	}
}

TEST(calls_that_nobody_knows_do_not_exist)
{
	for (size_t i = 0; i < ARRAY_LEN(arches); i++) {
		CLEANUP(buf_done) struct buf code = BUF_INIT;
		struct seccomp_data data = { .arch = arches[i].audit };

		compile(arches[i].audit, &code);
		for (data.nr = 470; data.nr < 5000; data.nr++)
			CHECK_EQ(run(&code, &data), UNKNOWN);
		data.nr = -1;
		CHECK_EQ(run(&code, &data), UNKNOWN);
	}
}

TEST(calls_of_another_architecture_are_deadly)
{
	static const uint32_t others[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_RISCV64, 0 };

	for (size_t i = 0; i < ARRAY_LEN(arches); i++) {
		CLEANUP(buf_done) struct buf code = BUF_INIT;
		struct seccomp_data data = { .arch = arches[1 - i].audit, .nr = 1 };

		compile(arches[i].audit, &code);
		CHECK_EQ(run(&code, &data), SECCOMP_RET_KILL_PROCESS);
		for (size_t k = 0; k < ARRAY_LEN(others); k++) {
			data.arch = others[k];
			CHECK_EQ(run(&code, &data), SECCOMP_RET_KILL_PROCESS);
		}
	}
}

TEST(calls_of_x32_are_deadly)
{
	CLEANUP(buf_done) struct buf code = BUF_INIT;
	struct seccomp_data data = { .arch = AUDIT_ARCH_X86_64 };

	compile(AUDIT_ARCH_X86_64, &code);
	for (int nr = 0; nr < 600; nr++) {
		data.nr = (int)(0x40000000u + (uint32_t)nr);
		CHECK_EQ(run(&code, &data), SECCOMP_RET_KILL_PROCESS);
	}
}

TEST(arguments_are_judged_by_their_low_half)
{
	const uint64_t high = 1ULL << 32;

	for (size_t i = 0; i < ARRAY_LEN(arches); i++) {
		const struct arch *arch = &arches[i];
		CLEANUP(buf_done) struct buf code = BUF_INIT;

		compile(arch->audit, &code);
		EXPECT("ioctl", REFUSED, 0, 0x5412);
		EXPECT("ioctl", REFUSED, 0, 0x5412 | high);
		EXPECT("ioctl", REFUSED, 0, 0x541c | high << 8);
		EXPECT("ioctl", REFUSED, 0, SANDBOX_ASK_SNAPSHOT | high);
		EXPECT("ioctl", SECCOMP_RET_ALLOW, 0, 0x5401);
		EXPECT("fcntl", REFUSED, 0, 1024 | high);
		EXPECT("fcntl", REFUSED, 0, 1040 | high);
		for (uint64_t command = 0; command < 1040; command++)
			if (command != 1024)
				EXPECT("fcntl", SECCOMP_RET_ALLOW, 0, command);
		EXPECT("socket", SECCOMP_RET_ALLOW, AF_UNIX | high, SOCK_STREAM, 0);
		EXPECT("socket", FAMILY, 40 | high, SOCK_STREAM, 0);
		EXPECT("clone", REFUSED, CLONE_NEWUSER | high);
	}
}

TEST(namespaces_families_and_tracing_are_judged)
{
	for (size_t i = 0; i < ARRAY_LEN(arches); i++) {
		const struct arch *arch = &arches[i];
		CLEANUP(buf_done) struct buf code = BUF_INIT;
		static const uint64_t flags[] = { CLONE_NEWNS,    CLONE_NEWUTS, CLONE_NEWIPC,
						  CLONE_NEWUSER,  CLONE_NEWPID, CLONE_NEWNET,
						  CLONE_NEWCGROUP };

		compile(arch->audit, &code);
		for (size_t k = 0; k < ARRAY_LEN(flags); k++) {
			EXPECT("clone", REFUSED, flags[k] | 17);
			EXPECT("unshare", REFUSED, flags[k]);
		}
		EXPECT("unshare", REFUSED, CLONE_NEWTIME);
		EXPECT("unshare", SECCOMP_RET_ALLOW, CLONE_FILES);
		EXPECT("clone", SECCOMP_RET_ALLOW, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND);
		EXPECT("clone", SECCOMP_RET_ALLOW, 17);
		EXPECT("clone3", UNKNOWN, 0);
		for (uint64_t family = 0; family < 64; family++) {
			bool listed = family == AF_UNIX || family == AF_INET ||
				      family == AF_INET6 || family == AF_NETLINK;

			EXPECT("socket", listed ? SECCOMP_RET_ALLOW : FAMILY, family, SOCK_RAW, 0);
			EXPECT("socketpair", family == AF_UNIX ? SECCOMP_RET_ALLOW : FAMILY,
			       family);
		}
		for (uint64_t protocol = 1; protocol < 32; protocol++)
			EXPECT("socket", FAMILY, AF_NETLINK, SOCK_RAW, protocol);
		for (uint64_t type = 0; type < 16; type++) {
			EXPECT("socket", SECCOMP_RET_ALLOW, AF_UNIX, type | SOCK_CLOEXEC, 0);
			EXPECT("socket", type < 4 ? SECCOMP_RET_ALLOW : FAMILY, AF_INET,
			       type | SOCK_NONBLOCK, 0);
			EXPECT("socket", type < 4 ? SECCOMP_RET_ALLOW : FAMILY, AF_INET6, type, 0);
		}
		EXPECT("ptrace", SECCOMP_RET_ALLOW, 0);
		EXPECT("ptrace", REFUSED, 16);
		EXPECT("ptrace", REFUSED, 0x4206);
		EXPECT("personality", SECCOMP_RET_ALLOW, 0xffffffff);
		EXPECT("personality", REFUSED, 6);
	}
}

TEST(only_usual_protocols_of_the_internet_have_sockets)
{
	static const uint64_t families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < 2 * ARRAY_LEN(arches); i++) {
		const struct arch *arch = &arches[i / 2];
		CLEANUP(buf_done) struct buf code = BUF_INIT;

		compile(arch->audit, &code);
		for (uint64_t protocol = 0; protocol < 300; protocol++) {
			bool usual = protocol == 0 || protocol == 1 || protocol == 6 ||
				     protocol == 17 || protocol == 58 || protocol == 262;

			EXPECT("socket", usual ? SECCOMP_RET_ALLOW : FAMILY, families[i % 2],
			       SOCK_STREAM, protocol);
		}
		EXPECT("socket", FAMILY, families[i % 2], SOCK_STREAM, 132 | 1ULL << 32);
	}
}

TEST(what_loads_modules_or_takes_a_core_is_refused)
{
	static const uint64_t loads[] = { 0x5423, 0x8940, 0x8941, 0x8982, 0x8983, 0x89a0, 0x89a1 };

	for (size_t i = 0; i < ARRAY_LEN(arches); i++) {
		const struct arch *arch = &arches[i];
		CLEANUP(buf_done) struct buf code = BUF_INIT;

		compile(arch->audit, &code);
		for (size_t k = 0; k < ARRAY_LEN(loads); k++)
			EXPECT("ioctl", REFUSED, 0, loads[k] | 1ULL << 32);
		for (uint64_t request = 0x8900; request < 0x8940; request++)
			EXPECT("ioctl", SECCOMP_RET_ALLOW, 0, request);
		EXPECT("setsockopt", REFUSED, 3, 6, 31);
		EXPECT("setsockopt", SECCOMP_RET_ALLOW, 3, 6, 1);
		EXPECT("setsockopt", SECCOMP_RET_ALLOW, 3, 1, 31);
		EXPECT("prctl", REFUSED, 62 | 1ULL << 32);
		EXPECT("prctl", SECCOMP_RET_ALLOW, 15);
		EXPECT("io_setup", UNKNOWN, 1);
	}
}

/* The same beside a filter of the user's. */
TEST(the_limit_of_cores_stays_as_it_is)
{
	static const enum seccomp_part parts[] = { SECCOMP_WHOLE, SECCOMP_SETID };

	for (size_t i = 0; i < 2 * ARRAY_LEN(arches); i++) {
		const struct arch *arch = &arches[i / 2];
		CLEANUP(buf_done) struct buf code = BUF_INIT;
		struct err err = { 0 };

		CHECK_OK(seccomp_compile(arch->audit, parts[i % 2], &code, &err), &err);
		EXPECT("setrlimit", DONE, 4);
		EXPECT("setrlimit", DONE, 4 | 1ULL << 32);
		EXPECT("setrlimit", SECCOMP_RET_ALLOW, 7);
		EXPECT("prlimit64", DONE, 0, 4, 0x7fff0010);
		EXPECT("prlimit64", DONE, 0, 4 | 1ULL << 32, 0x700000000);
		EXPECT("prlimit64", SECCOMP_RET_ALLOW, 0, 4, 0, 0x7fff0010);
		EXPECT("prlimit64", SECCOMP_RET_ALLOW, 0, 7, 0x7fff0010);
	}
}

TEST(a_strict_list_allows_less_and_nothing_more)
{
	for (size_t i = 0; i < ARRAY_LEN(arches); i++) {
		const struct arch *arch = &arches[i];
		CLEANUP(buf_done) struct buf plain = BUF_INIT, code = BUF_INIT;
		struct seccomp_data data = { .arch = arch->audit };
		struct err err = { 0 };

		compile(arch->audit, &plain);
		CHECK_OK(seccomp_compile(arch->audit, SECCOMP_STRICT, &code, &err), &err);
		EXPECT("ptrace", REFUSED, 0);
		EXPECT("memfd_create", REFUSED, 0);
		EXPECT("personality", REFUSED, 0x0040000);
		EXPECT("personality", SECCOMP_RET_ALLOW, 0xffffffff);
		for (data.nr = 0; data.nr < 1024; data.nr++)
			CHECK(run(&code, &data) != SECCOMP_RET_ALLOW ||
			      run(&plain, &data) == SECCOMP_RET_ALLOW);
	}
}

/* By the whole list and by the part that stands beside another's. */
TEST(set_id_bits_are_refused_in_every_call_that_can_set_them)
{
	static const enum seccomp_part parts[] = { SECCOMP_WHOLE, SECCOMP_SETID };
	static const uint64_t bits[] = { 04000, 02000, 06000, 04000 | 1ULL << 32 };
	const uint64_t makes[] = { 0100, 020000000 | 040000, 0100 | 1ULL << 40 };

	for (size_t i = 0; i < 2 * ARRAY_LEN(arches); i++) {
		const struct arch *arch = &arches[i / 2];
		CLEANUP(buf_done) struct buf code = BUF_INIT;
		struct err err = { 0 };

		CHECK_OK(seccomp_compile(arch->audit, parts[i % 2], &code, &err), &err);
		for (size_t k = 0; k < ARRAY_LEN(bits); k++) {
			uint64_t mode = 0755 | bits[k];

			EXPECT("chmod", REFUSED, 0, mode);
			EXPECT("fchmod", REFUSED, 0, mode);
			EXPECT("fchmodat", REFUSED, 0, 0, mode);
			EXPECT("fchmodat2", REFUSED, 0, 0, mode);
			EXPECT("creat", REFUSED, 0, mode);
			EXPECT("mkdir", REFUSED, 0, mode);
			EXPECT("mkdirat", REFUSED, 0, 0, mode);
			EXPECT("mknod", REFUSED, 0, mode | 0100000);
			EXPECT("mknodat", REFUSED, 0, 0, mode | 0100000);
			for (size_t n = 0; n < ARRAY_LEN(makes); n++) {
				EXPECT("open", REFUSED, 0, makes[n], mode);
				EXPECT("openat", REFUSED, 0, 0, makes[n], mode);
			}
			/* Nobody reads what stands there if nothing is made. */
			EXPECT("open", SECCOMP_RET_ALLOW, 0, 0, mode);
			EXPECT("openat", SECCOMP_RET_ALLOW, 0, 0, 040000, mode);
		}
		EXPECT("fchmodat", SECCOMP_RET_ALLOW, 0, 0, 01777);
		EXPECT("openat", SECCOMP_RET_ALLOW, 0, 0, 0100, 0666);
		EXPECT("mknodat", SECCOMP_RET_ALLOW, 0, 0, 0100644);
		EXPECT("openat2", UNKNOWN, 0);
		EXPECT("io_uring_setup", REFUSED, 0);
		EXPECT("kcmp", parts[i % 2] == SECCOMP_WHOLE ? REFUSED : SECCOMP_RET_ALLOW, 0);
	}
}

TEST(root_of_its_own_root_may_do_little_more)
{
	static const char *const more[] = { "chmod",  "fchmod",  "fchmodat", "fchmodat2",
					    "mkdir",  "mkdirat", "creat",    "open",
					    "openat", "openat2", "chroot" };

	for (size_t i = 0; i < ARRAY_LEN(arches); i++) {
		const struct arch *arch = &arches[i];
		CLEANUP(buf_done) struct buf plain = BUF_INIT, code = BUF_INIT, one = BUF_INIT;
		struct seccomp_data data = { .arch = arch->audit };
		struct err err = { 0 };

		compile(arch->audit, &plain);
		CHECK_OK(seccomp_compile(arch->audit, SECCOMP_ROOT | SECCOMP_ONE_ID, &one, &err),
			 &err);
		CHECK_OK(seccomp_compile(arch->audit, SECCOMP_ROOT, &code, &err), &err);
		for (size_t k = 0; k < ARRAY_LEN(more); k++)
			EXPECT(more[k], SECCOMP_RET_ALLOW, 06777, 06777, 06777, 06777);
		EXPECT("mount", REFUSED, 0);
		EXPECT("io_uring_setup", REFUSED, 0);
		EXPECT("chown", SECCOMP_RET_ALLOW, 0);
		/* FIFOs, sockets, files with set-id bits and whiteouts; what is above 16 bits is no mode. */
		EXPECT("mknod", SECCOMP_RET_ALLOW, 0, 010644, 0x103);
		EXPECT("mknodat", SECCOMP_RET_ALLOW, 0, 0, 0140644, 0x103);
		EXPECT("mknodat", SECCOMP_RET_ALLOW, 0, 0, 0106755, 0);
		EXPECT("mknodat", SECCOMP_RET_ALLOW, 0, 0, 020644, 0);
		EXPECT("mknod", REFUSED, 0, 020644, 0x103);
		EXPECT("mknodat", REFUSED, 0, 0, 020644, 0x101);
		EXPECT("mknodat", REFUSED, 0, 0, 0xffff00000000ull | 0x10000 | 020644, 0x101);
		EXPECT("mknodat", REFUSED, 0, 0, 060644, 0x700);
		/* All else is as in any run. */
		for (data.nr = 0; data.nr < 1024; data.nr++) {
			const uint32_t says = run(&code, &data), with_one = run(&one, &data);

			CHECK(says == run(&plain, &data) || says == SECCOMP_RET_ALLOW);
			CHECK(with_one == says || with_one == SECCOMP_RET_ERRNO);
		}
		buf_swap(&code, &one);
		EXPECT("chown", SECCOMP_RET_ERRNO, 0);
		EXPECT("fchownat", SECCOMP_RET_ERRNO, 0);
		EXPECT("setgroups", SECCOMP_RET_ERRNO, 0);
		EXPECT("setresuid", SECCOMP_RET_ERRNO, 0);
		EXPECT("setfsuid", SECCOMP_RET_ALLOW, 0);
	}
}

TEST(another_machine_has_no_list)
{
	CLEANUP(buf_done) struct buf code = BUF_INIT;
	struct err err = { 0 };

	CHECK_EQ(seccomp_compile(AUDIT_ARCH_RISCV64, SECCOMP_WHOLE, &code, &err), -ENOTSUP);
	CHECK_HAS(err.msg, "x86_64 and aarch64");
}

TEST(what_is_heard_is_what_was_refused_and_nothing_else)
{
	for (size_t i = 0; i < ARRAY_LEN(arches); i++) {
		CLEANUP(buf_done) struct buf plain = BUF_INIT, told = BUF_INIT;
		struct seccomp_data data = { .arch = arches[i].audit };
		unsigned int heard = 0;

		compile(arches[i].audit, &plain);
		compile(arches[i].audit, &told);
		seccomp_tell(&told);
		for (data.nr = 0; data.nr < 1024; data.nr++) {
			for (data.args[0] = 0; data.args[0] < 64; data.args[0]++) {
				uint32_t was = run(&plain, &data), is = run(&told, &data);
				bool refused = was == REFUSED || was == FAMILY || was == DONE;

				CHECK_EQ(is, refused ? SECCOMP_RET_USER_NOTIF : was);
				heard += refused;
			}
		}
		CHECK(heard > 1000);
	}
}

/* The answer that stands in for the list knows the call, and not which argument was wrong. */
TEST(only_sockets_are_refused_with_another_error)
{
	for (size_t i = 0; i < seccomp_n_judged; i++) {
		const struct seccomp_judged *j = &seccomp_judged[i];
		bool is_socket =
		    strcmp(j->call, "socket") == 0 || strcmp(j->call, "socketpair") == 0;

		for (unsigned int k = 0; k < j->n_cases; k++)
			CHECK(j->cases[k].then !=
			      (is_socket ? SECCOMP_SAYS_EPERM : SECCOMP_SAYS_EAFNOSUPPORT));
		CHECK(j->otherwise != (is_socket ? SECCOMP_SAYS_EPERM : SECCOMP_SAYS_EAFNOSUPPORT));
	}
}

TEST_MAIN("sandbox-filter")
