/*
 * doctor-i.h - private to doctor: what differs between systems.
 */
#pragma once

#include "engine/api/doctor.h"

/* All that the system decides: FUSE, and what walls a sandbox can have. */
void doctor_look_at_system(struct engine_diagnosis *d);

/* The file that the shell would run for this name, without symlinks; owned, NULL: none. */
char *doctor_find_program(const char *name);
