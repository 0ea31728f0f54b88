"""The files a guest sees: a private tree over what the host shows, open files, /proc.

How it is put together, from the bottom:

- `flags`, `attributes`: constants; what stat shows and who owns it (`Stat`, `Meta`).
- `vfs`: the objects and what they can be asked (`Volume`, `Node`, `OpenFile`, `Directory`).
- `host`: the only place where names become host files. Every host object is reached from an
  anchor (a directory the user named, opened once) name by name with O_NOFOLLOW, relative to
  directory descriptors. The host is never asked to follow a symlink or `..`: both are
  resolved here, in the guest's own tree. So neither a guest nor a host process that swaps
  directories for symlinks while the guest runs can lead a path out of what is visible.
  FIFOs, sockets and devices of the host can be listed but are never opened. Each question about
  the host's files passes its `HostAnswers`, so that answers can be kept, or come from elsewhere.
- `data`, `regular`, `directory`, `links`: the private overlay. A node of the host stays lazy
  until something changes: metadata first, contents chunk by chunk, deletions as whiteouts.
  A renamed directory keeps its host directory, so a rename never copies and never fails
  with EXDEV. `shared`: directories given with `:rw`, written through.
- `device`, `proc`, `procfiles`: /dev, /proc and /sys, all invented; `devices`: the
  device numbers of file systems that only the guest has; `layers`: files behind overlay mounts.
- `terminal`, `pty` with its line `discipline` and `termios`, `devpts`: terminals. `fsnotify` and
  `inotify`: who hears of changes; `locks`: who has locked what; `xattrs`: further attributes.
- The kinds of open files (`openfile`, `regular`, `pipe`, `eventfd_timerfd`, `epoll`, `uring`,
  `stdio`).
  Nothing in them blocks: a read or write that cannot go on returns None.
- `view`, `filesystem`, `operations`: what is visible, the tree and path resolution, the
  calls that change names. `table`: a process's descriptors.

The guest has one identity (user and groups): that of whoever runs the tool where a directory of
that user is visible, else, and for root's guests, user 1000, as whose the files of the tool's user
count.
Permissions are checked against that, as the guest's programs expect. Host files have the host's
device and inode numbers; those of what the guest makes count up, and listings are sorted, so two
runs that do the same see the same. Contents and listings of host files are taken as they are;
only the standard streams pass through `stdio.HostIO`, which a journal can record and replay.
"""
