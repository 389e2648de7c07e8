// The job's file: only what the helper writes is accepted, whole or not at all.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "job_env.h"

#define HEAD "io-autotune 1\njob 1234\nuid 1000\n"

// Parses a copy that ends where the text ends, so that a sanitizer sees every step too far.
static const char *parse(const char *text, size_t length, struct ioat_job_env *file, char **copy)
{
    *copy = malloc(length + 1);
    assert_non_null(*copy);
    memcpy(*copy, text, length);
    return ioat_job_env_parse(*copy, length, file);
}

static void a_whole_file(void **state)
{
    (void)state;
    struct ioat_job_env file;
    char *copy;
    const char text[] = HEAD "set ROMIO_HINTS=/run/io-autotune/c/n/1234/romio_hints\n"
                             "watch ROMIO_HINTS\nwatch OMPI_MCA_io\nset EMPTY=\nset EQ=a=b\n";
    assert_null(parse(text, strlen(text), &file, &copy));
    assert_int_equal(file.job_id, 1234);
    assert_int_equal(file.uid, 1000);
    assert_int_equal(file.count, 4);
    assert_string_equal(file.variables[0].name, "ROMIO_HINTS");
    assert_string_equal(file.variables[0].value, "/run/io-autotune/c/n/1234/romio_hints");
    assert_string_equal(file.variables[1].name, "OMPI_MCA_io");
    assert_null(file.variables[1].value);
    assert_string_equal(file.variables[2].value, "");
    assert_string_equal(file.variables[3].value, "a=b");
    free(copy);
}

static void a_file_without_variables(void **state)
{
    (void)state;
    struct ioat_job_env file;
    char *copy;
    assert_null(parse(HEAD, strlen(HEAD), &file, &copy));
    assert_int_equal(file.count, 0);
    free(copy);
}

static void a_watched_variable_may_be_set_later(void **state)
{
    (void)state;
    struct ioat_job_env file;
    char *copy;
    const char text[] = HEAD "watch A\nset A=1\n";
    assert_null(parse(text, strlen(text), &file, &copy));
    assert_int_equal(file.count, 1);
    assert_string_equal(file.variables[0].value, "1");
    free(copy);
}

static void hostile_files(void **state)
{
    (void)state;
    const char *const files[] = {
        "",
        "\n",
        "io-autotune 1",
        "io-autotune 2\njob 1\nuid 1\n",
        "io-autotune 1 \njob 1\nuid 1\n",
        "job 1\nuid 1\nio-autotune 1\n",
        "io-autotune 1\njob 1\n",
        "io-autotune 1\nuid 1\n",
        "io-autotune 1\njob 1\njob 1\nuid 1\n",
        "io-autotune 1\njob 1\nuid 1\nuid 0\n",
        "io-autotune 1\njob -1\nuid 1\n",
        "io-autotune 1\njob 01\nuid 1\n",
        "io-autotune 1\njob 1\nuid 4294967296\n",
        "io-autotune 1\njob 1\nuid\n",
        "io-autotune 1\njob 1\nuid 1\n\n",
        "io-autotune 1\njob 1\nuid 1\n# comment\n",
        "io-autotune 1\r\njob 1\r\nuid 1\r\n",
        HEAD "set A=1",
        HEAD "set A\n",
        HEAD "set =1\n",
        HEAD "set  A=1\n",
        HEAD " set A=1\n",
        HEAD "SET A=1\n",
        HEAD "set 1A=1\n",
        HEAD "set A B=1\n",
        HEAD "set A-B=1\n",
        HEAD "set A=1\nset A=2\n",
        HEAD "set A=a\tb\n",
        HEAD "set A=\x1b[0m\n",
        HEAD "set A=\xff\n",
        HEAD "watch A=1\n",
        HEAD "watch \n",
        HEAD "unset A\n",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct ioat_job_env file;
        char *copy;
        if (parse(files[i], strlen(files[i]), &file, &copy) == NULL)
            fail_msg("accepted: %s", files[i]);
        free(copy);
    }
}

static void zero_bytes(void **state)
{
    (void)state;
    struct ioat_job_env file;
    char *copy;
    const char text[] = HEAD "set A=1\0set B=2\n";
    assert_non_null(parse(text, sizeof text - 1, &file, &copy));
    free(copy);
}

static void denied_names(void **state)
{
    (void)state;
    const char *const names[] = {"LD_PRELOAD",
                                 "LD_LIBRARY_PATH",
                                 "PATH",
                                 "SLURM_JOB_ID",
                                 "SPANK_X",
                                 "IFS",
                                 "BASH_ENV",
                                 "ENV",
                                 "PYTHONPATH",
                                 "PERL5LIB",
                                 "HOME",
                                 "GCONV_PATH",
                                 "SHELLOPTS",
                                 "IO_AUTOTUNE_SET",
                                 "_SLURM_SPANK_OPTION_x",
                                 "RUBYOPT",
                                 "GLIBC_TUNABLES",
                                 "SLURMD_NODENAME",
                                 "HDF5_PLUGIN_PATH",
                                 "OMPI_MCA_mca_base_component_path",
                                 "OMPI_MCA_orte_launch_agent",
                                 "OMPI_MCA_plm_rsh_agent"};
    char text[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct ioat_job_env file;
        char *copy;
        assert_false(ioat_job_env_allows(names[i], strlen(names[i])));
        snprintf(text, sizeof text, HEAD "set %s=x\n", names[i]);
        assert_non_null(parse(text, strlen(text), &file, &copy));
        free(copy);
        snprintf(text, sizeof text, HEAD "watch %s\n", names[i]);
        assert_non_null(parse(text, strlen(text), &file, &copy));
        free(copy);
    }
    assert_true(ioat_job_env_allows("PATHOLOGICAL", 12));
    assert_true(ioat_job_env_allows("ENVELOPE", 8));
    assert_true(ioat_job_env_allows("ROMIO_HINTS", 11));
}

static void limits(void **state)
{
    (void)state;
    struct ioat_job_env file;
    char *text = malloc(2 * IOAT_JOB_ENV_MAX), *copy;
    assert_non_null(text);
    // The longest line, and one byte more.
    const size_t head = (size_t)sprintf(text, HEAD "set A=");
    const size_t value = IOAT_JOB_ENV_LINE_MAX - strlen("set A=");
    memset(text + head, 'x', value + 1);
    text[head + value] = '\n';
    assert_null(parse(text, head + value + 1, &file, &copy));
    assert_int_equal(strlen(file.variables[0].value), value);
    free(copy);
    text[head + value] = 'x';
    text[head + value + 1] = '\n';
    assert_non_null(parse(text, head + value + 2, &file, &copy));
    free(copy);
    // The most variables, and one more.
    size_t length = (size_t)sprintf(text, HEAD);
    for (int i = 0; i < IOAT_JOB_ENV_VARIABLES; i++)
        length += (size_t)sprintf(text + length, "set V%d=x\n", i);
    assert_null(parse(text, length, &file, &copy));
    assert_int_equal(file.count, IOAT_JOB_ENV_VARIABLES);
    free(copy);
    length += (size_t)sprintf(text + length, "watch MORE\n");
    assert_non_null(parse(text, length, &file, &copy));
    free(copy);
    // The largest file, and one byte more.
    length = (size_t)sprintf(text, HEAD);
    while (length + 8 <= IOAT_JOB_ENV_MAX)
        length += (size_t)sprintf(text + length, "watch A\n");
    assert_null(parse(text, length, &file, &copy));
    free(copy);
    length += (size_t)sprintf(text + length, "watch A\n");
    assert_non_null(parse(text, length, &file, &copy));
    free(copy);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file),
        cmocka_unit_test(a_file_without_variables),
        cmocka_unit_test(a_watched_variable_may_be_set_later),
        cmocka_unit_test(hostile_files),
        cmocka_unit_test(zero_bytes),
        cmocka_unit_test(denied_names),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
