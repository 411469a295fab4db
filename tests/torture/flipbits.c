/* A folder seen through a bad cable: some reads give one bit wrong. What is written arrives as it is.
 *
 *     FLIP_ROOT=FOLDER FLIP_CONTROL=FILE FLIP_LOG=FILE [FLIP_SEED=NUMBER] flipbits MOUNTPOINT
 *
 * Each line "<percent> <part of a path>" of the control flips one bit in so many of a hundred reads of the files whose
 * path, from the root of the mount, has that part: "0.5 /tree/" or "100 inventory.json". It is read anew at each read,
 * so that flips begin and end while it is mounted; without it there are none. The log gets "<byte> <bit> <path>" for
 * each flip. A file is read anew at each open; until then the kernel may answer from its cache (not with -o direct_io,
 * but then nothing can be mapped shared). */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static char *root, *control, *flips;

#define PATH(p, path) \
    char p[8192];     \
    snprintf(p, sizeof p, "%s%s", root, path)

static int result(int r) { return r < 0 ? -errno : r; }

static int wants_flip(const char *path) {
    FILE *f = fopen(control, "r");
    double percent;
    char part[4096];
    int wants = 0;
    while (f && fscanf(f, "%lf %4095[^\n]", &percent, part) == 2)
        if (strstr(path, part) && drand48() * 100 < percent) wants = 1;
    if (f) fclose(f);
    return wants;
}

static int do_read(const char *path, char *b, size_t n, off_t o, struct fuse_file_info *fi) {
    int r = pread(fi->fh, b, n, o);
    if (r <= 0 || !wants_flip(path)) return result(r);
    int byte = lrand48() % r, bit = lrand48() % 8;
    b[byte] ^= 1 << bit;
    FILE *f = fopen(flips, "a");
    if (!f) return -errno;
    fprintf(f, "%lld %d %s\n", (long long)o + byte, bit, path);
    return fclose(f) < 0 ? -errno : r;
}

/* The rest is passed on. */

static int do_getattr(const char *path, struct stat *s, struct fuse_file_info *fi) {
    PATH(p, path);
    return result(fi ? fstat(fi->fh, s) : lstat(p, s));
}

static int open_as(const char *path, int flags, mode_t mode, struct fuse_file_info *fi) {
    PATH(p, path);
    int fd = open(p, flags, mode);
    if (fd < 0) return -errno;
    fi->fh = fd;
    return 0;
}

/* The kernel knows where to append, and reads what it maps to write. */
static int flags_of(struct fuse_file_info *fi) {
    int flags = fi->flags & ~(O_APPEND | O_CREAT | O_EXCL);
    return (flags & O_ACCMODE) == O_WRONLY ? (flags & ~O_ACCMODE) | O_RDWR : flags;
}

static int do_open(const char *path, struct fuse_file_info *fi) { return open_as(path, flags_of(fi), 0, fi); }

static int do_create(const char *path, mode_t mode, struct fuse_file_info *fi) {
    return open_as(path, flags_of(fi) | O_CREAT | (fi->flags & O_EXCL), mode, fi);
}

static int do_release(const char *path, struct fuse_file_info *fi) { return result(close(fi->fh)); }

static int do_write(const char *path, const char *b, size_t n, off_t o, struct fuse_file_info *fi) {
    return result(pwrite(fi->fh, b, n, o));
}

static int do_fsync(const char *path, int data, struct fuse_file_info *fi) {
    return result(data ? fdatasync(fi->fh) : fsync(fi->fh));
}

static int do_opendir(const char *path, struct fuse_file_info *fi) {
    return open_as(path, O_RDONLY | O_DIRECTORY, 0, fi);
}

static int do_readdir(const char *path, void *b, fuse_fill_dir_t fill, off_t o, struct fuse_file_info *fi,
                      enum fuse_readdir_flags flags) {
    PATH(p, path);
    DIR *d = opendir(p);
    if (!d) return -errno;
    for (struct dirent *e; (e = readdir(d));) fill(b, e->d_name, 0, 0, 0);
    return result(closedir(d));
}

static int do_mkdir(const char *path, mode_t mode) {
    PATH(p, path);
    return result(mkdir(p, mode));
}

static int do_rmdir(const char *path) {
    PATH(p, path);
    return result(rmdir(p));
}

static int do_unlink(const char *path) {
    PATH(p, path);
    return result(unlink(p));
}

static int do_rename(const char *from, const char *to, unsigned flags) {
    PATH(p, from);
    PATH(q, to);
    return result(renameat2(AT_FDCWD, p, AT_FDCWD, q, flags));
}

static int do_truncate(const char *path, off_t n, struct fuse_file_info *fi) {
    PATH(p, path);
    return result(fi ? ftruncate(fi->fh, n) : truncate(p, n));
}

static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *fi) {
    PATH(p, path);
    return result(chmod(p, mode));
}

static int do_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi) {
    PATH(p, path);
    return result(lchown(p, uid, gid));
}

static int do_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi) {
    PATH(p, path);
    return result(utimensat(AT_FDCWD, p, times, AT_SYMLINK_NOFOLLOW));
}

static int do_statfs(const char *path, struct statvfs *s) { return result(statvfs(root, s)); }

static const struct fuse_operations operations = {
    .read = do_read, .getattr = do_getattr, .open = do_open, .create = do_create, .release = do_release,
    .write = do_write, .fsync = do_fsync, .opendir = do_opendir, .readdir = do_readdir, .releasedir = do_release,
    .fsyncdir = do_fsync, .mkdir = do_mkdir, .rmdir = do_rmdir, .unlink = do_unlink, .rename = do_rename,
    .truncate = do_truncate, .chmod = do_chmod, .chown = do_chown, .utimens = do_utimens, .statfs = do_statfs,
};

int main(int count, char **arguments) {
    root = getenv("FLIP_ROOT");
    control = getenv("FLIP_CONTROL");
    flips = getenv("FLIP_LOG");
    if (!root || !control || !flips || *root != '/' || *control != '/' || *flips != '/') {
        fprintf(stderr, "flipbits: FLIP_ROOT, FLIP_CONTROL and FLIP_LOG must be paths from /\n");
        return 2;
    }
    srand48(getenv("FLIP_SEED") ? atol(getenv("FLIP_SEED")) : time(NULL));
    return fuse_main(count, arguments, &operations, NULL);
}
