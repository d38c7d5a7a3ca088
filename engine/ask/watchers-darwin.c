#include "engine/ask/watchers-i.h"

bool watchers_possible(int top)
{
	return true;
}
