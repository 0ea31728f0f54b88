#!/bin/sh
# An initial ramdisk of busybox, for a kernel that is booted as a guest.
#
#   sh samples/initrd.sh [FILE]
#
# makes FILE (./initrd.gz), the same bytes of the same busybox. Its /init says hello, shows
# processes and switches the machine off; INIT=FILE puts your own script or program there, and
# INIT=shell gives a shell. Needs the package busybox-static:
#
#   apt-get install busybox-static
set -eu

target=${1:-initrd.gz}
busybox=${BUSYBOX:-/usr/bin/busybox}
if [ ! -e "$busybox" ]; then
    echo "$busybox is not there: apt-get install busybox-static" >&2
    exit 2
fi
if ldd "$busybox" > /dev/null 2>&1; then
    echo "$busybox needs libraries: apt-get install busybox-static" >&2
    exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir "$root" "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
cp "$busybox" "$root/bin/busybox"
for name in sh cat cut date echo grep head ls mount poweroff ps seq sort sleep tail uname wc; do
    ln -s busybox "$root/bin/$name"
done
case ${INIT:-} in
"")
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
    ;;
shell)
    cat > "$root/init" <<'END'
#!/bin/sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
echo "Linux $(uname -r); poweroff -f ends it"
while :; do
    setsid -c sh < /dev/ttyS0 > /dev/ttyS0 2>&1
done
END
    ;;
*) cp "$INIT" "$root/init" ;;
esac
chmod 755 "$root/init"
find "$root" -exec touch -h -d @0 {} +
(cd "$root" && find . | LC_ALL=C sort) > "$work/names"
# The same files make the same archive, whatever inodes they have here.
if ! (cd "$root" && "$busybox" cpio -o -H newc --ignore-devno --renumber-inodes) \
    < "$work/names" > "$work/archive" 2> "$work/said"; then
    cat "$work/said" >&2
    exit 2
fi
gzip -9n < "$work/archive" > "$target"
