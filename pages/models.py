"""The models page: a hundred public implementations, each choice in words, with its source."""

from qkdemo.labs.models import LAB
from qkdemo.web.explored import counts_explored
from qkdemo.web.lab.models_table import models_body, show_families
from qkdemo.web.lab.page import lab_page

lab_page(LAB, models_body, {"explored.counts_tab": counts_explored, "models.families": show_families})
