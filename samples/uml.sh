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
busybox=${BUSYBOX:-/usr/bin/busybox}
for needed in "$kernel" "$busybox"; do
    if [ ! -e "$needed" ]; then
        echo "$needed is not there: apt-get install user-mode-linux busybox-static" >&2
        exit 2
    fi
done
if ldd "$busybox" > /dev/null 2>&1; then
    echo "$busybox needs libraries: apt-get install busybox-static" >&2
    exit 2
fi

mkdir -p "$target"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir "$root" "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
cp "$busybox" "$root/bin/busybox"
for name in sh cat cut date echo grep head ls mount poweroff ps seq sort sleep tail uname wc; do
    ln -s busybox "$root/bin/$name"
done
if [ -n "${INIT:-}" ]; then
    cp "$INIT" "$root/init"
else
    cat > "$root/init" <<'END'
#!/bin/sh
mount -t proc proc /proc
echo "Linux $(uname -r) with $(grep -c . /proc/modules) modules"
seq 1 100 | grep 7 | wc -l
echo hello > /tmp/greeting
cat /tmp/greeting
ps -o pid,comm | grep -v k | head -3
poweroff -f
END
fi
chmod 755 "$root/init"
find "$root" -exec touch -h -d @0 {} +
(cd "$root" && find . | LC_ALL=C sort) > "$work/names"
# The same files make the same archive, whatever inodes they have here.
if ! (cd "$root" && "$busybox" cpio -o -H newc --ignore-devno --renumber-inodes) \
    < "$work/names" > "$work/archive" 2> "$work/said"; then
    cat "$work/said" >&2
    exit 2
fi
gzip -9n < "$work/archive" > "$target/initrd.gz"
cp "$kernel" "$target/linux.uml"

path=$(cd "$target" && pwd)
echo "kprobe-tui run --root / --env TMPDIR=/dev/shm \\"
echo "    $path/linux.uml mem=64M initrd=$path/initrd.gz con=null con0=fd:0,fd:1"
