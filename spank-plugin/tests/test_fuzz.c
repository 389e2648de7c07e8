// Random input for what reads untrusted text: the same on every run, a few seconds at most. The
// sanitizers watch; the invariants of what was accepted are asserted.
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "fake_spank.h"
#include "job_env.h"
#include "random_numbers.h"
#include "request.h"
#include "spec.h"
#include "variables.h"

#define ROUNDS 200000

static uint64_t random_state;

static uint64_t next_random(void)
{
    return ioat_random(&random_state);
}

static size_t below(size_t limit)
{
    return ioat_random_below(&random_state, limit);
}

static int setup(void **state)
{
    (void)state;
    random_state = IOAT_RANDOM_SEED;
    return 0;
}

// Pieces of the grammar and pure noise, mixed.
static size_t compose(char *text, size_t size, const char *const *pieces, size_t count)
{
    size_t length = 0;
    for (size_t left = 1 + below(8); left > 0 && length + 32 < size; left--) {
        if (below(4) == 0) {
            text[length++] = (char)(next_random() & 0xff);
        } else {
            const char *piece = pieces[below(count)];
            const size_t added = strlen(piece);
            memcpy(text + length, piece, added);
            length += added;
        }
    }
    return length;
}

static void mutate(char *text, size_t length)
{
    for (size_t i = below(4); i > 0 && length > 0; i--)
        text[below(length)] = (char)(next_random() & 0xff);
}

static void specs(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "app=", "accelerator=", "mode=", "tune", "observe", "off",   "romio",   ",",
        "=",    "(null)",       "a.b_c", "-",    "\n",      "ocean", "\xc3\xa9"};
    size_t accepted = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char text[512], error[IOAT_SPEC_ERROR_SIZE], canonical[IOAT_REQUEST_SIZE];
        struct ioat_spec spec, again;
        const size_t length = compose(text, sizeof text, pieces, sizeof pieces / sizeof *pieces);
        // Exactly as long as the text, for the sanitizer.
        char *copy = strndup(text, length);
        assert_non_null(copy);
        const int rc = ioat_spec_parse(copy, "--io-autotune", &spec, error);
        free(copy);
        assert_int_equal(rc == 0, error[0] == '\0');
        assert_true(ioat_text_is_printable(error, strlen(error)));
        if (rc != 0)
            continue;
        accepted++;
        assert_true(spec.app[0] == '\0' || ioat_text_is_name(spec.app, strlen(spec.app)));
        assert_true(spec.accelerator[0] == '\0' ||
                    ioat_text_is_name(spec.accelerator, strlen(spec.accelerator)));
        // What travels with the job reads back as it was meant.
        ioat_request_format(&spec, NULL, NULL, canonical);
        assert_int_equal(ioat_spec_parse(canonical, "--io-autotune", &again, error), 0);
        assert_string_equal(again.accelerator, spec.accelerator);
        assert_int_equal(again.mode, spec.mode);
    }
    // The pieces do hit the grammar, and miss it.
    assert_in_range(accepted, ROUNDS / 100, ROUNDS - ROUNDS / 100);
}

static void job_names(void **state)
{
    (void)state;
    const struct ioat_spec spec = {.mode = IOAT_MODE_TUNE};
    for (int i = 0; i < ROUNDS; i++) {
        char name[160];
        const size_t length = below(sizeof name);
        for (size_t j = 0; j < length; j++)
            name[j] = (char)(1 + below(255));
        name[length] = '\0';
        char text[IOAT_REQUEST_SIZE];
        ioat_request_format(&spec, name, name, text);
        assert_true(ioat_text_is_printable(text, strlen(text)));
        const char *comma = strchr(text, ',');
        // Two texts at most, neither of which ends early.
        assert_int_equal(comma == NULL, length == 0);
        assert_int_equal(strcmp(strrchr(text, 'm'), "mode=tune"), 0);
    }
}

static void job_files(void **state)
{
    (void)state;
    static const char *const pieces[] = {"job 1234\n",
                                         "uid 1000\n",
                                         "set A=1\n",
                                         "set ROMIO_HINTS=/run/x\n",
                                         "watch B\n",
                                         "watch A\n",
                                         "set ",
                                         "watch ",
                                         "=",
                                         "\n",
                                         "set C=x=y\n",
                                         "LD_PRELOAD",
                                         "set D=\xc3\xa9\n"};
    size_t accepted = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char text[1024] = "io-autotune 1\njob 1\nuid 2\n";
        struct ioat_job_env file;
        const size_t head = strlen(text);
        const size_t length =
            head + compose(text + head, sizeof text - head, pieces, sizeof pieces / sizeof *pieces);
        if (below(2) == 0)
            mutate(text, length);
        char *copy = malloc(length + 1);
        assert_non_null(copy);
        memcpy(copy, text, length);
        if (ioat_job_env_parse(copy, length, &file) == NULL) {
            accepted++;
            assert_true(file.count <= IOAT_JOB_ENV_VARIABLES);
            for (size_t j = 0; j < file.count; j++) {
                const struct ioat_variable *variable = &file.variables[j];
                assert_true(ioat_job_env_allows(variable->name, strlen(variable->name)));
                assert_true(variable->value == NULL ||
                            ioat_text_is_printable(variable->value, strlen(variable->value)));
            }
        }
        free(copy);
    }
    assert_in_range(accepted, ROUNDS / 1000, ROUNDS - ROUNDS / 100);
}

static void records(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "1234:", "7:", "ROMIO_HINTS", "=",     "/a",   "\n",     "PATH",    ":", "LD_X",
        "A",     "1",  "99999999999", "1233:", "/run", "/c/n1/", "/c/n2/f", "/"};
    static const struct ioat_place place = {
        .job_id = 1234, .leader_id = 1233, .run_dir = "/run", .node = "n1"};
    static const struct ioat_job_env file = {
        .job_id = 1234, .count = 1, .variables = {{"ROMIO_HINTS", "/a"}}};
    for (int i = 0; i < ROUNDS / 10; i++) {
        char text[512];
        enum ioat_status status;
        fake_reset(S_CTX_REMOTE);
        fake_env("PATH", "1");
        fake_env("LD_X", "1");
        const size_t length = compose(text, sizeof text, pieces, sizeof pieces / sizeof *pieces);
        text[length] = '\0';
        fake_env(IOAT_RECORD_NAME, text);
        if (below(2) == 0)
            fake_env("ROMIO_HINTS", below(2) == 0 ? "/a" : "/run/c/n2/f");
        ioat_variables_apply(fake_handle(), &place, &file, &status);
        // Whatever stood there, these are not ours to remove.
        assert_string_equal(fake_env_value("PATH"), "1");
        assert_string_equal(fake_env_value("LD_X"), "1");
        if (status == IOAT_STATUS_SET)
            assert_string_equal(fake_env_value("ROMIO_HINTS"), "/a");
        assert_int_not_equal(status, IOAT_STATUS_ABSENT);
    }
    fake_reset(S_CTX_REMOTE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(specs, setup),
        cmocka_unit_test_setup(job_names, setup),
        cmocka_unit_test_setup(job_files, setup),
        cmocka_unit_test_setup(records, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
