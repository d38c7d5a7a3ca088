/*
 * doctor-i.h - private to doctor: what differs between systems.
 */
#pragma once

#include "engine/api/doctor.h"

/* All that the system decides: FUSE, and what walls a sandbox can have. */
void doctor_look_at_system(struct engine_diagnosis *d);

/* What is on the disk when the machine is off. */
enum doctor_rest {
	DOCTOR_REST_UNKNOWN, /* a network or a container is between us and the disk */
	DOCTOR_REST_PLAIN,
	DOCTOR_REST_ENCRYPTED,
	DOCTOR_REST_NONE, /* nothing: it is in memory */
};
enum doctor_rest doctor_rest(const char *dir);

/* The file that the shell would run for this name, without symlinks; owned, NULL: none. */
char *doctor_find_program(const char *name);
