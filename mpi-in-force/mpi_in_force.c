/* The hints in force, as the MPI library reports them when a file is opened.
 *
 * Preloaded into an MPI program (or linked), it wraps MPI_File_open (MPI 4.0, 15.2: the profiling
 * interface). Rank 0 of the communicator appends what MPI_File_get_info reports to the file that
 * MPI_IO_IN_FORCE names; under Open MPI also OMPIO's control variables (MPI 4.0, 15.3), because its
 * files report no hints. The node helper makes that file for a [read_back], and reads it in the
 * epilog.
 *
 * It prints nothing, changes no result and calls nothing collective; without the variable it does
 * nothing. It refers only to MPI functions, bound at their call, and to no data of the MPI library:
 * preloading it into programs without MPI is harmless. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mpi.h>

#define FILE_VARIABLE "MPI_IO_IN_FORCE"
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

#ifdef OPEN_MPI
/* Without stdio, which would bring locks and locales into the program. */
static void add_number(struct text *text, const char *name, int number)
{
    char digits[16];
    char *at = digits + sizeof(digits) - 1;
    unsigned int rest = number < 0 ? -(unsigned int)number : (unsigned int)number;
    *at = '\0';
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
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

/* Writes whole lines in one write, so that ranks' lines do not mix. Only a regular file is
 * written. */
static void append(const char *path, const struct text *text)
{
    const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return;
    struct stat status;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < FILE_MAX) {
        const ssize_t written = write(file, text->bytes, text->length);
        (void)written;
    }
    close(file);
}

static void tell(MPI_Comm comm, MPI_File handle)
{
    static atomic_uint opens;
    const char *path = getenv(FILE_VARIABLE);
    int rank;
    if (path == NULL || path[0] != '/' || PMPI_Comm_rank(comm, &rank) != MPI_SUCCESS || rank != 0 ||
        atomic_fetch_add(&opens, 1) >= OPENS_MAX)
        return;
    struct text text;
    text.length = 0;
    add_hints(&text, handle);
#ifdef OPEN_MPI
    add_controls(&text);
#endif
    if (text.length > 0)
        append(path, &text);
}

EXPORTED int MPI_File_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info,
                           MPI_File *fh)
{
    const int result = PMPI_File_open(comm, filename, amode, info, fh);
    if (result == MPI_SUCCESS) {
        const int error = errno;
        tell(comm, *fh);
        errno = error;
    }
    return result;
}
