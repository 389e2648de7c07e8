#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"

static char root[PATH_MAX / 2];

const char *scratch_make(void)
{
    const char *above = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/io-autotune-test-XXXXXX", above == NULL ? "/tmp" : above);
    assert_non_null(mkdtemp(root));
    return root;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status;
    (void)type;
    (void)ftw;
    return remove(path);
}

void scratch_remove(void)
{
    assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

const char *scratch_path(const char *name)
{
    static char paths[8][PATH_MAX];
    static size_t next;
    char *path = paths[next++ % 8];
    assert_true(snprintf(path, PATH_MAX, "%s/%s", root, name) < PATH_MAX);
    return path;
}

const char *scratch_write(const char *name, const char *text, mode_t mode)
{
    const char *path = scratch_path(name);
    const size_t length = strlen(text);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), length);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
    return path;
}

const char *scratch_mkdir(const char *name, mode_t mode)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", scratch_path(name));
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(chmod(path, mode), 0);
    return scratch_path(name);
}

const char *scratch_script(const char *name, const char *body)
{
    char *text = NULL;
    assert_true(asprintf(&text, "#!/bin/sh\n%s\n", body) > 0);
    const char *path = scratch_write(name, text, 0755);
    free(text);
    return path;
}

const char *scratch_read(const char *name)
{
    static char text[65536];
    FILE *stream = fopen(scratch_path(name), "re");
    if (stream == NULL)
        return "";
    const size_t length = fread(text, 1, sizeof text - 1, stream);
    text[length] = '\0';
    fclose(stream);
    return text;
}

bool scratch_exists(const char *name)
{
    struct stat status;
    return lstat(scratch_path(name), &status) == 0;
}
