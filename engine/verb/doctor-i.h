/*
 * doctor-i.h - private to doctor: how findings are recorded, and what differs between systems.
 */
#pragma once

#include "engine/api/doctor.h"

void doctor_well(struct engine_diagnosis *d, const char *name, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* `fix` is a command or a sentence. */
void doctor_finds(struct engine_diagnosis *d, enum engine_health health, const char *name,
		  const char *fix, const char *fmt, ...) PRINTF_LIKE(5, 6);

/* All that the system decides: FUSE, and what walls a sandbox can have. */
void doctor_look_at_system(struct engine_diagnosis *d);

/* The file that the shell would run for this name, without symlinks; owned, NULL: none. */
char *doctor_find_program(const char *name);
