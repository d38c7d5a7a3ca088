#include "engine/run/run-guess.h"

#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "engine/run/run-refusal.h"
#include "runner/net/allow.h"
#include "runner/net/refusal.h"

#define LINE_LONGEST 4096
#define HOSTS_MAX    3

/* What programs print in the C locale when a name or a network is missing. */
static const char *const complaints[] = {
	"EAI_AGAIN",
	"ENOTFOUND",
	"ENETUNREACH",
	"Could not resolve",
	"Couldn't resolve",
	"could not resolve",
	"Temporary failure in name resolution",
	"Temporary failure resolving",
	"Name or service not known",
	"nodename nor servname provided",
	"failed to lookup address",
	"Network is unreachable",
	"network is unreachable",
	"no such host",
	"server misbehaving",
};

static const char *find_word(const char *text, size_t len, const char *word)
{
	return memmem(text, len, word, strlen(word));
}

static bool complains(const char *line, size_t len)
{
	return VEC_HAS(it, complaints, ARRAY_LEN(complaints), find_word(line, len, *it));
}

static bool is_host_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_';
}

/* The next word that could be a host name, because it has a dot; false if there is none. */
static bool next_word(const char **at, const char *end, const char **word, size_t *len)
{
	const char *p = *at;

	while (p < end) {
		while (p < end && !is_host_byte(*p))
			p++;
		*word = p;
		while (p < end && is_host_byte(*p))
			p++;
		*len = (size_t)(p - *word);
		/* The dot at the end of a sentence, or an ellipsis. */
		while (*len > 0 && (*word)[*len - 1] == '.')
			--*len;
		if (*len > 0 && memchr(*word, '.', *len)) {
			*at = p;
			return true;
		}
	}
	return false;
}

/* The host in a URL, else the last candidate of a line with a complaint. */
static bool find_host(const char *line, size_t len, char host[ALLOW_HOST_MAX + 1], uint16_t *port)
{
	const char *url = find_word(line, len, "://"), *at = url ? url + 3 : line,
		   *end = line + len;
	const char *word;
	bool found = false;
	size_t n;

	*port = url && url - line >= 4 && strncmp(url - 4, "http", 4) == 0 ? 80 : 443;
	while (next_word(&at, end, &word, &n)) {
		char one[ALLOW_HOST_MAX + 1];
		const bool path = word > line && (word[-1] == '/' && !url);

		if (path || !allow_canonical(word, n, one))
			continue;
		memcpy(host, one, sizeof(one));
		found = true;
		if (url)
			break;
	}
	return found;
}

static int add_host(struct engine_run *run, const struct scrub *secrets, const char *host,
		    uint16_t port)
{
	struct net_refusal refusal;
	char kind[] = "connection", rule[] = "none", flag[NET_FLAG_MAX],
	     sentence[NET_HOST_SHOWN * 2];
	char what[NET_HOST_SHOWN + 16];
	const struct engine_refusal one = {
		.kind = kind, .what = what, .rule = rule, .flag = flag, .message = sentence
	};

	net_refusal_init(&refusal, NET_RULE_HOST, host, strlen(host), port, "");
	/* A name that we would not advise is probably a file's. */
	if (refusal.flag[0] == '\0')
		return 0;
	net_refusal_target(&refusal, what, sizeof(what));
	snprintf(flag, sizeof(flag), "%s", refusal.flag);
	snprintf(sentence, sizeof(sentence), "'%s' cannot be reached: the run has no network",
		 what);
	return run_refusals_add(&run->refusals, secrets, &one);
}

static int guess_in(struct engine_run *run, const struct scrub *secrets, const struct buf *text,
		    unsigned int *hosts)
{
	const char *at = (const char *)text->data, *end = text->len > 0 ? at + text->len : at;
	char host[ALLOW_HOST_MAX + 1];
	uint16_t port;
	int r = 0;

	while (at < end && r >= 0 && *hosts < HOSTS_MAX) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const size_t len = (size_t)((newline ? newline : end) - at);

		if (len > 0 && len <= LINE_LONGEST && complains(at, len) &&
		    find_host(at, len, host, &port)) {
			const size_t before = run->refusals.n;

			r = add_host(run, secrets, host, port);
			*hosts += run->refusals.n > before;
		}
		at += len + 1;
	}
	return r;
}

int run_guess_hosts(struct engine_run *run, const struct scrub *secrets, const struct buf said[2])
{
	unsigned int hosts = 0;
	int r;

	if (run->exit_code == 0 || !run->net ||
	    (strcmp(run->net, "none") != 0 && strcmp(run->net, "loopback") != 0))
		return 0;
	r = guess_in(run, secrets, &said[1], &hosts);
	return r < 0 ? r : guess_in(run, secrets, &said[0], &hosts);
}
