"""A track as Markdown, to be edited: every question, its choices, and what was found.

* `markdown(track, base_url)`: the text; a figure is described by its finding, and stands live behind the link.
"""

from collections.abc import Iterator

from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.tracks.catalogue import TRACKS
from qkdemo.tracks.progress import Said
from qkdemo.tracks.stop import Choose, Estimate
from qkdemo.web.handout.sheet import Sheet


def markdown(track: str, base_url: str) -> str:
    """The text. `base_url` is where the app answers, for the links."""
    stops = TRACKS[track]
    title = say("handout.title", track=say(f"track.{track}.name"))
    parts = [f"# {title}", say("handout.lead_below", count=len(stops))]
    for at, stop in enumerate(stops):
        parts += _stop(Sheet(track, at, stop, Said(), base_url))
    return "\n\n".join(parts) + "\n"


def _stop(sheet: Sheet) -> Iterator[str]:
    yield f"## {sheet.number} · {sheet.sentence('title')}"
    yield sheet.sentence("question")
    match sheet.stop.ask:
        case Choose(words=words):
            yield "\n".join(f"- {sheet.in_words(word)}" for word in words)
        case Estimate(low=low, high=high):
            yield say("handout.estimate", low=written(low), high=written(high))
    yield f"{say('handout.mine')} \\_\\_\\_\\_\\_\\_"
    if sheet.found is None:
        yield say("handout.not_trained")
    else:
        kind = "right" if isinstance(sheet.stop.ask, Choose) else "measured"
        yield f"**{say(f'handout.{kind}', answer=sheet.in_words(sheet.found.answer))}** {sheet.sentence('explain')}"
    yield f"{say('handout.live')} <{sheet.address()}>"
