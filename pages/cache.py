"""The cache lab: decoding with a KV cache, held against a fresh pass, step by step."""

from qkdemo.labs.cache import LAB
from qkdemo.web.lab.page import lab_page

lab_page(LAB)
