/* Preloaded, counts the calls that change the disk or the network, over all threads, and kills the process when it is about
   to make a certain one; or cuts the network there for a while.

   strace counts for each thread on its own: of a server with many threads, it does not reach every call.

   KILLAT_CONTROL names a file of six numbers of 64 bits: whether calls are counted; how many were; at which there is trouble
   (0: at none); whether that is a cut instead of a kill, and of how many milliseconds; whether it came; until when the
   network is cut. In a cut, only calls to the network are counted. Calls are told in the file of that name with `.log`.

   Connections that came in at 127.0.0.2 are those of who watches: they count for nothing, and are never cut. Nor do standard
   streams and what is neither file nor socket, such as what threads wake each other with. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static struct control {
    _Atomic uint64_t armed, count, at, cut, fired, until;
} *control;
static int told = -1;

static void begin(void) __attribute__((constructor));
static void begin(void) {
    const char *name = getenv("KILLAT_CONTROL");
    char log[4096];
    if (!name || snprintf(log, sizeof log, "%s.log", name) >= (int)sizeof log)
        return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0);
    told = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || told < 0)
        abort();
    void *at = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        abort();
    control = at;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static void tell(const char *call, const char *about, int fd, const char *how) {
    char line[1024], path[512] = "";
    if (!about) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
        about = path;
    }
    int length = snprintf(line, sizeof line, "%s%s %.800s\n", how, call, about);
    syscall(SYS_write, told, line, (size_t)length);
}

/* Before a call: whether it is to fail, because the network is cut. */
static int before(const char *call, const char *about, int fd, int network) {
    int error = errno;
    if (!control || !control->armed)
        return 0;
    uint64_t cut = control->cut;
    if (cut && !network)
        return 0;
    if (cut && control->until > now()) {
        tell(call, about, fd, "cut ");
        return 1;
    }
    uint64_t number = ++control->count;
    if (number == control->at) {
        control->fired = 1;
        tell(call, about, fd, cut ? "cut " : "killed ");
        if (cut) {
            control->until = now() + cut;
            return 1;
        }
        syscall(SYS_kill, getpid(), SIGKILL);
        for (;;)
            pause();
    }
    tell(call, about, fd, "");
    errno = error;
    return 0;
}

/* 1: the network; 0: the disk; -1: neither. */
static int kind(int fd) {
    struct stat what;
    if (fd <= 2 || fstat(fd, &what) != 0)
        return -1;
    if (S_ISREG(what.st_mode) || S_ISDIR(what.st_mode))
        return 0;
    if (!S_ISSOCK(what.st_mode))
        return -1;
    struct sockaddr_storage ours = {0};
    socklen_t length = sizeof ours;
    if (getsockname(fd, (struct sockaddr *)&ours, &length) != 0)
        return -1;
    struct sockaddr_in *in = (struct sockaddr_in *)&ours;
    return ours.ss_family == AF_INET && in->sin_addr.s_addr == htonl(0x7f000002) ? -1 : 1;
}

#define REAL(type, name, ...)                                                                                                 \
    static type (*real)(__VA_ARGS__);                                                                                         \
    if (!real)                                                                                                                \
        real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);

/* A call on something open. */
#define ON_FD(type, name, parameters, arguments, ...)                                                                         \
    type name parameters {                                                                                                    \
        REAL(type, name, __VA_ARGS__)                                                                                         \
        int error = errno, of = kind(fd);                                                                                     \
        errno = error;                                                                                                        \
        if (of >= 0 && before(#name, NULL, fd, of)) {                                                                         \
            syscall(SYS_shutdown, fd, SHUT_RDWR);                                                                             \
            errno = ECONNRESET;                                                                                               \
            return -1;                                                                                                        \
        }                                                                                                                     \
        return real arguments;                                                                                                \
    }

/* A call on something named. */
#define ON_NAME(name, parameters, arguments, about, ...)                                                                      \
    int name parameters {                                                                                                     \
        REAL(int, name, __VA_ARGS__)                                                                                          \
        before(#name, about, -1, 0);                                                                                          \
        return real arguments;                                                                                                \
    }

ON_FD(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n), int, const void *, size_t)
ON_FD(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), int, const struct iovec *, int)
ON_FD(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o), int, const void *, size_t, off_t)
ON_FD(ssize_t, pwrite64, (int fd, const void *b, size_t n, off64_t o), (fd, b, n, o), int, const void *, size_t, off64_t)
ON_FD(ssize_t, send, (int fd, const void *b, size_t n, int f), (fd, b, n, f), int, const void *, size_t, int)
ON_FD(ssize_t, sendto, (int fd, const void *b, size_t n, int f, const struct sockaddr *a, socklen_t l), (fd, b, n, f, a, l),
      int, const void *, size_t, int, const struct sockaddr *, socklen_t)
ON_FD(ssize_t, sendmsg, (int fd, const struct msghdr *m, int f), (fd, m, f), int, const struct msghdr *, int)
ON_FD(ssize_t, sendfile, (int fd, int from, off_t *o, size_t n), (fd, from, o, n), int, int, off_t *, size_t)
ON_FD(ssize_t, sendfile64, (int fd, int from, off64_t *o, size_t n), (fd, from, o, n), int, int, off64_t *, size_t)
ON_FD(ssize_t, copy_file_range, (int from, off64_t *i, int fd, off64_t *o, size_t n, unsigned f), (from, i, fd, o, n, f), int,
      off64_t *, int, off64_t *, size_t, unsigned)
ON_FD(int, connect, (int fd, const struct sockaddr *a, socklen_t l), (fd, a, l), int, const struct sockaddr *, socklen_t)
ON_FD(int, shutdown, (int fd, int how), (fd, how), int, int)
ON_FD(int, fsync, (int fd), (fd), int)
ON_FD(int, fdatasync, (int fd), (fd), int)
ON_FD(int, syncfs, (int fd), (fd), int)
ON_FD(int, ftruncate, (int fd, off_t n), (fd, n), int, off_t)
ON_FD(int, ftruncate64, (int fd, off64_t n), (fd, n), int, off64_t)
ON_FD(int, fallocate, (int fd, int m, off_t o, off_t n), (fd, m, o, n), int, int, off_t, off_t)
ON_FD(int, fallocate64, (int fd, int m, off64_t o, off64_t n), (fd, m, o, n), int, int, off64_t, off64_t)
ON_FD(int, posix_fallocate, (int fd, off_t o, off_t n), (fd, o, n), int, off_t, off_t)
ON_FD(int, fchmod, (int fd, mode_t m), (fd, m), int, mode_t)

ON_NAME(rename, (const char *f, const char *t), (f, t), t, const char *, const char *)
ON_NAME(renameat, (int d, const char *f, int e, const char *t), (d, f, e, t), t, int, const char *, int, const char *)
ON_NAME(renameat2, (int d, const char *f, int e, const char *t, unsigned o), (d, f, e, t, o), t, int, const char *, int,
        const char *, unsigned)
ON_NAME(unlink, (const char *f), (f), f, const char *)
ON_NAME(unlinkat, (int d, const char *f, int o), (d, f, o), f, int, const char *, int)
ON_NAME(rmdir, (const char *f), (f), f, const char *)
ON_NAME(mkdir, (const char *f, mode_t m), (f, m), f, const char *, mode_t)
ON_NAME(mkdirat, (int d, const char *f, mode_t m), (d, f, m), f, int, const char *, mode_t)
ON_NAME(link, (const char *f, const char *t), (f, t), t, const char *, const char *)
ON_NAME(linkat, (int d, const char *f, int e, const char *t, int o), (d, f, e, t, o), t, int, const char *, int, const char *,
        int)
ON_NAME(symlink, (const char *f, const char *t), (f, t), t, const char *, const char *)
ON_NAME(symlinkat, (const char *f, int d, const char *t), (f, d, t), t, const char *, int, const char *)
ON_NAME(chmod, (const char *f, mode_t m), (f, m), f, const char *, mode_t)

/* Opening changes the disk only where it makes or empties a file. */
#define OPENING(name, parameters, last, arguments, ...)                                                                       \
    int name parameters {                                                                                                     \
        REAL(int, name, __VA_ARGS__)                                                                                          \
        mode_t mode = 0;                                                                                                      \
        if (flags & (O_CREAT | __O_TMPFILE)) {                                                                                \
            va_list rest;                                                                                                     \
            va_start(rest, last);                                                                                             \
            mode = va_arg(rest, mode_t);                                                                                      \
            va_end(rest);                                                                                                     \
        }                                                                                                                     \
        if (flags & (O_CREAT | O_TRUNC))                                                                                      \
            before(#name, file, -1, 0);                                                                                       \
        return real arguments;                                                                                                \
    }

OPENING(open, (const char *file, int flags, ...), flags, (file, flags, mode), const char *, int, ...)
OPENING(open64, (const char *file, int flags, ...), flags, (file, flags, mode), const char *, int, ...)
OPENING(openat, (int in, const char *file, int flags, ...), flags, (in, file, flags, mode), int, const char *, int, ...)
OPENING(openat64, (int in, const char *file, int flags, ...), flags, (in, file, flags, mode), int, const char *, int, ...)
