"""The latent-attention lab: QK norm on keys that are never formed."""

from qkdemo.labs.mla import LAB
from qkdemo.web.lab.page import lab_page

lab_page(LAB)
