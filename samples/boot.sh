#!/bin/sh
# Everything for a first boot: Debian's kernel, its modules, and a root of busybox.
#
#   sh samples/boot.sh [DIRECTORY]
#
# makes DIRECTORY (./boot) with vmlinuz, modules/ and root/, and says how to boot them. The packages
# are fetched with apt-get and unpacked, never installed: neither root nor Debian is needed, only
# apt-get and dpkg-deb. Where a kernel lies already, KERNEL=FILE names it, and MODULES=DIR its modules.
#
#   PACKAGE=linux-image-cloud-amd64   another kernel of Debian's (linux-image-amd64)
#   SUITE=trixie                      from another release; otherwise from the host's own sources
set -eu

target=${1:-boot}
package=${PACKAGE:-linux-image-amd64}
mirror=${MIRROR:-http://deb.debian.org/debian}
for tool in apt-get apt-cache dpkg-deb; do
    if ! command -v "$tool" > /dev/null; then
        echo "$tool is not there; a static busybox and a vmlinuz are all that a boot needs" >&2
        exit 2
    fi
done
mkdir -p "$target"
work=$(mktemp -d "$target/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
work=$(cd "$work" && pwd)
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/debs"
: > "$work/status"
cat > "$work/apt.conf" <<END
#clear APT::Architectures;
#clear APT::Update;
#clear DPkg;
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::State "$work/state";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
END
if [ -n "${SUITE:-}" ]; then
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    {
        echo "deb [signed-by=$keys] $mirror $SUITE main"
        case $SUITE in
        *-backports) echo "deb [signed-by=$keys] $mirror ${SUITE%-backports} main" ;;
        sid | unstable | testing | experimental) ;;
        *) echo "deb [signed-by=$keys] $mirror-security $SUITE-security main" ;;
        esac
    } > "$work/sources.list"
    cat >> "$work/apt.conf" <<END
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "/dev/null";
END
    case $SUITE in *-backports) echo "APT::Default-Release \"$SUITE\";" >> "$work/apt.conf" ;; esac
fi
export APT_CONFIG="$work/apt.conf"

apt-get -qq update
fetch() { # PACKAGE: unpack its newest version below $work/tree
    (cd "$work/debs" && apt-get -qq download "$1")
    for file in "$work/debs"/*.deb; do dpkg-deb -x "$file" "$work/tree"; done
    rm "$work/debs"/*.deb
}
fetch busybox-static
if [ -n "${KERNEL:-}" ]; then
    cp "$KERNEL" "$target/vmlinuz"
    modules=${MODULES:-}
else
    real=$(apt-cache depends "$package" | sed -n 's/^ *Depends: *\(linux-image-[^ ]*\)$/\1/p' | head -1)
    fetch "${real:-$package}"
    rm -rf "$target/modules"
    cp "$work/tree"/boot/vmlinuz-* "$target/vmlinuz"
    for place in "$work/tree/lib/modules" "$work/tree/usr/lib/modules"; do
        [ ! -d "$place" ] || mv "$place" "$target/modules"
    done
    modules=${MODULES:-$target/modules}
fi

root=$target/root
rm -rf "$root"
mkdir "$root"
for folder in bin dev etc mnt proc root run sbin sys tmp; do mkdir "$root/$folder"; done
for place in "$work/tree/bin/busybox" "$work/tree/usr/bin/busybox"; do
    [ ! -e "$place" ] || cp "$place" "$root/bin/busybox"
done
for name in cat echo ls mkdir mount sh switch_root; do ln -s busybox "$root/bin/$name"; done
ln -s ../bin/busybox "$root/sbin/modprobe"
cat > "$root/init" <<'END'
#!/bin/sh
# Mounts what every system has, then gives a shell; of a disk it boots the system on it.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in virtio_pci virtio_blk ext4; do modprobe -q "$module"; done
disk= how=ro next=/sbin/init
for word in $(cat /proc/cmdline); do
    case $word in
    root=*) disk=${word#root=} ;;
    init=*) next=${word#init=} ;;
    rw) how=rw ;;
    esac
done
if [ -n "$disk" ] && mount -o "$how" "$disk" /mnt; then
    for place in dev proc sys; do mount --move "/$place" "/mnt/$place"; done
    exec switch_root /mnt "$next"
fi
echo "Linux $(uname -r); poweroff -f ends it"
while :; do
    setsid -c sh < /dev/ttyS0 > /dev/ttyS0 2>&1
done
END
chmod 755 "$root/init"

if [ -n "$modules" ]; then
    echo "kprobe-tui boot --init $root --modules $modules \\"
    echo "    --module virtio_pci --module virtio_blk --module ext4 $target/vmlinuz"
else
    echo "kprobe-tui boot --init $root $target/vmlinuz"
fi
echo "# A system on a disk: --disk IMAGE --append 'root=/dev/vda rw'" >&2
