#include "engine/api/image.h"

#include <stdlib.h>

#include "base/vec.h"

void engine_image_done(struct engine_image *i)
{
	free(i->name);
	free(i->about);
	*i = (struct engine_image){ 0 };
}

DEFINE_LIST_DONE(engine_images_done, struct engine_images, engine_image_done)

void engine_imported_done(struct engine_imported *i)
{
	engine_image_done(&i->image);
}

void engine_exported_done(struct engine_exported *x)
{
	free(x->state);
	*x = (struct engine_exported){ 0 };
}
