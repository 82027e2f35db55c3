"""The training page: twins train side by side, one with plain attention and one with a remedy."""

from qkdemo.labs.training import LAB
from qkdemo.web.lab.page import lab_page
from qkdemo.web.training.page import seeds, training_body

lab_page(LAB, training_body, {"training.seeds.tab": seeds})
