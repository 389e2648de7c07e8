// Names, numbers and lines.
#include <string.h>

#include "cmocka_all.h"
#include "text.h"

static void names(void **state)
{
    (void)state;
    const char *const good[] = {"a", "9", "ocean", "Ocean-3.1_b+c@d", "0..", "romio"};
    const char *const bad[] = {"", "_a", ".a", "-a", "a b", "a,b", "a=b", "a/b", "\xc3\xa9", "a\n"};
    char longest[IOAT_NAME_MAX + 2];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(ioat_text_is_name(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(ioat_text_is_name(bad[i], strlen(bad[i])));
    memset(longest, 'x', sizeof longest);
    assert_true(ioat_text_is_name(longest, IOAT_NAME_MAX));
    assert_false(ioat_text_is_name(longest, IOAT_NAME_MAX + 1));
    assert_false(ioat_text_is_name("a\0b", 3));
}

static void components(void **state)
{
    (void)state;
    const char *const good[] = {"c", "_c", "-c", "cluster.site", "n001"};
    const char *const bad[] = {"", ".", "..", ".hidden", "../x", "a/b", "a b", "a\n", "\xc3\xa9"};
    char longest[257];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(ioat_text_is_component(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(ioat_text_is_component(bad[i]));
    memset(longest, 'x', sizeof longest);
    longest[256] = '\0';
    assert_false(ioat_text_is_component(longest));
    longest[255] = '\0';
    assert_true(ioat_text_is_component(longest));
}

static void variables(void **state)
{
    (void)state;
    const char *const good[] = {"A", "_", "ROMIO_HINTS", "OMPI_MCA_io_x", "A9"};
    const char *const bad[] = {"", "9A", "A-B", "A=B", "A B", "A%"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(ioat_text_is_variable(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(ioat_text_is_variable(bad[i], strlen(bad[i])));
}

static void numbers(void **state)
{
    (void)state;
    const char *const bad[] = {"",  "-1", "+1",  " 1",         "1 ",         "01",
                               "x", "1x", "0x1", "4294967296", "99999999999"};
    uint32_t value = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(ioat_text_parse_u32(bad[i], strlen(bad[i]), &value));
    assert_int_equal(value, 7);
    assert_true(ioat_text_parse_u32("0", 1, &value));
    assert_int_equal(value, 0);
    assert_true(ioat_text_parse_u32("4294967295", 10, &value));
    assert_int_equal(value, UINT32_MAX);
    assert_true(ioat_text_is_digits("0042"));
    assert_false(ioat_text_is_digits(""));
    assert_false(ioat_text_is_digits("1:0"));
}

// Attack (units): A shown text has control characters, invalid UTF-8, or characters that are
// invisible or reorder.
// Outcome: Each of their bytes is shown as a question mark.
static void cleaning(void **state)
{
    (void)state;
    const struct {
        const char *dirty, *clean;
    } cases[] = {
        {"plain", "plain"},
        {"gr\xc3\xbc\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x98\x80",
         "gr\xc3\xbc\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"a\tb\nc", "a b?c"},
        {"\x1b[31mred", "?[31mred"},
        {"cr\rlf", "cr?lf"},
        {"\x7f", "?"},
        // C1 control, overlong, surrogate, beyond Unicode, cut short, stray tail.
        {"\xc2\x9b", "??"},
        {"\xc0\xaf", "??"},
        {"\xed\xa0\x80", "???"},
        {"\xf4\x90\x80\x80", "????"},
        {"x\xe2\x82", "x??"},
        {"\x80", "?"},
        // Right-to-left override.
        {"a\xe2\x80\xae\x62", "a???b"},
        // A zero-width space, an isolate, a byte-order mark, a tag.
        {"a\xe2\x80\x8b\x62", "a???b"},
        {"a\xe2\x81\xa6\x62", "a???b"},
        {"a\xef\xbb\xbf\x62", "a???b"},
        {"a\xf3\xa0\x81\x81\x62", "a????b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        const size_t length = strlen(cases[i].dirty);
        memcpy(text, cases[i].dirty, length + 1);
        ioat_text_clean(text, length);
        assert_string_equal(text, cases[i].clean);
        assert_int_equal(ioat_text_is_printable(cases[i].dirty, length),
                         strcmp(cases[i].dirty, cases[i].clean) == 0);
    }
}

static void collect(const char *line, void *data)
{
    strcat(data, line);
    strcat(data, "|");
}

static void lines(void **state)
{
    (void)state;
    char text[] = "one\n\ntwo\x01\nthree\nfour", seen[64] = "";
    assert_int_equal(ioat_text_lines(text, strlen(text), 3, collect, seen), 3);
    assert_string_equal(seen, "one|two?|three|");
    char nothing[1] = "";
    assert_int_equal(ioat_text_lines(nothing, 0, 3, collect, seen), 0);
    // A zero byte ends nothing early.
    char zero[] = "a\0b\nc";
    seen[0] = '\0';
    assert_int_equal(ioat_text_lines(zero, sizeof zero - 1, 3, collect, seen), 2);
    assert_string_equal(seen, "a?b|c|");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),   cmocka_unit_test(components), cmocka_unit_test(variables),
        cmocka_unit_test(numbers), cmocka_unit_test(cleaning),   cmocka_unit_test(lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
