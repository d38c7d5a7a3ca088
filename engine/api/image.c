#include "engine/api/image.h"

#include <stdlib.h>

void engine_image_done(struct engine_image *i)
{
	free(i->name);
	free(i->about);
	*i = (struct engine_image){ 0 };
}

void engine_images_done(struct engine_images *i)
{
	for (size_t k = 0; k < i->n; k++)
		engine_image_done(&i->list[k]);
	free(i->list);
	*i = (struct engine_images){ 0 };
}

void engine_imported_done(struct engine_imported *i)
{
	engine_image_done(&i->image);
}

void engine_exported_done(struct engine_exported *x)
{
	free(x->state);
	*x = (struct engine_exported){ 0 };
}
