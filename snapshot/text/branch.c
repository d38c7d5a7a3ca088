#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "snapshot/text/branch-i.h"

#define FILE_MAX ((size_t)512 << 20) /* bytes of a file that is committed */

void branch_close(struct branch *b)
{
	if (!b)
		return;
	if (b->tree)
		b->git->tree_free(b->tree);
	if (b->commit)
		b->git->commit_free(b->commit);
	if (b->repo)
		b->git->repository_free(b->repo);
	free(b->name);
	free(b->ref);
	free(b);
}

void branch_close_p(struct branch **b)
{
	branch_close(*b);
}

static int find_tip(struct branch *b, const char *repository, struct err *err)
{
	const struct git *g = b->git;
	git_reference *ref = NULL;
	const git_oid *at;
	int r = g->reference_lookup(&ref, b->repo, b->ref);

	if (r < 0)
		return err_set(err, -ENOENT, "'%s' has no branch '%s'", repository, b->name);
	at = g->reference_target(ref);
	b->checked_out = g->branch_is_checked_out(ref) != 0;
	if (at)
		b->tip = *at;
	g->reference_free(ref);
	if (!at)
		return err_set(err, -EINVAL, "the branch '%s' stands for another one", b->name);
	g->oid_tostr(b->tip_hex, sizeof(b->tip_hex), &b->tip);
	r = g->commit_lookup(&b->commit, b->repo, &b->tip);
	if (r >= 0)
		r = g->commit_tree(&b->tree, b->commit);
	return r < 0 ? git_failed(g, r, b->name, err) : 0;
}

int branch_open(const char *repository, const char *name, struct branch **ret, struct err *err)
{
	CLEANUP(branch_close_p) struct branch *b = calloc(1, sizeof(*b));
	int r = b ? git_load(&b->git, err) : err_nomem(err);

	if (r < 0)
		return r;
	b->name = strdup(name);
	if (!b->name || asprintf(&b->ref, "refs/heads/%s", name) < 0) {
		b->ref = NULL;
		return err_nomem(err);
	}
	/* What was promised survives power loss. */
	b->git->libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
	r = b->git->repository_open_ext(&b->repo, repository, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);
	if (r == GIT_ENOTFOUND)
		return err_set(err, -ENOENT, "there is no git repository in '%s'", repository);
	if (r < 0)
		return git_failed(b->git, r, repository, err);
	r = find_tip(b, repository, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(b);
	return 0;
}

bool branch_is_checked_out(const struct branch *b)
{
	return b->checked_out;
}

/* --- a commit ------------------------------------------------------------------------------ */

static int read_content(int dir, const char *path, const struct stat *st, struct buf *ret,
			struct err *err)
{
	char link[PATH_MAX];
	ssize_t n;

	if (S_ISREG(st->st_mode))
		return fdio_read_file(dir, path, FILE_MAX, ret, err);
	n = readlinkat(dir, path, link, sizeof(link));
	if (n < 0)
		return err_sys(err, "reading '%s'", path);
	return buf_append(ret, link, (size_t)n) < 0 ? err_nomem(err) : 0;
}

static int put(const struct branch *b, int dir, const char *path, const struct stat *st,
	       git_tree_update *u, struct err *err)
{
	CLEANUP(buf_done) struct buf content = BUF_INIT;
	int r = read_content(dir, path, st, &content, err);

	if (r < 0)
		return r;
	*u = (git_tree_update){
		.action = GIT_TREE_UPDATE_UPSERT,
		.filemode = S_ISLNK(st->st_mode)        ? GIT_FILEMODE_LINK
			    : (st->st_mode & 0100) != 0 ? GIT_FILEMODE_BLOB_EXECUTABLE
							: GIT_FILEMODE_BLOB,
		.path = path,
	};
	r = b->git->blob_create_from_buffer(
	    &u->id, b->repo, content.len > 0 ? (const void *)content.data : "", content.len);
	return r < 0 ? git_failed(b->git, r, path, err) : 1;
}

/* What becomes of one path.  1: *u says it; 0: nothing. */
static int update_of(const struct branch *b, int dir, const char *path, git_tree_update *u,
		     struct err *err)
{
	git_tree_entry *had = NULL;
	git_filemode_t mode = GIT_FILEMODE_UNREADABLE;
	struct stat st;
	int ignored = 0;

	if (b->git->tree_entry_bypath(&had, b->tree, path) == 0) {
		mode = b->git->tree_entry_filemode(had);
		b->git->tree_entry_free(had);
	}
	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode)) {
		*u = (git_tree_update){ .action = GIT_TREE_UPDATE_REMOVE, .path = path };
		return mode != GIT_FILEMODE_UNREADABLE && mode != GIT_FILEMODE_TREE &&
		       mode != GIT_FILEMODE_COMMIT;
	}
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return err_set(err, -ECANCELED, "git cannot keep '%s': it is no file and no link",
			       path);
	if (mode == GIT_FILEMODE_UNREADABLE &&
	    b->git->ignore_path_is_ignored(&ignored, b->repo, path) == 0 && ignored)
		return 0;
	return put(b, dir, path, &st, u, err);
}

static int make_commit(const struct branch *b, const git_oid *tree_id, const char *message,
		       char ret[BRANCH_COMMIT_SIZE], struct err *err)
{
	const struct git *g = b->git;
	const git_commit *parents[] = { b->commit };
	git_signature *who = NULL;
	git_tree *tree = NULL;
	git_oid id;
	int r = g->signature_default(&who, b->repo);

	/* Nobody told git a name. */
	if (r < 0)
		r = g->signature_now(&who, "snap", "snap@localhost");
	if (r >= 0)
		r = g->tree_lookup(&tree, b->repo, tree_id);
	if (r >= 0)
		r = g->commit_create(&id, b->repo, NULL, who, who, NULL, message, tree, 1,
				     (void *)parents);
	g->tree_free(tree);
	g->signature_free(who);
	if (r < 0)
		return git_failed(g, r, b->name, err);
	g->oid_tostr(ret, BRANCH_COMMIT_SIZE, &id);
	return 1;
}

int branch_commit(const struct branch *b, const char *dir, char *const *paths, size_t n,
		  const char *message, char ret[BRANCH_COMMIT_SIZE], struct err *err)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FREE git_tree_update *updates = calloc(n + 1, sizeof(*updates));
	size_t used = 0;
	git_oid tree;
	int r;

	if (fd < 0)
		return err_sys(err, "opening '%s'", dir);
	if (!updates)
		return err_nomem(err);
	/* Only in memory: which paths are ignored is for the directory's files to say. */
	r = b->git->repository_set_workdir(b->repo, dir, 0);
	if (r < 0)
		return git_failed(b->git, r, dir, err);
	for (size_t i = 0; i < n; i++) {
		r = update_of(b, fd, paths[i], &updates[used], err);
		if (r < 0)
			return r;
		used += r > 0;
	}
	if (used == 0)
		return 0;
	r = b->git->tree_create_updated(&tree, b->repo, b->tree, used, updates);
	if (r < 0)
		return git_failed(b->git, r, b->name, err);
	return b->git->oid_cmp(&tree, b->git->tree_id(b->tree)) == 0
		   ? 0
		   : make_commit(b, &tree, message, ret, err);
}

/* --- taking back --------------------------------------------------------------------------- */

static int find_commit(const struct branch *b, const char *hex, git_commit **ret, struct err *err)
{
	git_oid id;
	int r = b->git->oid_fromstr(&id, hex);

	if (r >= 0)
		r = b->git->commit_lookup(ret, b->repo, &id);
	return r < 0 ? err_set(err, -ENOENT, "there is no commit %s", hex) : 0;
}

int branch_revert(const struct branch *b, const char *commit, const char *message,
		  char ret[BRANCH_COMMIT_SIZE], struct err *err)
{
	const struct git *g = b->git;
	git_commit *bad = NULL;
	git_index *index = NULL;
	git_oid tree;
	int r = find_commit(b, commit, &bad, err);

	if (r < 0)
		return r;
	r = g->revert_commit(&index, b->repo, bad, b->commit, 0, NULL);
	g->commit_free(bad);
	if (r >= 0 && g->index_has_conflicts(index)) {
		g->index_free(index);
		return 0;
	}
	if (r >= 0)
		r = g->index_write_tree_to(&tree, index, b->repo);
	if (index)
		g->index_free(index);
	return r < 0 ? git_failed(g, r, b->name, err) : make_commit(b, &tree, message, ret, err);
}

/* --- where it is ---------------------------------------------------------------------------- */

int branch_contains(const struct branch *b, const char *commit, struct err *err)
{
	git_oid id;
	int r;

	if (b->git->oid_fromstr(&id, commit) < 0)
		return 0;
	if (b->git->oid_cmp(&id, &b->tip) == 0)
		return 1;
	r = b->git->graph_descendant_of(b->repo, &b->tip, &id);
	if (r == GIT_ENOTFOUND)
		return 0;
	return r < 0 ? git_failed(b->git, r, b->name, err) : r;
}
