// The words behind the plugin's path in plugstack.conf.
#include <stdio.h>
#include <string.h>

#include "arguments.h"
#include "cmocka_all.h"

static char reports[4096];
static int report_count;

static void report(const char *message)
{
    strncat(reports, message, sizeof reports - strlen(reports) - 1);
    report_count++;
}

static struct ioat_arguments parse(int count, char **words)
{
    struct ioat_arguments arguments;
    reports[0] = '\0';
    report_count = 0;
    ioat_arguments_parse(count, words, &arguments, report);
    return arguments;
}

static void assert_defaults(const struct ioat_arguments *arguments)
{
    assert_string_equal(arguments->helper, "/usr/libexec/io-autotune/io-autotune-node");
    assert_string_equal(arguments->config, "/etc/io-autotune/client.toml");
    assert_string_equal(arguments->run_dir, "/run/io-autotune");
    assert_string_equal(arguments->spool_dir, "/var/spool/io-autotune");
    assert_int_equal(arguments->submit_deadline_ms, 300);
    assert_int_equal(arguments->job_deadline_ms, 2000);
    assert_false(arguments->default_on);
}

// The words of the last line of deploy/etc/plugstack.conf are understood, and are the defaults.
static void the_shipped_sample(void **state)
{
    (void)state;
    char line[1024] = "", *words[16];
    int count = 0;
    FILE *file = fopen(SAMPLE, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        ;
    fclose(file);
    char *rest = line;
    for (char *word; (word = strtok_r(rest, " \n", &rest)) != NULL;) {
        assert_in_range(count, 0, 15);
        words[count++] = word;
    }
    assert_in_range(count, 3, 15);
    assert_string_equal(words[0], "optional");
    const struct ioat_arguments arguments = parse(count - 2, words + 2);
    assert_string_equal(reports, "");
    assert_defaults(&arguments);
}

static void nothing_given(void **state)
{
    (void)state;
    const struct ioat_arguments arguments = parse(0, NULL);
    assert_defaults(&arguments);
    assert_int_equal(report_count, 0);
}

static void all_given(void **state)
{
    (void)state;
    char *words[] = {"helper=/h",
                     "config=/c",
                     "run_dir=/r",
                     "spool_dir=/s=1",
                     "default=on",
                     "submit_deadline_ms=1",
                     "job_deadline_ms=60000"};
    const struct ioat_arguments arguments = parse(7, words);
    assert_string_equal(arguments.helper, "/h");
    assert_string_equal(arguments.config, "/c");
    assert_string_equal(arguments.run_dir, "/r");
    assert_string_equal(arguments.spool_dir, "/s=1");
    assert_int_equal(arguments.submit_deadline_ms, 1);
    assert_int_equal(arguments.job_deadline_ms, 60000);
    assert_true(arguments.default_on);
    assert_int_equal(report_count, 0);
}

static void each_mistake_is_reported_and_harmless(void **state)
{
    (void)state;
    char *words[] = {"helper",
                     "helper=",
                     "helper=relative",
                     "config=./c",
                     "colour=green",
                     "Helper=/h",
                     "default=yes",
                     "default=",
                     "=x",
                     "job_deadline_ms=0",
                     "submit_deadline_ms=-5",
                     "job_deadline_ms=60001",
                     "",
                     "run_dir=/a\x1b[0m",
                     "submit_deadline_ms=10s"};
    const int count = (int)(sizeof words / sizeof *words);
    for (int i = 0; i < count; i++) {
        const struct ioat_arguments arguments = parse(1, words + i);
        assert_defaults(&arguments);
        assert_int_equal(report_count, 1);
    }
    parse(1, (char *[]){"colour=green"});
    assert_non_null(strstr(reports, "\"colour=green\" is not an argument"));
    assert_non_null(strstr(reports, "job_deadline_ms=N"));
    parse(1, (char *[]){"helper=relative"});
    assert_non_null(strstr(reports, "must be an absolute path"));
    parse(1, (char *[]){"run_dir=/a\x1b[0m"});
    assert_null(strchr(reports, '\x1b'));
}

static void a_mistake_does_not_spoil_the_rest(void **state)
{
    (void)state;
    char *words[] = {"bogus=1", "run_dir=/r", "default=maybe", "default=on"};
    const struct ioat_arguments arguments = parse(4, words);
    assert_string_equal(arguments.run_dir, "/r");
    assert_true(arguments.default_on);
    assert_int_equal(report_count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shipped_sample),
        cmocka_unit_test(nothing_given),
        cmocka_unit_test(all_given),
        cmocka_unit_test(each_mistake_is_reported_and_harmless),
        cmocka_unit_test(a_mistake_does_not_spoil_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
