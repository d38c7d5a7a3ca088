#include "engine/verb/diff-distro.h"

#include <string.h>

#include "image/distro.h"

struct reporting {
	struct distro distro;
	const struct engine_diff_sink *sink;
	enum engine_distro_kind kind;
	struct engine_parts parts;
};

static void reporting_done(struct reporting *r)
{
	distro_done(&r->distro);
}

/* --- packages --------------------------------------------------------------------------- */

static int report_package(const struct package *before, const struct package *after, void *ctx,
			  struct err *err)
{
	const struct engine_diff_sink *sink = ((const struct reporting *)ctx)->sink;
	const struct engine_package p = {
		.name = before ? before->name : after->name,
		.before = before ? before->version : NULL,
		.after = after ? after->version : NULL,
		.automatic = after && after->automatic,
	};

	return sink->package(&p, sink->ctx, err);
}

/* Only if something below the database differs, so that others do not pay for it. */
static int report_packages(struct store *s, const struct object_id *before,
			   const struct object_id *after, const struct delta *d,
			   const struct engine_diff_sink *sink, struct err *err)
{
	static const char status[] = "var/lib/dpkg/status";
	CLEANUP(packages_done) struct packages old = { 0 }, new = { 0 };
	struct reporting telling = { .sink = sink };
	bool differs = false;
	int r;

	for (size_t i = 0; i < d->n_files && !differs; i++)
		differs = strncmp(d->files[i].path, status, strlen(status)) == 0 ||
			  strncmp(status, d->files[i].path, strlen(d->files[i].path)) == 0;
	if (!sink->package || !differs)
		return 0;
	r = packages_load(s, before, &old, err);
	if (r < 0)
		return r;
	r = packages_load(s, after, &new, err);
	if (r < 0)
		return r;
	/* Without its database nobody knows what is installed: that is not that nothing is. */
	if (old.found != new.found)
		return sink->database ? sink->database(new.found, sink->ctx, err) : 0;
	r = packages_compare(&old, &new, report_package, &telling, err);
	return r < 0 ? r : sink->package(NULL, sink->ctx, err);
}

/* --- users and groups ------------------------------------------------------------------- */

static int report_account(const struct account *before, const struct account *after, void *ctx,
			  struct err *err)
{
	const struct reporting *r = ctx;
	const struct account *a = after ? after : before;
	const bool user = r->kind == ENGINE_USER;
	const struct engine_distro_change change = {
		.kind = r->kind,
		.status = !before  ? DELTA_ADDED
			  : !after ? DELTA_DELETED
				   : DELTA_MODIFIED,
		.name = a->name,
		.id = a->id,
		.group = a->group,
		.home = user ? a->home : NULL,
		.shell = user ? a->shell : NULL,
		.members = user ? NULL : a->members,
	};

	return r->sink->change(&change, NULL, r->sink->ctx, err);
}

static int report_accounts(struct reporting *r, struct err *err)
{
	int e;

	r->kind = ENGINE_USER;
	e = accounts_compare(&r->distro.before.users, &r->distro.after.users, report_account, r,
			     err);
	if (e < 0)
		return e;
	r->kind = ENGINE_GROUP;
	return accounts_compare(&r->distro.before.groups, &r->distro.after.groups, report_account,
				r, err);
}

/* --- files ------------------------------------------------------------------------------ */

static int report_services(struct reporting *r, const struct delta *d, struct err *err)
{
	int e = 0;

	for (size_t i = 0; e >= 0 && i < d->n_files; i++) {
		const struct engine_distro_change change = {
			.kind = ENGINE_SERVICE,
			.status = d->files[i].status,
			.name = distro_service(d->files[i].path),
			.path = d->files[i].path,
		};

		if (change.name)
			e = r->sink->change(&change, NULL, r->sink->ctx, err);
	}
	return e;
}

static int report_config(struct reporting *r, const struct delta_file *f, struct err *err)
{
	const struct conffile *conffile = distro_conffile(&r->distro, f->path);
	struct engine_distro_change change = {
		.kind = ENGINE_CONFIG,
		.status = f->status,
		.path = f->path,
		.package = conffile ? conffile->package : NULL,
	};
	const int shipped = conffile ? distro_is_shipped(&r->distro, f, conffile, err) : 0;

	if (shipped < 0)
		return shipped;
	change.shipped = shipped > 0;
	return r->sink->change(&change, NULL, r->sink->ctx, err);
}

static int report_other(struct reporting *r, const struct delta_file *f, struct err *err)
{
	const struct engine_distro_change change = { .kind = ENGINE_FILE,
						     .status = f->status,
						     .path = f->path };

	return r->sink->change(&change, NULL, r->sink->ctx, err);
}

static int report_files(struct reporting *r, const struct delta *d, struct err *err)
{
	int e = 0;

	for (size_t i = 0; e >= 0 && i < d->n_files; i++) {
		uint64_t *const counts[] = {
			[DISTRO_PACKAGE] = &r->parts.package,
			[DISTRO_CONFIG] = &r->parts.configuration,
			[DISTRO_DERIVED] = &r->parts.derived,
			[DISTRO_STATE] = &r->parts.state,
			[DISTRO_OTHER] = &r->parts.other,
		};
		const enum distro_part part = distro_part(&r->distro, d->files[i].path);

		(*counts[part])++;
		if (part == DISTRO_CONFIG)
			e = report_config(r, &d->files[i], err);
		else if (part == DISTRO_OTHER)
			e = report_other(r, &d->files[i], err);
	}
	return e;
}

static int report_changes(struct store *s, const struct object_id *before,
			  const struct object_id *after, const struct delta *d,
			  const struct engine_diff_sink *sink, struct err *err)
{
	CLEANUP(reporting_done) struct reporting r = { .sink = sink };
	int e;

	if (!sink->change || d->n_files == 0)
		return 0;
	e = distro_is(s, before, err);
	if (e > 0)
		e = distro_is(s, after, err);
	if (e <= 0)
		return e;
	e = distro_load(s, before, after, &r.distro, err);
	if (e >= 0)
		e = report_accounts(&r, err);
	if (e >= 0)
		e = report_services(&r, d, err);
	if (e >= 0)
		e = report_files(&r, d, err);
	return e < 0 ? e : sink->change(NULL, &r.parts, sink->ctx, err);
}

int diff_report_distro(struct store *s, const struct object_id *before,
		       const struct object_id *after, const struct delta *d,
		       const struct engine_diff_sink *sink, struct err *err)
{
	const int r = report_packages(s, before, after, d, sink, err);

	return r < 0 ? r : report_changes(s, before, after, d, sink, err);
}
