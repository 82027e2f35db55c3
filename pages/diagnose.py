"""Somebody's own tensors, checkpoint or training log: is it attention, which head, and what now?"""

from qkdemo.web.diagnosis.page import diagnose_page

diagnose_page()
