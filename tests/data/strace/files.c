/* System calls about files, descriptors, directories, with good and bad arguments. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dirent.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/mman.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <sys/inotify.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <sys/mount.h>
#include <sys/swap.h>
#include <utime.h>
#include <linux/openat2.h>
#include <linux/fs.h>
#include <termios.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
int main(void) {
  char buf[256];
  struct stat st;
  struct statfs sf;
  mkdir("d1",0755);
  mkdirat(AT_FDCWD,"d2",S_ISVTX|0700);
  int fd=open("d1/f",O_RDWR|O_CREAT|O_EXCL|O_TRUNC,0644);
  int fd2=openat(AT_FDCWD,"d1/g",O_WRONLY|O_CREAT|O_APPEND|O_NONBLOCK|O_SYNC,0600);
  struct open_how how={.flags=O_RDONLY|O_CLOEXEC|O_NOFOLLOW,.resolve=RESOLVE_NO_SYMLINKS|RESOLVE_BENEATH};
  int fd3=syscall(SYS_openat2,AT_FDCWD,"d1/f",&how,sizeof how);
  write(fd,"hello \"world\"\n\t\1\2\0034\200\377 more than thirty-two bytes of text here",70);
  pwrite(fd,"xyz",3,100);
  pread(fd,buf,20,2);
  pread(fd,buf,200,0);
  lseek(fd,0,SEEK_SET);
  lseek(fd,0,SEEK_HOLE);
  lseek(fd,0,SEEK_DATA);
  lseek(fd,-1,SEEK_SET);
  lseek(fd,3,99);
  struct iovec iov[3]={{"one",3},{"two two",7},{0,0}};
  writev(fd2,iov,3);
  struct iovec r[2]={{buf,5},{buf+10,100}};
  lseek(fd,0,SEEK_SET);
  readv(fd,r,2);
  preadv(fd,r,2,4);
  pwritev(fd,iov,2,8);
  preadv2(fd,r,2,0,RWF_NOWAIT);
  pwritev2(fd,iov,2,0,RWF_DSYNC);
  read(77,buf,10);
  write(77,"abc",3);
  read(fd,(void*)8,4096);
  write(fd,(void*)8,10);
  ftruncate(fd,1001);
  truncate("d1/f",500);
  fallocate(fd,FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE,0,100);
  fallocate(fd,0,0,4096);
  fsync(fd);
  fdatasync(fd);
  sync_file_range(fd,0,10,SYNC_FILE_RANGE_WRITE);
  posix_fadvise(fd,0,0,POSIX_FADV_RANDOM);
  readahead(fd,0,4096);
  syncfs(fd);
  off_t off=3;
  sendfile(fd2,fd,&off,5);
  sendfile(fd2,fd,NULL,5);
  off64_t a=0,b=20;
  copy_file_range(fd3,&a,fd,&b,4,0);
  int p[2],q[2];
  pipe(p);
  pipe2(q,O_CLOEXEC|O_NONBLOCK);
  write(p[1],"pipe data",9);
  tee(p[0],q[1],4,SPLICE_F_NONBLOCK);
  splice(p[0],0,fd,&b,4,SPLICE_F_MOVE);
  struct iovec v={"vm",2};
  vmsplice(p[1],&v,1,SPLICE_F_GIFT);
  read(q[0],buf,100);
  int e=dup(fd);
  dup2(fd,50);
  dup3(fd,51,O_CLOEXEC);
  dup2(99,98);
  dup3(fd,fd,0);
  fcntl(fd,F_GETFD);
  fcntl(51,F_GETFD);
  fcntl(fd,F_SETFD,FD_CLOEXEC);
  fcntl(fd,F_GETFL);
  fcntl(fd2,F_GETFL);
  fcntl(fd2,F_SETFL,O_APPEND|O_NONBLOCK);
  fcntl(fd,F_DUPFD,60);
  fcntl(fd,F_DUPFD_CLOEXEC,70);
  struct flock fl={F_WRLCK,SEEK_SET,0,10,0};
  fcntl(fd,F_SETLK,&fl);
  fcntl(fd,F_GETLK,&fl);
  fl.l_type=F_UNLCK;
  fcntl(fd,F_SETLKW,&fl);
  fcntl(fd,F_GETOWN);
  fcntl(fd,F_SETOWN,0);
  fcntl(p[0],F_GETPIPE_SZ);
  fcntl(p[0],F_SETPIPE_SZ,8192);
  fcntl(fd,F_GETLEASE);
  fcntl(fd,999,5);
  fcntl(fd,F_GETSIG);
  struct flock of={F_RDLCK,SEEK_SET,0,10,0};
  fcntl(fd,F_OFD_SETLK,&of);
  fcntl(fd,F_OFD_GETLK,&of);
  flock(fd,LOCK_EX|LOCK_NB);
  flock(fd,LOCK_UN);
  stat("d1/f",&st);
  fstat(fd,&st);
  lstat("d1",&st);
  fstatat(AT_FDCWD,"d1/f",&st,AT_SYMLINK_NOFOLLOW);
  stat("/dev/null",&st);
  stat("nothing",&st);
  syscall(SYS_stat,"d1/f",&st);
  syscall(SYS_lstat,"d1/f",&st);
  syscall(SYS_fstat,fd,&st);
  syscall(SYS_stat,"/dev/null",&st);
  syscall(SYS_stat,8,&st);
  struct statx sx;
  statx(AT_FDCWD,"d1/f",AT_STATX_DONT_SYNC|AT_SYMLINK_NOFOLLOW,STATX_BASIC_STATS|STATX_BTIME,&sx);
  statx(fd,"",AT_EMPTY_PATH,STATX_SIZE,&sx);
  access("d1/f",R_OK|W_OK);
  access("d1/f",F_OK);
  faccessat(AT_FDCWD,"nope",X_OK,0);
  syscall(SYS_faccessat2,AT_FDCWD,"d1",R_OK|X_OK,AT_EACCESS);
  symlink("target","d1/l");
  symlinkat("t2",AT_FDCWD,"d1/l2");
  readlink("d1/l",buf,100);
  readlinkat(AT_FDCWD,"d1/l2",buf,1);
  readlink("d1/f",buf,10);
  link("d1/f","d1/h");
  linkat(AT_FDCWD,"d1/f",AT_FDCWD,"d1/i",AT_SYMLINK_FOLLOW);
  rename("d1/h","d1/j");
  renameat(AT_FDCWD,"d1/i",AT_FDCWD,"d1/k");
  renameat2(AT_FDCWD,"d1/j",AT_FDCWD,"d1/k",RENAME_NOREPLACE);
  renameat2(AT_FDCWD,"d1/j",AT_FDCWD,"d1/k",RENAME_EXCHANGE);
  chmod("d1/f",04755);
  fchmod(fd,0600);
  fchmodat(AT_FDCWD,"d1/f",0640,0);
  chown("d1/f",-1,-1);
  fchown(fd,-1,-1);
  lchown("d1/l",-1,-1);
  fchownat(AT_FDCWD,"d1/f",-1,-1,AT_SYMLINK_NOFOLLOW);
  mknod("d1/n",S_IFREG|0644,0);
  mknodat(AT_FDCWD,"d1/fifo",S_IFIFO|0600,0);
  struct timespec ts[2]={{1000000000,5},{0,UTIME_OMIT}};
  utimensat(AT_FDCWD,"d1/f",ts,0);
  futimens(fd,NULL);
  struct timespec tn[2]={{0,UTIME_NOW},{1,0}};
  utimensat(AT_FDCWD,"d1/f",tn,AT_SYMLINK_NOFOLLOW);
  struct timeval tv[2]={{1000000000,0},{1000000001,7}};
  syscall(SYS_utimes,"d1/f",tv);
  syscall(SYS_futimesat,AT_FDCWD,"d1/f",tv);
  struct utimbuf ub={1,2};
  syscall(SYS_utime,"d1/f",&ub);
  setxattr("d1/f","user.a","value",5,0);
  getxattr("d1/f","user.a",buf,100);
  getxattr("d1/f","user.b",buf,100);
  listxattr("d1/f",buf,100);
  setxattr("d1/f","user.a","v2",2,XATTR_REPLACE);
  removexattr("d1/f","user.a");
  fsetxattr(fd,"user.z","q",1,XATTR_CREATE);
  fgetxattr(fd,"user.z",buf,10);
  flistxattr(fd,buf,10);
  fremovexattr(fd,"user.z");
  lgetxattr("d1/f","user.a",buf,1);
  llistxattr("d1/f",buf,0);
  getcwd(buf,200);
  chdir("d1");
  int dfd=open(".",O_RDONLY|O_DIRECTORY|O_CLOEXEC);
  fchdir(dfd);
  chdir("..");
  syscall(SYS_getdents64,dfd,buf,256);
  syscall(SYS_getdents64,dfd,buf,2560);
  lseek(dfd,0,0);
  syscall(SYS_getdents,dfd,buf,256);
  syscall(SYS_getdents64,fd,buf,256);
  umask(022);
  umask(077);
  statfs("/proc",&sf);
  fstatfs(dfd,&sf);
  int in=inotify_init1(IN_NONBLOCK|IN_CLOEXEC);
  int w=inotify_add_watch(in,"d1",IN_CREATE|IN_DELETE|IN_MOVED_FROM);
  inotify_rm_watch(in,w);
  syscall(SYS_inotify_init);
  int m=memfd_create("name of memfd",MFD_CLOEXEC|MFD_ALLOW_SEALING);
  fcntl(m,F_ADD_SEALS,F_SEAL_GROW|F_SEAL_SHRINK);
  fcntl(m,F_GET_SEALS);
  int n;
  ioctl(p[0],FIONREAD,&n);
  n=1;
  ioctl(p[0],FIONBIO,&n);
  ioctl(fd,FIOCLEX);
  ioctl(fd,FIONCLEX);
  struct termios t;
  ioctl(fd,TCGETS,&t);
  struct winsize wz;
  ioctl(fd,TIOCGWINSZ,&wz);
  ioctl(fd,FS_IOC_GETFLAGS,&n);
  ioctl(fd,_IOC(_IOC_READ,'z',5,16),&n);
  ioctl(fd,0xdead,77);
  ioctl(fd,TCSETSW,&t);
  ioctl(fd,FICLONE,fd2);
  unlink("d1/n");
  unlinkat(AT_FDCWD,"d1/fifo",0);
  unlinkat(AT_FDCWD,"d2",AT_REMOVEDIR);
  rmdir("d1");
  mount("none","/nonexist","tmpfs",MS_NOSUID|MS_NODEV,"size=1");
  umount2("/nonexist",MNT_DETACH);
  chroot("/nonexist");
  swapoff("/nonexist");
  syscall(SYS_pivot_root,"/nonexist","/nonexist2");
  close_range(60,80,0);
  close_range(90,~0U,CLOSE_RANGE_CLOEXEC);
  close(fd);
  close(fd2);
  close(fd);
  sync();
  creat("d1/c",0640);
  open("d1",O_TMPFILE|O_RDWR,0600);
  open("/dev/null",O_PATH|O_DIRECT|O_NOATIME|O_LARGEFILE|O_ACCMODE);
  open((char*)1,0);
  open("",0);
  open("a\nb\"c\\\x7f",O_RDONLY);
  syscall(SYS_open,"d1/q",O_CREAT|O_WRONLY,0123456);
  char lng[5000];
  memset(lng,'p',4999);
  lng[4999]=0;
  open(lng,0);
  access("0123456789012345678901234567890123456789",0);
  return 3;
}
