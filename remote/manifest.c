#include "remote/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "base/json.h"
#include "base/vec.h"
#include "remote/pack/pack.h"

#define FORMAT 1

/* Annotations */
#define SIGNATURE_KEY  "vnd.snapcow.signature.v1"
#define SIGNED_AS_KEY  "vnd.snapcow.signed-as.v1"
#define RECIPIENTS_KEY "vnd.snapcow.recipients.v1"

/* Types of an open manifest's blobs, and of a sealed one's. */
enum { TYPE_SNAPSHOT, TYPE_PACK, TYPE_INDEX };

static const char *const types[2][3] = {
	{ SNAPSHOT_TYPE, PACK_TYPE, PACK_INDEX_TYPE },
	{ "application/vnd.snapcow.snapshot.v1+age", "application/vnd.snapcow.pack.v1+age",
	  "application/vnd.snapcow.index.v1+age" },
};

/* What follows the root. */
#define F(kind, member) FIELD(FIELD_##kind, struct manifest_snapshot, member)
static const struct field snapshot_list[] = {
	F(TEXT_OR_NULL, parent),
	F(NAME_OR_NULL, message),
	F(NAME_OR_NULL, who),
	F(NAME_OR_NULL, host),
	F(NAME_OR_NULL, project),
	F(NAME_OR_NULL, meta),
	F(INT, created),
	F(INT, pushed),
	F(UINT, files),
	F(UINT, bytes),
	F(TEXT_OR_NULL | FIELD_LATER, hidden),
};
static const struct fields snapshot_fields = FIELDS(struct manifest_snapshot, snapshot_list);

DEFINE_FIELDS_DONE(manifest_snapshot_done, struct manifest_snapshot, snapshot_fields)

void manifest_done(struct manifest *m)
{
	free(m->packs);
	free(m->signature);
	free(m->signed_as);
	*m = (struct manifest){ 0 };
}

int manifest_add_pack(struct manifest *m, const struct manifest_pack *pack, struct err *err)
{
	for (size_t i = 0; i < m->n; i++)
		if (digest_equal(&m->packs[i].pack.digest, &pack->pack.digest))
			return 1;
	if (m->n >= MANIFEST_PACKS_MAX)
		return err_set(err, -E2BIG, "a snapshot has more than %d packs",
			       MANIFEST_PACKS_MAX);
	if (!VEC_ROOM(m->packs, m->n, m->cap))
		return err_nomem(err);
	m->packs[m->n++] = *pack;
	return 0;
}

uint64_t manifest_packed(const struct manifest *m)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->n; i++)
		sum += m->packs[i].pack.size + m->packs[i].index.size;
	return sum;
}

/* --- writing ------------------------------------------------------------------------------ */

static void set_blob(struct json j, const char *type, const struct manifest_blob *blob)
{
	char text[DIGEST_TEXT_SIZE];

	json_set_text(j, "mediaType", type);
	json_set_text(j, "digest", digest_text(&blob->digest, text));
	json_set_uint(j, "size", blob->size);
}

int manifest_encode(const struct manifest *m, struct buf *out, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc), layers, notes;
	const char *const *type = types[m->sealed];
	char recipients[DIGEST_TEXT_SIZE];

	json_set_int(j, "schemaVersion", 2);
	json_set_text(j, "mediaType", DEPOT_MANIFEST_TYPE);
	set_blob(json_set_object(j, "config"), type[TYPE_SNAPSHOT], &m->config);
	layers = json_set_array(j, "layers");
	for (size_t i = 0; i < m->n; i++) {
		set_blob(json_add_object(layers), type[TYPE_PACK], &m->packs[i].pack);
		set_blob(json_add_object(layers), type[TYPE_INDEX], &m->packs[i].index);
	}
	if (m->signature || m->sealed) {
		notes = json_set_object(j, "annotations");
		if (m->sealed)
			json_set_text(notes, RECIPIENTS_KEY,
				      digest_text(&m->recipients, recipients));
		if (m->signature) {
			json_set_text(notes, SIGNATURE_KEY, m->signature);
			json_set_text(notes, SIGNED_AS_KEY, m->signed_as);
		}
	}
	buf_reset(out);
	return json_append(&doc, out, err);
}

int manifest_snapshot_encode(const struct manifest_snapshot *s, struct buf *out, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);
	char text[DIGEST_TEXT_SIZE];

	json_set_int(j, "format", FORMAT);
	json_set_text(j, "root", digest_text(&s->root, text));
	fields_set(j, &snapshot_fields, s);
	buf_reset(out);
	return json_append(&doc, out, err);
}

/* --- reading ------------------------------------------------------------------------------ */

static int bad(struct err *err, const char *why)
{
	return err_set(err, -EBADMSG, "it is no snapshot of snap: %s", why);
}

/* What json_end() says, as what it means here. */
static int end(struct json_doc *doc, struct err *err)
{
	struct err why = { 0 };
	int r = json_end(doc, &why);

	return r == -EINVAL ? bad(err, why.msg) : r < 0 ? err_nomem(err) : 0;
}

static int read_blob(struct json j, const char *type, uint64_t max, struct manifest_blob *ret,
		     struct err *err)
{
	const char *is = json_get_text(j, "mediaType"), *digest = json_get_text(j, "digest");

	ret->size = json_get_uint(j, "size");
	if (!is || strcmp(is, type) != 0)
		return bad(err, "a part of it has another type");
	if (!digest || digest_parse(digest, &ret->digest) < 0)
		return bad(err, "a digest is malformed");
	return ret->size == 0 || ret->size > max ? bad(err, "a part of it has an impossible size")
						 : 0;
}

/* Each would be opened and entered anew, for no byte more that has to be sent. */
static int read_layers(struct json layers, struct manifest *m, struct err *err)
{
	const uint64_t more = m->sealed ? MANIFEST_SEAL_MAX : 0;
	struct manifest_pack pack;
	size_t n = json_length(layers);
	int r = 0;

	if (n % 2 != 0)
		return bad(err, "a pack has no index");
	for (size_t i = 0; r == 0 && i < n; i += 2) {
		r = read_blob(json_at_object(layers, i), types[m->sealed][TYPE_PACK],
			      PACK_MAX + more, &pack.pack, err);
		if (r == 0)
			r = read_blob(json_at_object(layers, i + 1), types[m->sealed][TYPE_INDEX],
				      PACK_INDEX_MAX + more, &pack.index, err);
		if (r == 0)
			r = manifest_add_pack(m, &pack, err);
		if (r > 0)
			return bad(err, "a pack is listed twice");
	}
	return r;
}

static int parse(struct json_doc *doc, const struct buf *text, struct json *ret, struct err *err)
{
	struct err why = { 0 };
	int r = json_parse(doc, (const char *)text->data, text->len, ret, &why);

	return r == -EINVAL ? bad(err, why.msg) : r < 0 ? err_nomem(err) : 0;
}

static bool is_sealed(struct json j)
{
	const char *type = json_text_if(json_get_object(j, "config"), "mediaType");

	return type && strcmp(type, types[1][TYPE_SNAPSHOT]) == 0;
}

static int read_recipients(struct json j, struct manifest *m, struct err *err)
{
	const char *text = NULL;

	if (!m->sealed)
		return 0;
	if (json_kind(j, "annotations") == JSON_OBJECT)
		text = json_text_if(json_get_object(j, "annotations"), RECIPIENTS_KEY);
	return text && digest_parse(text, &m->recipients) == 0
		   ? 0
		   : bad(err, "it is encrypted and does not say for whom");
}

static int read_signature(struct json j, struct manifest *m, struct err *err)
{
	const char *signature, *as;
	struct json notes;

	if (json_kind(j, "annotations") != JSON_OBJECT)
		return 0;
	notes = json_get_object(j, "annotations");
	signature = json_text_if(notes, SIGNATURE_KEY);
	as = json_text_if(notes, SIGNED_AS_KEY);
	if (!signature)
		return 0;
	if (strlen(signature) > MANIFEST_SIGNATURE_MAX || !as ||
	    strlen(as) > MANIFEST_SIGNATURE_MAX)
		return bad(err, "its signature is malformed");
	m->signature = strdup(signature);
	m->signed_as = strdup(as);
	return m->signature && m->signed_as ? 0 : err_nomem(err);
}

int manifest_decode(const struct buf *text, struct manifest *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(manifest_done) struct manifest m = { 0 };
	struct json j;
	int r = parse(&doc, text, &j, err);

	if (r < 0)
		return r;
	if (json_kind(j, "config") != JSON_OBJECT || json_kind(j, "layers") != JSON_ARRAY)
		return bad(err, "it has no config or no layers");
	m.sealed = is_sealed(j);
	r = read_blob(json_get_object(j, "config"), types[m.sealed][TYPE_SNAPSHOT],
		      MANIFEST_CONFIG_MAX, &m.config, err);
	if (r == 0)
		r = read_recipients(j, &m, err);
	if (r == 0)
		r = read_layers(json_get_array(j, "layers"), &m, err);
	if (r == 0)
		r = read_signature(j, &m, err);
	if (r == 0)
		r = end(&doc, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(m);
	return 0;
}

static int read_snapshot(struct json j, struct manifest_snapshot *s, struct err *err)
{
	const char *root = json_get_text(j, "root"), *parent = json_get_text_or_null(j, "parent");
	struct digest unused;

	if (!root || digest_parse(root, &s->root) < 0)
		return bad(err, "its root is no digest");
	if (parent && digest_parse(parent, &unused) < 0)
		return bad(err, "its parent is no digest");
	return fields_get(j, &snapshot_fields, s) < 0 ? err_nomem(err) : 0;
}

int manifest_snapshot_decode(const struct buf *text, struct manifest_snapshot *ret, struct err *err)
{
	CLEANUP(manifest_snapshot_done) struct manifest_snapshot s = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;
	int r = parse(&doc, text, &j, err);

	if (r < 0)
		return r;
	if (json_get_int(j, "format") > FORMAT)
		return err_set(err, -EPROTO, "it was pushed by a later version of snap");
	r = read_snapshot(j, &s, err);
	if (r == 0)
		r = end(&doc, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(s);
	return 0;
}

/* One that is asked for by its digest may be here already. */
static int get_text(struct depot *d, const char *reference, struct buf *text, struct err *err)
{
	struct digest asked = { 0 }, have;
	const bool exact = digest_parse(reference, &asked) == 0;
	int r;

	if (exact && d->cache && d->cache->get(d->cache->ctx, &asked, DEPOT_MANIFEST_MAX, text) > 0)
		return 0;
	r = d->ops->get_manifest(d, reference, text, err);
	if (r < 0)
		return r;
	have = digest_of(text->data, text->len);
	if (exact && !digest_equal(&asked, &have))
		return err_set(err, -EBADMSG, "'%s' gave another manifest than %s", d->url,
			       reference);
	if (d->cache)
		d->cache->put(d->cache->ctx, &have, text->data, text->len);
	return 0;
}

int manifest_get_snapshot(struct depot *d, const struct manifest *m,
			  const struct manifest_opener *opener, struct manifest_snapshot *ret,
			  struct err *err)
{
	CLEANUP(buf_done) struct buf config = BUF_INIT;
	int r;

	if (m->sealed && !opener)
		return err_set(err, -EPROTO, "it is encrypted");
	r = m->sealed ? opener->open(opener->ctx, d, &m->config, &config, err)
		      : depot_get(d, &m->config.digest, MANIFEST_CONFIG_MAX, &config, NULL, err);
	if (r == -ENOENT)
		r = err_set(err, -EBADMSG, "its config is missing");
	return r < 0 ? r : manifest_snapshot_decode(&config, ret, err);
}

int manifest_get(struct depot *d, const char *reference, struct manifest *ret,
		 struct manifest_snapshot *ret_snapshot, struct digest *ret_digest, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(manifest_done) struct manifest m = { 0 };
	struct digest digest;
	int r = get_text(d, reference, &text, err);

	if (r < 0)
		return r;
	digest = digest_of(text.data, text.len);
	r = manifest_decode(&text, &m, err);
	if (r == 0 && ret_snapshot)
		r = manifest_get_snapshot(d, &m, NULL, ret_snapshot, err);
	if (r < 0)
		return err_wrap(err, r, "'%s' of '%s'", reference, d->url);
	*ret_digest = digest;
	*ret = TAKE_STRUCT(m);
	return 0;
}
