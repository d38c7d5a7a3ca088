#include "remote/ticket-line.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define SERVER_WORDS "serve --tickets"

void ticket_question_done(struct ticket_question *q)
{
	free(q->path);
	buf_done(&q->text);
}

int ticket_question_read(struct stream *s, struct ticket_question *ret)
{
	CLEANUP(ticket_question_done) struct ticket_question q = { 0 };
	const uint32_t mode = stream_u32(s);
	const void *text;
	size_t len;

	q.path = stream_text(s);
	q.attempt = stream_u64(s);
	q.at[0] = stream_u64(s);
	q.at[1] = stream_u64(s);
	text = stream_rest(s, &len);
	if (!q.path)
		return -ENOMEM;
	if (!stream_is_whole(s) || mode > TICKET_CANCEL || len == 0)
		return -EPROTO;
	if (buf_append(&q.text, text, len) < 0)
		return -ENOMEM;
	q.mode = (enum ticket_mode)mode;
	*ret = TAKE_STRUCT(q);
	return 0;
}

/* --- the server --------------------------------------------------------------------------- */

int ticket_send_piece(struct stream *s, const struct ticket_piece *piece)
{
	stream_begin(s, STREAM_OUTPUT);
	stream_add_u64(s, piece->attempt);
	stream_add_u32(s, (uint32_t)piece->stream);
	stream_add_u64(s, piece->at);
	stream_add_raw(s, piece->data, piece->len);
	return stream_send(s);
}

int ticket_send_result(struct stream *s, const struct buf *text)
{
	stream_begin(s, STREAM_OK);
	stream_add_raw(s, text->data, text->len);
	return stream_send(s);
}

/* --- the client --------------------------------------------------------------------------- */

int ticket_line_ask(struct ssh_line *l, const struct ticket_question *q, struct err *err)
{
	struct stream *s = &l->stream;
	int r = ssh_line_open(l, SERVER_WORDS, true, err);

	if (r < 0)
		return r;
	stream_begin(s, STREAM_TICKET);
	stream_add_u32(s, (uint32_t)q->mode);
	stream_add_text(s, q->path);
	stream_add_u64(s, q->attempt);
	stream_add_u64(s, q->at[0]);
	stream_add_u64(s, q->at[1]);
	stream_add_raw(s, q->text.data, q->text.len);
	return ssh_line_send(l, err);
}

int ticket_line_stop(struct ssh_line *l, struct err *err)
{
	stream_begin(&l->stream, STREAM_STOP);
	return ssh_line_send(l, err);
}

static int take_piece(struct ssh_line *l, struct ticket_piece *ret, struct err *err)
{
	struct stream *s = &l->stream;
	struct ticket_piece piece = { .attempt = stream_u64(s) };
	const uint32_t stream = stream_u32(s);

	piece.at = stream_u64(s);
	piece.data = stream_rest(s, &piece.len);
	if (!stream_is_whole(s) || stream > TICKET_ERR || piece.attempt == 0)
		return ssh_line_strange(l, err);
	piece.stream = stream;
	*ret = piece;
	return 1;
}

int ticket_line_next(struct ssh_line *l, struct ticket_piece *ret, struct buf *result,
		     struct err *err)
{
	const int type = ssh_line_receive(l, err);
	const void *text;
	size_t len;

	if (type == STREAM_OUTPUT)
		return take_piece(l, ret, err);
	if (type != STREAM_OK)
		return type < 0 ? type : ssh_line_strange(l, err);
	text = stream_rest(&l->stream, &len);
	buf_reset(result);
	return buf_append(result, text, len) < 0 ? err_nomem(err) : 0;
}
