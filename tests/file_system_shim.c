/* Preloaded into a process, makes its file system misbehave as LEEWARD_SHIM says, in words such as "flock=9".
 *
 * flock=N         every flock fails with errno N
 * rename=N        every rename is done, and fails with errno N: on NFS, a request sent again after a lost answer
 * link=N          the same for links
 * stale=N         of all attempts to open a file named "lock" for reading, every Nth fails with ESTALE
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static int asked(const char *word)
{
    const char *orders = getenv("LEEWARD_SHIM");
    const char *found = orders ? strstr(orders, word) : NULL;
    return found ? atoi(found + strlen(word)) : 0;
}

static int fail(int number)
{
    errno = number;
    return -1;
}

int flock(int handle, int operation)
{
    int number = asked("flock=");
    if (number)
        return fail(number);
    return ((int (*)(int, int))dlsym(RTLD_NEXT, "flock"))(handle, operation);
}

int rename(const char *from, const char *to)
{
    int done = ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
    int number = asked("rename=");
    return done == 0 && number ? fail(number) : done;
}

int link(const char *from, const char *to)
{
    int done = ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "link"))(from, to);
    int number = asked("link=");
    return done == 0 && number ? fail(number) : done;
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    int done = ((int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat"))(from_folder, from,
                                                                                                to_folder, to, flags);
    int number = asked("link=");
    return done == 0 && number ? fail(number) : done;
}

static int is_stale(const char *path, int flags)
{
    static int opened;
    const char *name = strrchr(path, '/');
    int every = asked("stale=");
    if (!every || (flags & O_ACCMODE) != O_RDONLY || strcmp(name ? name + 1 : path, "lock"))
        return 0;
    return ++opened % every == 0;
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                        \
        va_end(rest);                                                                                                  \
        if (is_stale(path, flags))                                                                                     \
            return fail(ESTALE);                                                                                       \
        return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name))(path, flags, mode);                          \
    }

OPEN(open)
OPEN(open64)
