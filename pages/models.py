"""The models page: a hundred public implementations, each choice in words, with its source."""

from qkdemo.labs.models import LAB
from qkdemo.web.explored import counts_explored
from qkdemo.web.lab.page import lab_page
from qkdemo.web.lab.parts.models_table import models_body, show_families

lab_page(LAB, models_body, {"models.families": show_families, "explored.counts_tab": counts_explored})
