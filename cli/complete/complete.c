#include "cli/complete/complete.h"

#include <ctype.h>
#include <string.h>

#define CLONE_FIRST "CLONE|SNAPSHOT"

/* By how the name that help gives it begins. */
static const struct {
	const char *word;
	bool whole; /* that is all of it */
	enum complete_kind kind;
} named[] = {
	{ "CLONE", false, COMPLETE_CLONES },
	{ "STATE", false, COMPLETE_STATES },
	{ "SNAPSHOT", true, COMPLETE_STATES },
	{ "A", true, COMPLETE_STATES },
	{ "B", true, COMPLETE_STATES },
	{ "C", true, COMPLETE_STATES },
	{ "GOOD", true, COMPLETE_STATES },
	{ "BAD", true, COMPLETE_STATES },
	{ "DIR", true, COMPLETE_DIRS },
	{ "PATH", true, COMPLETE_FILES },
	{ "FILE", true, COMPLETE_FILES },
	{ "COMMAND", true, COMPLETE_COMMANDS },
	{ "PROMOTION", true, COMPLETE_PROMOTIONS },
	{ "RUN", true, COMPLETE_RUNS },
	{ "PROFILE", true, COMPLETE_PROFILES },
	{ "EXPERIMENT", true, COMPLETE_EXPERIMENTS },
};

/* Options whose words are too many to stand in the place of a name in help. */
static const struct {
	const char *option, *choices;
} choices_of[] = {
	{ "conflict", "stop|ours|theirs|markers" },
	{ "markers", "merge|diff3|zdiff3" },
	{ "take", "ours|theirs" },
};

static enum complete_kind kind_of(const char *text, size_t len)
{
	/* What goes for good is completed only where little is lost. */
	if (len == strlen(CLONE_FIRST) && strncmp(text, CLONE_FIRST, len) == 0)
		return COMPLETE_CLONES;
	/* A word in lower case is typed as it is. */
	if (memchr(text, '|', len) || islower((unsigned char)*text))
		return COMPLETE_CHOICES;
	for (size_t i = 0; i < ARRAY_LEN(named); i++) {
		const size_t n = strlen(named[i].word);

		if (len >= n && strncmp(text, named[i].word, n) == 0 &&
		    (!named[i].whole || len == n))
			return named[i].kind;
	}
	return COMPLETE_NOTHING;
}

struct complete_slot complete_value(const struct opt *o)
{
	const char *text = o->metavar;
	size_t len;

	for (size_t i = 0; o->long_name && i < ARRAY_LEN(choices_of); i++)
		if (strcmp(o->long_name, choices_of[i].option) == 0)
			text = choices_of[i].choices;
	len = strlen(text);
	return (struct complete_slot){ .kind = kind_of(text, len), .text = text, .len = len };
}

/* "[FILE | list | rm NAME]": is one of the alternatives an act? */
static bool have_acts(const char *words)
{
	for (const char *at = strstr(words, " | "); at; at = strstr(at, " | ")) {
		at += strlen(" | ");
		if (islower((unsigned char)*at))
			return true;
	}
	return false;
}

/*
 * "[CLONE...]" is CLONE, again and again; "STATE[:PATH]" is STATE, and more may follow.  Behind acts
 * come the words of the first.
 */
bool complete_next(const char **words, struct complete_slot *ret)
{
	const char *at = *words;
	size_t len;

	if (!at)
		return false;
	if (*at == '[' && have_acts(at)) {
		*ret = (struct complete_slot){
			.kind = COMPLETE_CHOICES, .text = at, .len = strlen(at), .acts = true
		};
		*words = at + strcspn(at, " ");
		return true;
	}
	at += strspn(at, " [");
	len = strcspn(at, " ");
	*words = at + len;
	/* What stands behind "--" is another program's; behind "|" begins something else. */
	if (len == 0 || *at == '|' || strncmp(at, "--", 2) == 0)
		return false;
	*ret = (struct complete_slot){ .text = at };
	while (len > 0 && (at[len - 1] == ']' || at[len - 1] == '.')) {
		ret->more |= at[len - 1] == '.';
		len--;
	}
	ret->open = memchr(at, '[', len) != NULL;
	ret->len = ret->open ? (size_t)((const char *)memchr(at, '[', len) - at) : len;
	ret->kind = kind_of(at, ret->len);
	return true;
}

bool complete_choice(const char **at, const struct complete_slot *slot, const char **ret,
		     size_t *ret_len)
{
	const char *end = slot->text + slot->len, *bar;

	do {
		*at = *at ? *at + 1 : slot->text; /* behind the bar */
		if (*at >= end)
			return false;
		bar = memchr(*at, '|', (size_t)(end - *at));
		*ret = *at + (slot->acts ? strspn(*at, " [") : 0);
		*at = bar ? bar : end;
		*ret_len = slot->acts ? strcspn(*ret, " |]") : (size_t)(*at - *ret);
	} while (slot->acts && !islower((unsigned char)**ret));
	return true;
}
