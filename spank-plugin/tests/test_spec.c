// The option's argument and the request made of it.
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"
#include "request.h"
#include "spec.h"

static void good_specs(void **state)
{
    (void)state;
    const struct {
        const char *text, *app, *accelerator;
        enum ioat_mode mode;
    } cases[] = {
        {NULL, "", "", IOAT_MODE_TUNE},
        {"", "", "", IOAT_MODE_TUNE},
        {"(null)", "", "", IOAT_MODE_TUNE},
        {"romio", "", "romio", IOAT_MODE_TUNE},
        {"accelerator=romio", "", "romio", IOAT_MODE_TUNE},
        {"app=ocean", "ocean", "", IOAT_MODE_TUNE},
        {"mode=tune", "", "", IOAT_MODE_TUNE},
        {"mode=observe", "", "", IOAT_MODE_OBSERVE},
        {"mode=off", "", "", IOAT_MODE_OFF},
        {"app=ocean,romio,mode=observe", "ocean", "romio", IOAT_MODE_OBSERVE},
        {"romio,app=a.b_c+d@e-f", "a.b_c+d@e-f", "romio", IOAT_MODE_TUNE},
        {"romio+page-cache", "", "romio+page-cache", IOAT_MODE_TUNE},
        {"app=a,accelerator=b+c+d", "a", "b+c+d", IOAT_MODE_TUNE},
        {"off", "", "", IOAT_MODE_OFF},
        {"app=x,observe", "x", "", IOAT_MODE_OBSERVE},
        {"verbose", "", "", IOAT_MODE_TUNE},
        {"romio,verbose,verbose", "", "romio", IOAT_MODE_TUNE},
        {"app=x,tell", "x", "", IOAT_MODE_TUNE},
        {"romio,dir=/project/a.b_c+d@e-f/1", "", "romio", IOAT_MODE_TUNE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ioat_spec spec;
        char error[IOAT_SPEC_ERROR_SIZE];
        assert_int_equal(ioat_spec_parse(cases[i].text, "--io-autotune", &spec, error), 0);
        assert_string_equal(spec.app, cases[i].app);
        assert_string_equal(spec.accelerator, cases[i].accelerator);
        assert_int_equal(spec.mode, cases[i].mode);
        assert_int_equal(spec.verbose,
                         cases[i].text != NULL && strstr(cases[i].text, "verbose") != NULL);
        assert_int_equal(spec.tell, cases[i].text != NULL && strstr(cases[i].text, "tell") != NULL);
        assert_string_equal(error, "");
    }
}

static void bad_specs(void **state)
{
    (void)state;
    const struct {
        const char *text, *reason;
    } cases[] = {
        {"colour=green", "\"colour=green\": there is no such key"},
        {"=romio", "there is no such key"},
        {"App=x", "there is no such key"},
        {"mode=fast", "\"mode=fast\": there is no such mode"},
        {"mode=", "there is no such mode"},
        {"app=", "app= has no value"},
        {"accelerator=", "accelerator= has no value"},
        {"app=a,app=b", "\"app=b\": app is given twice"},
        {"app=a,app=a", "app is given twice"},
        {"romio,lustre", "accelerator is given twice"},
        {"romio,accelerator=romio", "accelerator is given twice"},
        {"mode=tune,mode=tune", "mode is given twice"},
        {"romio,", "nothing before or after a comma"},
        {",romio", "nothing before or after a comma"},
        {",", "nothing before or after a comma"},
        {"romio,,app=x", "nothing before or after a comma"},
        {"app=../../etc", "a name is 1 to 128"},
        {"app=a b", "a name is 1 to 128"},
        {"app=a=b", "a name is 1 to 128"},
        {"dir=", "a directory is a whole path"},
        {"dir=relative", "a directory is a whole path"},
        {"dir=/a b", "a directory is a whole path"},
        {"dir=/a\n", "a directory is a whole path"},
        {"dir=/$HOME", "a directory is a whole path"},
        {"dir=/a,dir=/b", "dir is given twice"},
        {"-romio", "a name is 1 to 128"},
        {"+romio", "a name is 1 to 128"},
        {"romio+page-cache,ompio", "accelerator is given twice"},
        {" romio", "a name is 1 to 128"},
        {"off,mode=tune", "mode is given twice"},
        {"tune,observe", "mode is given twice"},
        {"verbose=1", "there is no such key"},
        {"r\x1b[0m", "\"r?[0m\""},
        {"r\nerror: x", "\"r?error: x\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ioat_spec spec;
        char error[IOAT_SPEC_ERROR_SIZE];
        assert_int_equal(ioat_spec_parse(cases[i].text, "--io-autotune", &spec, error), -1);
        assert_string_equal(spec.app, "");
        assert_string_equal(spec.accelerator, "");
        if (strstr(error, cases[i].reason) == NULL)
            fail_msg("%s: %s", cases[i].text, error);
        assert_non_null(strstr(error, "mode=tune|observe|off"));
        assert_int_equal(strncmp(error, "--io-autotune: ", 15), 0);
    }
}

static void long_specs(void **state)
{
    (void)state;
    char text[2048], error[IOAT_SPEC_ERROR_SIZE];
    struct ioat_spec spec;
    memset(text, 'x', sizeof text);
    text[IOAT_NAME_MAX] = '\0';
    assert_int_equal(ioat_spec_parse(text, "IO_AUTOTUNE", &spec, error), 0);
    assert_int_equal(strlen(spec.accelerator), IOAT_NAME_MAX);
    text[IOAT_NAME_MAX] = 'x';
    text[IOAT_NAME_MAX + 1] = '\0';
    assert_int_equal(ioat_spec_parse(text, "IO_AUTOTUNE", &spec, error), -1);
    text[IOAT_NAME_MAX + 1] = 'x';
    text[sizeof text - 1] = '\0';
    assert_int_equal(ioat_spec_parse(text, "IO_AUTOTUNE", &spec, error), -1);
    assert_non_null(strstr(error, "longer than 1024 bytes"));
    assert_int_equal(strncmp(error, "IO_AUTOTUNE: ", 13), 0);
}

static void formatted(const char *spec_text, const char *job_name, const char *comment,
                      const char *expected)
{
    struct ioat_spec spec;
    char error[IOAT_SPEC_ERROR_SIZE], text[IOAT_REQUEST_SIZE];
    assert_int_equal(ioat_spec_parse(spec_text, "--io-autotune", &spec, error), 0);
    ioat_request_format(&spec, job_name, comment, text);
    assert_string_equal(text, expected);
}

static void requests(void **state)
{
    (void)state;
    formatted("app=ocean,romio", "whatever", "c", "app=ocean,accelerator=romio,mode=tune");
    formatted("", "ocean", NULL, "name=ocean,mode=tune");
    formatted("romio+page-cache", "o", "", "name=o,accelerator=romio+page-cache,mode=tune");
    formatted("observe", "ocean", "rule_map", "name=ocean,comment=rule_map,mode=observe");
    formatted("", NULL, NULL, "mode=tune");
    formatted("", "my job, v=2%", NULL, "name=my%20job%2C%20v%3D2%25,mode=tune");
    formatted("", "nf-MAP_(a)\n", NULL, "name=nf-MAP_%28a%29%0A,mode=tune");
    formatted("tell,romio,dir=/project/x", NULL, NULL,
              "accelerator=romio,mode=tune,tell=yes,dir=/project/x");
    formatted("", "\xe6\xa8\xa1", NULL, "name=%E6%A8%A1,mode=tune");
}

static void the_longest_request_fits(void **state)
{
    (void)state;
    struct ioat_spec spec = {.mode = IOAT_MODE_OBSERVE};
    char text[IOAT_REQUEST_SIZE], longest[4096];
    memset(spec.accelerator, 'b', IOAT_NAME_MAX);
    memset(spec.dir, '/', IOAT_PATH_MAX);
    spec.tell = true;
    memset(longest, '\xff', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ioat_request_format(&spec, longest, longest, text);
    assert_non_null(strstr(text, "b,mode=observe,tell=yes,dir=/"));
    assert_true(strlen(text) < IOAT_REQUEST_SIZE);
    // Three bytes for each of the first 256.
    const size_t encoded = (size_t)3 * IOAT_REQUEST_TEXT_MAX;
    assert_int_equal(strcspn(text, ","), strlen("name=") + encoded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_specs),
        cmocka_unit_test(bad_specs),
        cmocka_unit_test(long_specs),
        cmocka_unit_test(requests),
        cmocka_unit_test(the_longest_request_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
