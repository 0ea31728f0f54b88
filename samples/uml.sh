#!/bin/sh
# A whole Linux kernel as a guest: Debian's user-mode Linux, with an initramfs of busybox.
#
#   sh samples/uml.sh [DIRECTORY]
#
# makes DIRECTORY (./uml) with linux.uml and initrd.gz, and says
# how to run it. Needs the packages user-mode-linux and busybox-static:
#
#   apt-get install user-mode-linux busybox-static
#
# An init of your own: INIT=FILE sh samples/uml.sh
set -eu

target=${1:-uml}
kernel=${KERNEL:-/usr/bin/linux.uml}
if [ ! -e "$kernel" ]; then
    echo "$kernel is not there: apt-get install user-mode-linux busybox-static" >&2
    exit 2
fi
mkdir -p "$target"
sh "$(dirname "$0")/initrd.sh" "$target/initrd.gz"
cp "$kernel" "$target/linux.uml"

path=$(cd "$target" && pwd)
echo "kprobe-tui run --root / --env TMPDIR=/dev/shm \\"
echo "    $path/linux.uml mem=64M initrd=$path/initrd.gz con=null con0=fd:0,fd:1"
