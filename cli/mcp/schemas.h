/*
 * schemas.h - the schemas of docs/schema, made part of the program when it is built.
 */
#pragma once

/* What `command` prints with --json, as a JSON Schema on one line; NULL: no such command. */
const char *schema_text(const char *command);
