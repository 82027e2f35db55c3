"""The formats lab: attention stage by stage in five number formats, and what each of them loses."""

from qkdemo.labs.formats import LAB
from qkdemo.web.lab.page import lab_page

lab_page(LAB)
