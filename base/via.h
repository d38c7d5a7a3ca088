/*
 * via.h - what works for the user: a server or an agent that starts commands says so in the environment.
 *
 * "agent:NAME" or "ui"; a person who types says nothing.  It is for people who look later, and proves
 * nothing: whoever may start a command may say anything.
 */
#pragma once

#define VIA_VARIABLE "SNAPCOW_VIA"
#define VIA_MAX      96 /* bytes */

/* Borrowed; NULL: nobody said, or it is not one short line that can be shown. */
const char *via_find(void);
