#include "cli/show/images.h"

#include <string.h>

#include "cli/out.h"

void show_json_image(struct json j, const struct engine_image *i)
{
	json_set_name(j, "image", i->name);
	json_set_text(j, "snapshot", i->id);
	out_json_time(j, "created", i->created);
	json_set_uint(j, "files", i->files);
	json_set_uint(j, "bytes", i->bytes);
	json_set_uint(j, "clones", i->clones);
	if (!json_set_parsed(j, "about", i->about, strlen(i->about)))
		json_set_object(j, "about");
}
