/*
 * service.h - the daemon, shown to programs.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/service.h"

void service_set_json(struct json j, const struct engine_service *s); /* its members */
