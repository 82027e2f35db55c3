"""The cost lab: what norms cost by formula, and on the machine that serves the page."""

from qkdemo.labs.cost import LAB
from qkdemo.web.explored import times_explored
from qkdemo.web.lab.page import lab_page

lab_page(LAB, explored=times_explored)
