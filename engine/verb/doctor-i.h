/*
 * doctor-i.h - private to doctor: how a finding is put down, and what differs between systems.
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

/*
 * The file that a command of this name is, as the shell finds it, without symlinks; owned.
 * NULL: there is none.
 */
char *doctor_find_program(const char *name);
