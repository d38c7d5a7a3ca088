/*
 * via.h - which program works for the user: a server or agent that starts commands says so in the
 * environment.
 *
 * "agent:NAME" or "ui"; a typing person sets nothing. It is for people who look later, and proves
 * nothing: any program that may start a command may set it.
 */
#pragma once

#define VIA_VARIABLE "SNAPCOW_VIA"
#define VIA_MAX      96 /* bytes */

/* Borrowed; NULL: nobody said, or it is not one short line that can be shown. */
const char *via_find(void);
