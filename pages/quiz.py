"""The quiz: eight questions before a track and eight after it, whose numbers the labs compute from a seed."""

import streamlit as st

from qkdemo.messages import say
from qkdemo.tracks import quiz
from qkdemo.web.lab.controls import dials
from qkdemo.web.quiz.classes import arrive, for_a_class, joined
from qkdemo.web.quiz.page import sheet

arrive()
settings = dials(quiz.Settings, quiz.PRESETS, "quiz")
questions = quiz.quiz(settings)
st.title(say(f"quiz.page.title.{settings.track}"))
st.markdown(say(f"quiz.page.{settings.when}"))
code = joined()
sheet(settings, questions, code)
for_a_class(settings, code)
