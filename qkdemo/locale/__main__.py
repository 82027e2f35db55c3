"""`python -m qkdemo.locale <language>`: makes `qkdemo/locale/<language>/qkdemo.po`, or brings it up to date.

It prints how much is translated and what is wrong; the exit status is 0, 1 for sentences with a fault or a file that
cannot be read, 2 for a name that is no language's.
"""

import sys

from qkdemo.locale import ENGLISH, PSEUDO
from qkdemo.locale.cldr import locale_of
from qkdemo.locale.tables import FOLDER, PO
from qkdemo.messages import say
from qkdemo.notation import counted


def main(words: list[str]) -> int:
    """Bring one language up to date; returns the exit status."""
    try:
        from babel.messages.pofile import PoFileError  # noqa: PLC0415  it may not be installed

        from qkdemo.locale.catalogue import updated  # noqa: PLC0415
    except ModuleNotFoundError as error:
        return _refused(say("command.needs", name=error.name))
    if len(words) != 1 or words[0].startswith("-"):
        return _refused(say("translating.usage"))
    spoken = words[0]
    if spoken in (ENGLISH, PSEUDO) or locale_of(spoken) is None:
        return _refused(say("translating.unknown", name=spoken))
    path = FOLDER / spoken / PO
    try:
        found = updated(path)
    except (PoFileError, UnicodeDecodeError) as error:
        sys.stderr.write(say("translating.unreadable", path=path, why=error) + "\n")
        return 1
    lines = [say("translating.done", path=path, said=counted(found.said), all=counted(found.all))]
    lines += [say("translating.taken", n=counted(found.taken))] if found.taken else []
    lines += [say("translating.fuzzy", n=counted(len(found.fuzzy)))] if found.fuzzy else []
    lines += [f"  {key}" for key in found.fuzzy]
    lines += [say("translating.wrong", n=counted(len(found.wrong)))] if found.wrong else []
    for key, faults in found.wrong.items():
        lines += [f"  {key}: {say(f'translating.fault.{fault.word}', what=fault.what)}" for fault in faults]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if found.wrong else 0


def _refused(why: str) -> int:
    sys.stderr.write(why + "\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
