"""The drift lab: plain attention beside its normalised twin, while the weights grow."""

from qkdemo.labs.drift import LAB
from qkdemo.web.lab.page import lab_page

lab_page(LAB)
