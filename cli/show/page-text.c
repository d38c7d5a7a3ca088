#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/visible.h"
#include "cli/show/page.h"

#define PRINTED_MAX 512

void page_put(struct page *p, const char *html)
{
	if (p->r >= 0)
		p->r = buf_append_str(&p->text, html);
}

void page_printf(struct page *p, const char *fmt, ...)
{
	char text[PRINTED_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	page_put(p, text);
}

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void page_text(struct page *p, const char *text, size_t len)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;
	struct visible v = { 0 };
	size_t from = 0;

	if (p->r < 0)
		return;
	p->r = visible_append(&v, text, len, &shown);
	if (p->r >= 0)
		p->r = visible_end(&v, &shown);
	for (size_t i = 0; i <= shown.len && p->r >= 0; i++) {
		const char *as = i < shown.len ? entity((char)shown.data[i]) : NULL;

		if (!as && i < shown.len)
			continue;
		p->r = buf_append(&p->text, shown.data + from, i - from);
		if (as && p->r >= 0)
			p->r = buf_append_str(&p->text, as);
		from = i + 1;
	}
}

void page_name(struct page *p, const char *text)
{
	page_text(p, text, strlen(text));
}
