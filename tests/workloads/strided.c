// SPDX-License-Identifier: Apache-2.0
/**
 * @file strided.c
 * @brief An MPI-IO workload in the manner of IOR's strided shared-file pattern.
 *
 * All ranks share one file. Block b of rank r lies at offset (b * ranks + r) * block_size: the blocks of the ranks are
 * interleaved round robin, through a strided file view. With --nested N the ranks of a pair interleave N blocks each, and
 * these stretches of the pairs follow one another round robin: a stride within a stride. Each pass writes the file in one call per rank, closes it,
 * opens it again, reads it in one call per rank and verifies every byte. A rank reads what its neighbour wrote, so that
 * nothing but the file can have carried the bytes.
 *
 * Everything that hints can change (open, view, transfer, close) is timed; filling and verifying buffers is not.
 *
 * Standard output: one line of JSON from rank 0. Standard error: one line for each problem.
 * Exit status: see `enum exit_status`.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/** The statuses this program exits with. */
enum exit_status {
	EXIT_DONE = 0,   /**< written, and read back without a difference if that was asked */
	EXIT_VERIFY = 1, /**< at least one byte read back differs from what was written */
	EXIT_USAGE = 2,  /**< the options, or the number of ranks, are wrong */
	EXIT_IO = 3,     /**< a call failed: MPI-IO, memory, standard output */
};

/** A hint of the program's own is shorter. */
#define HINT_MAX 256

/** What the command line asks for. */
struct options {
	const char *file;   /**< path of the shared file */
	const char *hint;   /**< NAME=VALUE, a hint of the program's own; NULL for none */
	size_t block_size;  /**< bytes of one block, 1 to INT_MAX */
	int blocks;         /**< blocks of each rank, at least 1 */
	int nested;         /**< blocks of a rank in a stretch of its pair; 0 without pairs */
	int repeat;         /**< passes, at least 1 */
	int reads;          /**< how often a pass reads what it wrote, at least 1 */
	bool collective;    /**< write_all and read_all, or else write and read */
	bool read_back;     /**< read and verify what was written */
	bool keep;          /**< leave the file of the last pass */
	bool print_hints;   /**< add the hints in force to the output */
	bool require_slurm; /**< SLURM_NTASKS must be set */
};

/** This process among the others. */
struct ranks {
	int rank; /**< ours, from 0 */
	int size; /**< how many there are */
};

/** What the passes measured, summed over passes. */
struct result {
	double write_seconds; /**< of each pass, the longest over the ranks */
	double read_seconds;  /**< likewise */
	uint64_t errors;      /**< bytes that differ, over all ranks */
	char *hints;          /**< JSON object of the hints in force; NULL unless asked for, and on ranks but 0 */
	char *controls;       /**< likewise, of the library's control variables that concern MPI-IO */
};

/** The shared file is ours to delete when a call fails: set once we have created it, cleared by `--keep`. */
static const char *delete_on_failure;

/** Prints one prefixed line to standard error, in one write so that lines of several ranks do not mix. */
__attribute__((format(printf, 2, 3))) static void complain(const struct ranks *who, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	// MPI's error texts have several lines.
	for (char *at = text; *at; at++)
		if (*at == '\n')
			*at = ' ';
	fprintf(stderr, "strided: rank %d of %d: %s\n", who->rank, who->size, text);
}

/** Ends all ranks. A shared file that we created does not stay behind. */
_Noreturn static void give_up(enum exit_status status)
{
	if (delete_on_failure)
		MPI_File_delete(delete_on_failure, MPI_INFO_NULL);
	MPI_Abort(MPI_COMM_WORLD, status);
	exit(status);
}

/**
 * Ends all ranks unless an MPI call succeeded. The message names the call, the file, MPI's own error text and what
 * errno was left at, which the text does not always tell. To be called at once after the call, with errno cleared
 * before it.
 */
static void must(const struct ranks *who, int code, const char *call, const char *file)
{
	int saved = errno;
	char text[MPI_MAX_ERROR_STRING] = "";
	int length = 0;

	if (code == MPI_SUCCESS)
		return;
	if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
		snprintf(text, sizeof(text), "MPI error code %d", code);
	complain(who, "%s failed on %s: %s (errno %d: %s); check that the directory exists, is shared by all nodes and has space",
		 call, file, text, saved, saved ? strerror(saved) : "not set");
	give_up(EXIT_IO);
}

/** Makes an MPI call on the shared file and ends all ranks if it fails. */
#define TRY(who, file, function, ...)                                   \
	do {                                                            \
		errno = 0;                                              \
		must((who), function(__VA_ARGS__), #function, (file));  \
	} while (0)

/** Allocates, or ends all ranks. */
static void *must_allocate(const struct ranks *who, size_t bytes)
{
	void *memory = malloc(bytes);

	if (!memory) {
		complain(who, "no memory for a buffer of %zu bytes; use fewer or smaller blocks", bytes);
		give_up(EXIT_IO);
	}
	return memory;
}

// --- options ---------------------------------------------------------------------------------------------------------

static const char usage_text[] =
	"Usage: strided --file PATH --block-size BYTES --blocks N [OPTION]...\n"
	"Write one shared file from all ranks with MPI-IO, their blocks interleaved, read it back and verify it.\n"
	"\n"
	"  --file PATH          the shared file; a regular file of that name is replaced\n"
	"  --block-size BYTES   size of a block; a suffix K, M or G multiplies by 2^10, 2^20 or 2^30\n"
	"  --blocks N           blocks of each rank\n"
	"  --nested N           pairs of ranks interleave N blocks each, and the pairs' stretches interleave\n"
	"  --collective         all ranks write and read together (default)\n"
	"  --independent        each rank writes and reads on its own\n"
	"  --read-back          read what was written and verify every byte (default)\n"
	"  --write-only         do not read back\n"
	"  --reads N            read N times, each time another rank's blocks (default 1)\n"
	"  --repeat N           make N passes, each on a new file (default 1); seconds are summed\n"
	"  --hint NAME=VALUE    give MPI_File_open a hint, as programs do that know better than the environment\n"
	"  --print-hints        add the hints in force to the output, and the library's control variables for MPI-IO\n"
	"  --keep               leave the file; without it the file is deleted at the end\n"
	"  --no-slurm           run without SLURM_NTASKS; if it is set, it must still be the number of ranks\n"
	"  --help               print this text\n"
	"\n"
	"Exit status: 0 done, 1 verification failed, 2 wrong usage or number of ranks, 3 a call failed.\n";

/**
 * Reads a whole number from 1 to `max`, with a suffix K, M or G if `suffixes`.
 * Returns false for anything else: signs, blanks, fractions, trailing text, numbers out of range.
 */
static bool parse_number(const char *text, bool suffixes, uint64_t max, uint64_t *number)
{
	uint64_t value = 0;
	const char *at = text;
	unsigned shift = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		if (value > (UINT64_MAX - 9) / 10)
			return false;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	if (at == text)
		return false;
	if (suffixes && *at) {
		shift = *at == 'K' ? 10 : *at == 'M' ? 20 : *at == 'G' ? 30 : 0;
		if (!shift)
			return false;
		at++;
	}
	if (*at || value == 0 || value > (max >> shift))
		return false;
	*number = value << shift;
	return true;
}

/** How reading the command line ended. */
enum parsed { PARSED, PARSED_HELP, PARSED_WRONG };

/**
 * Reads the command line. All ranks see the same one; rank 0 alone says what is wrong with it.
 */
static enum parsed parse_options(int argc, char **argv, const struct ranks *who, struct options *options)
{
	enum {
		OPT_FILE = 1000,
		OPT_BLOCK_SIZE,
		OPT_BLOCKS,
		OPT_NESTED,
		OPT_COLLECTIVE,
		OPT_INDEPENDENT,
		OPT_READ_BACK,
		OPT_WRITE_ONLY,
		OPT_READS,
		OPT_REPEAT,
		OPT_HINT,
		OPT_PRINT_HINTS,
		OPT_KEEP,
		OPT_NO_SLURM,
		OPT_HELP
	};
	static const struct option known[] = {
		{ "file", required_argument, NULL, OPT_FILE },
		{ "block-size", required_argument, NULL, OPT_BLOCK_SIZE },
		{ "blocks", required_argument, NULL, OPT_BLOCKS },
		{ "nested", required_argument, NULL, OPT_NESTED },
		{ "collective", no_argument, NULL, OPT_COLLECTIVE },
		{ "independent", no_argument, NULL, OPT_INDEPENDENT },
		{ "read-back", no_argument, NULL, OPT_READ_BACK },
		{ "write-only", no_argument, NULL, OPT_WRITE_ONLY },
		{ "reads", required_argument, NULL, OPT_READS },
		{ "repeat", required_argument, NULL, OPT_REPEAT },
		{ "hint", required_argument, NULL, OPT_HINT },
		{ "print-hints", no_argument, NULL, OPT_PRINT_HINTS },
		{ "keep", no_argument, NULL, OPT_KEEP },
		{ "no-slurm", no_argument, NULL, OPT_NO_SLURM },
		{ "help", no_argument, NULL, OPT_HELP },
		{ NULL, 0, NULL, 0 },
	};
	bool speaks = who->rank == 0;
	uint64_t number = 0;
	int code;

	*options = (struct options){ .repeat = 1, .reads = 1, .collective = true, .read_back = true, .require_slurm = true };
	opterr = speaks;
	while ((code = getopt_long(argc, argv, "", known, NULL)) != -1) {
		const char *wrong = NULL;

		switch (code) {
		case OPT_FILE:
			options->file = optarg;
			break;
		case OPT_BLOCK_SIZE:
			if (parse_number(optarg, true, INT_MAX, &number))
				options->block_size = (size_t)number;
			else
				wrong = "--block-size";
			break;
		case OPT_BLOCKS:
			if (parse_number(optarg, false, INT_MAX, &number))
				options->blocks = (int)number;
			else
				wrong = "--blocks";
			break;
		case OPT_NESTED:
			if (parse_number(optarg, false, INT_MAX, &number))
				options->nested = (int)number;
			else
				wrong = "--nested";
			break;
		case OPT_READS:
			if (parse_number(optarg, false, INT_MAX, &number))
				options->reads = (int)number;
			else
				wrong = "--reads";
			break;
		case OPT_REPEAT:
			if (parse_number(optarg, false, INT_MAX, &number))
				options->repeat = (int)number;
			else
				wrong = "--repeat";
			break;
		case OPT_COLLECTIVE:
			options->collective = true;
			break;
		case OPT_INDEPENDENT:
			options->collective = false;
			break;
		case OPT_READ_BACK:
			options->read_back = true;
			break;
		case OPT_WRITE_ONLY:
			options->read_back = false;
			break;
		case OPT_HINT:
			if (strchr(optarg, '=') && strlen(optarg) < HINT_MAX)
				options->hint = optarg;
			else
				wrong = "--hint";
			break;
		case OPT_PRINT_HINTS:
			options->print_hints = true;
			break;
		case OPT_KEEP:
			options->keep = true;
			break;
		case OPT_NO_SLURM:
			options->require_slurm = false;
			break;
		case OPT_HELP:
			return PARSED_HELP;
		default:
			if (speaks)
				fputs("Try --help.\n", stderr);
			return PARSED_WRONG;
		}
		if (wrong) {
			if (speaks)
				complain(who, "%s %s: not a whole number from 1 to %d; give one, such as 64", wrong, optarg,
					 INT_MAX);
			return PARSED_WRONG;
		}
	}
	if (optind < argc) {
		if (speaks)
			complain(who, "%s: takes options only; try --help", argv[optind]);
		return PARSED_WRONG;
	}
	if (!options->file || !*options->file || !options->block_size || !options->blocks) {
		if (speaks)
			complain(who, "--file, --block-size and --blocks are all needed; try --help");
		return PARSED_WRONG;
	}
	return PARSED;
}

/**
 * Checks that MPI was started as Slurm meant it. `srun` without an MPI plugin that MPICH understands starts as many
 * programs of one rank each, which would all succeed, on a fraction of the work.
 */
static bool ranks_match_slurm(const struct ranks *who, bool required)
{
	const char *text = getenv("SLURM_NTASKS");
	uint64_t tasks = 0;

	if (!text) {
		if (required && who->rank == 0)
			complain(who, "SLURM_NTASKS is not set; run this in a Slurm job that gives --ntasks, or add --no-slurm");
		return !required;
	}
	if (!parse_number(text, false, INT_MAX, &tasks)) {
		if (who->rank == 0)
			complain(who, "SLURM_NTASKS is \"%.64s\", not a number of tasks; unset it and add --no-slurm", text);
		return false;
	}
	if (tasks != (uint64_t)who->size) {
		if (who->rank == 0)
			complain(who,
				 "MPI has %d rank(s) but SLURM_NTASKS is %" PRIu64
				 "; launch with srun --mpi=pmi2 or with mpiexec.mpich, on all tasks of the job",
				 who->size, tasks);
		return false;
	}
	return true;
}

/** Checks that a rank's buffer and the whole file can be addressed. */
static bool sizes_fit(const struct ranks *who, const struct options *options)
{
	uint64_t per_rank = (uint64_t)options->block_size * (uint64_t)options->blocks;

	if (per_rank <= SIZE_MAX / 2 && per_rank <= (uint64_t)(INT64_MAX / who->size))
		return true;
	if (who->rank == 0)
		complain(who, "%d blocks of %zu bytes from %d ranks are more than a file can hold; use fewer or smaller blocks",
			 options->blocks, options->block_size, who->size);
	return false;
}

/** Checks that nested stretches come out even: every rank has a partner, and every stretch all its blocks. */
static bool pairs_fit(const struct ranks *who, const struct options *options)
{
	if (!options->nested || (who->size % 2 == 0 && options->blocks % options->nested == 0))
		return true;
	if (who->rank == 0)
		complain(who, "--nested %d needs an even number of ranks, and --blocks a multiple of it, not %d; correct one",
			 options->nested, options->blocks);
	return false;
}

/** Refuses to replace what is not a regular file: a mistaken --file must not remove a device or a pipe. */
static bool file_may_be_replaced(const struct ranks *who, const char *file)
{
	struct stat found;

	if (who->rank != 0 || stat(file, &found) != 0 || S_ISREG(found.st_mode))
		return true;
	complain(who, "--file %s: there is something else than a regular file of that name; choose another path", file);
	return false;
}

// --- the pattern -----------------------------------------------------------------------------------------------------

/** Spreads every bit of `x` over the result: the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, fig. 14). */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/** Eight bytes of the pattern: those at byte `8 * word` of the block with this key, lowest byte first. */
static uint64_t pattern_word(uint64_t block_key, size_t word)
{
	return mix(block_key + (word + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

/** What distinguishes a block's bytes from those of any other block, rank and pass. */
static uint64_t block_key(int pass, int rank, int block)
{
	return mix(mix(((uint64_t)(unsigned)pass << 32 | (unsigned)rank) + 1) + (unsigned)block);
}

/** The byte that belongs at `offset` of the block with this key. */
static unsigned char pattern_byte(uint64_t key, size_t offset)
{
	return (unsigned char)(pattern_word(key, offset / 8) >> (8 * (offset % 8)));
}

/** Fills a rank's buffer of `options->blocks` blocks, of a pass, one after another. */
static void fill(unsigned char *buffer, const struct options *options, int pass, int rank)
{
	for (int block = 0; block < options->blocks; block++) {
		uint64_t key = block_key(pass, rank, block);

		for (size_t offset = 0; offset < options->block_size; offset += 8) {
			uint64_t word = pattern_word(key, offset / 8);
			size_t left = options->block_size - offset;

			for (size_t i = 0; i < 8 && i < left; i++)
				*buffer++ = (unsigned char)(word >> (8 * i));
		}
	}
}

/** Counts the bytes of a rank's buffer that differ from the pattern, and says where the first one is. */
static uint64_t verify(const unsigned char *buffer, const struct options *options, int pass, int owner,
		       const struct ranks *who)
{
	uint64_t errors = 0;

	for (int block = 0; block < options->blocks; block++) {
		uint64_t key = block_key(pass, owner, block);

		for (size_t offset = 0; offset < options->block_size; offset += 8) {
			uint64_t word = pattern_word(key, offset / 8);
			size_t left = options->block_size - offset;

			for (size_t i = 0; i < 8 && i < left; i++, buffer++) {
				if (*buffer == (unsigned char)(word >> (8 * i)))
					continue;
				if (!errors++)
					complain(who,
						 "%s: pass %d, block %d of rank %d, byte %zu: read 0x%02x, wrote 0x%02x",
						 options->file, pass, block, owner, offset + i, *buffer,
						 pattern_byte(key, offset + i));
			}
		}
	}
	if (errors)
		complain(who, "%s: pass %d: %" PRIu64 " bytes of rank %d differ from what was written", options->file, pass,
			 errors, owner);
	return errors;
}

// --- output ----------------------------------------------------------------------------------------------------------

/** A text that grows. */
struct text {
	char *bytes;
	size_t length;
	size_t capacity;
};

static void text_push(const struct ranks *who, struct text *text, char byte)
{
	if (text->length + 1 >= text->capacity) {
		size_t capacity = text->capacity ? 2 * text->capacity : 1024;
		char *bytes = realloc(text->bytes, capacity);

		if (!bytes) {
			complain(who, "no memory for the %zu bytes of the hints' text", capacity);
			give_up(EXIT_IO);
		}
		text->bytes = bytes;
		text->capacity = capacity;
	}
	text->bytes[text->length++] = byte;
	text->bytes[text->length] = '\0';
}

/** Appends a JSON string. Bytes outside printable ASCII are escaped as the Latin-1 characters they may be. */
static void text_push_json_string(const struct ranks *who, struct text *text, const char *string)
{
	text_push(who, text, '"');
	for (const char *at = string; *at; at++) {
		unsigned char byte = (unsigned char)*at;
		char escape[8];

		if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\') {
			text_push(who, text, *at);
			continue;
		}
		snprintf(escape, sizeof(escape), "\\u%04x", byte);
		for (const char *from = escape; *from; from++)
			text_push(who, text, *from);
	}
	text_push(who, text, '"');
}

/** The hints in force on an open file, as a JSON object of strings. To be freed. */
static char *hints_as_json(const struct ranks *who, MPI_File handle, const char *file)
{
	struct text text = { 0 };
	MPI_Info info;
	int keys = 0;

	TRY(who, file, MPI_File_get_info, handle, &info);
	TRY(who, file, MPI_Info_get_nkeys, info, &keys);
	text_push(who, &text, '{');
	for (int i = 0; i < keys; i++) {
		char key[MPI_MAX_INFO_KEY + 1] = "";
		char value[MPI_MAX_INFO_VAL + 1] = "";
		int found = 0;

		TRY(who, file, MPI_Info_get_nthkey, info, i, key);
		TRY(who, file, MPI_Info_get, info, key, MPI_MAX_INFO_VAL, value, &found);
		if (i)
			text_push(who, &text, ',');
		text_push_json_string(who, &text, key);
		text_push(who, &text, ':');
		text_push_json_string(who, &text, value);
	}
	text_push(who, &text, '}');
	TRY(who, file, MPI_Info_free, &info);
	return text.bytes;
}

/** Whether a control variable concerns MPI-IO: Open MPI's OMPIO names its own so. */
static bool is_about_io(const char *name)
{
	return strncmp(name, "io_ompio_", strlen("io_ompio_")) == 0 || strcmp(name, "fcoll") == 0;
}

/** The value of a control variable as text; false where it has a type that none of those for MPI-IO has. */
static bool read_control(int index, MPI_Datatype type, char *text, size_t size)
{
	MPI_T_cvar_handle handle;
	int count = 0, number = 0;
	bool known = false;

	if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
		return false;
	if (type == MPI_INT && count == 1 && MPI_T_cvar_read(handle, &number) == MPI_SUCCESS) {
		snprintf(text, size, "%d", number);
		known = true;
	} else if (type == MPI_CHAR && count >= 0 && (size_t)count < size) {
		memset(text, 0, size);
		known = MPI_T_cvar_read(handle, text) == MPI_SUCCESS;
	}
	MPI_T_cvar_handle_free(&handle);
	return known;
}

/**
 * The library's control variables for MPI-IO (MPI 4.0, 15.3.6), as a JSON object of strings. Open MPI tells no hints,
 * but these. To be freed.
 */
static char *controls_as_json(const struct ranks *who)
{
	struct text text = { 0 };
	int provided = 0, variables = 0, shown = 0;

	text_push(who, &text, '{');
	if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
		variables = 0;
	else if (MPI_T_cvar_get_num(&variables) != MPI_SUCCESS)
		variables = 0;
	for (int i = 0; i < variables; i++) {
		char name[256] = "", value[4096] = "";
		int name_length = sizeof(name), verbosity, binding, scope, description_length = 0;
		MPI_Datatype type;
		MPI_T_enum names;

		if (MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &names, NULL, &description_length, &binding,
					&scope) != MPI_SUCCESS ||
		    !is_about_io(name) || !read_control(i, type, value, sizeof(value)))
			continue;
		if (shown++)
			text_push(who, &text, ',');
		text_push_json_string(who, &text, name);
		text_push(who, &text, ':');
		text_push_json_string(who, &text, value);
	}
	text_push(who, &text, '}');
	return text.bytes;
}

/** Prints the result, and makes sure that it has left this process. */
static bool print_result(const struct ranks *who, const struct options *options, const struct result *result)
{
	uint64_t bytes =
		(uint64_t)options->block_size * (uint64_t)options->blocks * (uint64_t)who->size;

	printf("{\"ranks\":%d,\"block_size\":%zu,\"blocks\":%d,\"repeat\":%d,\"access\":\"%s\",\"bytes\":%" PRIu64
	       ",\"write_seconds\":%.6f,\"read_seconds\":",
	       who->size, options->block_size, options->blocks, options->repeat,
	       options->collective ? "collective" : "independent", bytes, result->write_seconds);
	if (options->read_back)
		printf("%.6f,\"errors\":%" PRIu64, result->read_seconds, result->errors);
	else
		printf("null,\"errors\":null");
	if (result->hints)
		printf(",\"hints\":%s,\"controls\":%s", result->hints, result->controls);
	printf("}\n");
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	complain(who, "cannot write the result to standard output: %s", strerror(errno));
	return false;
}

// --- the passes ------------------------------------------------------------------------------------------------------

/** The layout of a block in memory, and of a rank's blocks in the file. */
struct layout {
	MPI_Datatype block; /**< one block: contiguous bytes */
	MPI_Datatype view;  /**< one block, or a stretch of them, and the gap that the other ranks' blocks fill */
};

static struct layout make_layout(const struct ranks *who, const struct options *options)
{
	struct layout layout;
	MPI_Aint block_size = (MPI_Aint)options->block_size;
	MPI_Aint extent = block_size * who->size;
	MPI_Datatype stretch;

	TRY(who, options->file, MPI_Type_contiguous, (int)options->block_size, MPI_BYTE, &layout.block);
	TRY(who, options->file, MPI_Type_commit, &layout.block);
	if (options->nested) {
		TRY(who, options->file, MPI_Type_create_hvector, options->nested, 1, 2 * block_size, layout.block, &stretch);
		extent *= options->nested;
		TRY(who, options->file, MPI_Type_create_resized, stretch, 0, extent, &layout.view);
		TRY(who, options->file, MPI_Type_free, &stretch);
	} else {
		TRY(who, options->file, MPI_Type_create_resized, layout.block, 0, extent, &layout.view);
	}
	TRY(who, options->file, MPI_Type_commit, &layout.view);
	return layout;
}

static void free_layout(const struct ranks *who, const struct options *options, struct layout *layout)
{
	TRY(who, options->file, MPI_Type_free, &layout->view);
	TRY(who, options->file, MPI_Type_free, &layout->block);
}

/** Removes the shared file, if it is there. Rank 0 does it, the others wait. */
static void remove_file(const struct ranks *who, const char *file)
{
	if (who->rank == 0) {
		int class = MPI_SUCCESS;
		int code;

		errno = 0;
		code = MPI_File_delete(file, MPI_INFO_NULL);
		if (code != MPI_SUCCESS && MPI_Error_class(code, &class) == MPI_SUCCESS && class != MPI_ERR_NO_SUCH_FILE)
			must(who, code, "MPI_File_delete", file);
	}
	TRY(who, file, MPI_Barrier, MPI_COMM_WORLD);
}

/** Ends all ranks if a transfer moved fewer blocks than asked: MPI-IO reports that by count, not by an error. */
static void must_be_whole(const struct ranks *who, const struct options *options, const struct layout *layout,
			  MPI_Status *status, const char *call)
{
	int moved = 0;

	TRY(who, options->file, MPI_Get_count, status, layout->block, &moved);
	if (moved == options->blocks)
		return;
	complain(who, "%s on %s moved %d of %d blocks; check the space left there", call, options->file,
		 moved == MPI_UNDEFINED ? -1 : moved, options->blocks);
	give_up(EXIT_IO);
}

/** The longest of all ranks' seconds since `start`. */
static double longest_since(const struct ranks *who, const char *file, double start)
{
	double mine = MPI_Wtime() - start;
	double longest = 0;

	TRY(who, file, MPI_Allreduce, &mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return longest;
}

/** The hint of the program's own, to be freed; MPI_INFO_NULL without one. */
static MPI_Info own_hint(const struct ranks *who, const struct options *options)
{
	MPI_Info hints = MPI_INFO_NULL;
	char name[HINT_MAX];
	char *value;

	if (!options->hint)
		return hints;
	snprintf(name, sizeof(name), "%s", options->hint);
	value = strchr(name, '=');
	*value++ = '\0';
	TRY(who, options->file, MPI_Info_create, &hints);
	TRY(who, options->file, MPI_Info_set, hints, name, value);
	return hints;
}

/** Where in the file a rank's first block lies. */
static MPI_Offset first_block(const struct options *options, int rank)
{
	if (!options->nested)
		return (MPI_Offset)options->block_size * rank;
	return (MPI_Offset)options->block_size * ((MPI_Offset)(rank / 2) * 2 * options->nested + rank % 2);
}

/** Opens the file with the view of the blocks of `owner`. */
static MPI_File open_view(const struct ranks *who, const struct options *options, const struct layout *layout, int mode,
			  int owner)
{
	MPI_Offset first = first_block(options, owner);
	MPI_Info hints = own_hint(who, options);
	MPI_File handle;

	TRY(who, options->file, MPI_File_open, MPI_COMM_WORLD, options->file, mode, hints, &handle);
	if (hints != MPI_INFO_NULL)
		MPI_Info_free(&hints);
	if (mode & MPI_MODE_CREATE)
		delete_on_failure = options->keep ? NULL : options->file;
	TRY(who, options->file, MPI_File_set_view, handle, first, MPI_BYTE, layout->view, "native", MPI_INFO_NULL);
	return handle;
}

/** Writes all blocks of this rank to a new file. */
static void write_pass(const struct ranks *who, const struct options *options, const struct layout *layout,
		       const unsigned char *buffer, struct result *result)
{
	MPI_Status status;
	MPI_File handle;
	double start;

	remove_file(who, options->file);
	start = MPI_Wtime();
	handle = open_view(who, options, layout, MPI_MODE_CREATE | MPI_MODE_RDWR, who->rank);
	if (options->collective)
		TRY(who, options->file, MPI_File_write_all, handle, buffer, options->blocks, layout->block, &status);
	else
		TRY(who, options->file, MPI_File_write, handle, buffer, options->blocks, layout->block, &status);
	must_be_whole(who, options, layout, &status, options->collective ? "MPI_File_write_all" : "MPI_File_write");
	if (options->print_hints && who->rank == 0 && !result->hints) {
		result->hints = hints_as_json(who, handle, options->file);
		result->controls = controls_as_json(who);
	}
	TRY(who, options->file, MPI_File_close, &handle);
	result->write_seconds += longest_since(who, options->file, start);
}

/** Reads all blocks of rank `owner`. */
static void read_pass(const struct ranks *who, const struct options *options, const struct layout *layout, int owner,
		      unsigned char *buffer, struct result *result)
{
	MPI_Status status;
	MPI_File handle;
	double start;

	TRY(who, options->file, MPI_Barrier, MPI_COMM_WORLD);
	start = MPI_Wtime();
	handle = open_view(who, options, layout, MPI_MODE_RDONLY, owner);
	if (options->collective)
		TRY(who, options->file, MPI_File_read_all, handle, buffer, options->blocks, layout->block, &status);
	else
		TRY(who, options->file, MPI_File_read, handle, buffer, options->blocks, layout->block, &status);
	must_be_whole(who, options, layout, &status, options->collective ? "MPI_File_read_all" : "MPI_File_read");
	TRY(who, options->file, MPI_File_close, &handle);
	result->read_seconds += longest_since(who, options->file, start);
}

/** Makes all passes. */
static struct result run_passes(const struct ranks *who, const struct options *options)
{
	struct result result = { 0 };
	size_t bytes = options->block_size * (size_t)options->blocks;
	unsigned char *buffer = must_allocate(who, bytes);
	struct layout layout = make_layout(who, options);
	uint64_t errors = 0;

	for (int pass = 0; pass < options->repeat; pass++) {
		fill(buffer, options, pass, who->rank);
		write_pass(who, options, &layout, buffer, &result);
		if (!options->read_back)
			continue;
		for (int read = 1; read <= options->reads; read++) {
			int other = (who->rank + read % who->size) % who->size;

			// The other may be this rank: what it wrote must not pass for what it read.
			memset(buffer, 0, bytes);
			read_pass(who, options, &layout, other, buffer, &result);
			errors += verify(buffer, options, pass, other, who);
		}
	}
	TRY(who, options->file, MPI_Allreduce, &errors, &result.errors, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (!options->keep)
		remove_file(who, options->file);
	delete_on_failure = NULL;
	free_layout(who, options, &layout);
	free(buffer);
	return result;
}

/** Runs the workload on all ranks. */
static enum exit_status run(int argc, char **argv, const struct ranks *who)
{
	struct options options;
	struct result result;
	enum exit_status status;
	int go;

	switch (parse_options(argc, argv, who, &options)) {
	case PARSED_HELP:
		if (who->rank == 0)
			fputs(usage_text, stdout);
		return EXIT_DONE;
	case PARSED_WRONG:
		return EXIT_USAGE;
	case PARSED:
		break;
	}
	if (!ranks_match_slurm(who, options.require_slurm) || !sizes_fit(who, &options) ||
	    !pairs_fit(who, &options))
		return EXIT_USAGE;
	// Rank 0 alone looks at the file system; all ranks must take the same way.
	go = file_may_be_replaced(who, options.file);
	TRY(who, options.file, MPI_Bcast, &go, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (!go)
		return EXIT_USAGE;
	result = run_passes(who, &options);
	status = result.errors ? EXIT_VERIFY : EXIT_DONE;
	if (who->rank == 0 && !print_result(who, &options, &result))
		status = EXIT_IO;
	free(result.hints);
	free(result.controls);
	return status;
}

int main(int argc, char **argv)
{
	struct ranks who = { 0, 1 };
	enum exit_status status;

	if (MPI_Init(&argc, &argv) != MPI_SUCCESS) {
		fputs("strided: MPI_Init failed\n", stderr);
		return EXIT_IO;
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &who.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &who.size);
	status = run(argc, argv, &who);
	MPI_Finalize();
	return status;
}
