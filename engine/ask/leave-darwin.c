#include "engine/ask/ask-i.h"

/* There are no groups of processes that end together. */
void launch_leave_group(void)
{
}
