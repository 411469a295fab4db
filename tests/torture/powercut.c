/* A filesystem of one folder that forgets what was not synced: the content of a file is durable only after fsync of the
 * file, names only after fsync of the folder. PC_V holds what programs see, PC_D what a power cut leaves: "i<inode>" for
 * each file synced, and "dirlist" with "<inode> <name>" lines. */
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
#include <unistd.h>

static char seen[2048], durable[2048];

#define PATH(p, path) \
    char p[8192];     \
    snprintf(p, sizeof p, "%s%s", seen, path)

static int do_getattr(const char *path, struct stat *s, struct fuse_file_info *fi) {
    PATH(p, path);
    return lstat(p, s) < 0 ? -errno : 0;
}

static int do_open(const char *path, struct fuse_file_info *fi) {
    PATH(p, path);
    int flags = fi->flags & ~(O_CREAT | O_APPEND);
    if ((flags & O_ACCMODE) == O_WRONLY) flags = (flags & ~O_ACCMODE) | O_RDWR;
    int fd = open(p, flags);
    if (fd < 0) return -errno;
    fi->fh = fd;
    return 0;
}

static int do_create(const char *path, mode_t mode, struct fuse_file_info *fi) {
    PATH(p, path);
    int fd = open(p, O_CREAT | O_RDWR | (fi->flags & (O_TRUNC | O_EXCL)), mode);
    if (fd < 0) return -errno;
    fi->fh = fd;
    return 0;
}

static int do_read(const char *path, char *b, size_t n, off_t o, struct fuse_file_info *fi) {
    int r = pread(fi->fh, b, n, o);
    return r < 0 ? -errno : r;
}

static int do_write(const char *path, const char *b, size_t n, off_t o, struct fuse_file_info *fi) {
    int r = pwrite(fi->fh, b, n, o);
    return r < 0 ? -errno : r;
}

static int do_fsync(const char *path, int data, struct fuse_file_info *fi) {
    struct stat s;
    if (fstat(fi->fh, &s) < 0) return -errno;
    char to[4096], part[4200], b[65536];
    snprintf(to, sizeof to, "%s/i%lu", durable, (unsigned long)s.st_ino);
    snprintf(part, sizeof part, "%s.part", to);
    int out = open(part, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (out < 0) return -errno;
    off_t at = 0;
    for (int n; (n = pread(fi->fh, b, sizeof b, at)) > 0; at += n)
        if (write(out, b, n) != n) return -EIO;
    close(out);
    return rename(part, to) < 0 ? -errno : 0;
}

static int do_fsyncdir(const char *path, int data, struct fuse_file_info *fi) {
    PATH(p, path);
    char to[4096];
    snprintf(to, sizeof to, "%s/dirlist", durable);
    DIR *d = opendir(p);
    FILE *f = d ? fopen(to, "w") : NULL;
    if (!f) return -EIO;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') fprintf(f, "%lu %s\n", (unsigned long)e->d_ino, e->d_name);
    fclose(f);
    closedir(d);
    return 0;
}

static int do_release(const char *path, struct fuse_file_info *fi) { return close(fi->fh) < 0 ? -errno : 0; }

static int do_rename(const char *from, const char *to, unsigned flags) {
    PATH(p, from);
    PATH(q, to);
    return rename(p, q) < 0 ? -errno : 0;
}

static int do_unlink(const char *path) {
    PATH(p, path);
    return unlink(p) < 0 ? -errno : 0;
}

static int do_truncate(const char *path, off_t n, struct fuse_file_info *fi) {
    PATH(p, path);
    return truncate(p, n) < 0 ? -errno : 0;
}

static int do_readdir(const char *path, void *b, fuse_fill_dir_t fill, off_t o, struct fuse_file_info *fi,
                      enum fuse_readdir_flags flags) {
    PATH(p, path);
    DIR *d = opendir(p);
    if (!d) return -errno;
    for (struct dirent *e; (e = readdir(d));) fill(b, e->d_name, 0, 0, 0);
    closedir(d);
    return 0;
}

static const struct fuse_operations operations = {
    .getattr = do_getattr, .open = do_open, .create = do_create, .read = do_read,
    .write = do_write, .fsync = do_fsync, .fsyncdir = do_fsyncdir, .release = do_release,
    .rename = do_rename, .unlink = do_unlink, .truncate = do_truncate, .readdir = do_readdir,
};

int main(int count, char **arguments) {
    snprintf(seen, sizeof seen, "%s", getenv("PC_V"));
    snprintf(durable, sizeof durable, "%s", getenv("PC_D"));
    return fuse_main(count, arguments, &operations, 0);
}
