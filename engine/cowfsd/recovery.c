/*
 * Programs wait for their mounts, so those come before interrupted changes of projects: taking one
 * back syncs each file, which can take minutes. Commands wait for both.
 */
#include "engine/cowfsd/recovery-i.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "engine/act/land-i.h"
#include "engine/act/stage-i.h"
#include "engine/act/unneeded-i.h"
#include "engine/api/engine.h"
#include "engine/host/host-i.h"
#include "engine/host/promises-i.h"

#define WHO_MAX 64

void dead_read(int alive_fd, struct dead *ret)
{
	char who[WHO_MAX], phase[16] = "";
	ssize_t n = fdio_pread(alive_fd, who, sizeof(who) - 1, 0);

	*ret = (struct dead){ 0 };
	who[n > 0 ? n : 0] = '\0';
	if (sscanf(who, "%d %*s %15s", &ret->pid, phase) >= 1)
		ret->starting = strcmp(phase, "starting") == 0;
}

static void describe_death(const struct dead *dead, const char *log, int mounted, struct err *word)
{
	const char *more = mounted > 0 ? ", and its clones are mounted again: unsynced writes of "
					 "its last seconds may be lost; snapshots and synced files "
					 "are safe"
				       : "";

	if (dead->starting)
		more = " while it started, so no clone was mounted again";
	log_warn("the previous cowfsd, process %d, ended unexpectedly%s", dead->pid, more);
	snprintf(word->msg, sizeof(word->msg), "cowfsd (process %d) ended unexpectedly%s: see '%s'",
		 dead->pid, more, log);
}

static int mount_again(struct host *h, const struct dead *dead, struct err *err)
{
	int n = promises_recover(h->promises, err);

	if (n < 0)
		return n;
	n = dead->starting ? 0 : live_recover(h, err);
	if (n > 0)
		log_info("%d %s mounted", n, n == 1 ? "clone is" : "clones are");
	return n;
}

int recovery_mount(struct host *h, const struct dead *dead, struct err *err)
{
	int n;

	live_view_sweep(h);
	warm_clone_sweep(h);
	/* Before the changes: a snapshot to be checked goes only after the clones of its checks. */
	stage_sweep(h);
	unneeded_sweep(h);
	n = mount_again(h, dead, err);
	/* cowfsd ends then, and no project is to stay half changed. */
	if (n < 0)
		landing_recover_all(h);
	return n;
}

void recovery_end(struct host *h, const struct dead *dead, int mounted, const char *log,
		  struct err *word)
{
	landing_recover_all(h);
	if (dead->pid != 0)
		describe_death(dead, log, mounted, word);
	log_info("cowfsd %s, process %d: ready", engine_version(), getpid());
}
