"""The words: a sentence, built from the words that two small trained models know."""

from qkdemo.labs.words import LAB
from qkdemo.web.lab.page import lab_page
from qkdemo.web.lab.parts.words_exhibit import words_body

lab_page(LAB, words_body)
