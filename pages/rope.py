"""The rotary lab: one query and one key, normalised before and after rotary positions, moved through the text."""

from qkdemo.labs.rope import LAB
from qkdemo.web.lab.page import lab_page

lab_page(LAB)
