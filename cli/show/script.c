#include "cli/show/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/cquote.h"

#define MISSING_MAX 50             /* that are named */
#define PATCH_END   "END_OF_PATCH" /* every line of a patch begins with another character */
#define APT_WORDS   " -o APT::Cmd::Pattern-Only=true" /* a name is no regular expression */

static const char package_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+.-";

void script_done(struct script *s)
{
	strlist_done(&s->install);
	strlist_done(&s->automatic);
	strlist_done(&s->purge);
	strlist_done(&s->patched);
	buf_done(&s->groups);
	buf_done(&s->users);
	buf_done(&s->members);
	buf_done(&s->units);
	buf_done(&s->file);
	buf_done(&s->patch);
	buf_done(&s->modes);
	buf_done(&s->missing.text);
	buf_done(&s->notes.text);
}

/* --- words ------------------------------------------------------------------------------ */

static bool is_word(const char *text, const char *allowed)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	for (const char *p = text; *p != '\0'; p++)
		if (!strchr(letters, *p) && !strchr(allowed, *p))
			return false;
	return *text != '\0' && *text != '-';
}

/*
 * apt takes more than names for its words: "name-" removes one, "name=installed" is a keyword, and a name that no
 * package has may be a pattern.  So these are names and versions as Debian's policy has them, and no other.
 */
static bool is_package(const char *name)
{
	static const char start[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	const size_t n = strcspn(name, ":");

	return n >= 2 && strchr(start, name[0]) && strspn(name, package_letters) == n &&
	       name[n - 1] != '-' &&
	       (name[n] == '\0' ||
		(strspn(name + n + 1, start) == strlen(name + n + 1) && name[n + 1] != '\0'));
}

static bool is_version(const char *version)
{
	return is_word(version, "+.-:~") && version[0] >= '0' && version[0] <= '9' &&
	       version[strlen(version) - 1] != '-';
}

static bool is_account(const char *name)
{
	return is_word(name, "_.-") && strlen(name) <= 32;
}

/* 'it'\''s' */
static int append_quoted(struct buf *to, const char *before, const char *text)
{
	if (buf_printf(to, "'%s", before) < 0)
		return -1;
	for (const char *p = text; *p != '\0'; p++)
		if (*p == '\'' ? buf_append_str(to, "'\\''") < 0 : buf_append(to, p, 1) < 0)
			return -1;
	return buf_append_str(to, "'");
}

static int add_missing(struct script_missing *m, const char *what, const char *name,
		       struct err *err)
{
	if (++m->n > MISSING_MAX)
		return 0;
	if (buf_printf(&m->text, "#   %s ", what) < 0 || cquote_append(&m->text, "", name) < 0 ||
	    buf_append_str(&m->text, "\n") < 0)
		return err_nomem(err);
	return 0;
}

static int miss(struct script *s, const char *what, const char *name, struct err *err)
{
	return add_missing(&s->missing, what, name, err);
}

/* --- parts ------------------------------------------------------------------------------ */

int script_add_package(struct script *s, const struct engine_package *p, struct err *err)
{
	CLEANUP(buf_done) struct buf word = BUF_INIT;

	if (!is_package(p->name) || (p->after && !is_version(p->after)))
		return miss(s, "package", p->name, err);
	/* "apt-get purge name+" installs it, where no package has that name. */
	if (!p->after && p->name[strlen(p->name) - 1] == '+')
		return miss(s, "package", p->name, err);
	if (!p->after)
		return strlist_add(&s->purge, p->name) < 0 ? err_nomem(err) : 0;
	if (buf_printf(&word, "%s=%s", p->name, p->after) < 0 || !buf_str(&word) ||
	    strlist_add(&s->install, buf_str(&word)) < 0)
		return err_nomem(err);
	if (p->automatic && !p->before && strlist_add(&s->automatic, p->name) < 0)
		return err_nomem(err);
	return 0;
}

/* Packages make users of their own, so each is made only where it is missing. */
static int add_user(struct script *s, const struct engine_distro_change *c, struct err *err)
{
	struct buf *to = &s->users;

	if (buf_printf(to,
		       "getent passwd %s > /dev/null || useradd %s--uid %" PRIu32 " --gid %" PRIu32
		       " --no-user-group --home-dir ",
		       c->name, c->id < 1000 ? "--system " : "--create-home ", c->id,
		       c->group) < 0 ||
	    append_quoted(to, "", c->home) < 0 || buf_append_str(to, " --shell ") < 0 ||
	    append_quoted(to, "", c->shell) < 0 || buf_printf(to, " %s\n", c->name) < 0)
		return err_nomem(err);
	return 0;
}

static int add_members(struct script *s, const struct engine_distro_change *c, struct err *err)
{
	CLEANUP(buf_done) struct buf member = BUF_INIT;

	for (const char *p = c->members; *p != '\0'; p += strspn(p, ",")) {
		const size_t n = strcspn(p, ",");

		buf_reset(&member);
		if (buf_append(&member, p, n) < 0 || !buf_str(&member))
			return err_nomem(err);
		p += n;
		if (is_account(buf_str(&member)) &&
		    buf_printf(&s->members, "gpasswd --add %s %s > /dev/null\n", buf_str(&member),
			       c->name) < 0)
			return err_nomem(err);
	}
	return 0;
}

static int add_group(struct script *s, const struct engine_distro_change *c, struct err *err)
{
	if (c->status == DELTA_ADDED &&
	    buf_printf(&s->groups,
		       "getent group %s > /dev/null || groupadd %s--gid %" PRIu32 " %s\n", c->name,
		       c->id < 1000 ? "--system " : "", c->id, c->name) < 0)
		return err_nomem(err);
	return add_members(s, c, err);
}

static int add_account(struct script *s, const struct engine_distro_change *c, struct err *err)
{
	const bool user = c->kind == ENGINE_USER;

	if (!is_account(c->name))
		return miss(s, user ? "user" : "group", c->name, err);
	if (c->status == DELTA_DELETED)
		return buf_printf(&s->members, "# %s %s\n", user ? "userdel" : "groupdel",
				  c->name) < 0
			   ? err_nomem(err)
			   : 0;
	if (c->status != DELTA_ADDED && user)
		return miss(s, "changed user", c->name, err);
	return user ? add_user(s, c, err) : add_group(s, c, err);
}

static int add_service(struct script *s, const struct engine_distro_change *c, struct err *err)
{
	static const char own[] = "etc/systemd/system/";

	if (c->status != DELTA_ADDED || strncmp(c->path, own, strlen(own)) != 0 ||
	    !is_word(c->name, "_.-@:"))
		return 0;
	return buf_printf(&s->units, "# systemctl enable --now %s\n", c->name) < 0 ? err_nomem(err)
										   : 0;
}

int script_add_change(struct script *s, const struct engine_distro_change *c, struct err *err)
{
	switch (c->kind) {
	case ENGINE_USER:
	case ENGINE_GROUP:
		return add_account(s, c, err);
	case ENGINE_SERVICE:
		return add_service(s, c, err);
	case ENGINE_CONFIG:
		if (c->shipped || (c->package && c->status == DELTA_DELETED))
			return 0;
		return strlist_add(&s->patched, c->path) < 0 ? err_nomem(err) : 0;
	case ENGINE_FILE:
		break;
	}
	return miss(s, "file", c->path, err);
}

int script_add_database(struct script *s, bool came, struct err *err)
{
	return miss(s, "any package: the dpkg database", came ? "is new" : "is gone", err);
}

int script_add_note(struct script *s, const struct delta_note *n, struct err *err)
{
	const char *what = n->what & DELTA_SPECIAL                ? "device, FIFO or socket"
			   : n->what & DELTA_DIRECTORY            ? "directory"
			   : n->what & (DELTA_MODE | DELTA_OWNER) ? "mode or owner of"
								  : "attributes of";

	return add_missing(&s->notes, what, n->path[0] != '\0' ? n->path : "/", err);
}

/* --- patches ---------------------------------------------------------------------------- */

bool script_wants(const struct script *s, const struct delta_file *f)
{
	return strlist_has(&s->patched, f->path);
}

int script_add_text(struct script *s, const char *text, size_t len, struct err *err)
{
	return buf_append(&s->file, text, len) < 0 ? err_nomem(err) : 0;
}

/*
 * git has two modes, and a secret must not be readable even for a moment: patch(1) makes the file with any mode
 * that the header names, but for set-id bits.
 */
static int keep_mode(struct script *s, const struct delta_file *f)
{
	static const char head[] = "\nnew file mode 100";
	const unsigned mode = f->after.mode & 07777;
	const char *text = buf_str(&s->file), *at = text ? strstr(text, head) : NULL;
	char digits[8];

	if (!S_ISREG(f->after.mode) || (f->status != DELTA_ADDED && f->status != DELTA_TYPE) ||
	    mode == (mode & S_IXUSR ? 0755 : 0644))
		return 0;
	if (at && strlen(at) > strlen(head) + 3) {
		snprintf(digits, sizeof(digits), "%03o", mode & 0777);
		memcpy(s->file.data + (at - text) + strlen(head), digits, 3);
	}
	if (!text || buf_printf(&s->modes, "chmod %o -- ", mode) < 0 ||
	    append_quoted(&s->modes, "/", f->path) < 0)
		return -1;
	return buf_append_str(&s->modes, "\n");
}

/* patch(1) takes text alone. */
int script_end_file(struct script *s, const struct delta_file *f, const struct patch_counts *counts,
		    struct err *err)
{
	int r = 0;

	if (!script_wants(s, f)) {
		buf_reset(&s->file);
		return 0;
	}
	if (counts->binary || f->refused || (f->sparse && f->content))
		r = miss(s, "file", f->path, err);
	else if (keep_mode(s, f) < 0 || buf_append(&s->patch, s->file.data, s->file.len) < 0)
		r = err_nomem(err);
	else
		s->n_patches++;
	buf_reset(&s->file);
	return r;
}

/* --- the whole -------------------------------------------------------------------------- */

static int append_lines(struct buf *to, const struct buf *lines)
{
	return lines->len > 0 ? buf_append(to, lines->data, lines->len) : 0;
}

static int append_command(struct buf *to, const char *command, const struct strlist *words)
{
	if (words->n == 0)
		return 0;
	if (buf_append_str(to, command) < 0)
		return -1;
	for (size_t i = 0; i < words->n; i++)
		if (buf_printf(to, " \\\n    %s", words->list[i]) < 0)
			return -1;
	return buf_append_str(to, "\n");
}

static int append_patch(const struct script *s, struct buf *to)
{
	if (s->n_patches == 0)
		return 0;
	if (buf_append_str(to, "patch -d / -p1 --forward <<'" PATCH_END "'\n") < 0 ||
	    buf_append(to, s->patch.data, s->patch.len) < 0)
		return -1;
	if (buf_append_str(to, PATCH_END "\n") < 0)
		return -1;
	return append_lines(to, &s->modes);
}

static int append_list(const struct script_missing *m, struct buf *to)
{
	if (append_lines(to, &m->text) < 0)
		return -1;
	return m->n <= MISSING_MAX ? 0 : buf_printf(to, "#   and %zu more\n", m->n - MISSING_MAX);
}

static int append_missing(const struct script *s, struct buf *to)
{
	if (s->missing.n == 0 && s->notes.n == 0)
		return 0;
	if (buf_append_str(to, "# Not done by this script:\n") < 0 ||
	    append_list(&s->missing, to) < 0)
		return -1;
	return append_list(&s->notes, to);
}

static int append_units(const struct script *s, struct buf *to)
{
	if (s->units.len == 0)
		return 0;
	if (buf_append_str(to, "systemctl daemon-reload\n") < 0)
		return -1;
	return buf_append(to, s->units.data, s->units.len);
}

int script_write(const struct script *s, const char *from, const char *to, struct buf *ret,
		 struct err *err)
{
	if (buf_append_str(ret, "#!/bin/sh\n# What changed from ") < 0 ||
	    cquote_append(ret, "", from) < 0 || buf_append_str(ret, " to ") < 0 ||
	    cquote_append(ret, "", to) < 0 ||
	    buf_append_str(ret, ", to be done on a machine, by root.  Read it first.\nset -e\n") <
		0 ||
	    append_command(ret, "apt-get install -y --allow-downgrades" APT_WORDS, &s->install) <
		0 ||
	    append_command(ret, "apt-mark auto", &s->automatic) < 0 ||
	    append_command(ret, "apt-get purge -y" APT_WORDS, &s->purge) < 0 ||
	    append_lines(ret, &s->groups) < 0 || append_lines(ret, &s->users) < 0 ||
	    append_lines(ret, &s->members) < 0 || append_patch(s, ret) < 0 ||
	    append_units(s, ret) < 0 || append_missing(s, ret) < 0)
		return err_nomem(err);
	return 0;
}
