# shellcheck shell=bash
#
# packages.sh - what this project needs from the system, and how to get it.
#
# Sourced by tools/quickstart and tools/test.  packages_install PURPOSE... makes
# sure that everything for these purposes is there: silent if it was, one line if
# something had to be installed, a message on stderr and status 1 if it cannot be
# had.  May put a newer meson in front of PATH.  Purposes: build test fuzz bench programs.
# packages_open_fuse does the same for the device that clones are mounted with.

PACKAGES_FUSE_MIN=3.14
PACKAGES_MESON_MIN=1.0

# Debian names; `a|b` means either will do, the first is preferred.
packages_names() {
	case $1 in
	build)
		# gcc only recommends libc6-dev, and recommended packages are left out.
		echo gcc libc6-dev meson ninja-build 'pkg-config|pkgconf' libfuse3-dev fuse3 \
			libarchive-dev libcurl4-gnutls-dev libgit2-dev libgnutls28-dev libmicrohttpd-dev libnats-dev libseccomp-dev libsystemd-dev libxxhash-dev libsqlite3-dev libzstd-dev libjson-c-dev nettle-dev \
			zlib1g-dev libfyaml-dev scdoc python3
		;;
	test) echo libcmocka-dev python3 python3-jsonschema sqlite3 acl git curl openssl iproute2 clang 'clang-format-14|clang-format' ;;
	fuzz) echo clang ;; # and its runtime, see packages_fuzzer_runtime
	# mkfs.ext4 makes the disk that all contestants share; the others are contestants. The group
	# `remote` also takes docker-registry, nats-server and sshd, which are among the servers.
	bench) echo python3 zstd git curl e2fsprogs btrfs-progs xfsprogs fuse-overlayfs bindfs bubblewrap restic borgbackup casync rsync openssh-client ;;
	# What tests/programs runs on a clone, what tests/cli asks for an opinion; a test
	# is skipped where its program is missing.
	programs) echo fio stress-ng git sqlite3 rsync tar attr acl age openssh-client e2fsprogs btrfs-progs zsh fish mandoc apache2-utils skopeo libarchive-tools umoci uidmap debootstrap rpm strace procps awscli ;;
	# The servers of tests/remote, tests/net and of tools/bench/run remote, and promtool. Debian starts servers at once and at every boot.
	servers) echo docker-registry openssh-server nats-server prometheus slurmctld slurmd slurm-client munge nginx-light ;;
	esac
}

# The same needs in terms that hold on every system.
packages_commands() {
	case $1 in
	build) echo gcc meson ninja pkg-config fusermount3 scdoc python3 ;;
	test) echo python3 setfacl git curl openssl ip clang ;;
	fuzz) echo clang ;;
	bench) echo python3 zstd git curl mkfs.ext4 mkfs.btrfs mkfs.xfs fuse-overlayfs bindfs bwrap restic borg casync rsync ssh-keygen ;;
	programs) echo fio stress-ng git sqlite3 rsync tar setfattr setfacl age ssh-keygen mke2fs mkfs.btrfs zsh fish mandoc htpasswd skopeo bsdtar umoci newuidmap debootstrap rpmbuild strace pkill aws ;;
	servers) echo docker-registry sshd nats-server promtool slurmctld slurmd sbatch munged nginx ;;
	esac
}

packages_modules() {
	case $1 in
	build) echo fuse3 libarchive libcurl gnutls libgit2 libmicrohttpd libseccomp libsystemd libxxhash sqlite3 libzstd json-c nettle zlib libfyaml ;;
	test) echo cmocka ;;
	esac
}

packages_say() {
	printf '%s\n' "$@" >&2
}

# Prints those of the given package words of which no alternative is installed.
packages_missing() {
	local installed word name
	# shellcheck disable=SC2016,SC2068 # the braces are dpkg-query's; the words are to be split
	installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' ${@//|/ } 2>/dev/null || true)
	for word in "$@"; do
		for name in ${word//|/ }; do
			grep -qxF "$name installed" <<<"$installed" && continue 2
		done
		echo "$word"
	done
}

# Prints the first alternative of a package word that apt can install.
packages_candidate() {
	local name policy
	for name in ${1//|/ }; do
		policy=$(apt-cache policy "$name" 2>/dev/null || true)
		if [[ $policy =~ Candidate:\ [^\(] ]]; then
			echo "$name"
			return
		fi
	done
	echo "${1%%|*}" # let apt-get say that it does not know it
}

# Runs a command as root; where nobody can type a password, none is asked for.
packages_as_root() {
	local sudo=()
	if ((EUID != 0)); then
		sudo=(sudo)
		[[ -t 2 ]] || sudo=(sudo -n)
	fi
	"${sudo[@]}" "$@"
}

# Runs apt-get as root; its talk is shown only if it fails.
packages_apt() {
	local log status=0
	log=$(mktemp)
	packages_as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 "$@" \
		</dev/null >"$log" 2>&1 || status=$?
	((status == 0)) || tail -n 15 "$log" >&2
	rm -f "$log"
	return "$status"
}

packages_apt_install() {
	local attempt word names
	for attempt in 1 2; do
		names=()
		# A stale index is no reason to stop: install says whether it matters.
		packages_apt update || packages_say 'apt-get update failed, continuing'
		for word in "$@"; do names+=("$(packages_candidate "$word")"); done
		if packages_apt install -y --no-install-recommends "${names[@]}"; then
			echo "installed: ${names[*]}"
			return 0
		fi
		((attempt == 2)) || sleep 3
	done
	packages_say "error: apt-get could not install: ${names[*]}"
	return 1
}

# For systems where nothing can be installed: is what we need there all the same?
packages_verify() {
	local why=$1 purpose item lacking=()
	shift
	for purpose in "$@"; do
		for item in $(packages_commands "$purpose"); do
			command -v "$item" >/dev/null || lacking+=("$item")
		done
		for item in $(packages_modules "$purpose"); do
			pkg-config --exists "$item" 2>/dev/null || lacking+=("$item.pc")
		done
	done
	((${#lacking[@]})) || return 0
	packages_say "error: $why" "missing here: ${lacking[*]}" \
		"needed in all (NAME.pc: the development files of the pkg-config module NAME):"
	for purpose in "$@"; do
		packages_say "  to $purpose: $(packages_commands "$purpose") $(
			packages_modules "$purpose" | sed 's/[^ ]\+/&.pc/g'
		)"
	done
	return 1
}

# Debian 12 and later have libFuzzer in a package of its own, named after clang's version.
packages_fuzzer_runtime() {
	local dir major
	dir=$(clang --print-runtime-dir 2>/dev/null) || return 0
	compgen -G "${dir%/*}/*/libclang_rt.fuzzer*.a" >/dev/null && return
	compgen -G "$dir/libclang_rt.fuzzer*.a" >/dev/null && return
	major=$(clang -dumpversion)
	echo "libclang-rt-${major%%.*}-dev"
}

packages_version_at_least() {
	[[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]
}

packages_check_fuse() {
	pkg-config --atleast-version="$PACKAGES_FUSE_MIN" fuse3 && return
	packages_say "error: libfuse is too old: $(pkg-config --modversion fuse3), needed is $PACKAGES_FUSE_MIN" \
		'Debian 12, Ubuntu 24.04 and later releases have it; Ubuntu 22.04 does not.'
	return 1
}

# Ubuntu 22.04 has meson 0.61; a newer one goes into build-tools/, away from the system's Python.
packages_check_meson() {
	local venv
	venv=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build-tools
	[[ ! -x $venv/bin/meson ]] || export PATH="$venv/bin:$PATH"
	packages_version_at_least "$PACKAGES_MESON_MIN" "$(meson --version)" && return
	local have
	have=$(meson --version)
	if [[ -z $(packages_missing python3-venv) ]] || packages_apt_install python3-venv; then
		if python3 -m venv "$venv" && "$venv/bin/pip" install -q --retries 1 "meson>=$PACKAGES_MESON_MIN"; then
			export PATH="$venv/bin:$PATH"
			echo "installed: meson $(meson --version) in build-tools/ (the system has $have)"
			return 0
		fi
	fi
	rm -rf "$venv"
	packages_say "error: meson is too old: $have, needed is $PACKAGES_MESON_MIN" \
		"Installing it with pip failed; put a newer meson on PATH and run this again."
	return 1
}

packages_can_install() {
	command -v apt-get >/dev/null && command -v dpkg-query >/dev/null &&
		{ ((EUID == 0)) || command -v sudo >/dev/null; }
}

packages_install() {
	local purpose words=() missing=() runtime=
	for purpose in "$@"; do
		# shellcheck disable=SC2207 # package names hold no blanks
		words+=($(packages_names "$purpose"))
	done
	if ! command -v dpkg-query >/dev/null; then
		packages_verify 'this system does not use apt, so nothing can be installed for you' "$@" ||
			return 1
	else
		mapfile -t missing < <(packages_missing "${words[@]}" | sort -u)
		if ((${#missing[@]})); then
			if packages_can_install; then
				packages_apt_install "${missing[@]}" || return 1
			else
				packages_verify 'packages are missing, and installing them takes root or sudo' "$@" || {
					packages_say "as root: apt-get install ${missing[*]%%|*}"
					return 1
				}
			fi
		fi
	fi
	if [[ " $* " == *' fuzz '* ]] && packages_can_install; then
		runtime=$(packages_fuzzer_runtime)
		[[ -z $runtime ]] || packages_apt_install "$runtime" || return 1
	fi
	if [[ " $* " == *' build '* ]]; then
		packages_check_fuse || return 1
		packages_check_meson || return 1
	fi
}

# Distributions give everybody /dev/fuse; containers and small machines often do not, and without
# it nobody but root has clones.
packages_open_fuse() {
	[[ -c /dev/fuse && $(stat -c %a /dev/fuse) != *66 ]] || return 0
	if { ((EUID == 0)) || command -v sudo >/dev/null; } && packages_as_root chmod 0666 /dev/fuse; then
		echo '/dev/fuse was for root only; it is for everybody now, as distributions have it'
	else
		packages_say '/dev/fuse is for root only; as root: chmod 0666 /dev/fuse'
	fi
}
