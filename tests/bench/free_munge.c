/* A libmunge whose credentials cost nothing and protect nothing: `UID:READER:PAYLOAD` in hexadecimal. The
 * bench puts it in libmunge's place, for the service and its clients alike, to tell what MUNGE costs. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As munge.h has them: part of libmunge's stable ABI. */
enum { MUNGE_OPT_UID_RESTRICTION = 9 };
typedef enum { EMUNGE_SUCCESS = 0, EMUNGE_NO_MEMORY = 5, EMUNGE_BAD_CRED = 8 } munge_err_t;
typedef struct munge_ctx *munge_ctx_t;

struct munge_ctx {
    uid_t reader;
};

munge_ctx_t munge_ctx_create(void)
{
    return calloc(1, sizeof(struct munge_ctx));
}

void munge_ctx_destroy(munge_ctx_t context)
{
    free(context);
}

munge_err_t munge_ctx_set(munge_ctx_t context, int option, ...)
{
    va_list values;
    va_start(values, option);
    if (option == MUNGE_OPT_UID_RESTRICTION)
        context->reader = va_arg(values, uid_t);
    va_end(values);
    return EMUNGE_SUCCESS;
}

/* It knows no sender's address. */
munge_err_t munge_ctx_get(munge_ctx_t context, int option, ...)
{
    (void)context;
    (void)option;
    return EMUNGE_BAD_CRED;
}

const char *munge_strerror(munge_err_t error)
{
    return error == EMUNGE_SUCCESS ? "Success" : "Invalid credential";
}

munge_err_t munge_encode(char **credential, munge_ctx_t context, const void *payload, int length)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = payload;
    char *text = malloc(64 + 2 * (size_t)length);
    if (text == NULL)
        return EMUNGE_NO_MEMORY;
    char *at = text + sprintf(text, "%u:%u:", (unsigned)geteuid(), (unsigned)context->reader);
    for (int i = 0; i < length; i++) {
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    *at = '\0';
    *credential = text;
    return EMUNGE_SUCCESS;
}

munge_err_t munge_decode(const char *credential, munge_ctx_t context, void **payload, int *length, uid_t *uid,
                         gid_t *gid)
{
    unsigned sender, reader;
    int skipped = 0;
    (void)context;
    if (sscanf(credential, "%u:%u:%n", &sender, &reader, &skipped) != 2 || skipped == 0 || reader != geteuid())
        return EMUNGE_BAD_CRED;
    const char *digits = credential + skipped;
    size_t bytes = strlen(digits) / 2;
    char *copy = malloc(bytes + 1);
    if (copy == NULL)
        return EMUNGE_NO_MEMORY;
    for (size_t i = 0; i < bytes; i++) {
        unsigned byte;
        if (sscanf(digits + 2 * i, "%2x", &byte) != 1) {
            free(copy);
            return EMUNGE_BAD_CRED;
        }
        copy[i] = (char)byte;
    }
    copy[bytes] = '\0';
    *payload = copy;
    *length = (int)bytes;
    *uid = (uid_t)sender;
    *gid = 0;
    return EMUNGE_SUCCESS;
}
