"""A system of another architecture, made without running one of its programs.

An emulated dpkg takes hours, so packages are only unpacked. What configuring them makes (users, PAM,
alternatives, units that are enabled) does not depend on the processor: it is taken from a system of
the same release for this machine, where dpkg did run. The initrd is made here.
"""

import lzma
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

TRIPLET = {"arm64": "aarch64-linux-gnu", "amd64": "x86_64-linux-gnu"}
MERGED = ("bin", "sbin", "lib", "lib64")  # links into /usr
# Below these nothing is taken from the other system.
APART = re.compile(r"(proc|sys|dev|run|tmp|boot|src|build|ccache|guest|foreign|foreign\.ini|usr/lib/modules|"
                   r"etc/ld\.so\.cache|var/lib/(dpkg|apt)|var/cache/(apt|ldconfig)|var/lib/initramfs-tools)(/|$)")
CAPABILITY = "security.capability"
MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
MAY_LACK = ("crc32c_generic",)  # later kernels have it built in under another name
INIT = """\
#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
for module in %s; do $b insmod /$module || echo "initrd: $module was not loaded"; done
until [ -b /dev/vda ]; do $b sleep 0.1; done
$b mount -t ext4 /dev/vda /root && $b mount --move /dev /root/dev && exec $b switch_root /root /sbin/init
echo 'initrd: /dev/vda cannot be mounted'
$b poweroff -f
"""
CROSS_FILE = """\
[binaries]
c = ['ccache', '{gcc}-gcc', '--sysroot=/foreign']
ar = '{gcc}-ar'
strip = '{gcc}-strip'
pkgconfig = 'pkg-config'
[properties]
sys_root = '/foreign'
pkg_config_libdir = '/foreign/usr/lib/{gcc}/pkgconfig:/foreign/usr/share/pkgconfig'
needs_exe_wrapper = true
[host_machine]
system = 'linux'
cpu_family = '{cpu}'
cpu = '{cpu}'
endian = 'little'
"""


def compiler_package(arch):
    return "gcc-" + TRIPLET[arch].replace("_", "-")


def cross_file(arch):
    """For meson: the compiler is that of the other system, which sees this one as /foreign."""
    return CROSS_FILE.format(gcc=TRIPLET[arch], cpu=TRIPLET[arch].split("-", 1)[0])


def apt_words(arch, folder):
    """Options for an apt that has never installed anything, for this architecture, with its files in a folder."""
    options = {"APT::Architecture": arch, "APT::Architectures": arch, "APT::Install-Recommends": "false",
               "APT::Sandbox::User": "root", "Dir::State": folder, "Dir::State::status": f"{folder}/status",
               "Dir::Cache": folder}
    return ["apt-get", *(f"-o{name}={value}" for name, value in options.items())]


def unpack(archives, root):
    """Every package below `root`, whose top directories are links into /usr."""
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for package in sorted(archives.glob("*.deb")):
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as files:
            subprocess.run(["tar", "-x", "-p", "--keep-directory-symlink", "--numeric-owner", "-C", root],
                           stdin=files.stdout, check=True)
        if files.returncode:
            raise OSError(f"{package.name} cannot be unpacked")


def record(archives):
    """What dpkg would have written down of packages that were only unpacked: that they are installed."""
    entries = []
    for package in sorted(archives.glob("*.deb")):
        said = subprocess.run(["dpkg-deb", "--field", package], stdout=subprocess.PIPE, text=True, check=True).stdout
        name, rest = said.split("\n", 1)
        entries.append(f"{name}\nStatus: install ok installed\n{rest}")
    return "\n".join(entries)


def owned(native):
    """Paths that come with a package of the other system."""
    paths = set()
    for names in (native / "var" / "lib" / "dpkg" / "info").glob("*.list"):
        for path in names.read_text().splitlines():
            first = path.lstrip("/").split("/", 1)[0]
            paths.add(("usr/" if first in MERGED else "") + path.lstrip("/"))
    return paths


def adopt(native, root, arch):
    """What was made when the packages of the other system were configured: files of no package, owners, modes."""
    packaged, machine = owned(native), re.compile(f"{TRIPLET[arch]}|{arch}")
    for at, folders, names in os.walk(native):
        here = os.path.relpath(at, native)
        inside = {n: os.path.normpath(os.path.join(here, n)) for n in [*folders, *names]}
        wanted = {n: path for n, path in inside.items()
                  if not APART.match(path) and not machine.search(path) and (root / here).is_dir()}
        folders[:] = [n for n in folders if n in wanted and not (native / wanted[n]).is_symlink()]
        for path in wanted.values():
            if os.path.lexists(root / path):
                take_mode(native / path, root / path)
            elif path not in packaged:
                take(native / path, root / path, machine)


def take(source, target, machine):
    if source.is_symlink():
        if not machine.search(os.readlink(source)):
            target.symlink_to(os.readlink(source))
        return
    if source.is_dir():
        target.mkdir()
    elif source.is_file():
        shutil.copy2(source, target)
    else:
        return
    take_mode(source, target)


def take_mode(source, target):
    """Owner, mode and capabilities; links and files that are something else there stay as they are."""
    have, want = target.lstat(), source.lstat()
    if stat.S_ISLNK(want.st_mode) or stat.S_IFMT(have.st_mode) != stat.S_IFMT(want.st_mode):
        return
    if (have.st_uid, have.st_gid, have.st_mode) != (want.st_uid, want.st_gid, want.st_mode):
        os.chown(target, want.st_uid, want.st_gid)
        target.chmod(stat.S_IMODE(want.st_mode))
    if CAPABILITY in os.listxattr(source):
        os.setxattr(target, CAPABILITY, os.getxattr(source, CAPABILITY))


def kernel_version(root):
    return next((root / "usr" / "lib" / "modules").iterdir()).name


def modules(root):
    """Paths of the modules that find the disk, each after those it needs; depmod has run."""
    folder, order = root / "usr" / "lib" / "modules" / kernel_version(root), []
    name_of = lambda path: Path(path).name.split(".ko")[0].replace("-", "_")
    needs = dict(line.split(":") for line in (folder / "modules.dep").read_text().splitlines())
    by_name = {name_of(path): path for path in needs}
    built_in = {name_of(path) for path in (folder / "modules.builtin").read_text().splitlines()}

    def add(path):
        for other in needs[path].split():
            add(other)
        if folder / path not in order:
            order.append(folder / path)

    for name in MODULES:
        if name in by_name:
            add(by_name[name])
        elif name not in built_in and name not in MAY_LACK:
            raise OSError(f"the kernel has no module '{name}'")
    return order


def archive(files):
    """A cpio archive as the kernel reads it: name, mode, bytes of each."""
    out = bytearray()
    for number, (name, mode, data) in enumerate([*files, ("TRAILER!!!", 0, b"")]):
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        out += b"070701" + b"".join(b"%08x" % f for f in fields) + name.encode() + b"\0"
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)
    return bytes(out)


def initrd(root):
    """busybox, the modules that find the disk, and a script that starts the system on it."""
    files = [(name, stat.S_IFDIR | 0o755, b"") for name in ("bin", "dev", "root")]
    files.append(("bin/busybox", stat.S_IFREG | 0o755, (root / "usr" / "bin" / "busybox").read_bytes()))
    names = []
    for path in modules(root):
        data = path.read_bytes()
        names.append(path.name.removesuffix(".xz"))
        files.append((names[-1], stat.S_IFREG | 0o644, lzma.decompress(data) if path.suffix == ".xz" else data))
    files.append(("init", stat.S_IFREG | 0o755, (INIT % " ".join(names)).encode()))
    return archive(files)
