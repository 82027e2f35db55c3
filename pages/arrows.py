"""The arrows: one query and five keys in the plane, which can be taken hold of."""

from qkdemo.labs.arrows import LAB
from qkdemo.web.lab.page import lab_page
from qkdemo.web.lab.parts.arrows_exhibit import arrows_body

lab_page(LAB, arrows_body)
