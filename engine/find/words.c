#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "engine/find/engine-i.h"

#define HEX_DIGITS "0123456789abcdefABCDEF"
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* clang-format off */
static const char first[64][8] = {
	"amber", "azure", "bold", "brave", "brief", "bright", "brisk", "broad",
	"calm", "chief", "clean", "clear", "clever", "coral", "crisp", "deep",
	"eager", "early", "fair", "fancy", "fast", "fine", "firm", "fleet",
	"fond", "fresh", "gentle", "glad", "golden", "grand", "green", "happy",
	"honest", "humble", "jolly", "keen", "kind", "lively", "lucky", "mellow",
	"merry", "mild", "modest", "neat", "nimble", "noble", "patient", "plain",
	"polite", "prime", "proud", "quick", "quiet", "rapid", "ready", "royal",
	"silver", "smooth", "snug", "solid", "steady", "sunny", "swift", "warm",
};
static const char second[64][8] = {
	"acorn", "badger", "beacon", "beaver", "birch", "bison", "brook", "canyon",
	"cedar", "cliff", "cloud", "comet", "condor", "crane", "creek", "delta",
	"dove", "eagle", "ember", "falcon", "fern", "finch", "fjord", "forest",
	"fox", "glacier", "grove", "harbor", "hawk", "heron", "hill", "island",
	"ivy", "lake", "lark", "leaf", "lion", "lynx", "maple", "marsh",
	"meadow", "moose", "moss", "oak", "ocean", "orchid", "otter", "owl",
	"panda", "pebble", "pine", "plover", "pond", "raven", "reef", "river",
	"robin", "shore", "spruce", "stone", "stork", "tiger", "willow", "wren",
};
/* clang-format on */

_Static_assert(sizeof("patient") <= sizeof(first[0]) && sizeof("glacier") <= sizeof(second[0]),
	       "the longest words fit");

int words_pick(char name[CLONE_NAME_MAX + 1], struct err *err)
{
	uint16_t n;
	int r = sys_random(&n, sizeof(n));

	if (r < 0)
		return err_set(err, r, "no random bytes for a name");
	snprintf(name, CLONE_NAME_MAX + 1, "%.8s-%.8s", first[n % 64], second[n / 64 % 64]);
	return 0;
}

/* The name is a directory, a word on the command line, and used like names of snapshots. */
int clone_check_name(const char *name, struct err *err)
{
	const size_t len = strlen(name);

	if (len == 0)
		return err_set(err, -EINVAL, "a clone needs a name");
	if (len > CLONE_NAME_MAX)
		return err_set(err, -EINVAL, "the name '%.32s...' is longer than %d bytes", name,
			       CLONE_NAME_MAX);
	if (name[0] == '-' || name[0] == '.')
		return err_set(err, -EINVAL, "the name '%s' begins with '%c'", name, name[0]);
	if (strspn(name, NAME_CHARS) != len)
		return err_set(err, -EINVAL,
			       "the name '%s' may have only letters, digits, '.', '_' and '-'",
			       name);
	if (len == ENGINE_ID_SIZE - 1 && strspn(name, HEX_DIGITS) == len)
		return err_set(err, -EINVAL, "the name '%s' looks like the id of a snapshot", name);
	return 0;
}
