#include <unistd.h>

#include "engine/verb/doctor-i.h"

void doctor_look_at_system(struct engine_diagnosis *d)
{
	if (access("/Library/Filesystems/macfuse.fs", F_OK) == 0)
		doctor_finds(d, ENGINE_WEAK, "fuse", "", "macFUSE is there, and not used yet");
	else
		doctor_finds(d, ENGINE_WEAK, "fuse", "brew install --cask macfuse",
			     "macFUSE is not installed: clones cannot be mounted");
	doctor_finds(d, ENGINE_WEAK, "sandbox", "", "macOS has none of the walls that 'run' needs");
}
