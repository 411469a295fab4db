/* Pulls the plug of a mounted filesystem: from now on nothing more of it reaches its disk, not even its journal.
 *
 *     unplug MOUNTPOINT
 *
 * ext4, xfs, f2fs and btrfs know this call (FS_IOC_SHUTDOWN); only root may make it. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>

int main(int argc, char **argv) {
    uint32_t without_journal = 2;
    int folder = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    if (folder >= 0 && ioctl(folder, _IOR('X', 125, uint32_t), &without_journal) == 0) return 0;
    perror("unplug");
    return 1;
}
