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
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ioat_spec spec;
        char error[IOAT_SPEC_ERROR_SIZE];
        assert_int_equal(ioat_spec_parse(cases[i].text, &spec, error), 0);
        assert_string_equal(spec.app, cases[i].app);
        assert_string_equal(spec.accelerator, cases[i].accelerator);
        assert_int_equal(spec.mode, cases[i].mode);
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
        {"-romio", "a name is 1 to 128"},
        {"+romio", "a name is 1 to 128"},
        {"romio+page-cache,ompio", "accelerator is given twice"},
        {" romio", "a name is 1 to 128"},
        {"off", "\"off\": write mode=off"},
        {"app=x,observe", "write mode=observe"},
        {"r\x1b[0m", "\"r?[0m\""},
        {"r\nerror: x", "\"r?error: x\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ioat_spec spec;
        char error[IOAT_SPEC_ERROR_SIZE];
        assert_int_equal(ioat_spec_parse(cases[i].text, &spec, error), -1);
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
    assert_int_equal(ioat_spec_parse(text, &spec, error), 0);
    assert_int_equal(strlen(spec.accelerator), IOAT_NAME_MAX);
    text[IOAT_NAME_MAX] = 'x';
    text[IOAT_NAME_MAX + 1] = '\0';
    assert_int_equal(ioat_spec_parse(text, &spec, error), -1);
    text[IOAT_NAME_MAX + 1] = 'x';
    text[sizeof text - 1] = '\0';
    assert_int_equal(ioat_spec_parse(text, &spec, error), -1);
    assert_non_null(strstr(error, "longer than 1024 bytes"));
}

static void derived(const char *spec_text, const char *job_name, const char *expected)
{
    struct ioat_spec spec;
    char error[IOAT_SPEC_ERROR_SIZE], text[IOAT_REQUEST_SIZE];
    assert_int_equal(ioat_spec_parse(spec_text, &spec, error), 0);
    const struct ioat_request request = ioat_request_derive(&spec, job_name);
    ioat_request_format(&request, text);
    assert_string_equal(text, expected);
}

static void requests(void **state)
{
    (void)state;
    derived("app=ocean,romio", "whatever", "app=ocean,accelerator=romio,mode=tune");
    derived("", "ocean", "app=ocean,mode=tune");
    derived("romio+page-cache", "ocean", "app=ocean,accelerator=romio+page-cache,mode=tune");
    derived("romio", "ocean", "app=ocean,accelerator=romio,mode=tune");
    derived("mode=observe", "ocean", "app=ocean,mode=observe");
    // An explicit name is never meaningless.
    derived("app=wrap", NULL, "app=wrap,mode=tune");
    derived("", "my job, v=2", "app=my_job__v_2,mode=tune");
    derived("", "ocean.sh", "app=ocean.sh,mode=tune");
    derived("", "runner", "app=runner,mode=tune");
}

static void meaningless_names(void **state)
{
    (void)state;
    const char *const names[] = {"wrap",   "bash",   "sh",        "zsh",       "interactive",
                                 "run.sh", "job.sh", "script.sh", "submit.sh", "sbatch",
                                 "a.out",  "BASH",   "Run.sh",    "job.slurm"};
    char expected[IOAT_REQUEST_SIZE];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(expected, sizeof expected, "app=%s,mode=observe,note=meaningless_name", names[i]);
        derived("", names[i], expected);
    }
    const char *const hopeless[] = {NULL,      "",       "_x",
                                    ".hidden", "(null)", "\xe6\xa8\xa1\xe6\x93\xac"};
    for (size_t i = 0; i < sizeof hopeless / sizeof *hopeless; i++)
        derived("romio", hopeless[i], "accelerator=romio,mode=observe,note=meaningless_name");
    char longest[IOAT_NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[IOAT_NAME_MAX + 1] = '\0';
    derived("", longest, "mode=observe,note=meaningless_name");
}

static void the_longest_request_fits(void **state)
{
    (void)state;
    struct ioat_request request = {.mode = IOAT_MODE_OBSERVE, .meaningless_name = true};
    char text[IOAT_REQUEST_SIZE];
    memset(request.app, 'a', IOAT_NAME_MAX);
    memset(request.accelerator, 'b', IOAT_NAME_MAX);
    ioat_request_format(&request, text);
    assert_non_null(strstr(text, ",note=meaningless_name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_specs),        cmocka_unit_test(bad_specs),
        cmocka_unit_test(long_specs),        cmocka_unit_test(requests),
        cmocka_unit_test(meaningless_names), cmocka_unit_test(the_longest_request_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
