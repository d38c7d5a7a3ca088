#include <string.h>

#include "engine/run/profile-i.h"

static const struct {
	const char *name, *text;
} built_in[] = {
	{ "build", "description: a compiler and its tests, with room and time, offline\n"
		   "extends: default\n"
		   "mem: 4G\n"
		   "pids: 2048\n"
		   "time: 1h\n"
		   "disk: 16G\n"
		   "inodes: 4000000\n" },
	{ "default", "description: what a run gets that asks for nothing\n"
		     "mem: 1G\n"
		     "pids: 512\n"
		     "time: 10m\n"
		     "disk: 4G\n"
		     "inodes: 1000000\n"
		     "nofile: 4096\n"
		     "net: none\n" },
	{ "node", "description: Node.js with the packages that npm has cached, offline\n"
		  "extends: build\n"
		  "mounts:\n"
		  "  - {host: ~/.npm, mode: ro, optional: true}\n"
		  "env:\n"
		  "  npm_config_offline: 'true'\n"
		  "  npm_config_update_notifier: 'false'\n"
		  "  npm_config_fund: 'false'\n"
		  "pass_env: [NODE_ENV]\n" },
	{ "offline-python", "description: Python with the packages that pip has cached, offline\n"
			    "extends: default\n"
			    "mounts:\n"
			    "  - {host: ~/.cache/pip, mode: ro, optional: true}\n"
			    "env:\n"
			    "  PIP_NO_INDEX: '1'\n"
			    "  PIP_DISABLE_PIP_VERSION_CHECK: '1'\n"
			    "pass_env: [VIRTUAL_ENV]\n" },
	{ "strict", "description: little of everything, for what nobody trusts\n"
		    "extends: default\n"
		    "cpu: 1\n"
		    "mem: 512M\n"
		    "pids: 128\n"
		    "time: 2m\n"
		    "disk: 1G\n"
		    "inodes: 100000\n"
		    "fsize: 256M\n"
		    "nofile: 256\n"
		    "net: none\n"
		    "seccomp: strict\n"
		    "hide: ['@secrets']\n" },
};

const char *profile_built_in(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
		if (strcmp(built_in[i].name, name) == 0)
			return built_in[i].text;
	return NULL;
}

const char *profile_built_in_name(size_t i)
{
	return i < ARRAY_LEN(built_in) ? built_in[i].name : NULL;
}
