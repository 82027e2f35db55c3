"""The epsilon lab: one vector that shrinks, under every rule for what keeps its divisor from zero."""

from qkdemo.labs.epsilon import LAB
from qkdemo.web.lab.page import lab_page

lab_page(LAB)
