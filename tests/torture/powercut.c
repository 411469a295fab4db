/* A filesystem that forgets what was not synced: the content of a file is durable only after fsync of the file, the
 * names in a folder only after fsync of the folder.
 *
 *     PC_V=FOLDER PC_D=FOLDER powercut MOUNTPOINT
 *
 * Mounted, it has the files and folders of PC_V, all of them durable. Unmounted, it lays out in PC_D/disk what a power
 * cut would have left, and until then holds a lock (flock) on PC_D. Between, everything is in memory.
 *
 * A rename is durable in both of its folders as soon as one of them is synced, as with a journal; so are the earlier
 * renames that it builds on, and no others. Modes are durable at once; owners and given times are not kept. */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

struct name {
    const char *name;
    struct node *node;
};

/* Of a file its bytes, of a folder its names, sorted. */
struct state {
    union {
        char *bytes;
        struct name *names;
    };
    size_t length, room; /* in bytes */
    struct timespec changed;
};

/* A file or folder. It is never freed. */
struct node {
    ino_t number;
    mode_t mode;
    struct state now, durable;
};

/* Renames that are not durable yet, oldest first. */
static struct move {
    struct node *from, *to, *node;
    const char *old, *new;
    int durable;
} *moves;
static size_t moves_count;

static struct node *root;
static ino_t numbers; /* the highest given */
static char *real; /* path of PC_D */

static void must(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "powercut: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Makes it longer, by zeros, or shorter. */
static int resize(struct state *state, size_t length) {
    if (length >= state->room) {
        size_t room = length + length / 2 + 64;
        char *bytes = realloc(state->bytes, room);
        if (!bytes) return ENOSPC;
        state->bytes = bytes;
        state->room = room;
    }
    if (length > state->length) memset(state->bytes + state->length, 0, length - state->length);
    state->length = length;
    clock_gettime(CLOCK_REALTIME, &state->changed);
    return 0;
}

static void copy(struct state *to, const struct state *from) {
    must(!resize(to, from->length), "memory");
    memcpy(to->bytes, from->bytes, from->length);
    to->changed = from->changed;
}

static struct node *new_node(mode_t mode) {
    struct node *node = calloc(1, sizeof *node);
    must(node && !resize(&node->now, 0) && !resize(&node->durable, 0), "memory");
    node->mode = mode;
    return node;
}

static size_t count(const struct state *folder) { return folder->length / sizeof(struct name); }

/* Where a name is, or would be. */
static size_t place(const struct state *folder, const char *name) {
    size_t low = 0, high = count(folder);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(folder->names[middle].name, name) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static struct node *get(const struct state *folder, const char *name) {
    size_t at = place(folder, name);
    return at < count(folder) && !strcmp(folder->names[at].name, name) ? folder->names[at].node : NULL;
}

/* Lets a name stand for a node, or for nothing. */
static void set(struct state *folder, const char *name, struct node *node) {
    size_t at = place(folder, name), all = count(folder), is = get(folder, name) != NULL, will = node != NULL;
    must(!resize(folder, (all + (will && !is)) * sizeof(struct name)), "memory");
    memmove(folder->names + at + will, folder->names + at + is, (all - at - is) * sizeof(struct name));
    if (node) folder->names[at] = (struct name){strdup(name), node};
    folder->length = (all + will - is) * sizeof(struct name);
}

/* A rename builds on earlier ones of the same node, and on those that gave its new name or took it away. */
static int builds_on(const struct move *late, const struct move *early) {
    return early->node == late->node || (early->to == late->to && !strcmp(early->new, late->new)) ||
           (early->from == late->to && !strcmp(early->old, late->new));
}

static void make_move_durable(struct move *move) {
    move->durable = 1;
    for (struct move *early = moves; early < move; early++)
        if (!early->durable && builds_on(move, early)) make_move_durable(early);
    if (get(&move->from->durable, move->old) == move->node) set(&move->from->durable, move->old, NULL);
    set(&move->to->durable, move->new, move->node);
}

/* A file, or a folder with the renames into it, out of it and within. */
static void make_durable(struct node *node) {
    size_t left = 0;
    for (struct move *move = moves; move < moves + moves_count; move++)
        if (!move->durable && (move->from == node || move->to == node)) make_move_durable(move);
    for (size_t i = 0; i < moves_count; i++)
        if (!moves[i].durable) moves[left++] = moves[i];
    moves_count = left;
    copy(&node->durable, &node->now);
}

/* ---- What the kernel asks. ---- */
static struct node *node_of(fuse_ino_t ino) { return ino == FUSE_ROOT_ID ? root : (struct node *)ino; }

static void answer(fuse_req_t req, int error) { fuse_reply_err(req, error); }

static struct stat attributes(struct node *node) {
    const struct state *now = &node->now;
    if (!node->number) node->number = ++numbers;
    return (struct stat){.st_ino = node->number, .st_mode = node->mode, .st_nlink = 1, .st_size = now->length,
                         .st_blocks = (now->length + 511) / 512, .st_uid = getuid(), .st_gid = getgid(),
                         .st_atim = now->changed, .st_mtim = now->changed, .st_ctim = now->changed};
}

/* A node, and if it was created, the open file. */
static void answer_node(fuse_req_t req, struct node *node, struct fuse_file_info *fi) {
    struct fuse_entry_param e = {(fuse_ino_t)node, 0, attributes(node), 1, 1};
    if (fi) fuse_reply_create(req, &e, fi);
    else fuse_reply_entry(req, &e);
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct node *node = get(&node_of(parent)->now, name);
    if (node) answer_node(req, node, NULL);
    else answer(req, ENOENT);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    struct stat s = attributes(node_of(ino));
    fuse_reply_attr(req, &s, 1);
}

static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *s, int which, struct fuse_file_info *fi) {
    struct node *node = node_of(ino);
    if (which & FUSE_SET_ATTR_SIZE && resize(&node->now, s->st_size)) return answer(req, ENOSPC);
    if (which & FUSE_SET_ATTR_MODE) node->mode = s->st_mode;
    do_getattr(req, ino, fi);
}

/* The kernel says in the mode that it is a file. */
static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi) {
    struct node *node = new_node(mode);
    set(&node_of(parent)->now, name, node);
    answer_node(req, node, fi);
}

static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode) {
    do_create(req, parent, name, mode | S_IFDIR, NULL);
}

/* Removes a file or an empty folder; the kernel has looked which it is. */
static void do_remove(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct node *folder = node_of(parent), *node = get(&folder->now, name);
    if (!node) return answer(req, ENOENT);
    if (S_ISDIR(node->mode) && node->now.length) return answer(req, ENOTEMPTY);
    set(&folder->now, name, NULL);
    answer(req, 0);
}

/* The kernel has looked whether it may replace what is there. */
static void do_rename(fuse_req_t req, fuse_ino_t parent, const char *old, fuse_ino_t parent_to, const char *new,
                      unsigned flags) {
    struct node *from = node_of(parent), *to = node_of(parent_to);
    struct node *node = get(&from->now, old), *there = get(&to->now, new);
    if (flags & ~RENAME_NOREPLACE) return answer(req, EINVAL);
    if (!node) return answer(req, ENOENT);
    if (there && S_ISDIR(there->mode) && there->now.length) return answer(req, ENOTEMPTY);
    set(&from->now, old, NULL);
    set(&to->now, new, node);
    moves = realloc(moves, (moves_count + 1) * sizeof *moves);
    must(moves != NULL, "memory");
    moves[moves_count++] = (struct move){from, to, node, strdup(old), strdup(new), 0};
    answer(req, 0);
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    if (fi->flags & O_TRUNC && resize(&node_of(ino)->now, 0)) return answer(req, ENOSPC);
    fi->keep_cache = 1;
    fuse_reply_open(req, fi);
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t n, off_t at, struct fuse_file_info *fi) {
    const struct state *now = &node_of(ino)->now;
    size_t left = (size_t)at < now->length ? now->length - at : 0;
    fuse_reply_buf(req, now->bytes + at, n < left ? n : left);
}

static void do_write(fuse_req_t req, fuse_ino_t ino, const char *b, size_t n, off_t at, struct fuse_file_info *fi) {
    struct state *now = &node_of(ino)->now;
    if (resize(now, at + n > now->length ? at + n : now->length)) return answer(req, ENOSPC);
    memcpy(now->bytes + at, b, n);
    fuse_reply_write(req, n);
}

static void do_fsync(fuse_req_t req, fuse_ino_t ino, int data, struct fuse_file_info *fi) {
    make_durable(node_of(ino));
    answer(req, 0);
}

/* Whoever reads a folder sees it as it was when they began, whatever is removed meanwhile. */
static void do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    fi->fh = (uint64_t)calloc(1, sizeof(struct state));
    must(fi->fh != 0, "memory");
    fuse_reply_open(req, fi);
}

static void do_readdir(fuse_req_t req, fuse_ino_t ino, size_t n, off_t at, struct fuse_file_info *fi) {
    struct state *seen = (struct state *)fi->fh;
    if (at == 0) copy(seen, &node_of(ino)->now);
    char b[65536];
    size_t used = 0, room = n < sizeof b ? n : sizeof b;
    for (; (size_t)at < count(seen); at++) {
        struct stat s = attributes(seen->names[at].node);
        size_t more = fuse_add_direntry(req, b + used, room - used, seen->names[at].name, &s, at + 1);
        if (used + more > room) break;
        used += more;
    }
    fuse_reply_buf(req, b, used);
}

static void do_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    free(((struct state *)fi->fh)->bytes);
    free((struct state *)fi->fh);
    answer(req, 0);
}

static void do_statfs(fuse_req_t req, fuse_ino_t ino) {
    struct statvfs s;
    if (statvfs(real, &s) < 0) return answer(req, errno);
    fuse_reply_statfs(req, &s);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = do_lookup, .getattr = do_getattr, .setattr = do_setattr, .mkdir = do_mkdir, .create = do_create,
    .unlink = do_remove, .rmdir = do_remove, .rename = do_rename, .open = do_open, .read = do_read,
    .write = do_write, .fsync = do_fsync, .fsyncdir = do_fsync, .opendir = do_opendir,
    .readdir = do_readdir, .releasedir = do_releasedir, .statfs = do_statfs,
};

/* ---- The real folders. Files keep their numbers through a cut, as on a disk. ---- */
static const char noted[] = "user.powercut.number";

static const char *inside(const char *folder, const char *name) {
    char *path;
    must(asprintf(&path, "%s/%s", folder, name) > 0, "memory");
    return path;
}

static struct node *load(const char *path) {
    struct stat s;
    must(lstat(path, &s) == 0, path);
    struct node *node = new_node(s.st_mode);
    if (getxattr(path, noted, &node->number, sizeof node->number) > 0 && node->number > numbers)
        numbers = node->number;
    if (S_ISDIR(s.st_mode)) {
        DIR *folder = opendir(path);
        must(folder != NULL, path);
        for (struct dirent *e; (e = readdir(folder));)
            if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
                set(&node->now, e->d_name, load(inside(path, e->d_name)));
        closedir(folder);
    } else {
        FILE *file = fopen(path, "r");
        must(file && !resize(&node->now, s.st_size), path);
        must(fread(node->now.bytes, 1, s.st_size, file) == (size_t)s.st_size, path);
        fclose(file);
    }
    node->now.changed = s.st_mtim;
    make_durable(node);
    return node;
}

static void lay_out(const struct node *node, const char *path) {
    const struct state *state = &node->durable;
    struct timespec times[] = {state->changed, state->changed};
    if (S_ISDIR(node->mode)) {
        must(mkdir(path, 0700) == 0, path);
        for (size_t i = 0; i < count(state); i++) lay_out(state->names[i].node, inside(path, state->names[i].name));
    } else {
        FILE *file = fopen(path, "wx");
        must(file && fwrite(state->bytes, 1, state->length, file) == state->length && fclose(file) == 0, path);
    }
    must(setxattr(path, noted, &node->number, sizeof node->number, 0) == 0, path);
    must(chmod(path, node->mode & 07777) == 0 && utimensat(AT_FDCWD, path, times, 0) == 0, path);
}

int main(int argc, char **argv) {
    struct fuse_args arguments = FUSE_ARGS_INIT(argc, argv);
    struct fuse_cmdline_opts options;
    must(fuse_parse_cmdline(&arguments, &options) == 0 && options.mountpoint, "it must be told where to mount");
    must(getenv("PC_V") && getenv("PC_D"), "PC_V and PC_D must name two folders");
    must(rmdir(getenv("PC_D")) == 0 && mkdir(getenv("PC_D"), 0700) == 0, "PC_D must be an empty folder");
    real = realpath(getenv("PC_D"), NULL);
    root = load(getenv("PC_V"));
    must(real && flock(open(real, O_RDONLY), LOCK_EX) == 0, "PC_D cannot be locked");
    struct fuse_session *session = fuse_session_new(&arguments, &operations, sizeof operations, NULL);
    must(session && fuse_set_signal_handlers(session) == 0, "it cannot begin");
    must(fuse_session_mount(session, options.mountpoint) == 0, options.mountpoint);
    must(fuse_daemonize(options.foreground) == 0, "it cannot go on in the background");
    fuse_session_loop(session);
    fuse_session_unmount(session);
    lay_out(root, inside(real, "part"));
    must(rename(inside(real, "part"), inside(real, "disk")) == 0, real);
}
