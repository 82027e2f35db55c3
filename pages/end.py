"""The end of a track: questions, and what a hall can take along."""

from qkdemo.web.track.ending import ending

ending()
