/*
 * utf8.h - which bytes are characters, and which of those may be shown to a person as they are.
 */
#pragma once

#include <stddef.h>

/*
 * The length of the character that starts at `s`, if it is valid UTF-8 and safe to
 * print: no control character (C0, DEL, C1), no line separator and nothing that
 * turns the writing direction, with which one name could pose as another.  Else 0.
 */
size_t utf8_printable(const char *s, size_t len);

/* The length of the valid character that starts at `s`, safe to print or not; else 0. */
size_t utf8_valid(const char *s, size_t len);
