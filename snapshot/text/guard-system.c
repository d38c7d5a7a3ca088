/*
 * guard-system.c - rules for the files of a machine: those that make it boot, let people in, or run
 * by themselves.
 *
 * They come before the built-in ones, whose names mean something in a project, and after those that
 * people wrote. Every pattern counts from the top.
 */
#include <assert.h>
#include <string.h>

#include "snapshot/text/guard.h"

/* clang-format off */
static const struct guard_rule rules[] = {
	{ "accounts", "/etc/passwd*\n/etc/shadow*\n/etc/group*\n/etc/gshadow*\n/etc/subuid*\n/etc/subgid*\n/etc/sudo*\n"
	  "/etc/doas.conf\n/etc/pam.conf\n/etc/pam.d/\n/etc/security/\n/etc/polkit-1/\n"
	  "/usr/share/polkit-1/\n/etc/nsswitch.conf\n/etc/login.defs\n/etc/shells\n/etc/securetty\n",
	  "it says who may log in, and who may become whom", GUARD_HOLD },
	{ "confinement", "/etc/apparmor/\n/etc/apparmor.d/\n/etc/selinux/\n/etc/audit/\n/etc/fapolicyd/\n/etc/bubblewrap/\n"
	  "/etc/firejail/\n",
	  "it says what programs may do, and what is written down of it", GUARD_HOLD },
	{ "remote-access", "/etc/ssh/\n/etc/hosts.allow\n/etc/hosts.deny\n/etc/hosts.equiv\n/etc/krb5*\n/etc/exports*\n"
	  "/etc/samba/\n/root/.ssh/\n/home/*/.ssh/\n",
	  "it says who reaches this machine from elsewhere", GUARD_HOLD },
	{ "loader", "/etc/ld.so.preload\n/etc/ld.so.conf\n/etc/ld.so.conf.d/\n/etc/ld.so.cache\n/etc/ld-musl-*.path\n",
	  "every program loads what it names", GUARD_HOLD },
	{ "boot", "/boot/\n/efi/\n/init\n/linuxrc\n/vmlinuz*\n/initrd*\n/etc/fstab\n/etc/crypttab\n/etc/default/grub\n/etc/default/grub.d/\n/etc/grub.d/\n"
	  "/etc/kernel/\n/etc/initramfs-tools/\n/etc/dracut.conf\n/etc/dracut.conf.d/\n/etc/mkinitcpio*\n/etc/inittab\n"
	  "/etc/modprobe.d/\n/etc/modules\n/etc/modules-load.d/\n/etc/sysctl.conf\n/etc/sysctl.d/\n/lib/modules/\n"
	  "/usr/lib/modules/\n/lib/firmware/\n/usr/lib/firmware/\n",
	  "the machine boots with it, or does not boot", GUARD_HOLD },
	{ "services", "/etc/systemd/\n/lib/systemd/\n/usr/lib/systemd/\n/usr/local/lib/systemd/\n/etc/init.d/\n/etc/init/\n"
	  "/etc/rc.local\n/etc/rc.d/\n/etc/rc?.d/\n/etc/rcS.d/\n/etc/runlevels/\n/etc/conf.d/\n/etc/cron*\n/etc/anacrontab\n/etc/at.allow\n"
	  "/var/spool/cron/\n/var/spool/at/\n/etc/xinetd.d/\n/etc/inetd.conf\n/etc/udev/\n/lib/udev/\n/usr/lib/udev/\n"
	  "/etc/dbus-1/\n/usr/share/dbus-1/\n/etc/logrotate*\n/etc/tmpfiles.d/\n/usr/lib/tmpfiles.d/\n"
	  "/etc/default/\n/etc/sysconfig/\n/etc/dhcp*\n/etc/networkd-dispatcher/\n/etc/NetworkManager/dispatcher.d/\n/etc/network/\n"
	  "/etc/wireguard/\n/etc/ufw/\n/etc/wpa_supplicant/\n/etc/openvpn/\n/etc/ppp/\n/etc/acpi/\n/etc/pm/\n/etc/rsyslog*\n"
	  "/etc/snmp/\n/etc/aliases\n/etc/cloud/\n/etc/dkms/\n/etc/lvm/\n/etc/smartd*\n/etc/smartmontools/\n/etc/mdadm*\n"
	  "/etc/binfmt.d/\n/etc/sysusers.d/\n/etc/extensions/\n/etc/needrestart/\n/etc/letsencrypt/\n/etc/docker/\n"
	  "/etc/containerd/\n/etc/containers/\n/etc/cni/\n/etc/libvirt/\n/etc/fail2ban/\n/var/lib/systemd/\n/var/lib/cloud/\n"
	  "/var/lib/extensions/\n",
	  "the machine runs it by itself, mostly as root", GUARD_HOLD },
	{ "login", "/etc/profile\n/etc/profile.d/\n/etc/environment\n/etc/environment.d/\n/etc/bash.bashrc\n"
	  "/etc/bash.bash_logout\n/etc/bashrc\n/etc/zsh/\n/etc/zshenv\n/etc/fish/\n/etc/csh*\n/etc/skel/\n/etc/update-motd.d/\n"
	  "/etc/bash_completion*\n/etc/inputrc\n/etc/vim/\n/etc/emacs/\n/etc/tmux.conf\n/etc/screenrc\n/etc/gdb/\n/etc/mailcap\n"
	  "/root/\n/etc/X11/\n/etc/xdg/autostart/\n",
	  "it runs when somebody logs in", GUARD_HOLD },
	{ "trust", "/etc/ssl/\n/etc/pki/\n/etc/ca-certificates*\n/usr/share/ca-certificates/\n"
	  "/usr/local/share/ca-certificates/\n/usr/share/keyrings/\n",
	  "it says whose certificates and signatures this machine believes", GUARD_HOLD },
	{ "sources", "/etc/apt/\n/etc/yum.conf\n/etc/yum.repos.d/\n/etc/yum/\n/etc/dnf/\n/etc/zypp/\n/etc/apk/\n/etc/pacman*\n"
	  "/etc/dpkg/\n/etc/rpm/\n/etc/npmrc\n/etc/pip.conf\n"
	  "/etc/gitconfig\n/etc/python*\n/etc/perl/\n/etc/gemrc\n",
	  "it says where software comes from, and what runs when some is installed", GUARD_HOLD },
	{ "package-database", "/var/lib/dpkg/\n/var/lib/apt/\n/var/lib/rpm/\n/usr/lib/sysimage/\n/lib/apk/\n/var/lib/pacman/\n"
	  "/var/lib/dnf/\n/var/lib/alternatives/\n/etc/alternatives/\n",
	  "a package manager takes it for what is installed: install the package instead", GUARD_HOLD },
	{ "programs", "/bin\n/sbin\n/lib\n/lib32\n/lib64\n/libx32\n/usr\n/opt\n",
	  "a user who runs it, root too, runs what is in it", GUARD_HOLD },
	{ "identity", "/etc/machine-id\n/var/lib/dbus/machine-id\n/etc/hostname\n/etc/hostid\n",
	  "other machines know this one by it", GUARD_WARN },
	{ "network", "/etc/hosts\n/etc/resolv.conf\n/etc/netplan/\n/etc/NetworkManager/\n/etc/nftables*\n"
	  "/etc/iptables/\n/etc/firewalld/\n",
	  "it says whom this machine reaches", GUARD_WARN },
	{ GUARD_OWNER, NULL, "its owner changes, or it is new and not root's", GUARD_HOLD },
	{ GUARD_ACCESS, NULL, "more people may read or write it than before, or its ACL differs", GUARD_HOLD },
};
/* clang-format on */

const struct guard_rule *guard_system_rules(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(rules);
	return rules;
}

const struct guard_rule *guard_system_rule_named(const char *name)
{
	size_t i = 0;

	while (strcmp(rules[i].name, name) != 0) {
		i++;
		assert(i < ARRAY_LEN(rules));
	}
	return &rules[i];
}
