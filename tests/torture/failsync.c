/* Preloaded, makes every fdatasync fail as a broken disk does. */
#include <errno.h>

int fdatasync(int fd) {
    (void)fd;
    errno = EIO;
    return -1;
}
