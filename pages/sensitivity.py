"""The sensitivity page: final loss against learning rate, a curve per remedy, drawn as its runs finish."""

from qkdemo.labs.learning_rates import LAB
from qkdemo.web.explored import losses_explored
from qkdemo.web.lab.page import lab_page
from qkdemo.web.training.rates_page import rates_body

lab_page(LAB, rates_body, {"explored.tab": losses_explored}, opened_first=False)
