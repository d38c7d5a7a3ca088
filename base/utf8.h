/*
 * utf8.h - which bytes are characters, and which of those may be shown to a person as they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The length of the character that starts at `s`, if it is valid UTF-8 and safe to
 * print: no control character (C0, DEL, C1), no line separator and nothing that
 * turns the writing direction, with which one name could pose as another.  Else 0.
 */
size_t utf8_printable(const char *s, size_t len);

/*
 * The same for a person's eyes: 0 also for characters that take no space of their own (zero-width
 * spaces and joiners, soft hyphens, fillers, variation selectors, tags), with which two different
 * texts look alike.
 */
size_t utf8_visible(const char *s, size_t len);

/* The length of the valid character that starts at `s`, and which it is; else 0. */
size_t utf8_decode(const char *s, size_t len, uint32_t *ret);

/* Could `len` < 4 bytes be the beginning of a valid character that goes on? */
bool utf8_is_cut(const char *s, size_t len);

/* The length of the valid character that starts at `s`, safe to print or not; else 0. */
size_t utf8_valid(const char *s, size_t len);
