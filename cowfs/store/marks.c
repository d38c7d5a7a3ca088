#include "cowfs/store/marks-i.h"

#include <errno.h>
#include <string.h>

#define ROWS_MAX ((int64_t)1 << 34) /* a damaged row number must not cost all memory */

int marks_init(struct marks *m, const int64_t limit[TABLES], struct err *err)
{
	*m = (struct marks){ 0 };
	for (int t = 0; t < TABLES; t++) {
		if (limit[t] > ROWS_MAX) {
			marks_done(m);
			return err_set(err, -EBADMSG, "row number %lld in '%s' is absurd",
				       (long long)limit[t], schema_file_name((enum schema_file)t));
		}
		m->limit[t] = limit[t];
		/* calloc() touches no page: a row number that lies costs address space only. */
		m->bits[t] = calloc((size_t)limit[t] / 8 + 1, 1);
		if (!m->bits[t]) {
			marks_done(m);
			return err_nomem(err);
		}
	}
	return 0;
}

void marks_done(struct marks *m)
{
	for (int t = 0; t < TABLES; t++)
		free(m->bits[t]);
	*m = (struct marks){ 0 };
}

bool marks_set(struct marks *m, struct row row)
{
	uint8_t *byte = &m->bits[row.table][row.seq / 8], bit = (uint8_t)(1u << row.seq % 8);
	bool was = *byte & bit;

	*byte |= bit;
	return was;
}

bool marks_has(const struct marks *m, struct row row)
{
	return m->bits[row.table][row.seq / 8] & 1u << row.seq % 8;
}

void marks_set_all(struct marks *m)
{
	for (int t = 0; t < TABLES; t++)
		memset(m->bits[t], 0xff, (size_t)m->limit[t] / 8 + 1);
}

void marks_clear(struct marks *m, struct row row)
{
	m->bits[row.table][row.seq / 8] &= (uint8_t) ~(1u << row.seq % 8);
}

bool marks_keep(struct marks *m, struct row row)
{
	if (row.seq > m->limit[row.table])
		return true;
	if (row.seq <= m->swept[row.table])
		return marks_has(m, row);
	marks_set(m, row);
	return true;
}
