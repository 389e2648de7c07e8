// Pure checks and repairs of untrusted text: names, numbers, lines for a terminal.
#ifndef IOAT_TEXT_H
#define IOAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Bytes, for an application or an accelerator.
#define IOAT_NAME_MAX 128

/// A name: [A-Za-z0-9][A-Za-z0-9._+@-]{0,127}.
bool ioat_text_is_name(const char *text, size_t length);

/// Bytes, for a user's directory.
#define IOAT_PATH_MAX 255

/// A whole path whose bytes are `/` and those of names.
bool ioat_text_is_path(const char *text, size_t length);

/// A path component below the run directory: [A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}; never `.` or `..`.
bool ioat_text_is_component(const char *text);

/// An environment variable's name: [A-Za-z_][A-Za-z0-9_]*.
bool ioat_text_is_variable(const char *text, size_t length);

/// One or more decimal digits.
bool ioat_text_is_digits(const char *text);

/// A number up to UINT32_MAX, without sign, blanks or leading zeros; else `value` is unchanged.
bool ioat_text_parse_u32(const char *text, size_t length, uint32_t *value);

/// UTF-8 without control characters, line separators and bidirectional marks.
bool ioat_text_is_printable(const char *text, size_t length);

/// Makes text printable in place: a tab becomes a blank, other refused bytes become `?`.
void ioat_text_clean(char *text, size_t length);

typedef void ioat_text_line_f(const char *line, void *data);

/// Calls `line` with the first `limit` non-empty lines, cleaned and zero-terminated. `text` must
/// have room for one more byte. Returns the number of calls.
size_t ioat_text_lines(char *text, size_t length, size_t limit, ioat_text_line_f *line, void *data);

#endif
