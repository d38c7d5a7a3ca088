"""What a three-way merge of pictures must give, where that can be foreseen without merging.

docs/design/merge.md has the whole table. Here are the cases that are too simple to be wrong: one side
changed nothing, or both changed other paths. Everything else is judged by what is promised of
any merge: all or nothing, and what the receipt says.
"""

CLEAR, CONFLICT, UNCLEAR = "clear", "conflict", "unclear"


def changed(base, side):
    return {p for p in base.keys() | side.keys() if base.get(p) != side.get(p)}


def moved(base, side, paths):
    """Whether something may be taken for a rename."""
    came = any(p in side and p not in base and side[p][0] != "dir" for p in paths)
    went = any(p in base and p not in side and base[p][0] != "dir" for p in paths)
    return came and went


def linked(pics, paths):
    return any(p in pic and pic[p][5] is not None for pic in pics for p in paths)


def in_the_way(ours, theirs, one, other):
    """Whether a path of one side is above one of the other, and is not a directory in both."""
    def is_dir(pic, path):
        return path in pic and pic[path][0] == "dir"

    for path in other:
        at = path.rfind(b"/")
        while at > 0:
            above = path[:at]
            if above in one and not (is_dir(ours, above) and is_dir(theirs, above)):
                return True
            at = path.rfind(b"/", 0, at)
    return False


def foresee(base, ours, theirs):
    """(CLEAR, picture), (CONFLICT, None) or (UNCLEAR, None)."""
    if base is None:
        return UNCLEAR, None
    by_ours, by_theirs = changed(base, ours), changed(base, theirs)
    if not by_theirs or ours == theirs:
        return CLEAR, ours
    if not by_ours:
        return CLEAR, theirs
    pics = (base, ours, theirs)
    if (moved(base, ours, by_ours) or moved(base, theirs, by_theirs)
            or linked(pics, by_ours | by_theirs)
            or in_the_way(ours, theirs, by_ours, by_theirs)
            or in_the_way(ours, theirs, by_theirs, by_ours)):
        return UNCLEAR, None
    both = {p for p in by_ours & by_theirs if ours.get(p) != theirs.get(p)}
    if both:
        return (CONFLICT if any(clash(base, ours, theirs, p) for p in both) else UNCLEAR), None
    merged = dict(ours)
    for path in by_theirs:
        merged.pop(path, None)
        if path in theirs:
            merged[path] = theirs[path]
    return CLEAR, merged


def clash(base, ours, theirs, path):
    """What nothing can settle: one removed a file that the other changed, or both its mode."""
    sides = [pic.get(path) for pic in (base, ours, theirs)]
    if base.get(path) is None or any(s is not None and s[0] != "file" for s in sides):
        return False
    return None in sides or len({s[1] for s in sides}) == 3
