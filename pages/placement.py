"""The placement lab: two pipelines over one checkpoint, and why unit gains hide what sets them apart."""

from qkdemo.labs.placement import LAB
from qkdemo.web.lab.page import lab_page
from qkdemo.web.lab.parts.contracts import contracts

lab_page(LAB, head=contracts)
