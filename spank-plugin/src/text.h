// Pure checks and repairs of text that came from outside: names, numbers, lines for a terminal.
#ifndef IOAT_TEXT_H
#define IOAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Longest name of an application or an accelerator, in bytes.
#define IOAT_NAME_MAX 128

/// Whether `length` bytes are a name: [A-Za-z0-9][A-Za-z0-9._+@-]{0,127}.
bool ioat_text_is_name(const char *text, size_t length);

/// Whether `text` can be one component of a path below the run directory:
/// [A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}; so it is never `.`, `..` or empty, and has no slash.
bool ioat_text_is_component(const char *text);

/// Whether `length` bytes name an environment variable: [A-Za-z_][A-Za-z0-9_]*.
bool ioat_text_is_variable(const char *text, size_t length);

/// Whether `text` is one or more decimal digits.
bool ioat_text_is_digits(const char *text);

/// Reads a decimal number of at most UINT32_MAX without sign, blanks or leading zeros.
/// Returns false, and leaves `value` alone, when the text is anything else.
bool ioat_text_parse_u32(const char *text, size_t length, uint32_t *value);

/// Whether `length` bytes are UTF-8 without control characters, line separators or marks that
/// change the direction of writing.
bool ioat_text_is_printable(const char *text, size_t length);

/// Makes `length` bytes safe for one line of a terminal or a log, in place: every byte that
/// ioat_text_is_printable would refuse becomes `?`, and a tab a blank.
void ioat_text_clean(char *text, size_t length);

/// Called for each line with a terminating zero instead of the newline.
typedef void ioat_text_line_f(const char *line, void *data);

/// Cuts `length` bytes into lines, cleans them and calls `line` for the first `limit` that are not
/// empty. `text` must have room for one more byte. Returns the number of calls.
size_t ioat_text_lines(char *text, size_t length, size_t limit, ioat_text_line_f *line, void *data);

#endif
