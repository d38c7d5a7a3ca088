/*
 * images.h - an image in JSON.
 */
#pragma once

#include "base/json.h"
#include "engine/api/image.h"

void show_json_image(struct json j, const struct engine_image *i);
