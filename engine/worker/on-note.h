/*
 * on-note.h - tickets that this store has sent and whose end it has not seen, so that each can be
 * followed again.
 *
 * STORE/remote/tickets/ID: the local state that was sent, a newline, and the ticket's text. A file
 * goes when its result is here, or after 8 days.
 */
#pragma once

#include "engine/transfer/transfer-i.h"
#include "engine/worker/ticket.h"

/* How long a result is kept at least, counted from when its ticket was sent. */
#define ON_NOTE_DAYS_QUEUE 7
#define ON_NOTE_DAYS_TRAY  8

/* `place`: where it is sent, as --on has it. */
NODISCARD int on_note_save(struct engine *e, const char *id, const char *place, const char *state,
			   const struct buf *text, struct err *err);
/*
 * -ENOENT with a sentence if there is none, or one of more than so many days; -EINVAL if it was sent to another place.
 * *ret_state is owned.
 */
NODISCARD int on_note_load(struct engine *e, const char *id, const char *place, int days,
			   char **ret_state, struct buf *ret, struct err *err);
void on_note_drop(struct engine *e, const char *id);
