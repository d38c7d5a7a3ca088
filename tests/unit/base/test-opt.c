#include "tests/lib/test.h"

#include <errno.h>
#include <stdio.h>

#include "base/opt.h"

struct args {
	bool json;
	bool quiet;
	unsigned verbose;
	const char *name;
	int offset;
	uint64_t pids;
	uint64_t mem;
	uint64_t time;
	struct opt_list env;
	struct {
		bool dry;
	} common;
};

static const struct opt opts[] = {
	OPT_FLAG('j', "json", struct args, json, "print one JSON object"),
	OPT_FLAG('q', "quiet", struct args, quiet,
		 "print nothing at all; only the exit status tells a thing"),
	OPT_COUNT('v', "verbose", struct args, verbose, "say more; twice for all"),
	OPT_STR('n', "name", "NAME", struct args, name, "what to call it"),
	OPT_INT('o', "offset", "N", struct args, offset, "how many back"),
	OPT_U64(0, "pids", "N", struct args, pids, "most processes"),
	OPT_SIZE('m', "mem", "SIZE", struct args, mem,
		 "most memory the command and all its children may use now, before the kernel "
		 "ends them"),
	OPT_DURATION(0, "time", "TIME", struct args, time, "longest run"),
	OPT_LIST('e', "env", "NAME=VALUE", struct args, env, "set a variable"),
	OPT_FLAG('d', NULL, struct args, common.dry, "change nothing"),
	OPT_STR(0, "an-option-with-a-very-long-name", "auto|always|never", struct args, name,
		"rarely seen"),
	OPT_END,
};

static struct args args;
static struct opt_words words;
static struct err err;
static char *argv[32];

static int parse_mode(enum opt_mode mode, const char *const *given)
{
	int argc = 0;

	opt_done(opts, &args);
	args = (struct args){ 0 };
	words = (struct opt_words){ -1, -1, false };
	err = (struct err){ 0 };
	for (; given[argc]; argc++)
		memcpy(&argv[argc], &given[argc], sizeof(argv[0]));
	return opt_parse(opts, mode, argc, argv, &args, &words, &err);
}

#define PARSE(...)        parse_mode(OPT_PERMUTE, (const char *const[]){ __VA_ARGS__, NULL })
#define CHECK_PARSED(...) CHECK_OK(PARSE(__VA_ARGS__), &err)
#define CHECK_REFUSED(sentence, ...)                   \
	do {                                           \
		CHECK_EQ(PARSE(__VA_ARGS__), -EINVAL); \
		CHECK_EQ(err.code, -EINVAL);           \
		CHECK_STR(err.msg, sentence);          \
		CHECK_EQ(words.n, -1);                 \
	} while (0)

TEST(without_arguments_nothing_changes)
{
	CHECK_OK(parse_mode(OPT_PERMUTE, (const char *const[]){ NULL }), &err);
	CHECK_EQ(words.n, 0);
	CHECK_EQ(words.n_before, 0);
	CHECK(!words.dashes);
	CHECK(!args.json);
	CHECK(!args.name);
}

TEST(flags_are_set_by_either_name_and_in_bundles)
{
	CHECK_PARSED("--json");
	CHECK(args.json && !args.quiet);
	CHECK_PARSED("-q");
	CHECK(args.quiet && !args.json);
	CHECK_PARSED("-qvjv", "--verbose", "-d");
	CHECK(args.quiet && args.json && args.common.dry);
	CHECK_EQ(args.verbose, 3);
}

TEST(a_value_may_stand_in_four_ways)
{
	CHECK_PARSED("--name=a");
	CHECK_STR(args.name, "a");
	CHECK_PARSED("--name", "b");
	CHECK_STR(args.name, "b");
	CHECK_PARSED("-n", "c");
	CHECK_STR(args.name, "c");
	CHECK_PARSED("-nd");
	CHECK_STR(args.name, "d");
	CHECK_PARSED("-qne");
	CHECK_STR(args.name, "e");
	CHECK(args.quiet);
	CHECK_PARSED("-qn", "f");
	CHECK_STR(args.name, "f");
	CHECK_EQ(words.n, 0);
}

TEST(a_value_may_look_like_an_option_or_be_empty)
{
	CHECK_PARSED("--name", "--json", "-n-q");
	CHECK_STR(args.name, "-q");
	CHECK(!args.json && !args.quiet);
	CHECK_PARSED("--name=");
	CHECK_STR(args.name, "");
	CHECK_PARSED("--name=a=b");
	CHECK_STR(args.name, "a=b");
	CHECK_PARSED("--name=--");
	CHECK_STR(args.name, "--");
}

TEST(numbers_sizes_and_durations_arrive_as_values)
{
	CHECK_PARSED("-o", "-5", "--pids=512", "--mem", "1G", "--time=15m");
	CHECK_EQ(args.offset, -5);
	CHECK_EQ(args.pids, 512);
	CHECK_EQ(args.mem, 1 << 30);
	CHECK_EQ(args.time, 900000);
	CHECK_PARSED("-o2147483647");
	CHECK_EQ(args.offset, INT32_MAX);
	CHECK_PARSED("-o-2147483648");
	CHECK_EQ(args.offset, INT32_MIN);
}

TEST(the_last_value_wins_but_a_list_keeps_all)
{
	CHECK_PARSED("-n", "a", "-n", "b", "-e", "A=1", "--env", "B=2", "--env=C=3");
	CHECK_STR(args.name, "b");
	CHECK_EQ(args.env.n, 3);
	CHECK_STR(args.env.items[0], "A=1");
	CHECK_STR(args.env.items[1], "B=2");
	CHECK_STR(args.env.items[2], "C=3");
	opt_done(opts, &args);
	CHECK(!args.env.items);
	CHECK_EQ(args.env.n, 0);
}

TEST(options_and_words_may_come_in_any_order)
{
	CHECK_PARSED("one", "--json", "two", "-n", "x", "", "-", "-q");
	CHECK_EQ(words.n, 4);
	CHECK_EQ(words.n_before, 4);
	CHECK(!words.dashes);
	CHECK_STR(argv[0], "one");
	CHECK_STR(argv[1], "two");
	CHECK_STR(argv[2], "");
	CHECK_STR(argv[3], "-");
	CHECK(args.json && args.quiet);
	CHECK_STR(args.name, "x");
}

TEST(two_dashes_end_the_options_and_are_remembered)
{
	CHECK_PARSED("clone", "-q", "--", "make", "--json", "--", "-v");
	CHECK(words.dashes);
	CHECK_EQ(words.n_before, 1);
	CHECK_EQ(words.n, 5);
	CHECK_STR(argv[0], "clone");
	CHECK_STR(argv[1], "make");
	CHECK_STR(argv[2], "--json");
	CHECK_STR(argv[3], "--");
	CHECK_STR(argv[4], "-v");
	CHECK(!args.json);

	CHECK_PARSED("--", "make");
	CHECK_EQ(words.n_before, 0);
	CHECK_EQ(words.n, 1);

	CHECK_PARSED("a", "--");
	CHECK(words.dashes);
	CHECK_EQ(words.n_before, 1);
	CHECK_EQ(words.n, 1);
}

TEST(parsing_can_stop_at_the_first_word)
{
	const char *const given[] = { "-q", "-n", "x", "run", "--json", "--", "make", NULL };

	CHECK_OK(parse_mode(OPT_STOP_AT_WORD, given), &err);
	CHECK(args.quiet && !args.json);
	CHECK(!words.dashes);
	CHECK_EQ(words.n, 4);
	CHECK_STR(argv[0], "run");
	CHECK_STR(argv[1], "--json");
	CHECK_STR(argv[2], "--");
	CHECK_STR(argv[3], "make");
}

TEST(an_unknown_option_is_named_and_the_nearest_suggested)
{
	CHECK_REFUSED("unknown option '--jsno', did you mean '--json'?", "--jsno");
	CHECK_REFUSED("unknown option '--nmae', did you mean '--name'?", "--nmae=x");
	CHECK_REFUSED("unknown option '--frobnicate'", "--frobnicate");
	CHECK_REFUSED("unknown option '--frobnicate'", "--frobnicate=x");
	CHECK_REFUSED("unknown option '-x'", "-x");
	CHECK_REFUSED("unknown option '-x' in '-qx'", "-qx");
	CHECK_REFUSED("unknown option '-pids=5', did you mean '--pids=5'?", "-pids=5");
}

TEST(a_shortened_long_name_is_not_accepted)
{
	CHECK_REFUSED("unknown option '--verb', did you mean '--verbose'?", "--verb");
	CHECK_REFUSED("unknown option '--nam', did you mean '--name'?", "--nam=x");
}

TEST(a_missing_value_is_named)
{
	CHECK_REFUSED("option '--mem' needs a value: SIZE", "--mem");
	CHECK_REFUSED("option '-e' needs a value: NAME=VALUE", "-qe");
	CHECK_REFUSED("option '--name' needs a value: NAME", "--name", "--", "make");
}

TEST(a_value_for_a_flag_is_refused)
{
	CHECK_REFUSED("option '--json' takes no value, not 'yes'", "--json=yes");
	CHECK_REFUSED("option '--verbose' takes no value, not ''", "--verbose=");
}

TEST(a_bad_value_is_named_with_what_was_wanted)
{
	CHECK_REFUSED("option '--pids': 'x' is not a whole number", "--pids=x");
	CHECK_REFUSED("option '--pids': '-1' is not a whole number", "--pids", "-1");
	CHECK_REFUSED("option '--pids': '' is not a whole number", "--pids=");
	CHECK_REFUSED("option '-o': '1x' is not a whole number", "-o1x");
	CHECK_REFUSED("option '-o': '-' is not a whole number", "-o", "-");
	CHECK_REFUSED("option '-o': '--5' is not a whole number", "-o", "--5");
	CHECK_REFUSED("option '-m': '1X' is not a size such as 512M or 2G", "-m", "1X");
	CHECK_REFUSED("option '--mem': '5' has no unit: say 5M, or 5B if so few bytes are meant",
		      "--mem", "5");
	CHECK_REFUSED("option '--time': '30' is not a duration such as 30s, 15m or 2h", "--time",
		      "30");
}

TEST(a_value_that_does_not_fit_is_out_of_range)
{
	CHECK_REFUSED("option '--offset': '2147483648' is out of range", "--offset=2147483648");
	CHECK_REFUSED("option '-o': '-2147483649' is out of range", "-o-2147483649");
	CHECK_REFUSED("option '--pids': '18446744073709551616' is out of range",
		      "--pids=18446744073709551616");
	CHECK_REFUSED("option '--mem': '16E' is out of range", "--mem=16E");
	CHECK_REFUSED("option '--time': '999999999999d' is out of range", "--time=999999999999d");
}

TEST(a_list_can_be_released_after_a_failure)
{
	CHECK_EQ(PARSE("-e", "A=1", "-e", "B=2", "--bad"), -EINVAL);
	opt_done(opts, &args);
	CHECK(!args.env.items);
	opt_done(opts, &args);
}

TEST(help_is_aligned_and_fits_80_columns)
{
	static const char want[] =
	    "  -j, --json            print one JSON object\n"
	    "  -q, --quiet           print nothing at all; only the exit status tells a thing\n"
	    "  -v, --verbose         say more; twice for all\n"
	    "  -n, --name NAME       what to call it\n"
	    "  -o, --offset N        how many back\n"
	    "      --pids N          most processes\n"
	    "  -m, --mem SIZE        most memory the command and all its children may use\n"
	    "                        now, before the kernel ends them\n"
	    "      --time TIME       longest run\n"
	    "  -e, --env NAME=VALUE  set a variable\n"
	    "  -d                    change nothing\n"
	    "      --an-option-with-a-very-long-name auto|always|never\n"
	    "                        rarely seen\n";
	AUTO_FREE char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	CHECK(f);
	opt_describe(opts, 80, f);
	CHECK_EQ(fclose(f), 0);
	CHECK_STR(text, want);
}

TEST(the_table_can_be_walked_for_completion)
{
	int n = 0, with_value = 0;

	OPT_FOREACH(o, opts)
	{
		n++;
		with_value += opt_takes_value(o);
	}
	CHECK_EQ(n, (int)ARRAY_LEN(opts) - 1);
	CHECK_EQ(with_value, 7);
}

TEST_MAIN("opt")
