/* The hints in force, as the MPI library reports them when a file is opened, and how long MPI-IO
 * takes.
 *
 * Preloaded into an MPI program (or linked), it wraps MPI-IO's functions (MPI 4.0, 15.2: the
 * profiling interface).
 *
 * When a file is opened, rank 0 of the communicator appends what MPI_File_get_info reports to the
 * file that MPI_IO_IN_FORCE names; under Open MPI also OMPIO's control variables (MPI 4.0, 15.3),
 * because its files report no hints. The node helper makes that file for a [read_back].
 *
 * At MPI_Finalize each process that has opened a file appends a line to the job's marks, which
 * IO_MARKS_FILE names:
 *
 *     mpi-io BEGIN END NANOSECONDS READ WRITTEN
 *
 * when it first opened a file and when it ended, by CLOCK_MONOTONIC; how long it was in MPI-IO's
 * functions; and how many bytes it asked for (marks.rs). The node helper reads both in the epilog.
 *
 * It prints nothing, changes no result and calls nothing collective; without the variables it does
 * nothing. It refers only to MPI functions, bound at their call, and to no data of the MPI library:
 * preloading it into programs without MPI is harmless. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

#define FILE_VARIABLE "MPI_IO_IN_FORCE"
#define MARKS_VARIABLE "IO_MARKS_FILE"
/* Of the file's 64 KiB (marks.rs) the rest is for the job's own marks. From MARKS_LOST on a process
 * says that its line is missing, and from MARKS_MAX on nothing. */
#define MARKS_LOST 49152
#define MARKS_MAX 57344
/* A word, five numbers of at most 20 digits, a space or line end after each. */
#define MARK_MAX 128
/* Per process, so that programs that open thousands of files are not slowed down. */
#define OPENS_MAX 16
/* The file's limit, plus one text; in_force.rs reads no more. */
#define FILE_MAX 65536
#define TEXT_MAX 8192
#define VALUE_MAX 256
/* Open MPI's own text controls have 2048 characters. */
#define CONTROL_MAX 4096
#define EXPORTED __attribute__((visibility("default")))

struct text {
    size_t length;
    char bytes[TEXT_MAX];
};

/* Visible characters only: a line is two tokens. */
static bool is_token(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~')
            return false;
    }
    return text[0] != '\0';
}

static void add(struct text *text, const char *name, const char *value)
{
    const size_t name_length = strlen(name);
    const size_t value_length = strlen(value);
    if (!is_token(name) || !is_token(value) ||
        name_length + value_length + 2 > sizeof(text->bytes) - text->length)
        return;
    char *at = text->bytes + text->length;
    memcpy(at, name, name_length);
    at[name_length] = ' ';
    memcpy(at + name_length + 1, value, value_length);
    at[name_length + 1 + value_length] = '\n';
    text->length += name_length + value_length + 2;
}

static void add_hints(struct text *text, MPI_File handle)
{
    MPI_Info info;
    int keys = 0;
    if (PMPI_File_get_info(handle, &info) != MPI_SUCCESS)
        return;
    if (PMPI_Info_get_nkeys(info, &keys) != MPI_SUCCESS)
        keys = 0;
    for (int i = 0; i < keys; i++) {
        char name[MPI_MAX_INFO_KEY + 1];
        char value[VALUE_MAX + 1];
        int length = 0;
        int found = 0;
        if (PMPI_Info_get_nthkey(info, i, name) == MPI_SUCCESS &&
            PMPI_Info_get_valuelen(info, name, &length, &found) == MPI_SUCCESS && found &&
            length <= VALUE_MAX &&
            PMPI_Info_get(info, name, VALUE_MAX, value, &found) == MPI_SUCCESS && found)
            add(text, name, value);
    }
    PMPI_Info_free(&info);
}

#define DIGITS 24

/* Where the number begins in its digits. Without stdio, which would bring locks and locales into
 * the program. */
static char *in_digits(char digits[DIGITS], uint64_t number)
{
    char *at = digits + DIGITS - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return at;
}

#ifdef OPEN_MPI
static void add_number(struct text *text, const char *name, int number)
{
    char digits[DIGITS];
    char *at = in_digits(digits, number < 0 ? -(uint64_t)number : (uint64_t)number);
    if (number < 0)
        *--at = '-';
    add(text, name, at);
}

static void add_control(struct text *text, const char *name)
{
    int index;
    int count = 0;
    int name_length = 0;
    int description_length = 0;
    int verbosity;
    int binding;
    int scope;
    MPI_Datatype type;
    MPI_T_enum names;
    MPI_T_cvar_handle handle;
    if (PMPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        PMPI_T_cvar_get_info(index, NULL, &name_length, &verbosity, &type, &names, NULL,
                             &description_length, &binding, &scope) != MPI_SUCCESS ||
        PMPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        return;
    /* Types are told apart by size, because MPI_INT and MPI_CHAR are data of the library: all of
     * these are numbers, except the text fcoll. */
    int size = 0;
    PMPI_Type_size(type, &size);
    if (size == (int)sizeof(int) && count == 1) {
        int number = 0;
        if (PMPI_T_cvar_read(handle, &number) == MPI_SUCCESS)
            add_number(text, name, number);
    } else if (size == 1 && count > 0 && count < CONTROL_MAX) {
        char value[CONTROL_MAX];
        memset(value, 0, sizeof(value));
        if (PMPI_T_cvar_read(handle, value) == MPI_SUCCESS)
            add(text, name, value);
    }
    PMPI_T_cvar_handle_free(&handle);
}

static void add_controls(struct text *text)
{
    static const char *const names[] = {"fcoll", "io_ompio_bytes_per_agg",
                                        "io_ompio_num_aggregators", "io_ompio_grouping_option",
                                        "io_ompio_cycle_buffer_size"};
    int provided;
    if (PMPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        add_control(text, names[i]);
    PMPI_T_finalize();
}
#endif

/* The job's file, if it is a regular one and shorter than `most`; else -1. */
static int opened(const char *path, off_t most, off_t *length)
{
    const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return -1;
    struct stat status;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < most) {
        *length = status.st_size;
        return file;
    }
    close(file);
    return -1;
}

/* Writes whole lines in one write, so that processes' lines do not mix. */
static void append(int file, const char *bytes, size_t length)
{
    const ssize_t written = write(file, bytes, length);
    (void)written;
    close(file);
}

static const char *path_in(const char *variable)
{
    const char *path = getenv(variable);
    return path != NULL && path[0] == '/' ? path : NULL;
}

static void tell_hints(MPI_Comm comm, MPI_File handle)
{
    static atomic_uint opens;
    const char *path = path_in(FILE_VARIABLE);
    int rank;
    off_t length;
    if (path == NULL || PMPI_Comm_rank(comm, &rank) != MPI_SUCCESS || rank != 0 ||
        atomic_fetch_add(&opens, 1) >= OPENS_MAX)
        return;
    struct text text;
    text.length = 0;
    add_hints(&text, handle);
#ifdef OPEN_MPI
    add_controls(&text);
#endif
    const int file = text.length > 0 ? opened(path, FILE_MAX, &length) : -1;
    if (file >= 0)
        append(file, text.bytes, text.length);
}

/* What this process has done, whichever thread did it. */
static atomic_uint_fast64_t began;
static atomic_uint_fast64_t nanoseconds;
static atomic_uint_fast64_t bytes_read;
static atomic_uint_fast64_t bytes_written;

static uint64_t now(void)
{
    struct timespec at;
    if (clock_gettime(CLOCK_MONOTONIC, &at) != 0)
        return 0;
    return (uint64_t)at.tv_sec * 1000000000U + (uint64_t)at.tv_nsec;
}

static uint64_t bytes_of(MPI_Count count, MPI_Datatype type)
{
    int size = 0;
    if (count <= 0 || PMPI_Type_size(type, &size) != MPI_SUCCESS || size <= 0)
        return 0;
    return (uint64_t)count * (uint64_t)size;
}

static void add_mark(char text[MARK_MAX], size_t *length, const char *word)
{
    const size_t of = strlen(word);
    if (*length > 0)
        text[(*length)++] = ' ';
    memcpy(text + *length, word, of);
    *length += of;
}

static void tell_seconds(void)
{
    const char *path = path_in(MARKS_VARIABLE);
    const uint64_t first = atomic_load(&began);
    off_t there = 0;
    if (path == NULL || first == 0)
        return;
    const int file = opened(path, MARKS_MAX, &there);
    if (file < 0)
        return;
    char text[MARK_MAX];
    size_t length = 0;
    add_mark(text, &length, "mpi-io");
    if (there >= MARKS_LOST) {
        add_mark(text, &length, "lost");
    } else {
        const uint64_t numbers[] = {first, now(), atomic_load(&nanoseconds),
                                    atomic_load(&bytes_read), atomic_load(&bytes_written)};
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
            char digits[DIGITS];
            add_mark(text, &length, in_digits(digits, numbers[i]));
        }
    }
    text[length++] = '\n';
    append(file, text, length);
}

/* A function of MPI's that another of them calls through the profiling interface counts once. */
static _Thread_local unsigned int depth;

/* The time, of a function that counts. */
static uint64_t begin(void)
{
    return depth++ == 0 ? now() : 0;
}

static void end(uint64_t since, atomic_uint_fast64_t *bytes, uint64_t of)
{
    if (--depth > 0)
        return;
    atomic_fetch_add(&nanoseconds, now() - since);
    if (bytes != NULL)
        atomic_fetch_add(bytes, of);
}

EXPORTED int MPI_File_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info,
                           MPI_File *fh)
{
    uint_fast64_t none = 0;
    const uint64_t since = begin();
    if (since != 0)
        atomic_compare_exchange_strong(&began, &none, since);
    const int result = PMPI_File_open(comm, filename, amode, info, fh);
    const int error = errno;
    end(since, NULL, 0);
    if (result == MPI_SUCCESS)
        tell_hints(comm, *fh);
    errno = error;
    return result;
}

EXPORTED int MPI_Finalize(void)
{
    const int error = errno;
    tell_seconds();
    errno = error;
    return PMPI_Finalize();
}

/* Each wrapper: its time, and the bytes of a transfer. errno is as the function left it. */
#define TIMED(name, parameters, arguments, bytes, of)                                              \
    EXPORTED int MPI_File_##name parameters                                                        \
    {                                                                                              \
        const uint64_t since = begin();                                                            \
        const int result = PMPI_File_##name arguments;                                             \
        const int error = errno;                                                                   \
        end(since, bytes, of);                                                                     \
        errno = error;                                                                             \
        return result;                                                                             \
    }

TIMED(close, (MPI_File * fh), (fh), NULL, 0)
TIMED(sync, (MPI_File fh), (fh), NULL, 0)
TIMED(set_size, (MPI_File fh, MPI_Offset size), (fh, size), NULL, 0)
TIMED(preallocate, (MPI_File fh, MPI_Offset size), (fh, size), NULL, 0)
TIMED(set_view,
      (MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
       MPI_Info info),
      (fh, disp, etype, filetype, datarep, info), NULL, 0)

/* Reads and writes, at the file's pointer and at an offset, with `int` and MPI 4's MPI_Count. */
#define TRANSFER(name, buffer, number, bytes)                                                      \
    TIMED(name, (MPI_File fh, buffer, number count, MPI_Datatype type, MPI_Status * status),       \
          (fh, buf, count, type, status), bytes, bytes_of(count, type))
#define TRANSFER_AT(name, buffer, number, bytes)                                                   \
    TIMED(name,                                                                                    \
          (MPI_File fh, MPI_Offset at, buffer, number count, MPI_Datatype type,                    \
           MPI_Status * status),                                                                   \
          (fh, at, buf, count, type, status), bytes, bytes_of(count, type))
/* What goes on while the program computes: the calls that begin it and end it. */
#define BEGINS(name, buffer, number, bytes)                                                        \
    TIMED(name, (MPI_File fh, buffer, number count, MPI_Datatype type), (fh, buf, count, type),    \
          bytes, bytes_of(count, type))
#define BEGINS_AT(name, buffer, number, bytes)                                                     \
    TIMED(name, (MPI_File fh, MPI_Offset at, buffer, number count, MPI_Datatype type),             \
          (fh, at, buf, count, type), bytes, bytes_of(count, type))
#define ENDS(name, buffer)                                                                         \
    TIMED(name, (MPI_File fh, buffer, MPI_Status * status), (fh, buf, status), NULL, 0)
#define ASKS(name, buffer, number, bytes)                                                          \
    TIMED(name, (MPI_File fh, buffer, number count, MPI_Datatype type, MPI_Request * request),     \
          (fh, buf, count, type, request), bytes, bytes_of(count, type))
#define ASKS_AT(name, buffer, number, bytes)                                                       \
    TIMED(name,                                                                                    \
          (MPI_File fh, MPI_Offset at, buffer, number count, MPI_Datatype type,                    \
           MPI_Request * request),                                                                 \
          (fh, at, buf, count, type, request), bytes, bytes_of(count, type))

#define BOTH_WAYS(suffix, number)                                                                  \
    TRANSFER(read##suffix, void *buf, number, &bytes_read)                                         \
    TRANSFER(write##suffix, const void *buf, number, &bytes_written)                               \
    TRANSFER(read_all##suffix, void *buf, number, &bytes_read)                                     \
    TRANSFER(write_all##suffix, const void *buf, number, &bytes_written)                           \
    TRANSFER(read_shared##suffix, void *buf, number, &bytes_read)                                  \
    TRANSFER(write_shared##suffix, const void *buf, number, &bytes_written)                        \
    TRANSFER(read_ordered##suffix, void *buf, number, &bytes_read)                                 \
    TRANSFER(write_ordered##suffix, const void *buf, number, &bytes_written)                       \
    TRANSFER_AT(read_at##suffix, void *buf, number, &bytes_read)                                   \
    TRANSFER_AT(write_at##suffix, const void *buf, number, &bytes_written)                         \
    TRANSFER_AT(read_at_all##suffix, void *buf, number, &bytes_read)                               \
    TRANSFER_AT(write_at_all##suffix, const void *buf, number, &bytes_written)                     \
    BEGINS(read_all_begin##suffix, void *buf, number, &bytes_read)                                 \
    BEGINS(write_all_begin##suffix, const void *buf, number, &bytes_written)                       \
    BEGINS(read_ordered_begin##suffix, void *buf, number, &bytes_read)                             \
    BEGINS(write_ordered_begin##suffix, const void *buf, number, &bytes_written)                   \
    BEGINS_AT(read_at_all_begin##suffix, void *buf, number, &bytes_read)                           \
    BEGINS_AT(write_at_all_begin##suffix, const void *buf, number, &bytes_written)                 \
    ASKS(iread##suffix, void *buf, number, &bytes_read)                                            \
    ASKS(iwrite##suffix, const void *buf, number, &bytes_written)                                  \
    ASKS(iread_all##suffix, void *buf, number, &bytes_read)                                        \
    ASKS(iwrite_all##suffix, const void *buf, number, &bytes_written)                              \
    ASKS(iread_shared##suffix, void *buf, number, &bytes_read)                                     \
    ASKS(iwrite_shared##suffix, const void *buf, number, &bytes_written)                           \
    ASKS_AT(iread_at##suffix, void *buf, number, &bytes_read)                                      \
    ASKS_AT(iwrite_at##suffix, const void *buf, number, &bytes_written)                            \
    ASKS_AT(iread_at_all##suffix, void *buf, number, &bytes_read)                                  \
    ASKS_AT(iwrite_at_all##suffix, const void *buf, number, &bytes_written)

BOTH_WAYS(, int)
#if MPI_VERSION >= 4
BOTH_WAYS(_c, MPI_Count)
#endif
ENDS(read_all_end, void *buf)
ENDS(write_all_end, const void *buf)
ENDS(read_at_all_end, void *buf)
ENDS(write_at_all_end, const void *buf)
ENDS(read_ordered_end, void *buf)
ENDS(write_ordered_end, const void *buf)
