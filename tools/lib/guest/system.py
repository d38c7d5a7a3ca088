"""The files that make a Debian system a guest: users' logins, a service that runs the second disk."""

# These only cost time under emulation.
MASKED = """
    apt-daily.timer apt-daily-upgrade.timer man-db.timer fstrim.timer e2scrub_all.timer e2scrub_reap.service
    dpkg-db-backup.timer systemd-networkd.service systemd-networkd-wait-online.service
    systemd-timesyncd.service serial-getty@hvc0.service
""".split()
UNPACK = """\
#!/bin/sh
# The second disk is a tar archive: nothing to mount. It is empty while the state of the booted guest
# is saved, and full when the guest goes on from there, so no read may come from the cache.
echo "guest: ready"
until dd if=/dev/vdb iflag=direct bs=4096 count=1 2>/dev/null | head -c 5 | grep -q guest; do sleep 0.5; done
blockdev --flushbufs /dev/vdb
tar -xf /dev/vdb -C / && exec /usr/bin/python3 -B /guest/inside.py
"""
SERVICE = """\
[Unit]
Description=run the payload of the second disk
After=multi-user.target systemd-logind.service dbus.service
[Service]
Type=exec
ExecStart=/usr/local/sbin/guest-payload
StandardOutput=journal+console
StandardError=journal+console
[Install]
WantedBy=multi-user.target
"""
AUTOLOGIN = """\
[Service]
ExecStart=
ExecStart=-/sbin/agetty --autologin %s --noclear %%I 115200 vt220
Restart=no
"""
PROFILE = "case $(tty) in /dev/hvc[12]) [ -r /run/guest/login ] && sh /run/guest/login; exit;; esac\n"


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def set_up(root, console):
    """Below `root`; nothing of it depends on the processor but the name of the console."""
    write(root / "etc/sudoers.d/u", "u ALL=(ALL) NOPASSWD: ALL\n", 0o440)
    write(root / "var/lib/systemd/linger/u", "")  # u's manager always runs, v's never does
    write(root / "etc/hostname", "guest\n")
    write(root / "etc/hosts", "127.0.0.1 localhost\n127.0.1.1 guest\n::1 localhost\n")
    write(root / "etc/fstab", "/dev/vda / ext4 rw,relatime 0 1\n")
    write(root / "etc/machine-id", "")
    write(root / "etc/modules", "fuse\noverlay\n")
    write(root / "etc/systemd/journald.conf", "[Journal]\nStorage=volatile\n")
    units = root / "etc/systemd/system"
    for unit in [*MASKED, f"serial-getty@{console}.service"]:
        link(units / unit, "/dev/null")
    write(root / "usr/local/sbin/guest-payload", UNPACK, 0o755)
    write(units / "guest-payload.service", SERVICE)
    link(units / "multi-user.target.wants" / "guest-payload.service", "../guest-payload.service")
    # hvc1 is root's terminal, hvc2 is u's; a situation starts the getty on it.
    for port, user in ((1, "root"), (2, "u")):
        write(units / f"serial-getty@hvc{port}.service.d/autologin.conf", AUTOLOGIN % user)
    for home in ("root", "home/u"):
        write(root / home / ".bash_profile", PROFILE)
