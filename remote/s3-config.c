#include "remote/s3-config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/wipe.h"

#define FILE_MAX_ ((size_t)1 << 20)

static void forget_keys(struct s3_config *c)
{
	wipe_text(c->access);
	wipe_text(c->secret);
	wipe_text(c->token);
	c->access = c->secret = c->token = NULL;
}

void s3_config_done(struct s3_config *c)
{
	forget_keys(c);
	free(c->endpoint);
	free(c->region);
	free(c->other);
	*c = (struct s3_config){ 0 };
}

/* --- files -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t offset;
} settings[] = {
	{ "endpoint_url", offsetof(struct s3_config, endpoint) },
	{ "region", offsetof(struct s3_config, region) },
	{ "aws_access_key_id", offsetof(struct s3_config, access) },
	{ "aws_secret_access_key", offsetof(struct s3_config, secret) },
	{ "aws_session_token", offsetof(struct s3_config, token) },
};

static bool is_other(const char *name, size_t len)
{
	static const char *const others[] = { "credential_process", "sso_session", "sso_start_url",
					      "role_arn", "credential_source" };

	return VEC_HAS(it, others, ARRAY_LEN(others),
		       strlen(*it) == len && strncmp(*it, name, len) == 0);
}

static int keep(char **at, const char *value, size_t len)
{
	if (*at || len == 0)
		return 0;
	*at = strndup(value, len);
	return *at ? 0 : -ENOMEM;
}

static size_t trimmed(const char *text, size_t len)
{
	while (len > 0 && strchr(" \t\r", text[len - 1]))
		len--;
	return len;
}

/* "name = value" */
static int read_setting(const char *line, size_t len, struct s3_config *c)
{
	const char *is = memchr(line, '=', len), *value = is ? is + 1 : NULL;
	size_t name_len, value_len;

	if (!is)
		return 0;
	name_len = trimmed(line, (size_t)(is - line));
	while (value < line + len && (*value == ' ' || *value == '\t'))
		value++;
	value_len = trimmed(value, (size_t)(line + len - value));
	if (is_other(line, name_len))
		return keep(&c->other, line, name_len);
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (strlen(settings[i].name) == name_len &&
		    strncmp(settings[i].name, line, name_len) == 0)
			return keep((char **)((char *)c + settings[i].offset), value, value_len);
	return 0;
}

/* "[section]", with blanks as people put them. */
static bool is_section(const char *line, size_t len, const char *section)
{
	len = trimmed(line, len);
	if (len < 2 || line[len - 1] != ']')
		return false;
	line++;
	len = trimmed(line, len - 2);
	while (len > 0 && *line == ' ')
		line++, len--;
	return strlen(section) == len && strncmp(section, line, len) == 0;
}

int s3_config_read(const char *text, const char *section, struct s3_config *c)
{
	bool in = false, found = false;

	while (*text) {
		const size_t len = strcspn(text, "\n");
		int r = 0;

		if (*text == '[')
			found |= in = is_section(text, len, section);
		else if (in && !strchr(" \t#;", *text)) /* what is indented belongs to a setting */
			r = read_setting(text, len, c);
		if (r < 0)
			return r;
		text += len + (text[len] != '\0');
	}
	return found;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int read_file(const char *override, const char *name, const char *section,
		     struct s3_config *c, struct err *err)
{
	CLEANUP(wipe_buf) struct buf text = BUF_INIT;
	const char *named = variable(override), *home = variable("HOME");
	AUTO_FREE char *path = named ? strdup(named) : home ? path_join(home, name) : NULL;
	const char *string;
	int r;

	if (!path)
		return 0;
	r = fdio_read_file(AT_FDCWD, path, FILE_MAX_, &text, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	string = buf_str(&text);
	r = string ? s3_config_read(string, section, c) : -ENOMEM;
	return r < 0 ? err_nomem(err) : r;
}

static int read_files(struct s3_config *c, struct err *err)
{
	const char *profile = variable("AWS_PROFILE");
	AUTO_FREE char *section = NULL;
	int r, found;

	r = text_set(&section, err,
		     profile && strcmp(profile, "default") != 0 ? "profile %s" : "%s",
		     profile ? profile : "default");
	if (r < 0)
		return r;
	found = read_file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials",
			  profile ? profile : "default", c, err);
	if (found < 0)
		return found;
	r = read_file("AWS_CONFIG_FILE", ".aws/config", section, c, err);
	if (r < 0)
		return r;
	if (profile && !found && !r)
		return err_set(err, -EINVAL,
			       "AWS_PROFILE names '%.80s', which is in no file of ~/.aws "
			       "(aws configure --profile NAME)",
			       profile);
	return 0;
}

/* --- all of it ---------------------------------------------------------------------------- */

static int keep_variable(char **at, const char *name, const char *or_name)
{
	const char *value = variable(name);

	if (!value && or_name)
		value = variable(or_name);
	return value ? keep(at, value, strlen(value)) : 0;
}

static int read_environment(struct s3_config *c)
{
	int r = keep_variable(&c->endpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");

	if (r == 0)
		r = keep_variable(&c->region, "AWS_REGION", "AWS_DEFAULT_REGION");
	if (r == 0)
		r = keep_variable(&c->access, "AWS_ACCESS_KEY_ID", NULL);
	if (r == 0)
		r = keep_variable(&c->secret, "AWS_SECRET_ACCESS_KEY", NULL);
	if (r == 0)
		r = keep_variable(&c->token, "AWS_SESSION_TOKEN", NULL);
	return r;
}

static int check_pair(const struct s3_config *c, const char *where, struct err *err)
{
	if (!c->access == !c->secret)
		return 0;
	return err_set(err, -EINVAL, "there is %s and no %s for S3 in %s",
		       c->access ? "an access key" : "a secret key",
		       c->access ? "secret key" : "access key", where);
}

int s3_config_find(struct s3_config *ret, struct err *err)
{
	CLEANUP(s3_config_done) struct s3_config c = { 0 }, files = { 0 };
	int r;

	if (read_environment(&c) < 0)
		return err_nomem(err);
	r = check_pair(&c, "the environment", err);
	if (r == 0)
		r = read_files(&files, err);
	if (r == 0)
		r = check_pair(&files, "~/.aws", err);
	if (r < 0)
		return r;
	if (c.access) {
		forget_keys(&files);
	} else {
		forget_keys(&c);
		c.access = TAKE_PTR(files.access);
		c.secret = TAKE_PTR(files.secret);
		c.token = TAKE_PTR(files.token);
	}
	if (!c.endpoint)
		c.endpoint = TAKE_PTR(files.endpoint);
	if (!c.region)
		c.region = TAKE_PTR(files.region);
	if (!c.access)
		c.other = TAKE_PTR(files.other);
	*ret = TAKE_STRUCT(c);
	return 0;
}
