#include "cli/agents/guide.h"

const char agents_guide[] =
    "## Working in clones with snap\n"
    "\n"
    "Do not edit this project directly. Work in a clone, and let a person promote it.\n"
    "\n"
    "- `snap clone -n NAME` makes a clone and prints its path. Read and edit files there.\n"
    "- `snap run NAME -- COMMAND` runs a command in a sandbox on the clone. It can change the\n"
    "  clone and nothing else. Without NAME it runs on a clone that is thrown away.\n"
    "- `snap snapshot NAME -m TEXT` keeps a state; `snap rollback NAME` goes back to the last one.\n"
    "- `snap diff NAME` shows what you changed; `snap status NAME` how far the project moved on.\n"
    "- `snap rebase NAME` brings what changed in the project meanwhile into the clone.\n"
    "- `snap promote -n NAME` says what would reach the project, and what is in its way. Ask before\n"
    "  you run `snap promote NAME --check 'COMMAND'`; `snap undo` takes it back.\n"
    "- Try ideas beside each other: one clone for each, then compare their diffs.\n"
    "- Every command takes `--json`. Exit codes: 5 conflict, 7 held by the guard, 8 a check failed;\n"
    "  `snap help exit-codes` has them all. `hint:` lines say what to type next.\n";
