#include "text.h"

#include <string.h>

// The C library's classification depends on the host program's locale.
static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool ioat_text_is_name(const char *text, size_t length)
{
    if (length == 0 || length > IOAT_NAME_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (is_letter(c) || is_digit(c))
            continue;
        if (i == 0 || c == '\0' || strchr("._+@-", c) == NULL)
            return false;
    }
    return true;
}

bool ioat_text_is_path(const char *text, size_t length)
{
    if (length == 0 || length > IOAT_PATH_MAX || text[0] != '/')
        return false;
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (!is_letter(c) && !is_digit(c) && (c == '\0' || strchr("._+@-/", c) == NULL))
            return false;
    }
    return true;
}

bool ioat_text_is_component(const char *text)
{
    const size_t length = strnlen(text, 256);
    if (length == 0 || length > 255)
        return false;
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (!is_letter(c) && !is_digit(c) && c != '_' && c != '-' && (c != '.' || i == 0))
            return false;
    }
    return true;
}

bool ioat_text_is_variable(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (!is_letter(c) && c != '_' && (i == 0 || !is_digit(c)))
            return false;
    }
    return length > 0;
}

bool ioat_text_is_digits(const char *text)
{
    size_t i = 0;
    while (is_digit((unsigned char)text[i]))
        i++;
    return i > 0 && text[i] == '\0';
}

bool ioat_text_parse_u32(const char *text, size_t length, uint32_t *value)
{
    uint64_t sum = 0;
    if (length == 0 || length > 10 || (length > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!is_digit((unsigned char)text[i]))
            return false;
        sum = sum * 10 + (uint64_t)(text[i] - '0');
    }
    if (sum > UINT32_MAX)
        return false;
    *value = (uint32_t)sum;
    return true;
}

// Characters that make one line look like several or like other text, or are not seen (Unicode TR
// 36): the list of tuner-service/protocol/src/printable.rs.
static bool is_deceptive(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},         {0x34f, 0x34f},
        {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},       {0x70f, 0x70f},
        {0x890, 0x891},     {0x8e2, 0x8e2},     {0x115f, 0x1160},     {0x17b4, 0x17b5},
        {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},     {0x2060, 0x206f},
        {0x2800, 0x2800},   {0x3164, 0x3164},   {0xe000, 0xf8ff},     {0xfe00, 0xfe0f},
        {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},     {0x110bd, 0x110bd},
        {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},   {0x1d173, 0x1d17a},
        {0xe0000, 0xe0fff}, {0xf0000, 0xffffd}, {0x100000, 0x10fffd},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    }
    return false;
}

// The length of the printable UTF-8 character (RFC 3629) at `text`, or 0.
static size_t printable(const unsigned char *text, size_t left)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char first = text[0];
    const size_t length = first < 0x80             ? 1
                          : (first & 0xe0) == 0xc0 ? 2
                          : (first & 0xf0) == 0xe0 ? 3
                          : (first & 0xf8) == 0xf0 ? 4
                                                   : 0;
    if (length == 0 || length > left)
        return 0;
    uint32_t point = length == 1 ? first : first & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (text[i] & 0x3fU);
    }
    if (point < smallest[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return 0;
    return is_deceptive(point) ? 0 : length;
}

bool ioat_text_is_printable(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t i = 0; i < length;) {
        const size_t step = printable(bytes + i, length - i);
        if (step == 0)
            return false;
        i += step;
    }
    return true;
}

void ioat_text_clean(char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        const size_t step = printable((const unsigned char *)text + i, length - i);
        if (step == 0 && text[i] == '\t')
            text[i] = ' ';
        else if (step == 0)
            text[i] = '?';
        i += step == 0 ? 1 : step;
    }
}

size_t ioat_text_lines(char *text, size_t length, size_t limit, ioat_text_line_f *line, void *data)
{
    size_t count = 0;
    text[length] = '\n';
    for (size_t begin = 0; begin < length && count < limit;) {
        char *start = text + begin;
        const size_t size = (size_t)((char *)memchr(start, '\n', length + 1 - begin) - start);
        begin += size + 1;
        if (size == 0)
            continue;
        ioat_text_clean(start, size);
        start[size] = '\0';
        line(start, data);
        count++;
    }
    return count;
}
