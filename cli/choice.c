#include "cli/choice.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

#include "base/attr.h"

bool choice_possible(const struct invocation *inv)
{
	return !inv->json && isatty(STDIN_FILENO) && isatty(fileno(inv->out));
}

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static volatile sig_atomic_t came;

static void on_signal(int sig)
{
	came = sig;
}

/* The terminal and what signals do, as they were. */
struct before {
	struct termios terminal;
	bool changed;
	struct sigaction actions[ARRAY_LEN(ending)];
	sigset_t mask;
};

/* The signals come only while a key is waited for: none can fall between the look and the wait. */
static void listen_alone(struct before *b)
{
	const struct sigaction act = { .sa_handler = on_signal };
	struct termios now;
	sigset_t mine;

	came = 0;
	sigemptyset(&mine);
	for (size_t i = 0; i < ARRAY_LEN(ending); i++) {
		sigaddset(&mine, ending[i]);
		sigaction(ending[i], &act, &b->actions[i]);
	}
	sigprocmask(SIG_BLOCK, &mine, &b->mask);
	b->changed = tcgetattr(STDIN_FILENO, &b->terminal) == 0;
	if (!b->changed)
		return;
	now = b->terminal;
	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	now.c_cc[VMIN] = 1;
	now.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &now);
}

static void restore(const struct before *b)
{
	if (b->changed)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &b->terminal);
	for (size_t i = 0; i < ARRAY_LEN(ending); i++)
		sigaction(ending[i], &b->actions[i], NULL);
	sigprocmask(SIG_SETMASK, &b->mask, NULL);
}

/* The next key; '\0': there will be none. */
static char next_key(const sigset_t *mask)
{
	fd_set in;
	char key;

	FD_ZERO(&in);
	FD_SET(STDIN_FILENO, &in);
	if (pselect(STDIN_FILENO + 1, &in, NULL, NULL, NULL, mask) < 0)
		return '\0';
	return read(STDIN_FILENO, &key, 1) == 1 ? key : '\0';
}

char choice_ask(const struct invocation *inv, const char *question, const char *keys,
		char otherwise, int *ret_signal)
{
	struct before before;
	char key;

	listen_alone(&before);
	fputs(question, inv->out);
	fflush(inv->out);
	do {
		key = (char)tolower((unsigned char)next_key(&before.mask));
		/* ^D is a key here, as lines are not waited for. */
		if (key == '\0' || key == '\n' || key == '\r' || key == '\004')
			key = otherwise;
	} while (came == 0 && !strchr(keys, key));
	*ret_signal = (int)came;
	restore(&before);
	return came != 0 ? otherwise : key;
}
