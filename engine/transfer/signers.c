#include "engine/transfer/signers-i.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "engine/find/config-i.h"
#include "remote/signature.h"

void signers_done(struct signers *s)
{
	free(s->allowed);
	free(s->revoked);
	free(s->place);
	*s = (struct signers){ 0 };
}

/* What config.yaml says of this remote. */
static int read_config(struct engine *e, const struct target *t, struct signers *s, struct err *err)
{
	AUTO_FREE char *path = config_file(e->home, CONFIG_FILE);
	struct config c = { 0 };
	int r = path && t->remote ? config_read(path, &c, err) : 0;

	for (size_t i = 0; r == 0 && i < c.remotes.n; i++) {
		if (strcmp(c.remotes.list[i], t->remote) != 0)
			continue;
		if (!s->allowed && c.remote_signers.list[i][0] != '\0')
			r = config_expand(e->home, c.remote_signers.list[i], &s->allowed, err);
		if (r == 0 && c.remote_revoked.list[i][0] != '\0')
			r = config_expand(e->home, c.remote_revoked.list[i], &s->revoked, err);
	}
	config_done(&c);
	return r;
}

int signers_demanded(struct engine *e, const struct target *t, struct err *err)
{
	CLEANUP(signers_done) struct signers s = { 0 };
	int r = read_config(e, t, &s, err);

	return r < 0 ? r : s.allowed != NULL;
}

int signers_place(const struct target *t, const char *as, char **ret, struct err *err)
{
	AUTO_FREE char *repository = NULL;

	if (as && !signature_place_valid(as))
		return err_set(err, -EINVAL, "'%.100s' is not REPOSITORY:NAME", as);
	if (as)
		return text_set(ret, err, "%s", as);
	repository = signature_repository(t->url);
	if (!repository)
		return err_nomem(err);
	return text_set(ret, err, "%s:%s", repository, t->name);
}

int signers_find(struct engine *e, const struct target *t, const struct engine_trust *trust,
		 struct signers *ret, struct err *err)
{
	CLEANUP(signers_done) struct signers s = { 0 };
	int r = 0;

	if (trust->signers)
		r = text_set(&s.allowed, err, "%s", trust->signers);
	if (r == 0)
		r = read_config(e, t, &s, err);
	if (r == 0)
		r = signers_place(t, trust->as, &s.place, err);
	if (r < 0)
		return r;
	s.required = trust->required || s.allowed;
	if (s.required && !s.allowed)
		return err_set(err, -EINVAL,
			       "there is no list of allowed signers: --allowed-signers FILE, or "
			       "remote.%s.signers in config.yaml",
			       t->remote ? t->remote : "NAME");
	*ret = TAKE_STRUCT(s);
	return 0;
}

int signers_check(const struct signers *s, const struct manifest *m, char **ret_who,
		  struct err *err)
{
	return s->required ? signature_check(m, s->place, s->allowed, s->revoked, ret_who, err) : 0;
}
