#include "cli/globals.h"

const struct opt global_opts[] = {
	OPT_STR('C', NULL, "DIR", struct global_args, dir, "work as if started in DIR"),
	OPT_STR(0, "store", "DIR", struct global_args, store,
		"where snapshots are kept (default: $SNAPCOW_STORE, else snapcow in "
		"$XDG_DATA_HOME or ~/.local/share)"),
	OPT_FLAG(0, "json", struct global_args, json, "print one JSON object"),
	OPT_FLAG('q', "quiet", struct global_args, quiet, "print only what scripts need"),
	OPT_COUNT('v', "verbose", struct global_args, verbose, "say more on stderr"),
	OPT_STR(0, "color", "auto|always|never", struct global_args, color,
		"use colour (auto: on a terminal, unless NO_COLOR is set or TERM is not)"),
	OPT_FLAG('h', "help", struct global_args, help, "say how a command is used"),
	OPT_FLAG(0, "version", struct global_args, version, "the same as the command `version`"),
	OPT_END,
};
