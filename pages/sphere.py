"""The sphere: a query and its keys in space, arrows beside a sphere, and the score over both lengths."""

from qkdemo.labs.sphere import LAB
from qkdemo.web.lab.page import lab_page
from qkdemo.web.space.shown import sphere_body

lab_page(LAB, sphere_body)
