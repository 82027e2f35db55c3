"""The speaker's window beside a lecture."""

from qkdemo.web.track.notes import notes

notes()
