#include "base/user.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#define ROOM 16384

char *user_name(uid_t uid)
{
	struct passwd pw, *found = NULL;
	char room[ROOM], number[24];

	snprintf(number, sizeof(number), "%u", (unsigned)uid);
	if (getpwuid_r(uid, &pw, room, sizeof(room), &found) != 0 || !found ||
	    found->pw_name[0] == '\0')
		return strdup(number);
	return strdup(found->pw_name);
}
